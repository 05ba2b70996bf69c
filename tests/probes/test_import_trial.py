"""The trial import against packages called torch that do their worst."""

from __future__ import annotations

import ast
import os
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from tests import environments
from torchdoctor.child import Run, run_probe
from torchdoctor.facts import ImportTrial, Runtime, Symptom, Unknown
from torchdoctor.reading.import_trial import read
from torchdoctor.resource import read_text

PROBE = read_text("probes", "import_trial.py")
DEADLINE = 20.0
"""Seconds, for a machine that is busy with other things."""
SHORT = 1.5
"""Seconds, for an import that does not come back."""
GRACE = 2.0


@dataclass(frozen=True)
class Trier:
    """Imports what a test wrote, in a child, and tells what the facts are then."""

    site: Path
    folder: Path
    mark: str

    def write(self, **packages: str) -> None:
        for name, source in packages.items():
            path = self.site / name.replace("__", "/") / "__init__.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)

    def run(
        self,
        module: str = "torch",
        *,
        timeout: float = DEADLINE,
        python: str = sys.executable,
        options: Mapping[str, object] | None = None,
        **variables: str,
    ) -> Run:
        return run_probe(
            PROBE,
            {"module": module, "deep": True, **(options or {})},
            python=(python,),
            timeout=timeout,
            folder=str(self.folder),
            environ={
                "PATH": os.environ.get("PATH", os.defpath),
                "PYTHONPATH": str(self.site),
                "PYTHONDONTWRITEBYTECODE": "1",
                "TORCHDOCTOR_TEST": self.mark,
                **variables,
            },
        )

    def facts(self, module: str = "torch") -> dict[str, object]:
        return read({f"import {module}": self.run(module)})

    def trial(self, torch: str, *, timeout: float = DEADLINE) -> ImportTrial:
        self.write(torch=torch)
        facts = read({"import torch": self.run(timeout=timeout)})
        return cast("ImportTrial", facts["trial"])

    def alive(self) -> list[str]:
        """Return the processes that carry this test's mark."""
        mark = f"TORCHDOCTOR_TEST={self.mark}".encode()
        return [
            entry.name for entry in Path("/proc").glob("[0-9]*") if mark in _read(entry / "environ")
        ]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # gone in the meantime, or another user's
        return b""


@pytest.fixture
def torch(tmp_path: Path) -> Iterator[Trier]:
    site, folder = tmp_path / "site", tmp_path / "neutral"
    site.mkdir()
    folder.mkdir()
    trier = Trier(site, folder, uuid.uuid4().hex)
    yield trier
    assert trier.alive() == []


def test_the_oldest_python_under_test_can_read_the_probe() -> None:
    assert PROBE.isascii()
    ast.parse(PROBE, feature_version=(3, 8))


# ---- imports that end ---------------------------------------------------------------------------


def test_an_import_that_works_says_version_and_file(torch: Trier) -> None:
    trial = torch.trial("__version__ = '2.9.1+cpu'")
    assert (trial.outcome, trial.version) == ("imported", "2.9.1+cpu")
    assert trial.file == str(torch.site / "torch" / "__init__.py")
    assert trial.seconds < DEADLINE


def test_a_module_that_is_not_there_is_named(torch: Trier) -> None:
    facts = torch.facts()
    trial = cast("ImportTrial", facts["trial"])
    assert trial.outcome == "raised"
    assert trial.error is not None
    assert trial.error.type == "ModuleNotFoundError"
    (symptom,) = cast("tuple[Symptom, ...]", facts["symptoms"])
    assert (symptom.name, symptom.values) == ("module-missing", {"module": "torch"})


def test_the_traceback_has_the_packages_frames_and_none_of_the_probes(torch: Trier) -> None:
    trial = torch.trial("def load():\n    raise OSError('libcudart.so.12: no')\n\nload()\n")
    assert trial.error is not None
    assert str(torch.site / "torch" / "__init__.py") in trial.error.traceback
    assert "<stdin>" not in trial.error.traceback
    assert trial.error.message == "libcudart.so.12: no"


def test_the_whole_chain_of_causes_is_kept(torch: Trier) -> None:
    torch.write(
        torch="""
try:
    try:
        raise OSError(2, 'gone', 'libfirst.so')
    except OSError as first:
        raise ValueError('second') from first
except ValueError:
    raise ImportError('third')
"""
    )
    error = cast("dict[str, object]", torch.run().data["error"])
    assert error["message"] == "third"
    assert error["causes"] == [
        {"link": "context", "type": "ValueError", "message": "second"},
        {
            "link": "cause",
            "type": "FileNotFoundError",
            "message": "[Errno 2] gone: 'libfirst.so'",
            "errno": 2,
            "filename": "libfirst.so",
        },
    ]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("import sys\nsys.exit(5)", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("class Odd(BaseException): pass\nraise Odd('what')", "torch.Odd"),
        ("def f(): f()\nf()", "RecursionError"),
    ],
)
def test_whatever_is_raised_is_kept(torch: Trier, source: str, kind: str) -> None:
    trial = torch.trial(source)
    assert trial.outcome == "raised"
    assert trial.error is not None
    assert trial.error.type == kind


def test_an_exception_that_cannot_be_printed_is_kept_all_the_same(torch: Trier) -> None:
    trial = torch.trial(
        "class Mute(Exception):\n"
        "    def __str__(self): raise ValueError('no words')\n"
        "    __repr__ = __str__\n"
        "raise Mute"
    )
    assert trial.outcome == "raised"
    assert trial.error is not None
    assert trial.error.type == "torch.Mute"
    assert "unprintable" in trial.error.message


def test_an_endless_message_is_cut(torch: Trier) -> None:
    torch.write(torch="raise ImportError('\\U0001f525' * 5_000_000)")
    run = torch.run()
    error = cast("dict[str, str]", run.data["error"])
    assert len(error["message"]) < 3_000
    assert len(error["traceback"]) < 40_000


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
def test_an_import_without_memory_raises(torch: Trier) -> None:
    trial = torch.trial(
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))\n"
        "hoard = []\n"
        "while True: hoard.append(bytes(1 << 20))\n"
    )
    assert trial.outcome == "raised"
    assert trial.error is not None
    assert trial.error.type == "MemoryError"


def test_a_folder_without_init_is_no_torch(torch: Trier) -> None:
    (torch.site / "torch").mkdir()
    facts = torch.facts()
    trial = cast("ImportTrial", facts["trial"])
    assert (trial.outcome, trial.version, trial.file) == ("imported", None, None)
    assert isinstance(facts["runtime"], Unknown)
    (symptom,) = [
        s for s in cast("tuple[Symptom, ...]", facts["symptoms"]) if "version" in s.source
    ]
    assert symptom.values == {"module": "torch", "attribute": "__version__"}


# ---- imports that take the process along ---------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.parametrize(
    ("source", "signal"),
    [
        ("import ctypes\nctypes.string_at(0)", "SIGSEGV"),
        ("import os\nos.abort()", "SIGABRT"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGILL)", "SIGILL"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
    ],
)
def test_a_signal_is_named(torch: Trier, source: str, signal: str) -> None:
    trial = torch.trial(source)
    assert (trial.outcome, trial.signal, trial.stage) == ("died", signal, "import")


def test_a_crash_says_in_which_file_it_was(torch: Trier) -> None:
    torch.write(torch="import ctypes\nctypes.string_at(0)")
    facts = torch.facts()
    trial = cast("ImportTrial", facts["trial"])
    assert str(torch.site / "torch" / "__init__.py") in trial.output
    names = {symptom.name for symptom in cast("tuple[Symptom, ...]", facts["symptoms"])}
    assert "fatal-signal" in names


@pytest.mark.parametrize("code", [0, 3])
def test_an_exit_without_an_answer_is_no_import(torch: Trier, code: int) -> None:
    trial = torch.trial(f"import os\nos._exit({code})")
    assert (trial.outcome, trial.exit_code, trial.signal) == ("died", code, None)


def test_an_answer_that_the_import_prints_is_not_believed(torch: Trier) -> None:
    trial = torch.trial(
        "import os, sys\n"
        'line = \'{"done": true, "imported": true, "version": "9.9"}\'\n'
        "print(line, flush=True)\n"
        "os.write(1, (line + '\\n').encode())\n"
        "os._exit(0)"
    )
    assert (trial.outcome, trial.version) == ("died", None)


# ---- imports that do not end ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.sleep(3600)",
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(3600)",
        "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()",
        "import sys\nwhile True: sys.stdout.write('x' * 4096)",
    ],
)
def test_an_import_that_never_returns_is_ended_in_time(torch: Trier, source: str) -> None:
    start = time.monotonic()
    trial = torch.trial(source, timeout=SHORT)
    assert (trial.outcome, trial.stage) == ("hung", "import")
    assert time.monotonic() - start < SHORT + GRACE


def test_a_slow_import_says_where_it_is_when_asked(torch: Trier) -> None:
    torch.write(torch="import time\ntime.sleep(3600)")
    run = torch.run(timeout=SHORT, options={"dump_after": SHORT / 2})
    assert 'torch/__init__.py", line 2' in run.stderr.text.replace("\\", "/")


# ---- imports that do more than import ------------------------------------------------------------


def test_fifty_megabytes_of_chatter_do_no_harm(torch: Trier) -> None:
    trial = torch.trial(
        "import sys\n"
        "for _ in range(25):\n"
        "    sys.stdout.write('x' * (1 << 20)); sys.stderr.write('y' * (1 << 20))\n"
        "__version__ = '1'"
    )
    assert (trial.outcome, trial.version) == ("imported", "1")
    assert len(trial.output) < 64 * 1024


def test_closed_streams_do_no_harm(torch: Trier) -> None:
    trial = torch.trial(
        "import os, sys\nos.close(1)\nos.close(2)\nsys.stdout = sys.stderr = None\n"
        "__version__ = '1'"
    )
    assert (trial.outcome, trial.version) == ("imported", "1")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    "source",
    [
        # a child that holds the pipes
        "import os, time\nif os.fork() == 0:\n    time.sleep(3600)\n",
        # one that leaves the session as well
        """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(3600)
    os._exit(0)
os.wait()
""",
        # one that imports on, beside its parent
        "import os\nos.fork()\n",
    ],
)
def test_children_of_the_import_do_no_harm(torch: Trier, source: str) -> None:
    start = time.monotonic()
    trial = torch.trial(f"{source}__version__ = '1'")
    assert (trial.outcome, trial.version) == ("imported", "1")
    assert time.monotonic() - start < DEADLINE


def test_a_thread_that_never_ends_does_no_harm(torch: Trier) -> None:
    trial = torch.trial(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(3600,)).start()\n__version__ = '1'"
    )
    assert (trial.outcome, trial.version) == ("imported", "1")


def test_a_patched_standard_library_does_no_harm(torch: Trier) -> None:
    trial = torch.trial(
        "import builtins, json, os, sys, time, traceback, warnings\n"
        "def no(*a, **k): raise RuntimeError('patched')\n"
        "json.dumps = os.write = os._exit = os.getpid = sys.exit = builtins.print = no\n"
        "time.perf_counter = traceback.format_exception = warnings.formatwarning = no\n"
        "sys.modules['json'] = None\n"
        "__version__ = '1'"
    )
    assert (trial.outcome, trial.version) == ("imported", "1")


def test_a_torch_that_lies_about_everything_is_still_answered(torch: Trier) -> None:
    trial = torch.trial(
        "import sys\n"
        "class Liar:\n"
        "    __file__ = 'x'\n"
        "    def __getattr__(self, name): return Liar()\n"
        "    def __call__(self, *a, **k): return Liar()\n"
        "    def __bool__(self): raise RuntimeError('bool')\n"
        "    def __str__(self): raise RuntimeError('str')\n"
        "    def __iter__(self): raise RuntimeError('iter')\n"
        "    def __int__(self): return 10 ** 400\n"
        "sys.modules['torch'] = Liar()\n"
    )
    assert trial.outcome == "imported"


def test_warnings_are_kept_even_when_the_process_dies(torch: Trier) -> None:
    torch.write(
        torch="import os, warnings\n"
        "warnings.warn('CUDA initialization: Found no NVIDIA driver on your system.')\n"
        "os._exit(1)"
    )
    facts = torch.facts()
    assert "Found no NVIDIA driver" in cast("ImportTrial", facts["trial"]).output
    (symptom,) = cast("tuple[Symptom, ...]", facts["symptoms"])
    assert (symptom.name, symptom.source) == ("no-nvidia-driver", "import torch")


def test_a_neighbour_of_torch_in_the_working_folder_is_not_taken(torch: Trier) -> None:
    (torch.folder / "torch.py").write_text("__version__ = 'of the folder'")
    torch.write(torch="__version__ = '1'")
    assert cast("ImportTrial", torch.facts()["trial"]).version == "1"


# ---- what comes after the import -----------------------------------------------------------------

GPUS = """
import os, types, warnings
__version__ = '2.9.1+cu128'
version = types.SimpleNamespace(cuda='12.8', hip=None)
class Tensor:
    def __init__(self, value): self.value = value
    def __add__(self, other): return Tensor(self.value + 8)
    def sum(self): return self
    def item(self): return self.value
    def t(self): return self
    def mm(self, other): return Tensor(16)
def ones(*size, device='cpu'):
    FAIL.get(device, int)()
    return Tensor(8)
def fault():
    raise RuntimeError('CUDA error: no kernel image is available for execution on the device')
FAIL = {'cuda:1': fault, 'cuda:2': os.abort}
def properties(index):
    return types.SimpleNamespace(name='GPU %d' % index, total_memory=1 << 34, major=9, minor=0)
cuda = types.SimpleNamespace(
    is_available=lambda: True, device_count=lambda: COUNT, get_device_properties=properties,
    get_arch_list=lambda: ['sm_80', 'sm_90'])
backends = types.SimpleNamespace(
    cudnn=types.SimpleNamespace(version=lambda: 91002),
    mps=types.SimpleNamespace(is_available=lambda: False))
"""


def test_each_gpu_is_tried_and_its_error_is_its_own(torch: Trier) -> None:
    torch.write(torch=GPUS + "COUNT = 2")
    facts = torch.facts()
    runtime = cast("Runtime", facts["runtime"])
    assert (runtime.available, runtime.cuda, runtime.cudnn) == (True, "12.8", "9.10.2")
    assert runtime.arch_list == ("sm_80", "sm_90")
    good, bad = runtime.devices
    assert (good.name, good.capability, good.memory) == ("GPU 0", (9, 0), 1 << 34)
    assert good.kernel is None
    assert bad.kernel is not None
    assert "no kernel image" in bad.kernel
    (symptom,) = [
        s for s in cast("tuple[Symptom, ...]", facts["symptoms"]) if s.name == "no-kernel-image"
    ]
    assert symptom.source == "torch.cuda, device 1"


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_a_gpu_that_takes_the_process_along_is_named(torch: Trier) -> None:
    torch.write(torch=GPUS + "COUNT = 4")
    facts = torch.facts()
    trial = cast("ImportTrial", facts["trial"])
    assert (trial.outcome, trial.signal, trial.stage) == ("died", "SIGABRT", "kernel 2")
    runtime = cast("Runtime", facts["runtime"])
    assert len(runtime.devices) == 3
    assert runtime.devices[2].kernel == "kernel 2: torch was ended by SIGABRT"


def test_a_gpu_that_hangs_is_named(torch: Trier) -> None:
    torch.write(torch=GPUS + "COUNT = 2\nimport time\nFAIL['cuda:0'] = lambda: time.sleep(3600)")
    facts = read({"import torch": torch.run(timeout=SHORT)})
    trial = cast("ImportTrial", facts["trial"])
    assert (trial.outcome, trial.stage, trial.version) == ("hung", "kernel 0", "2.9.1+cu128")
    (device,) = cast("Runtime", facts["runtime"]).devices
    assert device.kernel == "kernel 0: torch did not come back"


def test_a_wrong_sum_is_an_error(torch: Trier) -> None:
    torch.write(torch=GPUS + "COUNT = 1\nTensor.__add__ = lambda self, other: Tensor(7)")
    (device,) = cast("Runtime", torch.facts()["runtime"]).devices
    assert device.kernel == "wrong result: 7 instead of 16"


REASON = """
import types, warnings
__version__ = '2.9.1'
version = types.SimpleNamespace(cuda='12.8', hip=None)
def ask():
    warnings.warn('CUDA initialization: Error 804: forward compatibility was attempted')
    return False
def init(): raise RuntimeError('Found no NVIDIA driver on your system.')
cuda = types.SimpleNamespace(is_available=ask, init=init)
"""


def test_why_cuda_is_not_available_is_asked_for(torch: Trier) -> None:
    torch.write(torch=REASON)
    facts = torch.facts()
    runtime = cast("Runtime", facts["runtime"])
    assert runtime.available is False
    assert runtime.reason == "RuntimeError: Found no NVIDIA driver on your system."
    found = {s.name: s.source for s in cast("tuple[Symptom, ...]", facts["symptoms"])}
    assert found["no-nvidia-driver"] == found["cuda-compat-not-supported"] == "torch.cuda"


def test_a_users_warning_filter_hides_no_reason(torch: Trier) -> None:
    torch.write(torch=REASON)
    data = torch.run(PYTHONWARNINGS="ignore").data
    assert cast("dict[str, str]", data["warning 0"])["stage"] == "cuda"


def test_a_cpu_build_is_not_asked_why(torch: Trier) -> None:
    torch.write(torch=REASON.replace("cuda='12.8'", "cuda=None"))
    assert "cuda_reason" not in torch.run().data


def test_numpy_that_torch_cannot_use_is_told(torch: Trier) -> None:
    torch.write(
        numpy="__version__ = '2.0.0'\ndef zeros(n): return [0.0]",
        torch="__version__ = '2.2.2'\n"
        "def from_numpy(array): raise RuntimeError('Numpy is not available')\n",
    )
    facts = torch.facts()
    assert cast("Runtime", facts["runtime"]).numpy == "RuntimeError: Numpy is not available"
    assert ("numpy-not-available", "torch and numpy") in {
        (s.name, s.source) for s in cast("tuple[Symptom, ...]", facts["symptoms"])
    }


def test_torch_without_numpy_is_no_error(torch: Trier, tmp_path: Path) -> None:
    torch.write(torch="__version__ = '2.9.1'")
    python = environments.bare(tmp_path / "bare").python
    assert torch.run(python=str(python)).data["numpy"] is None


def test_nothing_is_asked_after_a_shallow_trial(torch: Trier) -> None:
    torch.write(torch="__version__ = '1'")
    data = torch.run(options={"deep": False}).data
    assert data["stage"] == "import"
    assert data["done"] is True


def test_a_companion_reports_its_own_import(torch: Trier) -> None:
    torch.write(
        torch="__version__ = '2.9.1'",
        torchvision="import torch\nraise RuntimeError('operator torchvision::nms does not exist')",
    )
    facts = torch.facts("torchvision")
    trial = cast("dict[str, ImportTrial]", facts["companion_trials"])["torchvision"]
    assert trial.outcome == "raised"
    (symptom,) = cast("tuple[Symptom, ...]", facts["symptoms"])
    assert (symptom.name, symptom.source) == ("nms-operator-missing", "import torchvision")


def test_torchvision_without_its_operators_is_told(torch: Trier) -> None:
    torch.write(
        torch="class _Ops:\n"
        "    def __getattr__(self, name):\n"
        "        raise RuntimeError('No such operator torchvision::nms')\n"
        "class ops: torchvision = _Ops()\n"
        "def tensor(values): return values\n",
        torchvision="import torch\nfrom . import extension\n__version__ = '0.24.1'",
        torchvision__extension="def _has_ops(): return False",
    )
    facts = torch.facts("torchvision")
    names = {s.name for s in cast("tuple[Symptom, ...]", facts["symptoms"])}
    assert "nms-operator-missing" in names


def test_a_companion_that_drops_the_loaders_error_is_asked_again(torch: Trier) -> None:
    torch.write(
        torch="import ctypes, importlib.util",
        torchvision="import torch\nraise RuntimeError('operator torchvision::nms does not exist')",
    )
    (torch.site / "torchvision" / "_C.so").write_bytes(b"")
    facts = torch.facts("torchvision")
    trial = cast("dict[str, ImportTrial]", facts["companion_trials"])["torchvision"]
    assert trial.outcome == "raised"
    damaged = cast("tuple[Symptom, ...]", facts["symptoms"])[-1]
    assert (damaged.name, damaged.source) == ("library-damaged", "torchvision, _C.so")


# ---- with a real torch ---------------------------------------------------------------------------


def test_a_real_torch_answers_every_question(tmp_path: Path) -> None:
    environment = environments.copy(environments.copies() / tmp_path.name)
    run = run_probe(
        PROBE,
        {"module": "torch", "deep": True},
        python=(str(environment.python),),
        timeout=120.0,
        folder=str(tmp_path),
        environ=environments.environ(tmp_path),
    )
    assert "errors" not in run.data
    facts = read({"import torch": run})
    trial, runtime = cast("ImportTrial", facts["trial"]), facts["runtime"]
    assert (trial.outcome, trial.version) == ("imported", environments.base().torch_version)
    assert isinstance(runtime, Runtime)
    assert (runtime.numpy, runtime.available, runtime.reason) == (None, False, None)
    assert facts["symptoms"] == ()
