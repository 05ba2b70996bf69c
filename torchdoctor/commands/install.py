"""``torchdoctor install``: the command that brings the newest torch that fits, and why that one."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from torchdoctor.commands import looking, output
from torchdoctor.model import DoctorError

if TYPE_CHECKING:
    from torchdoctor.choose import Choice, Refusal
    from torchdoctor.commands.looking import Look
    from torchdoctor.constraints import Constraint, Wish
    from torchdoctor.facts import Facts
    from torchdoctor.model import Finding, Plan, Step
    from torchdoctor.report.document import Detail, Report, Target

HELP = "print the command that installs the newest torch that fits this machine"
INSTALLERS = ("pip", "uv", "conda", "pixi", "poetry", "pdm")
FINDS = ("no-build-fits",)
ABOUT = """No build of torch fits this machine together with what was asked for.

How it shows: torchdoctor install names what excludes every build, each with its value, and the
releases that it leaves; no release is left by all of them.

Why: a build has to be published for the system and its Python, its C library must not be newer
than the system's, the driver has to run its CUDA, it needs machine code for every GPU, and the
companions and neighbours that are wanted have to exist for it.

The fix that is shown gives up as little as possible, the cheapest first: another version of a
neighbour, or none; another release of torch; one GPU of several; the CPU instead of the GPU;
another Python; a newer driver; a newer system. Source: the tables of releases, builds, drivers,
GPUs and neighbours."""

COMPANIONS = ("torchvision", "torchaudio")
KINDS = {"cuda": "CUDA", "rocm": "ROCm", "xpu": "XPU", "cpu": "CPU"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument(
        "inputs", nargs="*", metavar="INPUT", help="what another machine said (- for stdin)"
    )
    parser.add_argument(
        "--torch", default="", metavar="X.Y", help="this release, or one of these (2.13, >=2.10)"
    )
    parser.add_argument(
        "--with",
        dest="beside",
        action="append",
        default=[],
        metavar="NAME",
        help="torchvision, torchaudio, xformers, vllm==0.33.0 ... (commas between several)",
    )
    parser.add_argument("--accelerator", choices=("cpu", "cuda", "rocm", "xpu"))
    parser.add_argument(
        "--python",
        metavar="X.Y or PATH",
        help="a new environment with this Python, or the interpreter to look at",
    )
    parser.add_argument(
        "--for",
        dest="installer",
        choices=INSTALLERS,
        help="the installer (default: the environment's own)",
    )
    output.options(parser)
    parser.set_defaults(no_import=True, verify="quick", timeout=None, expect=[])


def execute(args: argparse.Namespace) -> int:
    """Look, choose, report; return 0 where something fits, else 1."""
    wish = _wish(args)
    waiting = looking.begin(args)
    from torchdoctor import choose  # noqa: PLC0415 - while the probes run

    seen = waiting()
    found = choose.decide(seen.facts, wish)
    report = _report(seen, args, wish, found)
    output.write(report, args)
    return 1 if report.findings else 0


def _wish(args: argparse.Namespace) -> Wish:
    from torchdoctor.constraints import Wish  # noqa: PLC0415 - only this verb pays

    names = [name.strip() for entry in args.beside for name in re.split(r",(?![^\[]*\])", entry)]
    wanted = _joined(names)
    python = None
    if args.python and re.fullmatch(r"\d+\.\d+t?", args.python):
        python, args.python = args.python, None
    try:
        return Wish(
            args.torch,
            args.accelerator,
            python,
            tuple(name for name in wanted if name in COMPANIONS),
            tuple(name for name in wanted if name not in (*COMPANIONS, "torch")),
        )
    except ValueError as error:
        raise DoctorError(f"{error}; see: torchdoctor install --help", kind="usage") from error


def _joined(words: Iterable[str]) -> list[str]:
    """Put together what a comma inside a specifier took apart: vllm>=0.20 and <0.30."""
    joined: list[str] = []
    for word in filter(None, words):
        if word[0] in "<>=!~" and joined:
            joined[-1] += f",{word}"
        else:
            joined.append(word)
    return joined


# ---- what is said ------------------------------------------------------------------------------


def _report(seen: Look, args: argparse.Namespace, wish: Wish, found: Choice | Refusal) -> Report:
    from torchdoctor import choose, constraints  # noqa: PLC0415
    from torchdoctor.report import document  # noqa: PLC0415

    facts = _for(seen.facts, args.installer) if args.installer else seen.facts
    asked = constraints.of(facts, wish)
    data: dict[str, object] = {
        "constraints": [_constraint(c) for c in asked],
        "unknown": dict(_unknown(facts)),
    }
    where = "there" if args.inputs else "here"
    if isinstance(found, choose.Refusal):
        return _refused(seen, args, facts, found, data)
    there = is_installed(facts, found)
    data |= {
        "choice": _choice(found),
        "installed": there,
        "alternatives": list(choose.alternatives(facts, wish, found)),
        "commands": _commands(seen.facts, found),
        "refusal": None,
    }
    step = step_for(facts, found, _why(found, asked))
    return document.build(
        target=_target(seen, args.inputs),
        plan=_plan([step]),
        facts=facts,
        data={"install": data},
        headline=_headline(found, wish, where, there=there),
        details=[*_chosen_for(asked, facts), *_others(seen.facts, found, args)],
    )


def _refused(
    seen: Look, args: argparse.Namespace, facts: Facts, refusal: Refusal, data: dict[str, object]
) -> Report:
    from torchdoctor.model import Evidence, Finding  # noqa: PLC0415
    from torchdoctor.report import document  # noqa: PLC0415

    steps = way_out(facts, refusal)
    finding = Finding(
        "no-build-fits",
        "error",
        _said(refusal),
        tuple(
            Evidence(r.constraint.name, r.constraint.value, r.constraint.source)
            for r in refusal.reasons
        ),
        tuple(steps),
        family="build",
    )
    data |= {
        "choice": None,
        "installed": False,
        "alternatives": [],
        "commands": {},
        "refusal": {
            "reasons": [_constraint(r.constraint) | {"leaves": r.leaves} for r in refusal.reasons],
            "relaxation": [
                {"kind": c.kind, "says": c.says, "value": c.value} for c in refusal.relaxation
            ],
            "choice": _choice(refusal.choice) if refusal.choice else None,
        },
    }
    return document.build(
        target=_target(seen, args.inputs),
        findings=[finding],
        plan=_plan(steps, finding),
        facts=facts,
        data={"install": data},
        details=_excluded(refusal),
    )


def _said(refusal: Refusal) -> str:
    parts = [
        f"{r.constraint.subject} leaves {r.leaves}"
        if r.leaves
        else f"{r.constraint.subject} is wanted"
        for r in refusal.reasons
    ]
    if not parts:
        return "No build of torch for this system is known."
    first = parts[0][0].upper() if parts[0].startswith("a ") else parts[0][0]
    return f"No build of torch fits: {first}{parts[0][1:]}{''.join(f', {p}' for p in parts[1:])}."


def _headline(choice: Choice, wish: Wish, where: str, *, there: bool) -> str:
    if not choice.release:
        return (
            f"torch for this Jetson is on NVIDIA's own index, {choice.index}; PyTorch's builds "
            "have no code for its GPU."
        )
    what = f"torch {choice.versions['torch']}"
    which = "the newest" if not wish.torch else f"the newest of {wish.torch}"
    if there:
        return f"{what} is installed {where} and is {which} that fits."
    return f"{what} is {which} that fits {where}."


def _why(choice: Choice, asked: tuple[Constraint, ...]) -> str:
    from torchdoctor.tables import builds  # noqa: PLC0415

    subjects = [c.subject for c in asked if c.name not in ("accelerator", "torch")]
    kind = KINDS[builds.kind_of(choice.tag)]
    if not subjects:
        return f"Nothing is known of the machine, so this is the newest {kind} build."
    return f"A {kind} build that does for {_and(subjects)}.".replace("A XPU", "An XPU")


def _and(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _chosen_for(asked: tuple[Constraint, ...], facts: Facts) -> Iterator[Detail]:
    from torchdoctor.report.document import Detail  # noqa: PLC0415

    for constraint in asked:
        yield Detail("Chosen for", f"{constraint.subject}  ({constraint.source})")
    for name, reason in _unknown(facts):
        yield Detail("Not known, so it decided nothing", f"{name}  ({reason})")


def _excluded(refusal: Refusal) -> Iterator[Detail]:
    from torchdoctor.report.document import Detail  # noqa: PLC0415

    for reason in refusal.reasons:
        constraint = reason.constraint
        leaves = f": leaves {reason.leaves}" if reason.leaves else ""
        yield Detail(
            "What excludes the rest", f"{constraint.subject}{leaves}  ({constraint.source})"
        )
    for change in refusal.relaxation:
        yield Detail("What would have to be given up", change.says)


def _others(facts: Facts, choice: Choice, args: argparse.Namespace) -> Iterator[Detail]:
    """Give the commands of every installer, for those who want them all."""
    from torchdoctor.report.document import Detail  # noqa: PLC0415

    if args.installer:
        return
    for name in INSTALLERS:
        step = step_for(_for(facts, name), choice, "")
        for line in step.commands.bash:
            yield Detail(f"With {name}", line, command=True, more=True)


def _unknown(facts: Facts) -> Iterator[tuple[str, str]]:
    from torchdoctor.facts import Unknown  # noqa: PLC0415

    for name in ("platform", "interpreter", "driver", "gpus"):
        value = getattr(facts, name)
        if isinstance(value, Unknown):
            yield name, value.reason


# ---- what is done ------------------------------------------------------------------------------


def _for(facts: Facts, installer: str) -> Facts:
    """Return *facts* with *installer* in charge; where it is not, its own environment is meant."""
    from dataclasses import replace  # noqa: PLC0415

    from torchdoctor.facts import Interpreter  # noqa: PLC0415

    now = facts.interpreter
    if isinstance(now, Interpreter):
        if now.installer == installer:
            return facts
        # pip and uv serve any environment; the others have one of their own, which is not this.
        own = installer in ("pip", "uv")
        fresh = {} if own else {"torch": None, "distributions": ()}
        return replace(
            facts,
            **fresh,  # type: ignore[arg-type] # fields of Facts
            interpreter=replace(
                now,
                installer=installer,
                redacted=now.redacted or not own,
                externally_managed=now.externally_managed and own,
                has_pip=now.has_pip or installer == "pip",
            ),
        )
    tag = "3.12"
    made = Interpreter("", f"{tag}.0", "", "", "other", installer=installer, redacted=True)
    return replace(facts, interpreter=made)


def step_for(facts: Facts, choice: Choice, why: str) -> Step:
    """Return the step that installs *choice*, into a new environment where that is needed."""
    from dataclasses import replace  # noqa: PLC0415

    from torchdoctor import effects, steps  # noqa: PLC0415
    from torchdoctor.facts import Interpreter  # noqa: PLC0415

    python = choice.python
    if isinstance(facts.interpreter, Interpreter) and facts.interpreter.externally_managed:
        python = python or facts.interpreter.tag
    if python:
        return steps.new_environment(facts, python, choice, why=why)
    step = steps.change_build(facts, choice, why=why)
    return step if choice.release else replace(step, effect=effects.untried)


def way_out(facts: Facts, refusal: Refusal) -> list[Step]:
    """Return the steps of the smallest relaxation, in order."""
    from torchdoctor import effects, steps  # noqa: PLC0415
    from torchdoctor.facts import Interpreter  # noqa: PLC0415
    from torchdoctor.model import Layer  # noqa: PLC0415
    from torchdoctor.tables import builds  # noqa: PLC0415

    choice = refusal.choice
    if choice is None:
        return []
    found: list[Step] = []
    given = _and([change.says for change in refusal.relaxation])
    why = f"W{given[1:]} it fits." if given.startswith("with") else f"With {given} it fits."
    for change in refusal.relaxation:
        if change.kind == "driver":
            cuda = builds.cuda_of(choice.tag)
            found.append(steps.upgrade_driver(facts, change.value, cuda, why=f"{change.says}."))
        if change.kind == "system":
            found.append(
                steps.by_hand(
                    "use-a-newer-system",
                    f"Use {change.says}",
                    why="The system's own libraries cannot be replaced inside it.",
                    layer=Layer.RUNTIME,
                    cost=steps.ENVIRONMENT,
                    effect=effects.change(platform=refusal.facts.platform),
                )
            )
    here = facts.interpreter
    if any(change.kind == "environment" for change in refusal.relaxation) and not choice.python:
        python = here.tag if isinstance(here, Interpreter) else "3.12"
        return [*found, steps.new_environment(facts, python, choice, why=why)]
    return [*found, step_for(facts, choice, why)]


def _plan(found: list[Step], finding: Finding | None = None) -> Plan:
    from torchdoctor.model import Plan, PlannedStep  # noqa: PLC0415

    cleared = (finding.name,) if finding else ()
    remaining = (finding,) if finding and not found else ()
    planned = tuple(
        PlannedStep(
            step, cleared if step is found[-1] else (), ("torchdoctor check",)[: step is found[-1]]
        )
        for step in found
    )
    return Plan(planned, "broken" if remaining else "healthy", remaining)


def is_installed(facts: Facts, choice: Choice) -> bool:
    """Tell whether all of *choice* is there already."""
    from torchdoctor.facts import Build, Unknown  # noqa: PLC0415

    torch = facts.torch
    if not isinstance(torch, Build) or choice.python or not choice.release:
        return False
    if (torch.public, torch.tag) != (choice.release, choice.tag):
        return False
    known = () if isinstance(facts.distributions, Unknown) else facts.distributions
    have = {d.name: d.version.partition("+")[0] for d in known}
    rest = {n: v.partition("+")[0] for n, v in choice.versions.items() if n != "torch"}
    return all(have.get(name) == version for name, version in rest.items())


# ---- for programs ------------------------------------------------------------------------------


def _constraint(constraint: Constraint) -> dict[str, object]:
    return {
        "name": constraint.name,
        "subject": constraint.subject,
        "value": constraint.value,
        "from": constraint.source,
    }


def _choice(choice: Choice) -> dict[str, object]:
    return {
        "torch": choice.release or None,
        "build": choice.tag,
        "index": choice.index,
        "python": choice.python,
        "packages": [
            {"name": p.name, "version": p.version or None, "requirement": p.requirement}
            for p in choice.packages
        ],
        "beside": [
            {
                "name": b.name,
                "version": b.version or None,
                "requirement": b.requirement,
                "index": b.index,
                "without_dependencies": b.alone,
                "compiled_here": b.compiled,
            }
            for b in choice.beside
        ],
        "variables": dict(choice.variables),
    }


def _commands(facts: Facts, choice: Choice) -> Mapping[str, object]:
    found = {}
    for name in INSTALLERS:
        commands = step_for(_for(facts, name), choice, "").commands
        found[name] = {
            "bash": commands.bash,
            "powershell": commands.powershell,
            "cmd": commands.cmd,
        }
    return found


def _target(seen: Look, inputs: list[str]) -> Target:
    from torchdoctor.commands import check  # noqa: PLC0415

    return check.target(seen, inputs)
