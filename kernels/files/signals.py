"""Signals that end a command: unfinished files are removed, and a started rename is completed first."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType

from simtbed.process_signals import ENDING, deferring

GRACE = 0.5
"""Seconds until the process exits if the main thread has not ended: compiled code does not check for signals."""


class Stopped(BaseException):
    """A signal that ends the command. number: signal number."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


_unfinished: set[str] = set()
_pending: list[int] = []


def register(path: str) -> None:
    """Register a file or a folder for removal by a signal, until `forget`."""
    _unfinished.add(path)


def forget(path: str) -> None:
    """Unregister a file that was renamed or removed."""
    _unfinished.discard(path)


@contextmanager
def defer_signals() -> Iterator[None]:
    """Defer signals: the body runs completely, or `check` raises in it and it undoes its work."""
    with deferring:
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
    sys.unraisablehook = partial(_report_unraisable, sys.unraisablehook)
    with suppress(RuntimeError):  # without the thread, the command ends when Python code runs
        threading.Thread(target=_exit_after_grace, args=(receiving, os._exit), daemon=True).start()


def release() -> None:
    """Let signals end the process again without handlers: the command has ended. Raises Stopped for an earlier signal."""
    signal.set_wakeup_fd(-1)
    for number in ENDING:
        if signal.getsignal(number) in (_stop, _ignore):
            signal.signal(number, signal.SIG_DFL)


def _report_unraisable(report: Callable[[sys.UnraisableHookArgs], object], event: sys.UnraisableHookArgs) -> None:
    """Report an exception that Python cannot raise, such as in a callback of its imports. If it is Stopped, the process exits after
    the grace period."""
    if event.exc_type is not Stopped:
        report(event)


def _stop(number: int, frame: FrameType | None) -> None:
    for signal_number in ENDING:
        if signal.getsignal(signal_number) == _stop:
            signal.signal(signal_number, _ignore)
    if deferring.locked():
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
    with deferring:
        for path in list(_unfinished):
            with suppress(OSError):
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        end(128 + number)
