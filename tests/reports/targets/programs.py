"""Programs as text, for observation."""

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

EXITS = """
import atexit, os, sys, tempfile, threading
run()
print(sys.argv[1:], __name__, sys.path[0] == __file__.rpartition("/")[0], sys.stdin.read().upper())
print("x" * 1000000)
threading.Thread(target=run).start()
atexit.register(run)
run(engine="numpy"), run(counters=False), run(device=st.devices.K40)
try:
    run(past)
except st.FaultError:
    print("caught")
with st.profiling(check="all") as mine:
    run(racy)
assert len(mine.faults) == 1
os.chdir(tempfile.gettempdir())
run()
sys.exit(7)
"""
POOLS = """
if __name__ == "__main__":
    import multiprocessing, subprocess, sys
    for start in ("fork", "spawn"):
        with multiprocessing.get_context(start).Pool(1) as pool:
            pool.map(launch_in_pool, range(2))
    run()
    subprocess.run([sys.executable, __file__.replace(".py", "_other.py")])
"""
PROGRAMS = {
    "uses its process": (EXITS, 7, 9),
    "starts processes": (POOLS, 0, 6),
    "exits with a word": ("import sys; run(); sys.exit('no')", 1, 1),
    "ends at once": ("import os; run(); os._exit(5)", 5, 1),
    "is killed": ("import os, signal; run(); os.kill(os.getpid(), signal.SIGKILL)", 137, 1),
    "raises": ("run(); raise ValueError('mine')", 1, 1),
    "faults": ("run(); run(past)", 1, 2),
}
"""What a program does after KERNELS: its text, its exit code, its launches."""
MESSAGES = {"exits with a word": "no\n", "ends at once": "", "is killed": ""}
"""Standard error of programs without other output."""
CATCHES = "try: run(past)\nexcept st.FaultError: print('caught')"


def text(program: str) -> str:
    return f"{KERNELS}\ndef launch_in_pool(_): return run().out.sum()\n\n{program}\n"
