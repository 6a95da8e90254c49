"""Signals of a command with child processes.

A program receives the signals, and the command reports the launches before them. Worker processes end with the command.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from simtbed.process_signals import ENDING

GRACE = 0.5
"""Seconds until SIGINT is sent to a program that has not ended: the sender may have sent it to both processes."""

Wait = Callable[["subprocess.Popen[bytes]"], int]
"""Waits for a process and returns its code."""


@contextmanager
def forward_signals() -> Iterator[Wait]:
    """Forward signals to the program. Yields the function that waits for it. A terminal sends SIGINT to the program itself."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread receives signals
        yield subprocess.Popen.wait
        return
    received: list[int] = []
    processes: list[subprocess.Popen[bytes]] = []

    def forward(number: int, frame: FrameType | None) -> None:
        received.append(number)
        for process in processes:
            _send(process, number)

    def wait(process: subprocess.Popen[bytes]) -> int:
        processes.append(process)
        for number in tuple(received):  # before the process was started
            _send(process, number)
        return process.wait()

    wakeup = signal.set_wakeup_fd(-1)  # the command does not end with the signal
    before = {number: signal.getsignal(number) for number in ENDING}
    try:
        for number, handler in before.items():
            if handler != signal.SIG_IGN:
                from_terminal = number == signal.SIGINT and _in_foreground()
                signal.signal(number, signal.SIG_IGN if from_terminal else forward)
        yield wait
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)


def _send(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to a program that runs."""
    if number != signal.SIGINT:
        process.send_signal(number)
        return
    timer = threading.Timer(GRACE, process.send_signal, (number,))
    timer.daemon = True
    timer.start()


def end_at_signals() -> None:
    """Let signals end this process, started under `process_signals.block_signals`, without a message."""
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def _in_foreground() -> bool:
    """Return whether this process is in the foreground of a terminal, which sends SIGINT to all processes there."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
