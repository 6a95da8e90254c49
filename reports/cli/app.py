"""The command line as a whole: its commands, loaded when they run, and how errors leave it."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import NoReturn

import click
from simtbed import SimtbedError, __version__
from simtbed.kernels.files.paths import discard_standard_output, flush_standard_output

COMMANDS = {
    "list": "The kernel families, their variants by paper, and the devices.",
    "explain": "How a shipped variant works.",
    "pairhmm": "Pair-HMM forward likelihoods, from file to file.",
    "align": "Semi-global alignment with traceback, from file to file.",
    "correct": "Correct sequencing errors in reads, from file to file.",
    "simulate": "Make reads with sequencing errors, to try `simtbed correct` on.",
    "sfs": "Site frequency spectra of N individuals, from file to file.",
    "profile": "What a target would cost on a device.",
    "whatif": "How long a target's launches would take.",
    "verify": "A target on several engines, or every shipped variant against its oracle.",
    "check": "A target under the checkers, or all shipped variants.",
    "cuda": "The kernels of a target as CUDA C++.",
    "diff": "What changed from A to B, by kernel, line and counter.",
    "new": "A small project: a kernel, its oracle, its test, its workflow.",
    "ci": "A workflow: the tests on an emulator and on a GPU.",
    "doctor": "What works on this machine, what is missing, and what brings it.",
    "access": "What single warp accesses cost.",
    "hardware": "The emulator beside hardware: counters, times, and the figures of a GPU.",
    "record": "What this machine's GPU answers and counts, as a record.",
    "report": "Every table and figure of a paper, beside what is found here.",
    "bench": "How fast the emulator, the kernels and whole commands are.",
}
"""Each command with its line of `simtbed --help`. Its module has the same name and is imported when the command runs."""
ON_FILES = ("pairhmm", "align", "correct", "sfs")
"""Those that launch kernels on what is in a file."""

MOST_BEGUN = 16
"""GPUs that are begun with before it is known whether they are there."""
SWITCHING = 1e-4
"""Seconds that a thread keeps the interpreter's lock while others wait for it. By Python's 5 ms, threads that need it a moment for each
block of a packed file wait longer than they work."""


class Commands(click.Group):
    """The commands of the table, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f".{cmd_name}", __package__), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands)
@click.version_option(__version__, message="simtbed %(version)s")
def simtbed() -> None:
    """A testbed for GPU kernels that needs no GPU.

    Exit codes: 0; 1 for a finding (a fault, a disagreement); 2 for bad use or input; 3 where what was asked for could
    not run here (no GPU, no compiler, a full disk); 128 + N where signal N ended it.
    """


def run(arguments: Sequence[str]) -> int:
    """One command line; the exit code. An error is one line on stderr, and JSON on stdout where --json was asked for."""
    try:
        code = _run(list(arguments) or ["--help"])
        flush_standard_output()
        return code
    except BrokenPipeError:
        discard_standard_output()
        return 0
    except BaseException as error:
        if sys.flags.dev_mode and isinstance(error, DEFECTS):
            raise
        ended = _ended(error)
    if ended.message:
        with suppress(OSError):
            print(ended.message, file=sys.stderr)
    if ended.error and "--json" in arguments:
        return _error_as_json(ended)
    return ended.code


def _run(arguments: list[str]) -> int:
    """Without Click's `main`, which prints and exits by itself, but for a shell that completes: here errors have one
    form."""
    if "_SIMTBED_COMPLETE" in os.environ:
        simtbed.main(arguments, prog_name="simtbed")
    if gpus := _gpus(arguments):
        from simtbed.engines.cuda.startup import begin_context

        for number in range(gpus):
            begin_context(number)  # beside the imports of the command
    try:
        with simtbed.make_context("simtbed", arguments) as context:
            return int(simtbed.invoke(context) or 0)
    except click.exceptions.Exit as done:  # after --help
        return int(done.exit_code)


def _gpus(arguments: list[str]) -> int:
    """How many GPUs of this process a command on files is going to launch on, as far as its words tell."""
    words = " ".join(arguments).replace("=", " ").split(" ")
    given = dict(pairwise(words))  # of an option that is given twice, the last one
    if words[0] not in ON_FILES or given.get("--engine") != "cuda" or {"--dask", "--help"} & set(words):
        return 0
    gpus = given.get("--gpus", "1")
    return min(int(gpus), MOST_BEGUN) if gpus.isascii() and gpus.isdigit() else 1


DEFECTS = (ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, RuntimeError, TypeError, ValueError)
"""What python -X dev shows with the way to it."""


@dataclass(frozen=True)
class _Ended:
    """How an error leaves the command line. message: for people. error: for programs; empty where all is said."""

    code: int
    message: str
    error: str


def _ended(error: BaseException) -> _Ended:
    from simtbed import FaultError
    from simtbed.errors import CompileError, OutOfMemory, SimtbedError, UnavailableError
    from simtbed.kernels import InputError
    from simtbed.kernels.files.paths import DISK_ERRORS, DiskError
    from simtbed.kernels.files.signals import Stopped
    from simtbed.kernels.files.text import printable

    from ..targets.failed import TargetFailed

    def refuse(text: str, code: int = 2) -> _Ended:
        return _Ended(code, f"simtbed: {text}", text)

    if isinstance(error, click.UsageError):
        message = error.format_message()
        if isinstance(error, click.NoSuchOption):  # worded differently from version to version of Click
            message = f"No such option: {error.option_name}."
        message = f"{message} (simtbed --help lists the commands, simtbed COMMAND --help the options)"
        return refuse(printable(message))
    if isinstance(error, KeyboardInterrupt):
        return _Ended(128 + signal.SIGINT, "", "stopped by SIGINT")
    if isinstance(error, Stopped):
        return _Ended(128 + error.number, "", str(error))
    if isinstance(error, SystemExit):
        raise error
    if isinstance(error, TargetFailed):
        return _Ended(error.code, "", "")
    if isinstance(error, OSError):
        code = 3 if error.errno in DISK_ERRORS else 2
        unnamed = "the current folder" if isinstance(error, FileNotFoundError) else "output"  # which may be deleted
        return refuse(printable(f"{error.filename or unnamed}: {error.strerror or error}"), code)
    if isinstance(error, MemoryError):
        return refuse("there is not enough memory", 3)
    if isinstance(error, FaultError):
        return _Ended(1, str(error), str(error))
    if isinstance(error, CompileError):
        return refuse(str(error))
    if isinstance(error, SimtbedError):
        lines = str(error).split("\n") if not isinstance(error, (InputError, DiskError)) else [str(error)]
        unable = isinstance(error, (UnavailableError, OutOfMemory, DiskError))
        return refuse("\n".join(map(printable, lines)), 3 if unable else 2)
    place = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{type(error).__name__}: {error} ({os.path.basename(place.filename)}:{place.lineno})"
    return refuse(f"a defect of simtbed, please report it: {printable(what)}; python -X dev -m simtbed tells more", 3)


def _error_as_json(ended: _Ended) -> int:
    from .. import tables

    try:
        print(tables.as_json({"error": ended.error}), flush=True)
    except (OSError, ValueError):  # there is nobody to tell
        discard_standard_output()
    return ended.code


def main() -> NoReturn:
    """The console script."""
    from simtbed.kernels.files.signals import watch
    from simtbed.kernels.files.standard_streams import prepare

    prepare()
    watch()
    sys.setswitchinterval(SWITCHING)
    code = run(sys.argv[1:])
    try:
        flush_standard_output()
    except (OSError, SimtbedError):  # told already
        discard_standard_output()
    sys.exit(code)
