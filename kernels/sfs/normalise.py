"""Lu 2012, Algorithms 4 and 5: normalisation of a site's product, in logarithms, one block per site."""

from __future__ import annotations

import math

import simtbed as st
from simtbed import Const, Global, Shared, f64, i32

LN2 = math.log(2.0)
LOWEST = -1.7e308
"""Below the logarithm of every positive double."""
BLOCK = 128
PRODUCT, SAF, GAMA = 0, 1, 2
MODES = {"product": PRODUCT, "saf": SAF, "gama": GAMA}


@st.device
def greatest(value: f64, buffer: Shared[f64], BLOCK: Const) -> f64:
    """Return the maximum of all threads' values. The buffer may be reused afterwards."""
    buffer[st.thread.x] = value
    st.sync()
    width = BLOCK // 2
    while width > 0:
        if st.thread.x < width:
            buffer[st.thread.x] = max(buffer[st.thread.x], buffer[st.thread.x + width])
        st.sync()
        width //= 2
    found = buffer[0]
    st.sync()
    return found


@st.device
def total(value: f64, buffer: Shared[f64], BLOCK: Const) -> f64:
    """Return the sum of all threads' values. The buffer may be reused afterwards."""
    buffer[st.thread.x] = value
    st.sync()
    width = BLOCK // 2
    while width > 0:
        if st.thread.x < width:
            buffer[st.thread.x] += buffer[st.thread.x + width]
        st.sync()
        width //= 2
    found = buffer[0]
    st.sync()
    return found


@st.device
def log_sum(a: f64, b: f64) -> f64:
    """Algorithm 5, addProtect: log(e^a + e^b), also if both are log 0."""
    larger = max(a, b)
    if larger < LOWEST:
        return larger
    return larger + st.log(st.exp(a - larger) + st.exp(b - larger))


@st.kernel
def normalise(
    h: Global[f64],
    exponents: Global[i32],
    scale: Global[f64],
    choices: Global[f64],
    fixed: Global[f64],
    out: Global[f64],
    alleles: i32,
    h_site: i32,
    h_step: i32,
    exponent_site: i32,
    exponent_step: i32,
    varies: f64,
    stays: f64,
    MODE: Const,
    SEGMENT: Const,
    BLOCK: Const,
) -> None:
    """out[site (alleles + 1) + j], j = 0..alleles: the site's coefficients, normalised for the mode.

    Coefficient j is h[h_site site + h_step j] 2^exponents[exponent_site site + exponent_step (j // SEGMENT)] e^scale.
    PRODUCT: its logarithm. SAF: minus choices[j] = log C(alleles, j), minus the site's maximum. GAMA: the posterior;
    fixed: log likelihood of a site without the minor allele, `varies` and `stays`: log p and log (1 - p).
    """
    buffer = st.shared(f64, BLOCK)
    site = st.block.x
    first = site * (alleles + 1)
    most = f64(LOWEST)
    for j in range(st.thread.x, alleles + 1, BLOCK):
        mantissa = h[h_site * site + h_step * j]
        exponent = exponents[exponent_site * site + exponent_step * (j // SEGMENT)]
        value = st.fma(f64(exponent), LN2, st.log(mantissa)) + scale[site]
        if MODE == SAF:
            value -= choices[j]
        out[first + j] = value
        most = max(most, value)
    if MODE == SAF:
        most = greatest(most, buffer, BLOCK)
        if most > LOWEST:
            for j in range(st.thread.x, alleles + 1, BLOCK):
                out[first + j] -= most
    if MODE == GAMA:
        most = greatest(most, buffer, BLOCK)
        part = f64(0)
        for j in range(st.thread.x, alleles + 1, BLOCK):
            part += st.exp(out[first + j] - most)
        whole = most + st.log(total(part, buffer, BLOCK))
        b = log_sum(varies + whole, stays + fixed[site])
        for j in range(st.thread.x, alleles + 1, BLOCK):
            value = st.exp(varies + out[first + j] - b)
            if j == 0:
                value += st.exp(stays + fixed[site] - b)
            out[first + j] = value if b > LOWEST else f64(0)
