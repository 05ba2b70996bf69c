"""Look for what compiles extensions of torch: compilers, nvcc, ninja, the ptxas of triton.

What is taken is what torch's own rules take; where the folder of the interpreter is not on PATH, it
comes first, as in an environment that is activated. Each is asked for its version; nothing is
compiled.

Sources: torch/utils/cpp_extension.py (get_cxx_compiler, _find_cuda_home, is_ninja_available and
what is done with CC); nvcc's documentation of NVCC_CCBIN, NVCC_PREPEND_FLAGS, NVCC_APPEND_FLAGS;
triton/knobs.py and triton/runtime/build.py.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from torchdoctor.background import Background
from torchdoctor.child import Run
from torchdoctor.values import dataclass

WRAPPERS = ("ccache", "sccache", "distcc", "icecc")
COMMON = ("c++", "g++", "clang++", "cc", "gcc", "clang", "cl")
NUMBERED = range(8, 21)
"""Majors of gcc that systems offer beside their own."""
FLAGS = ("NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS")
PTXAS = {"ptxas": "TRITON_PTXAS_PATH", "ptxas-blackwell": "TRITON_PTXAS_BLACKWELL_PATH"}
UNCHECKED = ("-allow-unsupported-compiler", "--allow-unsupported-compiler")
_CCBIN = re.compile(r"(?:^|\s)(?:-ccbin|--compiler-bindir)[\s=]+(\"[^\"]+\"|'[^']+'|\S+)")


def look(
    python: str,
    environ: Mapping[str, str],
    modules: object,
    command: Callable[[tuple[str, ...]], Run],
    *,
    windows: bool = os.name == "nt",
) -> dict[str, Run]:
    """Return, by the names of probes, what was found and what each program said of itself.

    *modules* is what the environment probe said of modules; *command* runs a command in time.
    """
    place = _Place(python, environ, windows)
    cxx, cc = place.cxx(), place.cc()
    home = place.cuda_home()
    nvcc = place.program_in(home, "nvcc")
    ptxas = place.ptxas(_folder(modules, "triton"))
    ninja = place.which("ninja")
    calls: dict[str, tuple[str, ...]] = {}
    for name, one in (("c++", cxx), ("cc", cc)):
        if path := one["path"]:
            is_cl = Path(path).stem.lower() == "cl"
            calls[f"build {name}"] = (path,) if is_cl else (path, "--version")
    if nvcc:
        calls["build nvcc"] = (nvcc, "--version")
        calls["build nvcc targets"] = (nvcc, "--list-gpu-code")
    if ninja:
        calls["build ninja"] = (ninja, "--version")
    calls |= {f"build {name}": (path, "--version") for name, path in ptxas.items()}
    running = {name: Background(partial(command, call)) for name, call in calls.items()}
    data: dict[str, object] = {
        "cxx": cxx,
        "cc": cc,
        "cuda_home": home,
        "nvcc": nvcc,
        "ninja": ninja,
        "found": place.found(),
        "unchecked": any(flag in place.flags() for flag in UNCHECKED),
        "visual_studio": place.has_visual_studio(),
        "done": True,
    }
    found = {"build tools": Run((), "answered", data=data)}
    return found | {name: run.result() for name, run in running.items()}


def _folder(modules: object, name: str) -> str | None:
    module = modules.get(name) if isinstance(modules, Mapping) else None
    folder = module.get("package") if isinstance(module, Mapping) else None
    return folder if isinstance(folder, str) else None


@dataclass(frozen=True, slots=True)
class _Place:
    python: str
    environ: Mapping[str, str]
    windows: bool

    def which(self, name: str) -> str | None:
        path, own = self.environ.get("PATH", ""), str(Path(self.python).parent)
        if own not in path.split(os.pathsep):
            path = os.pathsep.join((own, path))
        return shutil.which(name, path=path)

    def found(self) -> list[str]:
        names = (*COMMON, *(f"g++-{number}" for number in NUMBERED))
        return [name for name in names if self.which(name)]

    def cxx(self) -> dict[str, str | None]:
        if given := self.environ.get("CXX"):
            return self._named(given, "CXX")
        return self._usual("cl" if self.windows else "c++")

    def cc(self) -> dict[str, str | None]:
        """Return the C compiler: by CC, which torch hands on to nvcc, or as nvcc goes by itself."""
        if given := self.environ.get("CC"):
            return self._named(given, "CC")
        for name in FLAGS:
            if named := _CCBIN.findall(self.environ.get(name, "")):
                return self._named(named[-1].strip("\"'"), name)
        if given := self.environ.get("NVCC_CCBIN"):
            return self._named(given, "NVCC_CCBIN")
        names = ("cl",) if self.windows else ("gcc", "clang", "cc")
        return self._usual(next(filter(self.which, names), names[0]))

    def flags(self) -> list[str]:
        return [flag for name in FLAGS for flag in self.environ.get(name, "").split()]

    def cuda_home(self) -> str | None:
        for name in ("CUDA_HOME", "CUDA_PATH"):
            if given := self.environ.get(name):
                return given
        if nvcc := self.which("nvcc"):
            return str(Path(nvcc).parent.parent)
        if not self.windows:
            return "/usr/local/cuda" if Path("/usr/local/cuda").exists() else None
        programs = Path(self.environ.get("ProgramFiles", r"C:\Program Files"))
        homes = sorted(programs.glob("NVIDIA GPU Computing Toolkit/CUDA/v*.*"))
        return str(homes[0]) if homes else None

    def program_in(self, home: str | None, name: str) -> str | None:
        path = Path(home or "", "bin", f"{name}.exe" if self.windows else name)
        return str(path) if home and path.is_file() else None

    def ptxas(self, triton: str | None) -> dict[str, str]:
        """Return the path of each ptxas that triton would call."""
        found: dict[str, str] = {}
        for name, variable in PTXAS.items():
            own = self.program_in(f"{triton}/backends/nvidia", name) if triton else None
            given = self.environ.get(variable)
            path = given if given and Path(given).is_file() else own
            if triton and path:
                found[name] = path
        return found

    def has_visual_studio(self) -> bool:
        """Tell whether Visual Studio's installer is there, by which setuptools finds its cl."""
        programs = self.environ.get("ProgramFiles(x86)", r"C:\Program Files (x86)")
        where = Path(programs, "Microsoft Visual Studio", "Installer", "vswhere.exe")
        return self.windows and where.is_file()

    def _named(self, value: str, variable: str) -> dict[str, str | None]:
        try:
            words = shlex.split(value, posix=not self.windows)
        except ValueError:
            words = [value]
        while len(words) > 1 and Path(words[0]).stem in WRAPPERS:
            words.pop(0)
        program = value if self.which(value) else words[0] if words else value
        if Path(program).is_dir():  # of -ccbin it may be the folder
            program = str(Path(program, "cl.exe" if self.windows else "gcc"))
        return {"command": program, "path": self.which(program), "variable": variable}

    def _usual(self, name: str) -> dict[str, str | None]:
        return {"command": name, "path": self.which(name), "variable": None}
