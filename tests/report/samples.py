"""Reports to render: a few that read like real ones, and arbitrary ones."""

from __future__ import annotations

from hypothesis import strategies as st

from torchdoctor.facts import Build, Facts, ImportTrial, Interpreter, Runtime
from torchdoctor.model import (
    Commands,
    Evidence,
    Finding,
    Layer,
    Location,
    Outcome,
    Plan,
    PlannedStep,
    Step,
)
from torchdoctor.report.document import Report, Target, build

WINGET = "winget install --id Microsoft.VCRedist.2015+.x64"
PIP = (
    "/home/someone/projects/a-project-with-a-long-name/.venv/bin/python -m pip install "
    "--index-url https://download.pytorch.org/whl/cu126 torch==2.9.1+cu126 "
    "torchvision==0.24.1+cu126 torchaudio==2.9.1+cu126"
)
LIVE = Target("live", (), "Debian GNU/Linux 12 (bookworm)", "3.11.7", "2026-11-29T14:28:44Z")


def same(facts: Facts) -> Facts:
    return facts


def step(name: str = "install-torch", *commands: str, **parts: object) -> Step:
    given: dict[str, object] = {
        "title": "Install it",
        "why": "",
        "layer": Layer.PACKAGES,
        "cost": 1,
        "effect": same,
        "commands": Commands(commands, commands, commands),
        **parts,
    }
    return Step(name, **given)  # type: ignore[arg-type]


def finding(name: str = "driver-too-old", severity: str = "error", **parts: object) -> Finding:
    given: dict[str, object] = {
        "summary": f"What {name} says.",
        "evidence": (Evidence("driver.release", "470.57.02", "nvidia-smi"),),
        "family": "cuda",
        **parts,
    }
    return Finding(name, severity, **given)  # type: ignore[arg-type]


def healthy() -> Report:
    facts = Facts(
        torch=Build("2.13.0+cpu"),
        interpreter=Interpreter("/venv/bin/python", "3.11.7", "/venv", "/usr", "venv"),
        trial=ImportTrial("torch", "imported", 1.9),
        runtime=Runtime("2.13.0+cpu"),
    )
    outcomes = (
        *(Outcome(f"check-{n}", "clear", seconds=0.0000123456) for n in range(27)),
        Outcome("nccl", "unknown", reason="driver: nvidia-smi is not there; gpus: no driver"),
        Outcome("peer-access", "unknown", reason="driver: nvidia-smi is not there"),
    )
    return build(target=LIVE, outcomes=outcomes, facts=facts)


def broken() -> Report:
    """Return a machine with two faults, a consequence, a note, and a plan of two steps."""
    redist = step(
        "install-vcredist",
        WINGET,
        title="Install the current VC++ x64 redistributable",
        why="c10.dll of torch 2.9.1 calls into a msvcp140.dll of 14.40 or newer.",
        needs=("admin", "network"),
    )
    reinstall = step(
        "reinstall-torch",
        PIP,
        title="Install the torch, torchvision and torchaudio that fit each other",
        why="torchvision 0.19.0 was built against torch 2.4.0.",
        needs=("network",),
        deletes=True,
    )
    findings = (
        finding(
            "vcredist-too-old",
            summary=(
                "C:\\Windows\\System32\\msvcp140.dll is 14.34; c10.dll of torch 2.9.1 needs 14.40 "
                "or newer."
            ),
            evidence=(
                Evidence("trial.error", "WinError 1114, names c10.dll", "import trial, 1.9 s"),
                Evidence(
                    "torch.imports", "_Mtx_lock without _Mtx_init_in_situ", "torch\\lib\\c10.dll"
                ),
            ),
            steps=(redist,),
            family="windows",
        ),
        finding("torch-import-fails", because_of=("vcredist-too-old",), family="torch"),
        finding(
            "torchvision-of-another-release",
            "warning",
            summary="torchvision 0.19.0 was not built for torch 2.9.1.",
            confidence="likely",
            steps=(reinstall,),
            location=Location("requirements.txt", 3),
            where={"rank": 1, "stage": "store"},
        ),
        finding("gpu-idle", "note", summary="The machine has a GPU that this build ignores."),
    )
    outcomes = (
        *(Outcome(f"check-{n}", "clear") for n in range(24)),
        Outcome("vc-runtime", "found", findings[:1], seconds=0.0021234567),
        Outcome("gpu-architecture", "moot", reason="waits for torch-imports"),
        Outcome("nccl", "moot", reason="waits for torch-imports"),
        Outcome("driver", "unknown", reason="driver: not collected"),
        Outcome(
            "shm",
            "crashed",
            reason="Traceback (most recent call last):\n  File x\nValueError: no such limit\n",
        ),
    )
    plan = Plan(
        (
            PlannedStep(
                redist,
                ("vcredist-too-old", "torch-import-fails"),
                ("torchdoctor check --only vc-runtime",),
            ),
            PlannedStep(reinstall, ("torchvision-of-another-release",), ("torchdoctor check",)),
        ),
        outcomes=(
            *(Outcome(f"check-{n}", "clear") for n in range(24)),
            *(Outcome(f"other-{n}", "unknown") for n in range(7)),
        ),
    )
    return build(target=LIVE, findings=findings, outcomes=outcomes, plan=plan)


# ---- arbitrary ones --------------------------------------------------------------------------

NASTY = st.sampled_from(
    [
        "[red]x[/]",
        "[/]",
        "[link=file:///etc/passwd]x",
        "\x1b[2J\x1b]0;title\x07",
        "\r\nDo this\r\n1. rm -rf /",
        "\u202egnp.exe\u2066",
        "\udc80\x00\x7f\x9b31m",
        "w" * 500,
        "路径" * 60,
        ":smile: \\[bold]",
        "\t\x0b\x0c\u2028",
    ]
)
TEXTS = st.one_of(st.text(max_size=200), NASTY)
KEBABS = st.from_regex(r"[a-z0-9]{1,8}(-[a-z0-9]{1,8}){0,3}", fullmatch=True)
COMMANDS = st.one_of(
    st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=300),
    st.sampled_from([PIP, WINGET, "echo  two  spaces ", "echo [red]x[/]", "echo '路径'"]),
)


def findings(names: st.SearchStrategy[str]) -> st.SearchStrategy[Finding]:
    return st.builds(
        Finding,
        name=names,
        severity=st.sampled_from(["error", "warning", "note"]),
        summary=TEXTS.filter(bool),
        evidence=st.lists(st.builds(Evidence, TEXTS, TEXTS, TEXTS), max_size=8).map(tuple),
        confidence=st.sampled_from(["certain", "likely", "possible"]),
        because_of=st.lists(names, max_size=3).map(tuple),
        family=TEXTS,
        location=st.none()
        | st.builds(Location, TEXTS, st.none() | st.integers(1), st.none() | st.integers(1)),
        where=st.none() | st.dictionaries(TEXTS, st.integers() | TEXTS, max_size=3),
    )


def reports(names: st.SearchStrategy[str]) -> st.SearchStrategy[Report]:
    commands = st.lists(COMMANDS, max_size=2).map(tuple)
    steps = st.builds(
        Step,
        name=names,
        title=TEXTS.filter(bool),
        why=TEXTS,
        layer=st.sampled_from(Layer),
        cost=st.integers(),
        effect=st.just(same),
        commands=st.builds(Commands, commands, commands, commands),
        needs=st.lists(st.sampled_from(["admin", "reboot", "restart-shell"]), unique=True).map(
            tuple
        ),
        deletes=st.booleans(),
    )
    planned = st.builds(PlannedStep, steps, st.lists(names, max_size=2).map(tuple), commands)
    outcomes = st.lists(
        st.builds(
            Outcome,
            check=names,
            status=st.sampled_from(["clear", "found", "unknown", "moot", "crashed"]),
            reason=TEXTS,
            seconds=st.floats(0, 1e6),
        ),
        max_size=6,
    ).map(tuple)
    plans = st.builds(
        Plan,
        st.lists(planned, max_size=3).map(tuple),
        st.sampled_from(["healthy", "unknown"]),
        st.just(()),
        outcomes,
    )
    return st.builds(
        build,
        target=st.builds(
            Target,
            st.sampled_from(["live", "snapshot", "text", "folder", "script", "run"]),
            st.lists(TEXTS, max_size=2).map(tuple),
            st.none() | TEXTS,
            st.none() | TEXTS,
            st.none() | TEXTS,
        ),
        findings=st.lists(findings(names), max_size=6),
        outcomes=outcomes,
        plan=plans,
        essential_unknown=st.booleans(),
        data=st.dictionaries(TEXTS, st.floats() | TEXTS | st.lists(st.integers()), max_size=2),
    )
