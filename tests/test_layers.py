"""The folders lean one way: checks and windows on torchdoctor, nothing on them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PURE = {
    "__future__",
    "collections",
    "dataclasses",
    "difflib",
    "enum",
    "functools",
    "itertools",
    "packaging",
    "re",
    "torchdoctor",
    "typing",
}
JUDGES_MAY_USE = {
    "torchdoctor.building",
    "torchdoctor.choose",
    "torchdoctor.conda_steps",
    "torchdoctor.constraints",
    "torchdoctor.distributed.blame",
    "torchdoctor.distributed.verdict",
    "torchdoctor.distributed_steps",
    "torchdoctor.dlls",
    "torchdoctor.effects",
    "torchdoctor.facts",
    "torchdoctor.gpu",
    "torchdoctor.installers",
    "torchdoctor.loading",
    "torchdoctor.lock",
    "torchdoctor.model",
    "torchdoctor.nvidia",
    "torchdoctor.places",
    "torchdoctor.policy",
    "torchdoctor.requirements",
    "torchdoctor.shells",
    "torchdoctor.steps",
    "torchdoctor.tables",
    "torchdoctor.trials",
}


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (module, name) for every import in the file *path*."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from ((str(node.module), alias.name) for alias in node.names)


def tops(path: Path) -> set[str]:
    return {module.partition(".")[0] for module, _ in imports(path)}


@pytest.mark.parametrize("folder", ["torchdoctor", "checks", "windows"])
def test_no_folder_imports_a_sibling_by_its_bare_name(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        assert not {"checks", "windows", "tests"} & tops(path), path


def test_a_check_reads_facts_and_nothing_else() -> None:
    for path in (ROOT / "checks").rglob("*.py"):
        assert tops(path) <= PURE, path
        for module, name in imports(path):
            if module.partition(".")[0] == "torchdoctor":
                whole = f"{module}.{name}" if module == "torchdoctor" else module
                assert any(whole.startswith(m) for m in JUDGES_MAY_USE), (path, whole)


def test_only_one_module_starts_processes() -> None:
    # The harness is a program of its own: it is written out, and run where torch is.
    ours = [p for p in (ROOT / "torchdoctor").rglob("*.py") if p.parent.name != "harness"]
    assert {p.name for p in ours if "subprocess" in tops(p)} == {"child.py"}


@pytest.mark.parametrize("folder", ["checks", "torchdoctor/reading"])
def test_neither_checks_nor_readers_ask_for_the_system_they_run_on(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                asked = f"{node.value.id}.{node.attr}"
                assert asked not in {"sys.platform", "os.name"}, path


def test_nothing_but_probes_imports_what_is_examined() -> None:
    for folder in ("torchdoctor", "checks", "windows"):
        for path in (ROOT / folder).rglob("*.py"):
            if path.parent.name not in {"probes", "harness"}:
                assert not {"torch", "torchvision", "torchaudio", "numpy"} & tops(path), path


def test_only_the_text_report_uses_rich() -> None:
    found = {p.name for p in (ROOT / "torchdoctor").rglob("*.py") if "rich" in tops(p)}
    assert found == {"text.py"}


def test_probes_are_ascii_and_can_be_read_by_python_3_8() -> None:
    for path in (ROOT / "torchdoctor" / "probes").rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        assert source.isascii(), path
        ast.parse(source, feature_version=(3, 8))
