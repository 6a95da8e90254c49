"""Features of source and SASS, and the paths found with them."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed.compiled.correspondence import ITERATION, Correspondence
from simtbed.compiled.expanded_cfg import ExpandedCfg
from simtbed.compiled.kernel_launches import KernelLaunches
from simtbed.compiled.path_estimator import PathEstimator
from simtbed.language.hints import Global, f32, f64, i32

from tests.compiled.listings import launched, matched, placed, walked


def anchored(launches: KernelLaunches, *rows: tuple[str, str]) -> Correspondence:
    """Return the correspondence of a listing."""
    matcher = matched(launches, *rows)
    return Correspondence(matcher, ExpandedCfg(matcher.graph))


# ------------------------------------------------------------------ iterations
@st.kernel
def passing(out: Global[i32]) -> None:
    t = st.thread.x
    for k in range(t % 8):
        seen = k * k ^ t
        if seen % 4 == 1:
            continue
        st.atomic_min(out, seen % 8, t)


def test_a_peeled_iteration_without_effects_counts() -> None:
    """An iteration that continues before its effect is visible by its start only."""
    assignment, test, effect = "int seen", "& 3) == 1", "atomicMin"
    result = walked(
        launched(passing, out=st.zeros(8, st.i32)),
        ("@P0 BRA 0x110", "for ("),
        ("@P1 BRA 0x60", "for ("),
        ("IMAD R5, R4, R4, R0", assignment),
        ("@P2 BRA 0x50", test),
        ("REDG.E.MIN.S32 [R8], R0", effect),
        ("@P3 BRA 0x110", "for ("),
        ("MOV R7, R7", "for ("),
        ("IMAD R5, R4, R4, R0", assignment),
        ("@P2 BRA 0xa0", test),
        ("REDG.E.MIN.S32 [R8], R0", effect),
        ("IMAD R5, R4, R4, R0", assignment),
        ("@P2 BRA 0xd0", test),
        ("REDG.E.MIN.S32 [R8], R0", effect),
        ("VIADD R4, R4, 0x2", "for ("),
        ("ISETP.NE.AND P4, PT, R4, R6, PT", "for ("),
        ("@P4 BRA 0x70", "for ("),
        ("NOP", "for ("),
        ("EXIT", ""),
    )
    threads = {block: threads for block, (_, threads) in result.items()}
    assert threads[2] == 16  # lanes with an odd count
    assert threads[6] == threads[8] == 4 * (0 + 0 + 1 + 1 + 2 + 2 + 3 + 3)


@st.kernel
def nesting(x: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    seen = t
    if t % 2 == 0:
        seen = x[t]
        if seen > 5:
            out[t + 32] = seen
        if seen > 7:
            out[t + 64] = seen
    out[t] = seen


def test_a_branch_is_no_predicated_instruction_of_its_arm() -> None:
    launches = launched(nesting, x=np.arange(32, dtype=np.int32), out=st.zeros(96, st.i32))
    rows = [
        ("MOV R1, R0", "int t"),
        ("@P0 BRA 0x70", "& 1) == 0"),
        ("LDG.E R2, [R4]", "x[t]"),
        ("@P1 BRA 0x50", "> 5"),
        ("STG.E [R6+0x80], R2", "+ 32]"),
        ("@P2 BRA 0x70", "> 7"),
        ("STG.E [R6+0x100], R2", "+ 64]"),
        ("STG.E [R6], R1", "out[t] ="),
        ("EXIT", ""),
    ]
    shown = anchored(launches, *rows)
    arm = shown.keys.index(((placed(launches, *rows)[1].line,), "then"))
    assert shown.unconditional[:, arm].sum() == 1 and not shown.predicated[:, arm].any()


# ------------------------------------------------------------------ elided accesses
@st.kernel
def keeping(x: Global[f64], out: Global[f64]) -> None:
    t = st.thread.x
    m = st.local(f64, 9)
    for k in range(8):
        m[k] = x[k]
    for k in range(t % 8):
        m[k + 1] = m[k] * 3.0 + x[k]
    out[t] = m[t % 8]


def test_an_operation_is_stronger_evidence_than_a_local_store() -> None:
    """Elements of a local array may be in registers."""
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
    kinds = sorted(kind for _, kind in shown.keys if kind != ITERATION and kind != "code")
    assert kinds == ["fp64", "global_load", "global_store", "local_store"]


# ------------------------------------------------------------------ arms
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
    """All lanes multiply, lanes of the arm add: speculated products are no excess."""
    launches = launched(of_positive, x=np.arange(8, dtype=np.float32), n=8, out=st.zeros(32, st.f32))
    matcher = matched(
        launches,
        ("LDG.E R2, [R4]", "x[k]"),
        ("FADD R2, R2, -1", "x[k]"),
        ("FMUL R3, R2, R2", "total +="),
        ("FMUL R3, R3, R2", "total +="),
        ("@P1 FADD R1, R1, R3", "total +="),
        ("@P5 BRA 0x0", "for ("),
        ("STG.E [R6], R1", "out["),
        ("EXIT", ""),
    )
    walk = PathEstimator(matcher, launches)
    assert walk.estimate() is not None
    assert max(way.cost for way in walk.paths_by_hash.values()) < 0.1
