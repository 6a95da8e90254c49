"""f16 and bf16 against rational arithmetic: every conversion to f32, ties and their neighbours, random operands."""

import ctypes
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from simtbed.ir import halves
from simtbed.ir.ops import BITS, TABLE
from simtbed.language.types import F32, F64, HALVES, I64, U64, Scalar
from simtbed.llvm.compiler import LOOPS, NATIVE, compiled
from simtbed.native.text import module
from simtbed.testing.conformance.operations import groups, request

from tests.native.test_operations import _for_one_thread
from tests.ops.exact import evaluate, rounded

Values = npt.NDArray[Any]
Meaning = Callable[..., Values]
COUNT = 500


def _table(name: str, type: Scalar) -> Meaning:
    def meaning(*operands: Values) -> Values:
        with np.errstate(all="ignore"):
            return TABLE[name].meaning(*operands)

    return meaning


def _compiled(name: str, type: Scalar) -> Meaning:
    """Return the row compiled with LLVM, for one thread."""
    row = TABLE[name]
    group = next(g for g in groups() if g[0] is type and row in g[1])

    def meaning(*operands: Values) -> Values:
        launch, inputs = request((group[0], (row,)), operands)
        text = module(_for_one_thread(launch.program.kernel, len(inputs[0])))
        _, library = compiled(None, lambda: (b"", text), NATIVE, bytes, passes=LOOPS)
        arrays = [np.ascontiguousarray(launch.arguments[p.name]) for p in launch.program.kernel.params]
        ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(library.address)(*(a.ctypes.data for a in arrays))
        return arrays[-1]

    return meaning


IMPLEMENTATIONS = pytest.mark.parametrize("implementation", [_table, _compiled], ids=["table", "compiled"])
TYPES = pytest.mark.parametrize("type", HALVES, ids=str)


def _all(type: Scalar) -> Values:
    return np.arange(1 << 16, dtype=np.uint16).view(type.dtype)


def _finite(type: Scalar, seed: int, count: int = COUNT) -> Values:
    """Return random bits without infinities and NaN; half of them in the range of rounding sums."""
    with np.errstate(invalid="ignore"):
        finite = _all(type)[np.isfinite(_all(type).astype(np.float64))]
    values = np.random.default_rng(seed).permutation(finite)[:count]
    near = np.random.default_rng(seed).standard_normal(count // 2).astype(type.dtype)
    return np.concatenate([values[: count - len(near)], near])


def _same(result: Values, exact: list[float], type: Scalar) -> None:
    expected = np.array(exact, type.dtype)
    wrong = np.flatnonzero(~BITS.agree(result, expected))
    assert not len(wrong), [(int(n), float(result[n]), exact[n]) for n in wrong[:3]]


@IMPLEMENTATIONS
@TYPES
def test_every_half_widens_exactly_and_narrows_back(implementation: Any, type: Scalar) -> None:
    inputs = _all(type)
    wide = implementation("cast_f32", type)(inputs)
    bits = inputs.view(np.uint16).astype(np.int64)
    fraction, least = (10, -24) if type.name == "f16" else (7, -133)
    exponent, rest = bits >> fraction & ((1 << (15 - fraction)) - 1), bits & ((1 << fraction) - 1)
    size = np.ldexp(
        (rest + np.where(exponent > 0, 1 << fraction, 0)).astype(np.float64), np.maximum(exponent, 1) - 1 + least
    )
    finite = exponent < (1 << (15 - fraction)) - 1
    size = np.where(finite, size, np.where(rest > 0, np.nan, np.inf))
    assert BITS.agree(wide, np.where(bits >> 15, -size, size).astype(np.float32)).all()
    assert BITS.agree(implementation(f"cast_{type}", F32)(wide), inputs).all()


@IMPLEMENTATIONS
@TYPES
def test_ties_and_their_neighbours(implementation: Any, type: Scalar) -> None:
    """Midpoints of two neighbouring halves, and their neighbours in f32 and in f64."""
    some = np.sort(np.abs(_finite(type, 1)).astype(np.float64))
    bits = some.astype(type.dtype).view(np.uint16)
    following = (bits + 1).view(type.dtype).astype(np.float64)
    ties = ((some + following) / 2)[np.isfinite(following)]
    for source in (F32, F64):
        tie = ties.astype(source.dtype)
        inputs = np.concatenate(
            [tie, np.nextafter(tie, source.dtype.type(0)), np.nextafter(tie, source.dtype.type(np.inf))]
        )
        inputs = np.concatenate([inputs, -inputs])
        result = implementation(f"cast_{type}", source)(inputs)
        _same(result, [rounded(Fraction(float(x)), type) for x in inputs], type)


@IMPLEMENTATIONS
@TYPES
@pytest.mark.parametrize("source", [I64, U64], ids=str)
def test_whole_numbers_round_once(implementation: Any, type: Scalar, source: Scalar) -> None:
    """Integers of 64 bits; their last bit may decide the rounding."""
    generator = np.random.default_rng(2)
    high = generator.integers(128, 256, COUNT) * 2 + 1
    ties = (high.astype(np.uint64) << generator.integers(0, 54, COUNT).astype(np.uint64)).astype(source.dtype)
    unit = source.dtype.type(1)
    inputs = np.concatenate([ties, ties + unit, ties - unit])
    _same(implementation(f"cast_{type}", source)(inputs), [rounded(Fraction(int(x)), type) for x in inputs], type)


@IMPLEMENTATIONS
@TYPES
@pytest.mark.parametrize("name", ["add", "sub", "mul", "fdiv", "sqrt"])
def test_operations_round_once(implementation: Any, type: Scalar, name: str) -> None:
    inputs = [_finite(type, seed) for seed in range(TABLE[name].operands)]
    result = implementation(name, type)(*inputs)
    _same(result, [evaluate(name, type, *(float(x) for x in row)) for row in zip(*inputs, strict=True)], type)


@IMPLEMENTATIONS
@TYPES
def test_fused_products_round_once(implementation: Any, type: Scalar) -> None:
    """Products that are ties, plus a much smaller addend: f64 arithmetic loses the addend."""
    ties = [(a, b) for a in range(129, 256, 2) for b in (3, 5) if a * b >= 256]
    least = float(np.array(1, np.uint16).view(type.dtype))
    rows = [(a / 128, b / 2, sign * far) for a, b in ties for far in (least, 0.0, 2.0**-14) for sign in (1, -1)]
    rows += zip(*(_finite(type, seed).astype(float) for seed in (3, 4, 5)), strict=True)
    inputs = [np.array(column, type.dtype) for column in zip(*rows, strict=True)]
    exact = [evaluate("fma", type, *(float(x) for x in row)) for row in zip(*inputs, strict=True)]
    _same(implementation("fma", type)(*inputs), exact, type)


@TYPES
def test_a_double_rounding_would_be_found(type: Scalar) -> None:
    """The tests above detect double rounding: the naive computation is wrong."""
    above = np.array([1 + 2.0 ** -(8 if type.name == "bf16" else 11) + 2.0**-40])
    assert halves.rounded(above, type) != above.astype(np.float32).astype(type.dtype)
    if type.name == "bf16":
        a, b, c = (np.array([x]) for x in (129 / 128, 1.5, -(2.0**-120)))
        assert (a * b + c).astype(np.float32).astype(type.dtype) != halves.fused(TABLE["fma"].meaning)(
            *(x.astype(type.dtype) for x in (a, b, c))
        )


@TYPES
def test_literals_are_rounded_once(type: Scalar) -> None:
    above = 1 + 2.0 ** -(8 if type.name == "bf16" else 11) + 2.0**-40
    assert halves.number(above, type) == rounded(Fraction(above), type)
    assert halves.number(float("inf"), type) == float("inf")
