r"""Whether a package in the user site hides the environment's own.

``pip install --user`` (and pip by itself, when it may not write to the system) puts packages into
``~/.local/lib/pythonX.Y`` or ``%APPDATA%\Python``. Every Python of that version sees them, and a
conda environment looks there *before* its own site-packages. So an old torch from the user site is
imported together with the environment's torchvision, and ``torchvision::nms does not exist`` or
``torch.library has no attribute register_fake`` is blamed on the wrong package.

``python -c "import torch; print(torch.__file__)"`` shows it. A system Python whose only torch is
in the user site is in order, and so is a copy that the environment does not have itself.

The fix is ``PYTHONNOUSERSITE=1`` for this environment (for good: ``conda env config vars set``),
or to uninstall the copy in the user site. Do it before any version is changed: what looks like a
second fault is mostly gone then.

Sources: https://peps.python.org/pep-0370/, https://docs.python.org/3/using/cmdline.html
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from torchdoctor import effects, installers, places, steps, trials
from torchdoctor.facts import (
    Build,
    Conda,
    Distribution,
    Facts,
    ImportTrial,
    Interpreter,
    Module,
    Symptom,
    Unknown,
    items_of,
)
from torchdoctor.model import CannotTell, Effect, Evidence, Finding, Step

FAMILY = "environment"
FINDS = ("user-site-shadow",)

NAMES = ("torch", "torchvision", "torchaudio", "numpy", "triton")
ENVIRONMENTS = frozenset(("venv", "virtualenv", "uv", "conda", "pipx", "uv-tool"))


def check(
    interpreter: Interpreter,
    modules: Mapping[str, Module | None] | Unknown,
    distributions: tuple[Distribution, ...] | Unknown,
    conda: Conda | Unknown | None,
    torch: Build | Unknown | None,
    symptoms: tuple[Symptom, ...] | Unknown,
    trial: ImportTrial | Unknown,
    companion_trials: Mapping[str, ImportTrial] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare where each module would come from with what the environment has itself."""
    if interpreter.user_site is None:
        return
    if isinstance(modules, Unknown) or isinstance(distributions, Unknown):
        misfit = _misfit(symptoms)
        if _is_told(interpreter, modules, conda, torch, misfit):
            yield _told(interpreter, conda, torch, misfit, facts)
            return
        raise CannotTell("where torch is imported from, or what is installed, is not known in full")
    if interpreter.kind not in ENVIRONMENTS:
        return
    hidden = [
        (module, theirs, own)
        for name in NAMES
        if (module := modules.get(name))
        and places.same(module.folder, interpreter.user_site)
        and (own := _copy(distributions, name, user=False))
        and (theirs := _copy(distributions, name, user=True))
    ]
    if not hidden:
        return
    tried = [trial, *({} if isinstance(companion_trials, Unknown) else companion_trials).values()]
    broken = next((one for one in tried if trials.failed(one)), None)
    said = " and ".join(f"{t.name} {t.version} hides {o.version}" for _, t, o in hidden)
    yield Finding(
        "user-site-shadow",
        "error" if broken else "warning",
        f"In the user site {interpreter.user_site}, which comes before the environment's own "
        f"packages, {said}.",
        (
            *(
                Evidence(f"modules.{m.name}", m.origin or m.folder, "sys.path")
                for m, _, _ in hidden
            ),
            *(Evidence("distributions", f"{o.name} {o.version}", o.folder) for _, _, o in hidden),
            *trials.evidence(broken),
        ),
        tuple(_steps(facts, tuple(own.name for _, _, own in hidden))),
    )


def _misfit(symptoms: tuple[Symptom, ...] | Unknown) -> Symptom | None:
    """Return a message by which the torch that is imported is not the one of its neighbours."""
    known = items_of(symptoms)
    return next(
        (
            s
            for s in known
            if s.name in ("nms-operator-missing", "operator-missing")
            or (s.name == "name-missing" and s.values.get("module", "").startswith("torch"))
            or (s.name == "undefined-symbol" and s.values.get("family") == "torch")
        ),
        None,
    )


def _is_told(
    interpreter: Interpreter,
    modules: Mapping[str, Module | None] | Unknown,
    conda: Conda | Unknown | None,
    torch: Build | Unknown | None,
    misfit: Symptom | None,
) -> bool:
    """Tell whether a part of the facts shows it: torch comes from the user site and does not fit.

    Or conda's own torch is of another version than the one that is imported.
    """
    if not isinstance(modules, Unknown):
        module = modules.get("torch")
        there = module and places.same(module.folder, interpreter.user_site or "")
        return bool(there and misfit and interpreter.kind in ENVIRONMENTS)
    record = conda.get("pytorch") if isinstance(conda, Conda) else None
    return record is not None and isinstance(torch, Build) and torch.public != record.version


def _told(
    interpreter: Interpreter,
    conda: Conda | Unknown | None,
    torch: Build | Unknown | None,
    misfit: Symptom | None,
    facts: Facts,
) -> Finding:
    record = conda.get("pytorch") if isinstance(conda, Conda) else None
    what = f"torch {torch.version}" if isinstance(torch, Build) else "torch"
    own = f" and hides conda's own {record.version}" if record else ""
    seen = [Evidence("interpreter.user_site", interpreter.user_site or "", "the paths shown")]
    if record:
        seen.append(Evidence("conda.pytorch", f"{record.version} {record.build}", "conda"))
    if misfit:
        seen.append(Evidence("symptoms", misfit.text.strip()[:300], misfit.source))
    return Finding(
        "user-site-shadow",
        "error" if misfit else "warning",
        f"{what} comes from the user site {interpreter.user_site}, before the environment's own "
        f"packages{own}.",
        tuple(seen),
        tuple(_steps(facts, ("torch",))),
        confidence="likely",
    )


def _copy(distributions: tuple[Distribution, ...], name: str, *, user: bool) -> Distribution | None:
    return next((d for d in distributions if d.name == name and d.user_site == user), None)


def _steps(facts: Facts, names: tuple[str, ...]) -> Iterator[Step]:
    switch = steps.set_variable(
        "PYTHONNOUSERSITE", "1", why="The environment then imports its own packages only."
    )
    yield replace(switch, effect=effects.then(switch.effect, _without(names, everything=True)))
    gone = steps.uninstall(
        steps.by_pip(facts), names[0], why="pip takes the copy that is imported first."
    )
    yield replace(
        gone,
        name=steps.slug("uninstall-user", *names),
        title=f"Uninstall {' and '.join(names)} from the user site",
        commands=installers.uninstall(steps.by_pip(facts).interpreter, names),
        effect=_without(names, everything=False),
    )


def _without(names: tuple[str, ...], *, everything: bool) -> Effect:
    """Return the effect of the user site being off, or without its copies of *names* only."""

    def effect(facts: Facts) -> Facts:
        changes: dict[str, object] = {}
        known = items_of(facts.distributions)
        left = tuple(d for d in known if not (d.user_site and (everything or d.name in names)))
        if not isinstance(facts.distributions, Unknown):
            changes["distributions"] = left
        in_full = not isinstance(facts.distributions, Unknown) and not isinstance(
            facts.modules, Unknown
        )
        if (everything or not in_full) and isinstance(facts.interpreter, Interpreter):
            changes["interpreter"] = replace(facts.interpreter, user_site=None)
        modules = {} if isinstance(facts.modules, Unknown) else dict(facts.modules)
        if not in_full:
            modules.pop("torch", None)
            changes |= _of_conda(facts, left)
            left = ()
        for own in (d for d in left if d.name in names and not d.user_site):
            origin = places.join(own.folder, own.name, "__init__.py")
            modules[own.name] = Module(own.name, origin, own.folder)
            if own.name in effects.FAMILY:
                changes[own.name] = effects.owned_by(own)
        if modules or not isinstance(facts.modules, Unknown):
            changes["modules"] = modules
        return effects.change(**changes)(facts)

    return effect


def _of_conda(facts: Facts, known: tuple[Distribution, ...]) -> dict[str, object]:
    """Return the torch that is imported without the user site: conda's, or one to be looked at."""
    record = facts.conda.get("pytorch") if isinstance(facts.conda, Conda) else None
    if record is None:
        return {} if isinstance(facts.torch, Unknown) else {"torch": effects.TO_TRY}
    own = Distribution("torch", record.version, "", installer="conda")
    changes: dict[str, object] = {"torch": Build(record.version, distribution=own)}
    if not isinstance(facts.distributions, Unknown):
        changes["distributions"] = (*(d for d in known if d.name != "torch"), own)
    return changes
