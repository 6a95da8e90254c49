"""Properties of a launch that change the printed Python functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...span import Span


@dataclass(frozen=True)
class Rules:
    """Properties of a launch that change the code.

    initialised: whether reads of unwritten elements are faults. recorded: whether observers receive accesses; traced: whether
    the launch receives assignments.
    lockstep: whether a warp executes accesses to shared and
    global memory together. limits: iterations of a loop that waits, and of any other; None for no limit of others.
    waiting: spans of the loops that wait, and whether their work may stall. progress: spans of statements that end a stall.
    """

    initialised: bool
    recorded: bool
    traced: bool
    lockstep: bool
    limits: tuple[int, int | None]
    waiting: Mapping[Span, bool]
    progress: frozenset[Span]
