"""What a command works on: a script or a module, a function that launches, or a shipped variant, found by how it is named."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simtbed import SimtbedError
from simtbed.kernels import Family

from ..selection import find_variant, variants_called

_FUNCTION = re.compile(r"(?:.*\.py|[A-Za-z_][\w.]*):[A-Za-z_]\w*")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
KEPT = ".json"
"""How the name of a run ends that was kept."""


@dataclass(frozen=True)
class Script:
    """A Python script, run as `python` would with these arguments."""

    path: Path
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join([str(self.path), *self.arguments])

    @property
    def files(self) -> list[Path]:
        """What it is read from."""
        return [self.path]


@dataclass(frozen=True)
class Module:
    """A module of a package, run as `python -m` would with these arguments."""

    name: str
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join([self.name, *self.arguments])

    @property
    def files(self) -> list[Path]:
        return []


@dataclass(frozen=True)
class Function:
    """A host function without parameters, as "package.module:function" or "file.py:function"."""

    reference: str

    def __str__(self) -> str:
        return self.reference

    @property
    def files(self) -> list[Path]:
        place = self.reference.rpartition(":")[0]
        return [Path(place)] if place.endswith(".py") else []


@dataclass(frozen=True)
class Shipped:
    """A variant of a family that simtbed ships, which solves the problem of a file, or the shipped example."""

    family: Family[Any]
    variant: str
    source: Path | None = None

    def __str__(self) -> str:
        return self.variant

    @property
    def files(self) -> list[Path]:
        return [] if self.source is None else [self.source]

    @property
    def name(self) -> str:
        """FAMILY/VARIANT, which no other one is called."""
        return f"{self.family.name}/{self.variant}"

    @property
    def input(self) -> str:
        """What to call the problem."""
        return "the example" if self.source is None else str(self.source)


Target = Script | Module | Function | Shipped


def target_name(target: Target) -> str:
    """What no other target is called; FAMILY/VARIANT of a shipped one."""
    return target.name if isinstance(target, Shipped) else str(target)


def is_program(name: str) -> bool:
    """Whether a name stands for something that may have arguments of its own: no shipped variant."""
    if variants_called(name) or name.endswith(KEPT):
        return False
    return name.endswith(".py") or bool(_FUNCTION.fullmatch(name)) or Path(name).is_file() or _is_module(name)


def _is_module(name: str) -> bool:
    """Whether a dotted name begins with a package that can be imported here. Nothing is imported."""
    if not _MODULE.fullmatch(name):
        return False
    top = name.partition(".")[0]
    return Path(top).is_dir() or importlib.util.find_spec(top) is not None


def find_target(name: str, arguments: Sequence[str] = (), source: Path | None = None) -> Target:
    """What TARGET and the arguments after it stand for. source: an input, which shipped variants take.

    Raises SimtbedError where there is no such target.
    """
    if name.endswith(KEPT):
        raise SimtbedError(f"{name} is a run that was kept: simtbed check and simtbed diff take one")
    if not is_program(name):
        if arguments:
            raise SimtbedError(f"{name} takes no arguments, not {' '.join(arguments)}")
        return Shipped(*find_variant(name), source)
    if source is not None:
        raise SimtbedError(f"--input is for shipped variants; arguments of {name} come after it")
    if _FUNCTION.fullmatch(name):
        if arguments:
            raise SimtbedError(f"{name} is called without arguments, not with {' '.join(arguments)}")
        return Function(name)
    if Path(name).is_file():
        return Script(Path(name), tuple(arguments))
    if not name.endswith(".py"):
        return Module(name, tuple(arguments))
    raise SimtbedError(
        f"{name}: No such file; a script, package.module, module:function, file.py:function or a shipped variant is named"
    )
