"""Running a target under an observer: programs in processes of their own, which know of the observer by their environment."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from simtbed import Launch, Run, SimtbedError, UnavailableError, launch
from simtbed.kernels import FunctionLauncher
from simtbed.runtime.cores import current_cores, on_cores
from simtbed.runtime.observing import OBSERVER, observing

from ..selection import find_problem
from ..terminal import progress
from .failed import TargetFailed
from .stream import MakeObserver, observer_into, read
from .target import Function, Module, Script, Shipped, Target

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

MOST_PROCESSES = 8
"""In which shipped variants run at a time: each holds a problem, what observes it, and a compiler."""


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
        with progress(f"{target} on {target.input}"):
            return Ran(_solved(target, make, faults), 0)
    with tempfile.TemporaryDirectory(prefix="simtbed-") as folder:
        plan, stream = Path(folder, "observer"), Path(folder, "launches")
        stream.touch()
        plan.write_bytes(pickle.dumps(partial(observer_into, stream, make, reported)))
        code = _run_process(_command(target), {**os.environ, OBSERVER: str(plan)}, output)
        return Ran(Run(list(read(stream)), str(target)), code)


def run_shipped(targets: Sequence[Shipped], make: MakeObserver) -> Generator[Run]:
    """The runs of shipped variants in their order, which go on at faults: some at a time, in processes of their own, where
    several cores are to be used. Raises what the first one raises that fails, UnavailableError where a process is killed."""
    workers = min(current_cores(), len(targets), MOST_PROCESSES)
    pool = _processes(workers) if workers > 1 else None
    if pool is None:
        yield from (run_target(target, make, faults="return").run for target in targets)
        return
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import active_children

    others = set(active_children())
    work = partial(_run_beside, make, current_cores() // workers)
    with pool, progress(f"{len(targets)} variants") as show:
        try:
            # No `map`, which cancels the others when one fails: the pool does not bear that their processes are gone too.
            futures = [pool.submit(work, target) for target in targets]
            for done, future in enumerate(futures, 1):
                run = future.result()
                show(f"{done} done")
                yield run
        except BaseException as error:
            for process in set(active_children()) - others:  # nobody waits for those under way
                process.terminate()
            if isinstance(error, BrokenProcessPool):
                raise UnavailableError(_ENDED) from None
            raise


_ENDED = "a process that ran some of the variants was ended from outside; with SIMTBED_THREADS=1 they run in this one"


def _processes(workers: int) -> ProcessPoolExecutor | None:
    """So many; None where the system has no semaphores."""
    from concurrent.futures import ProcessPoolExecutor  # late: most commands need no processes
    from multiprocessing import get_context

    try:
        return ProcessPoolExecutor(workers, get_context("spawn"), _begin_beside)
    except (ImportError, NotImplementedError, OSError):
        return None


def _begin_beside() -> None:
    """A process that runs variants ends at Ctrl-C without a word, and with the process that began it."""
    from multiprocessing import parent_process

    def follow() -> None:
        if (parent := parent_process()) is not None:
            parent.join()
            os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=follow, daemon=True).start()


def _run_beside(make: MakeObserver, cores: int, target: Shipped) -> Run:
    with on_cores(cores):
        return _solved(target, make, "return")


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
    kernels = target.family.setup_kernels() if isinstance(target, Shipped) else ()
    kernel = launch.kernel
    return any((kernel.name, kernel.span.file) == (one.__name__, one.function.__code__.co_filename) for one in kernels)


def _command(target: Script | Module | Function) -> list[str]:
    if isinstance(target, Script):
        return [sys.executable, str(target.path), *target.arguments]
    if isinstance(target, Module):
        return [sys.executable, "-m", target.name, *target.arguments]
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


def _solved(target: Shipped, make: MakeObserver, faults: Literal["raise", "return"]) -> Run:
    run = Run(target=str(target))
    problem, _ = find_problem(target.family, target.source)
    with observing(make(run.launches.append)):
        target.family.solve(problem, target.variant, FunctionLauncher(partial(launch, faults=faults)))
    return run
