"""Compound conditions and the lanes of their tested blocks."""

from __future__ import annotations

import numpy as np
import pytest
import simtbed as st
from simtbed.compiled.conditions import Condition
from simtbed.compiled.executions import executions_of
from simtbed.engines.cuda.sass import Instruction
from simtbed.ir import nodes as ir
from simtbed.language.hints import Global, f32, i32, u8
from simtbed.language.types import BOOL, F32, I32, U32, Scalar
from simtbed.span import Span

from tests.compiled.listings import launched, matched, placed, walked

COND, FIVE = "||", "= 5"


@st.kernel
def nearer(x: Global[i32], y: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    a = x[t]
    b = y[t]
    if a < b or (a == b and t < 8):
        out[t] = 5


def of_nearer() -> dict[str, np.ndarray]:
    """Lanes 0 to 3 are less, lanes 4 to 11 equal."""
    lanes = np.arange(32, dtype=np.int32)
    return {"x": np.where(lanes < 4, 0, 1).astype(np.int32), "y": np.where(lanes < 12, 1, 0).astype(np.int32)}


TESTED_SEPARATELY = [
    ("LDG.E R2, [R4]", "= x["),
    ("LDG.E R3, [R6]", "= y["),
    ("ISETP.GE.AND P0, PT, R2, R3, PT", COND),
    ("@!P0 BRA 0x80", COND),
    ("ISETP.NE.AND P0, PT, R2, R3, PT", COND),
    ("@P0 BRA 0x90", COND),
    ("ISETP.GE.AND P0, PT, R0, 0x8, PT", COND),
    ("@P0 BRA 0x90", COND),
    ("STG.E [R8], R1", FIVE),
    ("EXIT", ""),
]
TESTED_TOGETHER = [
    *TESTED_SEPARATELY[:4],
    ("ISETP.GE.AND P0, PT, R0, 0x8, PT", COND),
    ("ISETP.NE.OR P0, PT, R2, R3, P0", COND),
    ("@P0 BRA 0x80", COND),
    *TESTED_SEPARATELY[8:],
]


def test_each_condition_is_tested_by_undecided_lanes() -> None:
    launches = launched(nearer, out=st.zeros(32, st.i32), **of_nearer())
    result = {block: threads for block, (_, threads) in walked(launches, *TESTED_SEPARATELY).items()}
    assert result == {0: 32, 1: 28, 2: 8, 3: 8, 4: 32}


def test_conditions_that_are_tested_together_decide_together() -> None:
    launches = launched(nearer, out=st.zeros(32, st.i32), **of_nearer())
    together = [(text.replace("@!P0 BRA 0x80", "@!P0 BRA 0x70"), part) for text, part in TESTED_TOGETHER]
    matcher = matched(launches, *together)
    assert {block: tested.codes for block, tested in matcher.conditions.blocks.items()} == {
        1: 0b01010101,
        2: 0b11101010,
    }
    assert matcher.arms.heads[2][1] == "then"
    assert {block: threads for block, (_, threads) in walked(launches, *together).items()} == {
        0: 32,
        1: 28,
        2: 8,
        3: 32,
    }


def test_the_flow_uses_fractions_of_condition_codes() -> None:
    launches = launched(nearer, out=st.zeros(32, st.i32), **of_nearer())
    arms = matched(launches, *TESTED_SEPARATELY).arms.shares
    assert {block: (arm.head, arm.lanes, arm.warps) for block, arm in arms.items()} == {
        1: (0, 28 / 32, 1.0),
        2: (0, 8 / 32, 1.0),
        3: (0, 8 / 32, 1.0),
    }
    assert executions_of(placed(launches, *TESTED_SEPARATELY), launches).threads[4] == 28


@st.kernel
def nearer_twice(x: Global[i32], y: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    for k in st.unroll(range(2)):
        a = x[t + k]
        b = y[t]
        if a < b or (a == b and t < 8):
            out[t + k] = 5


def test_conditions_tested_together_elsewhere_are_complete() -> None:
    """Of two copies of a branch, the first tests conditions one by one."""
    values = of_nearer()
    launches = launched(nearer_twice, x=np.append(values["x"], np.int32(1)), y=values["y"], out=st.zeros(40, st.i32))
    moved = [
        (text.replace("@!P0 BRA 0x80", "@!P0 BRA 0x100").replace("0x80", "0x110"), part)
        for text, part in TESTED_TOGETHER
    ]
    result = walked(launches, *TESTED_SEPARATELY[:-1], *moved)
    assert {block: threads for block, (_, threads) in result.items()} == {
        0: 32,
        1: 28,
        2: 8,
        3: 8,
        4: 32,
        5: 29,
        6: 8,
        7: 32,
    }


@st.kernel
def across(x: Global[i32], y: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    a = x[t]
    b = y[t]
    if (a > 3) != (b > 3) and t < 8:
        out[t] = 5


def test_compared_conditions_are_each_known() -> None:
    """One of two holds in lanes 4 to 11; nvcc tests both with one more instruction."""
    lanes = np.arange(32, dtype=np.int32)
    x, y = np.where(lanes < 4, 5, 0).astype(np.int32), np.where(lanes < 12, 5, 0).astype(np.int32)
    launches = launched(across, x=x, y=y, out=st.zeros(32, st.i32))
    together = [
        *TESTED_SEPARATELY[:2],
        ("ISETP.GT.AND P0, PT, R2, 0x3, PT", "&&"),
        ("ISETP.GT.XOR P0, PT, R3, 0x3, P0", "&&"),
        ("@!P0 BRA 0x80", "&&"),
        ("ISETP.GE.AND P0, PT, R0, 0x8, PT", "&&"),
        ("@P0 BRA 0x80", "&&"),
        *TESTED_SEPARATELY[8:],
    ]
    assert {block: threads for block, (_, threads) in walked(launches, *together).items()} == {0: 32, 1: 8, 2: 4, 3: 32}


# ------------------------------------------------------------------ comparisons
SPAN = Span("", 1, 0, 1, 0)


def condition(name: str, type: Scalar, constant: int | None = None, first: bool = False) -> Condition:
    """Return the condition `a name b`, or with a constant on either side."""
    a: ir.Expr = ir.Reg("a", type, SPAN)
    b: ir.Expr = ir.Reg("b", type, SPAN) if constant is None else ir.Const(constant, type, SPAN)
    return Condition.from_expression(ir.Op(name, (b, a) if first else (a, b), BOOL, SPAN))


@pytest.mark.parametrize(
    ("source_condition", "text", "outcome"),
    [
        (condition("lt", I32), "ISETP.GE.AND P0, PT, R1, R2, PT", False),
        (condition("lt", I32), "ISETP.GT.AND P0, PT, R2, R1, PT", True),
        (condition("lt", I32), "ISETP.LT.U32.AND P0, PT, R1, R2, PT", None),
        (condition("lt", U32), "ISETP.LT.U32.AND P0, PT, R1, R2, PT", True),
        (condition("lt", I32), "ISETP.LT.AND P0, PT, R1, 0x8, PT", None),
        (condition("gt", I32, 40), "ISETP.GT.AND P0, PT, R1, 0x27, PT", True),
        (condition("gt", I32, 40), "ISETP.GE.AND P0, PT, R1, 0x29, PT", True),
        (condition("lt", I32, 40, first=True), "ISETP.LT.AND P0, PT, R1, 0x29, PT", False),
        (condition("eq", I32), "ISETP.NE.AND P0, PT, R1, R2, PT", False),
        (condition("eq", I32), "ISETP.GE.AND P0, PT, R1, R2, PT", None),
        (condition("ne", I32, 0), "ISETP.NE.AND P0, PT, R1, RZ, PT", True),
        (condition("le", F32), "FSETP.GTU.AND P0, PT, R1, R2, PT", False),
        (condition("le", F32), "FSETP.GE.AND P0, PT, R2, R1, PT", True),
        (condition("le", F32), "FSETP.GEU.AND P0, PT, R1, R2, PT", None),
        (condition("le", F32), "DSETP.GTU.AND P0, PT, R2, R4, PT", None),
        (condition("ne", F32), "FSETP.EQ.AND P0, PT, R1, R2, PT", False),
    ],
)
def test_a_comparison_may_be_negated(source_condition: Condition, text: str, outcome: bool | None) -> None:
    launches = Instruction(0, text)
    a, b = text.split(", ")[2:4]
    constant = [not each.startswith("R") or each == "RZ" for each in (a, b)]
    assert source_condition.holds(launches, launches.operation.split(".")[1], constant) is outcome


@st.kernel
def inside(x: Global[f32], out: Global[f32]) -> None:
    value = x[st.thread.x]
    if value > st.f32(2) and value < st.f32(4):
        out[st.thread.x] = st.f32(5)


def test_what_is_tested_first_is_up_to_the_compiler() -> None:
    """Comparisons that match both conditions are resolved by order."""
    launches = launched(inside, x=np.arange(32, dtype=np.float32), out=st.zeros(32, st.f32))
    matcher = matched(
        launches,
        ("LDG.E R2, [R4]", "= x["),
        ("FSETP.GT.AND P1, PT, R2, 2, PT", "&&"),
        ("FSETP.GEU.AND P0, PT, R2, 4, PT", "&&"),
        ("@P0 BRA 0x60", "&&"),
        ("@!P1 BRA 0x60", "&&"),
        ("STG.E [R8], R1", "out["),
        ("EXIT", ""),
    )
    assert {block: tested.codes for block, tested in matcher.conditions.blocks.items()} == {1: 0b1100, 2: 0b1000}


@st.kernel
def lettered(x: Global[u8], out: Global[i32]) -> None:
    t = st.thread.x
    c = x[t]
    if c == 123 or c == 91:
        out[t] = 5


@st.kernel
def between(x: Global[u8], out: Global[i32]) -> None:
    t = st.thread.x
    c = x[t]
    if c >= 48 and c <= 57:
        out[t] = 5


@st.kernel
def outside(x: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    c = x[t]
    if c < 48 or c > 57:
        out[t] = 5


@pytest.mark.parametrize(
    ("kernel", "operations", "test", "threads"),
    [
        (lettered, ["LOP3.LUT R3, R2, 0x20, RZ, 0xfc, !PT", "LOP3.LUT R3, R3, 0xff, RZ, 0xc0, !PT"], "NE.AND P0, PT, R3, 0x7b", 2),
        (lettered, ["LOP3.LUT R3, R2, 0x24, RZ, 0xfc, !PT", "LOP3.LUT R3, R3, 0xff, RZ, 0xc0, !PT"], "NE.AND P0, PT, R3, 0x7f", None),
        (between, ["VIADD R3, R2, 0xffffffd0", "LOP3.LUT R3, R3, 0xff, RZ, 0xc0, !PT"], "GE.U32.AND P0, PT, R3, 0xa", 10),
        (between, ["IADD3 R3, R2, -0x30, RZ", "LOP3.LUT R3, R3, 0xff, RZ, 0xc0, !PT"], "GT.U32.AND P0, PT, R3, 0x9", 10),
        (between, ["VIADD R3, R2, 0xffffffd0", "LOP3.LUT R3, R3, 0xff, RZ, 0xc0, !PT"], "GE.U32.AND P0, PT, R3, 0x9", None),
        (outside, ["VIADD R3, R2, 0xffffffd0"], "LT.U32.AND P0, PT, R3, 0xa", 22),
        (outside, ["VIADD R3, R2, 0xffffffd0"], "LE.U32.AND P0, PT, R3, 0x9", 22),
    ],
)  # fmt: skip
def test_one_comparison_may_implement_two(
    kernel: st.Kernel, operations: list[str], test: str, threads: int | None
) -> None:
    """With a bit set before, or the lower bound subtracted, one comparison has the codes of both conditions."""
    lanes = np.arange(32) + (40 if kernel is not lettered else 91)
    x = lanes.astype(np.uint8 if kernel is not outside else np.int32)
    x = np.append(x[:-1], np.array([123], x.dtype)) if kernel is lettered else x
    launches = launched(kernel, x=x, out=st.zeros(32, st.i32))
    branch = next(part for part in ("||", "&&") if part in launches.source.text)
    listing = [
        ("LDG.E.U8 R2, [R4]", "x["),
        *((text, branch) for text in operations),
        (f"ISETP.{test}, PT", branch),
        (f"@P0 BRA {hex(16 * (len(operations) + 4))}", branch),
        ("STG.E [R8], R1", "= 5"),
        ("EXIT", ""),
    ]
    conditions = matched(launches, *listing).conditions
    if threads is None:
        assert 1 not in conditions.blocks
    else:
        assert conditions.arm(conditions.blocks[1]) == (conditions.blocks[1].place, "then")
        assert {block: found for block, (_, found) in walked(launches, *listing).items()} == {0: 32, 1: threads, 2: 32}
