"""The probe of Windows: its source is fit for every Python that it may run in."""

from __future__ import annotations

import ast

import pytest

from torchdoctor.resource import read_text

SOURCE = read_text("windows", "probe.py")


@pytest.mark.parametrize("name", ["probe.py", "files.py"])
def test_the_source_is_ascii_and_found_beside_the_package(name: str) -> None:
    assert read_text("windows", name).isascii()


def test_the_probe_is_of_python_3_8() -> None:
    ast.parse(SOURCE, feature_version=(3, 8))


def test_every_call_of_windows_has_its_types() -> None:
    loaded = [n for n in ast.walk(ast.parse(SOURCE)) if isinstance(n, ast.Call)]
    by_name = [n for n in loaded if isinstance(n.func, ast.Name) and n.func.id == "function"]
    named = {ast.literal_eval(n.args[1]) for n in by_name}
    assert {"RtlGetVersion", "GlobalMemoryStatusEx", "K32EnumProcessModules"} <= named
    assert "LdrRegisterDllNotification" in named
    assert all(len(n.args) >= 3 for n in by_name), "a result type for each"


def test_the_probe_imports_the_standard_library_only() -> None:
    names = {
        alias.name
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert names <= {"ctypes", "json", "os", "site", "sys", "sysconfig", "winreg"}
