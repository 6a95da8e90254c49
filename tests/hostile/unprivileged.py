"""Commands run by a user who can write neither the package nor a home: `python -m tests.hostile.unprivileged`.

Root runs them as an unprivileged user. Other users run them as themselves, on a package that they cannot write.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

UNPRIVILEGED_USER = 65534
SIMTBED = (sys.executable, "-m", "simtbed")
SCRIPT = """
import os, sys
import numpy as np
import simtbed as st

@st.kernel
def twice(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    out[st.thread.x] = x[st.thread.x] * st.f32(2)

package = os.path.dirname(st.__file__)
assert not os.access(package, os.W_OK), f"{package} can be written"
assert not os.access(os.path.expanduser("~"), os.W_OK), "the home can be written"
x = np.arange(32, dtype=np.float32)
print(st.launch(twice, grid=1, block=32, args=dict(x=x, out=st.empty(32, st.f32)), check="all").out.sum())
"""
COMMANDS: dict[str, Sequence[str]] = {
    "a script": ("{python}", "{script}"),
    "list": (*SIMTBED, "list"),
    "pairhmm": (*SIMTBED, "pairhmm", "--example", "--check"),
    "align": (*SIMTBED, "align", "--example", "--check"),
    "correct": (*SIMTBED, "correct", "--example"),
    "sfs": (*SIMTBED, "sfs", "--example", "--mode", "gama"),
    "check": (*SIMTBED, "check", "sfs/iterative"),
    "profile": (*SIMTBED, "profile", "sfs/iterative"),
    "verify": (*SIMTBED, "verify", "--family", "sfs", "--variant", "iterative"),
}


class CannotDropPrivileges(Exception):
    """The unprivileged user cannot run this Python."""


@cache
def drop() -> list[str]:
    """Return the prefix of a command line that drops the privileges of root; empty for other users.

    An interpreter in root's home is reached by the one privilege of reading, which allows no writing.
    """
    if os.geteuid() != 0:
        return []
    plain = ["setpriv", f"--reuid={UNPRIVILEGED_USER}", f"--regid={UNPRIVILEGED_USER}", "--clear-groups"]
    for privileges in ([], ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]):
        command = [*plain, *privileges, sys.executable, "-c", "import simtbed"]
        if shutil.which("setpriv") and subprocess.run(command, capture_output=True, cwd="/").returncode == 0:
            return [*plain, *privileges]
    raise CannotDropPrivileges(f"an unprivileged user cannot run {sys.executable} here")


@contextmanager
def folders() -> Iterator[tuple[Path, Path]]:
    """A home that cannot be written, and a folder of temporary files writable by all users, as /tmp is."""
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        (base / "home").mkdir()
        (base / "tmp").mkdir()
        (base / "script.py").write_text(SCRIPT, encoding="utf-8")
        for path, mode in ((base / "tmp", 0o1777), (base / "home", 0o555), (base, 0o755)):
            path.chmod(mode)
        yield base / "home", base / "tmp"


def run(command: str, home: Path, temporary: Path) -> subprocess.CompletedProcess[str]:
    """One command in that home, with an environment that names nothing else."""
    words = [word.format(python=sys.executable, script=home.with_name("script.py")) for word in COMMANDS[command]]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(temporary), "PYTHONSAFEPATH": "1"}
    return subprocess.run([*drop(), *words], env=environment, cwd="/", capture_output=True, text=True)


def fault(completed: subprocess.CompletedProcess[str]) -> str:
    """What is wrong with a command that ran; nothing where it did what it is for."""
    good = completed.returncode == 0 and completed.stdout and "Traceback" not in completed.stderr
    return "" if good else f"exit code {completed.returncode}\n{completed.stdout}{completed.stderr}"


def main() -> int:
    """1 where a command fails."""
    failed = False
    with folders() as (home, temporary):
        for command, place in [*((name, temporary) for name in COMMANDS), ("pairhmm", Path("/dev/null"))]:
            wrong = fault(run(command, home, place))
            failed |= bool(wrong)
            print(f"{command}, temporary files in {place}: {wrong or 'ok'}", flush=True)
        count = len(list(temporary.glob("simtbed-*/*.o")))
    print(f"{count} objects kept among temporary files")
    return int(failed or not count)


if __name__ == "__main__":
    sys.exit(main())
