"""Edge operands, and every case of the op table: rows x operand types."""

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ...ir.ops import TABLE, Op
from ...language.types import BOOL, Scalar

Values = npt.NDArray[Any]
CASES = [(row, type) for row in TABLE.values() for type in row.types]
IDS = [f"{row.name}-{type}" for row, type in CASES]


def edges(type: Scalar) -> Values:
    """Return the edge values of a type, and a few plain ones."""
    if type is BOOL:
        return np.array([False, True])
    if type.is_integer:
        low, high = type.range
        some = {low, low + 1, -7, -2, -1, 0, 1, 2, 3, 7, 8, 31, 32, 63, 64, high // 2, high - 1, high}
        return np.array(sorted(n for n in some if low <= n <= high), type.dtype)
    info: Any = ml_dtypes.finfo(type.dtype)
    some_floats = [
        0.0, 1.0, 1.5, 0.1, 1e-3, 3.0, 7.25, 127.5, 255.9, 256.5, 65535.5, 2147483520.0, 2147483648.0, 4294967040.0,
        4.3e9, 9.3e18, 1.9e19,
    ]  # fmt: skip
    some_floats += [
        float(info.tiny),
        float(info.smallest_subnormal),
        float(info.max),
        float("inf"),
        1 + 2 * float(info.eps),
        0.49999997,
    ]
    with np.errstate(over="ignore"):
        return np.array([*some_floats, *(-x for x in some_floats), float("nan")], type.dtype)


def operands(row: Op, type: Scalar) -> tuple[Values, ...]:
    """Return combinations of edge values, one array per operand; a sample of them for three operands."""
    values = edges(type)
    if row.first or isinstance(row.count, Scalar):
        columns = [edges(t) for t in row.operand_types(type)]
    elif row.operands == 3:
        columns = [values[::2], values[::2], values[::2]]
    else:
        columns = [values] * row.operands
    grid = list(itertools.product(*(range(len(c)) for c in columns)))
    picks = np.array(grid).T
    return tuple(c[p] for c, p in zip(columns, picks, strict=True))


def defined(row: Op, arrays: tuple[Values, ...]) -> npt.NDArray[np.bool_]:
    """Return which operands are in the row's domain."""
    if row.domain is None:
        return np.ones(len(arrays[0]), bool)
    with np.errstate(all="ignore"):
        return np.asarray(row.domain.holds(*arrays))


def comparable(row: Op, arrays: tuple[Values, ...]) -> npt.NDArray[np.bool_]:
    """Return which results engines must agree on."""
    with np.errstate(all="ignore"):
        return np.asarray(row.comparable(*arrays))
