"""What-if sweeps of kernels by the dependence of their outputs on the configuration."""

from dataclasses import dataclass, field
from typing import Any

import simtbed as st
from simtbed import Const, Global, f32, i32
from simtbed.language.functions import Kernel

from tests.model.test_outputs import ROWS, X, row_sum
from tests.table_checks import each_row

N = len(X)


@st.kernel
def grid_stride(x: Global[f32], out: Global[f32], n: i32) -> None:
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        out[i] = x[i] * f32(2)


@st.kernel
def in_place(x: Global[f32]) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    x[i] = x[i] + f32(1)


@st.kernel
def split_sum(x: Global[f32], partial: Global[f32], out: Global[f32], SPLITS: Const) -> None:
    """Sums of SPLITS strided sections; the merge adds the first four."""
    t = st.thread.x
    if t < SPLITS:
        total = f32(0)
        for i in range(t, 256, SPLITS):
            total += x[i]
        partial[t] = total
    st.sync()
    if t == 0:
        out[0] = partial[0] + partial[1] + partial[2] + partial[3]


@st.kernel
def merged_sum(x: Global[f32], partial: Global[f32], out: Global[f32], SPLITS: Const) -> None:
    t = st.thread.x
    if t < SPLITS:
        total = f32(0)
        for i in range(t, 256, SPLITS):
            total += x[i]
        partial[t] = total
    st.sync()
    if t == 0:
        merged = f32(0)
        for k in range(SPLITS):
            merged += partial[k]
        out[0] = merged


@st.kernel
def places_by_ticket(count: Global[i32], out: Global[i32]) -> None:
    if st.thread.x == 0:
        out[st.atomic_add(count, 0, 1)] = st.block_dim.x


SPLIT = {"x": X, "partial": st.zeros(8, "f32"), "out": st.empty(1, "f32"), "SPLITS": 4}


@dataclass(frozen=True)
class Sweep:
    """A sweep, the value of column "outputs" by choice (its start, after the colon its end), and the best choice."""

    name: str
    kernel: Kernel
    grid: int
    block: int
    args: dict[str, Any]
    how: dict[str, Any]
    outputs: dict[str, str]
    best: str | None = ""
    contains: tuple[str, ...] = field(default=())


SWEEPS = (
    Sweep(
        "a block a row", row_sum, 32, 32, ROWS, {"blocks": [32, 64, 128]},
        {"32": "reference", "64": "out differs: 16 of 32 elements, first out[16]", "128": "out differs: 24 of 32 elements, first out[8]"},
        "32", ("--not-compared out", "--grid 32"),
    ),
    Sweep(
        "a block a row, grid as given", row_sum, 32, 32, ROWS, {"blocks": [64, 128], "grids": [32]},
        {"64, grid 32x1x1": "equal", "128, grid 32x1x1": "equal"},
    ),
    Sweep(
        "a grid that leaves rows out", row_sum, 32, 32, ROWS, {"grids": [32, 8]},
        {"grid 32x1x1": "reference", "grid 8x1x1": "out differs: 24 of 32 elements, first out[8]"}, "grid 32x1x1",
    ),
    Sweep(
        "grid-stride loop", grid_stride, 8, 32, {"x": X, "out": st.empty(N, "f32"), "n": N}, {"blocks": [32, 64, 256]},
        {"32": "reference", "64": "equal", "256": "equal"},
    ),
    Sweep("input as output", in_place, 8, 32, {"x": X}, {"blocks": [32, 64, 256]}, {"32": "reference", "64": "equal", "256": "equal"}),
    Sweep(
        "merge of four splits", split_sum, 1, 32, SPLIT, {"const": {"SPLITS": [8]}, "not_compared": ["partial"], "rtol": 1e-5},
        {"SPLITS=8": "out differs: 1 of 1 elements, first out[0]"}, None, ("--not-compared out",),
    ),
    Sweep(
        "merge of all splits", merged_sum, 1, 32, SPLIT, {"const": {"SPLITS": [4, 8]}},
        {"SPLITS=4": "reference", "SPLITS=8": "partial differs: 8 of 8 elements, first partial[0]"}, "SPLITS=4",
        ("--not-compared partial", "out differs: 1 of 1", "--rtol 1e-06"),
    ),
    Sweep(
        "merge of all splits, with tolerance", merged_sum, 1, 32, SPLIT,
        {"const": {"SPLITS": [8]}, "not_compared": "partial", "rtol": 1e-6}, {"SPLITS=8": "equal, partial not compared"}, "SPLITS=8",
    ),
    Sweep(
        "nothing compared", merged_sum, 1, 32, SPLIT, {"const": {"SPLITS": [8]}, "not_compared": ["partial", "out"]},
        {"SPLITS=8": "not compared: partial, out"}, "SPLITS=8",
    ),
    Sweep(
        "tickets", places_by_ticket, 4, 32, {"count": st.zeros(1, "i32"), "out": st.zeros(4, "i32")}, {"blocks": [64]},
        {"64": "count differs: 1 of 1 elements, first count[0]"}, None, ("; the order of its atomic operations may decide",),
    ),
    Sweep(
        "launch as given fails", row_sum, 64, 32, ROWS, {"grids": [32]},
        {"grid 32x1x1": "not compared: the launch as given fails: global read out of bounds"}, "grid 32x1x1",
    ),
)  # fmt: skip


@each_row(SWEEPS, lambda sweep: sweep.name)
def test_outputs_of_choices_are_compared_with_the_launch(sweep: Sweep) -> None:
    before = X.copy()
    table = st.whatif(sweep.kernel, grid=sweep.grid, block=sweep.block, args=sweep.args, source_only=True, **sweep.how)
    outputs = dict(zip(table.choices, table.column("outputs"), strict=True))
    assert outputs.keys() == sweep.outputs.keys()
    for choice, start in sweep.outputs.items():
        assert outputs[choice].startswith(start), outputs[choice]
    last = list(outputs.values())[-1]
    assert all(text in last for text in sweep.contains), last
    best = table.best().get((sweep.kernel.__name__, "H200"), (None, 0))[0]
    assert best == sweep.best if sweep.best != "" else best in outputs
    assert (before == X).all()
