"""Signals: a command ends with 128 and the number of the signal, without messages and without unfinished files."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# A command that writes, reports that, and continues in Python or in native code without signal checks.
PROGRAM = """
import ctypes, signal, sys, time
from pathlib import Path
from simtbed.kernels.files import Outputs, watch, Stopped
if sys.argv[2] == "ignoring":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
else:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)  # the tests themselves may run under nohup, or in the background
watch()
try:
    with Outputs({"out": Path(sys.argv[1])}) as outputs:
        outputs["out"].write(bytes(1 << 21))
        print("writing", flush=True)
        if sys.argv[2] == "ignoring":
            sys.stdin.read()
        elif sys.argv[2] == "compiled":
            ctypes.CDLL(None).sleep(30)
        else:
            time.sleep(30)
except Stopped as error:
    if sys.argv[2] == "slow to end":
        time.sleep(30)
    sys.exit(128 + error.number)
"""


@pytest.mark.slow
@pytest.mark.parametrize("work", ["python", "compiled", "slow to end"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ends_a_command(number: signal.Signals, work: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("before")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(out), work], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout and process.stdout.readline() == b"writing\n"
        process.send_signal(number)
        if work != "python":
            time.sleep(0.1)
            process.send_signal(number)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (128 + number, b"")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert out.read_text() == "before"


# A command whose other thread starts a process while a signal arrives.
STARTING = """
import os, signal, sys, threading, time
from simtbed.kernels.files import watch
from simtbed.process_signals import block_signals
signal.signal(signal.SIGHUP, signal.SIG_DFL)
watch()
begun = threading.Event()
def start():
    with block_signals():
        begun.set()
        time.sleep(1.5)
        os.write(1, b"started")
threading.Thread(target=start, daemon=True).start()
begun.wait()
os.kill(os.getpid(), signal.SIGHUP)
time.sleep(30)
"""


@pytest.mark.slow
def test_a_thread_starts_its_processes_before_the_command_ends() -> None:
    result = subprocess.run([sys.executable, "-c", STARTING], capture_output=True, timeout=20)
    assert (result.returncode, result.stdout, result.stderr) == (128 + signal.SIGHUP, b"started", b"")


def test_an_ignored_signal_remains_ignored(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(out), "ignoring"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout and process.stdout.readline() == b"writing\n"
        process.send_signal(signal.SIGHUP)
        process.communicate(b"", timeout=20)
    assert process.returncode == 0 and out.stat().st_size == 1 << 21


@pytest.mark.slow
def test_files_of_a_killed_command_are_removed_by_the_next_run(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(out), "python"], stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"writing\n"
        process.kill()
    (left,) = os.listdir(tmp_path)
    assert left.startswith(".out.") and left.endswith(".unfinished")
    code = (
        "import sys; from pathlib import Path; from simtbed.kernels.files import write; write(Path(sys.argv[1]), ['x'])"
    )
    subprocess.run([sys.executable, "-c", code, str(out)], check=True)
    assert os.listdir(tmp_path) == ["out"]
