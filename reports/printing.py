"""Standard output and error of commands: the only functions that print, with every text escaped for a terminal or a log."""

import sys
from contextlib import suppress

from simtbed.escaping import terminal


def print_text(text: str, *, stderr: bool = False, flush: bool = False) -> None:
    """Print lines to stdout, or to stderr. Raises OSError."""
    print(terminal(text), file=sys.stderr if stderr else sys.stdout, flush=flush)


def print_message(text: str) -> None:
    """Print lines to stderr; ignore an error of stderr, and a process without one."""
    if sys.stderr is not None:
        with suppress(OSError):
            print_text(text, stderr=True)
