"""The command line as a whole: its commands, loaded when they run, and how errors leave it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click
from simtbed import __version__

COMMANDS = {
    "list": "The kernel families, their variants, and the devices.",
    "pairhmm": "Pair-HMM forward likelihoods, from file to file.",
    "align": "Semi-global alignment with traceback, from file to file.",
    "correct": "Correct sequencing errors in reads, from file to file.",
    "simulate": "Make reads with sequencing errors, to try `simtbed correct` on.",
    "sfs": "Site frequency spectra of N individuals, from file to file.",
    "profile": "What a variant would cost on a device.",
    "verify": "Every variant on every engine, against its oracle.",
    "check": "Variants over a whole input under the checkers.",
    "cuda": "A variant as CUDA C++.",
    "access": "What single warp accesses cost.",
    "hardware": "The emulator's counters beside Nsight Compute's.",
    "record": "What this machine's GPU answers and counts, as a record.",
    "bench": "How fast the emulator is, and how fast the kernels are.",
}
"""Each command with its line of `simtbed --help`. Its module has the same name and is imported when the command runs."""


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
    not run here (no GPU, no compiler).
    """


def run(arguments: Sequence[str]) -> int:
    """One command line; the exit code. An error is one line on stderr."""
    try:
        # Click wants to print and exit by itself; here errors have one form.
        return int(simtbed.main(list(arguments) or ["--help"], prog_name="simtbed", standalone_mode=False) or 0)
    except click.UsageError as error:
        message = error.format_message()
        if isinstance(error, click.NoSuchOption):  # worded differently from version to version of Click
            message = f"No such option: {error.option_name}."
        return _refuse(f"{message} (simtbed --help lists the commands, simtbed COMMAND --help the options)")
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _refuse(f"{error.filename or 'output'}: {error.strerror or error}")
    except Exception as error:
        from simtbed import FaultError
        from simtbed.errors import OutOfMemory, SimtbedError, UnavailableError

        if isinstance(error, FaultError):
            print(error, file=sys.stderr)
            return 1
        if isinstance(error, (UnavailableError, OutOfMemory)):
            return _refuse(str(error), code=3)
        if isinstance(error, SimtbedError):
            return _refuse(str(error))
        raise
    except KeyboardInterrupt:
        return 130


def _refuse(message: str, code: int = 2) -> int:
    print(f"simtbed: {message}", file=sys.stderr)
    return code


def main() -> NoReturn:
    """The console script."""
    sys.exit(run(sys.argv[1:]))
