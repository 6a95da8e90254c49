"""What the threads of a launch print on an emulator: each line with its block and thread, up to a limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..sanitizer.places import coordinates
from .engine import Request

MOST_LINES = 1000
"""Lines of one launch that are kept and shown."""


class Prints:
    """The lines of one launch. They are shown as they come where the request says so."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.lines: list[str] = []
        self.count = 0
        self._shown = 0

    def add(self, block: int, thread: int, parts: Sequence[Any]) -> None:
        """The line of one thread. block, thread: linear indices. parts: texts and numbers."""
        self.count += 1
        if len(self.lines) == MOST_LINES:
            return
        at = f"block {coordinates(block, self.request.grid)}, thread {coordinates(thread, self.request.block)}"
        self._keep(f"{at}: {''.join(map(str, parts))}")

    def begin_again(self) -> None:
        """The launch runs again, in the same order: it prints the same lines, which are shown already."""
        self.lines, self.count = [], 0

    def finish(self) -> list[str]:
        """All lines; the last one says how many were left out."""
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
