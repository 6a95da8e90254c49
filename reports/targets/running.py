"""Execution of a target under an observer. Programs run in a child process, whose environment names the observer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from simtbed import Diagnostic, Launch, Run, SimtbedError, UnavailableError, launch, numba_hook
from simtbed.kernels import FunctionLauncher
from simtbed.process_signals import block_signals, start_resource_tracker
from simtbed.runtime.cores import current_cores, on_cores
from simtbed.runtime.cubin_launch import CubinLaunch
from simtbed.runtime.observer_folder import ObserverFolder
from simtbed.runtime.observing import LAUNCHES, OBSERVER, observing

from ..printing import print_message
from ..selection import find_problem
from ..terminal import progress
from .emulated import emulated_libraries
from .failed import TargetFailed
from .forwarding import ForkedProcess, Process, end_at_signals, forward_signals
from .stream import MakeObserver, describe, records
from .target import CudaFile, CudaProgram, Function, Module, Script, Shipped, Target

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

MAX_PROCESSES = 8
"""Processes for shipped variants; each needs memory for a problem, an observer and a compiler."""

_CRASHES = frozenset(
    number
    for name in ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGKILL", "SIGSEGV", "SIGXCPU")
    if (number := getattr(signal, name, None))
)
"""Signals that end a program in native code without a message."""


@dataclass(frozen=True)
class CompletedTarget:
    """The launches of a target, its exit code as a shell reports it, the findings of its host code, and its launches of cubins,
    if the observer executes compiled kernels."""

    run: Run
    code: int
    host_findings: Sequence[Diagnostic] = ()
    cubins: Sequence[CubinLaunch] = ()


def run_target(
    target: Target,
    make: MakeObserver,
    faults: Literal["raise", "return"] = "raise",
    output: int | None = None,
    reported: bool = False,
) -> CompletedTarget:
    """Run a target; observe the launches of all its threads and child processes.

    A script or function shares the standard streams of this process. A shipped variant prints nothing.
    faults: whether a shipped variant raises FaultError at a fault, or continues.
    output: file descriptor of the target's stdout; by default that of this process.
    reported: whether a report will show the findings, so that a program ending with them need not print them.
    """
    if isinstance(target, Shipped):
        with progress(f"{target} on {target.input}"):
            return CompletedTarget(_solve(target, make, faults), 0)
    with tempfile.TemporaryDirectory(prefix="simtbed-") as path, closing(ObserverFolder(Path(path))) as folder:
        folder.write_observer(LAUNCHES, describe(make, reported))
        command = partial(_run_program, target) if isinstance(target, CudaProgram) else command_of(target)
        code = run_process(command, {**_environment_of(target), OBSERVER: str(folder.path)}, output)
        if isinstance(target, CudaProgram) and code - 128 in _CRASHES:
            print_message(f"simtbed: {target}: ended by {signal.Signals(code - 128).name}")
        launches, findings, cubins = records(folder)
        return CompletedTarget(Run(launches, str(target)), code, findings, cubins)


def run_shipped(targets: Sequence[Shipped], make: MakeObserver) -> Generator[Run]:
    """Yield the runs of shipped variants in order; variants continue after a fault.

    If several cores are available, variants run concurrently in child processes. Raises the error of the first variant
    to fail, UnavailableError if a process is killed.
    """
    workers = min(current_cores(), len(targets), MAX_PROCESSES)
    pool = _process_pool(workers) if workers > 1 else None
    if pool is None:
        yield from (run_target(target, make, faults="return").run for target in targets)
        return
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import active_children

    other_processes = set(active_children())
    work = partial(_run_in_worker, make, current_cores() // workers)
    with pool, progress(f"{len(targets)} variants") as show:
        try:
            # `map` cancels the remaining futures after a failure, and the pool deadlocks if their processes have ended.
            with block_signals():  # in the imports of the workers
                futures = [pool.submit(work, target) for target in targets]
            for completed, future in enumerate(futures, 1):
                run = future.result()
                show(f"{completed} done")
                yield run
        except BaseException as error:
            for process in set(active_children()) - other_processes:  # their results are not needed
                process.kill()  # signals are blocked in its imports
            if isinstance(error, BrokenProcessPool):
                raise UnavailableError(f"a worker process was killed; {_IN_THIS_PROCESS}") from None
            if isinstance(error, BlockingIOError):
                raise UnavailableError(f"{_NO_PROCESS}; {_IN_THIS_PROCESS}") from None
            raise


_NO_PROCESS = "no other process can be started: raise the limit (ulimit -u)"
_IN_THIS_PROCESS = "with SIMTBED_THREADS=1 all variants run in this process"


def _process_pool(workers: int) -> ProcessPoolExecutor | None:
    """Return a pool, or None if the system has no semaphores."""
    from concurrent.futures import ProcessPoolExecutor  # late: most commands need no processes
    from multiprocessing import get_context

    try:
        start_resource_tracker()
        return ProcessPoolExecutor(workers, get_context("spawn"), _initialise_worker)
    except (ImportError, NotImplementedError, OSError):
        return None


def _initialise_worker() -> None:
    """Exit silently at signals, and together with the parent process."""
    from multiprocessing import parent_process

    def follow() -> None:
        if (parent := parent_process()) is not None:
            parent.join()
            os._exit(1)

    end_at_signals()
    threading.Thread(target=follow, daemon=True).start()


def _run_in_worker(make: MakeObserver, cores: int, target: Shipped) -> Run:
    with on_cores(cores):
        return _solve(target, make, "return")


def require_launches(completed: CompletedTarget, target: Target) -> None:
    """Raise TargetFailed if a target failed without a launch, SimtbedError if it succeeded without one. Findings of its host code
    are enough."""
    if not completed.run.launches and not completed.host_findings and not completed.cubins:
        if completed.code:
            raise TargetFailed(completed.code)
        raise SimtbedError(f"{target} launches no kernel")


def without_setup_kernels(run: Run, target: Target) -> Run:
    """Return the run without the setup kernels, common to all variants of a family."""
    return Run([launch for launch in run.launches if not _is_setup(launch, target)], run.target)


def setup_kernels(run: Run, target: Target) -> Run:
    """Return the launches of setup kernels only."""
    return Run([launch for launch in run.launches if _is_setup(launch, target)], run.target)


def _is_setup(launch: Launch, target: Target) -> bool:
    kernels = target.family.setup_kernels() if isinstance(target, Shipped) else ()
    kernel = launch.kernel
    return any((kernel.name, kernel.span.file) == (k.__name__, k.function.__code__.co_filename) for k in kernels)


def _run_program(target: CudaProgram) -> None:
    from .cuda_program import run  # late: in the process of the program

    run(target.build, target.arguments)


def command_of(target: Script | Module | Function | CudaFile) -> list[str]:
    if isinstance(target, CudaFile):
        call = f"run({str(target.path)!r}, {str(target.description)!r})"
        return [sys.executable, "-c", f"from {__package__}.cuda_file import run; {call}"]
    if isinstance(target, Script) and (names := emulated_libraries(target.path, target.emulate)):
        call = f"run({names!r}, {str(target.path)!r}, {target.arguments!r})"
        return [sys.executable, "-c", f"from {__package__}.emulated import run; {call}"]
    if isinstance(target, Script):
        return [sys.executable, str(target.path), *target.arguments]
    if isinstance(target, Module):
        return [sys.executable, "-m", target.name, *target.arguments]
    return [sys.executable, "-c", f"from {__package__}.call import call; call({target.reference!r})"]


def _environment_of(target: Target) -> dict[str, str]:
    """Return the environment of a program: without a GPU, its kernels of Numba and those of the libraries it imports are emulated."""
    environment = dict(os.environ)
    is_decided = isinstance(target, Script) and target.emulate is not None
    if not is_decided and numba_hook.VARIABLE not in environment:
        numba_hook.request(environment, numba_hook.WITHOUT_GPU)
    return environment


def run_process(
    command: list[str] | Callable[[], object], environment: dict[str, str], output: int | None = None
) -> int:
    """Run a command with the standard streams of this process. Return its exit code, 128 + N after signal N.

    command: its words, or a function that a copy of this process calls.
    """
    sys.stdout.flush()
    with forward_signals() as wait:
        try:
            process: Process
            if callable(command):
                process = ForkedProcess(command, environment, output)
            else:
                process = subprocess.Popen(command, env=environment, stdout=output)
        except BlockingIOError:
            raise UnavailableError(_NO_PROCESS) from None
        code = wait(process)
    return code if code >= 0 else 128 - code


def _solve(target: Shipped, make: MakeObserver, faults: Literal["raise", "return"]) -> Run:
    run = Run(target=str(target))
    problem, _ = find_problem(target.family, target.source)
    with observing(make(run.launches.append)):
        target.family.solve(problem, target.variant, FunctionLauncher(partial(launch, faults=faults)))
    return run
