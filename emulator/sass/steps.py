"""Instructions ready to run."""

from collections.abc import Callable
from typing import Any, NamedTuple

from .control import Control
from .memory import Execute
from .operands import Decoded
from .state import State


class Step(NamedTuple):
    """An instruction ready to run. control: of one that ends a run of straight-line code. guard: its predicate. exchanges:
    whether lanes exchange values."""

    op: Decoded
    execute: Execute | None
    control: Control | None
    guard: Callable[[State, Any], Any] | None
    exchanges: bool = False
