"""Kernel prints: shown immediately, with block and thread, up to a limit; equal on every engine."""

import io
import os
import sys
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Global, f32, i32
from simtbed.engines.cuda.printer import cuda_source
from simtbed.frontend.reader import specialise
from simtbed.runtime import prints
from simtbed.runtime.prints import MAX_LINES
from simtbed.runtime.registry import EngineName

BOTH = pytest.mark.parametrize("engine", ["numpy", "jit"])


@st.kernel
def speaking(x: Global[f32], n: i32, NAME: Const = "x") -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        print(NAME, i, x[i])
        print(f"{i} of {n}: {x[i] > 0.5}, {x[i]=} 100%")


LINES = [
    "block (0, 0, 0), thread (0, 0, 0): x 0 0.25",
    "block (0, 0, 0), thread (1, 0, 0): x 1 0.75",
    "block (0, 0, 0), thread (0, 0, 0): 0 of 3: False, x[i]=0.25 100%",
    "block (0, 0, 0), thread (1, 0, 0): 1 of 3: True, x[i]=0.75 100%",
    "block (1, 0, 0), thread (0, 0, 0): x 2 0.5",
    "block (1, 0, 0), thread (0, 0, 0): 2 of 3: False, x[i]=0.5 100%",
]
X = np.array([0.25, 0.75, 0.5], np.float32)


@BOTH
def test_lines_have_block_and_thread(engine: EngineName, capsys: pytest.CaptureFixture[str]) -> None:
    result = st.launch(speaking, grid=2, block=2, args={"x": X, "n": 3}, engine=engine)
    assert result.printed == LINES
    assert capsys.readouterr().out.splitlines() == LINES


@BOTH
def test_another_order_prints_nothing_again(engine: EngineName, capsys: pytest.CaptureFixture[str]) -> None:
    st.launch(speaking, grid=2, block=2, args={"x": X, "n": 3}, engine=engine, schedule=1)
    assert capsys.readouterr().out.splitlines() == LINES


def test_a_launch_continues_if_stdout_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The warning is one line of a process; nothing is left in a buffer, which Python would write at the end."""

    def stream(descriptor: int, closed: bool = False) -> io.TextIOWrapper:
        file = open(descriptor, "w", encoding="ascii")  # noqa: SIM115
        file.close() if closed else None
        return file

    reading, unread = os.pipe()
    os.close(reading)
    reading, writing = os.pipe()
    texts: list[str] = []
    bare = SimpleNamespace(write=texts.append, encoding="no encoding", flush=None)
    full, broken, closed = stream(os.open("/dev/full", os.O_WRONLY)), stream(unread), stream(os.dup(1), closed=True)
    sound, memory = stream(writing), io.StringIO()
    monkeypatch.setattr(prints, "_WARNED", [])
    for out in (full, broken, closed, None, sound, memory, bare):
        monkeypatch.setattr(sys, "stdout", out)
        result = st.launch(speaking, grid=2, block=2, args={"x": X, "n": 3, "NAME": "é"})
        assert len(result.printed) == len(LINES)
    monkeypatch.undo()
    for file in (full, broken, sound):
        file.close()
    with open(reading, encoding="ascii") as pipe:
        assert pipe.readlines()[0] == "block (0, 0, 0), thread (0, 0, 0): \\xe9 0 0.25\n"
    assert "".join(texts) == memory.getvalue()
    assert memory.getvalue().startswith("block (0, 0, 0), thread (0, 0, 0): é 0 0.25\n")
    warning = "simtbed: warning: prints of kernels are not shown: No space left on device (stdout)"
    assert capsys.readouterr().err.splitlines() == [warning]


def test_as_it_is_printed_for_cuda(golden: Callable[[str, str], None]) -> None:
    golden("cuda/speaking.cu", cuda_source(specialise(speaking, {}).program, (2, 1, 1)).text)


@st.kernel
def chatting(n: i32) -> None:
    for i in range(n):
        print(i)


@BOTH
def test_there_is_a_limit(engine: EngineName, capsys: pytest.CaptureFixture[str]) -> None:
    st.launch(chatting, grid=1, block=1, args={"n": MAX_LINES}, engine=engine)
    assert len(capsys.readouterr().out.splitlines()) == MAX_LINES
    result = st.launch(chatting, grid=1, block=1, args={"n": 2 * MAX_LINES + 1}, engine=engine)
    shown = capsys.readouterr().out.splitlines()
    assert shown == result.printed
    assert len(shown) == MAX_LINES + 1 and shown[-1] == f"{MAX_LINES + 1:,} more prints"


@BOTH
def test_lines_before_the_step_limit_are_shown_once(engine: EngineName, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(st.FaultError):
        st.launch(chatting, grid=1, block=1, args={"n": 9}, engine=engine, step_limit=4)
    assert [line.partition(": ")[2] for line in capsys.readouterr().out.splitlines()] == ["0", "1", "2", "3"]
