"""The host loops that ship, on an emulator with every check: nothing out of bounds, nothing read before it is written."""

from typing import Any

import numpy as np
import pytest
from simtbed.engines.numpy import lanes
from simtbed.kernels.files import text_loops
from simtbed.kernels.pairhmm.host import files_scan, layout_rescaled
from simtbed.kernels.sfs.host import frequency
from simtbed.machine import banks, coalescing

from tests.native.one_thread import assert_native_agrees

RNG = np.random.default_rng(7)
TEXT = b"2 1\nACG III III III +++\n  acgtn  !!!!! ~~~~~ IIIII +++++ \nACGTTTN\n1 1\nA I I I +\nNN\n"


def _words(count: int) -> np.ndarray:
    return np.zeros(count, np.int64)


def columns_of(kind: Any, *fields: Any) -> Any:
    """Return a named tuple of arrays, whose fields are annotated as in a kernel."""
    return kind(*fields)


@pytest.mark.slow
def test_a_file_is_scanned_within_its_arrays() -> None:
    data = np.frombuffer(TEXT, np.uint8)
    assert assert_native_agrees(files_scan._without_blanks, data, len(data)) == len(data) - 1
    lines = TEXT.count(b"\n")
    assert assert_native_agrees(text_loops.newlines, data, len(data)) == lines
    assert_native_agrees(files_scan._line_ends, data, len(data), _words(lines))
    for text in (TEXT, TEXT.replace(b"ACGTTTN", b"ACXT"), TEXT[:40], TEXT.replace(b"III +++", b"II +++"), b"x y\n\n"):
        data = np.frombuffer(text, np.uint8)
        ends = files_scan.line_ends(data, True)
        capacity, columns = np.zeros(len(data) + 1, np.uint8), np.zeros(5 * (len(data) // 5 + 1), np.uint8)
        offsets = [_words(len(ends) + 1) for _ in range(4)]
        problem = columns_of(
            files_scan.ProblemColumns,
            columns,
            len(columns) // 5,
            offsets[0],
            capacity,
            offsets[1],
            offsets[2],
            offsets[3],
        )
        tidied = np.zeros(len(data), np.uint8)
        assert_native_agrees(files_scan._scan, data, ends, len(ends), problem, tidied, _words(7))


@pytest.mark.slow
def test_scores_are_written_within_their_capacity() -> None:
    scores = np.array([-1.5, -0.00000005, -123.4567891, 0.0, -np.inf, np.nan, -99999999.0, -7.0])
    units = _words(len(scores))
    assert_native_agrees(files_scan._round, scores, len(scores), units)
    files_scan._round(scores, len(scores), units)
    reads, haplotypes = np.array([2, 1, 1]), np.array([3, 2, 0])
    for table in (False, True):
        capacity = np.zeros(len(scores) * (files_scan.SCORE + 3 * files_scan.NUMBER) + 200, np.uint8)
        assert_native_agrees(files_scan._text, scores, units, reads, haplotypes, 3, table, 98, capacity)


@pytest.mark.slow
def test_streams_are_placed_within_their_arrays() -> None:
    letters = RNG.choice(np.frombuffer(b"ACGTN", np.uint8), 40)
    assert_native_agrees(layout_rescaled._encode_all, letters, 40, np.zeros(40, np.uint8))
    columns = [RNG.integers(0, 94, 40).astype(np.uint8) for _ in range(4)]
    assert_native_agrees(layout_rescaled._interleave, *columns, 40, np.zeros(40, np.uint32))
    starts = np.array([0, 7, 19, 40])
    assert_native_agrees(layout_rescaled._stream, letters, starts, 3, np.zeros(120, np.uint8))
    clamped = RNG.random(94 * 94) < 0.01
    flags = [np.zeros(3, np.bool_) for _ in range(2)]
    scores = columns_of(layout_rescaled.ReadScores, *columns[:3])
    assert_native_agrees(layout_rescaled._classify_each, starts, 3, scores, clamped, 94, *flags)
    begins, records = np.array([32, 40, 53, 75]), np.array([0, 2, 3])
    assert_native_agrees(layout_rescaled._find_cuts, begins, records, 2, 10, _words(4), _words(3), _words(3))
    cuts, pieces, _ = layout_rescaled._cuts(begins, records, 10)
    lengths, reads, record = np.diff(begins[cuts]), np.array([0, 2, 1]), np.array([0, 0, 1])
    places = _words(int(lengths.max()) + 2)
    haplotypes = columns_of(layout_rescaled.HaplotypePieces, pieces, cuts, begins, lengths)
    assert_native_agrees(layout_rescaled._count_items, reads, 3, record, haplotypes, places)
    count = layout_rescaled._count_items(reads, 3, record, haplotypes, places)
    blocks = -(-count // 4)
    outputs = np.zeros(16 * blocks, np.int32), np.zeros(4 * blocks, np.int32), np.zeros(blocks, np.int32)
    items = columns_of(layout_rescaled.ItemColumns, *outputs, count, 8)
    assert_native_agrees(
        layout_rescaled._place_items, reads, 3, record, np.array([0, 5, 9, 14]), haplotypes, np.cumsum(places), items
    )
    sums = RNG.random(5).astype(np.float32)
    assert_native_agrees(
        layout_rescaled._spread, sums, RNG.random(3), reads, 3, record, np.array([0, 2, 4, 5]), records, np.zeros(5)
    )


def test_frequencies_are_found_within_their_arrays() -> None:
    likelihoods = RNG.random((3, 5, 3))
    likelihoods[1] = 1
    assert_native_agrees(frequency._by_em, likelihoods.reshape(-1), 5, 3, np.zeros(3))


@pytest.mark.slow
def test_accesses_are_counted_within_their_arrays() -> None:
    index = np.concatenate([np.arange(32), RNG.integers(0, 300, 96)])
    active = np.concatenate([np.ones(64, np.bool_), RNG.random(32) < 0.5, np.zeros(32, np.bool_)])
    assert_native_agrees(coalescing.count_warps, index, active, 4, 3, 2, _words(3))
    assert_native_agrees(coalescing.count_packets, index, active, 4, 4, 3, 2, _words(3))
    for kind in (banks.LOAD, banks.STORE, banks.ATOMIC):
        assert_native_agrees(banks.count_warps, kind, index, active, 4, np.array([2, 0, 16]), _words(16), _words(3))
    holds = RNG.random(128) < 0.5
    masks = [np.zeros(128, np.bool_) for _ in range(2)]
    assert_native_agrees(lanes._population, active, 4, _words(2))
    assert_native_agrees(lanes._branch, active, holds, 4, *masks, _words(4))
    assert_native_agrees(lanes._guard, index - 5, active, 128, 200, _words(128), masks[0])
