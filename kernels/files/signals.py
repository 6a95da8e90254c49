"""Signals that end a command: unfinished files are removed, and a started rename is completed first."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name))
GRACE = 0.5
"""Seconds until the process exits if the main thread has not ended: compiled code does not check for signals."""


class Stopped(BaseException):
    """A signal that ends the command. number: signal number."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


_unfinished: set[str] = set()
_deferring = threading.Lock()
_pending: list[int] = []


def register(path: str) -> None:
    """Register a file for removal by a signal, until `forget`."""
    _unfinished.add(path)


def forget(path: str) -> None:
    """Unregister a file that was renamed or removed."""
    _unfinished.discard(path)


@contextmanager
def defer_signals() -> Iterator[None]:
    """Defer signals: the body runs completely, or `check` raises in it and it undoes its work."""
    with _deferring:
        yield
    check()


def check() -> None:
    """Raise Stopped if a signal is pending."""
    if _pending:
        raise Stopped(_pending.pop())


def watch() -> None:
    """Install handlers: the first signal raises Stopped once in the main thread. A second signal, or GRACE seconds
    without an end, ends the process at once and removes its unfinished files."""
    receiving, sending = os.pipe()
    for end in (receiving, sending):
        os.set_inheritable(end, False)
    os.set_blocking(sending, False)
    signal.set_wakeup_fd(sending, warn_on_full_buffer=False)
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # ignored under nohup
            signal.signal(number, _stop)
    threading.Thread(target=_exit_after_grace, args=(receiving, os._exit), daemon=True).start()


def _stop(number: int, frame: FrameType | None) -> None:
    for signal_number in ENDING:
        if signal.getsignal(signal_number) == _stop:
            signal.signal(signal_number, _ignore)
    if _deferring.locked():
        _pending.append(number)
    else:
        raise Stopped(number)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing: the command is ending."""


def _exit_after_grace(receiving: int, end: Callable[[int], None]) -> None:
    """Wait for a signal, then for a second one or the grace period, and end the process."""
    while (number := os.read(receiving, 1)[0]) not in ENDING:
        pass
    os.set_blocking(receiving, False)
    select.select([receiving], [], [], GRACE)  # or until a second signal
    with _deferring:
        for path in list(_unfinished):
            with suppress(OSError):
                os.unlink(path)
        end(128 + number)
