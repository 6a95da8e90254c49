"""The process of a CUDA C++ program: build it, and run its `main` with its kernels on an emulator."""

import sys
from collections.abc import Sequence

from simtbed import CompileError, SimtbedError, UnavailableError
from simtbed.host_apis.cuda.build import Program
from simtbed.host_apis.cuda.process import run as run_program
from simtbed.runtime import observing

from ..printing import print_message
from .uncaught import UNAVAILABLE


def run(build: Sequence[str], arguments: Sequence[str]) -> None:
    """Run a program. build: its sources and compiler options. arguments: its own.

    Exit with its code; with 2 if it does not compile, with 3 if a component or a kernel is not supported.
    """
    observing.current = None  # of the command: this process has an observer of its own
    try:
        run_program(Program.of(build), arguments, print_message)
    except (SimtbedError, CompileError) as error:
        print_message(f"simtbed: {error}")
        sys.exit(UNAVAILABLE if isinstance(error, UnavailableError) else 2)
