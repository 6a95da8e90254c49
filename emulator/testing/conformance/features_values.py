"""Feature kernels of tuples and structs: as variables, in conditions, given to device functions and returned from them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import simtbed as st
from simtbed import Const, Global, empty, f32, f64, float2, i8, i16, i32, int2

from .feature import feature, out

LANES = np.arange(32)


# ------------------------------------------------------------------ tuples
@st.device
def ordered(a: i32, b: i32) -> tuple[i32, i32]:
    """The smaller and the larger one."""
    if a < b:
        return a, b
    return b, a


@st.device
def nested(pair: tuple[i32, i32], factor: f32) -> tuple[tuple[i32, i32], f32]:
    """The pair in descending order, and the factor doubled."""
    low, high = ordered(pair[0], pair[1])
    return (high, low), factor * 2


@feature(np.minimum(LANES, 31 - LANES) * 100 + np.maximum(LANES, 31 - LANES), out=out())
@st.kernel
def tuples_of_device_functions(out: Global[i32]) -> None:
    low, high = ordered(st.lane, 31 - st.lane)
    out[st.lane] = low * 100 + high


@feature(np.maximum(LANES, 20) * 100 + np.minimum(LANES, 20) + 3, out=out())
@st.kernel
def nested_tuples(out: Global[i32]) -> None:
    pair, factor = nested((st.lane, 20), 1.5)
    out[st.lane] = pair[0] * 100 + pair[1] + i32(factor)


@feature((31 - LANES) * 100 + LANES, x=LANES.astype(np.int32), out=out())
@st.kernel
def swaps(x: Global[i32], out: Global[i32]) -> None:
    t = st.lane
    cell = st.shared(i32, 32)
    cell[t] = x[t]
    st.sync()
    if t < 16:
        cell[t], cell[31 - t] = cell[31 - t], cell[t]
    st.sync()
    a, b = cell[t], x[t]
    a, b = b, a
    b, a = a + 100 * b, b
    out[t] = b if a == 31 - t else -1


@feature(
    [[2 * n + 1, 2 * n] for n in range(8)],
    block=8,
    x=np.arange(16, dtype=np.float32).reshape(8, 2),
    out=out(8, "float2"),
)
@st.kernel
def vectors_are_taken_apart(x: Global[float2], out: Global[float2]) -> None:
    first, second = x[st.lane]
    out[st.lane] = float2(second, first)


@feature([907] * 32, x=(np.arange(32) * 29 % 32).astype(np.int32), out=out())
@st.kernel
def tuples_that_change(x: Global[i32], out: Global[i32]) -> None:
    best = (-1, 0)
    for i in range(32):
        if x[i] > best[0] and i % 2 == 1:
            best = (x[i], i)
    kept = best
    best = best[1], best[0]
    value, at = kept if best[0] == kept[1] else (0, 0)
    out[st.lane] = value * 29 + at - best[0] + 8


@feature([[n + 8, n + 1 + (n + 7) * 100] for n in range(32)], x=LANES.astype(np.int32), out=out(32, "int2"))
@st.kernel
def chained_assignments(x: Global[i32], out: Global[int2]) -> None:
    t = st.lane
    pair = int2(0, 0)
    kept = st.shared(i32, 32)
    a = b = x[t]
    a, b = low, high = ordered(b + 7, a)  # n and n + 7
    kept[t] = pair.x = c = a + 1
    c, a = both = (a, c)
    whole = out[t] = int2(pair.x + b - c, kept[t] + high * 100)
    if whole.x + low != a + b or both[0] != c:
        out[t] = pair


# ------------------------------------------------------------------ structs
class Point(NamedTuple):
    """A point of the plane."""

    x: f32
    y: f32 = 1.5


@dataclass(frozen=True)
class Box:
    """Two corners and a number."""

    low: Point
    high: Point
    tag: i32 = 7


@st.device
def grown(box: Box, by: f32) -> Box:
    """The box, larger on each side."""
    low = Point(box.low.x - by, box.low.y - by)
    return Box(low, Point(y=box.high.y + by, x=box.high.x + by), box.tag + 1)


@st.device
def area(box: Box) -> f32:
    """The area of the box."""
    return (box.high.x - box.low.x) * (box.high.y - box.low.y)


@feature([(2 * n + 1) * 3.5 + 8 if n % 2 else n * 1.5 + 7 for n in range(32)], out=out(32, "f32"))
@st.kernel
def structs(out: Global[f32]) -> None:
    box = Box(Point(0.0, 0.0), Point(f32(st.lane)))
    if st.lane % 2 == 1:
        box = grown(box, 1.0)
    width = box.high.x - box.low.x
    out[st.lane] = area(box) + f32(box.tag) if st.lane % 2 == 0 else (2 * width - 3) * 3.5 + f32(box.tag)


ORIGIN = Point(0.25, 0.75)


@feature(
    [0.25 + 0.75 * 2 + 3 + n for n in range(32)],
    here=Point(3.0, 4.0),
    corners=(1, Point(1.0, 2.0)),
    SCALE=Point(2.0, 1.0),
    out=out(32, "f32"),
)
@st.kernel
def structs_by_value(here: Point, corners: tuple[i32, Point], out: Global[f32], SCALE: Const) -> None:
    origin = ORIGIN if st.lane < 0 else Point(ORIGIN.x, ORIGIN.y)
    x, y = here
    number, corner = corners
    out[st.lane] = origin.x + origin.y * SCALE.x + x * SCALE.y + f32(st.lane * number) + (corner.y - 2 * corner[0]) * y


# ------------------------------------------------------------------ arrays of structs
@dataclass
class Place:
    """A point in memory."""

    x: f32
    y: f32


@dataclass
class Cell:
    """A place with a mass and a number."""

    at: Place
    mass: f32
    number: i32


CELL = np.dtype([("at", [("x", "f4"), ("y", "f4")]), ("mass", "f4"), ("number", "i4")])
CELLS = np.zeros(32, CELL)
CELLS["at"]["x"], CELLS["at"]["y"], CELLS["mass"], CELLS["number"] = LANES, 2 * LANES, 0.5, 100 - LANES


@st.device
def heavier(cells: Global[Cell], i: i32, factor: f32) -> f32:
    """The mass of a cell, which grows."""
    cells[i].mass *= factor
    return cells[i].mass


@feature(LANES * 2 + 100 - LANES + 1.5, cells=CELLS, out=out(32, "f32"))
@st.kernel
def fields_of_structs(cells: Global[Cell], out: Global[f32]) -> None:
    mass = heavier(cells, st.lane, 3.0)
    cells[st.lane].number += 1
    cells[st.lane].at.x = -1.0
    out[st.lane] = cells[st.lane].at.y + f32(cells[st.lane].number - 1) + mass


MIXED = np.dtype([("wide", "f8"), ("flag", "i1"), ("half", "i2")], align=True)
TABLE = np.zeros((4, 16), MIXED)[:, ::2]
TABLE["wide"], TABLE["flag"], TABLE["half"] = np.arange(32).reshape(4, 8), 1, -5
ANSWER = np.zeros(32, MIXED)
ANSWER["wide"], ANSWER["flag"], ANSWER["half"] = TABLE["wide"].T.ravel(), 2, -5


@dataclass(frozen=True)
class Mixed:
    """Fields of several sizes."""

    wide: f64
    flag: i8
    half: i16


@feature(ANSWER, table=TABLE, out=empty(32, Mixed))
@st.kernel
def whole_structs(table: Global[Mixed], out: Global[Mixed]) -> None:
    row = table[st.lane % 4, :]
    found = row[st.lane // 4]
    out[st.lane] = Mixed(found.wide, found.flag + 1, found.half)


@feature(np.repeat([4, 4, 4, 4], 1), cells=np.zeros(9, CELL), out=out(4))
@st.kernel
def members_of_structs(cells: Global[Cell], out: Global[i32]) -> None:
    counts = cells[1:].number  # type: ignore[attr-defined]
    st.atomic_add(counts, st.lane % 8, 1)
    st.atomic_add(cells.number, 0, 0)  # type: ignore[attr-defined]
    st.sync()
    if st.lane < 4:
        out[st.lane] = cells[st.lane + 1].number + len(cells) - cells.size
