"""What is not run as it stands in the README: what is run instead, where else, or why not at all.

A row without a command in the README fails a test, as does a command that cannot be run as it is
and has no row.
"""

from __future__ import annotations

VENV = "python3 -m venv .venv && .venv/bin/python -m pip install -q -e"
FIRST = f"{VENV} . && .venv/bin/torchdoctor check --python python3"

INSTEAD: dict[str, tuple[str, str]] = {
    "torchdoctor check --python /home/you/venv": (
        "torchdoctor check --python env",
        "nobody is called you here",
    ),
    "torchdoctor guard -- pip install X": (
        "torchdoctor guard -- pip install -q --no-index ./x-1.0-py3-none-any.whl",
        "X is any package; this one needs no network",
    ),
    "torchdoctor check --root /mnt/c": (
        "torchdoctor check --root C",
        "nothing is mounted; C is a folder with a Windows in it",
    ),
    "torchdoctor hang PID": (
        (
            "RANK=0 WORLD_SIZE=2 python3 -c 'import time; time.sleep(60)' & torchdoctor hang $!; "
            "code=$?; kill $!; exit $code"
        ),
        "PID is that of a process; this one is one of two ranks, and waits",
    ),
    "torchrun --nnodes 16 ... -m torchdoctor collect --gather -o fleet.jsonl": (
        "torchrun --nproc-per-node 2 -m torchdoctor collect --no-import --gather -o fleet.jsonl",
        "there is one machine",
    ),
    "torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint NODE0:29500 "
    "-m torchdoctor all-reduce --worker": (
        (
            "torchrun --nnodes 1 --nproc-per-node 2 --rdzv-backend c10d "
            "--rdzv-endpoint localhost:0 -m torchdoctor all-reduce --worker"
        ),
        "there is one machine, of two cores",
    ),
    "torchdoctor all-reduce --nproc 8 --sweep": (
        "torchdoctor all-reduce --nproc 2 --sweep",
        "eight processes with torch take a minute on two cores",
    ),
    "torchdoctor train-check --nproc 4 --amp bf16 --accumulate 2 --plot page.html": (
        "torchdoctor train-check --nproc 2 --amp bf16 --accumulate 2 --plot page.html",
        "four processes with torch take a minute on two cores",
    ),
}
"""Command -> what is run for it, and why."""

ELSEWHERE: dict[str, str] = {
    f"{VENV} '.[dev]' && .venv/bin/python -m pytest -n auto": ".ci/run",
    "python -m tests.docs": "tests/docs/test_docs.py",
    "python -m tests.corpus_score": "tests/readme/test_commands.py",
    "python -m tests.lab run": "tests/lab/test_lab.py",
    "srun --ntasks-per-node 8 --gpus-per-node 8 python -m torchdoctor all-reduce --worker": (
        "tests/all_reduce/test_launcher.py"
    ),
    "mpirun -np 16 -x MASTER_ADDR=NODE0 python -m torchdoctor all-reduce --worker": (
        "tests/all_reduce/test_launcher.py"
    ),
}
"""Command -> the file that runs it, or what it is made of."""

NOT_RUN: dict[str, str] = {
    "py -m venv .venv; .venv\\Scripts\\python -m pip install -q -e .; "
    ".venv\\Scripts\\torchdoctor check --python python": "needs Windows and PowerShell",
    ".ci/run": "runs all tests, this one among them",
    "python -m tests.lint.public FOLDER": "clones 16 repositories of others",
    "python -m tests.bench.bench": "compares with tools that have to be installed, for minutes",
    "python -m torchdoctor.tables.refresh": "rewrites the tables by what the index has today",
}
"""Command -> why no test runs it."""

NETWORK = (
    FIRST,
    ".venv/bin/python .ci/pyz && dist/torchdoctor.pyz check --python python3",
    ".venv/bin/python -m pip wheel -q --no-deps -w dist .",
    "uvx --from dist/*.whl torchdoctor check --python python3",
    "pipx run --spec dist/*.whl torchdoctor check --no-import",
)
"""What installs something, in the order in which one needs what the other has made."""

FINDS = frozenset(
    {
        ".venv/bin/torchdoctor check error.log",
        "torchdoctor check snapshot.json",
        "torchdoctor compare *.zip --format html -o desk.html",
        "cat error.log | torchdoctor check -",
        "torchdoctor lint train.py src/",
        "torchdoctor check --expect 'cuda>=12.6'",
        "torchdoctor check --policy --format junit -o doctor.xml",
        "torchdoctor hang DIR",
        "torchdoctor shards --prepare accelerate",
    }
)
"""What ends with 1, since in the prepared folder there is something to find."""
