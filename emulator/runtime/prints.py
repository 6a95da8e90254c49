"""Output of `print` on an emulator: each line with its block and thread, up to a limit."""

import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ..ir.names import CONVERSION
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
        self._unfinished: dict[tuple[int, int], str] = {}  # lines without an end, by block and thread
        self._shown = 0

    def add(self, block: int, thread: int, items: Sequence[Any]) -> None:
        """Add the line of one thread. block, thread: linear indices. items: texts and numbers."""
        text, ends = formatted(items, _as_printf if self.request.plain_prints else str)
        text = self._unfinished.pop((block, thread), "") + text
        if not ends:
            self._unfinished[block, thread] = text
            return
        self._keep_line(block, thread, text)

    def _keep_line(self, block: int, thread: int, text: str) -> None:
        self.count += 1
        if len(self.lines) == MAX_LINES:
            return
        if not self.request.plain_prints:
            at = f"block {coordinates(block, self.request.grid)}, thread {coordinates(thread, self.request.block)}"
            text = f"{at}: {text}"
        self._keep(text)

    def begin_again(self) -> None:
        """Start the launch again in the same order: the repeated lines are not shown twice."""
        self.lines, self.count, self._unfinished = [], 0, {}

    def finish(self) -> list[str]:
        """Return all lines; the last one counts the omitted lines."""
        for (block, thread), text in self._unfinished.items():
            self._keep_line(block, thread, text)
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


def formatted(items: Sequence[Any], plain: Callable[[Any], str]) -> tuple[str, bool]:
    """Return the text of a print, and whether it ends the line. plain: the text of an item without a conversion."""
    out, numbers, conversion = list[str](), list[Any](), ""
    for item in items:
        if isinstance(item, str):
            text, mark, conversion = item.partition(CONVERSION)
            out.append(text)
            if mark and not conversion:
                return "".join(out), False
        elif not conversion:
            out.append(plain(item))
        else:
            numbers.append(item)
            if len(numbers) > conversion.count("*"):
                out.append(converted(conversion, numbers))
                numbers, conversion = [], ""
    return "".join(out), True


_LENGTH = re.compile(r"(?:hh|h|ll|l|z|j|t|L)(?=[a-zA-Z]$)")


def converted(conversion: str, numbers: Sequence[Any]) -> str:
    """Return numbers in a conversion of C's `printf`, the widths first."""
    *widths, value = (number.item() if isinstance(number, np.generic) else number for number in numbers)
    form, letter = _LENGTH.sub("", conversion)[:-1], conversion[-1]
    if letter in "aA":
        form, letter, value = form, "s", float(value).hex()
    elif letter == "p":
        form, letter, value = form, "s", hex(int(value))
    elif letter == "c":
        value = chr(int(value) & 255)
    elif letter == "u":
        letter = "d"
    if letter in "dioxXc" and isinstance(value, float):
        value = int(value)
    return str(f"{form}{letter}" % (*widths, value))


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
