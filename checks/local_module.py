"""Whether a file or folder of one's own takes the place of torch or of a module torch imports.

Python looks into the folder of the script (or the working folder) and into ``PYTHONPATH`` first. A
script called ``torch.py``, a folder ``torch`` with an ``__init__.py``, or the source checkout of
PyTorch as the working folder is then imported as torch: ``module 'torch' has no attribute ...``,
``No module named 'torch._C'``, ``partially initialized module``. A ``random.py`` or ``types.py``
there is imported by torch itself, and fails in the middle of ``import torch``.

``python -c "import torch; print(torch.__file__)"`` from that folder shows it. A folder without
``__init__.py`` loses against an installed package and is in order; so is an editable install.

The fix is to rename the file, to leave the folder, or to unset ``PYTHONPATH``.

Sources: https://docs.python.org/3/library/sys_path_init.html,
https://docs.python.org/3/reference/import.html#path-entry-finders
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from torchdoctor import effects, places, steps, trials
from torchdoctor.facts import (
    Distribution,
    Facts,
    ImportTrial,
    Interpreter,
    Module,
    Unknown,
    items_of,
)
from torchdoctor.model import Effect, Evidence, Finding, Layer, Severity, Step

FAMILY = "environment"
FINDS = ("local-module-shadow",)

PACKAGES = ("torch", "torchvision", "torchaudio", "numpy", "triton", "functorch")


def check(
    local_modules: Mapping[str, Module | None] | Unknown,
    modules: Mapping[str, Module | None],
    distributions: tuple[Distribution, ...] | Unknown,
    interpreter: Interpreter | Unknown,
    variables: Mapping[str, str] | Unknown,
    trial: ImportTrial | Unknown,
) -> Iterator[Finding]:
    """Compare what a script in the working folder imports with what is installed."""
    local = {} if isinstance(local_modules, Unknown) else local_modules
    for name, module in local.items():
        everywhere = modules.get(name)
        if module is None or module.origin is None:
            continue
        if everywhere is None or everywhere.origin != module.origin:
            yield _by_folder(name, module, everywhere)
    pythonpath = "" if isinstance(variables, Unknown) else variables.get("PYTHONPATH", "")
    for name in PACKAGES:
        own = _installed(name, distributions, interpreter)
        there = modules.get(name)
        if not own and there and _is_file_of_own(there) and name not in local:
            yield _by_file(there, trial)
        if own and there and there.origin and _before(there, own, interpreter, pythonpath):
            yield _by_path(there, own, pythonpath, trial)


def _is_file_of_own(module: Module) -> bool:
    """Tell whether *module* is a lone file: every package here is a folder."""
    return places.last(module.origin or "") == f"{module.name}.py"


def _by_file(there: Module, trial: ImportTrial | Unknown) -> Finding:
    """Return what is wrong with a script that was imported under the name of a package."""
    name, origin = there.name, there.origin or there.folder
    return Finding(
        "local-module-shadow",
        "error" if name in effects.FAMILY else "warning",
        f"import {name} takes the script {origin}, which hides the real {name}.",
        (
            Evidence(f"modules.{name}", origin, "the traceback"),
            *trials.evidence(trial),
        ),
        tuple(_rename(name, there, _gone(name), leave=False)),
    )


def _gone(name: str) -> Effect:
    """Return the effect of no such script being on the path; what is imported then is open."""

    def effect(facts: Facts) -> Facts:
        known = {} if isinstance(facts.modules, Unknown) else facts.modules
        left = {key: module for key, module in known.items() if key != name}
        return effects.change(modules=left)(facts)

    return effect


def _installed(
    name: str,
    distributions: tuple[Distribution, ...] | Unknown,
    interpreter: Interpreter | Unknown,
) -> Distribution | None:
    """Return the distribution of *name* in the environment's own site-packages."""
    if isinstance(distributions, Unknown) or isinstance(interpreter, Unknown):
        return None
    return next(
        (
            d
            for d in distributions
            if d.name == name
            and not d.user_site
            and not d.editable
            and any(places.same(d.folder, site) for site in interpreter.site_packages)
        ),
        None,
    )


def _before(
    there: Module, own: Distribution, interpreter: Interpreter | Unknown, pythonpath: str
) -> bool:
    """Tell whether *there* is outside what installers write to: the editable finder has none."""
    if not there.folder or places.same(there.folder, own.folder):
        return there.origin is not None and there.origin.endswith(f"{there.name}.py")
    if any(places.same(there.folder, entry) for entry in places.entries(pythonpath)):
        return True
    if isinstance(interpreter, Unknown) or not interpreter.site_packages:
        return False
    known = (*interpreter.site_packages, interpreter.user_site or "")
    return not any(places.same(there.folder, folder) for folder in known)


def _by_folder(name: str, module: Module, everywhere: Module | None) -> Finding:
    origin = module.origin or module.folder
    ours = name in PACKAGES
    severity: Severity = "error" if name in effects.FAMILY else "warning"
    like = " (a source checkout of PyTorch looks like that)" if _is_folder(module) else ""
    hidden = f"the installed {name}" if ours else f"the standard library's {name}"
    return Finding(
        "local-module-shadow",
        severity,
        f"A script started in {module.folder} imports {origin}{like if name == 'torch' else ''} "
        f"in place of {hidden}" + ("." if ours else ", which torch imports too."),
        (
            Evidence(f"local_modules.{name}", origin, "the working folder"),
            Evidence(
                f"modules.{name}",
                (everywhere.origin or everywhere.folder) if everywhere else "not there",
                "sys.path",
            ),
        ),
        tuple(_rename(name, module, _local(name, everywhere), leave=ours)),
        confidence="certain" if ours else "likely",
    )


def _by_path(
    there: Module,
    own: Distribution,
    pythonpath: str,
    trial: ImportTrial | Unknown,
) -> Finding:
    name, origin = there.name, there.origin or there.folder
    real = origin.endswith(("__init__.py", "__init__.pyc")) and trials.works(trial)
    effect = _back(own)
    listed = any(places.same(there.folder, e) for e in places.entries(pythonpath))
    unset = steps.unset_variable("PYTHONPATH", why=f"{there.folder} is in it.")
    found: list[Step] = [replace(unset, effect=effects.then(unset.effect, effect))] * listed
    if not _is_folder(there) or not listed:
        found += _rename(name, there, effect, leave=False)
    return Finding(
        "local-module-shadow",
        "error" if name in effects.FAMILY and not real else "warning",
        f"import {name} takes {origin}, which hides the installed {name} {own.version}"
        + (f": {there.folder} is in PYTHONPATH." if listed else "."),
        (
            Evidence(f"modules.{name}", origin, "sys.path"),
            Evidence("distributions", f"{name} {own.version}", own.folder),
            *((Evidence("variables.PYTHONPATH", pythonpath, "the environment"),) * listed),
            *trials.evidence(trial),
        ),
        tuple(found),
    )


def _is_folder(module: Module) -> bool:
    return places.last(module.origin or "").startswith("__init__.")


def _rename(name: str, module: Module, effect: Effect, *, leave: bool) -> Iterator[Step]:
    why = f"import {name} then takes the installed one again."
    if leave and _is_folder(module):
        yield steps.by_hand(
            "leave-folder",
            f"Start Python in another folder than {module.folder}",
            why=why,
            layer=Layer.SCRIPT,
            cost=steps.VARIABLE,
            effect=effect,
            bash=('cd "$HOME"',),
        )
    path = module.origin or module.folder
    if _is_folder(module):
        path = path[: -len(places.last(path)) - 1]
    yield replace(steps.rename_path(path, f"local_{places.last(path)}", why=why), effect=effect)


def _local(name: str, everywhere: Module | None) -> Effect:
    """Return the effect of nothing in the working folder being called *name*."""

    def effect(facts: Facts) -> Facts:
        if isinstance(facts.local_modules, Unknown):
            return facts
        return facts.but(local_modules={**facts.local_modules, name: everywhere})

    return effect


def _back(own: Distribution) -> Effect:
    """Return the effect of the path leading again to what *own* has become by then."""

    def effect(facts: Facts) -> Facts:
        known = items_of(facts.distributions)
        named = [d for d in known if d.name == own.name and not d.user_site]
        here = [d for d in named if places.same(d.folder, own.folder)]
        now = next(iter((*here, *named)), own)
        origin = places.join(now.folder, now.name, "__init__.py")
        module = Module(now.name, origin, now.folder)
        changes: dict[str, object] = {}
        for field in ("modules", "local_modules"):
            fact = getattr(facts, field)
            if not isinstance(fact, Unknown):
                changes[field] = {**fact, now.name: module}
        if now.name in effects.FAMILY:
            changes[now.name] = effects.owned_by(now)
        return effects.change(**changes)(facts)

    return effect
