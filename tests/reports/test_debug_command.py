"""`simtbed debug`: exit codes, stops of targets, and CUDA C++ files. `tests/test_docs.py` runs the sessions of the page."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.texts import texts

pytestmark = [pytest.mark.slow, pytest.mark.integration]

SCRIPT = """
import numpy as np
import simtbed as st

@st.kernel
def first(out: st.Global[st.i32]) -> None:
    out[st.thread.x] = 1

@st.kernel
def second(out: st.Global[st.i32], n: st.i32) -> None:
    t = st.thread.x
    out[t + n] = t

def main():
    out = st.DeviceArray(np.zeros(8, np.int32))
    st.launch(first, grid=1, block=8, args=dict(out=out))
    for n in range(3):
        st.launch(second, grid=1, block=4, args=dict(out=out, n=n))
    print("end", out.host.tolist())

if __name__ == "__main__":
    main()
"""

CUDA = texts("reports/kernels.cu")["reverse"]

LAUNCHES = """[[launch]]
kernel = "reverse"
grid = [1]
block = [64]
[launch.args]
in = {type = "f32", shape = 64, values = "range"}
out = {type = "f32", shape = 64}
n = 64
"""


def debug(folder: Path, commands: str, *arguments: str) -> tuple[int, str]:
    """Return exit code and output of a session in a folder with `script.py`."""
    (folder / "script.py").write_text(SCRIPT, encoding="utf-8")
    completed = subprocess.run(
        [sys.executable, "-m", "simtbed", "debug", *arguments], cwd=folder, input=commands, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=120,
    )  # fmt: skip
    return completed.returncode, completed.stdout


def test_the_selected_launch_stops_and_the_program_continues(tmp_path: Path) -> None:
    options = ("--kernel", "second", "--launch", "2", "--thread", "3", "--line", "12", "script.py")
    code, text = debug(tmp_path, "p n, t\nwatch out[5]\ncontinue\n", *options)
    assert code == 0 and "(np.int32(2), np.int32(3))" in text and "script.py(12)second()" in text
    lines = text.splitlines()
    assert lines.index("the block has ended") < lines.index("end [0, 0, 0, 1, 2, 3, 1, 1]")


def test_a_function_without_a_finding_does_not_stop(tmp_path: Path) -> None:
    code, text = debug(tmp_path, "", "script.py:main")
    assert (code, "(simtbed)" in text, "end [" in text) == (0, False, True)


def test_a_trace_is_printed(tmp_path: Path) -> None:
    code, text = debug(tmp_path, "", "--trace", "--thread", "2", "--kernel", "second", "--launch", "1", "script.py")
    assert (
        code == 0
        and "2         2       script.py:12  out[3]  2        out[t + n] = t" in text
        and "(simtbed)" not in text
    )


def test_bad_use_is_one_line(tmp_path: Path) -> None:
    code, text = debug(tmp_path, "", "--thread", "99", "script.py")
    assert (code, text) == (2, "simtbed: thread 99: expected an index below 8, or x,y,z below (8, 1, 1)\n")
    code, text = debug(tmp_path, "", "--kernel", "third", "script.py")
    assert code == 2 and text.endswith("simtbed: no launched kernel matches 'third'; there were first, second\n")
    code, text = debug(tmp_path, "", "--line", "999", "--kernel", "first", "script.py")
    assert code == 0 and "simtbed: first: no thread of block 0 stops there\n" in text


def test_a_kernel_in_cuda_stops_at_its_line(tmp_path: Path) -> None:
    pytest.importorskip("ziglang")
    (tmp_path / "reverse.cu").write_text(CUDA, encoding="utf-8")
    (tmp_path / "reverse.toml").write_text(LAUNCHES, encoding="utf-8")
    code, text = debug(tmp_path, "p source, t\nlanes source - 60\nback\nquit\n", "reverse.cu")
    assert code == 1 and "reverse.cu(7)reverse()\n-> out[t] = tile[source];" in text
    assert "(np.int32(64), np.int32(0))" in text and "lane  0:   4   3   2" in text
    assert "-> int source = n - t;" in text


NUMBA = """import numpy as np
from numba import cuda

@cuda.jit
def powers(x, out, n):
    i = cuda.grid(1)
    total = 0.0
    for k in range(n):
        total += x[i] * k
    n = 2 * i + n
    out[i] = total + n

powers[1, 8](np.ones(8), np.zeros(8), 4)
"""


def test_variables_of_a_kernel_of_numba(tmp_path: Path) -> None:
    """LLVM's values have the names of the variables, also of an argument with another value later."""
    pytest.importorskip("numba.cuda")
    (tmp_path / "powers.py").write_text(NUMBA, encoding="utf-8")
    commands = "p i, n\nnext\nnext\nbreak 11\ncontinue\np i, total, n\nlanes n\nquit\n"
    code, text = debug(tmp_path, commands, "--emulate", "numba", "--thread", "3", "--line", "8", "powers.py")
    assert code == 0 and "(np.int64(3), np.int64(4))" in text
    assert "(np.int64(3), np.float64(6.0), np.int64(10))" in text and "lane  0:  4  6  8 10" in text, text


POOL = """
import sys
from multiprocessing import Pool
from multiprocessing.pool import ThreadPool

import numpy as np
import simtbed as st

@st.kernel
def shift(x: st.Global[st.f32]) -> None:
    x[st.thread.x + 1] = 1.0

def work(n):
    st.launch(shift, grid=1, block=8, args=dict(x=np.ones(8, np.float32)), faults="return")
    return n

if __name__ == "__main__":
    with {"processes": Pool, "threads": ThreadPool}[sys.argv[1]](2) as pool:
        print(pool.map(work, range(3)))
"""


def test_pools(tmp_path: Path) -> None:
    """A worker process does not stop; `quit` in a thread ends the program."""
    (tmp_path / "pool.py").write_text(POOL, encoding="utf-8")
    code, text = debug(tmp_path, "quit\n", "pool.py", "processes")
    assert code == 0 and "[0, 1, 2]" in text and "no stop in a process of a pool" in text
    code, text = debug(tmp_path, "p 6 * 7\nquit\n", "pool.py", "threads")
    assert code == 1 and "\n42\n" in text and "[0, 1, 2]" not in text
