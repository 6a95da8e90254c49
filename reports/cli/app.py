"""The `simtbed` command: lazy loading of subcommands, and conversion of exceptions to messages and exit codes."""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import NoReturn

import click
from simtbed import SimtbedError, __version__
from simtbed.errors import CompileError, LaunchError, OutOfMemory, UnavailableError
from simtbed.escaping import printable
from simtbed.kernels.files.paths import DISK_ERRORS, DiskError, discard_standard_output, flush_standard_output
from simtbed.kernels.files.signals import Stopped, release, watch
from simtbed.kernels.files.standard_streams import prepare

from ..gpu_count import gpus_for_file
from ..printing import print_message, print_text
from ..targets.failed import TargetFailed

GROUPS = {
    "Kernels": {
        "check": "Run a target, or all shipped variants, under the checkers.",
        "profile": "Profile the kernels of a target on a device.",
        "verify": "Compare engines on a target, or all shipped variants with their oracles.",
        "debug": "Stop in a kernel of a target, with pdb's commands.",
        "cuda": "Print the kernels of a target as CUDA C++.",
        "numba": "Run a program with its Numba-CUDA kernels on an emulator.",
        "whatif": "Predict the time of a target's launches.",
        "diff": "Compare the counters of A and B by kernel, line and counter.",
    },
    "Genomics": {
        "list": "List the kernel families, their variants by paper, and the devices.",
        "explain": "Explain a shipped variant.",
        "pairhmm": "Compute Pair-HMM forward likelihoods, from file to file.",
        "align": "Align pairs of sequences semi-globally, from file to file.",
        "correct": "Correct sequencing errors in reads, from file to file.",
        "simulate": "Simulate reads with sequencing errors.",
        "sfs": "Compute site frequency spectra of N individuals, from file to file.",
        "report": "Compare the tables and figures of a paper with this package.",
    },
    "Project": {
        "new": "Create a project with a kernel, its oracle, its test and its workflow.",
        "ci": "Write a workflow with the tests on an emulator and on a GPU.",
        "doctor": "Run a kernel by each front end and engine; list missing components.",
        "access": "Compute the cost of single warp accesses.",
        "hardware": "Compare the emulator with a GPU: counters, times, device constants.",
        "record": "Record the answers and counters of this machine's GPU.",
        "bench": "Measure the speed of the emulator, the kernels or whole commands.",
    },
}
"""Sections of `simtbed --help`: commands with their lines. A command is imported from the module of its name on first use."""
COMMANDS = {name: line for group in GROUPS.values() for name, line in group.items()}
FILE_COMMANDS = ("pairhmm", "align", "correct", "sfs")
"""Commands that launch kernels on the contents of files."""

MAX_EARLY_CONTEXTS = 16
"""GPUs to initialise before their existence is verified."""
SWITCH_INTERVAL = 1e-4
"""Interval of thread switches, in seconds. With Python's 5 ms, threads that need the interpreter lock briefly for each block of a packed
file wait longer than they work."""

MIN_ADDRESS_SPACE = 640 << 20
"""Address space in bytes of NumPy, LLVM and a small launch."""
BLAS_THREADS, ONE_THREAD = "OPENBLAS_NUM_THREADS", "1"


class Commands(click.Group):
    """A group of commands that are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f".{cmd_name}", __package__), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(group.items()))


@click.group(cls=Commands)
@click.version_option(__version__, message="simtbed %(version)s")
def simtbed() -> None:
    """A testbed for GPU kernels that needs no GPU.

    Exit codes: 0 for success; 1 for a finding (a fault, a disagreement); 2 for bad use or input; 3 if the command cannot
    run on this machine (no GPU, no compiler, a full disk); 128 + N after signal N.
    """


def run(arguments: Sequence[str], begin: Callable[[], object] = lambda: None) -> int:
    """Run a command line and return the exit code. begin: called before the work, after all imports for the command line.

    An error is printed as one line on stderr, with --json also as JSON on stdout.
    """
    try:
        code = _run(list(arguments) or ["--help"], begin)
        flush_standard_output()
        return code
    except BrokenPipeError:
        discard_standard_output()
        return 0
    except BaseException as error:
        if sys.flags.dev_mode and isinstance(error, DEFECTS):
            raise
        failure = _failure(error)
    if failure.message:
        print_message(failure.message)
    if failure.error and "--json" in arguments:
        return _error_as_json(failure)
    return failure.code


def _run(arguments: list[str], begin: Callable[[], object]) -> int:
    """Run a command line without Click's `main`, which prints errors in its own format; completion in a shell needs it."""
    if "_SIMTBED_COMPLETE" in os.environ:
        simtbed.main(arguments, prog_name="simtbed")
    if gpus := _gpus(arguments):
        from simtbed.engines.cuda.startup import begin_context

        for number in range(gpus):
            begin_context(number)  # concurrently with the imports of the command
    try:
        with simtbed.make_context("simtbed", arguments, obj=begin) as context:
            return int(simtbed.invoke(context) or 0)
    except click.exceptions.Exit as error:  # after --help
        return int(error.exit_code)


def _gpus(arguments: list[str]) -> int:
    """Estimate the number of GPUs that a command on files will use, from its unparsed arguments."""
    words = " ".join(arguments).replace("=", " ").split(" ")
    values = dict(pairwise(words))  # the last value of a repeated option
    if words[0] not in FILE_COMMANDS or values.get("--engine") != "cuda" or {"--dask", "--help"} & set(words):
        return 0
    gpus = values.get("--gpus", "1")
    number = min(int(gpus), MAX_EARLY_CONTEXTS) if gpus.isascii() and gpus.isdigit() else 1
    return gpus_for_file(words[1] if len(words) > 1 else None, number)


DEFECTS = (ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, RuntimeError, TypeError, ValueError)
"""Exceptions with a traceback under python -X dev."""


@dataclass(frozen=True)
class _Failure:
    """Exit code and texts of an exception. message: for stderr. error: for JSON; empty if already printed."""

    code: int
    message: str
    error: str


def _failure(error: BaseException) -> _Failure:
    number = _signal(error)
    if number is not None:  # first: a signal in an import leaves modules that cannot be imported again
        return _Failure(128 + number, "", f"stopped by {signal.Signals(number).name}")
    # Loaded only by launches: another import may be the error.
    fault: type[BaseException] | tuple[()] = getattr(sys.modules.get("simtbed.runtime.result"), "FaultError", ())

    def refuse(text: str, code: int = 2) -> _Failure:
        return _Failure(code, f"simtbed: {text}", text)

    if isinstance(error, click.UsageError):
        message = error.format_message()
        if isinstance(error, click.NoSuchOption):  # the text depends on the version of Click
            message = f"No such option: {error.option_name}."
        message = f"{message} (simtbed --help lists the commands, simtbed COMMAND --help the options)"
        return refuse(printable(message))
    if isinstance(error, SystemExit):
        raise error
    if isinstance(error, TargetFailed):
        return _Failure(error.code, "", "")
    if not isinstance(error, SimtbedError) and (lack := _lack(error)):
        return refuse(lack, 3)
    if isinstance(error, OSError):
        code = 3 if error.errno in DISK_ERRORS else 2
        unnamed = (
            "the current folder" if isinstance(error, FileNotFoundError) else "output"
        )  # the folder may be deleted
        return refuse(printable(f"{error.filename or unnamed}: {error.strerror or error}"), code)
    if isinstance(error, fault):
        return _Failure(1, str(error), str(error))
    if isinstance(error, CompileError):
        return refuse(str(error))
    if isinstance(error, SimtbedError):
        lines = str(error).split("\n") if isinstance(error, LaunchError) else [str(error)]  # texts of compilers
        unable = isinstance(error, (UnavailableError, OutOfMemory, DiskError))
        return refuse("\n".join(map(printable, lines)), 3 if unable else 2)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = f"{type(error).__name__}: {error} ({os.path.basename(frame.filename)}:{frame.lineno})"
    advice = "python -X dev -m simtbed prints a traceback"
    return refuse(f"a defect of simtbed, please report it: {printable(text)}; {advice}", 3)


def _lack(error: BaseException) -> str:
    """Return the lack of memory, threads or a library that led to an error, directly or through others; "" for none."""
    for cause in _causes(error):
        text = " ".join(str(cause).split())
        if isinstance(cause, MemoryError) or "failed to map segment" in text or "Cannot allocate memory" in text:
            return "there is not enough memory"
        if isinstance(cause, RuntimeError) and text == "can't start new thread":
            return "no other thread can be started: raise the limits (ulimit -u, -v), or set SIMTBED_THREADS=1"
        if isinstance(cause, ImportError) and cause.name and not cause.name.startswith("simtbed"):
            return f"{printable(cause.name)} cannot be imported: {printable(text)}"
    return ""


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, and the errors that led to it."""
    while error is not None:
        yield error
        error = error.__context__


def _signal(error: BaseException) -> int | None:
    """Return the number of the signal that led to an error, directly or through other errors; None if there is none."""
    for cause in _causes(error):
        if isinstance(cause, KeyboardInterrupt):
            return signal.SIGINT
        if isinstance(cause, Stopped):
            return cause.number
    return None


def require_address_space() -> None:
    """Raise OutOfMemory if the limit of the address space is too small. LLVM ends a process that it refuses memory."""
    from simtbed.runtime.memory import address_space

    if (limit := address_space()) < MIN_ADDRESS_SPACE:
        least = MIN_ADDRESS_SPACE >> 20
        raise OutOfMemory(f"there is not enough memory: ulimit -v is {limit >> 20} MiB, expected at least {least} MiB")


def _error_as_json(failure: _Failure) -> int:
    from .. import tables

    try:
        print_text(tables.as_json({"error": failure.error}), flush=True)
    except (OSError, ValueError):  # stdout is closed
        discard_standard_output()
    return failure.code


def main() -> NoReturn:
    """Entry point of the console script."""
    prepare()
    sys.setswitchinterval(SWITCH_INTERVAL)
    # Commands multiply no matrices. The library of NumPy would start threads and take memory for them.
    own_setting = os.environ.setdefault(BLAS_THREADS, ONE_THREAD) is ONE_THREAD

    def begin() -> None:
        if own_setting:  # it is read; a program of the user has its own
            del os.environ[BLAS_THREADS]
        watch()
        if "numpy" in sys.modules:  # the command computes
            require_address_space()

    try:
        code = run(sys.argv[1:], begin)
        try:
            flush_standard_output()
        except (OSError, SimtbedError):  # reported already
            discard_standard_output()
        release()
    except Stopped as error:  # after the work, while a message was printed
        code = 128 + error.number
    sys.exit(code)
