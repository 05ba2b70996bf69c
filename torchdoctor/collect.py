"""Look at one machine: which probes, side by side, into one snapshot."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from torchdoctor import child
from torchdoctor.background import Background
from torchdoctor.child import Run
from torchdoctor.resource import read_text
from torchdoctor.snapshot import Snapshot
from torchdoctor.values import dataclass

if TYPE_CHECKING:
    from torchdoctor.distributed.launcher import Seat
    from torchdoctor.distributed.session import Wish

NVIDIA = "0x10de"
"""The vendor, as PCI has it."""
COMPANIONS = ("torchvision", "torchaudio")
SMI_QUERY = (
    (
        "--query-gpu=index,name,uuid,driver_version,compute_cap,memory.total,pci.bus_id,"
        "mig.mode.current,compute_mode"
    ),
    "--format=csv,noheader,nounits",
)


TIMEOUT = 10.0
IMPORT_TIMEOUT = 60.0
FULL_TIMEOUT = 900.0
"""Seconds that a probe may take, an import, and the comparison of every byte (``full``)."""
WINDOWS_TIMEOUT = 30.0
"""Seconds for reading DLLs, which a virus scanner may read first."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to look at, and for how long. Times in seconds."""

    python: str
    working_folder: str
    import_torch: bool = True
    verify: str = "quick"
    timeout: float = TIMEOUT
    import_timeout: float = IMPORT_TIMEOUT
    after: tuple[str, ...] = ()
    """Modules that the user's program imports before torch."""
    shared_objects: bool = True
    """Whether to read, on Linux, those that an import of torch would load."""
    all_reduce: Wish | None = None
    """The all_reduce to try when everything else was looked at."""
    profile: str = "run"
    """Whether to look at what compiles extensions, too: build."""
    progress: Callable[[object], None] | None = None
    """Is told, in another thread, how far the comparison of every byte is: (bytes done, of)."""


def collect(request: Request, environ: Mapping[str, str]) -> Snapshot:
    """Run the probes side by side and return what each said.

    *environ* is the environment that the user's own Python would get. Nothing is written
    outside a temporary folder, which is gone afterwards; every probe ends within its deadline.
    """
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="torchdoctor-", ignore_cleanup_errors=True) as folder:
        looking = _Looking(request, environ, folder)
        probes = looking.side_by_side()
    return Snapshot(
        collected_at=now,
        probes={name: _since(start, run) for name, run in probes.items()},
        options={
            "python": request.python,
            "cwd": request.working_folder,
            "import_torch": request.import_torch,
            "verify": request.verify,
            "timeout": request.timeout,
            "import_timeout": request.import_timeout,
            "after": list(request.after),
            **({"profile": request.profile} if request.profile != "run" else {}),
        },
    )


def all_reduce(request: Request, environ: Mapping[str, str]) -> Snapshot:
    """Try the all_reduce that *request* asks for, look at nothing else, and return what it said."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with tempfile.TemporaryDirectory(prefix="torchdoctor-", ignore_cleanup_errors=True) as folder:
        run = _Looking(request, environ, folder).all_reduce()
    return Snapshot(collected_at=now, probes={"all-reduce": run})


def all_reduce_in_seat(
    request: Request, environ: Mapping[str, str], seat: Seat
) -> tuple[Snapshot | None, Callable[[int], int]]:
    """Be the rank that a launcher made of this process.

    Return what there is to judge here, or None, and what takes the exit code and gives it.
    """
    from torchdoctor.distributed import session  # noqa: PLC0415 - for whom asks for it

    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    wish = request.all_reduce or session.Wish()
    with tempfile.TemporaryDirectory(prefix="torchdoctor-", ignore_cleanup_errors=True) as folder:
        looking = _Looking(request, environ, folder)
        theirs = looking.for_ranks()
        place = Path(folder, "all-reduce")
        run, dismiss = session.in_seat(seat, wish, request.python, theirs, place)
    if run is None:
        return None, dismiss
    return Snapshot(collected_at=now, probes={"all-reduce": run}), dismiss


@dataclass(frozen=True, slots=True)
class _Looking:
    request: Request
    environ: Mapping[str, str]
    folder: str

    def side_by_side(self) -> dict[str, Run]:
        environment = Background(self._environment)  # the longest but for an import
        trials: dict[str, Background[Run]] = {}
        if self.request.import_torch:
            trials["torch"] = Background(partial(self._import, "torch"))
        if self.request.import_torch and self.request.after:
            trials["torch after"] = Background(partial(self._import, "torch", self.request.after))
        windows = Background(self._windows) if os.name == "nt" else None
        objects = sys.platform == "linux" and self.request.shared_objects
        linux = Background(self._linux) if objects else None
        trace = Background(self._trace) if os.name == "nt" and self.request.import_torch else None
        host = Background(partial(self._own, "host"))
        driver = Background(partial(self._driver, host))
        runs = {"environment": environment.result()}
        if self.request.import_torch:
            for name in _present(runs["environment"]):
                trials[name] = Background(partial(self._import, name))
        asked = sys.platform == "linux" and self.request.import_torch
        nccl = Background(self._nccl) if asked and _has_nccl(runs["environment"]) else None
        tools = (
            Background(partial(self._build_tools, runs["environment"])) if self._builds else None
        )
        runs["driver"] = driver.result()
        runs |= self._smi(runs["driver"])
        runs["host"] = host.result()
        runs |= {"peers": self._own("peers")} if _several_gpus(runs["host"]) else {}
        runs |= windows.result() if windows else {}
        runs |= linux.result() if linux else {}
        runs |= {"nccl": nccl.result()} if nccl else {}
        runs |= tools.result() if tools else {}
        runs |= {"windows trace": trace.result()} if trace else {}
        runs |= {f"import {name}": trial.result() for name, trial in trials.items()}
        return runs | ({"all-reduce": self.all_reduce()} if self.request.all_reduce else {})

    def all_reduce(self) -> Run:
        """Try the all_reduce that is asked for, alone on the machine."""
        from torchdoctor.distributed import session  # noqa: PLC0415 - for whom asks for it

        assert self.request.all_reduce is not None
        folder = Path(self.folder, "all-reduce")
        return session.run(self.request.all_reduce, self.request.python, self.for_ranks(), folder)

    def for_ranks(self) -> dict[str, str]:
        """Return the environment of the ranks of an all_reduce."""
        return self._for_children(imports=True)

    def _driver(self, host: Background[Run]) -> Run:
        """Ask the driver, unless the machine holds no trace of one: then there is none to ask."""
        if host.result().data.get("nvidia") is not False:
            return self._own("driver")
        return Run(
            (),
            "answered",
            reason="not asked: no library, module, device or GPU of NVIDIA was found",
            data={
                "stage": "not asked",
                "library": None,
                "smi_needed": True,
                "errors": {},
                "done": True,
            },
        )

    @property
    def _builds(self) -> bool:
        return self.request.profile == "build"

    def _build_tools(self, environment: Run) -> dict[str, Run]:
        """Look for what compiles extensions, and ask each for its version."""
        from torchdoctor import toolchain  # noqa: PLC0415 - for whom asks for it

        modules = environment.data.get("modules")
        return toolchain.look(self.request.python, self.environ, modules, self._command)

    def _environment(self) -> Run:
        options = {"cwd": self.request.working_folder, "verify": self.request.verify}
        options |= {"profile": self.request.profile} if self._builds else {}
        full = self.request.verify == "full"
        timeout = max(self.request.timeout, FULL_TIMEOUT) if full else self.request.timeout
        return self._probe("environment", options, self._python(), timeout)

    def _own(self, name: str) -> Run:
        """Run a probe in our own interpreter, with our own dependencies at hand."""
        options = {"path": _path(), "root": "/"}
        return self._probe(name, options, (sys.executable, "-I", "-S"), self.request.timeout)

    def _import(self, module: str, after: tuple[str, ...] = ()) -> Run:
        seconds = self.request.import_timeout
        # A hung import tells where it hangs, before its time is up.
        options: dict[str, object] = {"module": module, "deep": True, "dump_after": 0.9 * seconds}
        if after:
            options |= {"deep": False, "after": list(after)}
        return self._probe("import_trial", options, self._python(), seconds)

    def _nccl(self) -> Run:
        """Ask NCCL which interface it takes; in a process of its own, since it may hang."""
        return self._probe("nccl", {"path": ""}, self._python(), self.request.timeout)

    def _windows(self) -> dict[str, Run]:
        """Ask Windows, then look into the DLLs; those are read by our own interpreter."""
        runs = {"windows": self._of_windows("probe", {}, self._python())}
        if self.request.import_torch and self.request.after:
            options = {"after": list(self.request.after)}
            runs["windows after"] = self._of_windows("probe", options, self._python())
        if not {"interpreter", "packages"} <= runs["windows"].data.keys():
            return runs
        after = runs.get("windows after")
        said = {"said": runs["windows"].data, "after": after.data if after else {}}
        text = json.dumps(json.dumps(said, ensure_ascii=True))
        runs["windows files"] = self._of_windows(
            "files",
            {"path": _path()},
            (sys.executable, "-I", "-S"),
            before=f"SAID = {text}\n",
        )
        return runs

    def _trace(self) -> Run:
        """Have Windows tell which DLLs torch loads, in a process of its own: it may crash."""
        return self._of_windows("probe", {"trace": True}, self._python(), seconds=IMPORT_TIMEOUT)

    def _of_windows(
        self,
        name: str,
        options: Mapping[str, object],
        python: tuple[str, ...],
        before: str = "",
        seconds: float = WINDOWS_TIMEOUT,
    ) -> Run:
        return child.run_probe(
            before + read_text("windows", f"{name}.py"),
            options,
            python=python,
            timeout=max(self.request.timeout, seconds),
            folder=self.folder,
            environ=self._for_children(imports=True),
        )

    def _linux(self) -> dict[str, Run]:
        """Ask the interpreter, and the loader; then look into the files by our own interpreter."""
        runs = {"linux": self._probe("linux", {}, self._python(), self.request.timeout)}
        said = runs["linux"].data
        if not {"program", "packages"} <= said.keys():
            return runs
        loaded = said.get("loaded")
        names = loaded if isinstance(loaded, list) else []
        own = next((str(n) for n in names if Path(str(n)).name.startswith("ld-")), None)
        if own is not None:  # musl has no such option, and says so
            runs["linux loader"] = self._command((own, "--help"))
        told = runs["linux loader"].stdout.text if own is not None else ""
        text = json.dumps(json.dumps({"said": said, "help": told}, ensure_ascii=True))
        options = {"path": _path(), "cwd": self.request.working_folder}
        runs["linux files"] = self._probe(
            "linux_files",
            options,
            (sys.executable, "-I", "-S"),
            self.request.timeout,
            before=f"SAID = {text}\n",
        )
        return runs

    def _smi(self, driver: Run) -> dict[str, Run]:
        """Ask nvidia-smi, when NVML could not be asked directly."""
        if driver.data.get("smi_needed") is not True:
            return {}
        program = shutil.which("nvidia-smi", path=_smi_folders(self.environ))
        if program is None:
            return {}
        query = Background(partial(self._command, (program, *SMI_QUERY)))
        table = self._command((program,))
        return {"nvidia-smi": table, "nvidia-smi query": query.result()}

    def _command(self, command: tuple[str, ...]) -> Run:
        return child.run(
            command,
            timeout=self.request.timeout,
            folder=self.folder,
            environ=self._for_children(),
        )

    def _probe(
        self,
        name: str,
        options: Mapping[str, object],
        python: tuple[str, ...],
        timeout: float,
        before: str = "",
    ) -> Run:
        return child.run_probe(
            before + read_text("probes", f"{name}.py"),
            options,
            python=python,
            timeout=timeout,
            folder=self.folder,
            environ=self._for_children(imports=name == "import_trial"),
            hears=self.request.progress,
        )

    def _python(self) -> tuple[str, ...]:
        return (self.request.python, "-B")  # look, and leave no bytecode behind

    def _for_children(self, *, imports: bool = False) -> dict[str, str]:
        """Return the user's environment, but for what would wait, and write, while importing."""
        waits = {"PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONSTARTUP"}
        kept = {name: value for name, value in self.environ.items() if name not in waits}
        if imports:
            caches = ("CUDA_CACHE_PATH", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
            kept |= {name: str(Path(self.folder, name.lower())) for name in caches}
            if path := kept.get("PYTHONPATH"):  # its relative entries mean the user's folder
                here = self.request.working_folder
                entries = [str(Path(here, entry)) for entry in path.split(os.pathsep)]
                kept["PYTHONPATH"] = os.pathsep.join(entries)
        return kept


def _since(start: float, run: Run) -> Run:
    """Return *run* with its beginning told from *start*, both by the monotonic clock."""
    return run if run.began is None else replace(run, began=round(run.began - start, 4))


def _path() -> list[str]:
    """Return where a child finds all that we import, and us, whom an editable install hides."""
    here = str(Path(__file__).parent.parent)
    return list(dict.fromkeys([*(entry for entry in sys.path if entry), here]))


def _present(environment: Run) -> list[str]:
    """Return the companions that an import would find."""
    modules = environment.data.get("modules")
    if not isinstance(modules, Mapping):
        return []
    return [name for name in COMPANIONS if modules.get(name)]


def _several_gpus(host: Run) -> bool:
    """Tell whether the machine has several GPUs of NVIDIA."""
    devices = host.data.get("pci")
    found = [d for d in devices if isinstance(d, Mapping)] if isinstance(devices, list) else []
    return len([d for d in found if d.get("vendor") == NVIDIA]) > 1


def _has_nccl(environment: Run) -> bool:
    """Tell whether the environment has an NCCL of its own, as torch's CUDA builds take it."""
    packages = environment.data.get("packages")
    found = packages.get("distributions") if isinstance(packages, Mapping) else None
    names = [one.get("name") for one in found or () if isinstance(one, Mapping)]
    return any(str(name).replace("_", "-").startswith("nvidia-nccl-") for name in names)


def _smi_folders(environ: Mapping[str, str]) -> str:
    """Return PATH, and the folders where drivers put nvidia-smi when it is not on PATH."""
    more = ["/usr/bin", "/usr/lib/wsl/lib", "/usr/local/nvidia/bin"]
    if root := environ.get("SystemRoot"):
        more = [rf"{root}\System32"]
    if programs := environ.get("ProgramFiles"):
        more.append(rf"{programs}\NVIDIA Corporation\NVSMI")
    return os.pathsep.join([environ.get("PATH", ""), *more])
