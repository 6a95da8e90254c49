"""Lu 2012, Fig. 14: data parsing and post-processing, the components of GAMA in addition to construction and normalisation.

The paper describes neither. Parsing reads Beagle text, the text of realSFS's successors, whose likelihoods have a fixed width;
post-processing reduces the posteriors of a site to the values that a study reports.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, f64, i32, i64, u8

from .normalise import total

FIELD = 9
"""Characters of a likelihood: "0.123456" and a tab or newline."""
DECIMALS = 1e6
BLOCK = 128


@st.kernel
def parse(text: Global[u8], starts: Global[i64], likelihoods: Global[f64], values: i32, FIELD: Const) -> None:
    """Convert the likelihoods of a site to doubles, a thread each: the correctly rounded value of the decimals.

    starts: place of the first likelihood of each site. values: likelihoods of a site. grid: (blocks of a site, sites).
    """
    value = st.block.x * st.block_dim.x + st.thread.x
    site = st.block.y
    if value >= values:
        return
    at = starts[site] + i64(value * FIELD)
    number = i32(text[at]) - 48
    for digit in st.unroll(range(2, FIELD - 1)):  # behind the point
        number = number * 10 + (i32(text[at + digit]) - 48)
    likelihoods[site * values + value] = f64(number) / DECIMALS


@st.kernel
def summarise(
    posteriors: Global[f64], expected: Global[f64], variable: Global[f64], most: Global[i32], alleles: i32, BLOCK: Const
) -> None:  # fmt: skip
    """Reduce the posteriors of a site, one block per site.

    expected: expected frequency of the minor allele. variable: probability that the site varies. most: most likely number of
    minor alleles, the lowest of several. alleles: 2 N.
    """
    sums = st.shared(f64, BLOCK)
    largest = st.shared(f64, BLOCK)
    places = st.shared(i32, BLOCK)
    t = st.thread.x
    first = st.block.x * (alleles + 1)
    weighted = f64(0)
    best, best_place = f64(-1), 0
    for j in range(t, alleles + 1, BLOCK):
        p = posteriors[first + j]
        weighted = st.fma(f64(j), p, weighted)
        if p > best:
            best = p
            best_place = j
    largest[t] = best
    places[t] = best_place
    st.sync()
    width = BLOCK // 2
    while width > 0:
        if t < width:
            other, place = largest[t + width], places[t + width]
            if other > largest[t] or (other == largest[t] and place < places[t]):
                largest[t] = other
                places[t] = place
        st.sync()
        width //= 2
    mean = total(weighted, sums, BLOCK)
    if t == 0:
        expected[st.block.x] = mean / f64(alleles)
        variable[st.block.x] = 1.0 - posteriors[first]
        most[st.block.x] = places[0]
