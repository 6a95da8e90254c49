"""Signals that end a command: what it left unfinished is removed, and a rename that has begun is finished first."""

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
"""Seconds that Python's part of a command has to end by itself; compiled code may not look for signals."""


class Stopped(BaseException):
    """A signal that ends the command. number: of the signal."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


_unfinished: set[str] = set()
_holding = threading.Lock()
_waiting: list[int] = []


def register(path: str) -> None:
    """A file that a signal removes, until it is `forget`."""
    _unfinished.add(path)


def forget(path: str) -> None:
    """The file has its final name, or is removed."""
    _unfinished.discard(path)


@contextmanager
def held() -> Iterator[None]:
    """Signals wait: what is in here is done as a whole, or undone as a whole where `check` ends it."""
    with _holding:
        yield
    check()


def check() -> None:
    """Raises Stopped where a signal waits."""
    if _waiting:
        raise Stopped(_waiting.pop())


def watch() -> None:
    """From now on a signal that ends the command raises Stopped in the main thread, once. A second one, or GRACE
    without an end, ends the process at once; its unfinished files are removed all the same."""
    receiving, sending = os.pipe()
    for end in (receiving, sending):
        os.set_inheritable(end, False)
    os.set_blocking(sending, False)
    signal.set_wakeup_fd(sending, warn_on_full_buffer=False)
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, _stop)
    threading.Thread(target=_end_at_last, args=(receiving, os._exit), daemon=True).start()


def _stop(number: int, frame: FrameType | None) -> None:
    for one in ENDING:
        if signal.getsignal(one) == _stop:
            signal.signal(one, _already)
    if _holding.locked():
        _waiting.append(number)
    else:
        raise Stopped(number)


def _already(number: int, frame: FrameType | None) -> None:
    """The command is ending."""


def _end_at_last(receiving: int, end: Callable[[int], None]) -> None:
    """Wait for a signal, then for the end, which is the end of this thread too."""
    while (number := os.read(receiving, 1)[0]) not in ENDING:
        pass
    os.set_blocking(receiving, False)
    select.select([receiving], [], [], GRACE)  # or for a second one
    with _holding:
        for path in list(_unfinished):
            with suppress(OSError):
                os.unlink(path)
        end(128 + number)
