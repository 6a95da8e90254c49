"""C functions called in a row: order, arguments, results."""

from __future__ import annotations

import ctypes

import numpy as np
from simtbed.native.foreign import COLUMNS, RESULT, call_all

TAKES = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)
TAKES_ONE = ctypes.CFUNCTYPE(None, ctypes.c_int64)


def address(function: object) -> int:
    actual = ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]
    assert actual is not None
    return actual


def test_calls_run_in_order_and_store_their_results() -> None:
    observed: list[tuple[int, ...]] = []

    def take(*arguments: int) -> int:
        observed.append(arguments)
        return sum(arguments)

    quadruple, single = TAKES(take), TAKES_ONE(lambda arguments: observed.append((arguments,)))
    calls = np.zeros((3, COLUMNS), np.int64)
    calls[:, :RESULT] = [
        [address(quadruple), 1, 2, 3, -(2**60)],
        [address(single), -7, 0, 0, 0],
        [address(quadruple), 4, 5, 6, 2**62],
    ]
    call_all(calls)
    assert observed == [(1, 2, 3, -(2**60)), (-7,), (4, 5, 6, 2**62)]
    assert calls[[0, 2], RESULT].tolist() == [6 - 2**60, 15 + 2**62]


def test_no_call() -> None:
    call_all(np.zeros((0, COLUMNS), np.int64))
