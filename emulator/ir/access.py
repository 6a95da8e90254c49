"""The kinds of access to memory: a space and an operation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..language.types import Space


class Operation(StrEnum):
    """What an access does. REDUCTION is an atomic operation whose result nobody uses."""

    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"
    REDUCTION = "reduction"


@dataclass(frozen=True)
class AccessKind:
    """What one statement does to which space of memory. Its text, such as global_load, begins the names of its
    counters."""

    space: Space
    operation: Operation

    def __str__(self) -> str:
        return f"{self.space}_{self.operation}"

    @property
    def atomic(self) -> bool:
        return self.operation in (Operation.ATOMIC, Operation.REDUCTION)
