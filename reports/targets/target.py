"""What a command works on: a script, a function that launches, or a shipped variant, found by how it is named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simtbed import SimtbedError
from simtbed.kernels import Family

from ..selection import find_variant, variants_called

_FUNCTION = re.compile(r"(?:.*\.py|[A-Za-z_][\w.]*):[A-Za-z_]\w*")


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


Target = Script | Function | Shipped


def target_name(target: Target) -> str:
    """What no other target is called; FAMILY/VARIANT of a shipped one."""
    return target.name if isinstance(target, Shipped) else str(target)


def is_program(name: str) -> bool:
    """Whether a name stands for something that may have arguments of its own: no shipped variant."""
    return not variants_called(name) and (
        name.endswith(".py") or bool(_FUNCTION.fullmatch(name)) or Path(name).is_file()
    )


def find_target(name: str, arguments: Sequence[str] = (), source: Path | None = None) -> Target:
    """What TARGET and the arguments after it stand for. source: an input, which shipped variants take.

    Raises SimtbedError where there is no such target.
    """
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
    if not Path(name).is_file():
        raise SimtbedError(
            f"{name}: No such file; a script, module:function, file.py:function or a shipped variant is named"
        )
    return Script(Path(name), tuple(arguments))
