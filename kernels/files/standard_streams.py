"""Standard streams of a command: all of them are open and can print any text."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress


def prepare() -> None:
    """Open closed standard streams on the null device, so that no other file gets their descriptors. Reading and
    writing them fails; messages on stderr are lost. Characters outside of a stream's encoding are escaped. Child
    processes inherit the closed streams."""
    for number, flags in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        if _is_closed(number):
            os.open(os.devnull, flags | getattr(os, "O_CLOEXEC", 0))  # uses the lowest free number
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
