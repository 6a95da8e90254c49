"""The op table: each row's NumPy meaning against exact arithmetic, and the language's use of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from simtbed.ir.ops import COSTS, Op, Policy, ulp
from simtbed.language.types import Scalar
from simtbed.testing.conformance.edge_values import CASES, IDS, comparable, operands
from simtbed.testing.conformance.operations import Group, group_id, shifts

from tests.ops.exact import evaluate


@pytest.mark.parametrize(("row", "type"), CASES, ids=IDS)
def test_meaning_is_exact(row: Op, type: Scalar) -> None:
    arrays = operands(row, type)
    with np.errstate(all="ignore"):
        got = row.meaning(*arrays)
    assert got.dtype == row.result_type(type).dtype
    keep = np.flatnonzero(comparable(row, arrays))
    assert len(keep)
    want: Any = [evaluate(row.name, type, *(a[i].item() for a in arrays)) for i in keep]
    expected = np.array(want, got.dtype)
    agree = row.held(type).agree(got[keep], expected)
    wrong = keep[~agree]
    shown = [([a[i].item() for a in arrays], got[i].item(), expected[list(keep).index(i)].item()) for i in wrong[:3]]
    assert not len(wrong), f"{len(wrong)} differ (operands, got, exact): {shown}"


@pytest.mark.parametrize("group", list(shifts()), ids=group_id)
def test_shifts_by_other_types_are_exact(group: Group) -> None:
    type, rows = group
    for row in rows:
        a, count = operands(row, type)
        got = row.meaning(a, count)
        assert got.dtype == type.dtype
        # A count beyond the type's bits leaves nothing but the sign; Python knows no negative one.
        far = np.where((count >= 0) & (count < type.bits), count, type.bits)
        want = [evaluate(row.name, type, x.item(), min(by.item(), 64)) for x, by in zip(a, far, strict=True)]
        assert got.tolist() == want


@pytest.mark.parametrize(("row", "type"), CASES, ids=IDS)
def test_meaning_is_total(row: Op, type: Scalar) -> None:
    """Outside the domain the emulator still answers, and always the same."""
    arrays = operands(row, type)
    with np.errstate(all="ignore"):
        first, second = row.meaning(*arrays), row.meaning(*(a.copy() for a in arrays))
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize(("row", "type"), CASES, ids=IDS)
def test_rows_are_complete(row: Op, type: Scalar) -> None:
    spelling = row.spelling(type)
    assert all(f"{{{i}}}" in spelling for i in range(row.operands))
    assert row.cost_class(type) in COSTS


def test_policies_tell_apart() -> None:
    one = np.array([1.0, 0.0, np.nan, 1.0], np.float32)
    other = np.array([np.nextafter(np.float32(1), np.float32(2)), -0.0, np.nan, 1.0], np.float32)
    assert Policy("bits").agree(one, other).tolist() == [False, False, True, True]
    assert Policy("value").agree(one, other).tolist() == [False, True, True, True]
    assert ulp(1).agree(one, other).tolist() == [True, True, True, True]
    assert ulp(0).agree(one, other).tolist() == [False, True, True, True]
