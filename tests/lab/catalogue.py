"""All recipes of the laboratory."""

from __future__ import annotations

from tests.lab.real import OLD
from tests.lab.recipes import RECIPES

__all__ = ("OLD", "RECIPES")
