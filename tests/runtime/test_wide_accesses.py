"""Accesses of another type than their array's element: the verifier, offsets, and the printed CUDA."""

from dataclasses import replace

import numpy as np
import pytest
from simtbed.engines.cuda.printer import cuda_source
from simtbed.errors import VerifyError
from simtbed.ir import nodes as ir
from simtbed.ir.spec import verify
from simtbed.ir.wide import aligned_index
from simtbed.language.types import BOOL, F32, I32, I64, U8, VECTORS, Array, Scalar
from simtbed.runtime.dynamic_shared import declared_arrays, place_arrays
from simtbed.span import GENERATED
from simtbed.testing.conformance.outcomes import engine_of
from simtbed.testing.conformance.wide_accesses import FAULTY, faulty_request, wide_case


def test_the_printed_text_casts_and_aligns() -> None:
    text = cuda_source(wide_case(F32, VECTORS["float4"]).request.program, (48, 1, 1)).text
    assert "__shared__ __align__(16) float tile[192];" in text and "    __align__(16) float own[13];" in text
    assert "float4 from_x = reinterpret_cast<const float4*>(x)[int(threadIdx.x)];" in text
    assert "reinterpret_cast<float4*>(tile)[int(threadIdx.x)] = from_tile;" in text


def test_a_misaligned_access_is_named_with_its_byte() -> None:
    from simtbed.engines.numpy.engine import NumpyEngine

    faults = NumpyEngine().run(faulty_request(*FAULTY["misaligned"])).faults
    found = {fault.kind: fault.message for fault in faults}
    assert found["alignment"] == "misaligned access: 4 bytes from byte 2 of tile, not a multiple of 4"
    assert found["bounds"] == "shared read out of bounds: tile[64], but tile has 64 elements"


N = ir.Reg("n", I32, GENERATED)


def _op(name: str, *args: ir.Expr, type: Scalar = I32) -> ir.Op:
    return ir.Op(name, args, type, GENERATED)


def _number(value: int, type: Scalar = I32) -> ir.Const:
    return ir.Const(value, type, GENERATED)


@pytest.mark.parametrize(
    ("offset", "aligned"),
    [
        (_op("mul", N, _number(16)), True),
        (_op("shl", N, _number(5)), True),
        (_op("add", _op("mul", _number(32), N), _number(48)), True),
        (_op("cast_i64", _op("sub", _op("mul", N, _number(16)), _number(16)), type=I64), True),
        (_op("add", _op("mul", N, _number(16)), _number(8)), False),
        (_op("mul", N, _number(8)), False),
        (_op("shl", N, _number(3)), False),
        (N, False),
    ],
    ids=range(8),
)
def test_an_offset_with_a_known_form_is_divided_unchecked(offset: ir.Op, aligned: bool) -> None:
    index, condition = aligned_index(offset, 4, 64)
    assert (condition is None) == aligned and index.type == offset.type
    for n in (0, 1, 2, 5, -3):
        value = _value(offset, n)
        assert _value(index, n) == value // 16
        if condition is not None:
            assert bool(_value(condition, n)) == (value % 16 == 0)


def _value(expr: ir.Expr, n: int) -> int:
    match expr:
        case ir.Reg():
            return n
        case ir.Const(value=value):
            return int(value)
        case ir.Op(name=name, args=args):
            a, *rest = (_value(arg, n) for arg in args)
            b = rest[0] if rest else 0
            results = {
                "mul": a * b,
                "add": a + b,
                "sub": a - b,
                "shl": a << max(b, 0),
                "shr": a >> max(b, 0),
                "and": a & b,
                "eq": int(a == b),
            }
            return results.get(name, a)
    raise TypeError(type(expr))


def test_dynamic_shared_arrays_have_the_widest_alignment() -> None:
    body: list[ir.Stmt] = [
        ir.Alloc("first", Array(U8, None, "shared"), (), GENERATED, count=_number(3)),
        ir.Alloc("second", Array(U8, None, "shared"), (), GENERATED),
        ir.Let(ir.Reg("x", F32, GENERATED), ir.Load("second", _number(0), F32, GENERATED), GENERATED),
    ]
    kernel = ir.Function("aligned", (), tuple(body), None, GENERATED)
    placed = place_arrays("aligned", declared_arrays(kernel), 64, {}, {})
    assert (placed["second"].offset, placed["second"].length) == (4, 60)


@pytest.mark.parametrize("wrong", ["narrow", "bool"])
def test_the_verifier_refuses_other_accesses(wrong: str) -> None:
    program = wide_case(F32, VECTORS["float4"]).request.program
    load = ir.Load("x", _number(0), U8 if wrong == "narrow" else BOOL, GENERATED)
    let = ir.Let(ir.Reg("y", load.type, GENERATED), load, GENERATED)
    kernel = replace(program.kernel, body=(*program.kernel.body, let))
    with pytest.raises(VerifyError, match="whole elements, and is in the kernel"):
        verify(ir.Program(kernel, ()))


def test_the_cases_can_fail() -> None:
    case = wide_case(U8, F32)
    request = replace(
        case.request, arguments={**case.request.arguments, "x": np.zeros_like(case.request.arguments["x"])}
    )
    assert engine_of("python").run(request).buffers["out"].tobytes() != case.expected["out"]
