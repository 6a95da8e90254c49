"""`python -m simtbed.numba SCRIPT [ARGUMENTS]` and `python -m simtbed.numba -m MODULE [ARGUMENTS]`: kernels of `numba.cuda` run on an
emulator, also in child processes."""

import os
import runpy
import sys
from argparse import REMAINDER, ArgumentParser
from pathlib import Path

from ..numba_hook import enable, request


def main(arguments: list[str]) -> None:
    """Run a script or a module. Exits with 2 for wrong arguments."""
    parser = ArgumentParser("python -m simtbed.numba", description="Run kernels of numba.cuda on an emulator.")
    parser.add_argument("-m", dest="module", action="store_true", help="PROGRAM is a module, not a script")
    parser.add_argument("program", metavar="PROGRAM", help="a script; after -m a module")
    parser.add_argument("arguments", metavar="...", nargs=REMAINDER, help="arguments of the program")
    options = parser.parse_args(arguments)
    if not options.module and not os.path.exists(options.program):
        parser.error(f"{options.program}: No such file")
    request(os.environ)
    enable()
    sys.argv = [options.program, *options.arguments]
    if options.module:  # Python has the current folder in its path
        runpy.run_module(options.program, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(options.program).resolve().parent)
        runpy.run_path(options.program, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
