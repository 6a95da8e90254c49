"""Registry of the shipped kernel families. Each family is a folder of kernels and their host code."""

from __future__ import annotations

from typing import Any

from . import alignment, correction, pairhmm, sfs
from .family import Agreement, Family, FunctionLauncher, InputError, Launcher, Variant

FAMILIES: dict[str, Family[Any]] = {
    family.name: family for family in (pairhmm.FAMILY, alignment.FAMILY, correction.FAMILY, sfs.FAMILY)
}
"""All families by their names on the command line."""

__all__ = ["FAMILIES", "Agreement", "Family", "FunctionLauncher", "InputError", "Launcher", "Variant"]
