"""Feature kernels of arrays of several dimensions: indices, strides, rows, slices, what a device function gets."""

import numpy as np
import simtbed as st
from simtbed import Array, Const, Global, Shared, f32, float2, i32, i64, u8, u32

from ...runtime.arrays import empty, zeros
from .feature import feature, out

SQUARE = np.arange(64, dtype=np.int32).reshape(8, 8)
CUBE = np.arange(120, dtype=np.int32).reshape(2, 3, 4, 5)


# ------------------------------------------------------------------ indices and extents
@feature((SQUARE.T + 1).ravel(), block=(8, 4), x=SQUARE, out=empty((8, 8), i32))
@st.kernel
def two_dimensions(x: Global[i32], out: Global[i32]) -> None:
    for row in range(st.thread.y, x.shape[0], 4):
        out[st.thread.x, row] = x[row, st.thread.x] + 1


@feature((2 * SQUARE[1::2, ::3]).ravel(), block=(4, 3), x=SQUARE[1::2, ::3], out=np.zeros((8, 8), np.int32)[::2, 1:4])
@st.kernel
def strided_arrays(x: Global[i32], out: Global[i32]) -> None:
    out[st.thread.x, st.thread.y] = 2 * x[st.thread.x, st.thread.y]


@feature(np.arange(0, 64, 2), x=np.arange(64, dtype=np.int32)[::2], out=out())
@st.kernel
def every_second_element(x: Global[i32], out: Global[i32]) -> None:
    out[st.lane] = x[st.lane]


@feature(SQUARE.T.ravel()[:32], x=np.asfortranarray(SQUARE), y=np.broadcast_to(np.int32(0), (8, 8)), out=out())
@st.kernel
def column_major_and_repeated(x: Global[i32], y: Global[i32], out: Global[i32]) -> None:
    out[st.lane] = x[st.lane % 8, st.lane // 8] + y[st.lane % 8, 0]


@feature(CUBE[::-1].ravel(), block=(5, 4, 6), x=CUBE, out=empty((2, 3, 4, 5), i32))
@st.kernel
def four_dimensions(x: Global[i32], out: Global[i32]) -> None:
    i = st.thread.z // 3
    out[1 - i, st.thread.z % 3, st.thread.y, st.thread.x] = x[i, st.thread.z % 3, st.thread.y, st.thread.x]


@feature([2, 3, 4, 5, 2, 120, 4, 33, 7, 1, 32, 32], x=CUBE, y=np.zeros(33, np.int32), out=out(12), SIZE=7)
@st.kernel
def extents(x: Global[i32], y: Global[i32], out: Global[i32], SIZE: Const) -> None:
    tile = st.shared(i32, SIZE, 3)
    if st.lane == 0:
        out[0] = x.shape[0]
        out[1] = x.shape[1]
        out[2] = x.shape[2]
        out[3] = x.shape[3]
        out[4] = len(x)
        out[5] = x.size
        out[6] = x.ndim
        out[7] = y.size
        out[8] = len(tile)
        out[9] = y.ndim
        rest = y[1:]
        out[10] = len(rest)
        out[11] = rest.shape[0]


@feature([i * 8 + i % 3 for i in range(8)] * 4, x=SQUARE, out=out())
@st.kernel
def indices_of_other_types(x: Global[i32], out: Global[i32]) -> None:
    i = st.lane % 8
    if st.lane < 8:
        out[st.lane] = x[u8(i), i64(i % 3)]
    elif st.lane < 16:
        out[st.lane] = x[u32(i), i % 3]
    else:
        place = (i, u32(i % 3))
        out[st.lane] = x[place]


PAIRS = np.arange(64, dtype=np.float32).reshape(2, 8, 4)[:, :, :2]


@feature((PAIRS[..., 1] * 2).ravel(), block=16, x=PAIRS, out=out(16, "f32"))
@st.kernel
def vectors_in_rows(x: Global[float2], out: Global[f32]) -> None:
    pair = x[st.lane // 8, st.lane % 8]
    out[st.lane] = pair.x + pair.y + 1


# ------------------------------------------------------------------ views
@feature(SQUARE[:, 2:6].sum(1) + SQUARE[:, 3], block=8, x=SQUARE, out=out(8))
@st.kernel
def rows_columns_and_slices(x: Global[i32], out: Global[i32]) -> None:
    row = x[st.thread.x, 2:6]
    column = x[:, 3]
    total = column[st.thread.x]
    for j in range(len(row)):
        total += row[j]
    out[st.thread.x] = total


ENDS = range(8)


@feature(
    [10 * len(ENDS[t : 2 * t + 2]) + len(ENDS[5 * t :]) for t in ENDS], block=8, x=np.zeros(8, np.int32), out=out(8)
)
@st.kernel
def slices_end_with_their_array(x: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    out[t] = 10 * len(x[t : 2 * t + 2]) + len(x[5 * t :])


@st.device
def total(values: Array[i32]) -> i32:
    """The sum of a row, for any layout."""
    found = 0
    for j in range(len(values)):
        found += values[j]
    return found


@st.device
def trace(values: Array[i32]) -> i32:
    """The sum of the diagonal."""
    found = 0
    for j in range(min(values.shape[0], values.shape[1])):
        found += values[j, j]
    return found


@feature(
    SQUARE.sum(1) + SQUARE.sum(0) + np.trace(SQUARE[2:, 1:5]) + 6 * np.trace(SQUARE[:2]) + 24 * np.arange(8) + 1,
    block=8,
    x=SQUARE,
    out=out(8),
)
@st.kernel
def views_in_device_functions(x: Global[i32], out: Global[i32]) -> None:
    tile = st.shared(i32, 2, 8)
    own = st.local(i32, 2, 2)
    t = st.thread.x
    for i in range(2):
        tile[i, t] = x[i, t]
        for j in range(2):
            own[i, j] = t * 8 + i
    st.sync()
    found = total(x[t, :]) + total(x[:, t]) + trace(x[2:, 1:5])
    found += 3 * (trace(tile) + trace(tile[:, 0:2]))
    out[t] = found + total(own[0, :]) + total(own[1, 1:])


@st.device
def swap_rows(values: Global[i32], other: Global[i32], j: i32) -> None:
    """Exchange the elements of two rows."""
    kept = values[j]
    values[j] = other[j]
    other[j] = kept


@feature(np.roll(SQUARE.reshape(4, 2, 8), 1, 1).ravel(), block=(8, 4), given=SQUARE, out=empty((8, 8), i32))
@st.kernel
def rows_that_change(given: Global[i32], out: Global[i32]) -> None:
    row = 2 * st.thread.y
    pair = out[row : row + 2]
    for i in range(2):
        pair[i, st.thread.x] = given[row + i, st.thread.x]
    swap_rows(pair[0, :], out[row + 1, :], st.thread.x)


@feature(SQUARE[::-1].ravel(), block=8, given=SQUARE, out=empty((8, 8), i32))
@st.kernel
def rows_by_one_index(given: Global[i32], out: Global[i32]) -> None:
    row = out[7 - st.thread.x]
    for j in range(8):
        row[j] = given[st.thread.x][j]  # type: ignore[index]  # to a type checker they are elements


# ------------------------------------------------------------------ atomics and updates
@feature([[32, 0], [16, 48]], out=zeros((2, 2), i32))
@st.kernel
def atomics_on_elements(out: Global[i32]) -> None:
    table = st.shared(i32, 2, 2)
    if st.lane < 4:
        table[st.lane // 2, st.lane % 2] = 0
    st.sync()
    st.atomic_add(table, (0, 0), 1)
    st.atomic_add(table[1, :], st.lane % 2, 1)
    st.sync()
    if st.lane < 4:
        i, j = st.lane // 2, st.lane % 2
        st.atomic_add(out, (i, j), table[i, j])
    st.atomic_add(out[1, :], 1, 1)


@st.device
def flat_sum(tile: Shared[i32]) -> i32:
    """The sum of an array of two dimensions."""
    found = 0
    for i in range(tile.shape[0]):
        for j in range(tile.shape[1]):
            found += tile[i, j]
    return found


@feature([sum(range(12)) + 12] * 32, out=out())
@st.kernel
def updates_of_elements(out: Global[i32]) -> None:
    tile = st.shared(i32, 3, 4)
    if st.lane < 12:
        tile[st.lane // 4, st.lane % 4] = st.lane
        tile[st.lane // 4, st.lane % 4] += 1
    st.sync()
    out[st.lane] = flat_sum(tile)
