"""Which instructions stand for which accesses."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed.compiled.counted import Counted
from simtbed.compiled.memory import _accesses, _by_access
from simtbed.language.hints import Global, i32

from tests.compiled.listings import launched, placed


@st.kernel
def reading(x: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    letter = x[t]
    while letter > 3:
        t += 1
        letter = x[t]
    out[t] = letter


def test_an_instruction_with_the_line_of_another_stands_for_what_is_executed_as_often() -> None:
    """Both loads have the line of the test that uses their value."""
    one = launched(reading, x=np.arange(40, 0, -1, dtype=np.int32), out=st.zeros(40, st.i32))
    once, again = (each for each in one.statements.statements.values() if each.site.kind == "global_load")
    rows = placed(one, ("LDG.E R4, [R2]", "while (letter"), ("LDG.E R4, [R6]", "while (letter"))
    counted = [
        Counted(row.instruction, row.place, 0, (), each.warps, each.lanes, each.warps, each.warps)
        for row, each in zip(rows, (once, again), strict=True)
    ]
    found = _by_access(counted, _accesses(one, False))
    assert {key[0]: [each.instruction.text for each in of] for key, of in found.items()} == {
        once.place: ["LDG.E R4, [R2]"],
        again.place: ["LDG.E R4, [R6]"],
    }
