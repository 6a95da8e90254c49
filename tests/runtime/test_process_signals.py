"""Signals are delayed while processes are started, whichever thread receives them."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, threading, time
from simtbed.process_signals import block_signals

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process of a shell ignores it
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and one of nohup this
threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
try:
    with block_signals():
        os.kill(os.getpid(), signal.{name})
        time.sleep(0.2)
        print("inside", flush=True)
    time.sleep(5)
    print("too late", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("name", "output", "code"),
    [("SIGINT", "inside\ninterrupted\n", 0), ("SIGHUP", "inside\n", -1), ("SIGTERM", "inside\n", -15)],
)
def test_a_signal_is_delayed_although_a_thread_receives_it(name: str, output: str, code: int) -> None:
    program = PROGRAM.format(name=name)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (result.stdout, result.returncode) == (output, code), result.stderr
