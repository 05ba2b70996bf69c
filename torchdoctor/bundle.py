"""A snapshot in a ZIP file that can be sent to somebody, and what such a file holds.

A bundle is hostile until it was read: how much it may hold is known before anything is unpacked,
and nothing of it is ever written to a disk.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, BinaryIO

from torchdoctor.model import DoctorError
from torchdoctor.snapshot import LARGEST, Snapshot, dump

MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
SNAPSHOT = "snapshot.json"
INSIDE = "what-is-inside.txt"
MOST = 64
"""Files in a bundle."""
DIRECTORY = 64 * 1024
"""Bytes of the list of its files."""
TEXTS = (".txt", ".log", ".md", ".json", ".jsonl", ".out", ".err")
_END = struct.Struct("<4s4H2LH")
_END_MARK, _ZIP64_MARK = b"PK\x05\x06", b"PK\x06\x07"
_TAIL = (1 << 16) + _END.size
_AGAIN = "ask for a new one, made with: torchdoctor collect -o bundle.zip"
_ABOUT = {
    "environment": "the Python environment: interpreter, packages, variables that matter to torch",
    "host": "the system: distribution, kernel, limits, containers, GPUs on the bus",
    "driver": "what the NVIDIA driver says",
    "nvidia-smi": "what nvidia-smi prints",
    "nvidia-smi query": "what nvidia-smi prints",
    "linux": "what the interpreter has loaded",
    "linux loader": "where the dynamic loader looks",
    "linux files": "which shared objects torch needs, and which it gets",
    "windows": "what Windows says: runtimes, policies, memory",
    "windows files": "which DLLs torch needs, and which it gets",
    "windows trace": "which DLLs Windows loaded for torch",
    "build tools": "which compilers, nvcc, ninja and ptxas an extension would be built with",
    "all-reduce": "an all_reduce that was tried, rank by rank",
}
_BY_FIRST_WORD = {"text": "a text that was added", "build": "what it says of its version"}


def pack(snapshot: Snapshot) -> bytes:
    """Return *snapshot* as a bundle, with a list of what it holds."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_entry(INSIDE), "\n".join([*inside(snapshot), ""]))
        archive.writestr(_entry(SNAPSHOT), dump(snapshot))
    return made.getvalue()


def _entry(name: str) -> zipfile.ZipInfo:
    """Return an entry that tells nothing of when, and by whom, it was made."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def inside(snapshot: Snapshot) -> Iterator[str]:
    """Yield what *snapshot* holds, part by part, a line each."""
    told = "redacted" if snapshot.redacted else "NOT REDACTED"
    yield f"A snapshot of torchdoctor {snapshot.tool}, {snapshot.collected_at}, {told}."
    yield "Taken out: names of user and machine, home folders, addresses, serial numbers, UUIDs,"
    yield "tokens, passwords, and the values of variables that torchdoctor does not know."
    for name, run in snapshot.probes.items():
        said = len(run.stdout.text) + len(run.stderr.text) + len(str(run.data))
        first = name.partition(" ")[0]
        about = _ABOUT.get(name) or _BY_FIRST_WORD.get(first, "how an import went")
        yield f"  {name:<18} {said:>9,} characters: {about}"


def unpack(stream: BinaryIO, name: str) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield (name, stream of bytes) for each text in the bundle *stream*, called *name*.

    No stream gives more than a snapshot may have. Nothing is written.

    Raises:
        DoctorError: it is damaged, or not as a bundle may be.

    """
    _refuse_by_its_end(stream, name)
    try:
        with zipfile.ZipFile(stream) as archive:
            entries = archive.infolist()
            for entry in entries:
                _refuse(entry, name)
            _refuse_together(entries, name)
            for entry in entries:
                if entry.filename != INSIDE and not entry.is_dir():
                    yield entry.filename, _content(archive, entry, name)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise DoctorError(f"{name} is a damaged bundle ({error}); {_AGAIN}.", file=name) from error
    except (NotImplementedError, RuntimeError) as error:  # another compression; a password
        raise DoctorError(f"{name} cannot be unpacked ({error}); {_AGAIN}.", file=name) from error


def _refuse_by_its_end(stream: BinaryIO, name: str) -> None:
    """Raise where the end of the file says that it holds too much, before anything is read."""
    size = stream.seek(0, io.SEEK_END)
    if size > LARGEST:
        raise DoctorError(
            f"{name} has {size >> 20} MB; a bundle has at most {LARGEST >> 20} MB.", file=name
        )
    stream.seek(max(0, size - _TAIL))
    tail = stream.read(_TAIL)
    at = tail.rfind(_END_MARK)
    if at < 0 or len(tail) < at + _END.size:
        raise DoctorError(f"{name} is a bundle that is cut off; {_AGAIN}.", file=name)
    _, _, _, here, files, length, _, _ = _END.unpack_from(tail, at)
    if max(here, files) > MOST or length > DIRECTORY or _ZIP64_MARK in tail[max(0, at - 20) : at]:
        many = f"{files:,}" if files < 0xFFFF else "very many"  # noqa: PLR2004 - as ZIP has it
        raise DoctorError(f"{name} holds {many} files; a bundle holds at most {MOST}.", file=name)
    stream.seek(0)


def _refuse(entry: zipfile.ZipInfo, name: str) -> None:
    shown = ascii(entry.orig_filename)[1:-1][:80]
    parts = entry.filename.replace("\\", "/").split("/")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if ".." in parts or not parts[0] or ":" in parts[0] or "\\" in entry.orig_filename:
        why = f"{shown}, a path that leads out of it"
    elif kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        why = f"{shown}, which is a link or no file"
    elif entry.flag_bits & 1:
        why = f"{shown}, which is encrypted"
    elif entry.file_size > LARGEST:
        why = f"{shown}, which has {entry.file_size >> 20} MB unpacked"
    elif not entry.is_dir() and not entry.filename.lower().endswith(TEXTS):
        why = f"{shown}, which is neither a snapshot nor a text"
    else:
        return
    raise DoctorError(f"{name} holds {why}; it is not read.", file=name)


def _refuse_together(entries: list[zipfile.ZipInfo], name: str) -> None:
    names = [entry.filename for entry in entries]
    if len(set(names)) < len(names):
        raise DoctorError(f"{name} holds two files of one name; it is not read.", file=name)
    if (whole := sum(entry.file_size for entry in entries)) > LARGEST:
        raise DoctorError(
            f"{name} has {whole >> 20} MB unpacked; a bundle has at most {LARGEST >> 20} MB.",
            file=name,
        )


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> IO[bytes]:
    with archive.open(entry) as member:
        raw = member.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise DoctorError(f"{name} unpacks to more than it says; it is not read.", file=name)
    return io.BytesIO(raw)
