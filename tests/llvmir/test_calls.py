"""Calls of libdevice, of functions of halves, of warp intrinsics and of inline assembly."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from simtbed.language.types import F16, F32, F64, I16, I32, I64
from simtbed.llvmir.parameters import ArrayParameter, ScalarParameter

from tests.llvmir.programs import ENGINES, run, translated
from tests.table_checks import each_row
from tests.texts import texts

TEXTS = texts("llvmir/calls.ll")

HEAD = TEXTS["calls head"]
LANES = np.arange(32)
Row = tuple[str, str, Callable[..., Any]]
"""A call of %a and %b, with R for its result's type; its result's type; its meaning for arrays."""

DOUBLE: tuple[Row, ...] = (
    *((f"@__nv_{name}(double %a)", "double", getattr(np, own)) for name, own in (
        ("sin", "sin"), ("cos", "cos"), ("exp", "exp"), ("exp2", "exp2"), ("expm1", "expm1"), ("atan", "arctan"), ("floor", "floor"),
        ("ceil", "ceil"), ("trunc", "trunc"), ("rint", "rint"), ("nearbyint", "rint"), ("fabs", "abs"), ("tanh", "tanh"),
        ("asinh", "arcsinh"), ("cbrt", "cbrt"), ("sinh", "sinh"),
    )),
    ("@__nv_pow(double %b, double %a)", "double", lambda a, b: np.power(b, a)),
    ("@__nv_powi(double %a, i32 3)", "double", lambda a, b: a**3),
    ("@__nv_hypot(double %a, double %b)", "double", lambda a, b: np.hypot(a, b)),
    ("@__nv_atan2(double %a, double %b)", "double", lambda a, b: np.arctan2(a, b)),
    ("@__nv_fmod(double %a, double %b)", "double", lambda a, b: np.fmod(a, b)),
    ("@__nv_fmax(double %a, double %b)", "double", lambda a, b: np.fmax(a, b)),
    ("@__nv_fdim(double %a, double %b)", "double", lambda a, b: np.maximum(a - b, 0)),
    ("@__nv_nextafter(double %a, double %b)", "double", lambda a, b: np.nextafter(a, b)),
    ("@__nv_nextafter(double %a, double %a)", "double", lambda a, b: a),
    ("@__nv_nextafter(double 0.0, double %a)", "double", lambda a, b: np.nextafter(0, a)),
    ('asm "ld.global.ca.b64 $0, [$1];", "=d,l"(ptr %px)', "double", lambda a, b: a),
    ("@__nv_ldexp(double %a, i32 5)", "double", lambda a, b: a * 32),
    ("@llvm.ldexp.f64.i32(double %a, i32 5)", "double", lambda a, b: a * 32),
    ("@__nv_dadd_rn(double %a, double %b)", "double", lambda a, b: a + b),
    ("@__nv_drcp_rn(double %a)", "double", lambda a, b: 1 / a),
    ("@__nv_erf(double %a)", "double", lambda a, b: np.vectorize(math.erf)(a)),
    ("@__nv_isnand(double %a)", "i32", lambda a, b: np.isnan(a)),
    ("@__nv_signbitd(double %a)", "i32", lambda a, b: np.signbit(a)),
    ("@__nv_llrint(double %a)", "i64", lambda a, b: np.rint(a)),
    ("@__nv_double2int_rd(double %a)", "i32", lambda a, b: np.floor(a)),
    ("@__nv_double2float_rn(double %a)", "float", lambda a, b: a.astype(np.float32)),
    ("@__nv_double2hiint(double %a)", "i32", lambda a, b: a.view(np.int64) >> 32),
    ("@__nv_double_as_longlong(double %a)", "i64", lambda a, b: a.view(np.int64)),
)  # fmt: skip
INTEGER: tuple[Row, ...] = (
    ("@__nv_abs(i32 %a)", "i32", lambda a, b: abs(a)),
    ("@__nv_min(i32 %a, i32 %b)", "i32", np.minimum),
    ("@__nv_umax(i32 %a, i32 %b)", "i32", lambda a, b: np.maximum(a.view(np.uint32), b.view(np.uint32)).view(np.int32)),
    ("@__nv_mulhi(i32 %a, i32 %b)", "i32", lambda a, b: a.astype(np.int64) * b >> 32),
    ("@__nv_mul24(i32 %a, i32 %b)", "i32", lambda a, b: ((a << 8 >> 8).astype(np.int64) * (b << 8 >> 8)).astype(np.int32)),
    ("@__nv_popc(i32 %a)", "i32", lambda a, b: np.bitwise_count(a.view(np.uint32))),
    ("@__nv_sad(i32 %a, i32 %b, i32 7)", "i32", lambda a, b: (abs(a.astype(np.int64) - b) + 7).astype(np.int32)),
    ("@__nv_hadd(i32 %a, i32 %b)", "i32", lambda a, b: a.astype(np.int64) + b >> 1),
    ("@__nv_urhadd(i32 %a, i32 %b)", "i32",
     lambda a, b: (a.view(np.uint32).astype(np.int64) + b.view(np.uint32) + 1 >> 1).astype(np.int32)),
    ("@__nv_byte_perm(i32 %a, i32 %b, i32 12816)", "i32", lambda a, b: a),
    ("@__nv_int2double_rn(i32 %a)", "double", lambda a, b: a.astype(np.float64)),
    ("@__nv_uint2float_rn(i32 %a)", "float", lambda a, b: a.view(np.uint32).astype(np.float32)),
    ("@__nv_int_as_float(i32 %index)", "float", lambda a, b: LANES.astype(np.int32).view(np.float32)),
)  # fmt: skip
WARP: tuple[Row, ...] = (
    ("@llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %a, i32 5, i32 31)", "i32", lambda a, b: np.full(32, a[5])),
    ("@llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %a, i32 2, i32 0)", "i32", lambda a, b: a[np.where(LANES < 2, LANES, LANES - 2)]),
    ("@llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %a, i32 1, i32 31)", "i32", lambda a, b: a[LANES ^ 1]),
    ("@llvm.nvvm.shfl.sync.down.i32(i32 -1, i32 %a, i32 1, i32 6175)", "i32", lambda a, b: a[np.where(LANES % 8 == 7, LANES, LANES + 1)]),
    ("@llvm.nvvm.match.any.sync.i32(i32 -1, i32 %small)", "i32",
     lambda a, b: np.array([sum(1 << int(k) for k in np.flatnonzero(a & 1 == v)) for v in a & 1]).astype(np.uint32).view(np.int32)),
    ("@llvm.nvvm.activemask()", "i32", lambda a, b: np.full(32, -1)),
    ('asm "mov.u32 $0, %lanemask_lt;", "=r"()', "i32", lambda a, b: (1 << LANES) - 1),
    ('asm "activemask.b32 $0;", "=r"()', "i32", lambda a, b: np.full(32, -1)),
    ("@llvm.nvvm.read.ptx.sreg.laneid()", "i32", lambda a, b: LANES),
    ("@llvm.nvvm.read.ptx.sreg.ntid.x()", "i32", lambda a, b: np.full(32, 32)),
)  # fmt: skip
WIDTHS = {"double": F64, "float": F32, "i32": I32, "i64": I64}


def _check(rows: tuple[Row, ...], type: str, x: Any, y: Any, more: str = "") -> None:
    """Run all calls as one kernel, whose output has 8 bytes for each result of each lane."""
    lines = [HEAD.replace("T,", f"{type},"), more]
    for number, (call, result, _) in enumerate(rows):
        lines += [
            f"  %r{number} = call {result} {call}", f"  %at{number} = add i32 %index, {32 * number}",
            f"  %to{number} = getelementptr [8 x i8], ptr %out, i32 %at{number}", f"  store {result} %r{number}, ptr %to{number}",
        ]  # fmt: skip
    text = "\n".join([*lines, "  ret void\n}\n"]).replace("%index", "%t")
    element = {"double": F64, "i32": I32}[type]
    parameters = [ArrayParameter(name, element, element.size) for name in "xy"] + [ArrayParameter("out", None, 8)]
    translation = translated(text, parameters)
    for engine in ENGINES:
        memory = np.zeros(32 * len(rows), np.int64)
        arguments: dict[str, Any] = {"x": x, "y": y}
        outputs = [name for name in translation.arrays if name not in "xy"]
        for name in outputs:
            arguments[name] = memory.view(translation.arrays[name].element.dtype).copy()
        outcome = run(translation, arguments, engine)
        for number, (call, kind, meaning) in enumerate(rows):
            name = next(n for n in outputs if translation.arrays[n].element.dtype.itemsize == WIDTHS[kind].size)
            dtype = WIDTHS[kind].dtype
            own = outcome[name].view(dtype)[:: 8 // dtype.itemsize][32 * number : 32 * number + 32]
            expected = meaning(x, y) if meaning.__code__.co_argcount == 2 else meaning(x)
            np.testing.assert_allclose(
                own, np.asarray(expected).astype(dtype), 4e-15 if kind == "double" else 1e-7, err_msg=f"{engine} {call}"
            )


def _two(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    if isinstance(function, np.ufunc):
        return (lambda a, b: function(a)) if function.nin == 1 else lambda a, b: function(a, b)
    return function


def test_functions_of_doubles() -> None:
    random = np.random.default_rng(3)
    rows = tuple((call, kind, _two(meaning)) for call, kind, meaning in DOUBLE)
    _check(rows, "double", random.normal(0, 2, 32), np.abs(random.normal(0, 2, 32)) + 0.1)


def test_functions_of_integers() -> None:
    random = np.random.default_rng(4)
    x, y = random.integers(-(2**31), 2**31 - 1, (2, 32)).astype(np.int32)
    _check(tuple((call, kind, _two(meaning)) for call, kind, meaning in INTEGER), "i32", x, y)


REDUCTIONS: dict[str, dict[str, Callable[..., Any]]] = {
    "i32": {
        "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b, "smax": lambda a, b: np.maximum(a, b), "smin": lambda a, b: np.minimum(a, b),
        "umax": lambda a, b: np.maximum(a.view(np.uint32), b.view(np.uint32)).view(np.int32),
        "umin": lambda a, b: np.minimum(a.view(np.uint32), b.view(np.uint32)).view(np.int32),
    },
    "double": {
        "fmax": lambda a, b: np.fmax(a, b), "fmin": lambda a, b: np.fmin(a, b),
        "fadd": lambda a, b: (1e16 + a) + b, "fmul": lambda a, b: 1e16 * a * b,
    },
}  # fmt: skip
"""Reductions of the vector of a and b, by the type of the elements. Those with a start value begin with 10^16."""


@pytest.mark.parametrize("type", REDUCTIONS)
def test_reductions_of_vectors(type: str) -> None:
    random = np.random.default_rng(6)
    x, y = (
        random.integers(-(2**31), 2**31 - 1, (2, 32)).astype(np.int32)
        if type == "i32"
        else random.normal(0, 2, (2, 32))
    )
    more = f"  %v0 = insertelement <2 x {type}> poison, {type} %a, i32 0\n  %v = insertelement <2 x {type}> %v0, {type} %b, i32 1\n"
    suffix = f"v2{'i32' if type == 'i32' else 'f64'}"
    rows = []
    for name, meaning in REDUCTIONS[type].items():
        start = f"{type} 1.0e16, " if name in ("fadd", "fmul") else ""
        rows.append((f"@llvm.vector.reduce.{name}.{suffix}({start}<2 x {type}> %v)", type, meaning))
    _check(tuple(rows), type, x, y, more)


def test_warp_intrinsics() -> None:
    x = np.random.default_rng(5).integers(0, 100, 32).astype(np.int32)
    _check(WARP, "i32", x, x, "  %small = and i32 %a, 1")


def test_results_through_pointers() -> None:
    text = HEAD.replace("T,", "double,") + TEXTS["results through pointers"]
    x = np.random.default_rng(6).normal(0, 5, 32)
    fraction, exponent = np.frexp(x)
    translation = translated(text, [ArrayParameter(name, F64, 8) for name in ("x", "y", "out")])
    for engine in ENGINES:
        result = run(translation, {"x": x, "y": x, "out": np.zeros(32)}, engine)
        np.testing.assert_allclose(result["out"], 2 * (fraction + exponent) + np.sin(x) * np.cos(x), 1e-14)


HALVES = {
    "_ZL6__hadd6__halfS__nbst": np.add,
    "_ZL6__hmul6__halfS__nbst": np.multiply,
    "_ZmiRK6__halfS1__nbst": np.subtract,
    "_ZL6__hmax6__halfS__nbst": np.maximum,
}


@pytest.mark.parametrize("name", HALVES)
def test_functions_of_halves(name: str) -> None:
    text = HEAD.replace("T,", "i16,") + TEXTS["functions of halves"].replace("NAME", name)
    a, b = np.random.default_rng(7).normal(0, 3, (2, 32)).astype(np.float16)
    expected = np.where(a < b, -HALVES[name](a, b), HALVES[name](a, b))
    translation = translated(
        text, [ArrayParameter("x", F16, 2), ArrayParameter("y", F16, 2), ArrayParameter("out", I16, 2)]
    )
    for engine in ENGINES:
        result = run(translation, {"x": a, "y": b, "out": np.zeros(32, np.int16)}, engine)
        assert np.array_equal(result["out"].view(np.float16), expected)


def test_half_parameter_passed_as_bits() -> None:
    text = TEXTS["half parameter passed as bits"]
    translation = translated(text, [ScalarParameter("h", F16), ArrayParameter("out", F16, 2)])
    for engine in ENGINES:
        out = run(translation, {"h": np.float16(-1.5), "out": np.zeros(1, np.float16)}, engine, block=1)["out"]
        assert out.tolist() == [1.5]


@pytest.mark.parametrize(("rounding", "toward"), [("rz", 0.0), ("rd", -np.inf), ("ru", np.inf), ("rn", None)])
def test_rounding_to_halves(rounding: str, toward: float | None) -> None:
    """Doubles and floats as halves, and back as integers of 16 bits, which saturate."""
    text = HEAD.replace("T,", "float,") + TEXTS["rounding to halves"].replace("ROUNDING", rounding)
    x = np.random.default_rng(8).normal(0, 300, 32).astype(np.float32)
    x[:8] = [0.0, -0.0, 65504.0, 1e6, -1e6, 1e-9, -1e-9, 2049.0]
    with np.errstate(over="ignore"):
        near = x.astype(np.float16)
    expected = near
    if toward is not None:
        direction = np.where(x > 0, -np.inf, np.inf) if toward == 0 else np.full(32, toward)
        wrong = np.where(direction > 0, near.astype(np.float64) < x, near.astype(np.float64) > x)
        with np.errstate(all="ignore"):
            expected = np.where(wrong, np.nextafter(near, direction.astype(np.float16)), near)
    whole = {"rz": np.trunc, "rd": np.floor, "ru": np.ceil, "rn": np.rint}[rounding](expected.astype(np.float32))
    short = np.clip(whole, -32768, 32767).astype(np.int16)
    translation = translated(
        text, [ArrayParameter("x", F32, 4), ArrayParameter("y", F32, 4), ArrayParameter("out", I32, 4)]
    )
    for engine in ENGINES:
        out = run(translation, {"x": x, "y": x, "out": np.zeros(32, np.int32)}, engine)["out"]
        own = (out & 0xFFFF).astype(np.uint16).view(np.float16)
        assert np.array_equal(own.view(np.uint16), expected.view(np.uint16)), (engine, x, own, expected)
        assert np.array_equal((out >> 16).astype(np.int16), short), engine


@pytest.mark.parametrize("rounding", ["rz", "rd", "ru"])
@pytest.mark.parametrize(("word", "letter", "type"), [("ll", "x", np.int64), ("ull", "y", np.uint64)])
def test_rounding_of_wide_integers(rounding: str, word: str, letter: str, type: Any) -> None:
    """Integers of 64 bits that f64 does not have, as bfloat16: exact products of Python integers are the reference."""
    name = f"__{word}2bfloat16_{rounding}"
    text = HEAD.replace("T,", "i64,") + TEXTS["rounding of wide integers"].replace("NAME", f"{len(name)}{name}{letter}")
    bases = [(1 << k) + step for k in (8, 24, 52, 53, 56, 61, 62) for step in (-1, 0, 1, 2047)]
    ends = [-base for base in bases[-4:]] if type is np.int64 else [2**64 - 1, 2**63 + 1, 2**63, 3]
    x = np.array([*bases, *ends], type)
    expected = [_bfloat16_bits(int(value), rounding) for value in x]
    translation = translated(
        text, [ArrayParameter("x", I64, 8), ArrayParameter("y", I64, 8), ArrayParameter("out", I16, 2)]
    )
    for engine in ENGINES:
        given = x.view(np.int64)
        out = run(translation, {"x": given, "y": given, "out": np.zeros(32, np.int16)}, engine)["out"]
        assert out.view(np.uint16).tolist() == expected, engine


def _bfloat16_bits(value: int, rounding: str) -> int:
    """Return the bits of an integer rounded to 8 significant bits. rounding: as in the name of the function."""
    size = max(0, abs(value).bit_length() - 8)
    unit = 1 << size
    quotient, rest = divmod(abs(value), unit)
    away = rounding == ("rd" if value < 0 else "ru")
    magnitude = (quotient + (1 if rest and away else 0)) * unit
    bits = int(np.float32(magnitude).view(np.uint32)) >> 16
    return bits | (0x8000 if value < 0 else 0)


@each_row(ENGINES)
def test_intrinsics_of_clusters(engine: Any) -> None:
    translation = translated(TEXTS["clusters"], [ArrayParameter("out", I32, 4)])
    out = run(translation, {"out": np.zeros(192, np.int32)}, engine, grid=6, cluster=3, check="all")["out"]
    other = [(b % 3 + 1) % 3 for b in range(6)]
    names = [b // 3 * 2 + b % 3 * 3 for b in range(6)]
    assert out.tolist() == [
        2 * (t + 100 * other[b]) + 1000 * other[b] + 10000 * names[b] for b in range(6) for t in range(32)
    ]
