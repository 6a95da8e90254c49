"""The standard streams of a command: each is there, and prints whatever text it is given."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress


def prepare() -> None:
    """Open the standard streams that are closed, or the next file would take their place: reading and writing fail
    there, and what is told on stderr is lost. Characters that a stream's encoding lacks are escaped. What this process
    starts finds closed what was closed."""
    for number, flags in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        if _is_closed(number):
            os.open(os.devnull, flags | getattr(os, "O_CLOEXEC", 0))  # takes the lowest number that is free
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _is_closed(number: int) -> bool:
    with suppress(OSError):
        os.fstat(number)
        return False
    return True
