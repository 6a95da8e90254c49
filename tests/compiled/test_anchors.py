"""What blocks show of the arms of branches."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed.compiled.walk import Walk
from simtbed.language.hints import Global, f32, i32

from tests.compiled.listings import launched, matched


@st.kernel
def of_positive(x: Global[f32], n: i32, out: Global[f32]) -> None:
    t = st.thread.x
    total = st.f32(0)
    for k in range(n):
        value = x[k] - st.f32(1)
        if value > st.f32(t):
            total += value * value * value
    out[t] = total


def test_what_an_arm_computes_may_be_computed_for_all_lanes() -> None:
    """All multiply, and those that take the arm add what they found: what the others computed they do not show in vain."""
    one = launched(of_positive, x=np.arange(8, dtype=np.float32), n=8, out=st.zeros(32, st.f32))
    matcher = matched(
        one,
        ("LDG.E R2, [R4]", "x[k]"),
        ("FADD R2, R2, -1", "x[k]"),
        ("FMUL R3, R2, R2", "total +="),
        ("FMUL R3, R3, R2", "total +="),
        ("@P1 FADD R1, R1, R3", "total +="),
        ("@P5 BRA 0x0", "for ("),
        ("STG.E [R6], R1", "out["),
        ("EXIT", ""),
    )
    walk = Walk(matcher, one)
    assert walk.run() is not None
    assert max(way.cost for way in walk.ways.values()) < 0.1
