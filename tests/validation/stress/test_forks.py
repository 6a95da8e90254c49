"""Forks in the middle of launches in 20 threads: each child launches, and its results are right."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import faulthandler, os, sys, threading, time
import numpy as np
import simtbed as st
from simtbed import Const, Global, f32

@st.kernel
def rotate(x: Global[f32], out: Global[f32], N: Const) -> None:
    tile = st.shared(f32, 64)
    i = st.block.x * st.block_dim.x + st.thread.x
    tile[st.thread.x] = x[i]
    st.sync()
    total = f32(0)
    for k in range(N):
        total += tile[(st.thread.x + k) % 64] * f32(k)
    out[i] = total

def is_right(seed, n):
    x = np.random.default_rng(seed).random(2560).astype(np.float32)
    check = ("", "all", "races")[(seed + n) % 3]
    result = st.launch(
        rotate, grid=40, block=64, args=dict(x=x, out=st.empty(2560, f32), N=n), engine=sys.argv[1], check=check, detail=n % 2 == 1
    )
    tiles, total = x.reshape(-1, 64), np.zeros((40, 64), np.float32)
    for k in range(n):
        total += np.roll(tiles, -k, axis=1) * np.float32(k)
    return np.array_equal(result.out, total.reshape(-1)) and result.counters.total("global_load_requests") == 80

def work(seed):
    n = 0
    while not ended:
        assert is_right(seed, 3 + (seed + n) % 13)
        n += 1

ended, wrong = False, []
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(20)]
for thread in threads:
    thread.start()
for trial in range(30):
    time.sleep(0.02)
    child = os.fork()
    if not child:
        faulthandler.dump_traceback_later(60, exit=True)
        code = 3
        try:
            code = 0 if all(is_right(trial, n) for n in (3 + trial % 14, 16, 40 + trial)) else 2
        finally:
            os._exit(code)
    if status := os.waitpid(child, 0)[1]:
        wrong.append((trial, status))
ended = True
for thread in threads:
    thread.join()
print(wrong)
"""


@pytest.mark.parametrize("engine", ["jit", "numpy"])
def test_children_launch_correctly(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMTBED_CACHE", str(tmp_path / "cache"))  # threads compile too
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    done = subprocess.run([sys.executable, path, engine], capture_output=True, text=True, timeout=900)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
