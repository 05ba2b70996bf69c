"""What the environment probe says, read into facts; and what nothing good can be read from."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchdoctor.child import Run, Stream
from torchdoctor.facts import Build, Conda, Facts, Interpreter, Module, Record, Unknown
from torchdoctor.reading.builds import tag_of
from torchdoctor.reading.environment import read
from torchdoctor.reading.interpreter import pyvenv_config

SITE = "/env/lib/python3.11/site-packages"
VERSION_PY = """\
from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'rocm', 'xpu']
__version__ = '2.13.0+cpu'
debug = False
cuda: Optional[str] = None
git_version = 'cf30153c4c131c8164ee7798e5022d810682e2cb'
hip: Optional[str] = None
rocm: Optional[str] = None
xpu: Optional[str] = None
"""
"""As torch 2.13.0 has it."""
TORCHVISION_VERSION_PY = """\
__version__ = '0.28.0+cpu'
git_version = '0123456789'
from torchvision.extension import _check_cuda_version
if _check_cuda_version() > 0:
    cuda = _check_cuda_version()
"""
"""As torchvision 0.28.0 has it, but for the hash."""
ANSWER: dict[str, Any] = {
    "verify": "quick",
    "cwd": "/home/me",
    "interpreter": {
        "executable": "/env/bin/python",
        "version": "3.11.7 (main, May  9 2026, 07:35:25) [GCC 12.2.0]",
        "prefix": "/env",
        "base_prefix": "/usr",
        "implementation": "cpython",
        "bits": 64,
        "platform": "linux-x86_64",
        "machine": "x86_64",
        "free_threaded": False,
        "debug": False,
        "pyvenv_cfg": "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.7\n",
        "externally_managed": True,
        "conda_meta": False,
        "pixi": False,
        "pipx": False,
        "uv_tool": False,
        "embedded": False,
        "projects": [],
    },
    "variables": {"told": {"PATH": "/usr/bin"}, "withheld": []},
    "search_path": ["/usr/lib/python3.11", SITE],
    "user_site": {"enabled": False, "folder": "/home/me/.local/lib/python3.11/site-packages"},
    "site_packages": [SITE],
    "packages": {
        "distributions": [
            {
                "name": "torch",
                "version": "2.13.0+cpu",
                "folder": SITE,
                "metadata": "torch-2.13.0+cpu.dist-info",
                "installer": "pip",
                "requires": ["filelock"],
                "tags": ["cp311-cp311-manylinux_2_28_x86_64"],
            }
        ],
        "leftovers": [],
        "pth": [],
        "egg_links": [],
    },
    "modules": {
        "torch": {
            "origin": f"{SITE}/torch/__init__.py",
            "package": f"{SITE}/torch",
            "folder": SITE,
        },
        "torchvision": None,
        "torchaudio": None,
    },
    "local_modules": {"torch": None, "torchvision": None, "torchaudio": None},
    "pip": {"pip": {"origin": f"{SITE}/pip/__init__.py", "package": None, "folder": SITE}},
    "versions": {"torch": VERSION_PY},
    "conda": None,
    "records": [
        {
            "name": "torch",
            "version": "2.13.0+cpu",
            "folder": SITE,
            "metadata": "torch-2.13.0+cpu.dist-info",
            "files": 12251,
            "missing": [],
            "missing_count": 0,
            "altered": [],
            "altered_count": 0,
            "hashed": 61,
            "unreadable": 0,
        }
    ],
    "done": True,
}


def changed(**paths: Any) -> dict[str, Any]:
    """Return ANSWER with other values: ``a__b=1`` sets ``["a"]["b"]``, ``...`` removes."""
    answer = copy.deepcopy(ANSWER)
    for path, value in paths.items():
        *above, last = path.split("__")
        at = answer
        for key in above:
            at = at[key]
        if value is ...:
            del at[last]
        else:
            at[last] = value
    return answer


def facts(answer: dict[str, Any] | None = None, **paths: Any) -> Facts:
    run = Run(("python",), "answered", data=changed(**paths) if answer is None else answer)
    return Facts(**read(run))  # type: ignore[arg-type]


def interpreter(**paths: Any) -> Interpreter:
    found = facts(**paths).interpreter
    assert isinstance(found, Interpreter), found
    return found


def build(**paths: Any) -> Build:
    found = facts(**paths).torch
    assert isinstance(found, Build), found
    return found


def distribution(name: str = "torch", version: str = "2.13.0", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "version": version,
        "folder": SITE,
        "metadata": f"{name}-{version}.dist-info",
        **more,
    }


def conda(*packages: tuple[str, str, str], commands: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "prefix": "/env",
        "packages": [
            {"name": name, "version": "1", "build": string, "channel": channel, "torch_files": 3}
            for name, string, channel in packages
        ],
        "commands": list(commands),
    }


IN_CONDA = {
    "interpreter__conda_meta": True,
    "interpreter__pyvenv_cfg": None,
    "interpreter__base_prefix": "/env",
}


# ---- a whole answer -----------------------------------------------------------------------------


def test_a_whole_answer_leaves_nothing_unknown() -> None:
    known = read(Run(("python",), "answered", data=ANSWER))
    assert [name for name, value in known.items() if isinstance(value, Unknown)] == []
    assert set(known) <= set(Facts.__slots__)


def test_the_build_is_what_version_py_says() -> None:
    found = build()
    assert found.version == "2.13.0+cpu"
    assert (found.cuda, found.hip, found.xpu, found.tag) == (None, None, None, "cpu")
    assert found.git == "cf30153c4c131c8164ee7798e5022d810682e2cb"
    assert found.origin == f"{SITE}/torch"
    assert found.distribution is not None
    assert found.distribution.wheel_tags == ("cp311-cp311-manylinux_2_28_x86_64",)


def test_the_record_of_torch_is_read() -> None:
    assert facts().records == {"torch": Record("torch", 12251, hashed=61)}


# ---- builds -------------------------------------------------------------------------------------


def test_version_py_wins_over_the_metadata() -> None:
    found = build(packages__distributions=[distribution(version="2.12.0")])
    assert found.version == "2.13.0+cpu"
    assert found.distribution is not None
    assert found.distribution.version == "2.12.0"


def test_the_metadata_tell_the_version_where_version_py_is_gone() -> None:
    found = build(versions__torch=None)
    assert (found.version, found.tag) == ("2.13.0+cpu", "cpu")


def test_of_two_distributions_the_one_of_this_version_owns_the_build() -> None:
    two = [distribution(version="2.12.0"), distribution(version="2.13.0")]
    records = [
        {**ANSWER["records"][0], "metadata": f"torch-{version}.dist-info", "missing_count": count}
        for version, count in (("2.12.0", 5), ("2.13.0", 0))
    ]
    found = facts(packages__distributions=two, records=records)
    assert isinstance(found.torch, Build)
    assert found.torch.distribution is not None
    assert found.torch.distribution.version == "2.13.0"
    assert found.records["torch"].missing_count == 0  # type: ignore[index]


def test_a_distribution_in_another_folder_does_not_own_the_build() -> None:
    found = build(packages__distributions=[distribution(folder="/elsewhere")])
    assert found.distribution is None


def test_an_editable_distribution_owns_what_a_finder_has() -> None:
    module = {"origin": "/src/torch/__init__.py", "package": "/src/torch", "folder": ""}
    direct = {"url": "file:///src", "editable": True}
    found = build(modules__torch=module, packages__distributions=[distribution(direct_url=direct)])
    assert found.distribution is not None
    assert found.distribution.editable


def test_without_a_module_there_is_no_build() -> None:
    assert facts(modules__torch=None).torch is None
    assert facts().torchvision is None


def test_an_empty_folder_called_torch_is_no_build() -> None:
    module = {"origin": None, "package": f"{SITE}/torch", "folder": SITE}
    found = facts(modules__torch=module, versions__torch=None, packages__distributions=[])
    assert found.torch is None
    assert found.modules["torch"] == Module("torch", None, SITE)  # type: ignore[index]


def test_a_package_whose_init_is_gone_is_still_the_build_of_its_version_py() -> None:
    module = {"origin": None, "package": f"{SITE}/torch", "folder": SITE}
    assert build(modules__torch=module).version == "2.13.0+cpu"


@pytest.mark.parametrize(
    ("package", "reason"), [(None, "single file"), ("/home/me/torch", "no version.py")]
)
def test_another_module_called_torch_is_no_build_and_says_so(
    package: str | None, reason: str
) -> None:
    origin = "/home/me/torch.py" if package is None else f"{package}/__init__.py"
    module = {"origin": origin, "package": package, "folder": "/home/me"}
    found = facts(modules__torch=module, versions={"torch": None}).torch
    assert isinstance(found, Unknown)
    assert reason in found.reason
    assert origin in found.reason


@pytest.mark.parametrize(
    ("version", "said", "string", "tag"),
    [
        ("2.13.0+cu130", {}, None, "cu130"),
        ("2.13.0+cpu", {"cuda": None}, None, "cpu"),
        ("2.9.0+rocm7.2", {}, None, "rocm7.2"),
        ("2.6.0+rocm6.2.4", {}, None, "rocm6.2.4"),
        ("2.9.0+xpu", {}, None, "xpu"),
        ("2.1.0+cpu.cxx11.abi", {}, None, "cpu"),
        ("2.9.0+cu126.with.pypi.cudnn", {}, None, "cu126"),
        ("2.6.0a0+ecf3bae40a.nv25.01", {"cuda": "12.8"}, None, "cu128"),
        ("2.9.0a0+cpux", {}, None, None),
        ("1.1.0", {"cuda": "9.0.176"}, None, "cu90"),
        ("2.9.0", {"cuda": None, "hip": "6.4.43482-0f2d60242"}, None, "rocm6.4"),
        ("2.9.0", {"cuda": None, "hip": "7.2.1", "rocm": "7.2.0"}, None, "rocm7.2"),
        ("2.9.0", {"cuda": None, "hip": None, "xpu": "20250302"}, None, "xpu"),
        ("2.9.0", {"cuda": None, "hip": None}, None, "cpu"),
        ("2.9.0", {}, None, None),
        ("0.24.0", {}, "cuda126_py311_0_h1234", "cu126"),
        ("0.17.0", {}, "py311_cu121", "cu121"),
        ("2.2.0", {}, "py3.11_cuda12.1_cudnn8.9.2_0", "cu121"),
        ("2.5.1", {}, "cpu_generic_py312_h1234", "cpu"),
        ("2.5.1", {}, "py3.10_cpu_0", "cpu"),
        ("2.5.1", {}, "py311h06a4308_0", None),
    ],
)
def test_the_kind_of_a_build_is_told_by_label_then_values_then_conda(
    version: str, said: dict[str, str | None], string: str | None, tag: str | None
) -> None:
    assert tag_of(version, said, string) == tag


def test_version_py_of_torchvision_tells_by_its_label() -> None:
    module = {**ANSWER["modules"]["torch"], "package": f"{SITE}/torchvision"}
    found = facts(
        modules__torchvision=module, versions__torchvision=TORCHVISION_VERSION_PY
    ).torchvision
    assert isinstance(found, Build)
    assert (found.version, found.tag, found.cuda) == ("0.28.0+cpu", "cpu", None)


def test_version_py_is_read_and_never_run() -> None:
    text = "__version__ = '2' + str(1)\n__version__ = evil()\n  __version__ = '9'\n"
    assert build(versions__torch=text).version == "2.13.0+cpu"  # of the metadata
    assert build(versions__torch='__version__ = "2.1"  # here\r\n').version == "2.1"


def test_the_build_string_of_conda_counts_for_condas_own_files_only() -> None:
    packages = conda(("pytorch", "cuda126_mkl_py311_0", "conda-forge"))
    text = "__version__ = '2.5.1'\n"
    mine = [distribution(version="2.5.1", installer="conda")]
    pips = [distribution(version="2.5.1", installer="pip")]
    with_conda = {**IN_CONDA, "conda": packages, "versions__torch": text}
    assert build(**with_conda, packages__distributions=mine).tag == "cu126"
    assert build(**with_conda, packages__distributions=pips).tag is None


# ---- conda --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "channel"),
    [
        ("https://conda.example/conda-forge/linux-64", "conda-forge"),
        ("https://conda.example/pytorch/noarch", "pytorch"),
        ("https://repo.example/pkgs/main/win-64", "defaults"),
        ("https://repo.example/pkgs/r/osx-arm64/", "defaults"),
        ("pkgs/main", "defaults"),
        ("defaults", "defaults"),
        ("conda-forge", "conda-forge"),
        ("https://conda.example/t/secret/nvidia/linux-64", "nvidia"),
        ("https://pixi.example/conda-forge/", "conda-forge"),
        ("https://mirror.example/label/dev/linux-aarch64", "label/dev"),
        ("", ""),
    ],
)
def test_channels_are_called_as_people_call_them(address: str, channel: str) -> None:
    found = facts(conda=conda(("x", "0", address))).conda
    assert isinstance(found, Conda)
    assert found.packages[0].channel == channel


def test_the_files_of_torch_are_counted_over_all_records() -> None:
    found = facts(conda=conda(("pytorch", "0", "a"), ("libtorch", "0", "a"))).conda
    assert isinstance(found, Conda)
    assert (found.torch_files, found.prefix) == (6, "/env")


# ---- the interpreter ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({}, "venv"),
        ({"pyvenv_cfg": "home = /usr/bin\nuv = 0.9.2\n"}, "uv"),
        ({"pyvenv_cfg": "home = /usr/bin\nvirtualenv = 20.1\n"}, "virtualenv"),
        ({"pyvenv_cfg": None}, "virtualenv"),
        ({"pipx": True}, "pipx"),
        ({"uv_tool": True, "pyvenv_cfg": "uv = 0.9.2"}, "uv-tool"),
        ({"pyvenv_cfg": None, "prefix": "/c", "base_prefix": "/c", "conda_meta": True}, "conda"),
        ({"pyvenv_cfg": None, "prefix": "/usr", "base_prefix": "/usr"}, "system"),
        ({"pyvenv_cfg": None, "prefix": "/usr/local", "base_prefix": "/usr/local"}, "system"),
        ({"pyvenv_cfg": None, "prefix": "/p", "base_prefix": "/p"}, "other"),
        ({"pyvenv_cfg": None, "prefix": "/p", "base_prefix": "/p", "embedded": True}, "embedded"),
    ],
)
def test_the_kind_of_an_environment_is_told_by_its_marks(said: dict[str, Any], kind: str) -> None:
    assert interpreter(**{f"interpreter__{k}": v for k, v in said.items()}).kind == kind


@pytest.mark.parametrize(
    ("prefix", "kind"),
    [
        ("/home/me/.pyenv/versions/3.11.7", "pyenv"),
        (r"C:\Users\me\.pyenv\pyenv-win\versions\3.11.7", "pyenv"),
        ("/home/me/.local/share/uv/python/cpython-3.12.1-linux-x86_64-gnu", "uv"),
        (r"C:\Users\me\AppData\Roaming\uv\python\cpython-3.12.1-windows-x86_64-none", "uv"),
        (
            r"C:\Program Files\WindowsApps\PythonSoftwareFoundation.Python.3.11_3.11.2_x64__qbz",
            "store",
        ),
        (r"C:\Program Files\Python312", "system"),
        (r"C:\Python312", "system"),
        (r"C:\Users\me\AppData\Local\Programs\Python\Python312", "system"),
        ("/Library/Frameworks/Python.framework/Versions/3.12", "system"),
        ("/opt/homebrew/opt/python@3.12/Frameworks/Python.framework/Versions/3.12", "system"),
        (r"D:\tools\python", "other"),
    ],
)
def test_the_kind_of_an_installation_is_told_by_its_place(prefix: str, kind: str) -> None:
    found = interpreter(
        interpreter__pyvenv_cfg=None, interpreter__prefix=prefix, interpreter__base_prefix=prefix
    )
    assert found.kind == kind


@pytest.mark.parametrize(
    ("platform", "running", "machine"),
    [
        ("linux-aarch64", "aarch64", "aarch64"),
        ("win-amd64", None, "AMD64"),
        ("win32", None, "x86"),
        ("win-arm64", None, "ARM64"),
        ("macosx-11.0-arm64", "arm64", "arm64"),
        ("macosx-10.9-universal2", "x86_64", "x86_64"),
        ("macosx-10.9-x86_64", "x86_64", "x86_64"),
    ],
)
def test_the_machine_is_the_one_the_interpreter_runs_as(
    platform: str, running: str | None, machine: str
) -> None:
    found = interpreter(interpreter__platform=platform, interpreter__machine=running)
    assert found.machine == machine


def test_a_venv_is_not_externally_managed_though_its_base_is() -> None:
    assert not interpreter().externally_managed
    base = interpreter(interpreter__pyvenv_cfg=None, interpreter__prefix="/usr")
    assert base.externally_managed


def test_the_user_site_counts_only_when_it_is_on_the_path() -> None:
    folder = ANSWER["user_site"]["folder"]
    assert interpreter(user_site__enabled=True).user_site is None
    on = interpreter(user_site__enabled=True, search_path=[folder, SITE])
    assert on.user_site == folder


@pytest.mark.parametrize(
    ("said", "version"),
    [("3.8.18 (default, x)", "3.8.18"), ("3.14.0rc1 (x)", "3.14.0rc1"), ("3.12.1+ (x)", "3.12.1")],
)
def test_the_version_is_the_first_word(said: str, version: str) -> None:
    assert interpreter(interpreter__version=said).version == version


def test_a_free_threaded_interpreter_has_its_own_tag() -> None:
    found = interpreter(interpreter__free_threaded=True, interpreter__version="3.14.0 (x)")
    assert found.tag == "3.14t"


def test_pyvenv_cfg_is_read_by_its_keys() -> None:
    assert pyvenv_config(None) is None
    text = "Home = /usr/bin\r\nuv=0.9\nprompt = a = b\nrubbish\n"
    assert pyvenv_config(text) == {"home": "/usr/bin", "uv": "0.9", "prompt": "a = b"}


# ---- who owns the environment -------------------------------------------------------------------

NO_PIP: dict[str, Any] = {"pip": {"pip": None}}
UV_CFG = {"interpreter__pyvenv_cfg": "home = /usr/bin\nuv = 0.9.2\n"}


@pytest.mark.parametrize(
    ("said", "torch", "installer"),
    [
        ({}, "pip", "pip"),
        ({}, None, "pip"),
        (NO_PIP, "uv", "uv"),
        ({}, "uv", "pip"),
        (UV_CFG, "pip", "uv"),
        (UV_CFG, None, "uv"),
        ({}, "Poetry 2.1.0", "poetry"),
        (UV_CFG, "pdm", "pdm"),
        ({"interpreter__projects": ["/poetry.lock"]}, None, "poetry"),
        ({"interpreter__projects": ["/poetry.lock"]}, "pip", "pip"),
        ({"interpreter__projects": ["/home/me/poetry.lock"]}, None, "pip"),
        ({"interpreter__projects": ["/uv.lock"]}, "uv", "uv"),
        ({"interpreter__projects": ["/pdm.lock"]}, None, "pdm"),
        ({"interpreter__prefix": "/c/pypoetry/virtualenvs/x-py3.11"}, None, "poetry"),
        ({"interpreter__uv_tool": True}, "uv", "uv"),
        ({"interpreter__pipx": True}, "pip", "pip"),
        ({"interpreter__prefix": "/p/.pixi/envs/default"}, None, "pixi"),
        ({**IN_CONDA, "interpreter__pixi": True, "conda": conda()}, "uv", "pixi"),
        ({**IN_CONDA, "conda": conda(("pytorch", "0", "c"))}, "conda", "conda"),
        ({**IN_CONDA, "conda": conda(("pytorch", "0", "c"))}, "pip", "conda"),
        ({**IN_CONDA, "conda": conda(("python", "0", "c"))}, "pip", "pip"),
        ({**IN_CONDA, **NO_PIP, "conda": conda(("python", "0", "c"))}, "uv", "uv"),
        ({**IN_CONDA, "conda": conda(("python", "0", "c"))}, None, "conda"),
        ({**IN_CONDA, "conda": conda(commands=("/opt/bin/mamba install x",))}, None, "mamba"),
        ({**IN_CONDA, "conda": conda(commands=("/opt/mambaforge/bin/conda i",))}, None, "conda"),
        (
            {**IN_CONDA, "conda": conda(commands=(r"C:\mamba\Scripts\mamba.exe create",))},
            None,
            "mamba",
        ),
    ],
)
def test_the_owner_of_the_environment_is_told_by_the_marks_it_leaves(
    said: dict[str, Any], torch: str | None, installer: str
) -> None:
    found = [] if torch is None else [distribution(version="2.13.0+cpu", installer=torch)]
    if torch is None:
        said = {**said, "modules__torch": None}
    assert interpreter(**said, packages__distributions=found).installer == installer


# ---- what is not there, and what is rubbish -----------------------------------------------------


def test_a_probe_that_was_stopped_leaves_the_rest_unknown_with_the_reason() -> None:
    told = {key: ANSWER[key] for key in ("verify", "variables", "search_path")}
    run = Run(("python",), "timeout", reason="did not end within 10 s", data=told)
    known = read(run)
    assert known["variables"] == {"PATH": "/usr/bin"}
    for name in ("interpreter", "torch", "records", "conda", "modules"):
        value = known[name]
        assert isinstance(value, Unknown)
        assert "did not end within 10 s" in value.reason


def test_a_probe_that_was_stopped_while_comparing_tells_what_it_had_compared() -> None:
    found = facts(done=...).records
    assert not isinstance(found, Unknown)
    assert set(found) == {"torch"}
    assert isinstance(facts(done=..., records=[]).records, Unknown)


def test_a_probe_that_could_not_start_is_quoted_by_its_last_words() -> None:
    stderr = Stream("Traceback\nSyntaxError: invalid syntax\n")
    known = read(Run(("python",), "failed", exit_code=1, stderr=stderr))
    value = known["interpreter"]
    assert isinstance(value, Unknown)
    assert value.reason.endswith("SyntaxError: invalid syntax")


def test_what_failed_on_its_own_is_unknown_with_its_error() -> None:
    found = facts(variables=..., errors={"variables": "OSError: no"})
    assert found.variables == Unknown("looking at the variables failed: OSError: no")
    assert isinstance(found.interpreter, Interpreter)


def test_a_module_whose_finder_failed_makes_its_build_unknown() -> None:
    found = facts(modules__torch=..., errors={"module torch": "ImportError: no"})
    assert isinstance(found.torch, Unknown)
    assert "ImportError: no" in found.torch.reason
    assert found.torchvision is None


@pytest.mark.parametrize(
    ("change", "table"),
    [({"problem": "no RECORD"}, {}), ({"unreadable": 3}, {})],
)
def test_a_distribution_that_could_not_be_compared_has_no_record(
    change: dict[str, Any], table: dict[str, Record]
) -> None:
    assert facts(records=[{**ANSWER["records"][0], **change}]).records == table


def test_damage_is_told_though_some_files_could_not_be_read() -> None:
    record = {**ANSWER["records"][0], "unreadable": 3, "missing": ["x"], "missing_count": 1}
    found = facts(records=[record]).records
    assert found["torch"].missing == ("x",)  # type: ignore[index]


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("interpreter__executable", None, "interpreter"),
        ("interpreter__bits", "64", "interpreter"),
        ("interpreter__bits", True, "interpreter"),
        ("interpreter__debug", 1, "interpreter"),
        ("interpreter__projects", [3], "interpreter"),
        ("variables", [], "variables"),
        ("variables__told", {"PATH": 3}, "variables"),
        ("search_path", "/usr", "search_path"),
        ("packages__distributions", {"name": "torch"}, "distributions"),
        ("packages__distributions", [{"name": "torch"}], "distributions"),
        ("packages__leftovers", ["~orch"], "leftovers"),
        ("conda", "yes", "conda"),
        ("conda", {"packages": [{"name": "x"}]}, "conda"),
        ("records", [{"name": "torch", "files": -1}], "records"),
        ("records", [None], "records"),
        ("modules", ["torch"], "modules"),
        ("modules__torch", "site-packages", "torch"),
        ("versions__torch", 3, "torch"),
        ("versions", [], "torch"),
        ("local_modules__torch", {"origin": 1}, "local_modules"),
    ],
)
def test_a_value_of_a_wrong_type_is_unknown(path: str, value: object, field: str) -> None:
    found = getattr(facts(changed(**{path: value})), field)
    assert isinstance(found, Unknown)
    assert "cannot be read" in found.reason


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(key=st.sampled_from(sorted(ANSWER)), value=ANYTHING)
def test_no_answer_makes_the_reader_fail(key: str, value: object) -> None:
    facts({**ANSWER, key: value})
    facts({"errors": value, key: value})


@settings(deadline=None)
@given(value=ANYTHING, data=st.data())
def test_no_value_deeper_in_an_answer_makes_the_reader_fail(
    value: object, data: st.DataObject
) -> None:
    answer = copy.deepcopy(ANSWER)
    at: Any = answer
    while isinstance(at, dict | list) and at:
        keys = sorted(at) if isinstance(at, dict) else range(len(at))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(at[key], dict | list) or not at[key] or data.draw(st.booleans()):
            at[key] = value
            break
        at = at[key]
    facts(answer)
