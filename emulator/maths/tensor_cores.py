"""Matrix multiply-accumulates of a warp as machine code: the arithmetic of `ir.tensor_cores`, for the jit engine.

Fragments are arrays of registers, u32[registers, 32 lanes]; of f64, f64[registers, 32]. `ir.tensor_cores.parameters` has the shape
and the rule as numbers.
"""

from ..language.bits import clz
from ..language.functions import device
from ..language.hints import Global, Local, f32, f64, i32, i64, u32
from ..language.intrinsics import bitcast, fma, local
from ..native import native

NOTHING = -(1 << 20)
"""Exponent of zero."""
FINITE, INFINITE, NAN = 0, 1, 2


@device
def number(x: i32, fraction: i32, exponent: i32, has_infinity: i32) -> tuple[i32, i32, i32]:
    """The significand with its sign, the exponent, and the class of a number of a format."""
    ones = (1 << exponent) - 1
    low, field = x & ((1 << fraction) - 1), (x >> fraction) & ones
    kind = i32(0)
    if field == ones:
        if low == 0 and has_infinity != 0:
            kind = i32(INFINITE)
        elif has_infinity != 0 or low == (1 << fraction) - 1:
            kind = i32(NAN)
    value = low if field == 0 else low | (1 << fraction)
    place = (1 if field == 0 else field) + 1 - (1 << (exponent - 1))
    return (-value if ((x >> (fraction + exponent)) & 1) != 0 else value), (NOTHING if value == 0 else place), kind


@device
def encoded(total: i64, unit: i32, fraction: i32, exponent: i32, kept_bits: i32) -> i32:
    """The bits of total * 2**unit: cut, in a format of 5 exponent bits rounded to the nearest even number."""
    bits = i64(0)
    if total != 0:
        lowest = 2 - (1 << (exponent - 1))
        magnitude = -total if total < 0 else total
        place = max(unit + 63 - clz(magnitude), lowest)
        shift = place - kept_bits - unit
        bits = magnitude << i64(max(-shift, 0))
        if shift > 0:
            bits = magnitude >> i64(min(shift, 63))
            if exponent == 5 and shift < 63:
                rest, half = magnitude - (bits << i64(shift)), i64(1) << i64(shift - 1)
                bits += i64(rest > half or (rest == half and (bits & 1) == 1))
        bits = (bits + (i64(place - lowest) << i64(kept_bits))) << i64(fraction - kept_bits)
        bits = min(bits, ((i64(1) << i64(exponent)) - 1) << i64(fraction))
        if total < 0 and bits != 0:
            bits |= i64(1) << i64(fraction + exponent)
    return i32(bits)


@device
def read(fragment: Global[u32], row: i64, column: i64, rows: i64, width: i64) -> i32:
    """The bits of an element of a fragment. width: logarithm of the elements of a row in a register, 1 for C and D of f16."""
    place, bits, last = column >> width, i64(32) >> width, (i64(1) << width) - 1
    word = fragment[32 * ((row >> 3) + (rows >> 3) * (place >> 2)) + 4 * (row & 7) + (place & 3)]
    return i32((word >> u32(bits * (column & last))) & (u32(0xFFFFFFFF) >> u32(32 - bits)))


# Arrays of numbers: significands with their signs, then exponents, then classes.
X = 512
Y = 256
N = 8
"""Numbers of A, of B, and of a row of C."""


@device
def decode(fragment: Global[u32], rows: i64, row_step: i64, step: i64, p: Global[i64], numbers: Local[i32]) -> i32:
    """Decode a fragment, its products in the order of their sums. Return whether a number is not finite."""
    special, count = i32(0), X if row_step > 1 else Y
    form = 4 if row_step > 1 else 12
    for row in range(rows):
        for at in range(p[1]):
            word = read(fragment, row, at, rows, p[2]) >> i32(p[3])
            value, place, kind = number(word, i32(p[form]), i32(p[form + 1]), i32(p[form + 2]))
            special |= kind
            to = row * row_step + p[15 + at] * step
            numbers[to], numbers[to + count], numbers[to + 2 * count] = value, place, kind
    return special


@device
def exact_sums(
    x: Local[i32], y: Local[i32], row: i64, first: i64, last: i64, top: Local[i32], total: Local[i64], up: i32
) -> None:
    """The sums of the products of a row, cut to the largest exponent. top: exponents of C, then of the terms."""
    for at in range(first, last):
        exponent = x[X + row + at]
        for n in range(i64(N)):
            top[n] = max(top[n], exponent + y[Y + at * N + n])
    partial = local(i32, N)
    for n in range(i64(N)):
        total[n] = i64(0)
    for begin in range(first, last, 16):  # the sum of 16 terms has 32 bits
        for n in range(i64(N)):
            partial[n] = 0
        for at in range(begin, min(begin + 16, last)):
            exponent, factor = x[X + row + at], x[row + at]
            for n in range(i64(N)):
                product = factor * y[at * N + n]
                negative = product >> 31
                magnitude = ((product ^ negative) - negative) << up
                term = magnitude >> min(top[n] - exponent - y[Y + at * N + n], 31)
                partial[n] += (term ^ negative) - negative
        for n in range(i64(N)):
            total[n] += i64(partial[n])


@device
def class_of_sum(x: Local[i32], y: Local[i32], row: i64, n: i64, first: i64, last: i64, c: Local[i32]) -> i32:
    """The class of a sum, negative for the infinity below."""
    infinite = c[2 * N + n] == INFINITE
    above, below, nan = infinite and c[n] > 0, infinite and c[n] < 0, c[2 * N + n] == NAN
    for at in range(first, last):
        i, j = row + at, at * N + n
        infinite = x[2 * X + i] == INFINITE or y[2 * Y + j] == INFINITE
        nan = nan or x[2 * X + i] == NAN or y[2 * Y + j] == NAN or (infinite and (x[i] == 0 or y[j] == 0))
        negative = (x[i] < 0) != (y[j] < 0)
        above = above or (infinite and not negative)
        below = below or (infinite and negative)
    if nan or (above and below):
        return i32(NAN)
    return i32(above) - i32(below)


@device
def place_of_sum(row: i64, n: i64) -> i64:
    """The place of an element of C and D of 32 or 64 bits."""
    return 32 * (2 * (row // 8) + n % 2) + 4 * (row % 8) + n // 2


@device
def store_row(sums: Local[i32], c: Global[u32], d: Global[u32], row: i64, half: bool, split: bool) -> None:
    """Store a row of D. split: an f32 addition adds C to sums that started from zero."""
    for n in range(i64(N)):
        if half:
            to = 32 * (row // 8) + 4 * (row % 8) + n // 2
            low = u32(0) if n % 2 == 0 else d[to]
            d[to] = low | (bitcast(u32, sums[n]) << u32(16 * (n % 2)))
        else:
            to = place_of_sum(row, n)
            d[to] = bitcast(u32, sums[n])
            if split:
                added = bitcast(f32, sums[n]) + bitcast(f32, c[to])
                d[to] = bitcast(u32, added) if added == added else u32(0x7FFFFFFF)


@native
def mma_floats(a: Global[u32], b: Global[u32], c: Global[u32], d: Global[u32], p: Global[i64]) -> None:
    """D = A B + C of f16, bf16, tf32, e4m3 or e5m2."""
    m, k, precision, half, split = p[0], p[1], i32(p[7]), p[10] == 16, p[11] != 0
    fraction, exponent = i32(10 if half else 23), i32(5 if half else 8)
    x = local(i32, 3 * X)
    y = local(i32, 3 * Y)
    special = decode(a, m, k, i64(1), p, x) | decode(b, i64(8), i64(1), i64(N), p, y)
    sums = local(i32, N)
    own_c = local(i32, 3 * N)
    top = local(i32, N)
    total = local(i64, N)
    for row in range(m):
        for n in range(i64(N)):
            addend = read(c, row, n, m, i64(1)) if half else bitcast(i32, c[place_of_sum(row, n)])
            sums[n] = 0 if split else addend
        first = i64(0)
        while first < k:
            last = min(first + p[8], k)
            some_special = special
            for n in range(i64(N)):
                value, place, kind = number(sums[n], fraction, exponent, i32(1))
                own_c[n], own_c[N + n], own_c[2 * N + n], top[n] = value, place, kind, place
                some_special |= kind
            exact_sums(x, y, row * k, first, last, top, total, precision - i32(p[4]) - i32(p[12]))
            for n in range(i64(N)):
                term = (i64(abs(own_c[n])) << i64(precision)) >> i64(min(top[n] - own_c[N + n] + fraction, 63))
                whole = total[n] + (-term if own_c[n] < 0 else term)
                sums[n] = encoded(whole, top[n] - precision, fraction, exponent, i32(p[9]))
            if some_special != 0:
                for n in range(i64(N)):
                    kind, sign = class_of_sum(x, y, row * k, n, first, last, own_c), i32(1) << (fraction + exponent)
                    infinity = (sign - (1 << fraction)) | (sign if kind < 0 else 0)
                    sums[n] = sums[n] if kind == FINITE else sign - 1 if kind == NAN else infinity
            first = last
        store_row(sums, c, d, row, half, split)


@native
def mma_integers(a: Global[u32], b: Global[u32], c: Global[u32], d: Global[u32], p: Global[i64]) -> None:
    """D = A B + C of signed or unsigned bytes, modulo 2**32."""
    m, k, signed_a, signed_b = p[0], p[1], p[2], p[3]
    x = local(i32, 512)
    y = local(i32, 256)
    for at in range(k):
        for row in range(m):
            own = read(a, row, at, m, i64(2))
            x[row * k + at] = own - 256 if signed_a != 0 and own > 127 else own
        for n in range(i64(8)):
            own = read(b, n, at, i64(8), i64(2))
            y[at * 8 + n] = own - 256 if signed_b != 0 and own > 127 else own
    total = local(i32, 8)
    for row in range(m):
        for n in range(i64(8)):
            total[n] = bitcast(i32, c[place_of_sum(row, n)])
        for at in range(k):
            factor = x[row * k + at]
            for n in range(i64(8)):
                total[n] += factor * y[at * 8 + n]
        for n in range(i64(8)):
            d[place_of_sum(row, n)] = bitcast(u32, total[n])


@native
def mma_doubles(a: Global[f64], b: Global[f64], c: Global[f64], d: Global[f64], p: Global[i64]) -> None:
    """D = A B + C of f64 by a chain of fused multiply-adds in the order of k."""
    for row in range(p[0]):
        for n in range(i64(8)):
            place = place_of_sum(row, n)
            total = c[place]
            for at in range(p[1]):
                total = fma(a[4 * row + at], b[4 * n + at], total)
            d[place] = total
