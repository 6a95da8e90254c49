"""Output of `print` on an emulator: each line with its block and thread, up to a limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..sanitizer.places import coordinates
from .engine import Request

MAX_LINES = 1000
"""Maximum stored and shown lines of a launch."""


class Prints:
    """The lines of one launch, shown immediately if the request says so."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.lines: list[str] = []
        self.count = 0
        self._shown = 0

    def add(self, block: int, thread: int, items: Sequence[Any]) -> None:
        """Add the line of one thread. block, thread: linear indices. items: texts and numbers."""
        self.count += 1
        if len(self.lines) == MAX_LINES:
            return
        at = f"block {coordinates(block, self.request.grid)}, thread {coordinates(thread, self.request.block)}"
        self._keep(f"{at}: {''.join(map(str, items))}")

    def begin_again(self) -> None:
        """Start the launch again in the same order: the repeated lines are not shown twice."""
        self.lines, self.count = [], 0

    def finish(self) -> list[str]:
        """Return all lines; the last one counts the omitted lines."""
        more = self.count - len(self.lines)
        if more:
            self._keep(f"{more:,} more print{'s' if more > 1 else ''}")
        return self.lines

    def _keep(self, line: str) -> None:
        self.lines.append(line)
        if len(self.lines) > self._shown:
            self._shown += 1
            if self.request.show_prints:
                print(line, flush=True)
