"""What other packages ask of torch: in their METADATA, and what METADATA does not say.

Source: METADATA of the versions named, and issues and release pages beside each row of
``neighbours.toml``. Specifiers are PEP 440 text ("==2.5.1", ">=2.10").
"""

import re
from functools import cache

from packaging.version import Version

from torchdoctor import requirements
from torchdoctor.tables import load


def pins(package: str, version: str) -> str | None:
    """Return the torch requirement in METADATA of *package* *version*; "" if it has none.

    None: a version that was not read (flash-attn always: it is published as source only).
    """
    found = load("neighbours")["pins"].get(_name(package), {}).get(version.partition("+")[0])
    return None if found is None else str(found)


@cache
def versions(package: str) -> tuple[str, ...]:
    """Return the versions of *package* of which something is known, newest first.

    "0.9.*" stands for all of a minor release.
    """
    tables, name = load("neighbours"), _name(package)
    exact = list(tables["pins"].get(name, ()))
    minors = {".".join(version.split(".")[:2]) for version in exact}
    built = tables["built_for"].get(name, ())
    exact += [v for v in built if v.count(".") > 1 and v not in exact]
    exact += [f"{v}.*" for v in built if v.count(".") == 1 and v not in minors]
    return tuple(sorted(exact, key=lambda v: Version(v.replace("*", "0")), reverse=True))


@cache
def fits(package: str, version: str, torch: str) -> bool | None:
    """Say whether *package* *version* works with the torch release *torch*; None: not known."""
    needs = built_for(package, version)
    if needs is None:
        needs = pins(package, version)
        silent = not needs and _name(package) in load("neighbours")["built_for"]
        if needs is None or silent:
            return None
    return requirements.accepts(needs, torch)


def on_pytorch_index(package: str) -> bool:
    """Say whether PyTorch's index of each CUDA build has *package* too, built for it."""
    return _name(package) in load("neighbours")["on_pytorch_index"]["packages"]


def source_only(package: str) -> bool:
    """Say whether *package* is published as source, so that an install compiles it."""
    return _name(package) in load("neighbours")["source_only"]["packages"]


def compiled() -> tuple[str, ...]:
    """Return the packages whose compiled part loads only beside the torch it was built for."""
    return tuple(load("neighbours")["compiled"]["packages"])


def built_for(package: str, version: str) -> str | None:
    """Return the torch that the binaries of *package* *version* work with, if METADATA misleads.

    xformers 0.0.34 requires ==2.10.0 and yet runs on later torch (stable ABI, --no-deps);
    torchcodec, torchao and intel-extension-for-pytorch require nothing and yet were built for one
    torch. None: nothing known beyond ``pins``.
    """
    table = load("neighbours")["built_for"].get(_name(package), {})
    public = version.partition("+")[0]
    found = table.get(public, table.get(".".join(public.split(".")[:2])))
    return None if found is None else str(found)


def needs_capability(package: str) -> tuple[int, int] | None:
    """Return the lowest compute capability that the kernels of *package* were made for."""
    found = load("neighbours")["needs_capability"].get(_name(package))
    if found is None:
        return None
    major, _, minor = found.partition(".")
    return int(major), int(minor)


def torchaudio_needs_torchcodec(torchaudio: str) -> bool:
    """Say whether load and save of *torchaudio* fail without torchcodec, which it does not require.

    It imports without, and all the rest of it works.
    """
    since = load("neighbours")["torchcodec"]["needed_by_torchaudio_from"]
    return _numbers(torchaudio) >= _numbers(since)


def plain_cuda(package: str, version: str) -> int | None:
    """Return the CUDA major of the wheel of *package* that a plain install takes (vllm).

    torch beside it has to be of that major, else "libcudart.so.13: cannot open shared object
    file". A label names another build: vllm 0.25.1+cu129 is for CUDA 12. None: unknown.
    """
    if label := re.search(r"\+cu(\d\d)\d$", version):
        return int(label[1])
    rows = load("neighbours")["plain_cuda"].get(_name(package), {})
    mine = _numbers(version)
    return next((int(cuda) for since, cuda in rows.items() if mine >= _numbers(since)), None)


def index_for_cuda(package: str, version: str, tag: str) -> str | None:
    """Return the index that has *package* *version* built for *tag* ("cu129"), None if none has."""
    row = load("neighbours")["other_cuda"].get(_name(package))
    public = version.partition("+")[0]
    if row is None or tag not in row["tags"] or _numbers(public) < _numbers(row["since"]):
        return None
    return str(row["index"]).format(version=public, tag=tag)


def numpy2_from(platform: str) -> str:
    """Return the first torch release that works with NumPy 2 on *platform*."""
    return str(load("neighbours")["numpy2"]["windows" if platform.startswith("win") else "other"])


def torchtext_last() -> str:
    """Return the last release of torchtext, which ended there."""
    return str(next(iter(load("neighbours")["pins"]["torchtext"])))


def mkl_breaks(mkl: str, torch: str) -> bool | None:
    """Say whether this MKL breaks a conda build of *torch* ("undefined symbol: iJIT_NotifyEvent").

    True from MKL 2024.1 on for the builds published before it (torch up to 2.2.2), None for later
    ones, which were not read. pip wheels link MKL statically: do not ask for them.
    """
    table = load("neighbours")["mkl"]
    if _numbers(mkl) < _numbers(table["breaks_from"]):
        return False
    return True if _numbers(torch) <= _numbers(table["last_torch_affected"]) else None


def setuptools_breaks(setuptools: str, torch: str) -> bool:
    """Say whether building an extension against *torch* fails for want of pkg_resources.

    "No module named 'pkg_resources'" from torch.utils.cpp_extension; torch itself imports.
    """
    table = load("neighbours")["setuptools"]
    gone = _numbers(setuptools) >= _numbers(table["without_pkg_resources_from"])
    return gone and _numbers(torch) <= _numbers(table["last_torch_importing_it"])


def setuptools_last_below() -> str:
    """Return the first major of setuptools without pkg_resources ("82")."""
    since = str(load("neighbours")["setuptools"]["without_pkg_resources_from"])
    return since.partition(".")[0]


def cxx11_abi(torch: str, tag: str) -> bool | None:
    """Return the C++ ABI of the Linux x86_64 wheel of *torch* built as *tag*: True is the new one.

    As in ``torch._C._GLIBCXX_USE_CXX11_ABI``: False up to 2.5, and for cu118 and cu124 of 2.6.0;
    True after. flash-attn's wheels are named by it (cxx11abiTRUE, cxx11abiFALSE). None: the CPU
    wheel of 2.6.0, which was not read.
    """
    table = load("neighbours")["old_abi"]
    mine, last = _numbers(torch), _numbers(table["last_torch"])
    if mine != last:
        return mine > last
    if tag in table["last_tags"]:
        return False
    return True if tag in table["last_tags_new"] or tag.startswith("rocm") else None


@cache
def _name(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
