"""Lu 2012's Algorithm 1 with fewer loads: one thread per site, individual after individual, the spectrum in global memory.

The arrays of all sites are interleaved, so that the threads of a warp access adjacent elements. The paper iterates from the last
coefficient down (`algorithm1`). This kernel iterates upwards and carries the contributions to the next two coefficients in
registers: one load and one store per coefficient for the same three multiplications, 3 N^2 - 3 in all.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Global, f64, i32

from .wide import EMPTY, SEGMENT, exponent_of, power_of_two

BLOCK = 128


@st.kernel
def iterative(
    vectors: Global[f64], h: Global[f64], exponents: Global[i32], peaks: Global[i32], individuals: i32, sites: i32
) -> None:
    """h = the product of the individuals' polynomials, coefficient j of a site at j sites + site.

    vectors: p of individual i and power g at (3 i + g) sites + site. exponents, peaks: of segment s at s sites + site:
    a coefficient is h 2^exponent, and 2^peak the largest power of two not above the segment's maximum of h.
    """
    site = st.block.x * st.block_dim.x + st.thread.x
    if site >= sites:
        return
    h[site] = vectors[site]
    h[sites + site] = vectors[sites + site]
    h[2 * sites + site] = vectors[2 * sites + site]
    for i in range(1, individuals):
        p0 = vectors[3 * i * sites + site]
        p1 = vectors[(3 * i + 1) * sites + site]
        p2 = vectors[(3 * i + 2) * sites + site]
        owed, owed_after = f64(0), f64(0)  # contributions to the next coefficient and to the one after it
        reach_below, scale_below = i32(EMPTY), i32(EMPTY)
        for segment in range((2 * i + 2) // SEGMENT + 1):
            place = segment * sites + site
            first = segment * SEGMENT
            last = min(first + SEGMENT - 1, 2 * i + 2)
            exponent = exponents[place]
            reach = max(exponent + peaks[place], EMPTY) if first <= 2 * i else i32(EMPTY)
            scale = max(reach, reach_below)
            owed *= power_of_two(scale_below - scale)
            owed_after *= power_of_two(scale_below - scale)
            own = power_of_two(exponent - scale)
            q0, q1, q2 = p0 * own, p1 * own, p2 * own
            largest = f64(0)
            for j in range(first, min(last, 2 * i) + 1):
                x = h[j * sites + site]
                value = st.fma(q0, x, owed)
                owed, owed_after = st.fma(q1, x, owed_after), q2 * x
                h[j * sites + site] = value
                largest = max(largest, value)
            for j in range(max(first, 2 * i + 1), last + 1):
                h[j * sites + site] = owed
                largest = max(largest, owed)
                owed, owed_after = owed_after, f64(0)
            exponents[place] = scale
            peaks[place] = exponent_of(largest)
            reach_below, scale_below = reach, scale
