"""The rest of a machine as shells print it: system, shared memory, variables, containers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from torchdoctor.reading.pasted import platforms
from torchdoctor.reading.pasted.lines import Line
from torchdoctor.reading.pasted.said import HINT, LISTED, PRINTED, TOLD, Said

_UNAME = re.compile(
    r"\s{0,4}Linux \S{1,64} (\S{3,120}) #\d.{0,120}? (x86_64|aarch64|ppc64le|riscv64|"
    r"s390x)(?: .{0,60})?GNU/Linux"
)
_DARWIN = re.compile(
    r"\s{0,4}Darwin \S{1,64} \d{1,2}\.\S{1,20} Darwin Kernel Version .{1,200} (arm64|x86_64)\s*$"
)
_MACHINE = re.compile(r"x86_64|aarch64|arm64|ppc64le|riscv64|i686|armv7l")
_LINUX_ONLY = {"aarch64", "ppc64le", "riscv64", "armv7l"}
"""Answers of ``uname -m`` that no other system gives; a Mac says x86_64 or arm64."""
_KERNEL = re.compile(r"[1-7]\.\d{1,3}\.\d{1,5}[\w.+-]{0,80}")
"""A release of Linux; those of a Mac's kernel have been two digits since 2003."""
_SYSTEMS = {"Linux": "linux", "Darwin": "darwin"}
_PRODUCT = re.compile(r"\s{0,4}ProductName:\s{1,24}(macOS|Mac OS X)\s*$")
_PRODUCT_VERSION = re.compile(r"\s{0,4}ProductVersion:\s{1,24}(\d{1,2}(?:\.\d{1,2}){0,2})\s*$")
_TOLD_OS = re.compile(
    r"(?i)\s{0,4}(?:[-*] )?(?:OS|Operating system|OS version|System|"
    r"Platform)(?: name)?(?: \([^)]*\))? ?[:=] {0,4}(\S.{1,120})$"
)
_RELEASE = re.compile(
    r'\s{0,2}PRETTY_NAME="?([^"\n]{3,100})"?\s*$|\s{0,2}Description:\s+(\S.{3,80})$'
)
_LDD = re.compile(
    r"\s{0,2}ldd \((?:GNU libc|[^)]{0,60}GLIBC[^)]{0,60}|GNU[^)]{0,40})\) (\d\.\d{1,3})"
)
_SHM = re.compile(
    r"\s{0,8}\S{1,64}\s+([0-9.]+)([KMGT]?)\s+[0-9.]+[KMGT]?\s+([0-9.]+)([KMGT]?)"
    r"\s+\d{1,3}%\s+/dev/shm\s*$"
)
_UNITS = {"": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

NAMES = re.compile(
    r"(?:LD_LIBRARY_PATH|LD_PRELOAD|DYLD_\w+|CUDA_\w+|NVIDIA_\w+|NCCL_\w+|GLOO_\w+|TORCH_\w+|"
    r"PYTORCH_\w+|"
    r"TORCHINDUCTOR_\w+|HSA_\w+|HIP_\w+|ROCR_\w+|ROCM_\w+|GPU_DEVICE_ORDINAL|ZE_\w+|SYCL_\w+|"
    r"OMP_\w+|MKL_\w+|"
    r"KMP_\w+|PYTHON(?:PATH|HOME|NOUSERSITE|USERBASE|DONTWRITEBYTECODE|UNBUFFERED)|CONDA_\w+|"
    r"VIRTUAL_ENV|"
    r"PIP_\w+|UV_\w+|MASTER_(?:ADDR|PORT)|WORLD_SIZE|(?:LOCAL_|NODE_|GROUP_)?RANK|LOCAL_WORLD_SIZE|"
    r"NPROC_PER_NODE|NNODES|USE_LIBUV|UCX_\w+|FI_\w+|SLURM_\w+|XPU_\w+|TRITON_\w+|CUBLAS_\w+|"
    r"CUDNN_\w+|PATH)"
)
"""Variables that bear on torch."""
_SECRET = re.compile(r"TOKEN|SECRET|PASS|KEY|AUTH|CREDENTIAL")
_SET = re.compile(
    rf"\s{{0,8}}(?:export |set |setx |\$env:|ENV |os\.environ\[['\"])?({NAMES.pattern})"
    rf"['\"]?\]?\s?(=|:=)\s?(.{{0,4000}})$"
)
_SETX = re.compile(rf"\s{{0,8}}setx? ({NAMES.pattern}) (\S.{{0,400}})$")
_ASSIGNMENTS = re.compile(
    r"\s{0,8}(?:[A-Z][A-Z0-9_]{1,60}=[^\s=]{0,400}\s+){1,20}[A-Z][A-Z0-9_]{1,60}=[^\s=]{0,400}\s*$"
)
ECHO = re.compile(
    r"(?:echo|printenv|Write-Output) [\"']?\$?(?:env:|\{)?%?([A-Z][A-Z0-9_]{2,60})%?\}?[\"']?\s*$"
)
_BEFORE = re.compile(r"((?:[A-Z][A-Z0-9_]{1,60}=\S{0,400}\s+){1,20})(\S.{0,400})$")
_DEVICES = re.compile(
    r"(?<![\w$])((?:CUDA|HIP|ROCR)_VISIBLE_DEVICES)=[\"']?(-?[0-9](?:[0-9,]{0,60}[0-9])?|(?:GPU|"
    r"MIG)-[\w/-]{4,60})?[\"']?(?=$|[\s);,.`])"
)

_DOCKER = re.compile(r"(?:sudo )?(docker|podman|nerdctl)(?: container)? run\s(.{0,4000})$")
_GPUS = re.compile(
    r"--gpus[ =]|--runtime[ =]nvidia|nvidia\.com/gpu|--nv\b|NVIDIA_VISIBLE_DEVICES=(?!void|none)|"
    r"/dev/nvidia"
)
_AMD_GPUS = re.compile(r"--device[ =]/dev/(?:kfd|dri)")
_COMPOSE = re.compile(
    r"\s{1,30}(?:- )?(?:driver: nvidia\b|capabilities: ?\[.{0,20}gpu|runtime: nvidia\b)"
)
_FROM = re.compile(
    r"\s{0,4}FROM (?:--platform=\S+ )?(\w[\w./:@-]{2,199})(?: AS \S+)?\s*$", re.IGNORECASE
)
_INSIDE = re.compile(r"^(?:\(\w+\) )?root@[0-9a-f]{12}:")
_DOCKERENV = re.compile(r"/\.dockerenv|/docker/[0-9a-f]{12}|docker-[0-9a-f]{64}")


def read(lines: Sequence[Line]) -> Iterator[Said]:
    """Yield what commands and their answers in *lines* say of the system around torch."""
    for line in lines:
        text = line.text[:6000]
        if line.kind == "output":
            yield from _system(text, line)
            yield from _memory(text, line.number)
        yield from _container(text, line)
        if re.match(r"(?:\([^)]*\)\s*)*(?:PS )?[A-Za-z]:\\", line.prompt):
            yield Said("platform.system", "win32", "a prompt", HINT, line.number)
    yield from _variables(lines)


def _system(text: str, line: Line) -> Iterator[Said]:
    number = line.number
    if found := _UNAME.match(text):
        yield Said("platform.system", "linux", "uname", PRINTED, number)
        yield Said("platform.machine", found[2], "uname", PRINTED, number)
        yield from platforms.kernel(found[1], "uname", PRINTED, number)
    elif found := _DARWIN.match(text):
        yield Said("platform.system", "darwin", "uname", PRINTED, number)
        yield Said("platform.machine", found[1], "uname", PRINTED, number)
    elif re.match(r"uname\b|arch$", line.command):
        yield from _uname(text.strip(), line.command, number)
    elif found := _PRODUCT.match(text):
        yield Said("platform.system", "darwin", "sw_vers", PRINTED, number)
    elif found := _PRODUCT_VERSION.match(text):
        yield Said("platform.version", found[1], "sw_vers", PRINTED, number)
        yield Said("platform.name", f"macOS {found[1]}", "sw_vers", PRINTED, number)
    elif found := _RELEASE.match(text):
        yield from platforms.named(found[1] or found[2], "os-release", PRINTED, number)
    elif found := _LDD.match(text):
        yield Said("platform.libc", "glibc", "ldd", PRINTED, number)
        yield Said("platform.libc_version", found[1], "ldd", PRINTED, number)
    elif found := _TOLD_OS.match(text):
        yield from platforms.named(found[1], "what was written", TOLD, number)
        yield from platforms.platform_string(found[1], "what was written", TOLD, number)


def _uname(answer: str, command: str, number: int) -> Iterator[Said]:
    """Read one line below ``uname`` or ``arch``."""
    if re.fullmatch(r"uname(?: -s)?", command) and answer in _SYSTEMS:
        yield Said("platform.system", _SYSTEMS[answer], "uname", PRINTED, number)
    elif re.fullmatch(r"(?:uname -\w*m\w*|arch)", command) and _MACHINE.fullmatch(answer):
        yield Said("platform.machine", answer, "uname", PRINTED, number)
        if answer in _LINUX_ONLY:
            yield Said("platform.system", "linux", "uname", TOLD, number)
    elif re.fullmatch(r"uname -\w*r\w*", command) and _KERNEL.fullmatch(answer):
        yield Said("platform.system", "linux", "uname", TOLD, number)
        yield from platforms.kernel(answer, "uname", PRINTED, number)


def _memory(text: str, number: int) -> Iterator[Said]:
    if found := _SHM.match(text):
        size = _bytes(found[1], found[2])
        free = _bytes(found[3], found[4])
        if size is not None and free is not None:
            yield Said("limits.shm", size, "df", PRINTED, number)
            yield Said("limits.shm_free", free, "df", PRINTED, number)


def _bytes(amount: str, unit: str) -> int | None:
    try:
        number = float(amount)
    except ValueError:
        return None
    return int(number * _UNITS[unit]) if number < 1 << 40 else None


# ---- containers ---------------------------------------------------------------------------------


def _container(text: str, line: Line) -> Iterator[Said]:
    number = line.number
    if (
        found := _DOCKER.search(text)
        if line.kind == "command" or text.lstrip().startswith("docker")
        else None
    ):
        kind, arguments = found.groups()
        if re.search(r"\bhello-world\b", arguments):
            return
        yield Said(
            "container.kind", kind.replace("nerdctl", "container"), "docker run", TOLD, number
        )
        if not _AMD_GPUS.search(arguments) and not arguments.rstrip().endswith(("\\", "`", "^")):
            yield Said(
                "container.gpu_hook", bool(_GPUS.search(arguments)), "docker run", TOLD, number
            )
        if size := re.search(
            r"--shm-size[ =]\"?(\d{1,6}(?:\.\d+)?) ?([kmgt]?)b?\b", arguments, re.IGNORECASE
        ):
            unit = size[2].upper()
            amount = float(size[1])
            if unit or amount >= 1 << 20:
                factor = _UNITS[unit] if unit else 1
                yield Said("limits.shm", int(amount * factor), "docker run", TOLD, number)
    elif _COMPOSE.match(text) and line.kind == "output":
        yield Said("container.kind", "docker", "a compose file", TOLD, number)
        yield Said("container.gpu_hook", True, "a compose file", TOLD, number)  # noqa: FBT003
    elif (image := _FROM.match(text)) and re.search(r"[:/]", image[1]):
        yield Said("image", image[1], "a Dockerfile", TOLD, number)
        yield Said("container.kind", "docker", "a Dockerfile", HINT, number)
    elif _DOCKERENV.search(text) or _INSIDE.match(text):
        yield Said("container.kind", "docker", "a path", HINT, number)


# ---- variables ----------------------------------------------------------------------------------


def _variables(  # noqa: C901 - one branch for each way of setting one
    lines: Sequence[Line],
) -> Iterator[Said]:
    runs: dict[str, list[dict[str, str]]] = {}
    for place, line in enumerate(lines):
        text = line.text[:5000].strip()
        if "=" not in text and "echo" not in text and "setx" not in text:
            continue
        if line.kind == "output" and _ASSIGNMENTS.match(text):
            for word in text.split():
                name, _, value = word.partition("=")
                yield from _variable(name, value, line.number)
        elif (
            (before := _BEFORE.match(text))
            and line.kind != "python"
            and not before[2].startswith("=")
        ):
            given = dict(word.split("=", 1) for word in before[1].split())
            runs.setdefault(_program(before[2]), []).append(given)
        elif found := _SET.match(text):
            value = found[3].strip()
            if text.startswith("set ") or not re.search(r"\s[#(]", value):
                yield from _variable(found[1], _unquoted(value), line.number)
        elif found := _SETX.match(text):
            yield from _variable(found[1], _unquoted(found[2]), line.number)
        elif (echo := ECHO.match(text)) and line.kind == "command" and place + 1 < len(lines):
            answer = lines[place + 1]
            if (
                answer.kind == "output"
                and NAMES.fullmatch(echo[1])
                and fits(echo[1], answer.text.strip())
            ):
                yield from _variable(echo[1], answer.text.strip(), answer.number)
    yield from _given(runs, lines)
    yield from _mentioned(lines)


def fits(name: str, value: str) -> bool:
    """Tell whether *value* can be the answer to what *name* is set to."""
    if name.endswith("PATH"):
        return bool(re.match(r"[/~$]|[A-Za-z]:\\", value)) or not value
    return len(value) < 200 and not re.search(r"\s{2}|: ", value)  # noqa: PLR2004


def _variable(name: str, value: str, number: int) -> Iterator[Said]:
    if not NAMES.fullmatch(name) or _SECRET.search(name):
        return
    if "$" not in value and "%" not in value:
        yield Said(f"variables.{name}", value, "a variable", LISTED, number)
    elif name.endswith("_PATH") and (added := _added(name, value)):
        yield Said(f"variables.{name}", added, "a variable", TOLD, number)


def _added(name: str, value: str) -> str:
    """Return what a list of folders gets beside what it had: ``$NAME:/opt/lib`` is /opt/lib."""
    own = re.compile(rf"\$(?:\{{{name}(?::?[-+][^}}]{{0,40}})?\}}|{name}\b)")
    rest = ":".join(part for part in own.sub("", value).split(":") if part)
    return rest if own.search(value) and re.match(r"[/~]", rest) and "$" not in rest else ""


def _unquoted(value: str) -> str:
    value = value.rstrip(";").strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value


_WRAPPERS = ("sudo", "time", "timeout", "nohup", "env", "nice", "numactl", "srun")


def _program(command: str) -> str:
    try:
        words = shlex.split(command[:400])
    except ValueError:
        words = command.split()
    while len(words) > 1 and (words[0] in _WRAPPERS or re.fullmatch(r"-\w+|\d+[smh]?", words[0])):
        words.pop(0)
    return words[0].rpartition("/")[2] if words else ""


def _given(runs: dict[str, list[dict[str, str]]], lines: Sequence[Line]) -> Iterator[Said]:
    """Yield variables that a program was always started with, in every run of it that is shown."""
    for program, given in runs.items():
        bare = sum(1 for line in lines if line.kind == "command" and _program(line.text) == program)
        for name, value in given[0].items():
            always = all(one.get(name) == value for one in given) and not bare
            if always and NAMES.fullmatch(name) and not _SECRET.search(name):
                yield Said(f"variables.{name}", value, "before a command", TOLD, 0)


def _mentioned(lines: Sequence[Line]) -> Iterator[Said]:
    """Yield which GPUs a run was given, where the text says so in one way only."""
    found: dict[str, set[str]] = {}
    where: dict[str, int] = {}
    for line in lines:
        if "VISIBLE_DEVICES=" in line.text:
            for match in _DEVICES.finditer(line.text[:2000]):
                found.setdefault(match[1], set()).add(match[2] or "")
                where[match[1]] = line.number
    for name, values in found.items():
        if len(values) == 1:
            (value,) = values
            yield Said(f"variables.{name}", value, "mentioned", HINT, where[name])
