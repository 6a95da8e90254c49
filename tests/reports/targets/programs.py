"""Programs as text, each of which does something that a program under observation may do."""

from __future__ import annotations

KERNELS = """
import numpy as np
import simtbed as st

@st.kernel
def double(x: st.Global[st.i32], out: st.Global[st.i32]) -> None:
    out[st.block.x * 32 + st.thread.x] = 2 * x[st.block.x * 32 + st.thread.x]

@st.kernel
def racy(out: st.Global[st.i32]) -> None:
    out[0] = st.thread.x

@st.kernel
def past(out: st.Global[st.i32]) -> None:
    out[st.thread.x + 40] = 1

def run(kernel=double, **how):
    args = {"out": st.empty(64, st.i32)}
    if kernel is double:
        args["x"] = np.arange(64, dtype=np.int32)
    return st.launch(kernel, grid=2 if kernel is double else 1, block=32, args=args, **how)
"""

DOES = {
    "argv": ("import sys; run(); print(sys.argv[1:], __name__, sys.path[0] == __file__.rpartition('/')[0])", 0, 1),
    "exits": ("import sys; run(); sys.exit(7)", 7, 1),
    "exits with a word": ("import sys; run(); sys.exit('no')", 1, 1),
    "ends at once": ("import os; run(); os._exit(5)", 5, 1),
    "is killed": ("import os, signal; run(); os.kill(os.getpid(), signal.SIGKILL)", 137, 1),
    "raises": ("run(); raise ValueError('mine')", 1, 1),
    "faults": ("run(); run(past)", 1, 2),
    "catches its fault": ("try: run(past)\nexcept st.FaultError: print('caught')", 0, 1),
    "reads": ("import sys; run(); print(sys.stdin.read().upper())", 0, 1),
    "prints much": ("run(); print('x' * 1000000)", 0, 1),
    "forks": (
        "if __name__ == '__main__':\n import multiprocessing as m\n with m.get_context('fork').Pool(2) as p: p.map(lambda_, range(3))",
        0, 3,
    ),
    "spawns": (
        "if __name__ == '__main__':\n import multiprocessing as m\n with m.get_context('spawn').Pool(2) as p: p.map(lambda_, range(3))",
        0, 3,
    ),
    "threads": ("import threading; threading.Thread(target=run).start()", 0, 1),
    "launches at exit": ("import atexit; atexit.register(run)", 0, 1),
    "moves": ("import os, tempfile; os.chdir(tempfile.gettempdir()); run()", 0, 1),
    "chooses": ("run(engine='numpy'); run(counters=False); run(device=st.devices.K40)", 0, 3),
    "observes itself": ("with st.profiling(check='all') as mine: run(racy)\nassert len(mine.faults) == 1", 0, 1),
    "starts a program": ("import subprocess, sys; run(); subprocess.run([sys.executable, __file__.replace('.py', '_other.py')])", 0, 2),
}  # fmt: skip
"""What a program does after KERNELS: its text, its exit code, its launches."""


def text(name: str) -> str:
    return f"{KERNELS}\ndef lambda_(n): return run().out.sum()\n\n{DOES[name][0]}\n"
