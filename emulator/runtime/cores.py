"""How many of this machine's cores a process is to use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..checked import whole
from ..errors import LaunchError

MOST_CORES = 1 << 16
"""More than any machine has."""

_CURRENT: ContextVar[int] = ContextVar("the cores to use; 0 where nobody said", default=0)


def current_cores() -> int:
    """As many as `on_cores` says, or SIMTBED_THREADS, or one a processor. Raises LaunchError."""
    if chosen := _CURRENT.get():
        return chosen
    given = os.environ.get("SIMTBED_THREADS", "")
    if given and not (given.isascii() and given.isdigit() and int(given) > 0):
        raise LaunchError(f"SIMTBED_THREADS is a positive number of threads, not {given!r}")
    return int(given or os.cpu_count() or 1)


@contextmanager
def on_cores(number: int) -> Iterator[None]:
    """Inside, launches on the jit engine and the stages of files take so many threads."""
    before = _CURRENT.set(whole("cores", number, 1, MOST_CORES))
    try:
        yield
    finally:
        _CURRENT.reset(before)
