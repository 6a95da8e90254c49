"""Numbers as text: equal to Python's '%.10g' for every kind of double."""

import math
import struct
from collections.abc import Iterable
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simtbed import Global, f64, i64, u8
from simtbed.kernels.files import decimals
from simtbed.native import native


@native
def write_numbers(values: Global[f64], count: i64, powers: decimals.Powers, to: Global[u8], ends: Global[i64]) -> None:
    """Write each number in its own MAX_CHARACTERS bytes. ends: its length, or UNDECIDED."""
    for number in range(count):
        end = decimals.ten_digits(values[number], powers, to, number * decimals.MAX_CHARACTERS)
        ends[number] = end - number * decimals.MAX_CHARACTERS if end >= 0 else end


def written(values: Iterable[float]) -> list[str | None]:
    """Return the texts; None for undecided numbers."""
    array = np.array(list(values), np.float64)
    to, ends = np.full(len(array) * decimals.MAX_CHARACTERS + 64, ord("?"), np.uint8), np.empty(len(array), np.int64)
    write_numbers(array, len(array), decimals.power_table(), to, ends)
    assert (to[len(array) * decimals.MAX_CHARACTERS :] == ord("?")).all()  # no bytes after the last number are written
    text = to.tobytes().decode("ascii")
    return [
        None if end == decimals.UNDECIDED else text[at * decimals.MAX_CHARACTERS : at * decimals.MAX_CHARACTERS + end]
        for at, end in enumerate(ends.tolist())
    ]


def is_tie(value: float) -> bool:
    """Return whether a double is halfway between two numbers of ten digits."""
    exact = Decimal(value)
    unit = Decimal(1).scaleb(exact.adjusted() - 9)
    return exact % unit == unit / 2 or exact % unit == -unit / 2


def agree(values: Iterable[float]) -> int:
    """Check that all texts equal Python's and read back correctly. Only ties may be undecided; return their number."""
    array = list(values)
    left = 0
    for value, text in zip(array, written(array), strict=True):
        if text is None:
            with localcontext() as context:
                context.prec = 1_100
                assert is_tie(value), value.hex()
            left += 1
            continue
        assert text == f"{value:.10g}", value.hex()
        assert len(text) <= decimals.MAX_CHARACTERS
        again = float(text)
        assert math.isnan(again) if math.isnan(value) else f"{again:.10g}" == text or abs(value) > 1.7e308
    return left


def of_bits(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


@pytest.mark.slow
@settings(max_examples=1_000, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.floats(), st.floats(-1e11, 1e11), st.floats(-1e-300, 1e-300), st.integers(0, (1 << 64) - 1).map(of_bits)
        ),
        max_size=20,
    )
)
def test_any_double(values: list[float]) -> None:
    agree(values)


@pytest.mark.slow
def test_random_bits() -> None:
    bits = np.random.default_rng(1).integers(0, 1 << 64, 300_000, np.uint64)
    assert agree(bits.view(np.float64).tolist()) == 0


def test_subnormals_and_the_ends_of_the_range() -> None:
    draw = np.random.default_rng(2)
    small = draw.integers(1, 1 << 52, 20_000) >> draw.integers(0, 52, 20_000)
    assert agree(small.astype(np.uint64).view(np.float64).tolist()) == 0
    ends = [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 2.225073858507201e-308, 1.7976931348623157e308]
    assert agree([*ends, math.inf, -math.inf, math.nan]) == 0
    assert written([0.0, -0.0, math.inf, -math.inf, math.nan]) == ["0", "-0", "inf", "-inf", "nan"]
    assert written([of_bits(0xFFF8000000000000)]) == ["nan"]  # Python prints no sign of NaN


def test_powers_of_two_and_of_ten_and_their_neighbours() -> None:
    values = [2.0**e for e in range(-1074, 1024)] + [float(f"1e{e}") for e in range(-323, 309)]
    near = [math.nextafter(value, to) for value in values for to in (0.0, math.inf)]
    assert agree([*values, *near, *(-value for value in values)]) == 0


@pytest.mark.parametrize("power", range(-40, 41, 5))
def test_carry_into_a_new_digit(power: int) -> None:
    """9.9999999995 and its neighbours become 10."""
    nearly = [
        float(f"{digits}e{power}") for digits in ("9.9999999995", "9.99999999949999", "9999999999.5", "0.99999999995")
    ]
    assert agree([math.nextafter(v, to) for v in nearly for to in (0.0, math.inf)] + nearly) <= 3


def test_ties_round_to_the_even_digit() -> None:
    """Eleven digits and a half: exact in a double for a small power of ten or of two."""
    draw = np.random.default_rng(3)
    tens = draw.integers(10**9, 10**10, 5_000)
    ties = [*(tens + 0.5).tolist(), *(tens / 2 + 0.25).tolist()]
    for power in range(1, 7):  # (10 n + 5) 10^k below 2^53
        ties += [float((int(n) * 10 + 5) * 10 ** (power - 1)) for n in tens[:500] if int(n) * 10**power < 1 << 53]
    for shift in (3, 7, 20, 33):  # n + 1/2 ulp of ten digits, as a fraction with a power of two below
        ties += [float(n) / 2.0**shift for n in draw.integers(1 << 30, 1 << 53, 500)]
    assert agree(ties) < len(ties) / 2
    assert written([1000000000.5, 1000000001.5]) == ["1000000000", "1000000002"]


def test_short_decimals_are_written_as_they_were_read() -> None:
    draw = np.random.default_rng(4)
    for digits in range(1, 11):
        texts = [f"{draw.integers(1, 10**digits)}e{draw.integers(-320, 290)}" for _ in range(500)]
        assert agree(map(float, texts)) == 0


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(st.integers(1, 10**10 - 1), st.integers(-300, 290))
def test_near_halves_of_the_last_digit(digits: int, power: int) -> None:
    """The double nearest to a tie, and its neighbours: the hardest numbers to round."""
    tie = float(f"{digits}5e{power}")
    assert agree([tie, math.nextafter(tie, 0.0), math.nextafter(tie, math.inf)]) <= 1


def test_the_table_is_exact_or_cut_off_below() -> None:
    table = decimals.power_table()
    assert len(table.high) == decimals.MAX_POWER - decimals.MIN_POWER + 1
    for q in (0, 1, decimals.MAX_EXACT_POWER, 27, 22):
        at = q - decimals.MIN_POWER
        exact = (int(table.high[at]) << 64 | int(table.low[at])) * 2 ** (int(table.exponent[at]) + 200)
        assert exact == 10**q * 2**200
    for q in (-300, -1, decimals.MAX_EXACT_POWER + 1, 100, 334):
        at = q - decimals.MIN_POWER
        rest, exponent = int(table.high[at]) << 64 | int(table.low[at]), int(table.exponent[at])
        assert rest >> 127 == 1
        above = (10**q << 1200) if q >= 0 else (1 << 1200) // 10**-q
        assert rest << exponent + 1200 <= above < (rest + 1) << exponent + 1200


def test_the_whole_table_is_used() -> None:
    """Every power: a number with each decimal exponent."""
    values = [float(f"3.14159265358979e{e}") for e in range(-323, 309)]
    assert agree(values) == 0
