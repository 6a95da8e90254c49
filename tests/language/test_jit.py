"""The jit engine gives the numpy engine's outputs, counts, faults and printed lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from simtbed import Kernel
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.engines.numpy.engine import NumpyEngine
from simtbed.ir.ops import BITS
from simtbed.runtime.engine import Outcome, Request
from simtbed.runtime.prepared import prepare
from simtbed.runtime.request import prepare_request

from tests.checkers.test_faults import BUGGY, FIXED
from tests.language.all_features import FEATURES, Feature
from tests.ops.programs import Group, group_id, groups
from tests.ops.programs import request as op_request


def assert_same(found: Outcome, expected: Outcome, request: Request) -> None:
    """Two outcomes of one launch are the same; any NaN equals any NaN."""
    assert list(found.buffers) == list(expected.buffers)
    for name, values in found.buffers.items():
        differing = np.argwhere(~BITS.agree(values, expected.buffers[name]))
        assert not len(differing), f"{name}{differing[0]}: {values[tuple(differing[0])]}"
    assert_same_counts(found, expected, request)
    assert [(f.kind, f.count, str(f)) for f in found.faults] == [(f.kind, f.count, str(f)) for f in expected.faults]
    assert found.printed == expected.printed


def assert_same_counts(found: Outcome, expected: Outcome, request: Request) -> None:
    assert found.counts is not None and expected.counts is not None
    sites = prepare(request.program).sites
    wrong = np.flatnonzero((found.counts != expected.counts).any(axis=1))
    assert not len(wrong), "\n".join(
        f"{sites[n].kind} {sites[n].span.place} {sites[n].span.text}: {found.counts[n]}, numpy {expected.counts[n]}"
        for n in wrong
    )


def agree(kernel: Kernel, args: Mapping[str, Any], grid: Any = 1, block: Any = 32, **rest: Any) -> Outcome:
    """Run a kernel on both engines, compare, and give the jit's outcome."""
    request = prepare_request(kernel, grid=grid, block=block, args=args, **rest)
    found = LlvmEngine().run(request)
    assert_same(found, NumpyEngine().run(request), request)
    return found


@pytest.mark.parametrize("feature", FEATURES, ids=lambda f: f.name)
def test_features(feature: Feature) -> None:
    request = feature.launch(prepare_request)
    found = LlvmEngine().run(request)
    assert_same(found, NumpyEngine().run(request), request)
    assert np.asarray(feature.expected).ravel().tolist() == found.buffers["out"].ravel().tolist()


@pytest.mark.parametrize("name", [*BUGGY, *FIXED])
def test_faults(name: str) -> None:
    kernel, args, grid, block = {**BUGGY, **FIXED}[name]
    request = prepare_request(kernel, grid=grid, block=block, args=args, step_limit=1000)
    found, expected = LlvmEngine().run(request), NumpyEngine().run(request)
    assert_same(found, expected, request)
    assert bool(found.faults) == (name in BUGGY)


def test_a_load_outside_gives_zero() -> None:
    """Whatever the array holds."""
    kernel, args, grid, block = BUGGY["tree_over_the_end"]
    request = prepare_request(kernel, grid=grid, block=block, args=args)
    found = LlvmEngine().run(request).buffers["out"]
    assert found.tolist() == [2.0] * 32 + [1.0] * 32


@pytest.mark.parametrize("group", list(groups()), ids=group_id)
def test_operations(group: Group) -> None:
    """Every row of the op table on its edge operands, to the bit, also where CUDA leaves the result undefined."""
    request, given = op_request(group)
    outcome = LlvmEngine().run(request)
    for row in group[1]:
        with np.errstate(all="ignore"):
            expected = row.meaning(*given)
        assert BITS.agree(outcome.buffers[f"out_{row.name}"], expected).all(), row.name
