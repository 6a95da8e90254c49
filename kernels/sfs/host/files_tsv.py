"""Table of spectra: a header, then chromosome, position and 2N + 1 values per site."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from simtbed import Global, f64, i64, u8
from simtbed.native import native

from ...files.decimals import MAX_CHARACTERS, UNDECIDED, Powers, power_table, ten_digits
from ...files.text_loops import copied, decimal
from .problem import Floats, Problem

NUMBER = 20
"""Characters of the longest position."""


class Table(NamedTuple):
    """Columns of a table. names: concatenated chromosomes. firsts: offset of each name. values: row by row."""

    names: Global[u8]
    firsts: Global[i64]
    positions: Global[i64]
    values: Global[f64]
    sites: i64
    width: i64


def header(problem: Problem) -> bytes:
    """Return the first line."""
    return "\t".join(["chrom", "pos", *map(str, range(2 * problem.individuals + 1))]).encode() + b"\n"


def rows(problem: Problem, answer: Floats) -> memoryview:
    """Return one line per site, with values as by '%.10g'."""
    sites, width = answer.shape
    names = [name.encode() for name in problem.chromosomes]
    lengths = np.fromiter(map(len, names), np.int64, len(names))
    first = np.concatenate([[0], np.cumsum(lengths)])
    joined = np.frombuffer(b"".join(names), np.uint8)
    to = np.empty(len(joined) + sites * (width * (MAX_CHARACTERS + 1) + NUMBER + 1), np.uint8)
    values, positions = np.ascontiguousarray(answer).reshape(-1), problem.positions
    table = Table._make((joined, first, positions, values, sites, width))
    progress = np.zeros(2, np.int64)
    while True:
        format_rows(table, power_table(), to, progress)
        length, site = progress.tolist()
        if site == sites:
            return to[:length].data
        numbers = "\t".join(["%.10g"] * width) % tuple(answer[site].tolist())  # an undecided number: Python rounds it
        line = names[site] + f"\t{positions[site]}\t{numbers}\n".encode()
        to[length : length + len(line)] = np.frombuffer(line, np.uint8)
        progress[:] = length + len(line), site + 1


@native
def format_rows(table: Table, powers: Powers, to: Global[u8], progress: Global[i64]) -> None:
    """Write rows from site progress[1] on, at `to[progress[0]]`, up to a row with an undecided number. Updates `progress`."""
    at = progress[0]
    site = progress[1]
    while site < table.sites:
        end = copied(table.names, table.firsts[site], table.firsts[site + 1], to, at)
        to[end] = 9
        end = decimal(table.positions[site], to, end + 1)
        for column in range(table.width):
            if end >= 0:
                to[end] = 9
                end = ten_digits(table.values[site * table.width + column], powers, to, end + 1)
        if end == UNDECIDED:
            break
        to[end] = 10
        at = end + 1
        site += 1
    progress[0] = at
    progress[1] = site
