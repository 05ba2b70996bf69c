"""Ask the NVIDIA driver: NVML for its release and its GPUs, libcuda for its CUDA version.

Runs as a program of its own: ``python - '{"path": [...]}'`` with this source on stdin; ``path``
is where ``pynvml`` can be imported from. Any call into the driver may hang or crash, so each is
announced by a line with ``stage`` before it is made, and each answer is printed at once.
``smi_needed`` says that NVML could not be asked at all. The last line has ``"done": true``.

cuInit is never called: it would take memory on every GPU.

Source: the NVML API reference; cuDriverGetVersion in the CUDA driver API.
"""

from __future__ import annotations

import json
import os
import sys

NVML = {
    "linux": (
        "libnvidia-ml.so.1",
        "/usr/lib/wsl/lib/libnvidia-ml.so.1",
        "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
        "/run/opengl-driver/lib/libnvidia-ml.so.1",
    ),
    "win32": (
        r"%SystemRoot%\System32\nvml.dll",
        r"%ProgramFiles%\NVIDIA Corporation\NVSMI\nvml.dll",
    ),
}
CUDA = {
    "linux": ("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"),
    "win32": (r"%SystemRoot%\System32\nvcuda.dll",),
}
MOST_GPUS = 256

ANSWERS = os.dup(1)
os.dup2(2, 1)  # whatever a library prints is no answer
ERRORS: dict[str, str] = {}


def say(**what: object) -> None:
    """Print one line of the answer."""
    os.write(ANSWERS, json.dumps(what).encode("ascii") + b"\n")


def failed(name: str, error: Exception) -> None:
    """Record that *name* could not be asked."""
    ERRORS[name] = f"{type(error).__name__}: {error}"
    say(errors=ERRORS)


def load(names: tuple[str, ...]) -> object:
    """Load the first library of *names* that can be; None, with the reasons told, when none."""
    import ctypes

    for name in names:
        try:
            return ctypes.CDLL(os.path.expandvars(name))
        except OSError as error:
            ERRORS[f"load {name}"] = str(error)
    say(errors=ERRORS)
    return None


def mapped(start: str) -> str | None:
    """Return the file of a loaded library whose name begins with *start*, where maps tell."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="backslashreplace") as maps:
            for line in maps:
                path = line.rstrip("\n").partition("/")[2]
                if os.path.basename(path).startswith(start):
                    return "/" + path
    except OSError:
        pass
    return None


def text(value: object) -> object:
    """Return bytes as text, anything else as it is."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def refusal(pynvml: object, error: Exception) -> dict[str, object]:
    """Return the number of an error and the library's own words for it."""
    code = getattr(error, "value", None)
    try:
        words = text(pynvml.nvmlErrorString(code + 0))  # type: ignore[attr-defined,operator]
    except Exception:  # no number, or a library without words for it
        words = str(error)
    return {"code": code, "text": words}


def ask_nvml() -> None:
    """Ask NVML, which has been loaded, by way of pynvml."""
    try:
        import pynvml
    except ImportError as error:
        failed("pynvml", error)
        say(smi_needed=True)
        return
    say(smi_needed=False, stage="nvmlInit")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        say(nvml_error=dict(refusal(pynvml, error), call="nvmlInit"))
        return
    for name, call in (
        ("driver_version", "nvmlSystemGetDriverVersion"),
        ("nvml_version", "nvmlSystemGetNVMLVersion"),
        ("nvml_cuda_version", "nvmlSystemGetCudaDriverVersion_v2"),
    ):
        say(stage=call)
        try:
            say(**{name: text(getattr(pynvml, call)())})
        except Exception as error:
            failed(call, error)
    say(stage="nvmlDeviceGetCount")
    try:
        count = pynvml.nvmlDeviceGetCount()
        say(device_count=count)
    except pynvml.NVMLError as error:
        say(nvml_error=dict(refusal(pynvml, error), call="nvmlDeviceGetCount"))
        return
    devices: list[dict[str, object]] = []
    for index in range(min(count, MOST_GPUS)):
        say(stage=f"device {index}")
        devices.append(device(pynvml, index))
        say(devices=devices)
    say(nvml_done=True)


def device(pynvml: object, index: int) -> dict[str, object]:
    """Return what NVML says of one GPU; ``errors`` holds the calls that failed, by name."""
    errors: dict[str, object] = {}
    seen: dict[str, object] = {"index": index, "errors": errors}

    def ask(name: str, call: str, *arguments: object) -> object:
        try:
            value = getattr(pynvml, call)(*arguments)
        except Exception as error:
            errors[name] = refusal(pynvml, error)
            return None
        if name:
            seen[name] = text(value)
        return value

    handle = ask("handle", "nvmlDeviceGetHandleByIndex", index)
    seen.pop("handle", None)
    if "handle" in errors:
        return seen
    for name, call in (
        ("name", "nvmlDeviceGetName"),
        ("uuid", "nvmlDeviceGetUUID"),
        ("capability", "nvmlDeviceGetCudaComputeCapability"),
        ("mig", "nvmlDeviceGetMigMode"),
        ("compute_mode", "nvmlDeviceGetComputeMode"),
        ("persistence", "nvmlDeviceGetPersistenceMode"),
    ):
        ask(name, call, handle)
    for name, call, part in (
        ("memory", "nvmlDeviceGetMemoryInfo", "total"),
        ("bus", "nvmlDeviceGetPciInfo", "busId"),
    ):
        answer = ask(name, call, handle)
        if name not in errors:
            seen[name] = text(getattr(answer, part))
    fabric = getattr(pynvml, "c_nvmlGpuFabricInfo_t", lambda: None)()
    if fabric is not None:
        import ctypes

        ask("fabric", "nvmlDeviceGetGpuFabricInfo", handle, ctypes.byref(fabric))
        if "fabric" not in errors:
            seen["fabric"] = {"state": fabric.state, "status": fabric.status}
    return seen


def ask_cuda(library: object) -> None:
    """Ask libcuda for the newest CUDA that it supports."""
    import ctypes

    call = library.cuDriverGetVersion  # type: ignore[attr-defined]
    call.argtypes, call.restype = [ctypes.POINTER(ctypes.c_int)], ctypes.c_int
    number = ctypes.c_int()
    code = call(ctypes.byref(number))
    if code == 0:
        say(cuda_driver_version=number.value)
    else:
        failed("cuDriverGetVersion", RuntimeError(f"returned {code}"))


def main() -> None:
    """Ask NVML, then libcuda, and say each answer at once."""
    options = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    sys.path[:] = [*(entry for entry in sys.path if entry), *options.get("path", [])]
    say(stage="load NVML", library=None)
    if load(NVML.get(sys.platform, ())):
        say(library=mapped("libnvidia-ml.so") or "loaded")
        try:
            ask_nvml()
        except Exception as error:
            failed("nvml", error)
    else:
        say(smi_needed=sys.platform in NVML)
    say(stage="load libcuda", cuda_library=None)
    try:
        library = load(CUDA.get(sys.platform, ()))
        if library is not None:
            say(stage="cuDriverGetVersion", cuda_library=mapped("libcuda.so") or "loaded")
            ask_cuda(library)
    except Exception as error:
        failed("libcuda", error)
    say(stage="end", errors=ERRORS, done=True)


main()
