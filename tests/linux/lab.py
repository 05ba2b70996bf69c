"""Arrangements of small shared objects, and what the real loader of this machine makes of them.

They are compiled with gcc, without any library, and opened by a small program in the order given;
LD_DEBUG=libs tells which file was taken for each name and why, the program prints every error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torchdoctor.linux import cache, disk, loader, system
from torchdoctor.linux.loader import Load, Machine

GCC = shutil.which("gcc")
LDCONFIG = shutil.which("ldconfig", path="/sbin:/usr/sbin:/usr/bin")

_PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **words) {
    for (int i = 1; i < count; i++) {
        int mode = RTLD_NOW | (words[i][0] == 'g' ? RTLD_GLOBAL : RTLD_LOCAL);
        if (!dlopen(words[i] + 2, mode)) printf("error %s\n", dlerror());
        else printf("opened\n");
        fflush(stdout);
    }
    return 0;
}
"""
_WHY = {
    "RPATH": "rpath",
    "RUNPATH": "runpath",
    "LD_LIBRARY_PATH": "LD_LIBRARY_PATH",
    "system search path": "default",
}


@dataclass(frozen=True)
class Library:
    """A shared object to compile: *path* below the arrangement's folder."""

    path: str
    soname: str | None = None
    needs: tuple[str, ...] = ()
    """Paths of other libraries of the arrangement, or ``-lz``."""
    rpath: str = ""
    runpath: str = ""
    defines: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    """Versions that it defines; each of *defines* is in the first."""
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Arrangement:
    """Libraries, and how they are opened: ``l:PATH`` locally, ``g:PATH`` for everybody."""

    libraries: tuple[Library, ...]
    opens: tuple[str, ...]
    library_path: str | None = None
    preload: str | None = None
    program: Library = field(default_factory=lambda: Library("program"))
    removed: tuple[str, ...] = ()
    """Files that are deleted after everything was linked."""
    replaced: Mapping[str, str] = field(default_factory=dict)
    """Files that take another's place after everything was linked."""
    copied: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    cached: tuple[str, ...] = ()
    """Folders that the cache of the loader is made of."""
    written: Mapping[str, bytes] = field(default_factory=dict)
    foreign: Mapping[str, str] = field(default_factory=dict)
    """Copies of others that say they are for another processor."""


@dataclass(frozen=True)
class Seen:
    """What became of it: (name, path, why) of each find, each error or None, the objects."""

    found: tuple[tuple[str, str, str], ...]
    answers: tuple[str | None, ...]
    objects: tuple[str, ...]


def build(arrangement: Arrangement, root: Path) -> None:
    """Compile everything below *root*."""
    build_libraries(arrangement.libraries, root)
    _compile(arrangement.program, root, shared=False)
    for name, target in arrangement.copied.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / target, root / name)
    for name in arrangement.removed:
        (root / name).unlink()
    for name, by in arrangement.replaced.items():
        shutil.move(root / by, root / name)
    for name, target in arrangement.links.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(target)
    written = dict(arrangement.written)
    for name, target in arrangement.foreign.items():
        content = (root / target).read_bytes()
        written[name] = content[:18] + b"\xf3\x00" + content[20:]  # RISC-V, in e_machine
    for name, content in written.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def build_libraries(libraries: Sequence[Library], root: Path) -> None:
    """Compile *libraries* below *root*; each after those it needs."""
    for library in libraries:
        _compile(library, root, shared=True)


_COMPILED: dict[Library, bytes] = {}
"""Those that are the same in every folder; a compiler takes longer than all the rest."""


def _compile(library: Library, root: Path, *, shared: bool) -> None:
    target = root / library.path
    target.parent.mkdir(parents=True, exist_ok=True)
    if library in _COMPILED:
        target.write_bytes(_COMPILED[library])
        target.chmod(0o755)
        return
    source = target.with_name(target.name + ".c")
    lines = [f"int {name}(void) {{ return 1; }}" for name in library.defines]
    lines += [f"int {name}(void);" for name in library.uses]
    calls = " + ".join(f"{name}()" for name in library.uses) or "0"
    label = re.sub(r"\W", "_", library.path)
    lines.append(f"int own_{label}(void) {{ return {calls}; }}")
    source.write_text("\n".join([*lines, *([] if shared else [_PROGRAM])]), encoding="ascii")
    command = [str(GCC), "-o", str(target), str(source), "-Wl,-z,lazy", *library.flags]
    if shared:
        command += ["-shared", "-fPIC", "-nostdlib", "-Wl,--unresolved-symbols=ignore-all"]
    if library.soname:
        command.append(f"-Wl,-soname,{library.soname}")
    if library.versions:
        script = target.with_name(target.name + ".map")
        first, *rest = library.versions
        nodes = [f"{first} {{ global: {' '.join(f'{d};' for d in library.defines)} local: *; }};"]
        nodes += [f"{name} {{ }};" for name in rest]
        script.write_text("\n".join(nodes), encoding="ascii")
        command.append(f"-Wl,--version-script={script}")
    command += ["-Wl,--no-as-needed"]
    command += [n if n.startswith("-l") else str(root / n) for n in library.needs]
    for text, tags in (
        (library.rpath, "--disable-new-dtags"),
        (library.runpath, "--enable-new-dtags"),
    ):
        if text:
            command += [f"-Wl,{tags}", f"-Wl,-rpath,{text.replace('@', str(root))}"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    if not (library.rpath or library.runpath or library.needs):
        _COMPILED[library] = target.read_bytes()


def real(arrangement: Arrangement, root: Path) -> Seen:
    """Return what the real loader does."""
    environ = {"PATH": os.defpath, "LD_DEBUG": "libs", "LC_ALL": "C"}
    environ["LD_DEBUG_OUTPUT"] = str(root / "debug")
    if arrangement.library_path is not None:
        environ["LD_LIBRARY_PATH"] = arrangement.library_path.replace("@", str(root))
    if arrangement.preload is not None:
        environ["LD_PRELOAD"] = arrangement.preload.replace("@", str(root))
    command = [str(root / "program"), *(w.replace("@", str(root)) for w in arrangement.opens)]
    if arrangement.cached:
        command = ["unshare", "-rm", "sh", "-c", _WITH_CACHE, "sh", str(root / "cache"), *command]
    done = subprocess.run(
        command, env=environ, cwd=root, capture_output=True, text=True, check=False, timeout=60
    )
    logs = [p.read_text(encoding="utf-8") for p in root.glob("debug.*")]
    # Those of sh and mount are beside it, or, where they became the program, before it.
    log = next(text for text in logs if str(root / "program") in text or len(logs) == 1)
    lines = done.stdout.splitlines()
    if done.returncode:
        found = re.search(r"error while loading shared libraries: (.*)", done.stderr)
        said = found[1] if found else done.stderr.strip().removeprefix(f"{root / 'program'}: ")
        return Seen(_found(log), (said,), ())
    answers = tuple(
        None if line == "opened" else line.removeprefix("error ")
        for line in lines
        if line == "opened" or line.startswith("error ")
    )
    objects = tuple(re.findall(r"calling init: (.+)", log))
    return Seen(_found(log), answers, objects)


_WITH_CACHE = """
mount --bind "$1" /etc/ld.so.cache || exit 99
shift
exec "$@"
"""


def can_have_a_cache() -> bool:
    """Tell whether a private cache of the loader can be put before a process here."""
    if not shutil.which("unshare") or not LDCONFIG:
        return False
    command = ["unshare", "-rm", "mount", "--bind", "/etc/hostname", "/etc/ld.so.cache"]
    done = subprocess.run(command, check=False, capture_output=True, timeout=30)
    return done.returncode == 0


def _found(log: str) -> tuple[tuple[str, str, str], ...]:
    """Return (name, path, why) of every search that LD_DEBUG=libs tells of."""
    found: list[tuple[str, str, str]] = []
    name = why = path = ""
    for raw in log.splitlines():
        line = raw.partition(":")[2].strip()
        if match := re.match(r"find library=(\S+) \[", line):
            if path:
                found.append((name, path, why))
            name, why, path = match[1], "", ""
        elif match := re.search(r"\((RPATH|RUNPATH|LD_LIBRARY_PATH|system search path)", line):
            why = _WHY[match[1]]
        elif line.startswith("search cache="):
            why = "cache"
        elif match := re.match(r"trying file=(\S+)", line):
            path = match[1]
        elif not line and path:
            found.append((name, path, why))
            name = why = path = ""
    return tuple(found)


def machine(arrangement: Arrangement, root: Path) -> Machine:
    """Return the facts that the prediction is made of."""
    place = str(root)
    interpreter = disk.OnDisk()[str(root / "program")].facts
    assert interpreter is not None and interpreter.interpreter  # noqa: PT018
    help_text = subprocess.run(
        [interpreter.interpreter, "--help"], capture_output=True, text=True, check=False
    ).stdout
    said = system.of_help(help_text, interpreter.machine)
    data = (root / "cache" if arrangement.cached else Path("/etc/ld.so.cache")).read_bytes()
    entries = cache.parse(data)
    kind = interpreter.machine
    path = arrangement.library_path
    return Machine(
        files=disk.OnDisk(lambda path: str(root / path)),
        program=str(root / "program"),
        preload=tuple(re.split("[: ]", (arrangement.preload or "").replace("@", place)))
        if arrangement.preload
        else (),
        library_path=tuple(re.split("[:;]", path.replace("@", place))) if path else (),
        cache=cache.table(entries, kind, said.capabilities),
        default=said.default,
        subfolders=said.subfolders,
        machine=kind,
        bits=interpreter.bits,
    )


def predicted(
    arrangement: Arrangement, root: Path, where: Machine | None = None
) -> tuple[Load, Seen]:
    """Return what the pure function says, as :func:`real` does, and its last step.

    *where* are the facts; those of the files below *root*, if not given.
    """
    where = where or machine(arrangement, root)
    load = loader.start(where)
    if load.problem:
        return load, Seen((), (load.problem.message,), ())
    answers: list[str | None] = []
    for word in arrangement.opens:
        target = word[2:].replace("@", str(root))
        load = loader.dlopen(where, load.process, target, everywhere=word[0] == "g")
        answers.append(load.problem.message if load.problem else None)
    found = tuple(
        (o.asked, o.path, o.how)
        for o in load.process.objects
        if o.how not in ("program", "path") and "/" not in o.asked
    )
    return load, Seen(found, tuple(answers), tuple(o.path for o in load.process.objects))


def make_cache(arrangement: Arrangement, root: Path) -> None:
    """Write the cache that ldconfig makes of the arrangement's folders."""
    folders = "\n".join(str(root / name) for name in arrangement.cached)
    (root / "conf").write_text(folders + "\n", encoding="utf-8")
    command: Sequence[str] = [
        str(LDCONFIG),
        "-f",
        str(root / "conf"),
        "-C",
        str(root / "cache"),
        "-X",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
