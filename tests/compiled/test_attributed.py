"""Atomic operations that nvcc's line table has at the line of another one."""

from __future__ import annotations

import pytest
import simtbed as st
from simtbed.compiled.line_table_fixes import attributed
from simtbed.language.hints import Global, i32

from tests.compiled.listings import launched, placed


@st.kernel
def tallied(out: Global[i32]) -> None:
    t = st.thread.x
    for k in range(4):
        st.atomic_add(out, t + k, k)
        st.atomic_add(out, t, 1)
        st.atomic_add(out, 2 * t, 7)


FIRST, SECOND, THIRD = ("out[t + k]", "&out[t]", "2 * t")
RED = "REDG.E.ADD.STRONG.GPU [R4], R5"


def lines(*parts: str) -> list[str]:
    """Of a listing with an atomic operation at each of these, which ones they are found to be."""
    one = launched(tallied, out=st.zeros(80, st.i32))
    texts = one.source.text.splitlines()
    found = attributed(placed(one, *((RED, part) for part in parts)), one.statements.without_calls())
    return [next(part for part in (FIRST, SECOND, THIRD) if part in texts[each.line - 1]) for each in found]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ([FIRST, FIRST, FIRST], [FIRST, SECOND, THIRD]),
        ([FIRST, FIRST, THIRD], [FIRST, SECOND, THIRD]),
        ([FIRST, SECOND, SECOND], [FIRST, SECOND, THIRD]),
        ([FIRST] * 6, [FIRST, SECOND, THIRD] * 2),
        ([FIRST, SECOND, THIRD, THIRD], [FIRST, SECOND, THIRD, THIRD]),
        ([FIRST, FIRST, FIRST, SECOND], [FIRST, FIRST, FIRST, SECOND]),
    ],
)
def test_each_is_at_its_own_line(given: list[str], found: list[str]) -> None:
    """Copies of an unrolled loop follow each other; what does not go up stays where it was."""
    assert lines(*given) == found
