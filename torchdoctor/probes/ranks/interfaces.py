"""Which address the backend of this rank gives to the others."""

import os
import socket
import struct
import sys

from .saying import Fault
from .settings import setting


def interface_address(name: str) -> "str | None":
    """Return the IPv4 address of an interface; None where it has none or is not there."""
    if sys.platform != "linux":
        return None
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            answer = fcntl.ioctl(asking.fileno(), 0x8915, struct.pack("256s", name[:15].encode()))
        except OSError:
            return None
    return socket.inet_ntoa(answer[20:24])


def advertised(backend: str) -> "tuple[str, str]":
    """Return the address that this rank's backend gives to the others, and how it was chosen."""
    names = [name for _, name in socket.if_nameindex()] if hasattr(socket, "if_nameindex") else []
    if backend == "nccl":
        return advertised_by_nccl(names)
    given = os.environ.get("GLOO_SOCKET_IFNAME")
    if given is not None and sys.platform == "linux":
        # Several real names are allowed, one for each device; exclusions and prefixes are not.
        wrong = [name for name in given.split(",") if name not in names]
        if wrong or not given:
            raise Fault(
                "interface",
                "GLOO_SOCKET_IFNAME=%s names no interface (%s)" % (given, ", ".join(names)),
                variable="GLOO_SOCKET_IFNAME",
                value=given,
                interfaces=names,
            )
        address = interface_address(given.split(",")[0])
        if address is None:
            return by_name()
        return address, "GLOO_SOCKET_IFNAME=%s" % given
    return by_name()


def by_name() -> "tuple[str, str]":
    """Return the address that the own host name stands for, as gloo looks for it."""
    name = socket.gethostname()
    try:
        found = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError:
        return "127.0.0.1", "the host name %s, which has no address" % name
    for entry in found:
        address = str(entry[4][0])
        if bindable(address):
            return address, "the host name %s" % name
    return "127.0.0.1", "the host name %s, whose address is none of this machine" % name


def advertised_by_nccl(names: "list[str]") -> "tuple[str, str]":
    """Return the address that NCCL would take, and why."""
    given, file = setting("NCCL_SOCKET_IFNAME")
    usable = [name for name in names if interface_address(name)]
    chosen = [name for name in usable if nccl_takes(given, name)]
    if given and not chosen:
        where = {"file": file} if file else {}
        raise Fault(
            "interface",
            "NCCL_SOCKET_IFNAME=%s matches no interface (%s)" % (given, ", ".join(names)),
            variable="NCCL_SOCKET_IFNAME",
            value=given,
            interfaces=names,
            **where,
        )
    if not given:
        # As NCCL does: loopback and docker only where there is nothing else.
        last = [name for name in usable if name.startswith(("lo", "docker"))]
        chosen = [name for name in usable if name not in last] or last
    if not chosen:
        return "127.0.0.1", "no interface has an address"
    said = "NCCL_SOCKET_IFNAME=%s%s" % (given, " (%s)" % file if file else "")
    how = said if given else "the first interface, %s" % chosen[0]
    return str(interface_address(chosen[0])), how


def nccl_takes(given: str, name: str) -> bool:
    """Tell whether NCCL_SOCKET_IFNAME takes an interface: prefixes, ``=`` names, ``^`` not."""
    rest = given.lstrip("^=")
    exact = "=" in given[:2]
    match = any(name == one if exact else name.startswith(one) for one in rest.split(",") if one)
    return not match if given.startswith("^") else match


def bindable(address: str) -> bool:
    """Tell whether *address* is one of this machine."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trying:
            trying.bind((address, 0))
    except OSError:
        return False
    return True
