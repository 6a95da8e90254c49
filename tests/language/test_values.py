"""Tuples and structs: printed programs, refused kernels, launch arguments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import CompileError, Global, LaunchError, f32, i32
from simtbed.engines.cuda.printer import cuda_source
from simtbed.runtime.request import prepare_request
from simtbed.testing.conformance.features_values import (
    CELL,
    CELLS,
    MIXED,
    Box,
    Cell,
    Mixed,
    Point,
    area,
    grown,
    ordered,
)

from tests.language import refused_values


@st.kernel
def printed(x: Global[i32], out: Global[f32], box: Box, pair: tuple[i32, f32]) -> None:
    """A tuple that changes, a returned struct, a swap, a condition."""
    low, high = ordered(x[st.lane], pair[0])
    low, high = high, low
    best = (low, 0.5)
    for i in range(4):
        if x[i] > best[0]:
            best = (x[i], best[1] * 2)
    larger = grown(box, pair[1])
    chosen = larger.low if high > 3 else box.low
    out[st.lane] = area(larger) + chosen.x + best[1] + f32(high)


ARGUMENTS: dict[str, Any] = {
    "x": np.arange(32, dtype=np.int32), "out": st.empty(32, f32), "box": Box(Point(0.0, 1.0), Point(2.0, 3.0)),
    "pair": (4, 0.5),
}  # fmt: skip


def test_the_printed_text(golden: Callable[[str, str], None]) -> None:
    request = prepare_request(printed, grid=1, block=32, args=ARGUMENTS)
    golden("cuda/values.cu", cuda_source(request.program, request.block).text)


@pytest.mark.parametrize("name", ["tuples", "structs", "results"])
def test_what_is_refused(name: str, golden: Callable[[str, str], None]) -> None:
    args = {"x": np.ones(4, np.float32), "out": st.empty(4, f32), "n": 3}
    if name == "results":
        del args["x"]
    with pytest.raises(CompileError) as caught:
        st.launch(getattr(refused_values, name), grid=1, block=1, args=args)
    golden(f"refused_values_{name}.txt", f"{caught.value}\n")


@dataclass(frozen=True)
class Other:
    low: float


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"box": Other(1.0)}, r"box is Box\(low, high, tag\), not Other\(low=1.0\)"),
        ({"box": Box(Point(0.0, 1.0), Point(2.0, 3.0), tag=1 << 40)}, r"box.tag is i32, .*1099511627776"),
        ({"pair": (4,)}, r"pair is tuple\[i32, f32\], not \(4,\)"),
        ({"pair": (4.5, 1.0)}, r"pair.0 is i32: .*4.5"),
    ],
)
def test_arguments_are_checked(change: dict[str, Any], message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        st.launch(printed, grid=1, block=32, args=ARGUMENTS | change)


# ------------------------------------------------------------------ arrays of structs
@st.kernel
def moved(cells: Global[Cell], out: Global[Cell], flat: Global[Mixed]) -> None:
    """Fields, whole elements, views."""
    i = st.lane
    cells[i].mass *= 2.0
    cell = cells[31 - i]
    out[i] = cell
    out[i].at.x = cell.at.y
    out[i].number += i32(flat[i].half)
    rest = cells[1:]
    cells[i].at = rest[i % 8].at


STRUCTS = {"cells": CELLS, "out": st.empty(32, Cell), "flat": np.zeros(32, MIXED)}


def test_the_printed_text_of_arrays_of_structs(golden: Callable[[str, str], None]) -> None:
    request = prepare_request(moved, grid=1, block=32, args=STRUCTS)
    golden("cuda/struct_arrays.cu", cuda_source(request.program, request.block).text)


@dataclass(frozen=True)
class Wide:
    first: f32
    last: f32


@st.kernel
def both(x: Global[Wide], out: Global[f32]) -> None:
    first = x[st.lane].first
    last = x[st.lane].last
    out[st.lane] = first + last


def test_sectors_are_those_of_the_structs() -> None:
    """A field of every 36th byte: the sectors depend on its offset in the struct."""
    x = np.zeros(32, np.dtype([("first", "f4"), ("pad", "f4", 7), ("last", "f4")]))
    result = st.launch(both, grid=1, block=32, args={"x": x, "out": st.empty(32, f32)})
    for offset, text in ((0, ".first"), (32, ".last")):
        sectors = len({(36 * lane + offset) // 32 for lane in range(32)})
        assert result.counters.at(text).total("global_load_sectors") == sectors


def test_arrays_of_structs_are_returned_as_such() -> None:
    before = CELLS.copy()
    result = st.launch(moved, grid=1, block=32, args=STRUCTS, faults="return")
    assert np.array_equal(CELLS, before)
    assert result.cells.dtype == CELLS.dtype and np.array_equal(result.cells["mass"], 2 * CELLS["mass"])
    assert result.out.dtype.names == ("at", "mass", "number")
    assert np.array_equal(result.out["at"]["x"], CELLS["at"]["y"][::-1])


@st.kernel
def beyond(cells: Global[Cell], out: Global[f32]) -> None:
    row = cells[4:]
    out[st.lane] = row[st.lane].at.x + cells[st.lane + 1].mass


def test_findings_name_the_field(golden: Callable[[str, str], None]) -> None:
    args = {"cells": CELLS, "out": st.empty(32, f32)}
    faults = [
        st.launch(beyond, grid=1, block=32, args=args, engine=engine, check="all", faults="return").faults
        for engine in ("jit", "numpy")
    ]
    texts = ["\n".join(map(str, actual)) + "\n" for actual in faults]
    assert texts[0] == texts[1]
    golden("check_struct_arrays.txt", texts[0])


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (np.zeros(4, "f4, i4"), r"cells has no field at.x; its dtype is \[\('f0', '<f4'\), \('f1', '<i4'\)\]"),
        (np.zeros(4, np.float32), r"cells is an array of Cell\(at, mass, number\), the array given is float32"),
        (
            np.zeros(4, np.dtype([("at", CELL["at"]), ("mass", "f8"), ("number", "i4")])),
            r"cells's mass is f32, .* has float64",
        ),
        (np.zeros(4, np.dtype([("b", "i1"), *CELL.descr])), r"cells's at.x is not aligned to 4 bytes"),
        (CELLS[::-1], r"cells has 1 to 5 dimensions and no backward strides"),
    ],
)
def test_arrays_of_structs_are_checked(cells: Any, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        st.launch(beyond, grid=1, block=1, args={"cells": cells, "out": st.empty(1, f32)})


@st.kernel
def graded(x: Global[i32], out: Global[f32]) -> None:
    """Literals chosen by a value that only one arm may read."""
    i = st.lane
    out[i] = 1.0 if i > 20 else (2.5 if x[i] % 5 == 0 else (0.0 if x[i] % 7 == 0 else -1.0))


@pytest.mark.parametrize("engine", ["numpy", "jit"])
def test_conditions_of_chosen_literals_are_computed_in_their_arm(engine: Any) -> None:
    args = {"x": np.arange(21, dtype=np.int32), "out": st.empty(32, f32)}
    result = st.launch(graded, grid=1, block=32, args=args, engine=engine, check="all")
    expected = [1.0 if i > 20 else 2.5 if i % 5 == 0 else 0.0 if i % 7 == 0 else -1.0 for i in range(32)]
    assert result.out.tolist() == expected
