"""Number of processor cores a process may use."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from ..checked import shown, whole
from ..errors import LaunchError

MAX_CORES = 1 << 16
"""Above the cores of any machine."""

_CURRENT: ContextVar[int] = ContextVar("the cores to use; 0 for the default", default=0)


def current_cores() -> int:
    """Return the cores set by `on_cores`, else SIMTBED_THREADS, else one a processor. Raises LaunchError."""
    if chosen := _CURRENT.get():
        return chosen
    setting = os.environ.get("SIMTBED_THREADS", "")
    if not setting:
        return _processors()
    number = int(setting) if setting.isascii() and setting.isdigit() and len(setting) < 10 else 0
    if not 0 < number <= MAX_CORES:
        raise LaunchError(
            f"SIMTBED_THREADS is a positive number of threads, not {shown(setting)}; at most {MAX_CORES:,}"
        )
    return number


@cache
def _processors() -> int:
    return os.cpu_count() or 1


@contextmanager
def on_cores(number: int) -> Iterator[None]:
    """Limit launches on the jit engine and stages of files to this many threads."""
    before = _CURRENT.set(whole("cores", number, 1, MAX_CORES))
    try:
        yield
    finally:
        _CURRENT.reset(before)
