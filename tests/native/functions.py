"""Native functions with the language's features: loops, branches, device functions, tables, local arrays."""

from typing import NamedTuple

import simtbed as st
from simtbed import Const, Global, f32, f64, i32, i64, u8, u64
from simtbed.native import native

FACTOR = 3


@st.device
def clipped(x: i64, most: i64) -> i64:
    if x > most:
        return most
    return x


@native
def total(x: Global[i64], n: i64, most: i64) -> i64:
    """The sum of the numbers, each clamped to `most`."""
    actual = i64(0)
    for i in range(n):
        actual += clipped(x[i], most)
    return actual


@native
def collatz(n: u64) -> i32:
    """Iterations until 1."""
    iterations = 0
    while n != 1:
        if n % 2 == 0:
            n //= 2
        else:
            n = 3 * n + 1
        iterations += 1
    return iterations


@native
def first_after(text: Global[u8], n: i64, expected: u8, start: i64) -> i64:
    """The first position of a byte from `start`, or -1. With break and continue."""
    for i in range(n):
        if i < start:
            continue
        if text[i] == expected:
            return i
    return i64(-1)


@native
def primes(to: Global[bool], n: i64) -> i64:
    """Sieve; the number of primes below n."""
    for i in range(n):
        to[i] = i > 1
    at, actual = i64(2), i64(0)
    while True:
        if at >= n:
            break
        if to[at]:
            actual += 1
            for other in range(n // at + 1):
                if other > 1 and other * at < n:
                    to[other * at] = False
        at += 1
    return actual


@native
def histogram(x: Global[u8], n: i64, counts: Global[i32], BINS: Const) -> None:
    """Counts of each value modulo BINS, through a local array, backwards."""
    own = st.local(i32, BINS)
    for b in range(BINS):
        own[b] = 0
    for i in range(n - 1, -1, -1):
        own[i32(x[i]) % BINS] += 1
    for b in range(BINS):
        counts[b] = own[b]


@native
def horner(x: Global[f64], to: Global[f32], n: i64) -> f64:
    """A polynomial with coefficients of a table, unrolled; the sum of its values, rounded."""
    coefficients = st.constant(f64, (0.5, -1.25, 3.0))
    whole = 0.0 * x[0]
    for i in range(n):
        value = f64(0)
        for k in st.unroll(range(3)):
            value = st.fma(value, x[i], coefficients[k])
        to[i] = f32(value)
        whole += st.sqrt(abs(value)) if value < 0 else value / FACTOR
    return whole


@native
def within(x: f64, low: f64, high: f64, strict: bool) -> bool:
    if strict:
        return low < x < high
    return low <= x and x <= high


class Samples(NamedTuple):
    values: Global[f64]
    weights: Global[i32]
    length: i64


@st.device
def scale(samples: Samples, factor: f64) -> None:
    for i in range(samples.length):
        samples.values[i] *= factor


@native
def weighted_sum(samples: Samples, factor: f64) -> f64:
    """Multiply the values by a factor and return their weighted sum."""
    scale(samples, factor)
    result = f64(0)
    for i in range(samples.length):
        result += samples.values[i] * f64(samples.weights[i])
    return result
