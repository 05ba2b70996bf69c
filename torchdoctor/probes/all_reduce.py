"""Be one rank of an all_reduce, and say what is being done before it is done.

It runs in the interpreter under test, as a process of its own for each rank, with a JSON object as
its argument: ``rank``, ``world``, ``local_rank``, ``host`` and ``port`` of the meeting point (port
0: rank 0 takes a free one and writes it into the folder), ``folder`` for what it says, ``began``
(seconds since the epoch), ``backend`` (auto, nccl, gloo), ``device`` (auto, cuda, cpu), ``sweep``,
``numbers`` (elements of the first all_reduce), ``store`` (own, or the launcher's, which is there
already), ``attempt`` (a word for its keys), ``gather`` (what rank 0 tells those that will bring it
their records; null on one machine), ``share`` (whether ranks may use one GPU) and three limits in
seconds.

Each stage is announced (enter), each blocking call once more just before it is made (call), then
comes ok or error; facts go between. Standard library alone until the stage "import".
"""

import os
import sys

if sys.path and sys.path[0] in ("", os.path.dirname(os.path.abspath(__file__))):
    del sys.path[0]

import contextlib
import errno
import faulthandler
import importlib
import json
import signal
import socket
import struct
import threading
import time
from datetime import timedelta

TYPE_CHECKING = False  # typing would have to be imported
if TYPE_CHECKING:
    from types import ModuleType, TracebackType
    from typing import Any

    Store = Any
    Device = Any
    Tensor = Any

OPTIONS = json.loads(sys.argv[1])  # type: dict[str, Any]
RANK = int(OPTIONS["rank"])
WORLD = int(OPTIONS["world"])
LOCAL_RANK = int(OPTIONS["local_rank"])
HOST = str(OPTIONS["host"])
FOLDER = str(OPTIONS["folder"])
STAGE_LIMIT = float(OPTIONS["stage_limit"])
IMPORT_LIMIT = float(OPTIONS["import_limit"])

LONGEST = 2000
NUMBERS = int(OPTIONS["numbers"])
"""Elements of the first all_reduce."""
SLOW = 2.0
"""Seconds for one connection; whoever needs more cannot be trained over."""
BULK = 64 * 1024
"""Bytes that go both ways between each two ranks: more than one packet of any size."""
SHARED = 8 * 1024 * 1024
"""Bytes of shared memory that NCCL takes for a pair of ranks, about."""
MOST_PAIRS = 32
"""In a larger world a rank tries some of the others, not all."""
BEAT = 1.0
MARGIN = 2.0
"""Seconds before its time is up that a rank says what it waited for."""
SIZES = (1 << 20,)
SWEEP = (1 << 3, 1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 23, 1 << 26)
FAMILIES = ("NCCL_", "GLOO_", "TORCH_NCCL_", "TORCH_GLOO_", "UCX_", "FI_")
OURS = ("NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS", "NCCL_SOCKET_RETRY_CNT")
NCCL_CONF = ("~/.nccl.conf", "/etc/nccl.conf")


class Fault(Exception):  # noqa: N818 - it is an answer
    """What this rank found out by itself: ``why`` in one word, and values."""

    def __init__(self, why: str, message: str, **values: "object") -> None:
        super().__init__(message)
        self.said = dict(values, why=why)  # type: dict[str, object]


# ---- what is said ------------------------------------------------------------------------------

CHANNEL = os.open(
    os.path.join(FOLDER, "rank%d.jsonl" % RANK), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
)
STACKS = open(os.path.join(FOLDER, "rank%d.stack" % RANK), "w")  # noqa: SIM115


def say(stage: str, kind: str, **values: "object") -> None:
    """Write one event, as one write, so that no line is torn."""
    at = round(time.time() - float(OPTIONS["began"]), 4)
    event = dict(values, t=at, stage=stage, ev=kind)  # type: dict[str, object]
    os.write(CHANNEL, (json.dumps(event) + "\n").encode("ascii"))


class Stage:
    """One stage: announced, and its end told."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> "Stage":  # noqa: PYI034 - Python 3.8 has no Self
        say(self.name, "enter")
        return self

    def __exit__(
        self,
        kind: "type[BaseException] | None",
        error: "BaseException | None",
        trace: "TracebackType | None",
    ) -> None:
        if error is None:
            say(self.name, "ok")
            return
        more = error.said if isinstance(error, Fault) else {}  # type: dict[str, object]
        number = getattr(error, "errno", None)
        if isinstance(number, int):
            more = dict(more, errno=number)
        text = str(error)
        if len(text) > LONGEST:
            text = text[: LONGEST // 2] + " ... " + text[-LONGEST // 2 :]
        say(self.name, "error", type=type(error).__name__, message=text, **more)

    def fact(self, **values: "object") -> None:
        """Tell something that was learnt."""
        say(self.name, "fact", **values)

    def call(self, **values: "object") -> None:
        """Tell that the blocking call comes now: one that is late has not come so far."""
        say(self.name, "call", **values)


def beat() -> None:
    """Tell every second that this process lives, whatever it waits for."""
    while True:
        time.sleep(BEAT)
        say("", "beat")


def prepare() -> None:
    """Take care that a stack can be had, and that this process ends with the one that began it."""
    faulthandler.enable(STACKS)
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1, STACKS, all_threads=True)
    faulthandler.dump_traceback_later(float(OPTIONS["limit"]) + 5, exit=True, file=STACKS)
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    threading.Thread(target=beat, daemon=True).start()


# ---- the meeting point, before torch is paid for ------------------------------------------------


def port_file() -> str:
    """Return the file by which rank 0 tells the port that it took."""
    return os.path.join(FOLDER, "port")


def bind() -> "socket.socket | None":
    """Return rank 0's socket of the meeting point: held from here on, so that nobody takes it."""
    if OPTIONS["store"] != "own":
        return None
    with Stage("port-bind") as stage:
        port = int(OPTIONS["port"])
        everywhere = not HOST.startswith("127.") and HOST != "localhost"
        dual = everywhere and socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if dual else socket.AF_INET
        address = "" if everywhere else "127.0.0.1"
        try:
            held = socket.create_server(
                (address, port), family=family, backlog=max(128, WORLD), dualstack_ipv6=dual
            )
        except OSError as error:
            raise Fault(
                "port-refused", "%s:%d: %s" % (HOST, port, error), errno=error.errno, port=port
            ) from error
        taken = held.getsockname()[1]
        stage.fact(port=taken)
        if not port:
            with open(port_file() + ".new", "w") as file:
                file.write(str(taken))
            os.replace(port_file() + ".new", port_file())
        return held


def port_of_rank_0(until: float) -> int:
    """Return the port that was given, or the one that rank 0 has taken."""
    port = int(OPTIONS["port"])
    while not port:
        try:
            with open(port_file()) as file:
                port = int(file.read())
        except (OSError, ValueError):
            if time.monotonic() > until:
                raise Fault("no-port", "rank 0 has taken no port", peer=0) from None
            time.sleep(0.01)
    return port


def reach() -> None:
    """Connect to rank 0 by plain TCP."""
    with Stage("tcp") as stage:
        began = time.monotonic()
        until = began + STAGE_LIMIT
        port = port_of_rank_0(until)
        while True:
            start = time.monotonic()
            try:
                with socket.create_connection((HOST, port), timeout=max(0.1, until - start)):
                    pass
            except OSError as error:
                if isinstance(error, ConnectionRefusedError) and time.monotonic() < until:
                    time.sleep(0.02)  # rank 0 may not be there yet
                    continue
                raise unreachable(0, HOST, port, error) from error
            break
        took = time.monotonic() - start
        stage.fact(seconds=round(took, 4), port=port)
        if took > SLOW:
            text = "a connection to rank 0 (%s:%d) takes %.1f s" % (HOST, port, took)
            raise Fault("slow", text, peer=0, seconds=round(took, 1))


def unreachable(peer: int, host: str, port: int, error: OSError) -> Fault:
    """Return in one word why a connection failed: refused, timeout, or by its number."""
    if isinstance(error, socket.gaierror):
        return Fault("no-address", "%s: %s" % (host, error), peer=peer, host=host)
    late = isinstance(error, socket.timeout) or error.errno == errno.ETIMEDOUT
    why = "refused" if isinstance(error, ConnectionRefusedError) else "unreachable"
    return Fault(
        "timeout" if late else why,
        "rank %d at %s:%d%s: %s" % (peer, host, port, resolved(host), error),
        peer=peer,
        host=host,
        port=port,
        errno=error.errno,
    )


def resolved(host: str) -> str:
    """Return the address that a name stands for, and whether it is one of this very machine."""
    try:
        address = socket.gethostbyname(host)
    except OSError:
        return ""
    own = not address.startswith("127.") and bindable(address)
    shown = address if address != host else ""
    words = ", ".join(filter(None, (shown, "which is this very machine" if own else "")))
    return " (%s)" % words if words else ""


# ---- torch and the device -----------------------------------------------------------------------


def import_torch() -> "tuple[ModuleType, ModuleType]":
    """Import torch, and tell which."""
    with Stage("import") as stage:
        torch = importlib.import_module("torch")
        dist = importlib.import_module("torch.distributed")

        stage.fact(torch=str(torch.__version__), cuda=torch.version.cuda, file=torch.__file__)
        if not dist.is_available():
            raise Fault("no-distributed", "this torch is built without torch.distributed")
    return torch, dist


def choose_backend(torch: "ModuleType", dist: "ModuleType") -> "tuple[str, str]":
    """Return backend and device, as asked or as they are to be had."""
    backend, device = str(OPTIONS["backend"]), str(OPTIONS["device"])
    cuda = bool(torch.cuda.is_available())
    if backend == "auto":
        backend = "nccl" if cuda and device != "cpu" and dist.is_nccl_available() else "gloo"
    if device == "auto":
        device = "cuda" if backend == "nccl" else "cpu"
    if backend == "nccl" and not dist.is_nccl_available():
        raise Fault("no-nccl", "this torch (%s) is built without NCCL" % torch.__version__)
    if device == "cuda" and not cuda:
        raise Fault("no-gpu", "torch finds no GPU that it can use")
    return backend, device


def take_device(torch: "ModuleType", dist: "ModuleType") -> "tuple[str, Device]":
    """Choose the backend, take this rank's device and try it, and try shared memory."""
    with Stage("device") as stage:
        backend, kind = choose_backend(torch, dist)
        device = torch.device("cpu")
        if kind == "cuda":
            count = torch.cuda.device_count()
            if count <= LOCAL_RANK and not OPTIONS["share"]:
                text = "local rank %d, and %d GPUs can be seen" % (LOCAL_RANK, count)
                raise Fault("too-few-gpus", text, gpus=count)
            device = torch.device("cuda", LOCAL_RANK % count)
            torch.cuda.set_device(device)
            stage.call()
            about = torch.cuda.get_device_properties(device)
            free, whole = torch.cuda.mem_get_info(device)
            if int(torch.ones(NUMBERS, device=device).sum().item()) != NUMBERS:
                raise Fault("kernel-wrong", "a sum on %s is wrong" % device)
            stage.fact(
                gpu=about.name, uuid=str(getattr(about, "uuid", "")), free=free, memory=whole
            )
        stage.fact(backend=backend, device=str(device))
        try_shared_memory()
    return backend, device


def try_shared_memory() -> None:
    """Take as much of /dev/shm as NCCL would, and give it back; nothing has a name there."""
    folder = "/dev/shm"  # noqa: S108 - looked at; nothing gets a name there
    if not hasattr(os, "posix_fallocate") or not os.path.isdir(folder):
        return
    try:
        file = os.open(folder, os.O_RDWR | getattr(os, "O_TMPFILE", 0), 0o600)
    except OSError:
        return  # a file system that cannot do this; what is asked here is space
    try:
        os.posix_fallocate(file, 0, SHARED)
    except OSError as error:
        told = os.statvfs(folder)
        raise Fault(
            "shm-full",
            "%d bytes of %s: %s" % (SHARED, folder, error),
            errno=error.errno,
            size=told.f_blocks * told.f_frsize,
            free=told.f_bavail * told.f_frsize,
        ) from error
    finally:
        os.close(file)


# ---- the store ----------------------------------------------------------------------------------


def open_store(dist: "ModuleType", held: "socket.socket | None") -> "Store":
    """Return the store by which the ranks meet."""
    with Stage("store") as stage:
        port = held.getsockname()[1] if held else port_of_rank_0(time.monotonic())
        given = {
            "timeout": timedelta(seconds=importing()),
            "wait_for_workers": False,
        }  # type: dict[str, object]
        master = held is not None
        if held is not None:
            if sys.platform == "win32":
                held.close()  # its store can take no socket
            else:
                given["master_listen_fd"] = held.detach()
        stage.call()
        try:
            store = dist.TCPStore(HOST, port, WORLD, master, **given)
        except TypeError:  # torch before 2.0 has no master_listen_fd
            os.close(int(str(given.pop("master_listen_fd"))))
            store = dist.TCPStore(HOST, port, WORLD, master, **given)
    # A launcher's store is there for the next attempt, too.
    return dist.PrefixStore("torchdoctor/%s" % OPTIONS["attempt"], store)


def wait_for_all(store: "Store", key: str, seconds: float) -> None:
    """Wait until every rank has set its *key*; raise who has not."""
    keys = ["%s/%d" % (key, rank) for rank in range(WORLD)]
    try:
        store.wait(keys, timedelta(seconds=seconds))
    except RuntimeError as error:
        # Without the store there is nobody to ask.
        missing = [rank for rank in range(WORLD) if not there(store, keys[rank])]
        if missing:
            text = "ranks that never came to %s: %s (%s)" % (key, missing, error)
            raise Fault("missing", text, missing=missing) from error
        raise


def there(store: "Store", key: str) -> bool:
    """Tell whether *key* is set by now."""
    try:
        store.wait([key], timedelta(milliseconds=100))
    except RuntimeError as error:
        if "imeout" not in str(error):
            raise
        return False
    return True


def importing() -> float:
    """Return for how long another rank may still be importing, and this one can wait for it."""
    left = float(OPTIONS["began"]) + float(OPTIONS["limit"]) - time.time()
    return max(1.0, min(IMPORT_LIMIT + STAGE_LIMIT, left - MARGIN))


def check_in(store: "Store") -> None:
    """Wait until every rank is here; one may still be importing."""
    with Stage("check-in") as stage:
        gather = OPTIONS["gather"]
        if gather is not None and RANK == 0:
            store.set("gather", json.dumps(gather))
        store.set("here/%d" % RANK, "1")
        stage.call()
        if gather is not None and RANK != 0:  # first, so that it is known whoever never comes
            store.wait(["gather"], timedelta(seconds=importing()))
            stage.fact(gather=json.loads(store.get("gather")))
        wait_for_all(store, "here", importing())


# ---- what each rank is ---------------------------------------------------------------------------


def text_of(path: str) -> str:
    """Return the beginning of a small file, or nothing."""
    try:
        with open(os.path.expanduser(path), errors="backslashreplace") as file:
            return file.read(4096).strip()
    except OSError:
        return ""


def network() -> str:
    """Return what tells network namespaces apart, on one machine and between machines."""
    try:
        space = os.stat("/proc/self/ns/net").st_ino
    except OSError:
        space = 0
    return "%s %d" % (text_of("/proc/sys/kernel/random/boot_id") or socket.gethostname(), space)


def loaded_nccl() -> str:
    """Return the version of the NCCL that this process has loaded; torch tells another one."""
    for line in text_of_maps():
        path = line.partition("/")[2].strip()
        if "libnccl.so" in path:
            import ctypes

            number = ctypes.c_int()
            library = ctypes.CDLL("/" + path)
            library.ncclGetVersion.argtypes = [ctypes.POINTER(ctypes.c_int)]
            library.ncclGetVersion(ctypes.byref(number))
            return str(number.value)
    return ""


def text_of_maps() -> "list[str]":
    """Return what this process has mapped, line by line."""
    try:
        with open("/proc/self/maps", errors="backslashreplace") as file:
            return file.readlines()
    except OSError:
        return []


def driver() -> str:
    """Return the release of the NVIDIA driver that is loaded."""
    line = text_of("/proc/driver/nvidia/version").split("\n")[0]
    words = [word for word in line.split() if word[:1].isdigit() and "." in word]
    return words[0] if words else ""


def own_facts(torch: "ModuleType", backend: str, device: "Device") -> "dict[str, Any]":
    """Return what the ranks have to agree on, or to differ in."""
    address, interface = advertised(backend)
    gpu = ""
    if device.type == "cuda":
        gpu = str(getattr(torch.cuda.get_device_properties(device), "uuid", ""))
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "network": network(),
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "nccl": loaded_nccl() if backend == "nccl" else "",
        "driver": driver(),
        "gpu": gpu,
        "backend": backend,
        "address": address,
        "interface": interface,
        "variables": {
            name: value[:200]
            for name, value in os.environ.items()
            if name.startswith(FAMILIES) and name not in OURS
        },
        "conf": {path: text for path in NCCL_CONF for text in [text_of(path)] if text},
    }


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


def bindable(address: str) -> bool:
    """Tell whether *address* is one of this machine."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trying:
            trying.bind((address, 0))
    except OSError:
        return False
    return True


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
    given = os.environ.get("NCCL_SOCKET_IFNAME", "")
    usable = [name for name in names if interface_address(name)]
    chosen = [name for name in usable if nccl_takes(given, name)]
    if given and not chosen:
        raise Fault(
            "interface",
            "NCCL_SOCKET_IFNAME=%s matches no interface (%s)" % (given, ", ".join(names)),
            variable="NCCL_SOCKET_IFNAME",
            value=given,
            interfaces=names,
        )
    if not given:
        # As NCCL does: loopback and docker only where there is nothing else.
        last = [name for name in usable if name.startswith(("lo", "docker"))]
        chosen = [name for name in usable if name not in last] or last
    if not chosen:
        return "127.0.0.1", "no interface has an address"
    how = "NCCL_SOCKET_IFNAME=%s" % given if given else "the first interface, %s" % chosen[0]
    return str(interface_address(chosen[0])), how


def nccl_takes(given: str, name: str) -> bool:
    """Tell whether NCCL_SOCKET_IFNAME takes an interface: prefixes, ``=`` names, ``^`` not."""
    rest = given.lstrip("^=")
    exact = "=" in given[:2]
    match = any(name == one if exact else name.startswith(one) for one in rest.split(",") if one)
    return not match if given.startswith("^") else match


def exchange(store: "Store", mine: "dict[str, Any]", stage: Stage) -> "list[dict[str, Any]]":
    """Return what all ranks say of themselves; raise what they must not differ in."""
    stage.fact(**mine)
    store.set("facts/%d" % RANK, json.dumps(mine))
    stage.call()
    wait_for_all(store, "facts", STAGE_LIMIT)
    each = [
        dict(mine) if rank == RANK else json.loads(store.get("facts/%d" % rank))
        for rank in range(WORLD)
    ]
    for name in ("torch", "cuda", "backend", "nccl"):
        values = [one[name] for one in each]
        if len(set(values)) > 1:
            most = max(values, key=values.count)
            others = [rank for rank, value in enumerate(values) if value != most]
            text = "%s differs: %s" % (name, values)
            raise Fault("differs", text, what=name, values=values, ranks=others)
    gpus = {}  # type: dict[str, list[int]]
    for rank, one in enumerate(each):
        if one["gpu"] and not OPTIONS["share"]:
            gpus.setdefault(one["network"].split()[0] + one["gpu"], []).append(rank)
    for ranks in gpus.values():
        if len(ranks) > 1:
            raise Fault("same-gpu", "ranks %s use one GPU" % ranks, ranks=ranks)
    return each


# ---- every two of them --------------------------------------------------------------------------


def pairwise(store: "Store", each: "list[dict[str, Any]]") -> None:
    """Connect to the others on the address that their backend gives away, and send both ways."""
    with Stage("pairwise") as stage:
        apart = len({one["network"] for one in each}) > 1
        inside = [r for r, one in enumerate(each) if one["address"].startswith("127.")]
        if apart and inside:
            how = {str(rank): each[rank]["interface"] for rank in inside}
            text = "ranks %s give away a loopback address: %s" % (inside, how)
            raise Fault("loopback", text, ranks=inside, how=how)
        mine = each[RANK]
        listener = socket.create_server((mine["address"], 0), backlog=max(16, WORLD))
        token = ("%032x" % int.from_bytes(os.urandom(16), "big")).encode()
        threading.Thread(target=serve, args=(listener, token), daemon=True).start()
        told = {"port": listener.getsockname()[1], "token": token.decode()}
        store.set("pair/%d" % RANK, json.dumps(told))
        stage.call()
        wait_for_all(store, "pair", STAGE_LIMIT)
        tries = [Try(peer, each, json.loads(store.get("pair/%d" % peer))) for peer in partners()]
        for one in tries:
            one.join()
        # The others may still be connecting to this rank.
        store.set("paired/%d" % RANK, "1")
        bad = [dict(one.fault.said, message=str(one.fault)) for one in tries if one.fault]
        stage.fact(seconds={str(one.peer): one.seconds for one in tries if not one.fault})
        wait_for_all(store, "paired", STAGE_LIMIT)
        listener.close()
        if bad:
            raise Fault("links", "; ".join(str(one["message"]) for one in bad), links=bad)


def partners() -> "list[int]":
    """Return the ranks that this one tries: all, or in a large world those 1, 2, 4 ... further."""
    if WORLD <= MOST_PAIRS:
        return [rank for rank in range(WORLD) if rank != RANK]
    steps = [1 << n for n in range(WORLD.bit_length()) if 1 << n < WORLD]
    return sorted({(RANK + step) % WORLD for step in steps} - {RANK})


def serve(listener: socket.socket, token: bytes) -> None:
    """Answer whoever connects, until the listener is closed."""
    while True:
        try:
            one, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=answer, args=(one, token), daemon=True).start()


def answer(one: socket.socket, token: bytes) -> None:
    """Take what is sent, then say who this is and send as much."""
    try:
        with one:
            one.settimeout(STAGE_LIMIT)
            if len(receive(one, BULK)) == BULK:
                one.sendall(token + b"\0" * BULK)
    except OSError:
        pass


def receive(one: socket.socket, size: int) -> bytes:
    """Return *size* bytes, or fewer where the other side ends."""
    got = bytearray()
    while len(got) < size:
        block = one.recv(min(1 << 16, size - len(got)))
        if not block:
            break
        got += block
    return bytes(got)


class Try(threading.Thread):
    """One connection to another rank, and what became of it."""

    def __init__(self, peer: int, each: "list[dict[str, Any]]", told: "dict[str, Any]") -> None:
        super().__init__(daemon=True)
        self.peer = peer
        self.host = str(each[peer]["address"])
        self.told = told
        self.seconds = 0.0
        self.fault = None  # type: Fault | None
        self.start()

    def run(self) -> None:
        """Connect, send, receive."""
        limit = min(3.0, STAGE_LIMIT)
        begin = time.monotonic()
        port = int(self.told["port"])
        try:
            one = socket.create_connection((self.host, port), timeout=limit)
        except OSError as error:
            self.fault = unreachable(self.peer, self.host, port, error)
            return
        try:
            with one:
                one.settimeout(limit)
                one.sendall(b"\0" * BULK)
                got = receive(one, 32 + BULK)
        except OSError as error:
            where = "rank %d at %s:%d" % (self.peer, self.host, port)
            text = "%s is connected, and %d bytes do not come through: %s" % (where, BULK, error)
            self.fault = Fault("stalled", text, peer=self.peer, host=self.host, port=port)
            return
        self.seconds = round(time.monotonic() - begin, 4)
        if got[:32].decode("ascii", "replace") != self.told["token"]:
            text = "%s:%d is answered by somebody else than rank %d" % (self.host, port, self.peer)
            self.fault = Fault("stranger", text, peer=self.peer, host=self.host, port=port)
        elif self.seconds > SLOW:
            text = "%d bytes to rank %d and back take %.1f s" % (BULK, self.peer, self.seconds)
            self.fault = Fault("slow", text, peer=self.peer, seconds=self.seconds)


def copy_between_gpus(torch: "ModuleType", device: "Device") -> None:
    """Compare what goes directly from this GPU to the others with what goes through the host."""
    with Stage("p2p") as stage:
        if device.type != "cuda":
            return
        data = torch.arange(1 << 20, dtype=torch.int32, device=device)
        through_host = data.cpu()
        access = {}
        for other in range(torch.cuda.device_count()):
            if other == device.index:
                continue
            stage.call(peer=other)
            access[str(other)] = bool(torch.cuda.can_device_access_peer(device.index, other))
            copied = data.to("cuda:%d" % other)
            torch.cuda.synchronize(other)
            if not torch.equal(copied.cpu(), through_host):
                text = "what GPU %d sends to GPU %d arrives altered" % (device.index, other)
                raise Fault("p2p-altered", text, gpus=[device.index, other])
        stage.fact(access=access)


# ---- the collective -----------------------------------------------------------------------------


def communicate(dist: "ModuleType", store: "Store", backend: str, device: "Device") -> None:
    """Make the process group; with NCCL its communicator, too."""
    with Stage("communicator") as stage:
        more = {"device_id": device} if device.type == "cuda" else {}
        limit = timedelta(seconds=STAGE_LIMIT)
        prefix = dist.PrefixStore("group", store)
        stage.call()
        group = {"store": prefix, "rank": RANK, "world_size": WORLD, "timeout": limit}
        try:
            dist.init_process_group(backend, **group, **more)
        except TypeError:  # torch before 2.3 has no device_id
            dist.init_process_group(backend, **group)


def contribution(torch: "ModuleType", device: "Device") -> "Tensor":
    """Return what this rank gives: 1 in its own slots, so that a wrong one shows whose it is."""
    given = torch.zeros(NUMBERS, device=device)
    given[RANK::WORLD] = 1
    return given


def collective(dist: "ModuleType", given: "Tensor") -> None:
    """Make the collective that is tried."""
    dist.all_reduce(given)


def synchronise(torch: "ModuleType", device: "Device") -> None:
    """Wait until the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def reduce_once(torch: "ModuleType", dist: "ModuleType", device: "Device") -> "Tensor":
    """Make the first all_reduce."""
    with Stage("all-reduce") as stage:
        given = contribution(torch, device)
        synchronise(torch, device)
        stage.call(shape=list(given.shape), dtype=str(given.dtype))
        collective(dist, given)
        synchronise(torch, device)
    return given


def verify(got: "Tensor") -> None:
    """Look at the slots of each rank."""
    with Stage("verify"):
        wrong = [r for r in range(WORLD) if not bool((got[r::WORLD] == 1).all())]
        if wrong:
            seen = [float(got[rank::WORLD][0].item()) for rank in wrong]
            text = "the slots of ranks %s hold %s, not 1" % (wrong, seen)
            raise Fault("wrong-data", text, ranks=wrong, values=seen)


def measure(torch: "ModuleType", dist: "ModuleType", device: "Device") -> None:
    """Time all_reduce as nccl-tests does: algbw is size by time, busbw that by 2(n-1)/n."""
    with Stage("bandwidth") as stage:
        for size in SWEEP if OPTIONS["sweep"] else SIZES:
            data = torch.zeros(max(1, size // 4), device=device)
            stage.call(bytes=size)
            collective(dist, data)  # the first is slower than the others
            synchronise(torch, device)
            rounds = 2 if size >= 1 << 20 and device.type == "cpu" else 5
            begin = time.perf_counter()
            for _ in range(rounds):
                dist.all_reduce(data)
            synchronise(torch, device)
            spent = (time.perf_counter() - begin) / rounds
            speed = size / spent / 1e9
            stage.fact(
                bytes=size,
                seconds=round(spent, 7),
                algbw=round(speed, 4),
                busbw=round(speed * 2 * (WORLD - 1) / WORLD, 4),
            )


def main() -> None:
    """Go through the stages."""
    with Stage("spawn") as stage:
        prepare()
        stage.fact(pid=os.getpid(), host=socket.gethostname(), python=sys.version.split()[0])
    held = bind() if RANK == 0 else None
    if WORLD > 1 and (RANK != 0 or OPTIONS["store"] != "own"):
        reach()
    torch, dist = import_torch()
    backend, device = take_device(torch, dist)
    store = open_store(dist, held)
    check_in(store)
    with Stage("facts") as stage:
        each = exchange(store, own_facts(torch, backend, device), stage)
    if WORLD > 1:
        pairwise(store, each)
    copy_between_gpus(torch, device)
    communicate(dist, store, backend, device)
    verify(reduce_once(torch, dist, device))
    measure(torch, dist, device)
    with Stage("barrier") as stage:
        stage.call()
        dist.barrier(**({"device_ids": [device.index]} if device.type == "cuda" else {}))
    with Stage("destroy") as stage:
        stage.call()
        dist.destroy_process_group()
    say("done", "ok")


if __name__ == "__main__":
    code = 4
    try:
        main()
        code = 0
    except BaseException:  # it was told as an event
        pass
    # Unloading torch takes long, may hang, and tells nothing.
    os._exit(code)
