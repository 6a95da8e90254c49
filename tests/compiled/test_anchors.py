"""What both the source and the blocks of a compiled kernel show, by which the one is laid beside the other."""

from __future__ import annotations

import simtbed as st
from simtbed.compiled.anchors import TURN, Anchors
from simtbed.compiled.launched import Launched
from simtbed.compiled.nodes import Nodes
from simtbed.language.hints import Global, f64

from tests.compiled.listings import launched, matched


def anchored(one: Launched, *rows: tuple[str, str]) -> Anchors:
    """The anchors of a listing."""
    matcher = matched(one, *rows)
    return Anchors(matcher, Nodes(matcher.graph))


# ------------------------------------------------------------------ what a compiler may do without
@st.kernel
def keeping(x: Global[f64], out: Global[f64]) -> None:
    t = st.thread.x
    m = st.local(f64, 9)
    for k in range(8):
        m[k] = x[k]
    for k in range(t % 8):
        m[k + 1] = m[k] * 3.0 + x[k]
    out[t] = m[t % 8]


def test_an_operation_tells_more_than_the_local_array_that_it_is_stored_in() -> None:
    """Parts of a local array are kept in registers."""
    shown = anchored(
        launched(keeping, x=st.zeros(8, st.f64), out=st.zeros(32, st.f64)),
        ("LDG.E.64 R2, [R4]", "= x[k];"),
        ("STL.64 [R1], R2", "= x[k];"),
        ("@P0 BRA 0x80", "(t & 7); ++k"),
        ("LDL.64 R2, [R1]", "* 3.0"),
        ("LDG.E.64 R4, [R8]", "* 3.0"),
        ("DFMA R2, R2, R6, R4", "* 3.0"),
        ("STL.64 [R1+0x8], R2", "* 3.0"),
        ("@P1 BRA 0x30", "(t & 7); ++k"),
        ("STG.E.64 [R6], R2", "out["),
        ("EXIT", ""),
    )
    kinds = sorted(kind for _, kind in shown.keys if kind != TURN and kind != "code")
    assert kinds == ["fp64", "global_load", "global_store", "local_store"]
