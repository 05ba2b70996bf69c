"""What --fix writes: the fault is gone, nothing else has changed, and it is still Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.scripts import PRELUDE, names_in
from torchdoctor.lint import looking, mend
from torchdoctor.lint.rule import all_rules


def fixed(code: str, tmp_path: Path, *, ends: str = "\n") -> str:
    """Return what becomes of *code*, its prelude left out."""
    file = tmp_path / "train.py"
    file.write_bytes((PRELUDE + code).replace("\n", ends).encode())
    looked = looking.look([str(file)], all_rules())
    for _, raw, found in looking.mended(looked):
        if (mended := mend.mend(raw, found)) is not None:
            file.write_bytes(mended)
    new = file.read_bytes().decode()
    if ends == "\r\n":
        assert new.count("\n") == new.count("\r\n")
    return new.replace("\r\n", "\n").removeprefix(PRELUDE)


SET = "other.set_epoch(0)\n"
LOOP = """\
sampler = DistributedSampler(data)
for epoch in range(3):
    for x in loader:
        model(x).backward()
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (LOOP, LOOP.replace("    for x", "    sampler.set_epoch(epoch)\n    for x")),
        (
            LOOP.replace("(data)", "(data) if many else None"),
            LOOP.replace("(data)", "(data) if many else None").replace(
                "    for x",
                "    if sampler is not None:\n        sampler.set_epoch(epoch)\n    for x",
            ),
        ),
        (
            SET + "loader = DataLoader(data, shuffle=True, sampler=DistributedSampler(data))\n",
            SET + "loader = DataLoader(data, sampler=DistributedSampler(data))\n",
        ),
        (
            SET + "s = DistributedSampler(data)\nloader = DataLoader(\n    data,\n    sampler=s,\n"
            "    shuffle=True,\n)\n",
            SET
            + "s = DistributedSampler(data)\nloader = DataLoader(\n    data,\n    sampler=s,\n)\n",
        ),
        (
            SET
            + "s = DistributedSampler(d) if n else None\nDataLoader(d, shuffle=True, sampler=s)\n",
            SET
            + "s = DistributedSampler(d) if n else None\n"
            + "DataLoader(d, shuffle=s is None, sampler=s)\n",
        ),
        (
            "from torch.cuda.amp import autocast\nwith autocast():\n    pass\n",
            'from torch.amp import autocast\nwith autocast("cuda"):\n    pass\n',
        ),
        (
            "from torch.cuda import amp\nwith amp.autocast(False, w):\n    pass\n",
            'from torch import amp\nwith amp.autocast("cuda", enabled=False, dtype=w):\n    pass\n',
        ),
        (
            "@torch.cuda.amp.autocast(enabled=False)\ndef f():\n    pass\n",
            '@torch.amp.autocast("cuda", enabled=False)\ndef f():\n    pass\n',
        ),
        ("s = torch.cuda.amp.GradScaler(2.0)\n", 's = torch.amp.GradScaler("cuda", 2.0)\n'),
        (
            "grüße = torch.cuda.amp.GradScaler()  # Grüße\n",
            'grüße = torch.amp.GradScaler("cuda")  # Grüße\n',
        ),
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["unix", "windows"])
def test_the_fault_is_mended_and_nothing_else(
    before: str, after: str, ends: str, tmp_path: Path
) -> None:
    assert fixed(before, tmp_path, ends=ends) == after
    mechanical = {"missing-set-epoch", "sampler-and-shuffle", "deprecated-amp"}
    assert names_in(PRELUDE + before) & mechanical
    assert not names_in(PRELUDE + after) & mechanical


@pytest.mark.parametrize(
    "code",
    [
        # two loops over epochs, or none by name: which one is meant is not known
        LOOP + LOOP.partition("\n")[2],
        LOOP.replace("epoch", "turn"),
        # the sampler has no name
        "loader = DataLoader(data, sampler=DistributedSampler(data))\n" + LOOP.partition("\n")[2],
        # the old name is handed on, too
        "from torch.cuda.amp import autocast\nwith autocast():\n    use(autocast)\n",
        # one of the calls cannot be mended, so that the import has to stay
        "from torch.cuda.amp import autocast\nwith autocast():\n    pass\nautocast(*options)\n",
        # the name has another meaning, too
        (
            "if new:\n    from torch.cuda.amp import autocast\nelse:\n"
            "    def autocast(on=True): pass\nwith autocast(False):\n    pass\n"
        ),
        # other things come from the old place
        "from torch.cuda.amp import autocast, custom_fwd\nwith autocast():\n    pass\n",
        "import torch.cuda.amp as amp\nwith amp.autocast():\n    pass\n",
        "torch.cuda.amp.autocast(*options)\n",
    ],
)
def test_what_is_not_plain_is_left_as_it_is(code: str, tmp_path: Path) -> None:
    assert fixed(code, tmp_path) == code


def test_a_call_that_is_ignored_is_mended_along_with_its_import(tmp_path: Path) -> None:
    code = "from torch.cuda.amp import autocast\nautocast()\nautocast()  # torchdoctor: ignore\n"
    assert fixed(code, tmp_path) == (
        "from torch.amp import autocast\n"
        'autocast("cuda")\nautocast("cuda")  # torchdoctor: ignore\n'
    )


def test_a_file_in_another_encoding_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_bytes(f"# coding: latin-1\n# \xe9\n{PRELUDE}{LOOP}".encode("latin-1"))
    ((_, raw, found),) = looking.mended(looking.look([str(file)], all_rules()))
    assert mend.mend(raw, found) is None


def test_a_mark_at_the_beginning_stays(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_bytes(b"\xef\xbb\xbf" + (PRELUDE + LOOP).encode())
    ((_, raw, found),) = looking.mended(looking.look([str(file)], all_rules()))
    mended = mend.mend(raw, found)
    assert mended is not None
    assert mended.startswith(b"\xef\xbb\xbf")
    assert b"    sampler.set_epoch(epoch)\n" in mended
