"""Sessions of the kernel debugger: its stops, the commands for threads, warps and memory, and repeated runs of a block."""

import io
from bdb import Breakpoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Global, f32, i32
from simtbed.debugger.commands import KernelDebugger
from simtbed.debugger.facts import linear_index, ranges
from simtbed.debugger.session import Session, find_fault
from simtbed.errors import SimtbedError
from simtbed.runtime.request import LaunchOptions, prepare_request, validated_request
from simtbed.span import name_of

from tests.checkers.corpus import PAIRS


@st.device
def half(x: f32) -> f32:
    y = x * 0.5
    return y


@st.kernel
def block_sum(x: Global[f32], out: Global[f32], BLOCK: Const) -> None:
    partial = st.shared(f32, BLOCK)
    t = st.thread.x
    partial[t] = half(x[st.block.x * BLOCK + t])
    st.sync()
    width = BLOCK // 2
    while width > 0:
        if t < width:
            partial[t] += partial[t + width]
        st.sync()
        width //= 2
    if t == 0:
        out[st.block.x] = partial[0]


FIRST = block_sum.function.__code__.co_firstlineno + 1
"""The line of `def block_sum`."""
FILE = name_of(__file__)


def request(block: int = 64) -> Any:
    args = {"x": np.arange(2 * block, dtype=np.float32), "out": st.empty(2, f32), "BLOCK": block}
    return prepare_request(block_sum, grid=2, block=block, args=args)


def debug(
    session: Session, commands: str, thread: int | None = None, line: int = 0
) -> tuple[list[str], KernelDebugger]:
    """Return the lines of a session. thread, line: where it stops first; line from that of `def block_sum`; None for a finding."""
    output = io.StringIO()
    debugger = KernelDebugger(session, io.StringIO(commands.replace("; ", "\n") + "\n"), output)
    debugger.debug(lambda place, frame: (thread, FIRST + line) == (place.thread, frame.f_lineno))
    debugger.clear_all_breaks()
    Breakpoint.clearBreakpoints()  # their numbers are those of the process
    return output.getvalue().splitlines(), debugger


def answers(session: Session, commands: str, thread: int | None = None, line: int = 0) -> list[str]:
    """Return the lines without prompts and positions."""
    lines, _ = debug(session, commands, thread, line)
    return [line for line in lines if not line.startswith(("(simtbed)", ">", "  "))]


def test_steps_remain_in_the_thread() -> None:
    lines = answers(Session(request(), 1), "step; p x; step; step; next; next; p width; quit", 5, 3)
    assert lines == [
        "block (1, 0, 0), thread (5, 0, 0) = warp 0 lane 5",
        "-> partial[t] = half(x[st.block.x * BLOCK + t])",
        "-> y = x * 0.5",
        "np.float32(69.0)",
        "-> return y",
        "-> st.sync()",
        "-> width = BLOCK // 2",
        "-> while width > 0:",
        "np.int32(32)",
    ]


def test_return_until_and_the_next_thread() -> None:
    lines = answers(Session(request(), 0), f"step; return; until {FIRST + 11}; next; p t; quit", 5, 3)
    assert lines[2:] == [
        "-> y = x * 0.5",
        "-> st.sync()",
        "-> if t == 0:",
        "block (0, 0, 0), thread (6, 0, 0) = warp 0 lane 6",
        "-> width //= 2",
        "np.int32(6)",
    ]


def test_a_breakpoint_has_a_condition() -> None:
    lines = answers(
        Session(request(), 0), f"break {FIRST + 8}, t == 1 and width == 2; continue; p t, width; quit", 0, 1
    )
    assert lines[-1] == "(np.int32(1), np.int32(2))"


def test_lanes_and_the_warp_at_a_branch() -> None:
    session = Session(request(), 0)
    commands = f"break {FIRST + 8}, width == 4; continue; lanes t * 2; warp; lanes none; lanes t +; quit"
    lines = [line for line in debug(session, commands, 0, 1)[0] if line.startswith(("lane", "->", "  ", "***"))]
    assert lines[2:] == [
        "lane  0: 0 2 4 6 - - - -",
        "lane  8: - - - - - - - -",
        "lane 16: - - - - - - - -",
        "lane 24: - - - - - - - -",
        f"-> lanes 0-3: {FILE}({FIRST + 8})block_sum()",
        f"   lanes 4-31: {FILE}({FIRST + 9})block_sum()",
        "*** NameError: name 'none' is not defined",
        "*** expected an expression, lanes EXPRESSION: invalid syntax (<lanes>, line 1)",
    ]


def test_back_repeats_the_block_up_to_the_statement_before() -> None:
    lines = answers(Session(request(), 0), "back; back; p t; back; next; next; p t; quit", 40, 4)
    assert lines[1:] == [
        "-> st.sync()",
        "-> return y",
        "-> y = x * 0.5",
        "*** NameError: name 't' is not defined",
        "-> partial[t] = half(x[st.block.x * BLOCK + t])",
        "-> st.sync()",
        "-> width = BLOCK // 2",
        "np.int32(40)",
    ]
    assert "*** this is the first statement of the thread" in answers(Session(request(), 0), "back; quit", 3, 1)


def test_another_thread_stops_at_the_same_execution() -> None:
    commands = f"break {FIRST + 8}, width == 4; continue; thread 3; p t, width; thread 9; p t; thread; thread 64; quit"
    lines = answers(Session(request(), 0), commands, 0, 1)
    assert lines[4:] == [
        "block (0, 0, 0), thread (3, 0, 0) = warp 0 lane 3",
        "-> partial[t] += partial[t + width]",
        "(np.int32(3), np.int32(4))",
        "thread 9 does not execute this line for the 4th time",
        "-> partial[t] += partial[t + width]",
        "np.int32(3)",
        "block (0, 0, 0), thread (3, 0, 0) = warp 0 lane 3",
        "*** thread 64: expected an index below 64, or x,y,z below (64, 1, 1)",
    ]


def test_watch_shows_the_accesses_of_an_element() -> None:
    session = Session(request(4), 0)
    lines = answers(
        session,
        "watch partial[1]; watch x[2]; watch t; watch out[9]; watch out[none]; memory x[1:3]; memory t + nothing; quit",
        0,
        8,
    )
    store, load = f"{FILE}:{FIRST + 3}", f"{FILE}:{FIRST + 8}"
    assert [line.split(" = warp")[0] for line in lines if line.startswith("block")][1:] == [
        f"block (0, 0, 0), thread ({t}, 0, 0)" for t in (1, 1, 1, 0, 2)
    ]
    assert f"writes 0.5: {store}" in lines[2]
    assert lines[3] == "-- the stop --" and load in lines[4]
    assert "no write in this block before" in lines
    assert "*** expected an element of an array of the kernel, such as watch a[5]" in lines
    assert "*** name 'none' is not defined" in lines
    assert "*** index 9 is out of bounds for axis 0 with size 2" in lines
    assert "0: 1.0 2.0" in lines
    assert lines[-1].startswith("*** NameError")


def fault_of(name: str) -> Session:
    pair = PAIRS[name]
    fault = find_fault(
        prepare_request(pair.kernel, grid=pair.grid, block=pair.block, args={**pair.args, "FIXED": False}, check="all")
    )
    assert fault is not None
    return fault[0]


def test_the_other_thread_of_a_race_stops_at_its_access() -> None:
    lines, debugger = debug(fault_of("missing_barrier_after_the_load"), "p t; other; p t; next; continue; continue")
    values = [line for line in lines if line.startswith("np.int32")]
    assert debugger.fault is not None and debugger.fault.diagnostic.kind == "race"
    assert len(set(values)) == 2
    assert lines[-1] == "the finding ends the launch"


def test_the_other_thread_may_be_in_another_block() -> None:
    lines, _ = debug(fault_of("halo_written_by_two_blocks"), "other; quit")
    blocks = [line.partition(",")[0] for line in lines if line.startswith("block")]
    assert len(blocks) == 2 and blocks[0] != blocks[1]


def test_a_finding_begins_with_the_arrays_of_earlier_blocks() -> None:
    """Blocks before that of the finding have run."""
    session = fault_of("unguarded_tail_block")
    assert session.block > 0
    lines = answers(session, "p out[0] == 0; other; quit")
    assert "np.False_" in lines and "*** the stop is no race" in lines


@pytest.mark.parametrize("alone", [True, False])
def test_the_block_of_a_finding_runs_alone_first(alone: bool) -> None:
    """Without a finding there, the launch runs from its first block on."""
    pair, started = PAIRS["unguarded_tail_block"], list[int]()
    options: Any = {"grid": pair.grid, "block": pair.block, "args": {**pair.args, "FIXED": False}, "check": "all"}
    (finding,) = st.launch(pair.kernel, **options, faults="return").faults
    assert finding.blocks and finding.blocks[0] > 0
    fault = find_fault(prepare_request(pair.kernel, **options), finding.blocks if alone else (0,), started.append)
    assert fault is not None and fault[0].block == finding.blocks[0]
    assert started == (list(finding.blocks) if alone else [0, *range(finding.blocks[0] + 1)])


def test_both_blocks_of_a_race_run() -> None:
    pair = PAIRS["halo_written_by_two_blocks"]
    options: Any = {"grid": pair.grid, "block": pair.block, "args": {**pair.args, "FIXED": False}, "check": "all"}
    (race, *_) = st.launch(pair.kernel, **options, faults="return").faults
    assert len(race.blocks) == 2
    started: list[int] = []
    assert find_fault(prepare_request(pair.kernel, **options), race.blocks, started.append) is not None
    assert started == list(race.blocks)


def test_texts_are_printable_and_no_file_of_the_folder_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".pdbrc").write_text("p 6 * 7\n")
    monkeypatch.chdir(tmp_path)
    lines, debugger = debug(Session(request(), 0), "run; restart 3; quit", 5, 3)
    assert not any("42" in line for line in lines)
    assert lines.count("*** the program runs once: start simtbed debug again") == 2
    debugger.message("a\x1b[31m\tb\nc")
    assert debugger.stdout.getvalue().endswith("a\\x1b[31m\tb\nc\n")  # type: ignore[attr-defined]


STOPS: list[int] = []


@st.kernel
def calling(out: Global[i32]) -> None:
    t = st.thread.x
    if t == 2:
        breakpoint()
    STOPS.append(t)
    out[t] = t


def test_breakpoints_in_the_kernel_stop() -> None:
    output = io.StringIO()
    options: Any = {"grid": 1, "block": 4, "args": {"out": st.empty(4, i32)}}
    session = Session(validated_request(calling, LaunchOptions(**options), host_calls=True), 0)
    debugger = KernelDebugger(session, io.StringIO("continue\np t\nquit\n"), output)
    debugger.debug(lambda place, frame: True)
    assert "np.int32(2)" in output.getvalue()


def test_indices() -> None:
    assert linear_index("thread", "17", (32, 2, 1)) == 17
    assert linear_index("thread", "1,1", (32, 2, 1)) == linear_index("thread", "(1, 1, 0)", (32, 2, 1)) == 33
    for wrong in ("64", "32,0", "x", "1,1,1", ""):
        with pytest.raises(SimtbedError, match=r"thread .*: expected an index below 64, or x,y,z below"):
            linear_index("thread", wrong, (32, 2, 1))
    assert ranges([5, 0, 1, 2, 7, 8]) == "0-2, 5, 7-8"
