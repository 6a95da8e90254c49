"""Lu 2012, Algorithm 3, in doubles as printed, and in extended precision, for the comparison with logarithms in Fig. 13.

Extended precision: double-doubles (two doubles whose unevaluated sum is the number) with a separate exponent for e^t and the
likelihood of a site without variation: double-doubles underflow like doubles.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, Shared, double2, f64, i32

from .normalise import total
from .wide import power_of_two

LN2_HIGH, LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
"""ln 2 to 86 bits as a sum; the first term has 32 trailing zeros, so that small multiples are exact."""
LOG2_E = 1.44269504088896340736
TERMS = 20
"""Terms of the series of e^x for |x| < ln 2 / 2; the remainder is below 2^-90."""
BLOCK = 128


# ------------------------------------------------------------------ double-doubles
@st.device
def two_sum(a: f64, b: f64) -> double2:
    """a + b, exactly."""
    s = a + b
    other = s - a
    return double2(s, (a - (s - other)) + (b - other))


@st.device
def plus(x: double2, y: double2) -> double2:
    s = two_sum(x.x, y.x)
    return two_sum(s.x, s.y + (x.y + y.y))


@st.device
def times(x: double2, y: double2) -> double2:
    p = x.x * y.x
    low = st.fma(x.x, y.x, -p) + st.fma(x.x, y.y, x.y * y.x)
    return two_sum(p, low)


@st.device
def over(x: double2, y: double2) -> double2:
    """x / y for y > 0."""
    first = x.x / y.x
    rest = plus(x, times(y, double2(-first, f64(0))))
    second = rest.x / y.x
    rest = plus(rest, times(y, double2(-second, f64(0))))
    return plus(two_sum(first, second), double2(rest.x / y.x, f64(0)))


@st.device
def exponent_of_power(t: f64) -> i32:
    """Return k with e^t = 2^k e^x and |x| < ln 2 / 2."""
    return i32(st.floor(st.fma(t, LOG2_E, 0.5)))


@st.device
def rest_of_power(t: f64, k: i32) -> double2:
    """Return e^x of `exponent_of_power`, by its series."""
    multiple = f64(k)
    low = multiple * LN2_LOW
    x = plus(two_sum(st.fma(-multiple, LN2_HIGH, t), -low), double2(-st.fma(multiple, LN2_LOW, -low), f64(0)))
    one = double2(f64(1), f64(0))
    found = one
    for n in range(TERMS, 0, -1):
        found = plus(one, over(times(x, found), double2(f64(n), f64(0))))
    return found


@st.device
def total_of_pairs(value: double2, high: Shared[f64], low: Shared[f64], BLOCK: Const) -> double2:
    """Return the sum of all threads' values."""
    high[st.thread.x] = value.x
    low[st.thread.x] = value.y
    st.sync()
    width = BLOCK // 2
    while width > 0:
        if st.thread.x < width:
            both = plus(
                double2(high[st.thread.x], low[st.thread.x]),
                double2(high[st.thread.x + width], low[st.thread.x + width]),
            )
            high[st.thread.x] = both.x
            low[st.thread.x] = both.y
        st.sync()
        width //= 2
    return double2(high[0], low[0])


# ------------------------------------------------------------------ Algorithm 3
@st.kernel
def normalise_printed(
    h: Global[f64],
    t: Global[f64],
    fixed: Global[f64],
    out: Global[f64],
    undefined: Global[i32],
    alleles: i32,
    h_site: i32,
    h_step: i32,
    variable: f64,
    EXTENDED: Const,
    BLOCK: Const,
) -> None:
    """out[site (alleles + 1) + j]: the posterior of j minor alleles; one block per site. Reference: `normalise`, mode GAMA.

    A site's products are h[h_site site + h_step j] e^t; fixed: log likelihood of a site without the minor allele, above
    -1e300. variable: the prior that a site varies. undefined[site]: 1 if the printed algorithm divides by zero and its
    results are not numbers.
    """
    high = st.shared(f64, BLOCK)
    low = st.shared(f64, BLOCK if EXTENDED else 1)
    site = st.block.x
    first = site * (alleles + 1)
    if EXTENDED:
        k, fixed_k = exponent_of_power(t[site]), exponent_of_power(fixed[site])
        shared_k = max(k, fixed_k)
        scale, own = rest_of_power(t[site], k), double2(power_of_two(k - shared_k), f64(0))
        part = double2(f64(0), f64(0))
        for j in range(st.thread.x, alleles + 1, BLOCK):
            part = plus(part, times(double2(h[h_site * site + h_step * j], f64(0)), scale))
        whole = total_of_pairs(part, high, low, BLOCK)
        p, q = double2(variable, f64(0)), two_sum(f64(1), -variable)
        rest = times(times(q, rest_of_power(fixed[site], fixed_k)), double2(power_of_two(fixed_k - shared_k), f64(0)))
        b = plus(times(times(p, whole), own), rest)
        for j in range(st.thread.x, alleles + 1, BLOCK):
            value = over(times(times(p, times(double2(h[h_site * site + h_step * j], f64(0)), scale)), own), b)
            if j == 0:
                value = plus(value, over(rest, b))
            out[first + j] = value.x
        if st.thread.x == 0:
            undefined[site] = 0
    else:
        sum_of_own = f64(0)
        for j in range(st.thread.x, alleles + 1, BLOCK):
            a = h[h_site * site + h_step * j] * st.exp(t[site])
            out[first + j] = a
            sum_of_own += a
        rest_of_all = (f64(1) - variable) * st.exp(fixed[site])
        divisor = st.fma(variable, total(sum_of_own, high, BLOCK), rest_of_all)
        for j in range(st.thread.x, alleles + 1, BLOCK):
            posterior = variable * out[first + j]
            if j == 0:
                posterior += rest_of_all
            out[first + j] = posterior / divisor
        if st.thread.x == 0:
            undefined[site] = 1 if divisor == 0 else 0
