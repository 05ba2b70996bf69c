"""How fast, and in how much memory, the shared objects of a torch are read, against pyelftools.

    python -m tests.bench.bench_elf FOLDER [--pyelftools FOLDER]

FOLDER is torch/lib of one wheel for Linux; the newest CUDA wheel is the largest there is. Run by
hand on a quiet machine, not in CI. Each side reads all files in a process of its own, *cold* after
the kernel was asked to forget them, then once more; what both say of every file has to be the same
(needed files, paths, name, versions, every symbol). pyelftools is no dependency of ours: give the
folder that ``pip install --target`` put it into, or leave that comparison out. The exit code is 1
when a target is missed.

Why a reader of our own is used: it takes the hashes that a file holds of its own symbols instead of
80,000 names, and only names that a relocation asks for. The ratio that is printed says how much
that is worth.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.bench import measured
from torchdoctor.linux import elf, objects

MOST_SECONDS, MOST_MB = 3.0, 300.0
LEAST_RATIO = 3.0
"""How many times slower pyelftools has to be, for a reader of our own to be worth its lines."""
CHECKOUT = Path(__file__).resolve().parents[2]


def ours(path: Path) -> dict[str, Any]:
    """Return what our reader says of one file."""
    file = elf.read(path)
    objects.of(file)
    return {
        "needed": list(file.needed),
        "soname": file.soname,
        "paths": [file.rpath, file.runpath],
        "wants": sorted([want.file, *sorted((*want.versions, *want.weak))] for want in file.wants),
        "offers": sorted(file.offers),
        "defined": len(file.defined),
        "sum": sum(file.defined),
        "lacks": bool(set(map(objects.symbol_hash, file.undefined)) & file.defined),
    }


def theirs(path: Path) -> dict[str, Any]:
    """Return what pyelftools says of one file, in the same form."""
    files: Any = importlib.import_module("elftools.elf.elffile")
    versions: Any = importlib.import_module("elftools.elf.gnuversions")
    with path.open("rb") as stream:
        file = files.ELFFile(stream)
        dynamic = next(s for s in file.iter_segments() if s.header.p_type == "PT_DYNAMIC")
        tags: dict[str, list[str]] = {"DT_NEEDED": [], "DT_SONAME": [], "DT_RPATH": []}
        tags["DT_RUNPATH"] = []
        for tag in dynamic.iter_tags():
            if tag.entry.d_tag in tags:
                tags[tag.entry.d_tag].append(
                    getattr(tag, tag.entry.d_tag.removeprefix("DT_").lower())
                )
        symbols = file.get_section_by_name(".dynsym").iter_symbols()
        undefined: set[int] = set()
        defined: set[int] = set()
        for symbol in symbols:
            if symbol["st_info"]["bind"] == "STB_LOCAL" or not symbol.name:
                continue
            there = symbol["st_shndx"] != "SHN_UNDEF"
            (defined if there else undefined).add(objects.symbol_hash(symbol.name))
        wants: list[list[str]] = []
        offers: list[str] = []
        for section in file.iter_sections():
            if isinstance(section, versions.GNUVerNeedSection):
                wants = [[v.name, *sorted(x.name for x in xs)] for v, xs in section.iter_versions()]
            elif isinstance(section, versions.GNUVerDefSection):
                offers = [next(iter(xs)).name for _, xs in section.iter_versions()]
        first = {key: next(iter(values), None) for key, values in tags.items()}
        return {
            "needed": tags["DT_NEEDED"],
            "soname": first["DT_SONAME"],
            "paths": [first["DT_RPATH"], first["DT_RUNPATH"]],
            "wants": sorted(wants),
            "offers": sorted(offers),
            "defined": len(defined),
            "sum": sum(defined),
            "lacks": bool(undefined & defined),
        }


def files(folder: Path) -> list[Path]:
    """Return the shared objects in *folder*."""
    return sorted(path for path in folder.iterdir() if ".so" in path.name)


def forget(folder: Path) -> None:
    """Ask the kernel to drop what it holds of the files in *folder*."""
    for path in files(folder):
        handle = os.open(path, os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def say(side: str, folder: str) -> None:
    """Print what *side* says of every file in *folder*; this is the process that is measured."""
    reader = ours if side == "ours" else theirs
    sys.stdout.write(json.dumps({path.name: reader(path) for path in files(Path(folder))}))


def run(side: str, folder: Path, output: Path, more: str = "") -> tuple[float, float]:
    """Let *side* read *folder* in a process of its own; return its seconds and its MB."""
    start = f"import sys; sys.path[:0] = [{str(CHECKOUT)!r}, {more!r}]"
    start = f"{start}; from tests.bench.bench_elf import say; say({side!r}, {str(folder)!r})"
    code, seconds, memory = measured.run([sys.executable, "-c", start], output)
    if code:
        raise SystemExit(f"{side} ended with {code}")
    return seconds, memory


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pyelftools", default="", metavar="FOLDER")
    options = parser.parse_args(arguments)
    folder = options.folder
    size = sum(path.stat().st_size for path in files(folder)) / 1e6
    sys.stdout.write(f"{len(files(folder))} files, {size:,.0f} MB\n")
    with tempfile.TemporaryDirectory() as work:
        said = Path(work, "ours")
        forget(folder)
        cold, memory = run("ours", folder, said)
        warm, _ = run("ours", folder, said)
        sys.stdout.write(f"ours: {cold:.2f} s cold, {warm:.2f} s warm, {memory:.0f} MB at most\n")
        met = cold <= MOST_SECONDS and memory <= MOST_MB
        if options.pyelftools:
            other = Path(work, "theirs")
            slow, more = run("theirs", folder, other, options.pyelftools)
            sys.stdout.write(f"pyelftools: {slow:.2f} s warm, {more:.0f} MB; {slow / warm:.1f}x\n")
            mine, others = json.loads(said.read_text()), json.loads(other.read_text())
            for name in mine:
                if mine[name] != others[name]:
                    raise SystemExit(f"{name}: {mine[name]}\nbut pyelftools: {others[name]}")
            met &= slow / warm >= LEAST_RATIO
    sys.stdout.write(f"{'PASS' if met else 'FAIL'}  at most {MOST_SECONDS} s, {MOST_MB:.0f} MB\n")
    return int(not met)


if __name__ == "__main__":
    raise SystemExit(main())
