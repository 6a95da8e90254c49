"""Mathematical functions: errors over sweeps, exact results, coefficients, and their engines."""

import ctypes
import math
import platform
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from simtbed import maths
from simtbed.ir.maths import ROWS
from simtbed.ir.op import BITS, Op
from simtbed.ir.ops import TABLE
from simtbed.language.types import F32, F64, Scalar
from simtbed.llvm.compiler import LOOPS, NATIVE, QUICK, Target, compiled, host
from simtbed.maths import coefficients
from simtbed.runtime.registry import engine_named
from simtbed.testing.conformance.operations import request

from tests.gpu.sweep import Values, sweep
from tests.maths.fit import FITS, Fit, constants, words_of_two_over_pi
from tests.ops.exact import rounded
from tests.ops.exact_maths import EXACTLY, evaluate

CASES = [(row, type) for row in ROWS for type in row.types]
IDS = [f"{row.name}-{type}" for row, type in CASES]
OWN = [row for row in ROWS if row.llvm.startswith("$") and row.name not in EXACTLY and row.policy is not BITS]
BOUNDS = {"erf": 1.2, "erfc": 3.0, "normcdf": 3.0, "tgamma": 2.0, "lgamma": 4.0}
"""Bounds of the library's own f64 errors in units in the last place; 0.65 for other functions."""
COUNTS = [150, pytest.param(4000, marks=pytest.mark.slow)]
"""Operands of a function."""


def _some(row: Op, type: Scalar, count: int) -> tuple[Values, ...]:
    """Sample operands from the whole sweep."""
    whole = sweep(row, type, 1 << 12)
    picked = np.arange(count) * len(whole[0]) // count
    return tuple(a[picked] for a in whole)


def _unit(exact: Fraction) -> Fraction:
    """Return the unit in the last place of nearby f64 numbers."""
    exponent = abs(exact.numerator).bit_length() - exact.denominator.bit_length()
    exponent -= abs(exact) < Fraction(2) ** exponent
    return Fraction(2) ** (max(exponent, -1022) - 52)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("row", OWN, ids=lambda row: row.name)
def test_errors_are_below_their_bounds(row: Op, count: int) -> None:
    operands = _some(row, F64, count)
    with np.errstate(all="ignore"):
        actual = row.meaning(*operands)
    bound = BOUNDS.get(row.name, 0.65)
    for got, *arguments in zip(actual.tolist(), *(a.tolist() for a in operands), strict=True):
        exact = evaluate(row.name, *arguments)
        if isinstance(exact, Fraction) and math.isfinite(got):
            near = row.name == "lgamma" and -11 < arguments[0] < -2.26
            error = abs(Fraction(got) - exact)
            assert error <= max(Fraction(2) ** -50 if near else 0, bound * _unit(exact)), (arguments, got)
        else:
            nearest = rounded(exact, F64) if isinstance(exact, Fraction) else exact
            assert got == nearest or (got != got and nearest != nearest), (arguments, got, nearest)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("row", OWN, ids=lambda row: row.name)
def test_f32_is_rounded_right(row: Op, count: int) -> None:
    """Within a hundredth of a unit of half a unit."""
    operands = _some(row, F32, count)
    with np.errstate(all="ignore"):
        actual = row.meaning(*operands)
    for got, *arguments in zip(actual.tolist(), *(a.tolist() for a in operands), strict=True):
        exact = evaluate(row.name, *arguments)
        nearest = rounded(exact, F32) if isinstance(exact, Fraction) else float(np.float32(exact))
        if got != nearest and not (got != got and nearest != nearest):
            assert isinstance(exact, Fraction), (arguments, got, nearest)
            assert abs(Fraction(got) - exact) < Fraction(51, 100) * abs(Fraction(got) - Fraction(nearest)), (
                arguments,
                got,
            )


@pytest.mark.parametrize(("row", "type"), CASES, ids=IDS)
def test_engines_give_the_same_bits(row: Op, type: Scalar) -> None:
    launch, arguments = request((type, (row,)), _some(row, type, 1000))
    with np.errstate(all="ignore"):
        expected = row.meaning(*arguments)
    for engine in ("jit", "numpy"):
        actual = engine_named(engine).run(launch).buffers[f"out_{row.name}"]
        assert BITS.agree(actual, expected).all(), engine


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names x86 processors")
@pytest.mark.parametrize("name", ["sin", "pow", "lgamma", "fmod", "fast_exp"])
def test_bits_depend_on_no_processor(name: str) -> None:
    """Code for processors without fused multiply-add or wide vectors, optimised or not, has the same results."""
    operands = [np.ascontiguousarray(a, np.float64) for a in _some(TABLE[name], F64, 3000)]
    _, text = maths._text(name)
    actual = []
    for cpu, passes in (("x86-64", LOOPS), ("x86-64-v3", QUICK), (host().cpu, LOOPS)):
        target = Target(cpu, host().features if cpu == host().cpu else "")
        _, library = compiled(None, lambda: (b"", text), NATIVE, bytes, target, passes)
        to = np.empty(len(operands[0]))
        types = [ctypes.c_void_p] * (len(operands) + 1)
        arguments = [a.ctypes.data for a in (*operands, to)]
        ctypes.CFUNCTYPE(None, *types, ctypes.c_int64)(library.address)(*arguments, len(to))
        actual.append(to)
    assert BITS.agree(actual[0], actual[2]).all()
    assert BITS.agree(actual[1], actual[2]).all()


def _value(name: str, *arguments: float) -> Any:
    return TABLE[name].meaning(*(np.array([x]) for x in arguments))[0].item()


def test_exact_results_are_exact() -> None:
    assert [_value("exp2", float(n)) for n in range(-1074, 1024)] == [2.0**n for n in range(-1074, 1024)]
    assert [_value("log2", 2.0**n) for n in range(-1074, 1024)] == list(range(-1074, 1024))
    assert [_value("exp10", float(n)) for n in range(23)] == [float(10**n) for n in range(23)]
    assert [_value("log10", float(10**n)) for n in range(23)] == list(range(23))
    assert [_value("cbrt", float(n**3)) for n in range(-300, 300)] == list(range(-300, 300))
    assert [_value("pow", float(n), 5.0) for n in range(-200, 200)] == [float(n**5) for n in range(-200, 200)]
    assert [_value("pow", float(n * n), 0.5) for n in range(200)] == list(range(200))
    assert [_value("hypot", 3.0 * n, 4.0 * n) for n in range(1, 200)] == [5.0 * n for n in range(1, 200)]
    assert [_value("tgamma", float(n)) for n in range(1, 23)] == [float(math.factorial(n - 1)) for n in range(1, 23)]


@pytest.mark.parametrize(
    "x", [6381956970095103 * 2.0**797, 5.319372648326541e255, 1.7976931348623157e308, 2.0**28 + 0.5]
)
def test_angles_near_multiples_of_a_quarter_turn(x: float) -> None:
    for name in ("sin", "cos", "tan"):
        exact = evaluate(name, x)
        assert abs(Fraction(_value(name, x)) - exact) <= 0.65 * _unit(exact), name


@pytest.mark.parametrize(("name", "fit"), FITS.items(), ids=[*FITS])
def test_coefficients_are_those_of_the_fit(name: str, fit: Fit) -> None:
    content = getattr(coefficients, name)
    assert content == tuple(fit.coefficients())
    assert fit.error(20) < (2.0**-9 if name == "CBRT" else 2.0**-54)


def test_constants_are_those_computed() -> None:
    assert {name: list(getattr(coefficients, name)) for name in constants()} == constants()
    assert (0, *words_of_two_over_pi()) == coefficients.TWO_OVER_PI


def test_the_logarithm_of_gamma_is_right_up_to_overflow() -> None:
    """Stirling's terms overflow before their sum does, from 2.5e305."""
    row = next(row for row in ROWS if row.name == "lgamma")
    below, above = 2.559983327851638e305, 2.559983327851639e305
    arguments = np.array([1e300, 2.4e305, 2.5e305, 2.5001e305, 2.5553733538451814e305, below, above, np.inf])
    actual = row.meaning(arguments)
    exact = [x / 16 * (math.log(x) - 1) for x in arguments[:5]]
    np.testing.assert_allclose(actual[:5] / 16, exact, rtol=1e-14)
    assert np.isfinite(actual[:6]).all() and (np.diff(actual[:6]) > 0).all()
    assert actual[6] == np.inf == actual[7]
