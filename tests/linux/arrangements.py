"""Arrangements of shared objects, at least three for each rule of the loader's search.

``@`` stands for the folder of the arrangement. ``dep`` is what ``top`` needs; where several files
are called so, the rule decides.
"""

from __future__ import annotations

from dataclasses import replace

from tests.linux.lab import Arrangement, Library

DEP = "libdep.so.1"


def dep(folder: str, *, defines: tuple[str, ...] = ("dep",), **more: object) -> Library:
    return Library(f"{folder}/{DEP}", soname=DEP, defines=defines, **more)  # type: ignore[arg-type]


def top(**more: object) -> Library:
    known: dict[str, object] = {"soname": "libtop.so", "needs": (f"a/{DEP}",), "uses": ("dep",)}
    return Library("top/libtop.so", **known | more)  # type: ignore[arg-type]


def ab(head: Library, **more: object) -> Arrangement:
    """Return ``top``, and a ``dep`` in each of the folders a, b and c."""
    libraries = (dep("a"), dep("b"), dep("c"), head)
    return Arrangement(libraries, ("l:@/top/libtop.so",), **more)  # type: ignore[arg-type]


RPATH = {
    "the file's own DT_RPATH": ab(top(rpath="@/b")),
    "DT_RPATH before LD_LIBRARY_PATH": ab(top(rpath="@/b"), library_path="@/c"),
    "DT_RPATH with $ORIGIN": ab(top(rpath="$ORIGIN/../c")),
    "DT_RPATH with ${ORIGIN}, a folder that is not there, and a second one": ab(
        top(rpath="${ORIGIN}/none:${ORIGIN}/../b:@/c")
    ),
    "DT_RPATH of the file that needed the file": Arrangement(
        (
            dep("a"),
            dep("b"),
            Library("m/libmid.so", soname="libmid.so", needs=(f"a/{DEP}",), uses=("dep",)),
            Library("top/libtop.so", needs=("m/libmid.so",), rpath="@/m:@/b"),
        ),
        ("l:@/top/libtop.so",),
    ),
    "DT_RPATH of the program": ab(top(), program=Library("program", rpath="@/c")),
    "DT_RPATH is not asked when the file has DT_RUNPATH": ab(
        top(runpath="@/none"), program=Library("program", rpath="@/c"), library_path="@/a"
    ),
    "the own DT_RPATH before that of the program": ab(
        top(rpath="@/b"), program=Library("program", rpath="@/c")
    ),
}
LIBRARY_PATH = {
    "LD_LIBRARY_PATH alone": ab(top(), library_path="@/b"),
    "LD_LIBRARY_PATH before DT_RUNPATH": ab(top(runpath="@/b"), library_path="@/c"),
    "the first folder of LD_LIBRARY_PATH that has it": ab(top(), library_path="@/none:@/c:@/b"),
    "LD_LIBRARY_PATH taken apart at semicolons": ab(top(), library_path="@/none;@/b"),
    "an empty entry of LD_LIBRARY_PATH is the working folder": ab(
        top(), library_path=":@/none", copied={DEP: f"b/{DEP}"}
    ),
    "LD_LIBRARY_PATH before the cache": ab(
        top(needs=("-lz",), uses=()), library_path="@/z", copied={"z/libz.so.1": f"b/{DEP}"}
    ),
    "a folder of glibc-hwcaps before its parent": ab(
        top(), library_path="@/b", copied={f"b/glibc-hwcaps/x86-64-v2/{DEP}": f"c/{DEP}"}
    ),
    "a folder of old capabilities before its parent": ab(
        top(), library_path="@/b", copied={f"b/x86_64/{DEP}": f"c/{DEP}"}
    ),
    "$ORIGIN in LD_LIBRARY_PATH is the folder of the program": ab(top(), library_path="$ORIGIN/b"),
}
RUNPATH = {
    "DT_RUNPATH alone": ab(top(runpath="@/b")),
    "DT_RUNPATH with $ORIGIN": ab(top(runpath="$ORIGIN/../b")),
    "DT_RUNPATH does not serve the needs of needs": Arrangement(
        (
            dep("a"),
            Library("m/libmid.so", soname="libmid.so", needs=(f"a/{DEP}",), uses=("dep",)),
            Library("top/libtop.so", needs=("m/libmid.so",), runpath="@/m:@/a"),
        ),
        ("l:@/top/libtop.so",),
    ),
    "DT_RUNPATH before the cache": ab(
        top(needs=("-lz",), uses=(), runpath="@/z"), copied={"z/libz.so.1": f"b/{DEP}"}
    ),
    "the second folder of DT_RUNPATH": ab(top(runpath="@/none:@/c")),
    "DT_RUNPATH through a folder that is a link: $ORIGIN is the link's": Arrangement(
        (dep("a"), dep("b"), dep("real/lib"), top(runpath="$ORIGIN/../b")),
        ("l:@/else/there/libtop.so",),
        links={"else/there": "../top", f"else/b/{DEP}": f"../../a/{DEP}"},
    ),
}
PRELOAD = {
    "LD_PRELOAD by path serves the soname": ab(top(rpath="@/b"), preload=f"@/c/{DEP}"),
    "LD_PRELOAD by name, found in LD_LIBRARY_PATH": ab(
        top(rpath="@/b"), preload=DEP, library_path="@/c"
    ),
    "two entries of LD_PRELOAD": ab(
        top(rpath="@/b"),
        preload=f"@/x/libx.so:@/c/{DEP}",
        copied={"x/libx.so": "top/libtop.so"},
    ),
    "an entry of LD_PRELOAD that is not there is passed over": ab(
        top(rpath="@/b"), preload=f"@/none/{DEP}"
    ),
    "a symbol of LD_PRELOAD serves a file that does not need it": Arrangement(
        (dep("a", defines=("other",)), Library("top/libtop.so", uses=("other",))),
        ("l:@/top/libtop.so",),
        preload=f"@/a/{DEP}",
    ),
}
LOADED = {
    "a soname that is loaded already": replace(
        ab(top(rpath="@/b")), opens=(f"l:@/c/{DEP}", "l:@/top/libtop.so")
    ),
    "the name of a file is not its soname": Arrangement(
        (dep("a"), dep("b"), Library(f"c/{DEP}", soname="libother.so"), top(rpath="@/b")),
        (f"l:@/c/{DEP}", "l:@/top/libtop.so"),
    ),
    "a soname under another file name": Arrangement(
        (dep("a"), dep("b"), Library("c/libx.so", soname=DEP, defines=("dep",)), top(rpath="@/b")),
        ("l:@/c/libx.so", "l:@/top/libtop.so"),
    ),
    "one file by two paths is one object": replace(
        ab(top(rpath="@/b")),
        opens=("l:@/c/libalias.so", f"l:@/c/{DEP}", "l:@/top/libtop.so"),
        links={"c/libalias.so": DEP},
    ),
    "a file loaded by a name that was searched": Arrangement(
        (dep("a"), dep("b"), top(rpath="@/b"), Library("q/libq.so", needs=(f"a/{DEP}",))),
        ("l:@/top/libtop.so", "l:@/q/libq.so"),
    ),
    "what failed is not loaded": replace(
        ab(top(rpath="@/b")),
        libraries=(
            *ab(top(rpath="@/b")).libraries,
            Library("w/libgone.so", soname="libgone.so"),
            Library("w/libw.so", needs=(f"a/{DEP}", "w/libgone.so"), rpath="@/c"),
        ),
        removed=("w/libgone.so",),
        opens=("l:@/w/libw.so", "l:@/top/libtop.so"),
    ),
}
CACHE = {
    "the cache": ab(top(), cached=("b",)),
    "the cache comes after DT_RUNPATH": ab(top(runpath="@/c"), cached=("b",)),
    "the first folder that ldconfig was told": ab(top(), cached=("c", "b")),
    "the cache names a file that is gone": ab(top(), cached=("b",), removed=(f"b/{DEP}",)),
    "the cache and glibc-hwcaps": ab(
        top(), cached=("b",), copied={f"b/glibc-hwcaps/x86-64-v2/{DEP}": f"c/{DEP}"}
    ),
    "LD_LIBRARY_PATH comes before it": ab(top(), cached=("b",), library_path="@/c"),
}
MISSING = {
    "a library that is nowhere": ab(top()),
    "a library that a needed one needs": Arrangement(
        (
            Library("m/libgone.so", soname="libgone.so.2"),
            Library("m/libmid.so", soname="libmid.so", needs=("m/libgone.so",)),
            Library("top/libtop.so", needs=("m/libmid.so",), rpath="@/m"),
        ),
        ("l:@/top/libtop.so",),
        removed=("m/libgone.so",),
    ),
    "the path that was asked for": Arrangement((), ("l:@/none.so",)),
    "a symbol that the found file lacks": Arrangement(
        (dep("a"), dep("b", defines=("older",)), top(rpath="@/b")), ("l:@/top/libtop.so",)
    ),
    "the first of several symbols": Arrangement(
        (
            dep("a", defines=("one", "two", "three")),
            dep("b", defines=("two",)),
            top(rpath="@/b", uses=("three", "two", "one")),
        ),
        ("l:@/top/libtop.so",),
    ),
    "the inner file is bound first": Arrangement(
        (
            dep("a", defines=("deep",)),
            dep("b", defines=("older",)),
            Library("m/libmid.so", soname="libmid.so", needs=(f"a/{DEP}",), uses=("deep",)),
            Library("top/libtop.so", needs=("m/libmid.so",), uses=("lost",), rpath="@/m:@/b"),
        ),
        ("l:@/top/libtop.so",),
    ),
    "a local object lends no symbols": Arrangement(
        (dep("a", defines=("lent",)), Library("top/libtop.so", uses=("lent",))),
        (f"l:@/a/{DEP}", "l:@/top/libtop.so"),
    ),
    "a global object lends them": Arrangement(
        (dep("a", defines=("lent",)), Library("top/libtop.so", uses=("lent",))),
        (f"g:@/a/{DEP}", "l:@/top/libtop.so"),
    ),
    "a version that the found file lacks": Arrangement(
        (
            dep("a", versions=("DEP_2", "DEP_1")),
            dep("b", versions=("DEP_1",)),
            top(rpath="@/b"),
        ),
        ("l:@/top/libtop.so",),
    ),
    "a file without versions serves every one": Arrangement(
        (dep("a", versions=("DEP_2",)), dep("b", needs=("-lc",), uses=("puts",)), top(rpath="@/b")),
        ("l:@/top/libtop.so",),
    ),
    "a symbol of a version, and the found file has no versions": Arrangement(
        (dep("a", versions=("DEP_2",)), dep("b", defines=("older",)), top(rpath="@/b")),
        ("l:@/top/libtop.so",),
    ),
    "a symbol of a version that the found file has, without the symbol": Arrangement(
        (
            dep("a", versions=("DEP_2",)),
            dep("b", defines=("older",), versions=("DEP_2",)),
            top(rpath="@/b"),
        ),
        ("l:@/top/libtop.so",),
    ),
    "two symbols of two versions, and one that is of none": Arrangement(
        (
            dep("a", versions=("DEP_2",)),
            Library("e/libeve.so", soname="libeve.so", defines=("eve",), versions=("EVE_1",)),
            Library("f/libeve.so", soname="libeve.so", defines=("odd",), versions=("EVE_1",)),
            dep("b", versions=("DEP_2",)),
            top(needs=(f"a/{DEP}", "e/libeve.so"), uses=("eve", "dep", "lost"), rpath="@/f:@/b"),
        ),
        ("l:@/top/libtop.so",),
    ),
    "a program whose library is gone": Arrangement(
        (dep("a"),), (), program=Library("program", needs=(f"a/{DEP}",), rpath="@/none")
    ),
    "a program that needs a newer version": Arrangement(
        (dep("a", versions=("DEP_2", "DEP_1")), dep("b", versions=("DEP_1",))),
        (),
        program=Library("program", needs=(f"a/{DEP}",), uses=("dep",), rpath="@/b"),
    ),
}
UNFIT = {
    "a file of another processor is passed over": ab(
        top(rpath="@/foreign:@/b"), foreign={f"foreign/{DEP}": f"c/{DEP}"}
    ),
    "a file that is no library stops the search": ab(
        top(rpath="@/stub:@/b"), written={f"stub/{DEP}": b"version https://git-lfs\n" * 9}
    ),
    "an empty file stops the search": ab(top(rpath="@/stub:@/b"), written={f"stub/{DEP}": b""}),
    "a folder of that name stops the search": ab(
        top(rpath="@/odd:@/b"), written={f"odd/{DEP}/nothing": b""}
    ),
}
ALL: dict[str, dict[str, Arrangement]] = {
    "LD_PRELOAD": PRELOAD,
    "RPATH": RPATH,
    "LD_LIBRARY_PATH": LIBRARY_PATH,
    "RUNPATH": RUNPATH,
    "cache": CACHE,
    "loaded": LOADED,
    "missing": MISSING,
    "unfit": UNFIT,
}
