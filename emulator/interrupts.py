"""SIGINT in the first moments of the `simtbed` command.

The package imports this module first. In a process of the command, SIGINT then ends the process without a message, as SIGTERM does.
Python's own handler raises KeyboardInterrupt between any two instructions. In an import that prints a traceback, or leaves half of
a module behind. The command installs its own handlers later (`kernels.files.signals`).
"""

import os
import signal
import sys


def is_command() -> bool:
    """Return whether this process was started as `simtbed` or `python -m simtbed`."""
    program: list[str] = getattr(sys, "argv", None) or [""]
    if program[0] == "-m":  # until the package is imported
        options = zip(sys.orig_argv, sys.orig_argv[1:], strict=False)
        return next((name for option, name in options if option[:1] == "-" and option[-1:] == "m"), "") == "simtbed"
    return os.path.basename(program[0]).partition(".")[0] == "simtbed"


if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
