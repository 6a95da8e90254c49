"""Signals while a command starts other processes."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name))
"""Signals that end a command."""


@contextmanager
def block_signals() -> Iterator[None]:
    """Delay signals to the end of the block. Processes started in it are blocked too: until they unblock them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_resource_tracker() -> None:
    """Start multiprocessing's tracker of semaphores before it is used. Raises OSError.

    Signals to the process group do not end it, and it prints no warning if a signal ends the command.
    """
    from multiprocessing.resource_tracker import ensure_running  # late: few commands start processes

    sys.warnoptions.append("ignore::UserWarning:multiprocessing.resource_tracker")
    try:
        with block_signals():
            ensure_running()
    finally:
        sys.warnoptions.pop()
