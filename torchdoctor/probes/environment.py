"""Look at the environment of the interpreter that runs this: paths, packages, files.

Its source is piped to the interpreter under test, with one argument, a JSON object:

``cwd``     the user's working folder, for what a script there would import
``verify``  quick, full or none: how RECORD is compared with the disk (``quick``)
``profile`` build: look, too, for what the interpreter and torch give to those who compile
``ours``    names of environment variables that the caller added, so that they are not told
``redact``  accepted and of no effect: what was collected is redacted where it is saved

One JSON object a line; the last one has ``done``. What fails is told under ``errors``, by the
name of what was looked at. Nothing that is examined is imported, nothing is written.
"""

from __future__ import annotations

import sys

LOADED = frozenset(sys.modules)  # before our own imports: what no script can shadow any more

import gc  # noqa: E402
import os  # noqa: E402 - the interpreter has it already
from _thread import allocate_lock, start_new_thread  # noqa: E402 - built in
from stat import S_ISDIR, S_ISREG  # noqa: E402 - as os
from time import monotonic  # noqa: E402 - built in

FAMILIES = (
    "PYTHON",
    "CUDA",
    "NVIDIA",
    "NCCL",
    "GLOO",
    "LD_",
    "DYLD_",
    "KMP_",
    "OMP_",
    "MKL_",
    "HIP",
    "HSA_",
    "ROCR",
    "TORCH",
    "TRITON_",
    "PYTORCH_",
    "XDG_",
    "CONDA_",
    "PIP_",
    "UV_",
    "SLURM",
    "PBS",
    "LSB",
    "OMPI",
    "PMI",
    "CUBLAS",
    "CUDNN",
)
SINGLE = (
    "VIRTUAL_ENV",
    "PATH",
    "MASTER_ADDR",
    "MASTER_PORT",
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "NNODES",
    "NODE_RANK",
)
SECRETS = ("TOKEN", "PASSWORD", "SECRET", "JWT", "CREDENTIAL")
LONGEST_VARIABLE = 32768

MODULES = ("torch", "torchvision", "torchaudio", "numpy", "triton", "functorch")
BUILDS = ("torch", "torchvision", "torchaudio")
# What torch imports early and users like to call their scripts.
SHADOWED = (
    "random",
    "types",
    "typing",
    "numbers",
    "queue",
    "code",
    "token",
    "copy",
    "platform",
    "logging",
    "inspect",
    "json",
    "socket",
    "statistics",
    "operator",
    "string",
    "select",
    "signal",
    "enum",
    "profile",
    "calendar",
)

# Distributions whose requirements, wheel tags and files are looked at.
COMPANIONS = (
    "numpy",
    "triton",
    "xformers",
    "flash-attn",
    "bitsandbytes",
    "functorch",
    "tbb",
    "apex",
    "deepspeed",
    "vllm",
    "tensorrt",
    "rocm",
)
COMPANION_STARTS = (
    "torch",
    "nvidia-",
    "cuda-",
    "pytorch-",
    "triton-",
    "intel-",
    "mkl",
    "onemkl",
    "flash-attn-",
    "xformers-",
    "rocm-",
    "bitsandbytes-",
    "tensorrt-",
)

MOST = 100  # names told of missing or altered files, of leftovers, of failures
MOST_ENTRIES = 20000
SMALL = 256 * 1024
RECORD_BLOCK = 4 * 1024 * 1024
LONGEST_ROW = 1024 * 1024
MOST_JOBS = 200000  # files that wait to be hashed
MOST_THREADS = 32
PATIENCE = 1.0  # seconds without a word of how far it is
LARGEST_CONDA = 64 * 1024 * 1024
OPEN = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)

errors: dict[str, str] = {}
TOLD = [0]  # how many of them have been said


# ---- answering ---------------------------------------------------------------------------------


def open_answer() -> int:
    """Return a descriptor for the answer; what anything else prints goes to standard error."""
    try:
        sys.stdout.flush()  # what was printed before must not come after, or in between
    except BaseException as failure:
        errors["sys.stdout"] = said_by(failure)
    answer = os.dup(1)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.write(answer, b"\n")  # what was printed before may lack its own
    return answer


def say(**said: object) -> None:
    """Write one line of the answer."""
    if len(errors) != TOLD[0]:
        TOLD[0] = len(errors)
        said["errors"] = errors
    text = dumps(said)
    if "\\ud" in text:
        text = dumps(plain(said))
    line = text.encode("ascii") + b"\n"
    while line:
        line = line[os.write(ANSWER, line) :]


def plain(value: object) -> object:
    """Return *value* without the lone surrogates that stand for undecodable bytes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {plain(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def said_by(failure: BaseException) -> str:
    """Return an exception as one bounded line."""
    try:
        text = str(failure)
    except BaseException:
        text = "<no text>"
    return ("%s: %s" % (type(failure).__name__, text))[:500]


def note(what: str, failure: BaseException) -> None:
    """Keep what failed on one file or folder; there may be thousands of them."""
    if len(errors) < MOST:
        errors[what] = said_by(failure)


# ---- reading files -----------------------------------------------------------------------------


def read_bytes(path: str, most: int) -> bytes:
    """Return the first *most* bytes of a file. A pipe or a device does not hold us up."""
    handle = os.open(path, OPEN)
    try:
        blocks = []
        while most > 0:
            block = os.read(handle, min(most, 1 << 20))
            blocks.append(block)
            most -= len(block)
            if len(block) < 1 << 20:
                break
        return b"".join(blocks)
    finally:
        os.close(handle)


def read_text(path: str, most: int = 16384) -> str:
    """Return the first *most* bytes of a file as text."""
    return read_bytes(path, most).decode("utf-8", "backslashreplace")


def text_or_none(path: str, most: int = 16384) -> str | None:
    """Return the text of a file; None when it is not there. A failure is told."""
    try:
        return read_text(path, most)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as failure:
        note(path, failure)
        return None


# ---- the interpreter ---------------------------------------------------------------------------


def look_at_interpreter() -> dict[str, object]:
    """Return what the interpreter says of itself, and the marks that its owners leave."""
    import sysconfig

    prefix = sys.prefix
    library = os.path.dirname(os.__file__)
    names = [name for name in dir(sys.flags) if name[:2] not in ("__", "n_")]
    flags = {name: getattr(sys.flags, name) for name in names}
    beside = os.path.dirname(sys.executable or "")
    exists = os.path.exists
    return {
        "executable": sys.executable,
        "base_executable": getattr(sys, "_base_executable", None),
        "version": sys.version,
        "version_info": list(sys.version_info),
        "prefix": prefix,
        "base_prefix": sys.base_prefix,
        "real_prefix": getattr(sys, "real_prefix", None),
        "flags": {name: value for name, value in flags.items() if isinstance(value, int)},
        "implementation": sys.implementation.name,
        "cache_tag": sys.implementation.cache_tag,
        "bits": 64 if sys.maxsize > 1 << 32 else 32,
        "system": sys.platform,
        "platform": sysconfig.get_platform(),
        "machine": os.uname().machine if hasattr(os, "uname") else None,
        "soabi": sysconfig.get_config_var("SOABI"),
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "debug": hasattr(sys, "gettotalrefcount"),
        "library": library,
        "pyvenv_cfg": text_or_none(os.path.join(prefix, "pyvenv.cfg")),
        "externally_managed": exists(os.path.join(library, "EXTERNALLY-MANAGED")),
        "conda_meta": os.path.isdir(os.path.join(prefix, "conda-meta")),
        "pixi": exists(os.path.join(prefix, "conda-meta", "pixi")),
        "pipx": exists(os.path.join(prefix, "pipx_metadata.json")),
        "uv_tool": exists(os.path.join(prefix, "uv-receipt.toml")),
        "embedded": bool(beside) and embedded(beside),
        "pyenv_root": os.environ.get("PYENV_ROOT"),
        "projects": [
            os.path.join(folder, name)
            for folder in sorted({OPTIONS_CWD, os.path.dirname(prefix)} - {""})
            for name in ("poetry.lock", "pdm.lock", "uv.lock", "pixi.toml", "pixi.lock")
            if exists(os.path.join(folder, name))
        ],
    }


def look_at_build(modules: dict[str, object]) -> dict[str, object]:
    """Return whether Python.h is there, and which architectures and which C++ torch takes."""
    import re
    import sysconfig

    include = sysconfig.get_path("include")
    torch = modules.get("torch")
    origin = torch.get("origin") if isinstance(torch, dict) else None
    names, standards = None, []
    if origin:
        text = text_or_none(
            os.path.join(os.path.dirname(origin), "utils", "cpp_extension.py"), 1 << 20
        )
        standards = re.findall(r"""['"]-std=c\+\+([12]\d)['"]""", text or "")
        listed = re.search(r"\bsupported_arches = \[([^\]]{1,2000})\]", text or "")
        names = re.findall(r"""['"](\d+\.\d[a-z]?)['"]""", listed.group(1)) if listed else None
    return {
        "include": include,
        "headers": os.path.isfile(os.path.join(include, "Python.h")),
        "arch_names": names,
        "standard": max(standards) if standards else None,
    }


def embedded(folder: str) -> bool:
    """Tell whether a file beside the interpreter fixes its search path (python311._pth)."""
    try:
        return any(n.startswith("python") and n.endswith("._pth") for n in os.listdir(folder))
    except OSError:
        return False


def look_at_variables(ours: list[str]) -> dict[str, object]:
    """Return the environment variables of the families that matter, and what was withheld."""
    told, withheld = {}, []
    for name, value in os.environ.items():
        known = name in SINGLE or name.startswith(FAMILIES)
        if not known or name in ours or name.startswith("TORCHDOCTOR"):
            continue
        if any(word in name for word in SECRETS):
            withheld.append(name)
        else:
            told[name] = value[:LONGEST_VARIABLE]
    return {"told": told, "withheld": withheld}


# ---- the path ----------------------------------------------------------------------------------


def users_path(entire: list[str], cwd: str) -> list[str]:
    """Return sys.path, *entire* in this process, as a user in *cwd* has it.

    Without the first entry, which stands for the program on standard input; and with relative
    entries of PYTHONPATH against *cwd*, where site has made them absolute against ours.
    """
    path = entire[1:] if entire[:1] == [""] else entire
    given = os.environ.get("PYTHONPATH", "")
    parts = given.split(os.pathsep) if given and not sys.flags.ignore_environment else []
    moved = {
        os.path.normpath(os.path.join(HERE, part)): os.path.normpath(os.path.join(cwd, part))
        for part in parts
        if not os.path.isabs(part)
    }
    return [moved.get(entry, entry) for entry in path] if cwd else path


def library_first(path: list[str]) -> list[str]:
    """Return *path* in an order in which our own imports find the standard library's modules."""
    library = os.path.dirname(os.__file__)
    inside = (library, os.path.join(library, "lib-dynload"))
    own = [p for p in path if p in inside or os.path.basename(p) == "DLLs" or p.endswith(".zip")]
    return own + [p for p in path if p and p not in own]


def look_at_user_site() -> dict[str, object]:
    """Return whether the user site is on, and its folder."""
    site = sys.modules.get("site")
    folder = getattr(site, "USER_SITE", None)
    return {
        "enabled": getattr(site, "ENABLE_USER_SITE", None) is True,
        "folder": folder if isinstance(folder, str) else None,
    }


def folders_of(path: list[str]) -> tuple[list[str], list[str]]:
    """Return the folders on *path*, each once whatever it is called, and the other entries."""
    seen, folders, others = set(), [], []
    for entry in path:
        try:
            status = os.stat(entry)
        except (OSError, ValueError):
            others.append(entry)
            continue
        if not S_ISDIR(status.st_mode):
            others.append(entry)
        elif (status.st_dev, status.st_ino) not in seen:
            seen.add((status.st_dev, status.st_ino))
            folders.append(entry)
    return folders, others


def site_folders(folders: list[str], user: str | None) -> list[str]:
    """Return those of *folders* in which site looks for .pth files and pip installs."""
    known = {user}
    ask = getattr(sys.modules.get("site"), "getsitepackages", None)
    if ask is not None:
        known.update(ask())
    return [
        folder
        for folder in folders
        if folder in known or os.path.basename(folder) in ("site-packages", "dist-packages")
    ]


# ---- distributions -----------------------------------------------------------------------------


def look_at_packages(folders: list[str], sites: list[str], user: str | None) -> dict[str, object]:
    """Return every distribution on the path, leftovers of pip, .pth files and egg links."""
    found: dict[str, list[object]] = {key: [] for key in ("distributions", *AT_SITES.values())}
    for folder in folders:
        try:
            names = sorted(os.listdir(folder))
        except OSError as failure:
            note(folder, failure)
            continue
        mine = {"user_site": True} if folder == user else {}
        if folder.endswith(".egg") and "EGG-INFO" in names:
            found["distributions"].append({**distribution(folder, "EGG-INFO"), **mine})
        for name in names:
            if name.endswith((".dist-info", ".egg-info")) and name[0] != "~":
                if len(found["distributions"]) < MOST_ENTRIES:
                    found["distributions"].append({**distribution(folder, name), **mine})
            elif folder in sites and (name[0] == "~" or name.endswith((".pth", ".egg-link"))):
                kind = AT_SITES["~" if name[0] == "~" else name[name.rfind(".") :]]
                if len(found[kind]) < MOST:
                    found[kind] += at_site(kind, folder, name)
    return {**found}


AT_SITES = {"~": "leftovers", ".pth": "pth", ".egg-link": "egg_links"}


def at_site(kind: str, folder: str, name: str) -> list[object]:
    """Return what is told of a file in a site folder that is no distribution, if anything."""
    path = os.path.join(folder, name)
    if kind == "leftovers":
        return [{"name": name, "folder": folder}] if os.path.isdir(path) else []
    text = text_or_none(path, 4096) or ""
    if kind == "egg_links":
        return [{"name": normal(name[:-9]), "folder": text.split("\n")[0].strip()}]
    runs = [n for n, t in enumerate(text.split("\n"), 1) if t.startswith(("import ", "import\t"))]
    return [{"folder": folder, "name": name, "text": text, "imports": runs}]


def normal(name: str) -> str:
    """Return the name of a distribution as indexes compare it."""
    name = name.lower().replace("_", "-").replace(".", "-")
    while "--" in name:
        name = name.replace("--", "-")
    return name


def is_companion(name: str) -> bool:
    """Tell whether *name* is torch or something that is built for it."""
    return name in COMPANIONS or name.startswith(COMPANION_STARTS)


def distribution(folder: str, metadata: str) -> dict[str, object]:
    """Return what the metadata folder (or the single egg-info file) called *metadata* says.

    The name and version in the file win over the folder's name: that is what pip shows and
    compares. The folder's are told where the file has none.
    """
    home = os.path.join(folder, metadata)
    stem = os.path.basename(folder)[:-4] if metadata == "EGG-INFO" else metadata.rsplit(".", 1)[0]
    named, _, rest = stem.partition("-")
    said: dict[str, object] = {"folder": folder, "metadata": metadata}
    wheel = metadata.endswith(".dist-info")
    file = os.path.join(home, "METADATA" if wheel else "PKG-INFO")
    try:
        try:
            found = headers(file)
        except NotADirectoryError:  # egg-info of distutils: one file
            file = home
            found = headers(home)
    except OSError as failure:
        said["problem"] = said_by(failure)
        found = {}
    name = normal(found.get("name", named)[:200])
    said["name"] = name
    said["version"] = found.get("version", rest.split("-")[0])[:200]
    lacking = [key for key in ("name", "version") if key not in found]
    if lacking and "problem" not in said:
        said["problem"] = "no " + " and no ".join(lacking)
    if wheel:
        more_of_wheel(home, said)
    if is_companion(name):
        said["requires"] = requirements(file) if found else []
        if wheel:
            text = text_or_none(os.path.join(home, "WHEEL"), 65536) or ""
            tags = [t[4:].strip() for t in text.split("\n") if t.startswith("Tag:")]
            said["tags"] = tags[:MOST]
    return said


def more_of_wheel(home: str, said: dict[str, object]) -> None:
    """Add who installed a wheel, and from where when that was no index."""
    installer = text_or_none(os.path.join(home, "INSTALLER"), 256)
    if installer and installer.strip():
        said["installer"] = installer.strip().split("\n")[0]
    direct = text_or_none(os.path.join(home, "direct_url.json"), 65536)
    if direct is None:
        return
    try:
        content = loads(direct)
        how = content.get("dir_info") or {}
        said["direct_url"] = {"url": str(content["url"]), "editable": how.get("editable") is True}
    except Exception as failure:
        note(os.path.join(home, "direct_url.json"), failure)


def header_lines(path: str, most: int) -> tuple[list[str], bool]:
    """Return the header lines within the first *most* bytes, and whether they are all."""
    text = read_text(path, most)
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    head, blank, _ = text.partition("\n\n")
    lines, all_there = head.split("\n"), bool(blank) or len(text) < most - 3
    return (lines if all_there else lines[:-1]), all_there


def headers(path: str) -> dict[str, str]:
    """Return name and version out of the headers of METADATA or PKG-INFO, the first of each."""
    found: dict[str, str] = {}
    for most in (4096, 1 << 20):
        lines, all_there = header_lines(path, most)
        for line in lines:
            key, _, value = line[:300].partition(":")
            if key.lower() in ("name", "version"):
                found.setdefault(key.lower(), value.strip())
        if all_there or ("name" in found and "version" in found):
            break
    return {key: value for key, value in found.items() if value}


def requirements(path: str) -> list[str]:
    """Return the Requires-Dist headers."""
    lines, all_there = header_lines(path, 16384)
    if not all_there:
        lines, _ = header_lines(path, 1 << 20)
    wanted = "requires-dist:"
    return [t[14:].strip()[:500] for t in lines if t[:14].lower() == wanted][:500]


# ---- what an import would take -----------------------------------------------------------------


def find(name: str) -> object:
    """Return the spec by which ``import NAME`` would go, or None. Imports nothing."""
    for finder in list(sys.meta_path):
        ask = getattr(finder, "find_spec", None)
        if ask is None or type(finder).__name__ == "DistutilsMetaFinder":
            continue  # the latter is setuptools' own: it knows none of our names, and is slow
        if builds(finder, name):
            raise RuntimeError("%s builds %s when asked" % (type(finder).__name__, name))
        spec = ask(name, None)
        if spec is not None:
            return spec
    return None


def builds(finder: object, name: str) -> bool:
    """Tell whether merely asking *finder* for *name* would start a compiler.

    Editable installs of meson-python do that, and those of scikit-build-core when told to.
    """
    inside = getattr(finder, "__dict__", {})
    if type(finder).__name__ == "MesonpyMetaFinder":
        return name in inside.get("_top_level_modules", ())
    return bool(inside.get("rebuild_flag")) and name in inside.get("known_wheel_files", ())


def describe(spec: object, path: list[str]) -> dict[str, object]:
    """Return where a module would come from: its file, its package folder, the path's entry."""
    origin = getattr(spec, "origin", None)
    if not isinstance(origin, str) or not getattr(spec, "has_location", False):
        origin = None
    places = getattr(spec, "submodule_search_locations", None)
    package = None
    if places is not None:
        inside = [place for place in places if isinstance(place, str)]
        package = os.path.dirname(origin) if origin else (inside[0] if inside else None)
    holder = os.path.dirname(package or origin or "")
    bare = holder.rstrip("/\\")
    held = [entry for entry in path if holder and entry.rstrip("/\\") == bare]
    return {"origin": origin, "package": package, "folder": held[0] if held else ""}


def loaded(name: str, path: list[str]) -> dict[str, object]:
    """Return where a module came from that was imported before us, by a .pth or sitecustomize."""
    module = sys.modules.get(name)
    inside = getattr(module, "__dict__", {})
    said = describe(inside.get("__spec__"), path)
    said["loaded"] = True
    return said


def look_for(names: tuple[str, ...], path: list[str], what: str) -> dict[str, object]:
    """Return what each of *names* would come from with *path*; those that fail are left out."""
    found: dict[str, object] = {}
    before = sys.path[:]
    sys.path[:] = path
    try:
        for name in names:
            try:
                if name in LOADED:
                    found[name] = loaded(name, path)
                else:
                    spec = find(name)
                    found[name] = None if spec is None else describe(spec, path)
            except BaseException as failure:
                errors["%s %s" % (what, name)] = said_by(failure)
    finally:
        sys.path[:] = before
    return found


def look_in(cwd: str, path: list[str]) -> dict[str, object]:
    """Return what a script in *cwd* would import; of the standard library only what it shadows."""
    if getattr(sys.flags, "safe_path", False):
        return look_for(MODULES, path, "local module")
    os.listdir(cwd)  # raises for a folder that is not there or not ours to read
    with_cwd = [cwd, *path]
    found = look_for(MODULES, with_cwd, "local module")
    stems = {name.split(".")[0].lower() for name in os.listdir(cwd)}
    taken = tuple(n for n in SHADOWED if n in stems and n not in LOADED)
    for name, module in look_for(taken, with_cwd, "local module").items():
        if isinstance(module, dict) and module["folder"] == cwd:
            found[name] = module
    return found


def look_at_versions(modules: dict[str, object]) -> dict[str, object]:
    """Return the text of version.py of each build that would be imported."""
    found: dict[str, object] = {}
    for name in BUILDS:
        module = modules.get(name)
        package = module.get("package") if isinstance(module, dict) else None
        if isinstance(package, str):
            found[name] = text_or_none(os.path.join(package, "version.py"))
    return found


# ---- conda -------------------------------------------------------------------------------------


def look_at_conda() -> dict[str, object] | None:
    """Return the records of conda-meta and the commands in its history; None without conda."""
    home = os.path.join(sys.prefix, "conda-meta")
    try:
        names = sorted(os.listdir(home))
    except (FileNotFoundError, NotADirectoryError):
        return None
    packages: list[object] = []
    for name in names:
        if name.endswith(".json") and len(packages) < MOST_ENTRIES:
            try:
                packages.append(conda_record(read_bytes(os.path.join(home, name), LARGEST_CONDA)))
            except Exception as failure:
                note(os.path.join(home, name), failure)
    history = text_or_none(os.path.join(home, "history"), 1 << 20) or ""
    commands = [line[7:500] for line in history.split("\n") if line.startswith("# cmd: ")]
    return {"prefix": sys.prefix, "packages": packages, "commands": commands[-10:]}


def conda_record(raw: bytes) -> dict[str, object]:
    """Return name, version, build, channel, and how many files of torch a record claims.

    A record of torch has megabytes. As conda, mamba and pixi write it, each key of the outer
    object has a line of its own, told by its indent: then nothing else need be read.
    """
    keys = ("name", "version", "build", "channel")
    start = raw[:64].replace(b"\r", b"")
    indent = start[: start.find(b'"')].partition(b"\n")[2] if start[:2] == b"{\n" else b""
    if indent and not indent.strip():
        lines = [outer(raw, indent, key) for key in keys]
        if all(lines):
            said: dict[str, object] = {k: loads(v) for k, v in zip(keys, lines)}  # noqa: B905
            files_in = outer_list(raw, indent, b"files")
            said["torch_files"] = sum(
                files_in.count(mark + b"site-packages/torch/") for mark in (b"/", b'"')
            )
            return said
    content = loads(raw)
    said = {key: content[key] for key in keys}
    marks = ("/site-packages/torch/", '"site-packages/torch/')
    files = content.get("files") or ()
    said["torch_files"] = sum(1 for f in files if any(m in '"%s' % f for m in marks))
    return said


def outer(raw: bytes, indent: bytes, key: str) -> bytes:
    """Return the JSON text of a string in the outer object of *raw*; empty when it is not there."""
    begin = raw.find(b"\n" + indent + b'"' + key.encode() + b'": "')
    if begin < 0:
        return b""
    line = raw[begin + 1 : raw.find(b"\n", begin + 1)].strip()
    return line.partition(b": ")[2].rstrip(b",")


def outer_list(raw: bytes, indent: bytes, key: bytes) -> bytes:
    """Return the text of a list in the outer object of *raw*; empty for one that is empty."""
    begin = raw.find(b"\n" + indent + b'"' + key + b'": [')
    line = raw[begin + 1 : raw.find(b"\n", begin + 1)]
    if begin < 0 or line.rstrip(b"\r,").endswith(b"]"):
        return b""
    return raw[begin : raw.find(b"\n" + indent + b"]", begin)]


# ---- RECORD against the disk -------------------------------------------------------------------


class Compared:
    """One distribution against its RECORD: what is told of it, and how many hashes are due."""

    def __init__(self, one: dict[str, object]) -> None:
        self.folder = str(one["folder"])
        self.record = os.path.join(self.folder, str(one["metadata"]), "RECORD")
        self.told = {key: one[key] for key in ("name", "version", "folder", "metadata")}
        self.counts = dict.fromkeys(("files", "missing", "altered", "hashed", "unreadable"), 0)
        self.names: dict[str, list[str]] = {"missing": [], "altered": []}
        self.due = 0

    def add(self, kind: str, path: str) -> None:
        """Count one file; of the missing and the altered the first are named."""
        self.counts[kind] += 1
        if kind in self.names and len(self.names[kind]) < MOST:
            self.names[kind].append(path)

    def said(self) -> dict[str, object]:
        """Return what is told."""
        found: dict[str, object] = {key + "_count": self.counts[key] for key in self.names}
        found.update({key: n for key, n in self.counts.items() if key not in self.names})
        found.update({"missing": self.names["missing"], "altered": sorted(self.names["altered"])})
        return {**self.told, **found}


def compare(found: Compared, mode: str) -> list[tuple[Compared, str, str, int]]:
    """Compare sizes; return what to hash (path, hash, size): size has decided of the others.

    Raises:
        OSError: RECORD or the folder cannot be read.
        ValueError: RECORD is no list of files.

    """
    # torch has 14,000 rows: what each of them costs is as little as can be, and a short name is
    # looked up faster than a long one.
    stat, full, files, jobs = os.stat, mode == "full", 0, []
    os.chdir(found.folder)
    try:
        for block in blocks_of_rows(found.record):
            suspects = []
            for row in block:
                path, digest, size = row
                if (not size and not digest) or "__pycache__/" in path:
                    continue
                if not full and "/include/" in path:  # three files in four; no import reads them
                    continue
                files += 1
                try:
                    if stat(path).st_size != int(size):
                        suspects.append(row)
                    elif full or path.count("/") == 1:
                        jobs.append((found, path, digest, int(size)))
                except (OSError, ValueError):
                    suspects.append(row)
            look_closer(suspects, found)
    finally:
        os.chdir(HERE)
    found.counts["files"] = files
    return [job for job in jobs if is_to_be_hashed(job, full=full)]


def is_to_be_hashed(job: tuple[Compared, str, str, int], *, full: bool) -> bool:
    """Tell whether the hash of a file says whether it is as it was installed."""
    _, path, digest, size = job
    known = digest[:7] == "sha256=" and not is_outside(path) and not is_about(path)
    return known and (full or size < SMALL)


def blocks_of_rows(record: str):  # type: ignore[no-untyped-def] # noqa: ANN201 - without typing
    """Yield the rows of RECORD, some thousands at a time, however many there are."""
    handle = os.open(record, OPEN)
    try:
        if not S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("RECORD is no file")
        rest = b""
        block = os.read(handle, RECORD_BLOCK)
        while block:
            whole = block.rfind(b"\n") + 1
            if whole:
                yield rows((rest + block[:whole]).decode("utf-8", "surrogateescape"))
                rest = block[whole:]
            else:
                rest += block
            if len(rest) > LONGEST_ROW:
                raise ValueError("RECORD has a line of more than %d MB" % (LONGEST_ROW >> 20))
            block = os.read(handle, RECORD_BLOCK)
        yield rows(rest.decode("utf-8", "surrogateescape"))
    finally:
        os.close(handle)


def rows(text: str) -> list[list[str]]:
    """Return the rows of RECORD that have three fields."""
    if "\r" in text:  # looking for two characters at once takes longer than all the rest
        text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    if '"' in text:
        import csv

        found = list(csv.reader(lines))
    else:  # three times as fast, and no comma can be in a name without quotes
        found = [line.rsplit(",", 2) for line in lines]
    return [row for row in found if len(row) == 3]  # noqa: PLR2004 - name, hash, size


def is_outside(path: str) -> bool:
    """Tell whether a file is not the package's own: launchers are written by who installs."""
    return path[:2] == ".." or path[:1] in "/\\" or path[1:2] == ":" or "/../" in path


def is_about(path: str) -> bool:
    """Tell whether a file is metadata, which other installers rewrite."""
    return path.partition("/")[0].endswith(".dist-info")


def look_closer(suspects: list[list[str]], found: Compared) -> None:
    """Sort the files that are not there in the recorded size."""
    for path, _, size in suspects:
        if is_about(path) and path.endswith(("/INSTALLER", "/REQUESTED", "/direct_url.json")):
            continue
        try:
            os.stat(path)
        except PermissionError:
            found.add("unreadable", path)
        except (OSError, ValueError):  # not there, a loop of links, a name no file can have
            found.add("missing", path)
        else:
            if size.isdigit() and not is_outside(path) and not is_about(path):
                found.add("altered", path)


class Hashing:
    """Files that are hashed side by side; whose all are is told at once."""

    def __init__(self, jobs: list[tuple[Compared, str, str, int]], tell) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001
        self.todo = iter(jobs)
        self.many = len(jobs)
        self.total = sum(job[3] for job in jobs)
        self.done = 0
        self.tell = tell
        self.lock = allocate_lock()
        self.next_word = monotonic() + PATIENCE

    def run(self, workers: int) -> None:
        """Hash them all, in *workers* threads: the hash of a block needs no interpreter."""
        waits = []
        for _ in range(min(workers, self.many) - 1):
            wait = allocate_lock()
            wait.acquire()
            try:
                start_new_thread(self.work_and_release, (wait,))
            except RuntimeError:  # as many as there may be
                break
            waits.append(wait)
        self.work()
        for wait in waits:
            wait.acquire()

    def work_and_release(self, wait) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001
        """Work, and let *wait* go at the end of it."""
        try:
            self.work()
        finally:
            wait.release()

    def work(self) -> None:
        """Hash one file after the other until none is left."""
        buffer = bytearray(1 << 20)
        while True:
            with self.lock:
                job = next(self.todo, None)
            if job is None:
                return
            found, path, digest, size = job
            try:
                actual = digest_of(os.path.join(found.folder, path), buffer)
                kind = "hashed"
            except (OSError, ValueError):
                kind = "unreadable"
            with self.lock:
                found.add(kind, path)
                if kind == "hashed" and actual != digest[7:].rstrip("="):
                    found.add("altered", path)
                found.due -= 1
                self.done += size
                if not found.due:
                    self.tell(found)
                if monotonic() >= self.next_word:
                    self.next_word = monotonic() + PATIENCE / 4
                    say(progress=[self.done, self.total])


def digest_of(path: str, buffer: bytearray) -> str:
    """Return the SHA-256 of a file as RECORD writes it; empty for what is no file."""
    try:
        from _hashlib import openssl_sha256 as sha256  # hashlib takes twice as long to import
    except ImportError:
        from hashlib import sha256
    from binascii import b2a_base64

    state = sha256()
    view = memoryview(buffer)
    handle = os.open(path, OPEN)
    try:
        if not S_ISREG(os.fstat(handle).st_mode):
            return ""  # a folder or a pipe in its place
        file = open(handle, "rb", 0, closefd=False)  # noqa: SIM115 - closed as the handle
        length = file.readinto(buffer)
        while length:
            state.update(view[:length])
            length = file.readinto(buffer)
    finally:
        os.close(handle)
    return b2a_base64(state.digest()).decode().strip("=\n").replace("+", "-").replace("/", "_")


def look_at_records(distributions: list[dict[str, object]], mode: str) -> None:
    """Compare torch and its companions with their RECORD, and tell of each as soon as it is."""
    wanted = [
        d
        for d in distributions
        if is_companion(str(d["name"])) and str(d["metadata"]).endswith(".dist-info")
    ]
    wanted.sort(key=lambda d: d["name"] not in BUILDS)
    records: list[object] = []

    def tell(found: Compared) -> None:
        records.append(found.said())
        say(records=records)

    say(records=records)
    waiting: list[tuple[Compared, str, str, int]] = []
    for one in wanted:
        found = Compared(one)
        try:
            jobs = compare(found, mode)
        except FileNotFoundError:
            records.append(dict(found.told, problem="no RECORD"))
        except Exception as failure:
            records.append(dict(found.told, problem=said_by(failure)))
        else:
            found.due = len(jobs)
            waiting += sorted(jobs, key=lambda job: -job[3])  # so that none is late and alone
            if not jobs:
                tell(found)
            elif mode != "full" or len(waiting) > MOST_JOBS:
                Hashing(waiting, tell).run(cores() if mode == "full" else 1)
                waiting = []
    Hashing(waiting, tell).run(cores())
    say(records=records)


def cores() -> int:
    """Return how many threads there is work for: as many as processors that this one may use."""
    ask = getattr(os, "sched_getaffinity", None)
    return min(MOST_THREADS, (len(ask(0)) if ask else os.cpu_count()) or 1)


# ---- all of it ---------------------------------------------------------------------------------


def tell(name: str, look, *arguments, **more):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN002, ANN003, ANN201
    """Say under *name* what *look* returns, and return it; a failure is told, and gives None."""
    try:
        said = look(*arguments, **more)
    except BaseException as failure:
        errors[name] = said_by(failure)
        return None
    say(**{name: said})
    return said


def main(options: dict[str, object]) -> None:
    """Look at everything, the cheap and the certain first."""
    mode = str(options.get("verify", "quick"))
    say(verify=mode, cwd=OPTIONS_CWD)
    tell("interpreter", look_at_interpreter)
    ours = options.get("ours")
    tell("variables", look_at_variables, ours if isinstance(ours, list) else [])
    tell("search_path", list, PATH)
    user = (tell("user_site", look_at_user_site) or {}).get("folder")
    folders, others = folders_of(PATH)
    say(not_folders=others)
    sites = tell("site_packages", site_folders, folders, user) or []
    packages = tell("packages", look_at_packages, folders, sites, user) or {}
    modules = tell("modules", look_for, MODULES, PATH, "module") or {}
    tell("local_modules", look_in, OPTIONS_CWD, PATH)
    tell("pip", look_for, ("pip",), PATH, "module")
    tell("versions", look_at_versions, modules)
    tell("conda", look_at_conda)
    if options.get("profile") == "build":
        tell("build", look_at_build, modules)
    if mode != "none":
        try:
            look_at_records(packages.get("distributions", []), mode)
        except BaseException as failure:
            errors["records"] = said_by(failure)
    say(done=True)


gc.disable()  # a short life, and many small lists
ANSWER = open_answer()
HERE = os.getcwd()
ENTIRE = [str(entry) for entry in sys.path]
sys.path[:] = library_first(ENTIRE)  # for what we import, from here to the end
from json import dumps, loads  # noqa: E402 - only now does it come from the standard library

OPTIONS = loads(sys.argv[1]) if len(sys.argv) > 1 else {}
OPTIONS_CWD = str(OPTIONS.get("cwd") or "")
PATH = users_path(ENTIRE, OPTIONS_CWD)
main(OPTIONS)
os._exit(0)  # whatever others have registered for the end must not print, or hang
