"""Native loops over the bases of simulated reads: errors, letters and qualities, records as text."""

from __future__ import annotations

from typing import NamedTuple

import simtbed as st
from simtbed import Global, f64, i64, u8
from simtbed.native import native

from ...files.text_loops import copied, decimal

WORST = 0.5
"""Maximum error rate of a base."""
WORST_QUALITY, BEST_QUALITY = 2, 41
LETTERS = 0x54474341
"""A, C, G, T as the bytes of a word."""


class SampleColumns(NamedTuple):
    """Columns of `ReadSamples`. reads: number of reads."""

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
    """Return the error rate of base `cycle` of a read."""
    along = f64(cycle) / f64(max(length - 1, 1))
    return min((1.0 + 4.0 * (along * along)) * luck * factor, WORST)


@native
def count_errors(lengths: Global[i64], luck: Global[f64], reads: i64, factor: f64, chances: Global[f64]) -> i64:
    """Return the number of wrong bases."""
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
    samples: SampleColumns,
    qualities: Global[f64],
    text: Global[u8],
    truth: Global[u8],
    quality: Global[u8],
) -> None:
    """Write the reads' letters, with errors and without, and their qualities, with a newline after each read."""
    base = i64(0)
    to = i64(0)
    errors = i64(0)
    for read in range(samples.reads):
        length = samples.lengths[read]
        quality_value = i64(BEST_QUALITY)
        for cycle in range(length):
            true_base = i64(0)
            if samples.backward[read]:
                true_base = 3 - number_of(reference[samples.starts[read] + length - 1 - cycle])
            else:
                true_base = number_of(reference[samples.starts[read] + cycle])
            rate = rate_of(cycle, length, samples.luck[read], samples.factor)
            called = true_base
            if samples.chances[base] < rate:
                called = (true_base + samples.shifts[errors]) & 3
                errors += 1
            while quality_value > WORST_QUALITY and rate > qualities[quality_value]:  # rates increase along a read
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
    """Write reads as FASTQ or FASTA, named `read` and a number from `first` on; return the length."""
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
