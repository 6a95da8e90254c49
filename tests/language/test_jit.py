"""The jit engine against the numpy engine: outputs, counts, faults and prints, also of erroneous kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from simtbed import Kernel
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.engines.numpy.engine import NumpyEngine
from simtbed.runtime.engine import Outcome
from simtbed.runtime.request import prepare_request
from simtbed.testing.conformance import assert_same

from tests.checkers.corpus import PAIRS
from tests.checkers.test_faults import FAULTY, OF_CORPUS


def agree(kernel: Kernel, args: Mapping[str, Any], grid: Any = 1, block: Any = 32, **rest: Any) -> Outcome:
    """Run a kernel on both engines, compare, and return the jit's outcome."""
    request = prepare_request(kernel, grid=grid, block=block, args=args, **rest)
    actual = LlvmEngine().run(request)
    assert_same(actual, NumpyEngine().run(request), request)
    return actual


@pytest.mark.parametrize(
    ("name", "fixed"), [(name, False) for name in (*FAULTY, *OF_CORPUS)] + [(name, True) for name in OF_CORPUS]
)
def test_faults(name: str, fixed: bool) -> None:
    if name in FAULTY:
        kernel, args, grid, block = FAULTY[name]
    else:
        pair = PAIRS[name]
        kernel, args, grid, block = pair.kernel, {**pair.args, "FIXED": fixed}, pair.grid, pair.block
    request = prepare_request(kernel, grid=grid, block=block, args=args, step_limit=1000)
    actual, expected = LlvmEngine().run(request), NumpyEngine().run(request)
    assert_same(actual, expected, request)
    assert bool(actual.faults) != fixed


def test_a_load_outside_gives_zero() -> None:
    """Independent of the array's contents."""
    kernel, args, grid, block = FAULTY["tree_over_the_end"]
    request = prepare_request(kernel, grid=grid, block=block, args=args)
    actual = LlvmEngine().run(request).buffers["out"]
    assert actual.tolist() == [2.0] * 32 + [1.0] * 32
