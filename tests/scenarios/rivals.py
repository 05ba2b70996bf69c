"""What eight other commands said of the same machines, recorded once.

rigsolve: the better of its two verbs, check and verify.

OK: the cause named and a command that repairs it. c: the cause or its exact area named, no working
command. -: missed, silent or wrong. X: the tool crashed or hung.
"""

from __future__ import annotations

TOOLS = (
    "collect_env",
    "pip check",
    "env-doctor",
    "cuda-doctor",
    "ai-infradr",
    "mlenvdoctor",
    "gpu-doctor",
    "rigsolve",
)

CELLS: dict[str, tuple[str, ...]] = {
    "s0": ("OK", "OK", "false alarm", "false alarm", "OK", "false alarm", "OK", "OK"),
    "s1": ("X", "-", "-", "c", "-", "-", "-", "c"),
    "s2": ("X", "-", "X", "X", "X", "X", "X", "c"),
    "s3": ("X", "-", "X", "X", "X", "X", "X", "c"),
    "s4": ("X", "-", "-", "-", "-", "-", "-", "-"),
    "s5": ("-", "c", "-", "-", "-", "-", "-", "-"),
    "s6": ("-", "-", "c", "-", "c", "c", "-", "-"),
    "s7": ("-", "-", "c", "c", "c", "c", "-", "c"),
    "s8": ("-", "-", "-", "-", "OK", "-", "n/a", "OK"),
    "s9": ("-", "-", "c", "-", "-", "-", "-", "c"),
    "s10": ("-", "-", "-", "-", "-", "-", "-", "-"),
    "s11": ("X", "-", "-", "c", "-", "-", "-", "c"),
    "s12": ("-", "-", "-", "-", "-", "-", "-", "-"),
    "s15": ("X", "-", "X", "c", "c", "c", "-", "-"),
    "s16": ("-", "-", "-", "c", "c", "c", "-", "-"),
    "s17": ("-", "-", "X", "c", "c", "c", "-", "-"),
}
"""s13 was not scored: torch imports there and nothing is wrong."""
