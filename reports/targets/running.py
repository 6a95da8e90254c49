"""Running a target under an observer: programs in processes of their own, which know of the observer by their environment."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from simtbed import Launch, Run, SimtbedError, launch
from simtbed.kernels import FunctionLauncher
from simtbed.runtime.observing import OBSERVER, observing

from ..selection import find_problem
from ..terminal import progress
from .failed import TargetFailed
from .stream import MakeObserver, observer_into, read
from .target import Function, Script, Shipped, Target


@dataclass(frozen=True)
class Ran:
    """A target that ran: its launches, and its exit code as a shell has it."""

    run: Run
    code: int


def run_target(
    target: Target,
    make: MakeObserver,
    faults: Literal["raise", "return"] = "raise",
    output: int | None = None,
    reported: bool = False,
) -> Ran:
    """Run a target; the launches of all its threads and of all processes that it starts are observed.

    A script or function reads and writes what this process does. A shipped variant prints nothing; it raises FaultError
    at a fault, or goes on. output: the file descriptor that is its stdout; that of this process if not said. reported: whether
    what is found will be shown, so that a program that ends with it need not.
    """
    if isinstance(target, Shipped):
        return _run_shipped(target, make, faults)
    with tempfile.TemporaryDirectory(prefix="simtbed-") as folder:
        plan, stream = Path(folder, "observer"), Path(folder, "launches")
        stream.touch()
        plan.write_bytes(pickle.dumps(partial(observer_into, stream, make, reported)))
        code = _run_process(_command(target), {**os.environ, OBSERVER: str(plan)}, output)
        return Ran(Run(list(read(stream)), str(target)), code)


def require_launches(ran: Ran, target: Target) -> None:
    """Raises SimtbedError where a target that did not fail launched nothing, TargetFailed where one failed before that."""
    if not ran.run.launches:
        if ran.code:
            raise TargetFailed(ran.code)
        raise SimtbedError(f"{target} launches no kernel")


def own(run: Run, target: Target) -> Run:
    """The run without the kernels that prepare what all variants of a family need."""
    return Run([one for one in run.launches if not _prepares(one, target)], run.target)


def preparing(run: Run, target: Target) -> Run:
    """The run with those alone."""
    return Run([one for one in run.launches if _prepares(one, target)], run.target)


def _prepares(launch: Launch, target: Target) -> bool:
    kernels = target.family.preparing() if isinstance(target, Shipped) else ()
    kernel = launch.kernel
    return any((kernel.name, kernel.span.file) == (one.__name__, one.function.__code__.co_filename) for one in kernels)


def _command(target: Script | Function) -> list[str]:
    if isinstance(target, Script):
        return [sys.executable, str(target.path), *target.arguments]
    return [sys.executable, "-c", f"from {__package__}.call import call; call({target.reference!r})"]


def _run_process(command: list[str], environment: dict[str, str], output: int | None) -> int:
    sys.stdout.flush()
    process = subprocess.Popen(command, env=environment, stdout=output)
    with _leaving_signals(process):
        code = process.wait()
    return code if code >= 0 else 128 - code


@contextmanager
def _leaving_signals(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ctrl-C goes to the program alone, and so does a request to end; what it did until then is reported."""
    if threading.current_thread() is not threading.main_thread():  # which alone gets signals
        yield
        return
    before = [signal.signal(signal.SIGINT, signal.SIG_IGN)]
    before.append(signal.signal(signal.SIGTERM, lambda number, frame: process.terminate()))
    try:
        yield
    finally:
        for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
            signal.signal(number, handler)


def _run_shipped(target: Shipped, make: MakeObserver, faults: Literal["raise", "return"]) -> Ran:
    run = Run(target=str(target))
    problem, name = find_problem(target.family, target.source)
    with progress(f"{target} on {name}"), observing(make(run.launches.append)):
        target.family.solve(problem, target.variant, FunctionLauncher(partial(launch, faults=faults)))
    return Ran(run, 0)
