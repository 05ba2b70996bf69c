from tests.checks.make import SITE, build, dist, imported, interpreter, linux, raised
from tests.conftest import Judge, Planner
from torchdoctor.facts import Facts, Module, Unknown

OWN = Module("torch", f"{SITE}/torch/__init__.py", SITE)
HERE = "/home/u/project"
KNOWN = {
    "platform": linux(),
    "interpreter": interpreter(),
    "modules": {"torch": OWN},
    "local_modules": {"torch": OWN},
    "distributions": (dist("torch", "2.13.0+cpu"),),
    "variables": {},
    "torch": build("2.13.0+cpu"),
}


def local(name: str, origin: str | None) -> dict[str, object]:
    return KNOWN | {"local_modules": {"torch": OWN, name: Module(name, origin, HERE)}}


def on_path(origin: str, folder: str, **more: object) -> dict[str, object]:
    module = Module("torch", origin, folder)
    return KNOWN | {
        "modules": {"torch": module},
        "local_modules": {"torch": module},
        "variables": {"PYTHONPATH": f"/opt/lib:{folder}"},
        "torch": None,
        **more,
    }


def test_a_script_called_torch_is_an_error(judge: Judge) -> None:
    (finding,) = judge(**local("torch", f"{HERE}/torch.py"), trial=imported()).findings
    assert (finding.name, finding.severity) == ("local-module-shadow", "error")
    assert f"{HERE}/torch.py" in finding.summary
    assert finding.steps[0].commands.bash == (f"mv {HERE}/torch.py {HERE}/local_torch.py",)


def test_a_folder_may_be_a_source_checkout(judge: Judge) -> None:
    (finding,) = judge(**local("torch", f"{HERE}/torch/__init__.py")).findings
    assert "source checkout" in finding.summary
    leave, rename = finding.steps
    assert leave.commands.bash == ('cd "$HOME"',)
    assert rename.commands.bash == (f"mv {HERE}/torch {HERE}/local_torch",)


def test_a_module_of_the_standard_library_is_a_warning(judge: Judge) -> None:
    (finding,) = judge(**local("random", f"{HERE}/random.py")).findings
    assert (finding.severity, finding.confidence) == ("warning", "likely")
    assert "standard library's random" in finding.summary


def test_a_folder_without_init_loses(judge: Judge) -> None:
    assert judge(**local("torch", None)).status == "clear"


def test_the_installed_torch_is_in_order_from_any_folder(judge: Judge) -> None:
    assert judge(**KNOWN).status == "clear"


def test_an_editable_install_is_in_order_in_its_own_checkout(judge: Judge) -> None:
    checkout = Module("torch", f"{HERE}/torch/__init__.py", "")
    both = {"modules": {"torch": checkout}, "local_modules": {"torch": checkout}}
    editable = {"distributions": (dist("torch", "2.14.0a0", editable=True),)}
    assert judge(**KNOWN | both | editable).status == "clear"


def test_a_file_in_pythonpath_is_told_with_the_variable(judge: Judge) -> None:
    facts = on_path("/srv/tools/torch.py", "/srv/tools")
    failed = raised("AttributeError", "module 'torch' has no attribute 'Tensor'")
    (finding,) = judge(**facts, trial=failed).findings
    assert finding.severity == "error"
    assert "/srv/tools is in PYTHONPATH" in finding.summary
    assert [s.name for s in finding.steps] == ["unset-pythonpath", "rename-torch-py"]


def test_a_whole_torch_in_pythonpath_that_works_is_a_warning(judge: Judge) -> None:
    other = build("2.9.1", distribution=dist("torch", "2.9.1", folder="/srv/site"))
    facts = on_path("/srv/site/torch/__init__.py", "/srv/site", torch=other)
    (finding,) = judge(**facts, trial=imported()).findings
    assert finding.severity == "warning"
    assert [s.name for s in finding.steps] == ["unset-pythonpath"]


def test_a_torch_in_pythonpath_alone_hides_nothing(judge: Judge) -> None:
    facts = on_path("/srv/site/torch/__init__.py", "/srv/site", distributions=())
    assert judge(**facts).status == "clear"


def test_the_user_site_is_another_check(judge: Judge) -> None:
    user = "/home/u/.local/lib/python3.12/site-packages"
    facts = on_path(f"{user}/torch/__init__.py", user)
    python = interpreter(kind="conda", user_site=user)
    assert judge(**facts | {"variables": {}, "interpreter": python}).status == "clear"


def test_without_a_working_folder_the_path_is_still_judged(judge: Judge) -> None:
    outcome = judge(**KNOWN | {"local_modules": Unknown("the folder is not there")})
    assert outcome.status == "clear"


def test_where_imports_go_must_be_known(judge: Judge) -> None:
    assert judge(**{k: v for k, v in KNOWN.items() if k != "modules"}).status == "unknown"


def test_renaming_cures(cure: Planner) -> None:
    for name in ("torch", "random"):
        assert cure(**local(name, f"{HERE}/{name}.py")).verdict == "healthy"


def test_unsetting_cures_and_brings_the_installed_torch_back(cure: Planner) -> None:
    facts = on_path("/srv/tools/torch.py", "/srv/tools")
    plan = cure(**facts)
    assert (plan.verdict, plan.steps[0].step.name) == ("healthy", "unset-pythonpath")
    after = plan.steps[0].step.effect(Facts(**facts))  # type: ignore[arg-type]
    assert getattr(after.torch, "version", None) == "2.13.0+cpu"


def test_a_script_that_a_traceback_shows_needs_no_listing(judge: Judge, cure: Planner) -> None:
    script = Module("torch", f"{HERE}/torch.py", HERE)
    known = {
        "modules": {"torch": script},
        "trial": raised("ImportError", "partially initialized module"),
    }
    (finding,) = judge(**known).findings
    assert (finding.name, finding.severity) == ("local-module-shadow", "error")
    assert f"{HERE}/torch.py" in finding.summary
    assert finding.steps[0].commands.bash == (f"mv {HERE}/torch.py {HERE}/local_torch.py",)
    assert cure(**known).verdict == "healthy"
    (finding,) = judge(modules={"numpy": Module("numpy", f"{HERE}/numpy.py", HERE)}).findings
    assert finding.severity == "warning"


def test_a_folder_that_a_traceback_shows_may_be_the_real_one(judge: Judge) -> None:
    for origin in (f"{SITE}/torch/__init__.py", f"{HERE}/lib/torch/__init__.pyc", None):
        assert judge(modules={"torch": Module("torch", origin, HERE)}).status == "clear"
