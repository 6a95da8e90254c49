"""A command that gets a signal at one of its imports: a moment that does not depend on the speed of the machine."""

import signal
import subprocess
import sys
from pathlib import Path

FIRST = 3
"""The first import after `simtbed.interrupts`. Python itself handles signals before."""
PROGRAM = """
import __future__, os, signal, sys
moment, number = int(sys.argv[1]), int(sys.argv[2])
sys.argv[:] = ["simtbed", *sys.argv[3:]]
class Finder:
    count = 0
    def find_spec(self, name, path=None, target=None):
        Finder.count += 1
        if Finder.count == moment:
            os.kill(os.getpid(), number)
sys.meta_path.insert(0, Finder())
for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    signal.signal(ending, signal.default_int_handler if ending == signal.SIGINT else signal.SIG_DFL)
try:
    from simtbed.reports.cli.app import main
    main()
finally:
    if Finder.count < moment or moment == 0:
        os.write(2, f"\\n{Finder.count}".encode())
"""


def run(moment: int, number: signal.Signals, command: tuple[str, ...], folder: Path) -> tuple[int, str]:
    """Return the exit code, as a shell reports it, and stderr of a command with a signal at its import `moment`.

    A command with fewer imports ends without the signal: code 0, and stderr ends with their number.
    """
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(moment), str(int(number)), *command],
        cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=120,
    )  # fmt: skip
    return completed.returncode if completed.returncode >= 0 else 128 - completed.returncode, completed.stderr


def count(command: tuple[str, ...], folder: Path) -> int:
    """Return the number of imports of a command."""
    code, messages = run(0, signal.SIGINT, command, folder)
    assert code != 2, f"the command is not valid: {messages}"
    return int(messages.splitlines()[-1])
