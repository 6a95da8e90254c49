"""Lu 2012, Algorithm 1 as printed: one thread per site, from the last coefficient down, in plain doubles.

A step has three loads and one store. The likelihoods of the first individual are in the order of lines 7 to 12; the printed
line 5 reverses it. The arrays of all sites are interleaved, so that the threads of a warp access adjacent elements.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Global, f64, i32


@st.kernel
def algorithm1(vectors: Global[f64], h: Global[f64], individuals: i32, sites: i32) -> None:
    """h = the product of the individuals' polynomials, coefficient j of a site at j sites + site.

    vectors: p of individual i and power g at (3 i + g) sites + site; the sum of an individual's is at most 1, otherwise h may
    leave the range of doubles.
    """
    site = st.block.x * st.block_dim.x + st.thread.x
    if site >= sites:
        return
    h[site] = vectors[site]
    h[sites + site] = vectors[sites + site]
    h[2 * sites + site] = vectors[2 * sites + site]
    for i in range(2, individuals + 1):
        p0 = vectors[(3 * i - 3) * sites + site]
        p1 = vectors[(3 * i - 2) * sites + site]
        p2 = vectors[(3 * i - 1) * sites + site]
        h[2 * i * sites + site] = p2 * h[(2 * i - 2) * sites + site]
        h[(2 * i - 1) * sites + site] = st.fma(p2, h[(2 * i - 3) * sites + site], p1 * h[(2 * i - 2) * sites + site])
        for j in range(2 * i - 2, 1, -1):
            h[j * sites + site] = st.fma(
                p2, h[(j - 2) * sites + site], st.fma(p1, h[(j - 1) * sites + site], p0 * h[j * sites + site])
            )
        h[sites + site] = st.fma(p1, h[site], p0 * h[sites + site])
        h[site] = p0 * h[site]
