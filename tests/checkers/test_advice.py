"""Advice of the checkers other than the race detector: writers of uninitialised elements, masks, barriers."""

import re
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, Kernel, f32
from simtbed.sanitizer import barriers
from simtbed.span import Span

from tests.table_checks import each_row

X = np.arange(64, dtype=np.float32)


@st.kernel
def adds_to_its_output(x: Global[f32], out: Global[f32]) -> None:
    out[st.thread.x] += x[st.thread.x]


@st.kernel
def counts_without_clearing(x: Global[f32], out: Global[f32]) -> None:
    bins = st.shared(f32, 8)
    st.atomic_add(bins, st.thread.x % 8, f32(1))
    st.sync()
    out[st.thread.x] = bins[st.thread.x % 8]


@st.kernel
def writes_later(x: Global[f32], out: Global[f32]) -> None:
    tile = st.shared(f32, 64)
    t = st.thread.x
    out[t] = tile[t]
    st.sync()
    tile[t] = x[t]


@st.kernel
def writes_in_the_loop(x: Global[f32], out: Global[f32]) -> None:
    tile = st.shared(f32, 64)
    t = st.thread.x
    for k in range(2):
        out[t] = tile[t]
        st.sync()
        tile[t] = x[t] + f32(k)


@st.kernel
def writes_a_half(x: Global[f32], out: Global[f32]) -> None:
    tile = st.shared(f32, 64)
    t = st.thread.x
    if t < 32:
        tile[t] = x[t]
    st.sync()
    tile[t] = tile[63 - t] + f32(1)


@st.kernel
def writes_the_other_arm(x: Global[f32], out: Global[f32]) -> None:
    tile = st.shared(f32, 64)
    t = st.thread.x
    if t < 32:
        tile[t] = x[t]
    else:
        out[t] = tile[t]


@st.kernel
def writes_another_element(x: Global[f32], out: Global[f32]) -> None:
    tile = st.shared(f32, 64)
    t = st.thread.x
    if t == 0:
        tile[63] = x[63]
    if t < 63:
        tile[t + 1 - t // 62] = x[t]
    st.sync()
    out[t] = tile[0]


@st.kernel
def accumulates(x: Global[f32], out: Global[f32]) -> None:
    """The later statement of the loop is not the one that should have initialised the element."""
    own = st.local(f32, 4)
    for k in range(3):
        own[k] = x[k]
    for k in range(4):
        total = own[k] + x[k]
        own[k] = total
    out[st.thread.x] = own[0]


@st.device
def fill(tile: st.Shared[f32], value: f32) -> None:
    if value < 0.0:
        tile[st.thread.x] = value


@st.kernel
def fills_by_a_call(x: Global[f32], out: Global[f32]) -> None:
    tile = st.shared(f32, 64)
    fill(tile, x[st.thread.x])
    out[st.thread.x] = tile[st.thread.x]


NEVER = "nothing in the kernel writes {} before this read"
CAUSES: tuple[tuple[Kernel, str, tuple[int, ...]], ...] = (
    (adds_to_its_output, "out", ()),
    (counts_without_clearing, "bins", ()),
    (writes_later, "tile", ()),
    (writes_in_the_loop, "tile", (6,)),
    (writes_a_half, "tile", (4,)),
    (writes_the_other_arm, "tile", ()),
    (writes_another_element, "tile", (6,)),
    (accumulates, "own", (4,)),
    (fills_by_a_call, "tile", (-4,)),
)
"""Kernels, the unwritten array, and the lines, from the first of the kernel, that should have written it."""


@pytest.mark.slow
@each_row(CAUSES, lambda row: row[0].__name__)
def test_uninitialised_reads_name_other_earlier_writers(row: tuple[Kernel, str, tuple[int, ...]]) -> None:
    kernel, array, lines = row
    args: dict[str, Any] = {"x": X, "out": st.empty(64, "f32")}
    result = st.launch(kernel, grid=1, block=64, args=args, check="uninitialised", faults="return", engine="numpy")
    first = kernel.function.__code__.co_firstlineno + 1
    causes = {fault.notes[-1] for fault in result.faults}
    written = ", ".join(str(first + line) for line in lines)
    assert causes == {f"line {written} should have written it, and did not" if lines else NEVER.format(array)}


def test_no_advised_mask_lets_a_shuffle_read_an_absent_lane() -> None:
    span = Span("f", 1, 1, 1, 2)
    for what in ("shuffle", "any vote", "syncwarp"):
        note = barriers.inactive_lanes(span, what, "thread", 0xFFFFFFFF, 0xFFFF0000).notes[1]
        assert "active_mask" not in note and "move it out of the branch" in note
    assert "if every lane that is read takes the branch" in barriers.inactive_lanes(span, "shuffle", "", 1, 2).notes[1]


@st.kernel
def smooth_in_place(x: Global[f32], out: Global[f32]) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    if i > 0 and i < 255:
        x[i] = x[i - 1] + x[i] + x[i + 1]


@st.kernel
def smooth_by_a_variable(x: Global[f32], out: Global[f32]) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    if i > 0 and i < 255:
        total = x[i - 1] + x[i] + x[i + 1]
        x[i] = total


IN_PLACE = {
    "blocks, one statement": (smooth_in_place, 4, "no barrier orders blocks, .*: write the results to another array"),
    "blocks, two statements": (smooth_by_a_variable, 4, r"end the launch between them \(no barrier orders blocks\)"),
    "one block, one statement": (smooth_in_place, 1, r"read into a variable, .*then st.sync\(\), then write"),
    "one block, two statements": (smooth_by_a_variable, 1, r"no st.sync\(\) is legal between the two"),
}
"""Kernels, blocks of 256 threads in all, and the advice. Each has a race within a warp, too, which st.syncwarp() would order."""


@pytest.mark.slow
@each_row(IN_PLACE)
def test_advice_orders_the_threads_of_all_races_of_a_statement(name: str) -> None:
    kernel, blocks, advice = IN_PLACE[name]
    args = {"x": np.arange(256, dtype=np.float32), "out": st.empty(1, "f32")}
    result = st.launch(kernel, grid=blocks, block=256 // blocks, args=args, check="races", faults="return")
    texts = [note for fault in result.faults for note in fault.notes]
    assert result.faults and not any("syncwarp" in text for text in texts)
    assert len([text for text in texts if re.search(advice, text)]) == len(result.faults), texts
