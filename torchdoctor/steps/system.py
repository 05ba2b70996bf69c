"""Steps that install no package: variables, files, the driver, the container, the system."""

from __future__ import annotations

from collections.abc import Iterable

from torchdoctor import effects, gpu, shells
from torchdoctor.facts import Container, Driver, Facts, Unknown
from torchdoctor.model import Commands, Effect, Layer, Step
from torchdoctor.scale import ADMIN, BUILD, REBOOT, SMALL, VARIABLE, slug

DEBIAN_BRANCH = 535
"""The NVIDIA driver of Debian 12; for a newer branch, NVIDIA's own repository is needed."""


def set_variable(variable: str, value: str, *, why: str) -> Step:
    """Return the step that sets an environment variable."""
    return Step(
        name=slug("set", variable),
        title=f"Set {variable}={value}, here and for good",
        why=why,
        layer=Layer.VARIABLES,
        cost=VARIABLE,
        effect=effects.with_variable(variable, value),
        commands=shells.assign(variable, value),
    )


def unset_variable(variable: str, *, why: str) -> Step:
    """Return the step that takes an environment variable away."""
    return Step(
        name=slug("unset", variable),
        title=f"Unset {variable}, here and where it is set for good",
        why=why,
        layer=Layer.VARIABLES,
        cost=VARIABLE,
        effect=effects.without_variable(variable),
        commands=shells.unset(variable),
    )


def remove_paths(paths: Iterable[str], *, name: str, title: str, why: str) -> Step:
    """Return the step that deletes files or folders; its effect is left to the caller."""
    kept = tuple(paths)
    return Step(
        name=slug(name),
        title=title,
        why=why,
        layer=Layer.ENVIRONMENT,
        cost=SMALL,
        effect=effects.untried,
        commands=Commands(
            bash=shells.in_all([("rm", "-rf", p) for p in kept]).bash,
            powershell=tuple(
                f"Remove-Item -Recurse -Force -LiteralPath {shells.literal(p)}" for p in kept
            ),
            cmd=tuple(f'rmdir /s /q "{p}"' for p in kept),
        ),
        deletes=True,
    )


def rename_path(path: str, to: str, *, why: str) -> Step:
    """Return the step that renames a file or folder that is in the way."""
    short = path.replace("\\", "/").rpartition("/")[2]
    return Step(
        name=slug("rename", short),
        title=f"Rename {path} to {to}",
        why=why,
        layer=Layer.SCRIPT,
        cost=SMALL,
        effect=effects.untried,
        commands=Commands(
            bash=shells.in_all([("mv", path, path[: -len(short)] + to)]).bash,
            powershell=(f"Rename-Item -LiteralPath {shells.literal(path)} {shells.literal(to)}",),
            cmd=(f'ren "{path}" "{to}"',),
        ),
    )


def restart_container(
    title: str,
    *,
    why: str,
    effect: Effect,
    bash: tuple[str, ...] = (),
    name: str = "restart-container",
) -> Step:
    """Return the step that starts the container anew, with other options or on a mended host.

    Whatever it is started anew for, it gets the GPUs that it has lost.
    """
    return Step(
        name=name,
        title=title,
        why=why,
        layer=Layer.RUNTIME,
        cost=BUILD,
        effect=effects.then(effect, _with_its_gpus),
        commands=Commands(bash=bash),
        needs=("restart-container",),
    )


def _with_its_gpus(facts: Facts) -> Facts:
    driver, inside = facts.driver, isinstance(facts.container, Container)
    if not inside or not isinstance(driver, Driver) or not gpu.detached(driver):
        return facts
    return effects.driver_becomes(driver.kernel_module or driver.release, driver.cuda)(facts)


def upgrade_driver(facts: Facts, release: str, cuda: str | None, *, why: str) -> Step:
    """Return the step that installs an NVIDIA driver of *release* or newer, and reboots."""
    branch = release.partition(".")[0]
    return Step(
        name="upgrade-driver",
        title=f"Install the NVIDIA driver {release} or newer, then reboot",
        why=why,
        layer=Layer.DRIVER,
        cost=ADMIN + REBOOT,
        effect=effects.driver_becomes(release, cuda),
        commands=_driver_commands(facts, branch),
        needs=("admin", "network", "reboot"),
    )


def _driver_commands(facts: Facts, branch: str) -> Commands:
    """Return how the system's own packages install an NVIDIA driver of *branch*; empty if none.

    Sources: the distributions' own pages (Ubuntu: ubuntu-drivers; Debian: NvidiaGraphicsDrivers;
    Fedora: rpmfusion Howto/NVIDIA; Arch: NVIDIA). Windows and WSL have no command: the driver
    comes from NVIDIA's page.
    """
    platform = facts.platform
    if isinstance(platform, Unknown) or platform.system != "linux" or platform.wsl:
        return Commands()
    kinds = {platform.distribution, *platform.like}
    if "ubuntu" in kinds:
        lines = [f"sudo ubuntu-drivers install nvidia:{branch}", "sudo reboot"]
    elif "debian" in kinds and int(branch) <= DEBIAN_BRANCH:
        lines = ["sudo apt-get update", "sudo apt-get install -y nvidia-driver", "sudo reboot"]
    elif kinds & {"rhel", "centos", "rocky", "almalinux", "ol"}:
        lines = ["sudo dnf module install -y nvidia-driver:latest-dkms", "sudo reboot"]
    elif "fedora" in kinds:
        lines = ["sudo dnf install -y akmod-nvidia xorg-x11-drv-nvidia-cuda", "sudo reboot"]
    elif "arch" in kinds:
        lines = ["sudo pacman -Syu --needed nvidia", "sudo reboot"]
    elif kinds & {"suse", "opensuse", "sles"}:
        lines = ["sudo zypper install -y nvidia-open-driver-G06-signed", "sudo reboot"]
    else:
        return Commands()
    return Commands(bash=tuple(lines))


def system_install(facts: Facts, *, apt: str, dnf: str, apk: str = "") -> Commands:
    """Return how the system's own installer brings packages; whichever it has, if not known."""
    platform = facts.platform
    known = None if isinstance(platform, Unknown) else platform
    kinds = {known.distribution, *known.like} if known else set()
    by_apt = ("sudo apt-get update", f"sudo apt-get install -y {apt}")
    by_dnf, by_apk = f"sudo dnf install -y {dnf}", f"sudo apk add {apk}"
    if kinds & {"debian", "ubuntu"}:
        return Commands(bash=by_apt)
    if kinds & {"rhel", "centos", "fedora", "rocky", "almalinux", "ol"}:
        return Commands(bash=(by_dnf,))
    if "alpine" in kinds and apk:
        return Commands(bash=(by_apk,))
    if known and (known.system != "linux" or known.distribution):
        return Commands()
    ways = [("apt-get", " && ".join(by_apt)), ("dnf", by_dnf), *([("apk", by_apk)] if apk else [])]
    tried = " elif ".join(f"command -v {tool}; then {line};" for tool, line in ways)
    return Commands(bash=(f"if {tried} fi",))


def reboot(*, why: str) -> Step:
    """Return the step that reboots, after which kernel module and driver library are one."""

    def effect(after: Facts) -> Facts:
        if not isinstance(after.driver, Driver):
            return effects.untried(after)
        release = after.driver.library or after.driver.release
        return effects.driver_becomes(release, after.driver.cuda)(after)

    return Step(
        name="reboot",
        title="Reboot",
        why=why,
        layer=Layer.DRIVER,
        cost=REBOOT,
        effect=effect,
        commands=Commands(
            bash=("sudo reboot",),
            powershell=("Restart-Computer",),
            cmd=("shutdown /r /t 0",),
        ),
        needs=("admin", "reboot"),
    )


def by_hand(  # noqa: PLR0913 - a step has that many sides
    name: str,
    title: str,
    *,
    why: str,
    layer: Layer,
    cost: int,
    effect: Effect,
    bash: tuple[str, ...] = (),
    powershell: tuple[str, ...] = (),
    cmd: tuple[str, ...] = (),
    admin: bool = False,
) -> Step:
    """Return a step of the operating system, with its commands if there are any."""
    return Step(
        name=name,
        title=title,
        why=why,
        layer=layer,
        cost=cost + (ADMIN if admin else 0),
        effect=effect,
        commands=Commands(bash, powershell, cmd),
        needs=("admin",) if admin else (),
    )
