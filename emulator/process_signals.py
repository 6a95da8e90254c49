"""Signals while a command starts other processes."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name))
"""Signals that end a command."""
deferring = threading.Lock()
"""Held while other threads than the main one must not be ended. The handlers of a command wait for it: `kernels.files.signals`."""


@contextmanager
def block_signals() -> Iterator[None]:
    """Delay signals to the end of the block. Processes started in it are blocked too: until they unblock them.

    A thread of a library may receive a signal that the main thread blocks. The handlers of the block therefore only record it.
    In another thread, the block holds `deferring`: the main thread receives the signal, and the command ends after the block.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    delayed: list[int] = []
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    replaced = {}
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread:
        handlers = {number: signal.getsignal(number) for number in ENDING}
        replaced = {number: own for number, own in handlers.items() if own not in (signal.SIG_IGN, None)}
    for number in replaced:
        signal.signal(number, lambda received, frame: delayed.append(received))
    try:
        with nullcontext() if in_main_thread else deferring:
            yield
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for received in delayed:
            signal.raise_signal(received)


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
