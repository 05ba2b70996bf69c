"""Names of systems as listings print them, to the parts of a platform."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor.reading.pasted.said import HINT, Said

_IDS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (r"Ubuntu", "ubuntu", ("debian",)),
    (r"Debian", "debian", ()),
    (r"Red Hat|RHEL", "rhel", ("fedora",)),
    (r"CentOS", "centos", ("rhel", "fedora")),
    (r"Rocky", "rocky", ("rhel", "centos", "fedora")),
    (r"AlmaLinux", "almalinux", ("rhel", "centos", "fedora")),
    (r"Oracle Linux", "ol", ("fedora",)),
    (r"Fedora", "fedora", ()),
    (r"SUSE Linux Enterprise|SLES", "sles", ("suse",)),
    (r"openSUSE Tumbleweed", "opensuse-tumbleweed", ("opensuse", "suse")),
    (r"openSUSE", "opensuse-leap", ("suse", "opensuse")),
    (r"Amazon Linux", "amzn", ("fedora",)),
    (r"Arch Linux", "arch", ()),
    (r"Manjaro", "manjaro", ("arch",)),
    (r"EndeavourOS", "endeavouros", ("arch",)),
    (r"Linux Mint", "linuxmint", ("ubuntu", "debian")),
    (r"Pop!_OS", "pop", ("ubuntu", "debian")),
    (r"Kali", "kali", ("debian",)),
    (r"NixOS", "nixos", ()),
    (r"Gentoo", "gentoo", ()),
    (r"Alpine", "alpine", ()),
)
_WINDOWS = re.compile(
    r"(?:Microsoft )?Windows(?: Server)?[ -](?:Server )?(?:7|8(?:\.1)?|10|11|20\d\d)\b.{0,80}"
)
_MAC = re.compile(r"(?:macOS|Mac ?OS ?X|OSX)[ -]?(\d{1,2}(?:\.\d{1,2}){0,2})?")
_MACHINE = r"x86_64|aarch64|arm64|AMD64|ARM64|ppc64le|ppc64|s390x|riscv64|i[3-6]86|armv\d\w*"


def named(  # noqa: C901 - one branch for each family of systems
    name: str, layout: str, weight: int, number: int = 0
) -> Iterator[Said]:
    """Yield what the *name* of a system tells, such as "Ubuntu 22.04.5 LTS (x86_64)"."""
    name = name.strip()[:200]

    def said(fact: str, value: str | tuple[str, ...]) -> Said:
        return Said(f"platform.{fact}", value, layout, weight, number)

    if machine := re.search(rf"\(({_MACHINE})\)\s*$", name):
        yield said("machine", machine[1])
        name = name[: machine.start()].strip()
    if windows := _WINDOWS.match(name):
        yield said("system", "win32")
        build = re.search(r"\((?:\S+ )?(10\.0\.\d{4,6})\b(?: \S+)?\)", windows[0])
        yield said(
            "name",
            re.sub(r"\s*\(.*|\s+Build\b.*|,.*", "", windows[0]).strip().removeprefix("Microsoft "),
        )
        if build:
            yield said("version", build[1])
            yield said("kernel", build[1])
        return
    if mac := _MAC.match(name):
        yield said("system", "darwin")
        yield said("name", f"macOS {mac[1] or ''}".strip())
        if mac[1]:
            yield said("version", mac[1])
        return
    for pattern, identity, like in _IDS:
        if re.match(pattern, name):
            yield said("system", "linux")
            yield said("name", name)
            yield said("distribution", identity)
            if like:
                yield said("like", like)
            if version := re.search(
                r"\b(\d{1,2}(?:\.\d{1,2})?)(?:\.\d{1,2})?\b", name[len(identity) - 1 :]
            ):
                number_ = version[1]
                pack = re.search(r"\bSP(\d)\b", name)
                yield said("version", f"{number_}.{pack[1]}" if pack else number_)
            return
    if re.match(r"(?i)linux\b", name):
        yield said("system", "linux")


def platform_string(text: str, layout: str, weight: int, number: int = 0) -> Iterator[Said]:
    """Yield what ``platform.platform()`` tells.

    The glibc in it is that of the machine from Python 3.9 on; before, it is the oldest that the
    interpreter needs.
    """
    text = text.strip()[:300]

    def said(fact: str, value: str) -> Said:
        return Said(f"platform.{fact}", value, layout, weight, number)

    if linux := re.match(
        rf"Linux-(?P<kernel>\S{{1,120}}?)-(?P<machine>{_MACHINE})"
        rf"(?:-\S{{0,80}}?)?(?:-with-(?P<libc>\S{{1,40}}))?$",
        text,
    ):
        yield said("system", "linux")
        yield said("machine", linux["machine"])
        yield from kernel(linux["kernel"], layout, weight, number)
        if libc := re.match(r"(glibc|musl)(\d+\.\d+)?", linux["libc"] or ""):
            yield said("libc", libc[1])
            if libc[2]:
                yield Said("platform.libc_of_3_9", libc[2], layout, weight, number)
    elif windows := re.match(r"Windows-(\w+)-(10\.0\.\d{4,6}|\d\.\d\.\d{4,6})(?:-SP\d)?", text):
        yield said("system", "win32")
        yield said("version", windows[2])
        yield said("kernel", windows[2])
        build = int(windows[2].rpartition(".")[2])
        release = "11" if windows[1] == "10" and build >= 22000 else windows[1]  # noqa: PLR2004
        yield Said("platform.name", f"Windows {release}", layout, HINT, number)
    elif mac := re.match(r"(?:macOS|Darwin)-(\d{1,2}(?:\.\d{1,2}){0,2})-(arm64|x86_64|i386)", text):
        yield said("system", "darwin")
        yield said("machine", mac[2])
        # A Python built before macOS 11 is told 10.16 on every later one.
        if text.startswith("macOS") and mac[1] != "10.16":
            yield said("version", mac[1])


def kernel(release: str, layout: str, weight: int, number: int = 0) -> Iterator[Said]:
    """Yield what the release of a Linux kernel tells."""
    yield Said("platform.kernel", release, layout, weight, number)
    if re.search(r"microsoft-standard|WSL2", release):
        yield Said("platform.wsl", 2, layout, weight, number)
    elif release.endswith("Microsoft"):
        yield Said("platform.wsl", 1, layout, weight, number)
    if "tegra" in release.lower():
        yield Said("platform.jetson", True, layout, weight, number)  # noqa: FBT003
