from tests.checks.make import build, dist, imported, interpreter, linux, raised
from tests.checks.run import said
from tests.conftest import Judge, Planner
from torchdoctor.facts import Conda, CondaPackage, Unknown

NONE = {"torch": None, "platform": linux(), "distributions": ()}


def test_an_activated_environment_elsewhere_is_the_cause(judge: Judge) -> None:
    outcome = judge(**NONE, interpreter=interpreter(), variables={"VIRTUAL_ENV": "/home/u/.venv"})
    (cause,) = outcome.findings
    assert (cause.name, cause.confidence) == ("wrong-interpreter", "likely")
    assert "/home/u/.venv" in cause.summary
    assert outcome.findings[0].steps[0].commands.bash[0].startswith('"/home/u/.venv/bin/python" -c')


def test_a_base_environment_of_conda_behind_a_venv_is_in_order(judge: Judge) -> None:
    active = {"VIRTUAL_ENV": "/env/", "CONDA_PREFIX": "/opt/conda"}
    outcome = judge(**NONE, interpreter=interpreter(), variables=active)
    assert outcome.status == "clear"


def test_a_pytorch_of_conda_for_another_python_is_the_wrong_interpreter(judge: Judge) -> None:
    record = CondaPackage("pytorch", "2.1.0", "py3.10_cuda12.1_cudnn8.9.2_0", "pytorch")
    outcome = judge(**NONE, interpreter=interpreter(), conda=Conda((record,)))
    assert "Python 3.10" in outcome.findings[0].summary
    assert outcome.findings[0].name == "wrong-interpreter"


def test_a_wheel_of_another_python_is_the_wrong_interpreter(judge: Judge) -> None:
    torch = build(
        "2.13.0+cpu",
        distribution=dist("torch", "2.13.0+cpu", wheel_tags=("cp311-cp311-manylinux_2_28_x86_64",)),
    )
    failed = raised("ModuleNotFoundError", "No module named 'torch._C'")
    outcome = judge(torch=torch, platform=linux(), interpreter=interpreter(), trial=failed)
    (finding,) = outcome.findings
    assert finding.name == "wrong-interpreter"
    assert "built for Python 3.11; Python 3.12" in finding.summary
    assert "torch==2.13.0+cpu" in outcome.findings[0].steps[0].commands.bash[0]


def test_a_wheel_of_the_stable_abi_serves_newer_pythons(judge: Judge) -> None:
    tags = ("cp310-abi3-manylinux_2_28_x86_64",)
    torch = build("2.13.0+cpu", distribution=dist("torch", "2.13.0+cpu", wheel_tags=tags))
    assert judge(torch=torch, interpreter=interpreter()).status == "clear"


def test_a_torch_that_imports_is_not_judged_by_its_tags(judge: Judge) -> None:
    tags = ("cp311-cp311-manylinux_2_28_x86_64",)
    torch = build("2.13.0+cpu", distribution=dist("torch", "2.13.0+cpu", wheel_tags=tags))
    assert judge(torch=torch, interpreter=interpreter(), trial=imported()).status == "clear"


def test_registered_but_gone_is_for_another_check(judge: Judge) -> None:
    gone = (dist("torch", "2.13.0"),)
    assert judge(torch=None, distributions=gone, interpreter=interpreter()).status == "clear"


def test_nobody_looked_is_unknown(judge: Judge) -> None:
    assert judge(torch=Unknown("no folder was read"), interpreter=interpreter()).status == "unknown"


def test_using_the_activated_python_cures(cure: Planner) -> None:
    plan = cure(**NONE, interpreter=interpreter(), variables={"VIRTUAL_ENV": "/home/u/.venv"})
    assert (plan.verdict, plan.steps[0].step.name) == ("healthy", "use-activated-python")


def test_installing_for_this_python_cures(cure: Planner) -> None:
    tags = ("cp311-cp311-manylinux_2_28_x86_64",)
    own = dist("torch", "2.13.0+cpu", wheel_tags=tags)
    torch = build("2.13.0+cpu", distribution=own)
    facts = {"platform": linux(), "interpreter": interpreter(), "distributions": (own,)}
    assert cure(**facts, torch=torch).verdict == "healthy"


def test_a_torch_in_the_tree_of_another_python_is_told_with_both(judge: Judge) -> None:
    there = dist("torch", "1.12.0", folder="/anaconda/envs/a/lib/python3.8/site-packages")
    python = interpreter(executable="/anaconda/envs/b/bin/python", prefix="", site_packages=())
    outcome = judge(torch=None, interpreter=python, distributions=(there,))
    (finding,) = outcome.findings
    assert (finding.name, finding.severity) == ("wrong-interpreter", "error")
    assert "/anaconda/envs/a/lib/python3.8/site-packages" in finding.summary
    assert finding.steps[0].commands.bash[0].startswith('"/anaconda/envs/a/bin/python" -c')


def test_a_torch_in_the_tree_of_this_python_is_another_check(judge: Judge) -> None:
    there = dist("torch", "1.12.0", folder="/anaconda/envs/b/lib/python3.8/site-packages")
    python = interpreter(executable="/anaconda/envs/b/bin/python", prefix="", site_packages=())
    assert judge(torch=None, interpreter=python, distributions=(there,)).status == "clear"


SYMBOL = (
    "python: symbol lookup error: /v/lib/python3.6/site-packages/torch/lib/libtorch_python.so: "
    "undefined symbol: PySlice_Unpack"
)
DYLD = (
    "dyld: Symbol not found: _PySlice_Unpack\n  Referenced from: /v/libtorch_python.dylib\n"
    "  Expected in: flat namespace"
)


def test_a_patch_release_that_lacks_a_name_is_too_old(judge: Judge, cure: Planner) -> None:
    old = {"torch": build("1.0.0"), "interpreter": interpreter("3.6.0"), "platform": linux()}
    for text in (SYMBOL, DYLD):
        (finding,) = judge(**old, symptoms=said(text), trial=imported()).findings
        assert (finding.name, finding.severity) == ("python-micro-too-old", "error")
        assert "since 3.6.1" in finding.summary
        old.pop("torch", None)  # what the name says needs no torch that is known
    assert cure(**old, torch=build("1.0.0"), symptoms=said(SYMBOL)).verdict == "healthy"


def test_a_newer_patch_release_and_another_minor_one_are_not(judge: Judge) -> None:
    for version in ("3.6.8", "3.7.0", "3.6"):
        here = {"torch": build("1.0.0"), "interpreter": interpreter(version), "platform": linux()}
        assert judge(**here, symptoms=said(SYMBOL), trial=imported()).findings == ()
