"""Signals of a command with child processes.

A program receives the signals, and the command reports the launches before them. Worker processes end with the command.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from simtbed.process_signals import ENDING

GRACE = 0.5
"""Seconds until SIGINT is sent to a program that has not ended: the sender may have sent it to both processes."""


class Process(Protocol):
    """A program: a process of subprocess or a forked one."""

    def wait(self) -> int: ...

    def send_signal(self, sig: int, /) -> None: ...


Wait = Callable[[Process], int]
"""Waits for a process and returns its code."""


class ForkedProcess:
    """A copy of this process that calls a function, with the modules that are imported here. Raises BlockingIOError without a process.

    environment: of the process. output: file descriptor of its stdout.
    """

    def __init__(self, call: Callable[[], object], environment: Mapping[str, str], output: int | None) -> None:
        self.ended = False
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        self.pid = -1
        try:
            self.pid = os.fork()
            if not self.pid:
                end_at_signals()
        finally:
            if self.pid:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if self.pid:
            return
        code: object = 1
        try:
            os.environ.update(environment)
            if output is not None:
                os.dup2(output, 1)
            call()
        except SystemExit as error:
            code = error.code
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
        finally:
            os._exit(code if isinstance(code, int) else 1)

    def wait(self) -> int:
        _, status = os.waitpid(self.pid, 0)
        self.ended = True
        return os.waitstatus_to_exitcode(status)

    def send_signal(self, sig: int, /) -> None:
        if not self.ended:
            os.kill(self.pid, sig)


@contextmanager
def forward_signals() -> Iterator[Wait]:
    """Forward signals to the program. Yields the function that waits for it. A terminal sends SIGINT to the program itself."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread receives signals
        yield lambda process: process.wait()
        return
    received: list[int] = []
    processes: list[Process] = []

    def forward(number: int, frame: FrameType | None) -> None:
        received.append(number)
        for process in processes:
            _send(process, number)

    def wait(process: Process) -> int:
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


def _send(process: Process, number: int) -> None:
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
