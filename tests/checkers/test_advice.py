"""Advice of the checkers other than the race detector: writers of uninitialised elements, masks, barriers."""

from __future__ import annotations

from typing import Any

import numpy as np
import simtbed as st
from simtbed import Global, Kernel, f32
from simtbed.sanitizer import barriers
from simtbed.span import Span

from tests.table_checks import check_each

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


NEVER = "nothing in the kernel writes {} before this read"
CAUSES: tuple[tuple[Kernel, str, tuple[int, ...]], ...] = (
    (adds_to_its_output, "out", ()),
    (counts_without_clearing, "bins", ()),
    (writes_later, "tile", ()),
    (writes_in_the_loop, "tile", (6,)),
    (writes_a_half, "tile", (4,)),
)
"""Kernels, the unwritten array, and the lines, from the first of the kernel, that should have written it."""


def test_uninitialised_reads_name_other_earlier_writers() -> None:
    def check(row: tuple[Kernel, str, tuple[int, ...]]) -> None:
        kernel, array, lines = row
        args: dict[str, Any] = {"x": X, "out": st.empty(64, "f32")}
        result = st.launch(kernel, grid=1, block=64, args=args, check="uninitialised", faults="return", engine="numpy")
        first = kernel.function.__code__.co_firstlineno + 1
        causes = {fault.notes[-1] for fault in result.faults}
        written = ", ".join(str(first + line) for line in lines)
        assert causes == {f"line {written} should have written it, and did not" if lines else NEVER.format(array)}

    check_each(CAUSES, check, lambda row: row[0].__name__)


def test_no_advised_mask_lets_a_shuffle_read_an_absent_lane() -> None:
    span = Span("f", 1, 1, 1, 2)
    for what in ("shuffle", "any vote", "syncwarp"):
        note = barriers.inactive_lanes(span, what, "thread", 0xFFFFFFFF, 0xFFFF0000).notes[1]
        assert "active_mask" not in note and "move it out of the branch" in note
    assert "if every lane that is read takes the branch" in barriers.inactive_lanes(span, "shuffle", "", 1, 2).notes[1]
