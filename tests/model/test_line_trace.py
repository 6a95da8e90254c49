"""Traces of executed SASS: equal for interpreted and compiled code; lines, sectors, phases and sites of accesses."""

from collections.abc import Sequence

import numpy as np
from simtbed import devices
from simtbed.compiled.opcode_classes import Access
from simtbed.model.access_lines import RECORD, Kind, RecordWord, Total
from simtbed.model.access_sites import sites_of_sass
from simtbed.model.line_trace import LineTrace

from tests.sass.programs import run

_PROGRAM = (
    "S2R R0, SR_TID.X", "S2R R9, SR_CTAID.X", "LDC.64 R2, c[0x0][0x210]", "LDC R1, c[0x0][0x28]", "IMAD R9, R9, 0x40, R0",
    "IMAD.WIDE.U32 R4, R9, 0x8, R2", "LDG.E.64 R6, desc[UR4][R4.64]", "STL [R1+-0x8], R6", "SHF.L.U32 R10, R0, 0x2, RZ",
    "LDC R11, c[0x3][R10]", "BAR.SYNC.DEFER_BLOCKING 0x0", "MOV R7, 1.0", "ISETP.LT.U32.AND P0, PT, R0, 0x20, PT",
    "@P0 STG.E desc[UR4][R4.64], R7", "REDG.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR4][R2.64], R7",
    "ATOMG.E.ADD.STRONG.GPU PT, R8, desc[UR4][R2.64+0x4], R0", "LDL R6, [R1+-0x8]", "STS [R10], R6", "EXIT",
)  # fmt: skip
_BLOCKS, _WARPS = 3, 2


def traces(most: int) -> list[LineTrace]:
    """Return the traces of the interpreted and of the compiled program."""
    result: list[LineTrace] = []

    def tracer(accesses: Sequence[Access], blocks: int) -> LineTrace:
        result.append(LineTrace(sites_of_sass(accesses), devices.H200, blocks, blocks, _WARPS, most))
        return result[-1]

    arrays = {"x": np.zeros(1 << 16, np.uint32)}
    banks = {3: np.arange(64, dtype=np.uint32).tobytes()}
    run(*_PROGRAM, arrays=arrays, grid=_BLOCKS, block=32 * _WARPS, banks=banks, tracer=tracer)
    return result


def in_order(trace: LineTrace) -> list[tuple[list[int], list[int]]]:
    """Return the records by warp, each without its place among the lines, and its lines."""
    words, _, lines = trace.sorted
    records = words.reshape(-1, RECORD)
    ends = records[:, RecordWord.FIRST_LINE] + (records[:, RecordWord.NUMBER_LINES] & 0xFF)
    spans = zip(records[:, RecordWord.FIRST_LINE].tolist(), ends.tolist(), strict=True)
    return [(row.tolist(), lines[a:b].tolist()) for row, (a, b) in zip(np.delete(records, 2, 1), spans, strict=True)]


def test_interpreted_and_compiled_code_have_equal_traces() -> None:
    for most in (1 << 12, 8):
        interpreted, compiled = traces(most)
        assert in_order(interpreted) == in_order(compiled)
        assert np.array_equal(interpreted.totals, compiled.totals)
        assert interpreted.sampling_stride == compiled.sampling_stride
        assert interpreted.hottest_float_adds == compiled.hottest_float_adds == 32 * _BLOCKS * _WARPS


def test_each_memory_instruction_is_a_site() -> None:
    trace, _ = traces(1 << 12)
    sites = trace.sites
    assert sites.kinds.tolist() == [
        Kind.LOAD, Kind.LOCAL_STORE, Kind.CONSTANT, Kind.STORE, Kind.ATOMIC, Kind.ATOMIC, Kind.LOCAL_LOAD,
    ]  # fmt: skip
    assert [_PROGRAM[n].split()[0][:3] for n in np.flatnonzero(sites.site_of >= 0)] == [
        "LDG", "STL", "LDC", "@P0", "RED", "ATO", "LDL",
    ]  # fmt: skip
    assert sites.size.tolist() == [8, 4, 4, 4, 4, 4, 4] and sites.fetching == {5}
    assert sites.float_add.tolist() == [0, 0, 0, 0, 1, 0, 0]
    warps = _BLOCKS * _WARPS
    assert trace.totals[:, Total.ACCESSES].tolist() == [warps, warps, warps, _BLOCKS, warps, warps, warps]
    assert trace.totals[:, Total.LINES].tolist() == [2 * warps, warps, 32 * warps, 2 * _BLOCKS, warps, warps, warps]
    assert trace.totals[:, Total.SECTORS].tolist() == [8 * warps, 4 * warps, 0, 8 * _BLOCKS, warps, warps, 4 * warps]


def test_accesses_have_the_barriers_that_their_block_has_passed() -> None:
    trace, _ = traces(1 << 12)
    words = trace.sorted[0].reshape(-1, 4)[:, 1]
    assert {(int(word & 0xFFFF), int(word >> 32)) for word in words} == {(0, 0), (1, 0), (3, 1), (4, 1), (5, 1), (6, 1)}


def test_all_lines_are_sampled_alike() -> None:
    whole, sampled = traces(1 << 12)[0], traces(8)[0]
    assert whole.sampling_stride == 1 < sampled.sampling_stride and 0 < len(sampled.sorted[2]) <= 8
    assert set(sampled.sorted[2].tolist()) <= set(whole.sorted[2].tolist())
    assert np.array_equal(sampled.totals, whole.totals)
