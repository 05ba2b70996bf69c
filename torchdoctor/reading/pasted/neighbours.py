"""Which lines stand beside which, in the forms that programs print: what tells that one was torn.

Rows of a form are data; :func:`beside` looks at one line with those above and below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from torchdoctor.reading.pasted import conda, machine
from torchdoctor.reading.pasted.lines import Line

_P = r"\s{0,8}(?:\*{3}\s{0,8})?(?:stderr: )?"
"""What programs that run pip for one put before its lines."""
_SMI = "the table of nvidia-smi is out of order, was wrapped or was cut"
_WARNING = "a warning about a GPU is out of order or was cut"
_TRACEBACK = "lines of a traceback are out of order or missing"
_PIP = "what pip said is out of order or was cut"
_MESSAGE = "an error is out of order or was cut"
_VALUE = "a value does not stand below its name"
_MIG = "which GPU a MIG line belongs to cannot be told"
_NVCC = "what nvcc said is out of order or was cut"
_CONDA_HEAD = "of which environment a conda listing is does not stand above it"
_CONDA_ROWS = "the rows of a conda listing are not below its header"
_XFORMERS = "the message of xFormers is out of order or was cut"
_NUMPY = "the message of NumPy is out of order or was cut"
_SMI_GPU = r"\s*\|\s+\d{1,3}\s+\S.{1,60}\|\s+[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:"
"""The first row of a GPU in nvidia-smi's table."""
_SMI_VERSIONS = r"NVIDIA-SMI \S+ +(?:Driver|KMD) Version"
_ASYNC = r"(?:CUDA|HIP) kernel errors might be async"
_RULER = r"\s{0,4}-{3,}\s+-{3,}(?:\s+-{3,})*\s*$"
"""The rule between the names of the columns and the rows of a listing."""
_ATTEMPTING = rf"{_P}Attempting uninstall: "
_FOUND = rf"{_P}Found existing installation: "
_UNINSTALLING = rf"{_P}Uninstalling [\w.+-]+:\s*$"
_SOURCE = (
    r"(?:raise err\s*$|torch\._C\.\w|_load_(?:dll_libraries|global_deps)\(\)|_lazy_init\(\)\s*$|"
    r"from torch\._C import|ctypes\.CDLL\(|@torch\.library|return torch\._C\.\w|"
    r"_C\._initExtension)"
)

ABOVE: tuple[tuple[str, str, str], ...] = (
    (
        r"The current PyTorch install supports CUDA capabilities",
        r".*is not compatible with the current",
        "which GPU is not compatible does not stand above what the build supports",
    ),
    (
        r"If you want to use the .{1,80} GPU with PyTorch, please check",
        r".*(?:install supports CUDA capabilities|is not compatible with)",
        _WARNING,
    ),
    (r"\s+Minimum and Maximum cuda capability", r".*is of cuda capability", _WARNING),
    (r"\s+\(\d{1,2}\.\d\) - \(\d{1,2}\.\d\)", r"\s+Minimum and Maximum", _WARNING),
    (r"\s{1,12}MIG \d\S* +Device +0:", r"\s*GPU |.*GPU \d", _MIG),
    (r"\s{1,12}MIG \d\S* +Device +[1-9]", r"\s*MIG ", _MIG),
    (_SMI_GPU, r"\s*[|+][-=+|]{10}", _SMI),
    (r"\s*\|\s*(?:N/A|\d{1,3}%|ERR!)\s.{1,60}MiB ?/.{1,60}\|", r"\s*\|\s+\d{1,3}\s+\S", _SMI),
    (r"\s*\|-{10,}\+-{10,}", r".*Version", _SMI),
    (rf"\s*\|\s*{_SMI_VERSIONS}", r"\s*\+[-=]{10}", _SMI),
    (
        r"\s{1,6}Marketing Name:",
        r"\s{1,6}(?:Uuid|Name):",
        "the agents of rocminfo are out of order",
    ),
    (
        r'\s+"\w+": ',
        r'\s*(?:[\[{]|"\w+": .*[,{\[]\s*$|\}?,?\s*[\[{])|.*[{\[,]\s*$',
        "a JSON listing is out of order or was cut",
    ),
    (rf"\s{{2,16}}{_SOURCE}", r'\s*File "(?!<)|.*Warning|.*File \S+\.py', _TRACEBACK),
    (
        r"\s{4}import (?:torch|spacy)\s*$",
        r'\s*(?:File "|Traceback|>>>|import|from|$)|.*:\s*$',
        _TRACEBACK,
    ),
    (
        r'\s*File "<(?:stdin|string|pyshell#\d+|python-input-\d+|frozen importlib\.\w+)>", line',
        r".*Traceback|\s{2,}\S",
        _TRACEBACK,
    ),
    (r"#\s{1,4}Name\s{2,60}Version\s{2,60}Build", r"#", _CONDA_HEAD),
    (r"Search for `cudaError", r".*CUDA error", _MESSAGE),
    (_ASYNC, r".*(?:CUDA|HIP) error|Search for", _MESSAGE),
    (
        r"For debugging consider passing (?:CUDA_LAUNCH|AMD_SERIAL)",
        r".*kernel errors might",
        _MESSAGE,
    ),
    (r"Compile with `TORCH_USE_(?:CUDA|HIP)_DSA`", r"For debugging consider", _MESSAGE),
    (r"\s+PyTorch \S+ with CUDA \d+ \(you have", r".*was built for:", _XFORMERS),
    (r"\s+Python +\S+ \(you have", r"\s+PyTorch .*\(you have", _XFORMERS),
    (r"\s+Please reinstall xformers", r".*\(you have", _XFORMERS),
    (r"\s+Memory-efficient attention, SwiGLU", r"\s+Please reinstall", _XFORMERS),
    (r"\s+Set XFORMERS_MORE_DETAILS", r"\s+Memory-efficient", _XFORMERS),
    (
        _ATTEMPTING,
        r".*(?:Installing collected|uninstalled|Uninstalling|existing|WARNING|ERROR|install\b)",
        _PIP,
    ),
    (
        _FOUND,
        r".*(?:Attempting uninstall|Installing collected|Successfully uninstalled|install\b)",
        _PIP,
    ),
    (_UNINSTALLING, r".*Found existing|.*uninstall -?\S", _PIP),
    (
        rf"{_P}Successfully uninstalled ",
        r".*(?:Uninstalling|Proceed|Would|Removing|Y/n)|\s+/",
        _PIP,
    ),
    (
        r".*NCCL WARN Error while creating shared memory",
        r".*(?:NCCL INFO \S+:\d+ ->|NCCL WARN Call)",
        "what NCCL logged is out of order or was cut",
    ),
    (
        r"#\s{1,6}Rank\s{1,4}0 Pid",
        r"# ?(?:Using devices|nThread)|#\s*$",
        "what nccl-tests printed is out of order or was cut",
    ),
    (
        r"ERROR:torch\.distributed\.elastic\.multiprocessing\.api:failed",
        r"\s*\S",
        "the error of the process that ended first is missing",
    ),
    (r"Check the permissions\.", r".*ERROR: Could not install", _PIP),
    (
        rf"{_P}\S+ \S+ requires \S.{{0,200}}but you have \S.{{0,80}}incompatible",
        r".*(?:dependency resolver|incompatible|is not installed)",
        _PIP,
    ),
    (r"ERROR: No matching distribution found", r".*(?:Could not find a version|ERROR|INFO)", _PIP),
    (r"OMP: (?:Hint|Info)", r"OMP: ", _MESSAGE),
    (r"Invalid handle\. Cannot load symbol", r"Could not l|Unable to l|.*cudnn", _MESSAGE),
    (r"\s*PyTorch \(\d+\.\d+\)\. Please make sure", r".*The detected CUDA version", _MESSAGE),
    (r"NumPy 2\S* as it may crash", r".*A module that was compiled", _NUMPY),
    (r"versions of NumPy, modules must", r"NumPy 2", _NUMPY),
    (r"Some module may need to rebuild", r"versions of NumPy", _NUMPY),
    (r"downgrade to 'numpy<2'", r".*easiest solution", _NUMPY),
    (r"ncclInvalidUsage: |ncclSystemError: |ncclInternalError: ", r".*NCCL", _MESSAGE),
    (r"Duplicate GPU detected", r"Last error|.*NCCL", _MESSAGE),
    (r"Built on \w{3}_", r"Copyright", _NVCC),
    (r"Build cuda_\d", r"Cuda compilation", _NVCC),
)
"""A line, what the line above it has to be, and what is wrong when it is not."""

BELOW: tuple[tuple[str, str, str], ...] = (
    (
        r"\s{0,4}Package\s{1,80}Version\s*$",
        r"\s{0,4}-{3,}\s+-{3,}\s*$",
        "the rows of a pip listing are not below its header",
    ),
    (_RULER, r"\s*\S", "the rows of a listing are not below its header"),
    (
        r"\s{0,2}Package\s{2,60}Version\s{2,60}Build\s{2,60}Size",
        r"\S+\s+\S*\d",
        "the rows of a pixi listing are not below its header",
    ),
    (
        r"\s{0,2}[\w.-]+\s+\S+\s+.{0,120}\b[KMG]i?B\s+(?:conda|pypi)\s*$",
        r"(?!)",
        "a row of a pixi listing was cut",
    ),
    (r"@EXPLICIT", r"https?://", "the packages of an explicit listing are not below its header"),
    (
        r"\s{0,4}Name: [\w.-]+\s*$",
        r"\s*Version: ",
        "the version of a package does not stand below its name",
    ),
    (rf".{{0,80}}{_SMI_VERSIONS}", r"\s*[|+][-=+|]{10}", _SMI),
    (_SMI_GPU, r"\s*\|\s*(?:N/A|\d|ERR)", _SMI),
    (r".{0,40}which is of cuda capability", r"\s*$|\s+(?:Min|PyTorch)", _WARNING),
    (r"UserWarning:\s*$", r".*is not compatible|.*cuda capability|\s*\S.*(?<!locally/)$", _WARNING),
    (r".*ERROR.{1,200}Error loading\s*$", r"\s+\"", _MESSAGE),
    (r"(?i:\s{0,4}(?:cuda|gpu) available\s*:\s*$)", r"\s*(?:True|False)", _VALUE),
    (r"(?i:\s{0,4}cuda version\s*:\s*$)", r"\s*(?:\d|None|N/A)", _VALUE),
    (r"(?i:\s{0,4}cuda device\s*:\s*$)", r"(?i)\s*(?!cuda \w+\s*:|traceback)\S", _VALUE),
    (
        r"\s{0,12}GPU models and configuration\s{0,32}:\s*$",
        r"\s*GPU ?0",
        "the GPUs do not stand below their heading",
    ),
    (_ASYNC, r"For debugging", _MESSAGE),
    (r".*xFormers was built for:\s*$", r"\s+PyTorch \S+ with", _XFORMERS),
    (_ATTEMPTING, r".*(?:Found existing|Not uninstalling|ERROR)", _PIP),
    (_FOUND, r".*(?:[Uu]ninstall|ERROR|WARN|error)", _PIP),
    (
        _UNINSTALLING,
        r".*(?:Success|ERROR(?!: pip's dep)|WARN|[Rr]emov|Proceed|error|Rolling|Excep)",
        _PIP,
    ),
    (
        r"(?!.*\(from versions: .*\)).{0,40}Could not find a version that satisfies the requirem",
        r"(?!)",
        _PIP,
    ),
    (r".*dependency resolver does not currently take into", r".*(?:requires|requirement)", _PIP),
    (r"ERROR: Exception:\s*$", r"Traceback|[\w.]+(?:Error|File|Exception)\b", _PIP),
    (r".*backend='\w+' raised:\s*$", r"\s*[\w.]+(?:Error|Exception|Failed)\b", _MESSAGE),
    (r".*Caught \w+ in \w+ worker process \d", r"\s*Original Traceback|\s*$", _TRACEBACK),
    (r".*The detected CUDA version \([\d.]+\) mismatches", r"\s*PyTorch \(", _MESSAGE),
    (
        r"Filesystem\s+(?:Size|1K-blocks|1B-blocks|\S+)\s+Used",
        r"\s*\S",
        "the rows of df are missing",
    ),
    (r".*Watchdog caught collective operation timeout", r"\s*\S", "the log was cut at an error"),
    (r"# Using devices\s*$", r"#\s+Rank", "the devices of nccl-tests are missing"),
    (r"Last error:\s*$", r"\s*\S", _MESSAGE),
    (r".*Internal Triton PTX codegen error\s*$", r"`ptxas` stderr", _MESSAGE),
    (r"`ptxas` stderr:\s*$", r"ptxas", _MESSAGE),
    (r".*A module that was compiled using NumPy 1\.x cannot be run in", r"NumPy 2", _NUMPY),
    (r".*easiest solution will be to\s*$", r"downgrade", _NUMPY),
    (r"nvcc: NVIDIA \(R\) Cuda compiler driver", r"Copyright", _NVCC),
    (r"\s*\u00d7 .{1,80} did not run successfully", r"\s*│", _PIP),
)
"""A line, what the line below it has to be, and what is wrong when it is not."""

COMMANDS: tuple[tuple[str, str], ...] = (
    (r"uname -m|arch$", r"\s*(?:x86_64|aarch64|arm64|ppc64le|riscv64|i686|armv7l)\s*$"),
    (r"uname -r", r"\s*\d+\.\d+\.\d+"),
    (r".*systemctl is-active", r"\s*(?:in)?active\s*$|\s*(?:failed|unknown)\s*$"),
    (r"nvidia-smi --query-gpu", r".*,|\s*(?:compute_cap|\d+\.\d)|.*(?:fail|Fail|not)"),
    (r"nvidia-smi\s*$", r"\s*$|.*(?:NVIDIA-SMI|\d\d:\d\d:\d\d|NVML|nvidia-smi|No devices|\+---)"),
    (r"nvidia-smi -L", r"\s*GPU |.*(?:fail|Fail|not|No )"),
    (r"nvidia-smi topo", r"\s*(?:\x1b\S*)?GPU0|\s*$"),
    (r"poetry show", r"[a-z0-9][\w.-]* "),
    (r"(?:pip\d?|uv pip) list\s*$", r"\s*(?:Package|\[|WARNING|DEPRECATION|Using Python|$)"),
    (r"(?:pip\d?|uv pip) list", r"\s*(?:Package|\[|WARNING|[\w.-]+\s*[=\s]+\d|Using Python|$)"),
    (r"pip\d? show", r"\s*(?:Name: |WARNING)"),
    (r"df .*/dev/shm", r"\s*(?:Filesystem|\S+ +\S+ +\S+ +\S+ +\d+% +/)"),
    (r"where(?:\.exe)? [\w.*-]+\s*$", r"\s*(?:[A-Za-z]:\\|INFO|.*not )"),
    (r"ldd \S", r".*(?:=>|\(0x|not a dynamic|statically|ldd:)"),
    (r"nvcc (?:--version|-V)", r"\s*nvcc|.*not "),
    (r"(?:gcc|g\+\+|cc) --version", r".*(?:gcc|g\+\+|GCC|cc|clang|not )"),
    (r"cat /proc/driver/nvidia/version", r"NVRM version|cat: "),
    (r"hostname -I", r"\s*[0-9a-f]{1,4}[.:]"),
    (r"lscpu\s*$", r"\s*Architecture"),
    (r"(?:rocminfo|rocm-smi|amd-smi|rocm-sdk)\b", r"\s*\S"),
    (r"kubectl .*\bget\b", r"\s*\S"),
    (r"(?:cat|groups|ls|fi_info|conda list|pip\d? freeze)\b", r"\s*\S"),
)
"""A command and how its answer begins."""

_EMPTY_ANSWERS = re.compile(r"(?:pip\d?|uv pip) list|echo |printenv ")
"""Commands that may print nothing; at the end of a text, nothing is no answer."""


_OF_A_FORM = re.compile(
    "|".join(f"(?:{row[0]})" for row in (*ABOVE, *BELOW)) + r"|\s*#|\s{0,4}-{3}"
)
"""What any row is about: most lines are of no form."""
_CUT_ON_PURPOSE = re.compile(r"\|\s*(?:head|tail|grep|findstr)\b")


def beside(parts: Sequence[Line], place: int) -> Iterator[str]:
    """Yield what is wrong with the line at *place* and those beside it."""
    line = parts[place]
    above = parts[place - 1].text[:600] if place else ""
    below = parts[place + 1] if place + 1 < len(parts) else Line("")
    if line.kind == "command":
        if not _answered(line.text[:600], below, last=place + 2 >= len(parts)):
            yield f"the answer to {line.text[:80]!r} does not stand below it"
        return
    text = line.text[:600]
    if not _OF_A_FORM.match(text):
        return
    if not _CUT_ON_PURPOSE.search(line.command):
        yield from _torn(ABOVE, text, above)
        yield from _torn(BELOW, text, below.text[:300])
    if re.match(_RULER, text) and not _is_header(above, text):
        yield "the header of a listing does not stand above its rows"
    yield from _conda_head(text, above, below.text[:300])


def _torn(rows: Sequence[tuple[str, str, str]], text: str, next_to_it: str) -> Iterator[str]:
    for pattern, neighbour, what in rows:
        if re.match(pattern, text) and not re.match(neighbour, next_to_it):
            yield what


def _answered(typed: str, below: Line, *, last: bool) -> bool:
    shown = below.kind == "output"
    if last and shown and not below.text.strip() and _EMPTY_ANSWERS.match(typed):
        return False
    for pattern, answer in COMMANDS:
        if re.match(pattern, typed) and not (shown and re.match(answer, below.text[:300])):
            return False
    echo = machine.ECHO.match(typed)
    return not echo or (shown and machine.fits(echo[1], below.text.strip()))


def _is_header(above: str, rule: str) -> bool:
    """Tell whether the columns of *above* begin where those of *rule* do."""
    if re.search(r"\b(?:Package|Name|Version)\b", above):
        return True
    starts = [match.start() for match in re.finditer(r"(?<!\S)-", rule)]
    return len(above.rstrip()) <= len(rule.rstrip()) and all(
        above[s : s + 1].strip() and not above[max(0, s - 1) : s].strip() for s in starts
    )


_ENVIRONMENT = re.compile(r"# packages in environment\b")
_COLUMNS = re.compile(r"#\s{1,4}Name\s{2,60}Version")
_HASH = re.compile(r"#\s*$")


def _conda_head(text: str, above: str, below: str) -> Iterator[str]:
    """Look at the three lines above the rows of ``conda list``."""
    is_row = conda.row(below, strict=False) is not None
    beneath = is_row or _HASH.match(below) or _COLUMNS.match(below)
    if (_ENVIRONMENT.match(text) and not beneath) or (
        _COLUMNS.match(text) and not is_row and not re.match(r"[#-]", below)
    ):
        yield _CONDA_ROWS
    elif re.match(r"# packages in environment at \S", text) and _COLUMNS.match(below):
        yield _CONDA_ROWS  # conda prints a "#" between them
    elif _HASH.match(text):
        if _ENVIRONMENT.match(above) and not _COLUMNS.match(below):
            yield _CONDA_ROWS
        elif not _ENVIRONMENT.match(above) and (_COLUMNS.match(below) or is_row):
            yield _CONDA_HEAD
