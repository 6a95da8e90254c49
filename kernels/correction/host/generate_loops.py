"""The loops over every base of simulated reads, compiled: where errors are, letters and qualities, records as text."""

from __future__ import annotations

from typing import NamedTuple

import simtbed as st
from simtbed import Global, f64, i64, u8
from simtbed.native import native

from ...files.text_loops import copied, decimal

WORST = 0.5
"""Errors a base in the worst reads, at their ends."""
WORST_QUALITY, BEST_QUALITY = 2, 41
LETTERS = 0x54474341
"""A, C, G, T as the bytes of a word."""


class DrawColumns(NamedTuple):
    """Columns of `ReadDraws`. reads: number of reads."""

    lengths: Global[i64]
    starts: Global[i64]
    backward: Global[bool]
    luck: Global[f64]
    reads: i64
    factor: f64
    chances: Global[f64]
    shifts: Global[i64]


@st.device
def rate_of(cycle: i64, length: i64, luck: f64, factor: f64) -> f64:
    """Of errors in the base `cycle` of a read."""
    along = f64(cycle) / f64(max(length - 1, 1))
    return min((1.0 + 4.0 * (along * along)) * luck * factor, WORST)


@native
def count_errors(lengths: Global[i64], luck: Global[f64], reads: i64, factor: f64, chances: Global[f64]) -> i64:
    """How many bases are wrong."""
    at = i64(0)
    wrong = i64(0)
    for read in range(reads):
        length = lengths[read]
        for cycle in range(length):
            wrong += i64(chances[at + cycle] < rate_of(cycle, length, luck[read], factor))
        at += length
    return wrong


@st.device
def number_of(letter: u8) -> i64:
    """A 0, C 1, G 2, T 3."""
    code = i64((letter >> 1) & 3)
    return code ^ (code >> 1)


@native
def make_reads(
    reference: Global[u8],
    draws: DrawColumns,
    qualities: Global[f64],
    text: Global[u8],
    truth: Global[u8],
    quality: Global[u8],
) -> None:
    """The reads' letters, with errors and without, and their qualities, a newline after each read."""
    base = i64(0)
    to = i64(0)
    errors = i64(0)
    for read in range(draws.reads):
        length = draws.lengths[read]
        quality_value = i64(BEST_QUALITY)
        for cycle in range(length):
            true_base = i64(0)
            if draws.backward[read]:
                true_base = 3 - number_of(reference[draws.starts[read] + length - 1 - cycle])
            else:
                true_base = number_of(reference[draws.starts[read] + cycle])
            rate = rate_of(cycle, length, draws.luck[read], draws.factor)
            called = true_base
            if draws.chances[base] < rate:
                called = (true_base + draws.shifts[errors]) & 3
                errors += 1
            while quality_value > WORST_QUALITY and rate > qualities[quality_value]:  # rates rise along a read
                quality_value -= 1
            truth[to] = u8((LETTERS >> (8 * true_base)) & 255)
            text[to] = u8((LETTERS >> (8 * called)) & 255)
            quality[to] = u8(quality_value + 33)
            base += 1
            to += 1
        truth[to] = 10
        text[to] = 10
        quality[to] = 10
        to += 1


@native
def write_records(
    text: Global[u8], quality: Global[u8], offsets: Global[i64], reads: i64, first: i64, fastq: bool, to: Global[u8]
) -> i64:
    """Reads as FASTQ or FASTA, called `read` and a number from `first` on; the length."""
    at = i64(0)
    for read in range(reads):
        begin = offsets[read]
        end = offsets[read + 1]
        to[at] = u8(64) if fastq else u8(62)
        to[at + 1] = 114
        to[at + 2] = 101
        to[at + 3] = 97
        to[at + 4] = 100
        at = decimal(first + read, to, at + 5)
        to[at] = 10
        at = copied(text, begin, end, to, at + 1)
        if fastq:
            to[at] = 43
            to[at + 1] = 10
            at = copied(quality, begin, end, to, at + 2)
    return at
