"""What a step costs, and what it is called.

Cost is one scale for all: 1 for a variable, 2 to 4 for a small package or a file, 8 for a
reinstall of torch, 12 for another build or release of it, 20 for a new environment, 30 and up for
what needs admin rights or a reboot. Steps that need neither admin rights nor a reboot, and change
least, are cheapest.
"""

from __future__ import annotations

import re

VARIABLE, SMALL, COMPANION, REINSTALL, BUILD, ENVIRONMENT = 1, 2, 4, 8, 12, 20
ADMIN = REBOOT = 30


def slug(*words: str) -> str:
    """Return *words* as the name of a step."""
    return "-".join(re.findall(r"[a-z0-9]+", "-".join(words).lower()))
