"""The op table: each row's NumPy meaning against exact arithmetic, and the language's use of it."""

from typing import Any

import numpy as np
import pytest
from simtbed.ir.ops import COSTS, Op, Policy, ulp
from simtbed.language.types import Scalar
from simtbed.testing.conformance.edge_values import CASES, comparable, operands
from simtbed.testing.conformance.operations import Group, group_id, shifts

from tests.ops.exact import evaluate
from tests.table_checks import check_each, each_row

Case = tuple[Op, Scalar]
APPROXIMATE = ("$fast_", "$mufu_", "$full_divide")


def case_name(case: Case) -> str:
    return f"{case[0].name}-{case[1]}"


def check_exact(case: Case) -> None:
    row, type = case
    arrays = operands(row, type)
    with np.errstate(all="ignore"):
        got = row.meaning(*arrays)
    assert got.dtype == row.result_type(type).dtype
    keep = np.flatnonzero(comparable(row, arrays))
    assert len(keep)
    want: Any = [evaluate(row.name, type, *(a[i].item() for a in arrays)) for i in keep]
    expected = np.array(want, got.dtype)
    agree = row.policy_for(type).agree(got[keep], expected)
    wrong = keep[~agree]
    shown = [([a[i].item() for a in arrays], got[i].item(), expected[list(keep).index(i)].item()) for i in wrong[:3]]
    assert not len(wrong), f"{len(wrong)} differ (operands, got, exact): {shown}"


@pytest.mark.slow
def test_results_are_exact() -> None:
    """Approximate instructions are compared with the card's results (`tests/maths/test_special_functions.py`)."""
    check_each([case for case in CASES if not case[0].llvm.startswith(APPROXIMATE)], check_exact, case_name)


def check_shifts(group: Group) -> None:
    type, rows = group
    for row in rows:
        a, count = operands(row, type)
        got = row.meaning(a, count)
        assert got.dtype == type.dtype
        # A shift by at least the number of bits leaves only the sign; Python refuses negative counts.
        far = np.where((count >= 0) & (count < type.bits), count, type.bits)
        want = [evaluate(row.name, type, x.item(), min(by.item(), 64)) for x, by in zip(a, far, strict=True)]
        assert got.tolist() == want


def test_shifts_by_other_types_are_exact() -> None:
    check_each(shifts(), check_shifts, group_id)


@each_row(CASES, case_name)
def test_results_outside_the_domain_are_repeatable(case: Case) -> None:
    row, type = case
    arrays = operands(row, type)
    with np.errstate(all="ignore"):
        first, second = row.meaning(*arrays), row.meaning(*(a.copy() for a in arrays))
    assert first.tobytes() == second.tobytes()


@each_row(CASES, case_name)
def test_rows_are_complete(case: Case) -> None:
    row, type = case
    spelling = row.spelling(type)
    assert all(f"{{{i}}}" in spelling for i in range(row.operands))
    assert row.cost_class(type) in COSTS


def test_policies_accept_different_results() -> None:
    values = np.array([1.0, 0.0, np.nan, 1.0], np.float32)
    other = np.array([np.nextafter(np.float32(1), np.float32(2)), -0.0, np.nan, 1.0], np.float32)
    assert Policy("bits").agree(values, other).tolist() == [False, False, True, True]
    assert Policy("value").agree(values, other).tolist() == [False, True, True, True]
    assert ulp(1).agree(values, other).tolist() == [True, True, True, True]
    assert ulp(0).agree(values, other).tolist() == [False, True, True, True]
