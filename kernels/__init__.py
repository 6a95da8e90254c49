"""The kernels that ship with the testbed: a registry of families, each a folder of kernels with its host code."""

from __future__ import annotations

from typing import Any

from . import alignment, correction, pairhmm, sfs
from .family import Agreement, Family, FunctionLauncher, InputError, Launcher, Variant

FAMILIES: dict[str, Family[Any]] = {
    family.name: family for family in (pairhmm.FAMILY, alignment.FAMILY, correction.FAMILY, sfs.FAMILY)
}
"""Every family, by the name the command line knows it by."""

__all__ = ["FAMILIES", "Agreement", "Family", "FunctionLauncher", "InputError", "Launcher", "Variant"]
