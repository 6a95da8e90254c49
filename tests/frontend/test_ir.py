"""The IR as text, before and after the passes, and the verifier's rules."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import simtbed as st
from simtbed import Const, Global, Shared, f32, float2, i32
from simtbed.errors import VerifyError
from simtbed.frontend.reader import specialise
from simtbed.ir import nodes as ir
from simtbed.ir.print import show
from simtbed.ir.spec import verify
from simtbed.language.types import BOOL, F32, I32, U32, Array
from simtbed.runtime.prepared import prepare
from simtbed.runtime.request import prepare_request
from simtbed.span import GENERATED
from simtbed.testing.conformance import FEATURES


@st.device
def clamped(row: Shared[f32], i: i32, n: i32) -> f32:
    if i < 0 or i >= n:
        return f32(0)
    return row[i]


@st.kernel
def everything(x: Global[f32], out: Global[float2], n: i32, RADIUS: Const) -> None:
    row = st.shared(f32, 64)
    weight = st.registers(f32, RADIUS + 1)
    t = st.thread.x
    row[t] = x[t] if t < n else f32(0)
    st.sync()
    total = f32(0)
    for k in st.unroll(range(RADIUS + 1)):
        weight[k] = 1 / f32(k + 1)
        total += weight[k] * clamped(row, t - k, n)
    while total > 1 and st.any(total > 2):
        if t % 2 == 0:
            break
        total /= 2
    assert total >= 0, "weights are positive"
    out[t] = float2(total, st.fma(total, total, st.shuffle_down(total, 1, width=16)))


def test_text_of_a_program(golden: Callable[[str, str], None]) -> None:
    golden("ir_everything.txt", show(specialise(everything, {"RADIUS": 1}).program))


def test_text_after_the_passes(golden: Callable[[str, str], None]) -> None:
    golden("ir_everything_prepared.txt", show(prepare(specialise(everything, {"RADIUS": 1}).program).program))


@pytest.mark.slow
def test_every_feature_has_a_text() -> None:
    for feature in FEATURES:
        program = feature.launch(prepare_request).program
        assert show(program).count("\n") > 1 and show(prepare(program).program).count("\n") > 1


# ------------------------------------------------------------------ the verifier
X = ir.Param("x", Array(F32, None, "global"), GENERATED)
ZERO, UNIT = ir.Const(0, I32, GENERATED), ir.Const(1.0, F32, GENERATED)
TRUE = ir.Const(True, BOOL, GENERATED)
A = ir.Reg("a", I32, GENERATED)


def let(target: ir.Reg, value: ir.Expr | ir.Effect) -> ir.Let:
    return ir.Let(target, value, GENERATED)


def load(array: str, index: ir.Expr) -> ir.Load:
    return ir.Load(array, index, F32, GENERATED)


def op(name: str, *args: ir.Expr) -> ir.Op:
    return ir.Op(name, args, I32, GENERATED)


BROKEN: dict[str, tuple[ir.Body, str]] = {
    "no such array": ((let(replace(A, type=F32), load("y", ZERO)),), "no array y"),
    "an index of f32": ((ir.Store("x", UNIT, UNIT, GENERATED),), "an index has 32 or 64 bits"),
    "a bool in an array of floats": ((ir.Store("x", ZERO, TRUE, GENERATED),), "whole elements"),
    "read before it is assigned": ((ir.Store("x", A, UNIT, GENERATED),), "after a Let"),
    "two types for one register": ((let(A, ZERO), let(replace(A, type=F32), UNIT)), "a is i32"),
    "assigned another type": ((let(A, UNIT),), "i32 is given f32"),
    "an operation that is not": ((let(A, op("power", ZERO, ZERO)),), "no such operation"),
    "an operation of mixed types": ((let(A, op("add", UNIT, ZERO)),), "expected i32, found f32"),
    "an operation of three": ((let(A, op("add", ZERO, ZERO, ZERO)),), "2 operands"),
    "a condition of i32": ((ir.If(ZERO, (), (), GENERATED),), "expected bool, found i32"),
    "a break outside loops": ((ir.Break(GENERATED),), "only a loop can be left"),
    "a result of a kernel": ((ir.Return(UNIT, GENERATED),), "the result's type"),
    "a loop without progress": ((ir.For(A, ZERO, ZERO, 0, False, (), GENERATED),), "a loop moves"),
    "a pure statement for nothing": ((ir.Let(None, UNIT, GENERATED),), "a pure Let needs a target"),
    "a call of an unknown function": ((ir.Let(None, ir.Call("f", (), None, GENERATED), GENERATED),), "callees precede callers"),
    "a shuffle of five": (
        (let(A, ir.Shuffle("up", ZERO, ZERO, 5, ir.Const(1, U32, GENERATED), I32, GENERATED)),),
        "a shuffle's width",
    ),
    "a signed mask": ((ir.WarpBarrier(ZERO, GENERATED),), "expected u32, found i32"),
    "an atomic on local memory": (
        (
            ir.Alloc("own", Array(I32, (4,), "local"), (), GENERATED),
            ir.Let(None, ir.Atomic("add", "own", ZERO, ZERO, I32, GENERATED), GENERATED),
        ),
        "Atomic accesses global or shared memory",
    ),
    "one name for two arrays": (
        tuple(ir.Alloc("row", Array(kind, (4,), "shared"), (), GENERATED) for kind in (I32, F32)),
        "one name, one array",
    ),
    "a condition known too late": ((ir.While((), A, (let(A, ZERO),), GENERATED),), "a register is read with its type|expected bool"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_the_verifier_refuses(name: str) -> None:
    body, rule = BROKEN[name]
    program = ir.Program(ir.Function("broken", (X,), body, None, GENERATED), ())
    with pytest.raises(VerifyError, match=rule):
        verify(program)


def test_the_verifier_accepts() -> None:
    body = (let(A, ZERO), ir.If(TRUE, (ir.Store("x", A, UNIT, GENERATED),), (), GENERATED))
    verify(ir.Program(ir.Function("fine", (X,), body, None, GENERATED), ()))
