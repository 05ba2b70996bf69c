"""Secrets of many kinds, made up, and what of each of them must not be seen again.

Written without a look at the code that takes them out. Every value is random: none is real.
"""

from __future__ import annotations

import base64
import json
import random
import string
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass

LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
SYLLABLES = ("bra", "dol", "fen", "gur", "hax", "jov", "kel", "lum", "nis", "pra", "quo", "zet")
PIECE = 12
"""So many characters in a row of a token tell enough of it."""


@dataclass(frozen=True, slots=True)
class Secret:
    """One secret: its kind, the text that carries it, and what must not be left of it."""

    kind: str
    text: str
    needles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Person:
    """Who sends the snapshot. What the machine itself knows of them."""

    user: str
    host: str
    domain: str
    system: str

    @property
    def home(self) -> str:
        return home_of(self.user, self.system)


def home_of(user: str, system: str) -> str:
    """Return where *system* keeps the files of *user*."""
    if system == "win32":
        return rf"C:\Users\{user}"
    return f"/Users/{user}" if system == "darwin" else f"/home/{user}"


def word(rng: random.Random, syllables: int = 3) -> str:
    """Return a word that no language and no package has."""
    return "".join(rng.choice(SYLLABLES) for _ in range(syllables))


def person(rng: random.Random, system: str) -> Person:
    """Return somebody at a machine of *system*; on Windows their name may hold a space."""
    user = word(rng) + rng.choice(("", str(rng.randrange(10, 99)), "." + word(rng, 2)))
    if system == "win32" and rng.random() < 0.5:
        user = f"{word(rng).title()} {word(rng, 2).title()}"
    host = rng.choice(("gpu-", "node", "WS-", "ip-", "")) + word(rng) + rng.choice(("", "-07"))
    return Person(user, host, f"{word(rng, 2)}.example", system)


def token(rng: random.Random, length: int, alphabet: str = LETTERS) -> str:
    """Return *length* random characters, of which no two neighbours are the same."""
    made = rng.choice(alphabet)
    while len(made) < length:
        made += rng.choice([c for c in alphabet if c != made[-1]])
    return made


def pieces(value: str) -> tuple[str, ...]:
    """Return what must not be left of a token: any PIECE characters of it in a row."""
    return tuple(value[at : at + PIECE] for at in range(0, len(value) - PIECE + 1, 4))


def _whole(kind: str, value: str) -> Secret:
    return Secret(kind, value, (value,))


def _token(kind: str, prefix: str, value: str) -> Secret:
    return Secret(kind, prefix + value, pieces(value))


def ipv4(rng: random.Random) -> str:
    """Return an address of a private or a public network."""
    first = rng.choice(("10.{}", "192.168", "172.{}", "203.0", "91.{}", "129.{}"))
    head = first.format(rng.randrange(17, 31))
    return f"{head}.{rng.randrange(2, 254)}.{rng.randrange(2, 254)}"


def ipv6(rng: random.Random) -> str:
    """Return a global, a private or a link-local address, long or short."""
    parts = [f"{rng.randrange(0x1000, 0xFFFF):x}" for _ in range(4)]
    head = rng.choice(("2001:db8", "fd12:3456", "fe80:0", "2a02:8109"))
    middle = rng.choice(("::", f":{rng.randrange(16, 0xFFF):x}:0:"))
    return f"{head}{middle}{':'.join(parts)}"


def mac(rng: random.Random) -> str:
    """Return the address of a network card, as Linux, Windows or a switch writes it."""
    pairs = [f"{rng.randrange(256):02x}" for _ in range(6)]
    dotted = ".".join("".join(pairs[at : at + 2]) for at in (0, 2, 4))
    return rng.choice((":".join(pairs), "-".join(pairs).upper(), dotted, ":".join(pairs).upper()))


def jwt(rng: random.Random) -> Secret:
    """Return a signed token, whose middle part tells who it is for."""
    head = base64.urlsafe_b64encode(b'{"alg":"RS256","typ":"JWT"}').decode().rstrip("=")
    said = json.dumps({"sub": token(rng, 12), "aud": word(rng)}).encode()
    body = base64.urlsafe_b64encode(said).decode().rstrip("=")
    signature = token(rng, 43)
    return Secret("jwt", f"{head}.{body}.{signature}", (*pieces(body)[2:-1], *pieces(signature)))


def private_key(rng: random.Random) -> Secret:
    """Return a key in armour, in one of the kinds that ssh-keygen and openssl write."""
    kind = rng.choice(("OPENSSH PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "PRIVATE KEY"))
    lines = [token(rng, 64) for _ in range(rng.randrange(3, 9))] + [token(rng, 28)]
    text = "\n".join((f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----"))
    return Secret("private-key", text, tuple(piece for line in lines for piece in pieces(line)))


def public_key(rng: random.Random) -> Secret:
    """Return a line of authorized_keys: the key, and who has it."""
    blob = token(rng, 43)
    owner = f"{word(rng)}@{word(rng)}"
    text = f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{blob} {owner}"
    return Secret("public-key", text, (*pieces(blob), owner))


def url_credentials(rng: random.Random) -> Secret:
    """Return the address of a package index, a proxy or a repository, with user and password."""
    user, password = word(rng), token(rng, 14)
    where = rng.choice(
        (
            "https://{}:{}@pypi.{}.example/simple",
            "http://{}:{}@proxy.{}.example:3128",
            "git+https://{}:{}@git.{}.example/team/repo.git@main",
            "socks5h://{}:{}@proxy.{}.example:1080/",
            "https://{}:{}%40x@pypi.{}.example/simple/torch/?a=b",
        )
    )
    text = where.format(user, password, word(rng, 2))
    return Secret("url-credentials", text, (*pieces(password), f"{user}:"))


def url_token(rng: random.Random) -> Secret:
    """Return a URL whose path or query is what lets one in."""
    value = token(rng, 36)
    where = rng.choice(
        (
            "https://conda.anaconda.org/t/{}-x/mychannel/linux-64/repodata.json",
            "https://store.example/w/torch.whl?X-Amz-Credential=A&X-Amz-Signature={}&e=1",
            "https://blob.example/c/torch.whl?sv=2023-01-03&sig={}%3D",
            "https://{}@pypi.fury.example/team/",
            "https://api.example/v1/models?access_token={}&x=1",
            "https://hooks.slack.com/services/T00000000/B00000000/{}",
            "https://oauth2:{}@gitlab.example/x.git",
        )
    )
    return Secret("url-token", where.format(value), pieces(value))


def password_option(rng: random.Random) -> Secret:
    """Return words of a command line that hand a password over."""
    value = token(rng, 12)
    form = rng.choice(
        (
            "--password {}",
            "--password={}",
            "--api-key {}",
            "--token={}",
            "--auth-token {}",
            "-H 'Authorization: Bearer {}'",
            '--header "X-Api-Key: {}"',
            "--client-secret={}",
            "-u admin:{}",
        )
    )
    return Secret("password-option", form.format(value), (value,))


def assignment(rng: random.Random) -> Secret:
    """Return a variable that nobody but this company knows, and its value, as some tool shows it.

    The name alone does not say that there is anything to hide.
    """
    name = "_".join(word(rng, 2).upper() for _ in range(rng.randrange(2, 4)))
    value = token(rng, 10)
    form = rng.choice(
        (
            "{n}={v}",
            "export {n}={v}",
            'export {n}="{v} {v}"',
            "set {n}={v}",
            '$env:{n} = "{v}"',
            "environ({{'HOME_X': '1', '{n}': '{v}'}})",
            "{n}={v}:/opt/{v}",
            "ENV {n} {v}",
            "-e {n}={v}",
            "setenv {n} {v}",
        )
    )
    return Secret("environment-value", form.format(n=name, v=value), (value,))


def named_secret(rng: random.Random) -> Secret:
    """Return a setting whose name says that its value is nobody's business."""
    value = token(rng, 16)
    form = rng.choice(
        (
            "password: {}",
            '"api_key": "{}"',
            "client_secret = '{}'",
            '"access_token":"{}"',
            "db_password={}",
            "secretKey: {}",
            "Authorization: Basic {}",
            "Authorization: Bearer {}",
            "Set-Cookie: session={}; Path=/",
            "_auth={}",
            "passwd '{}'",
        )
    )
    return Secret("named-secret", form.format(value), (value,))


def serial(rng: random.Random) -> Secret:
    """Return the number of one machine or of one part of it, with what stands before it."""
    digits = token(rng, 13, "123456789")
    board = f"{token(rng, 3, string.ascii_uppercase)}{token(rng, 7, LETTERS.upper())}"
    form, value = rng.choice(
        (
            ("Serial Number                         : {}", digits),
            ("GPU 00000000:01:00.0, serial {}", digits),
            ("System Serial Number: {}", board),
            ("Serial Number: {}", board),
            ("SerialNumber : {}", board),
            ('"serial": "{}"', digits),
            ("ID_SERIAL_SHORT={}", board),
            ("/sys/class/dmi/id/product_serial: {}", board),
            ("Board Serial: {}", board),
        )
    )
    return Secret("serial", form.format(value), (value,))


def machine_id(rng: random.Random) -> Secret:
    """Return what a system calls this one machine, disk or account."""
    plain = token(rng, 32, HEX)
    dashed = str(uuid.UUID(int=rng.getrandbits(128), version=4))
    sid = "S-1-5-21-" + "-".join(str(rng.randrange(10**8, 10**9)) for _ in range(3)) + "-1001"
    form, value = rng.choice(
        (
            ("machine-id: {}", plain),
            ("/etc/machine-id {}", plain),
            ("boot_id={}", dashed),
            ("product_uuid: {}", dashed.upper()),
            ("UUID: {}", dashed.upper()),
            ("user SID {}", sid),
            (r"HKEY_USERS\{}\Environment", sid),
            ('MachineGuid = "{}"', dashed),
        )
    )
    return Secret("machine-id", form.format(value), (value,))


def gpu_uuid(rng: random.Random) -> Secret:
    """Return what NVIDIA calls one GPU, or one slice of it."""
    value = str(uuid.UUID(int=rng.getrandbits(128), version=4))
    prefix = rng.choice(("GPU-", "MIG-", "GPU-"))
    tail = "/7/0" if prefix == "MIG-" and rng.random() < 0.5 else ""
    text = f"MIG-GPU-{value}{tail}" if tail else f"{prefix}{value}"
    return Secret("gpu-uuid", text, (value, value[:8]))


def email(rng: random.Random) -> Secret:
    """Return somebody's address."""
    user = f"{word(rng)}.{word(rng, 2)}"
    return Secret("email", f"{user}@{word(rng, 2)}.example", (user,))


def others_home(rng: random.Random) -> Secret:
    """Return the home of somebody else at this machine, on any system, in any way to write it."""
    user = word(rng) + rng.choice(("", "7", "-ml"))
    form = rng.choice(
        (
            "/home/{}/.cache/huggingface",
            "/Users/{}/Library/Caches/pip",
            r"C:\Users\{}\AppData\Local\pip",
            r"c:\\users\\{}\\anaconda3\\envs\\x",
            "C:/Users/{}/miniconda3",
            "/mnt/c/Users/{}/venv",
            "/c/Users/{}/AppData",
            "/export/home/{}/x",
            "file:///home/{}/wheels/x.whl",
            "/data/home/{}/proj",
            "~{}/src",
            r"\\fileserver\home\{}\x",
            r"C:\Documents and Settings\{}\x",
        )
    )
    return Secret("other-home", form.format(user), (user,))


def _aws(rng: random.Random) -> Secret:
    key, secret = token(rng, 16, string.ascii_uppercase + "234567"), token(rng, 40)
    text = f"aws_access_key_id = AKIA{key}\naws_secret_access_key = {secret}"
    return Secret("aws", text, (*pieces(key), *pieces(secret)))


MAKERS: Mapping[str, Callable[[random.Random], Secret]] = {
    "ipv4": lambda rng: _whole("ipv4", ipv4(rng)),
    "ipv6": lambda rng: _whole("ipv6", ipv6(rng)),
    "mac": lambda rng: _whole("mac", mac(rng)),
    "gpu-uuid": gpu_uuid,
    "serial": serial,
    "machine-id": machine_id,
    "github": lambda rng: _token("github", rng.choice(("ghp_", "gho_", "ghs_")), token(rng, 36)),
    "github-pat": lambda rng: _token("github-pat", "github_pat_11", token(rng, 70)),
    "gitlab": lambda rng: _token("gitlab", "glpat-", token(rng, 20)),
    "huggingface": lambda rng: _token("huggingface", "hf_", token(rng, 34, string.ascii_letters)),
    "aws": _aws,
    "jwt": jwt,
    "wandb": lambda rng: _token("wandb", "wandb login ", token(rng, 40, HEX)),
    "pypi": lambda rng: _token("pypi", "pypi-AgEIcHlwaS5vcmc", token(rng, 120)),
    "openai": lambda rng: _token("openai", rng.choice(("sk-", "sk-proj-")), token(rng, 48)),
    "anthropic": lambda rng: _token("anthropic", "sk-ant-api03-", token(rng, 80)),
    "slack": lambda rng: _token("slack", "xoxb-123456789012-", token(rng, 24)),
    "google": lambda rng: _token("google", "AIza", token(rng, 35)),
    "url-credentials": url_credentials,
    "url-token": url_token,
    "environment-value": assignment,
    "named-secret": named_secret,
    "password-option": password_option,
    "private-key": private_key,
    "public-key": public_key,
    "email": email,
    "other-home": others_home,
}
"""Kind -> what makes one. Those of the person (user, host, home) come beside them."""


def of_person(rng: random.Random, who: Person) -> Secret:
    """Return a text that tells who *who* is, or on which machine."""
    home, user, host = who.home, who.user, who.host
    needle = user if " " not in user else user.split()[0]
    doubled = home.replace("\\", "\\\\")
    forms = (
        ("own-home", f"{home}/venv/lib/python3.11/site-packages", needle),
        ("own-home", f"{doubled}/data/train.py", needle),
        ("own-home", home.replace("\\", "/") + "/x.py", needle),
        ("own-home", home.upper() if who.system == "win32" else home, needle),
        ("user", f"{user}@{host}:~$ python train.py", needle),
        ("user", f"drwxr-xr-x 2 {user} users 4096 Jan 1 torch", needle),
        ("user", f"uid=1000({user}) gid=1000({user})", needle),
        ("user", f"/scratch/{user}/run1", needle),
        ("user", f"/tmp/torchinductor_{user}/ab", needle),  # noqa: S108 - a text
        ("host", f"{host}:1234:1300 [0] NCCL INFO Bootstrap : Using eth0", host),
        ("host", f"{host}.{who.domain}", host),
        ("host", f"[W] The hostname of the client socket is {host.upper()}", host),
        ("host", f"tcp://{host}:29500", host),
        ("host", f"({host}) env", host),
    )
    kind, text, found = rng.choice(forms)
    return Secret(kind, text, (found,))
