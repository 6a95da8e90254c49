"""Atomics with wrong lines in nvcc's line table."""

import pytest
import simtbed as st
from simtbed.compiled.line_table_fixes import with_fixed_lines
from simtbed.language.hints import Global, i32

from tests.compiled.listings import launched, placed


@st.kernel
def tallied(out: Global[i32]) -> None:
    t = st.thread.x
    for k in range(4):
        st.atomic_add(out, t + k, k)
        st.atomic_add(out, t, 1)
        st.atomic_add(out, 2 * t, 7)


PILOT_WARPS, SECOND, THIRD = ("out[t + k]", "&out[t]", "2 * t")
RED = "REDG.E.ADD.STRONG.GPU [R4], R5"


def lines(*substrings: str) -> list[str]:
    """Return the corrected lines of a listing with an atomic at each line."""
    launches = launched(tallied, out=st.zeros(80, st.i32))
    texts = launches.source.text.splitlines()
    result = with_fixed_lines(
        placed(launches, *((RED, part) for part in substrings)), [(place, kind) for _, place, kind in launches.executed]
    )
    return [next(part for part in (PILOT_WARPS, SECOND, THIRD) if part in texts[each.line - 1]) for each in result]


@pytest.mark.parametrize(
    ("attributed", "result"),
    [
        ([PILOT_WARPS, PILOT_WARPS, PILOT_WARPS], [PILOT_WARPS, SECOND, THIRD]),
        ([PILOT_WARPS, PILOT_WARPS, THIRD], [PILOT_WARPS, SECOND, THIRD]),
        ([PILOT_WARPS, SECOND, SECOND], [PILOT_WARPS, SECOND, THIRD]),
        ([PILOT_WARPS] * 6, [PILOT_WARPS, SECOND, THIRD] * 2),
        ([PILOT_WARPS, SECOND, THIRD, THIRD], [PILOT_WARPS, SECOND, THIRD, THIRD]),
        ([PILOT_WARPS, PILOT_WARPS, PILOT_WARPS, SECOND], [PILOT_WARPS, PILOT_WARPS, PILOT_WARPS, SECOND]),
    ],
)
def test_each_is_at_its_own_line(attributed: list[str], result: list[str]) -> None:
    """Copies of an unrolled loop are in order; incomplete groups are unchanged."""
    assert lines(*attributed) == result
