"""What NCCL is told: by variables, and by files that hold more of them.

NCCL reads its files once, before anything else, and a variable that is set stays as it is; so the
first place that has a name counts. Source: NCCL src/misc/param.cc (initEnv).
"""

import os

SYSTEM = "/etc/nccl.conf"
LONGEST = 4096


def files() -> "tuple[str, str]":
    """Return the files in their order: the one that is named, else the user's; the system's."""
    return os.environ.get("NCCL_CONF_FILE") or "~/.nccl.conf", SYSTEM


def text_of(path: str) -> str:
    """Return the beginning of a small file, or nothing."""
    try:
        with open(os.path.expanduser(path), errors="backslashreplace") as file:
            return file.read(LONGEST).strip()
    except OSError:
        return ""


def conf() -> "dict[str, str]":
    """Return the text of those files that are there, in their order."""
    return {path: text for path in files() for text in [text_of(path)] if text}


def setting(name: str) -> "tuple[str, str]":
    """Return the value that NCCL takes for *name*, and the file that says it, if one does."""
    if name in os.environ:
        return os.environ[name], ""
    for path, text in conf().items():
        for line in text.splitlines():
            if line.startswith(name + "="):
                return line[len(name) + 1 :], path
    return "", ""
