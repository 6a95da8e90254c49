"""Output of `print` on an emulator: each line with its block and thread, up to a limit."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

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
        text = "".join(map(_as_printf if self.request.plain_prints else str, items))
        if not self.request.plain_prints:
            at = f"block {coordinates(block, self.request.grid)}, thread {coordinates(thread, self.request.block)}"
            text = f"{at}: {text}"
        self._keep(text)

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
            if self.request.show_prints and sys.stdout is not None:
                try:
                    _show(f"{line}\n")
                except (OSError, ValueError) as error:  # closed, or without a reader: the launch continues
                    _warn(getattr(error, "strerror", None) or str(error))


def _as_printf(item: Any) -> str:
    """Return a text or number as `printf` prints it: floats by `%f`."""
    return f"{item:f}" if isinstance(item, float | np.floating) else str(item)


def _show(line: str) -> None:
    """Write a line to stdout, without the stream's buffer if possible: Python would report a rest in it at the end of the process."""
    stream = sys.stdout
    if not isinstance(stream, io.TextIOWrapper):  # a program's own stream may have `write` alone
        stream.write(line)
        if callable(flush := getattr(stream, "flush", None)):
            flush()
        return
    descriptor = None
    with suppress(io.UnsupportedOperation):  # a stream in memory
        descriptor = stream.fileno()
    content = line.encode(stream.encoding, "backslashreplace")
    if descriptor is None:
        stream.write(content.decode(stream.encoding))
    stream.flush()
    while descriptor is not None and content:
        content = content[os.write(descriptor, content) :]


def _warn(reason: str) -> None:
    """Report on stderr, once in a process, that prints are not shown."""
    if not _WARNED and sys.stderr is not None:
        _WARNED.append(reason)
        with suppress(OSError, ValueError):
            print(f"simtbed: warning: prints of kernels are not shown: {reason} (stdout)", file=sys.stderr, flush=True)


_WARNED: list[str] = []
