"""Instructions and intrinsics of numbers: their results on each engine have the bits that LLVM computes on this machine."""

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from simtbed.language.types import F32, F64, I8, I16, I32, I64, Scalar
from simtbed.llvmir import reader
from simtbed.llvmir.parameters import ArrayParameter
from simtbed.llvmir.types import FloatType

from tests.llvmir.native import run_natively
from tests.llvmir.programs import ENGINES, run, translated

THREADS = 64
INTEGERS = {I8: "i8", I16: "i16", I32: "i32", I64: "i64"}
FLOATS = {F32: "float", F64: "double"}
BITS = {"i1": "zext i1 {} to i64", "i8": "zext i8 {} to i64", "i16": "zext i16 {} to i64", "i32": "zext i32 {} to i64"}

INTEGER_CASES = (
    *(f"{op} T %a, %b" for op in ("add", "sub", "mul", "and", "or", "xor")),
    *(f"{op} T %a, %count" for op in ("shl", "lshr", "ashr")),
    *(f"{op} T %a, %divisor" for op in ("udiv", "urem", "sdiv", "srem")),
    "xor T %a, -1", "sub T 0, %a",
    *(f"icmp {p} T %a, %b" for p in ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")),
    "select i1 %less, T %a, T %b",
    *(f"call T @llvm.{name}.T(T %a, T %b)" for name in (
        "smax", "smin", "umax", "umin", "uadd.sat", "usub.sat", "sadd.sat", "ssub.sat",
    )),
    "call T @llvm.abs.T(T %a, i1 false)", "call T @llvm.ctpop.T(T %a)", "call T @llvm.ctlz.T(T %a, i1 false)",
    "call T @llvm.cttz.T(T %a, i1 false)", "call T @llvm.bitreverse.T(T %a)",
    "call T @llvm.fshl.T(T %a, T %b, T %b)", "call T @llvm.fshr.T(T %a, T %b, T %b)",
    "call T @llvm.scmp.T.T(T %a, T %b)", "call T @llvm.ucmp.T.T(T %a, T %b)",
    "sitofp T %a to float", "uitofp T %a to float", "sitofp T %a to double", "uitofp T %a to double", "trunc T %a to i1",
)  # fmt: skip
WIDE_CASES = (
    "call T @llvm.bswap.T(T %a)",
    *(f"call {{T, i1}} @llvm.{s}{op}.with.overflow.T(T %a, T %b)" for s in "su" for op in ("add", "sub", "mul")),
)
FLOAT_CASES = (
    *(f"{op} T %a, %b" for op in ("fadd", "fsub", "fmul", "fdiv", "frem")), "fneg T %a",
    *(f"fcmp {p} T %a, %b" for p in (
        "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true", "false",
    )),
    "select i1 %less, T %a, T %b",
    *(f"call T @llvm.{name}.T(T %a)" for name in ("fabs", "sqrt", "floor", "ceil", "trunc", "rint", "nearbyint", "round")),
    *(f"call T @llvm.{name}.T(T %a, T %b)" for name in ("copysign", "maximum", "minimum")),
    "call T @llvm.maxnum.T(T %a0, T %b0)", "call T @llvm.minnum.T(T %a0, T %b0)",
    "call T @llvm.fma.T(T %a, T %b, T %a)",
    *(f"call i1 @llvm.is.fpclass.T(T %a, i32 {mask})" for mask in (3, 0x204, 0x4, 0x200, 0x60, 0x1F8, 0x3FC)),
    "fptosi T %small to i32", "fptoui T %size to i32", "fptosi T %small to i64",
)  # fmt: skip


def _result_type(case: str, type: str) -> str:
    if case.startswith(("icmp", "fcmp", "call i1")):
        return "i1"
    return case.rpartition(" to ")[2] if " to " in case else type


def _body(cases: tuple[str, ...], type: str) -> Iterator[str]:
    """The lines that compute each case and store its bits; NaNs are stored as one NaN."""
    for number, case in enumerate(cases):
        result, name = _result_type(case, type), f"%r{number}"
        yield f"{name} = {case.replace('.T', f'.{_suffix(type)}').replace('T ', f'{type} ').replace('{T,', f'{{{type},')}"
        if case.startswith("call {"):
            yield f"{name}.0 = extractvalue {{{type}, i1}} {name}, 0"
            yield f"{name}.1 = extractvalue {{{type}, i1}} {name}, 1"
            yield f"{name}.flag = zext i1 {name}.1 to {type}"
            yield f"{name}.sum = xor {type} {name}.0, {name}.flag"
            name = f"{name}.sum"
        if result in ("float", "double"):
            yield f"{name}.nan = fcmp uno {result} {name}, {name}"
            yield f"{name}.one = select i1 {name}.nan, {result} 0x7FF8000000000000, {result} {name}"
            bits = "i32" if result == "float" else "i64"
            yield f"{name}.bits = bitcast {result} {name}.one to {bits}"
            name, result = f"{name}.bits", bits
        yield f"{name}.wide = {BITS.get(result, 'add i64 {}, 0').format(name)}"
        yield f"{name}.at = add i64 %thread, {number * THREADS}"
        yield f"{name}.to = getelementptr i64, ptr %out, i64 {name}.at"
        yield f"store i64 {name}.wide, ptr {name}.to"


def _suffix(type: str) -> str:
    return {"float": "f32", "double": "f64"}.get(type, type)


def _module(cases: tuple[str, ...], type: str, prepared: list[str]) -> str:
    lines = [
        "%index = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()", "%thread = zext i32 %index to i64",
        f"%pa = getelementptr {type}, ptr %x, i64 %thread", f"%pb = getelementptr {type}, ptr %y, i64 %thread",
        f"%a = load {type}, ptr %pa", f"%b = load {type}, ptr %pb", *prepared, *_body(cases, type), "ret void",
    ]  # fmt: skip
    declared = {}
    for line in lines:
        if "call " in line and "sreg" not in line:
            head, _, arguments = line.partition("call ")[2].partition("(")
            types = ", ".join(argument.split(" ")[0] for argument in arguments.rstrip(")").split(", "))
            declared[head] = f"declare {head}({types})"
    body = "\n".join(f"  {line}" for line in lines)
    thread = "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()"
    return "\n".join([*declared.values(), thread, f"define void @kernel(ptr %x, ptr %y, ptr %out) {{\n{body}\n}}\n"])


def _operands(type: Scalar) -> list[Any]:
    random = np.random.default_rng(1)
    edges: list[float]
    if type.is_integer:
        low, high = type.range
        edges = [0, 1, -1, 2, low, high, low + 1, 3, 7, 100]
        both = [random.integers(low, high, THREADS, type.dtype, endpoint=True) for _ in range(2)]
    else:
        edges = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.5, -0.5, 1e30]
        both = [(random.normal(0, 100, THREADS)).astype(type.dtype) for _ in range(2)]
    count = len(edges) // 2
    both[0][: count * count] = np.repeat(edges[:count], count)
    both[1][: count * count] = np.tile(edges[:count], count)
    both[0][count * count : 2 * count * count] = np.repeat(edges[count:], count)
    both[1][count * count : 2 * count * count] = np.tile(edges[count:], count)
    return both


def _check(cases: tuple[str, ...], type: Scalar, text: str) -> None:
    x, y = _operands(type)
    expected = np.zeros(len(cases) * THREADS, np.int64)
    run_natively(text, [x, y, expected], THREADS)
    parameters = [
        ArrayParameter("x", type, type.size),
        ArrayParameter("y", type, type.size),
        ArrayParameter("out", I64, 8),
    ]
    translation = translated(text, parameters)
    for engine in ENGINES:
        out = run(translation, {"x": x, "y": y, "out": np.zeros_like(expected)}, engine, block=THREADS)["out"]
        wrong = np.flatnonzero(out != expected)
        shown = [
            f"{cases[i // THREADS]}: a={x[i % THREADS]}, b={y[i % THREADS]}: {out[i]:#x} is not {expected[i]:#x}"
            for i in wrong[:9]
        ]
        assert not shown, (engine, str(type), shown)


@pytest.mark.slow
@pytest.mark.parametrize("type", INTEGERS, ids=str)
def test_integer_instructions(type: Scalar) -> None:
    name = INTEGERS[type]
    prepared = [
        f"%count = and {name} %b, {type.bits - 1}", f"%odd = or {name} %b, 1", f"%positive = lshr {name} %odd, 1",
        f"%divisor = or {name} %positive, 1", f"%less = icmp slt {name} %a, %b",
    ]  # fmt: skip
    cases = INTEGER_CASES + (WIDE_CASES if type.size >= 4 else ())
    for bits in (type.bits - 3, *([33] if type is I32 else [])):
        convert = "trunc" if bits < type.bits else "zext"
        prepared += [f"%{own}{bits} = {convert} {name} %{own} to i{bits}" for own in "ab"]
        steps = (
            ("s", "add", "a", "b"),
            ("p", "mul", "s", "b"),
            ("d", "sub", "p", "a"),
            ("h", "lshr", "d", 1),
            ("l", "shl", "h", 2),
        )
        for to, op, first, second in steps:
            operand = second if isinstance(second, int) else f"%{second}{bits}"
            prepared.append(f"%{to}{bits} = {op} i{bits} %{first}{bits}, {operand}")
        cases += (f"{'zext' if bits < type.bits else 'trunc'} i{bits} %l{bits} to {name}",)
        cases += tuple(f"icmp {word} i{bits} %a{bits}, %b{bits}" for word in ("eq", "slt", "uge"))
        cases += (f"sext i{bits} %l{bits} to {name}",) if bits < type.bits else ()
    _check(cases, type, _module(cases, name, prepared))


@pytest.mark.parametrize("type", FLOATS, ids=str)
def test_float_instructions(type: Scalar) -> None:
    name, suffix = FLOATS[type], _suffix(FLOATS[type])
    prepared = [
        f"%less = fcmp olt {name} %a, %b", f"%low = call {name} @llvm.maxnum.{suffix}({name} %a, {name} -1.0e+03)",
        f"%small = call {name} @llvm.minnum.{suffix}({name} %low, {name} 1.0e+03)",
        f"%a0 = fadd {name} %a, 0.0", f"%b0 = fadd {name} %b, 0.0",  # the order of -0 and +0 is not specified
        f"%size = call {name} @llvm.fabs.{suffix}({name} %small)",
    ]  # fmt: skip
    _check(FLOAT_CASES, type, _module(FLOAT_CASES, name, prepared))


def test_functions_of_vectors() -> None:
    """Each lane has its own result, and operands that are no vectors are those of each lane."""
    both = ("smax", "smin", "umax", "umin", "uadd.sat", "usub.sat", "sadd.sat", "ssub.sat", "scmp.v2i32", "ucmp.v2i32")
    cases = [(name, "V %v, V %w") for name in both] + [
        ("fshl", "V %v, V %w, V %w"),
        ("ctpop", "V %v"),
        ("bswap", "V %v"),
    ]
    cases += [(name, "V %v, i1 false") for name in ("abs", "ctlz", "cttz")]
    prepared = ["%v0 = insertelement V undef, i32 %a, i32 0", "%v = insertelement V %v0, i32 %b, i32 1"]
    prepared.append("%w = shufflevector V %v, V undef, V <i32 1, i32 0>")
    prepared += [f"%v{n} = call V @llvm.{name}.v2i32({operands})" for n, (name, operands) in enumerate(cases, 1)]
    masks = (
        "%m = icmp slt V %v, %w",
        "%n = bitcast <2 x i1> %m to i2",
        "%o = xor i2 %n, 1",
        "%p = bitcast i2 %o to <2 x i1>",
    )
    prepared += [*masks, "%q = select <2 x i1> %p, V %v, V %w", "%all = icmp eq i2 %n, -1"]
    words = tuple(f"bitcast V %v{n} to i64" for n in range(1, len(cases) + 1))
    words += "bitcast V %q to i64", "zext i2 %n to i64", "zext i1 %all to i64"
    text = _module(words, "i32", [])
    first = text.index("%r0 = ")
    text = text[:first] + "\n  ".join([*prepared, text[first:]])
    declared = [f"declare V @llvm.{name}.v2i32({re.sub(' %.| false', '', operands)})" for name, operands in cases]
    _check(words, I32, "\n".join([*declared, text]).replace("V", "<2 x i32>"))


def test_literals_with_the_bits_of_their_type() -> None:
    literals = (("half", "f0x3E00"), ("bfloat", "f0x3FC0"), ("float", "f0x3FC00000"), ("double", "f0x3FF8000000000000"))
    assert [reader.number(token, FloatType(name)).value for name, token in literals] == [1.5] * 4
    specials = [reader.number(token, FloatType("bfloat")).value for token in ("+inf", "-inf", "+qnan", "-qnan")]
    assert [math.copysign(1, float(value)) for value in specials] == [1, -1, 1, -1]
    assert [math.isnan(value) for value in specials] == [False, False, True, True]
