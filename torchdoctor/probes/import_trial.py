"""Import one package for real and say how far it went, in JSON lines.

It runs in the interpreter under test, from standard input, with a JSON object as its argument:
``module`` is torch, torchvision or torchaudio, ``deep`` tells whether to look at what torch says
of the accelerators afterwards, ``after`` names modules that are imported before, and
``dump_after``, if given, is the number of seconds after which the stack of a slow import goes to
standard error, once.

The import may crash, hang, print, fork or patch anything. So everything that is needed to answer
is bound before it starts, the answer has a descriptor of its own, and each stage is announced
before it begins: whatever ends the process, the last line says what was being tried.
"""

import os
import sys

if sys.path and sys.path[0] == "":
    del sys.path[0]

CHANNEL = os.dup(1)
os.dup2(2, 1)

import faulthandler  # noqa: E402
import json  # noqa: E402
import time  # noqa: E402
import traceback  # noqa: E402
import warnings  # noqa: E402

TYPE_CHECKING = False  # typing would have to be imported
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import SupportsInt, TypeVar

    T = TypeVar("T")

PROCESS = os.getpid()
ENCODED_TRACEBACK = 32 * 1024
ENCODED_TEXT = 2 * 1024
MOST_CAUSES = 8
MOST_WARNINGS = 16
MOST_DEVICES = 32
MOST_EXTENSIONS = 12
SUM = 16

# The import may replace any of these in its module.
clock = time.perf_counter
dumps = json.dumps
getpid = os.getpid
leave = os._exit
write = os.write
format_exception = traceback.format_exception
format_warning = warnings.formatwarning

errors = {}  # type: dict[str, str]
warned = []  # type: list[str]
stage = ["start"]


def say(**answer: "object") -> None:
    """Write one line of the answer; a forked copy of the process has no say."""
    if getpid() != PROCESS:
        leave(0)
    line = (dumps(answer) + "\n").encode("ascii")
    while line:
        line = line[write(CHANNEL, line) :]


OURS = say.__code__.co_filename


def begin(name: str) -> None:
    """Announce what is tried next."""
    stage[0] = name
    say(stage=name)


def bounded(text: str, most: int = ENCODED_TEXT) -> str:
    """Return *text*, or its head and tail, in at most about *most* bytes of JSON."""
    if len(text) > most:
        text = text[: most // 2] + "\n[...]\n" + text[-most // 2 :]
    while len(dumps(text)) > most:
        third = len(text) // 3
        text = text[:third] + "\n[...]\n" + text[-third:]
    return text


def text_of(value: object, most: int = ENCODED_TEXT) -> str:
    """Return ``str(value)``, whatever the object does when it is asked."""
    try:
        return bounded(str(value), most)
    except BaseException as failure:
        return "<unprintable %s: %s>" % (type(value).__name__, type(failure).__name__)


def text_or_none(value: object) -> "str | None":
    """Return None for None, else its text."""
    return None if value is None else text_of(value)


def number_or_none(value: "SupportsInt | None") -> "int | None":
    """Return None for None, else its number."""
    return None if value is None else int(value)


def name_of(kind: type) -> str:
    """Return the name of a class as a traceback spells it."""
    home = text_of(getattr(kind, "__module__", ""))
    name = text_of(getattr(kind, "__qualname__", kind))
    return name if home in ("builtins", "__main__", "") else home + "." + name


def one_line(failure: BaseException) -> str:
    """Return an exception as the last line of its traceback."""
    return name_of(type(failure)) + ": " + text_of(failure)


def trace_of(failure: BaseException) -> str:
    """Return the traceback as Python prints it, without this file's own frames."""
    try:
        trace = failure.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == OURS:
            trace = trace.tb_next
        return bounded("".join(format_exception(type(failure), failure, trace)), ENCODED_TRACEBACK)
    except BaseException as second:
        return "<no traceback: %s>" % type(second).__name__


def chain_of(failure: BaseException) -> "list[dict[str, object]]":
    """Return what led to *failure*, the nearest first."""
    chain = []  # type: list[dict[str, object]]
    seen = {id(failure)}
    while len(chain) < MOST_CAUSES:
        cause = failure.__cause__
        link = "cause"
        if cause is None and not failure.__suppress_context__:
            cause = failure.__context__
            link = "context"
        if cause is None or id(cause) in seen:
            break
        seen.add(id(cause))
        chain.append({"link": link, "type": name_of(type(cause)), "message": text_of(cause)})
        chain[-1].update(details_of(cause))
        failure = cause
    return chain


def details_of(failure: BaseException) -> "dict[str, object]":
    """Return the numbers and names that an exception carries beside its message."""
    details = {}  # type: dict[str, object]
    for key in ("errno", "winerror", "filename", "name", "path"):
        try:
            value = getattr(failure, key, None)
        except BaseException:  # noqa: S112 - a property of a class that is not ours
            continue
        if type(value) is int:
            details[key] = value
        elif type(value) is str:
            details[key] = bounded(value)
    return details


def describe(failure: BaseException) -> "dict[str, object]":
    """Return everything that is kept of an exception."""
    said = {"type": name_of(type(failure)), "message": text_of(failure)}  # type: dict[str, object]
    said.update(details_of(failure))
    try:
        said["causes"] = chain_of(failure)
    except BaseException as second:
        said["causes"] = []
        errors["causes"] = one_line(second)
    said["traceback"] = trace_of(failure)
    return said


def attempt(name: str, function: "Callable[..., T]", *arguments: object) -> "T | None":
    """Return what *function* returns; a failure is kept under *name* and gives None."""
    try:
        return function(*arguments)
    except BaseException as failure:
        errors[name] = one_line(failure)
        return None


def show_warning(  # noqa: PLR0913, PLR0917 - as the standard library calls it
    message: "Warning | str",
    category: "type[Warning]",
    filename: str,
    lineno: int,
    file: object = None,  # noqa: ARG001
    line: "str | None" = None,
) -> None:
    """Keep a warning as text at once (the next thing may be a crash), and print it as well."""
    text = format_warning(message, category, filename, lineno, line)
    if len(warned) < MOST_WARNINGS:
        warned.append(text)
        said = {"stage": stage[0], "category": name_of(category), "text": text_of(message)}
        say(**{"warning %d" % (len(warned) - 1): said})
    if sys.stderr is not None:
        sys.stderr.write(text)


def prepare(options: "dict[str, object]") -> None:
    """Make this process ready for an import that may do anything."""
    complain = os.dup(2)
    faulthandler.enable(complain)
    seconds = options.get("dump_after")
    if isinstance(seconds, (int, float)):
        faulthandler.dump_traceback_later(seconds, file=complain)
    # A pipe has the locale's encoding where a console would have had UTF-8: printing must not
    # be what fails. Line by line, so that a crash does not take the last words along.
    for stream in (sys.stdout, sys.stderr):
        attempt("stream", lambda s: s.reconfigure(line_buffering=True, errors="replace"), stream)
    # If the import eats all memory, this process shall be the one that the kernel picks.
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass
    os.environ["TORCHVISION_WARN_WHEN_EXTENSION_LOADING_FAILS"] = "1"
    warnings.showwarning = show_warning


def import_it(name: str) -> "ModuleType | None":
    """Import *name*; return the module, or None when that failed, having said so."""
    begin("import")
    start = clock()
    try:
        module = __import__(name)
    except BaseException as failure:
        say(seconds=clock() - start, error=describe(failure))
        return None
    say(seconds=clock() - start, imported=True)
    return module


# ---- what an imported package says of itself ---------------------------------------------------


def identity(module: "ModuleType") -> "dict[str, object]":
    """Return version and file."""
    return {
        "version": attempt("version", lambda: text_of(module.__version__)),
        "file": text_or_none(getattr(module, "__file__", None)),
    }


def look_at_extensions(name: str) -> None:
    """Say why the compiled parts of a companion do not load.

    torchvision drops that error and torch wraps it in one without its reason, so they are loaded
    once more, one by one, as torch does it. Only when torch itself is there.
    """
    begin("extensions")
    said = {}  # type: dict[str, str | None]
    finder = sys.modules["importlib.util"]
    for home in finder.find_spec(name).submodule_search_locations:
        for folder in (home, os.path.join(home, "lib")):
            for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
                if file.endswith((".so", ".pyd", ".dylib")) and len(said) < MOST_EXTENSIONS:
                    say(extension=file)
                    said[file] = why_not_loaded(os.path.join(folder, file))
                    say(extensions=said)


def why_not_loaded(path: str) -> "str | None":
    """Return the loader's error text; None when the library at *path* loads."""
    try:
        sys.modules["ctypes"].CDLL(path)
    except OSError as failure:
        return one_line(failure)
    return None


def look_at_torchvision(module: "ModuleType") -> None:
    """Tell whether the C++ part is there, by running an operator of it."""
    begin("version")
    say(**identity(module))
    say(
        cuda=attempt("cuda", lambda: text_or_none(getattr(module.version, "cuda", None))),
    )
    begin("operators")
    torch = sys.modules["torch"]
    extension = sys.modules["torchvision.extension"]
    has = attempt("has_ops", lambda: bool(extension._has_ops()))  # noqa: SLF001

    def suppress() -> "object":
        boxes = torch.tensor([[0.0, 0.0, 9.0, 9.0], [0.0, 0.0, 9.0, 8.0]])
        return torch.ops.torchvision.nms(boxes, torch.tensor([0.9, 0.8]), 0.5).tolist()

    kept = attempt("nms", suppress)
    if kept is not None and kept != [0]:
        errors["nms"] = "wrong result: %s" % text_of(kept)
    say(has_ops=has, nms=kept == [0])
    if kept is None:
        look_at_extensions("torchvision")
    # Needs no GPU: the dispatcher knows which devices the operator was compiled for.
    ask = getattr(sys.modules["torch._C"], "_dispatch_has_kernel_for_dispatch_key", None)
    if kept is not None and ask is not None:
        say(nms_on_cuda=attempt("nms_on_cuda", lambda: bool(ask("torchvision::nms", "CUDA"))))


def look_at_torchaudio(module: "ModuleType") -> None:
    """Tell whether the C++ part is there, as far as torchaudio says so."""
    begin("version")
    say(**identity(module))
    begin("extension")
    home = sys.modules.get("torchaudio._extension")
    state = getattr(home, "_IS_TORCHAUDIO_EXT_AVAILABLE", None)
    say(has_extension=state if type(state) is bool else None)


def look_at_torch(torch: "ModuleType") -> None:
    """Ask torch for everything that it can be asked cheaply."""
    begin("version")
    say(**identity(torch))
    version = getattr(torch, "version", None)
    for key in ("cuda", "hip", "xpu"):
        say(**{key: attempt(key, lambda k=key: text_or_none(getattr(version, k, None)))})

    begin("numpy")
    say(numpy=attempt("numpy", numpy_bridge, torch))

    begin("cuda")
    built = bool(getattr(version, "cuda", None) or getattr(version, "hip", None))
    available = attempt("cuda_available", lambda: bool(torch.cuda.is_available()))
    say(cuda_available=available)
    if built and not available:
        begin("cuda reason")
        say(cuda_reason=why_not(torch))
    say(arch_list=attempt("arch_list", lambda: [text_of(a) for a in torch.cuda.get_arch_list()]))
    if available:
        count = attempt("device_count", lambda: int(torch.cuda.device_count()))
        say(device_count=count)
        for index in range(min(count or 0, MOST_DEVICES)):
            look_at_device(torch, index)

    begin("cudnn")
    say(cudnn=attempt("cudnn", lambda: number_or_none(torch.backends.cudnn.version())))
    begin("nccl")
    say(
        nccl=attempt("nccl", nccl_version, torch),
        **attempt("distributed", distributed) or {},
    )
    begin("mps")
    say(mps=attempt("mps", lambda: bool(torch.backends.mps.is_available())))
    begin("xpu")
    say(xpu=attempt("xpu_available", lambda: bool(torch.xpu.is_available())))


def numpy_bridge(torch: "ModuleType") -> "dict[str, str] | None":
    """Return NumPy's version and the error texts of both ways across; None without NumPy."""
    try:
        numpy = __import__("numpy")
    except ModuleNotFoundError as failure:
        if failure.name == "numpy":
            return None
        raise
    said = {"version": text_of(getattr(numpy, "__version__", None))}

    def there() -> None:
        torch.from_numpy(numpy.zeros(1))

    def back() -> None:
        torch.ones(1).numpy()

    for key, cross in (("from_numpy", there), ("to_numpy", back)):
        try:
            cross()
        except BaseException as failure:
            said[key] = one_line(failure)
    return said


def why_not(torch: "ModuleType") -> "str | None":
    """Return the error text of starting CUDA, which ``is_available`` keeps to itself."""
    try:
        torch.cuda.init()
    except BaseException as failure:
        return one_line(failure)
    return None


def look_at_device(torch: "ModuleType", index: int) -> None:
    """Say what the device is, then whether it computes."""
    key = "device %d" % index
    begin(key)
    said = {}  # type: dict[str, object]

    def properties() -> None:
        device = torch.cuda.get_device_properties(index)
        said["name"] = text_of(device.name)
        said["memory"] = int(device.total_memory)
        said["capability"] = [int(device.major), int(device.minor)]
        said["gfx"] = text_or_none(getattr(device, "gcnArchName", None))

    attempt(key, properties)
    say(**{key: said})
    begin("kernel %d" % index)
    device = "cuda:%d" % index

    def add() -> "object":
        return (torch.ones(SUM // 2, device=device) + 1).sum().item()

    def multiply() -> "object":
        ones = torch.ones(2, SUM // 4, device=device)
        return ones.mm(ones.t()).sum().item()

    said["kernel"] = trial_of("", add) or trial_of("matrix product: ", multiply)
    say(**{key: said})


def trial_of(prefix: str, compute: "Callable[[], object]") -> "str | None":
    """Return None when *compute* gives SUM, else the error text."""
    try:
        result = compute()
    except BaseException as failure:
        return prefix + one_line(failure)
    if result == SUM:
        return None
    return "%swrong result: %s instead of %d" % (prefix, text_of(result), SUM)


def nccl_version(torch: "ModuleType") -> "str | int | None":
    """Return NCCL's version as torch links it; None for a build without."""
    if not hasattr(sys.modules["torch._C"], "_nccl_version"):
        return None
    version = torch.cuda.nccl.version()
    if isinstance(version, int):
        return version
    return ".".join(text_of(part) for part in version)


def distributed() -> "dict[str, object]":
    """Tell what ``torch.distributed`` was built with, if torch has loaded it."""
    home = sys.modules.get("torch.distributed")
    if home is None:
        return {}
    said = {"distributed": bool(home.is_available())}  # type: dict[str, object]
    for name in ("nccl", "gloo"):
        ask = getattr(home, "is_%s_available" % name, None)
        if said["distributed"] and ask is not None:
            said["distributed_" + name] = bool(ask())
    return said


def main() -> None:
    """Try the import that the argument names."""
    options = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    name = options.get("module", "torch")
    prepare(options)
    for before in options.get("after", ()):
        begin("after " + before)
        attempt("after " + before, __import__, before)
    module = import_it(name)
    deep = options.get("deep", True)
    if module is None and deep and name != "torch" and "torch" in sys.modules:
        attempt("extensions", look_at_extensions, name)
    if module is not None and deep:
        # A user's own filters (-W ignore) must not hide why a device is not available.
        for category in (UserWarning, RuntimeWarning):
            warnings.simplefilter("always", category)
        look = {"torchvision": look_at_torchvision, "torchaudio": look_at_torchaudio}
        attempt(name, look.get(name, look_at_torch), module)
    if errors:
        say(errors=errors)
    say(done=True)
    # Leaving the usual way would unload torch, which takes long, may hang and tells nothing.
    for stream in (sys.stdout, sys.stderr):
        attempt("flush", lambda s: s.flush(), stream)
    leave(0)


main()
