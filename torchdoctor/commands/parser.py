"""argparse, with complaints that are raised, so that they come in the format asked for."""

from __future__ import annotations

import argparse
from typing import NoReturn

from torchdoctor.model import DoctorError


class Parser(argparse.ArgumentParser):
    """A parser that raises what others print before they exit."""

    def error(self, message: str) -> NoReturn:
        """Raise *message* as wrong usage."""
        raise DoctorError(f"{message}; see: {self.prog} --help", kind="usage")
