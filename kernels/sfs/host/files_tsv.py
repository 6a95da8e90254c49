"""Spectra as a table: a header, then chromosome, position and 2N + 1 values a site."""

from __future__ import annotations

import numpy as np
from simtbed import Global, f64, i64, u8, u64
from simtbed.native import native

from ...files.decimals import MAX_CHARACTERS, UNDECIDED, powers, ten_digits
from ...files.text_loops import copied, decimal
from .problem import Floats, Problem

NUMBER = 20
"""Characters of the longest position."""


def header(problem: Problem) -> bytes:
    """The first line."""
    return "\t".join(["chrom", "pos", *map(str, range(2 * problem.individuals + 1))]).encode() + b"\n"


def rows(problem: Problem, answer: Floats) -> memoryview:
    """A line a site, values as '%.10g' writes them."""
    sites, width = answer.shape
    names = [name.encode() for name in problem.chromosomes]
    lengths = np.fromiter(map(len, names), np.int64, len(names))
    first = np.concatenate([[0], np.cumsum(lengths)])
    joined = np.frombuffer(b"".join(names), np.uint8)
    to = np.empty(len(joined) + sites * (width * (MAX_CHARACTERS + 1) + NUMBER + 1), np.uint8)
    values, positions = np.ascontiguousarray(answer).reshape(-1), problem.positions
    done = np.zeros(2, np.int64)
    while True:
        table_rows(joined, first, positions, values, sites, width, *powers(), to, done)
        length, site = done.tolist()
        if site == sites:
            return to[:length].data
        numbers = "\t".join(["%.10g"] * width) % tuple(answer[site].tolist())  # no nearest one of its values was found
        line = names[site] + f"\t{positions[site]}\t{numbers}\n".encode()
        to[length : length + len(line)] = np.frombuffer(line, np.uint8)
        done[:] = length + len(line), site + 1


@native
def table_rows(
    names: Global[u8],
    firsts: Global[i64],
    positions: Global[i64],
    values: Global[f64],
    sites: i64,
    width: i64,
    high: Global[u64],
    low: Global[u64],
    exponent: Global[i64],
    to: Global[u8],
    done: Global[i64],
) -> None:
    """Write rows from site done[1] on, from `to[done[0]]` on, up to one that cannot be written; both are moved on."""
    at = done[0]
    site = done[1]
    while site < sites:
        end = copied(names, firsts[site], firsts[site + 1], to, at)
        to[end] = 9
        end = decimal(positions[site], to, end + 1)
        for column in range(width):
            if end >= 0:
                to[end] = 9
                end = ten_digits(values[site * width + column], high, low, exponent, to, end + 1)
        if end == UNDECIDED:
            break
        to[end] = 10
        at = end + 1
        site += 1
    done[0] = at
    done[1] = site
