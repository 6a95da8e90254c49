"""Termination of long launches by signals and limits."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import FaultError, Global, Kernel, i32, launch
from simtbed.engines.llvm import interrupts
from simtbed.ir.walk import statements
from simtbed.passes.waiting import waits
from simtbed.runtime.engine import MAX_SPIN_ITERATIONS
from simtbed.runtime.request import prepare_request

SCRIPT = '''
import os, signal, sys, threading
import numpy as np
import simtbed as st

@st.kernel
def long(out: st.Global[st.i32], n: st.i32) -> None:
    """Much more than a minute in one block, in loops that are short each."""
    a = st.thread.x + 1
    for i in range(n):
        for j in range(n):
            for k in range(200):
                a = a * 1664525 + k
        if BARRIER:
            st.sync()
    out[st.thread.x] = a

BARRIER, GRID = sys.argv[1] == "barrier", int(sys.argv[2])
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job may ignore it
out = np.zeros(64, np.int32)
st.launch(long, grid=1, block=64, args=dict(out=out, n=1), counters=False)
threading.Timer(0.5, lambda: os.kill(os.getpid(), int(sys.argv[3]))).start()
if int(sys.argv[3]) == signal.SIGTERM:
    def handler(number, frame):
        raise SystemExit("terminated")
    signal.signal(signal.SIGTERM, handler)
try:
    st.launch(long, grid=GRID, block=64, args=dict(out=out, n=10**6), counters=False)
except BaseException as error:
    print(type(error).__name__, out.any(), signal.getsignal(signal.SIGINT) is signal.default_int_handler)
'''


@pytest.mark.parametrize("barrier", ["barrier", "no barrier"])
@pytest.mark.parametrize("grid", [1, 100])
@pytest.mark.parametrize(("number", "raised"), [(signal.SIGINT, "KeyboardInterrupt"), (signal.SIGTERM, "SystemExit")])
def test_a_signal_ends_a_long_block(barrier: str, grid: int, number: int, raised: str, tmp_path: Path) -> None:
    """The process would run for hours: the test passes if it ends."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    command = [sys.executable, str(path), barrier, str(grid), str(int(number))]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert finished.stdout == f"{raised} False True\n", finished.stderr


@st.kernel
def counting(out: Global[i32], n: i32) -> None:
    i = 0
    while i < n:
        i += 1
    out[st.thread.x] = i


def test_the_code_polls_for_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception in the callback ends the launch and is not lost."""
    requests = []

    def answer(address: int, raised: list[BaseException]) -> None:
        requests.append(address)
        if len(requests) == 3:
            raise RuntimeError("enough")
        original(address, raised)

    original = interrupts.answer
    monkeypatch.setattr(interrupts, "answer", answer)
    with pytest.raises(RuntimeError, match="enough"):
        launch(counting, grid=1, block=32, args={"out": st.empty(32, i32), "n": 1 << 30})
    assert len(requests) >= 3


def test_long_work_is_no_endless_loop() -> None:
    count = 3 * MAX_SPIN_ITERATIONS
    assert launch(counting, grid=1, block=32, args={"out": st.empty(32, i32), "n": count}).out[0] == count


@st.kernel
def spin(flag: Global[i32], out: Global[i32]) -> None:
    while flag[0] == 0:
        pass
    out[0] = 1


@st.kernel
def take_lock(flag: Global[i32], out: Global[i32]) -> None:
    old = st.compare_swap(flag, 0, 0, 1)
    while old != 0:
        old = st.compare_swap(flag, 0, 0, 1)
    out[0] = 1


@st.kernel
def persistent(flag: Global[i32], out: Global[i32]) -> None:
    while True:
        iteration = st.atomic_add(flag, 0, 1)
        if iteration >= 100:
            return
        out[iteration] = iteration


@st.kernel
def linked(flag: Global[i32], out: Global[i32]) -> None:
    i = 0
    while i >= 0:
        i = flag[i]
    out[0] = i


@pytest.mark.parametrize(
    ("kernel", "waiting"), [(spin, True), (take_lock, True), (persistent, False), (linked, False)], ids=str
)
def test_what_a_loop_that_only_waits_is(kernel: Kernel, waiting: bool) -> None:
    args: dict[str, Any] = {"flag": np.zeros(4, np.int32), "out": st.empty(128, i32)}
    body = prepare_request(kernel, grid=1, block=32, args=args).prepared.program.kernel.body
    assert [waits(s) for s in statements(body) if hasattr(s, "setup")] == [waiting]


def test_a_loop_that_only_waits_ends() -> None:
    for kernel in (spin, take_lock):
        with pytest.raises(FaultError, match="this loop ran 10,000 iterations without ending"):
            launch(
                kernel,
                grid=1,
                block=32,
                args={"flag": np.full(1, int(kernel is take_lock), np.int32), "out": st.empty(1, i32)},
            )
