"""Caches: traffic computable by hand, cold and warm, on one SM and on all."""

from dataclasses import replace

import numpy as np
import pytest
import simtbed as st
from simtbed import devices
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.model.access_lines import Kind, Total
from simtbed.model.caches import l1_bytes, simulate
from simtbed.model.launches import observe
from simtbed.model.line_trace import LineTrace, SourceTracer
from simtbed.model.traffic import Column
from simtbed.runtime.request import prepare_request

from tests.model.launches import (
    copy,
    exchange,
    float_total,
    halves,
    observed,
    observed_product,
    own_rows,
    reads,
    rows,
    spread,
    swap,
    table,
    total,
    written_and_read,
)

H200, K40, C2070 = devices.H200, devices.K40, devices.C2070
MIB = 1 << 20


@pytest.mark.slow
def test_a_cold_copy_reads_each_byte_once() -> None:
    launch = observed(copy, 1024)
    traffic = simulate(launch.lines, H200, 8, 0, cold=True)
    assert traffic.total(Column.SECTORS, Kind.LOAD) == traffic.total(Column.MISSES, Kind.LOAD) == 1024 * 256 * 4 // 32
    assert traffic.dram_read == 1024 * 256 * 4
    assert traffic.dram_written == 0  # it fits L2, which writes back
    assert traffic.l1_hit == 0.0 and traffic.l2_hit == 0.5  # stores always hit


@pytest.mark.slow
def test_a_warm_copy_that_fits_reads_nothing() -> None:
    launch = observed(copy, 1024)
    traffic = simulate(launch.lines, H200, 8, 0, cold=False)
    assert traffic.dram_bytes == 0 and traffic.l2_hit == 1.0
    assert traffic.total(Column.NEAR_HITS, Kind.LOAD) + traffic.total(Column.FAR_HITS, Kind.LOAD) == traffic.total(
        Column.SECTORS, Kind.LOAD
    )


@pytest.mark.slow
def test_later_blocks_change_their_sm_at_the_next_launch() -> None:
    """Half of them in the other L2 partition, without copies of half of their lines."""
    first, all_of_them = (simulate(observed(copy, blocks).lines, H200, 1, 0, cold=False) for blocks in (132, 8 * 132))
    assert first.total(Column.FAR_HITS) == 0 and first.l2_hit == 1.0
    assert all_of_them.total(Column.FAR_HITS, Kind.LOAD) / all_of_them.total(
        Column.SECTORS, Kind.LOAD
    ) == pytest.approx(7 / 8 / 4, abs=0.02)


@pytest.mark.slow
def test_a_half_of_l2_keeps_what_its_sms_store() -> None:
    """Each block reads its own stores, repeated at the next launch."""
    device = replace(H200, timing=replace(H200.timing, l1_size=64))
    lines = observed(written_and_read, 132).lines
    cold, warm = (simulate(lines, device, 1, 0, cold) for cold in (True, False))
    assert cold.total(Column.FAR_HITS, Kind.LOAD) > 0 == warm.total(Column.FAR_HITS, Kind.LOAD)


def test_a_copy_that_is_larger_than_l2_is_never_warm() -> None:
    launch = observed(copy, 4096)  # 8 MiB
    small = replace(H200, l2=1 * MIB)
    traffic = simulate(launch.lines, small, 8, 0, cold=False)
    assert traffic.dram_read == pytest.approx(4 * MIB, rel=0.02)
    assert traffic.dram_written == pytest.approx(4 * MIB, rel=0.02)


def test_what_a_block_reads_again_is_in_l1() -> None:
    traffic = simulate(observed(reads, 64, TIMES=8, STRIDE=1).lines, H200, 8, 0, cold=True)
    assert traffic.l1_hit == pytest.approx(7 / 8)
    assert traffic.total(Column.L1_HITS, Kind.STORE) == 0


@pytest.mark.slow
def test_l1_holds_its_capacity() -> None:
    """8 blocks of 256 lanes with 32 bytes each: 64 KiB of sectors, 256 KiB of lines."""
    launch = observed(reads, 8 * 132, elements=8 * 132 * 256 * 32, TIMES=4, STRIDE=32)
    roomy = simulate(launch.lines, replace(H200, timing=replace(H200.timing, l1_size=1 << 20)), 8, 0, cold=True)
    small = simulate(launch.lines, replace(H200, timing=replace(H200.timing, l1_size=64 << 10)), 8, 0, cold=True)
    assert roomy.l1_hit == pytest.approx(3 / 4, abs=0.02)
    assert small.l1_hit < 0.1


def test_shared_memory_takes_from_l1() -> None:
    assert l1_bytes(H200, 0, 8) == 256 << 10
    assert l1_bytes(H200, 30 << 10, 4) == (256 - 132) << 10  # 4 * 31 KiB: the carve-out of 132
    assert l1_bytes(H200, 227 << 10, 1) == (256 - 228) << 10
    assert l1_bytes(K40, 0, 8) == 0


def test_a_table_that_all_blocks_read_is_read_once_from_memory() -> None:
    launch = observed(table, 264, elements=1 << 14, n=1 << 14)
    traffic = simulate(launch.lines, H200, 8, 0, cold=True)
    assert traffic.dram_read == 4 << 14
    assert traffic.l2_hit > 0.95


@pytest.mark.slow
def test_two_halves_of_l2_hold_lines_of_each_other_twice() -> None:
    """A table of three quarters of L2 fits in one partition, not in two with copies."""
    launch = observed(table, 264, elements=3 << 16, n=3 << 16)  # 768 KiB
    divided = replace(H200, l2=1 * MIB, timing=replace(H200.timing, l1_size=1))
    undivided = replace(divided, timing=replace(divided.timing, l2_halves=1))
    undivided_reads, divided_reads = (
        simulate(launch.lines, device, 1, 0, cold=True).dram_read for device in (undivided, divided)
    )
    assert undivided_reads == 3 << 18
    assert simulate(launch.lines, undivided, 1, 0, cold=True).total(Column.FAR_HITS) == 0
    assert simulate(launch.lines, divided, 1, 0, cold=True).total(Column.FAR_HITS) > 0
    assert divided_reads >= undivided_reads


def test_warps_wait_at_barriers() -> None:
    """The block reads all of x before it writes."""
    launch = observed(exchange, 1, BLOCK=256, STRIDE=1)
    records, _, _ = launch.lines.sorted
    phases = records.reshape(-1, 4)[:, 1] >> 32
    assert sorted(phases.tolist()) == [0] * 8 + [1] * 8
    traffic = simulate(launch.lines, H200, 8, 1024, cold=True)
    assert traffic.total(Column.SECTORS) == 2 * 256 * 4 // 32


def busiest(lines: LineTrace, slices: int = 96) -> float:
    """Return the passes of atomics on the busiest slice."""
    return lines.busiest_slice_cycles(slices, 0.0, 1.0)


def test_atomics_bypass_l1_and_load_one_slice() -> None:
    everything, spread = (observed(total, 16, MASK=mask).lines for mask in (0, 255))
    assert busiest(everything) == 16 * 256
    assert busiest(spread) == 16 * 4 * 2  # per line, with two passes per sector
    assert spread.hottest_float_adds == 0
    assert simulate(everything, H200, 8, 0, cold=True).total(Column.L1_HITS, Kind.ATOMIC) == 0


def test_slices_are_busy_as_far_as_memory_spreads() -> None:
    """4 KiB use all eight slices of a group; larger ranges nearly all."""
    once = observed(total, 4, MASK=1023).lines
    assert busiest(once) == 4 * 4 * 2  # 4 of 32 lines with two passes for each of four sectors
    wide = observed(total, 1024, MASK=(1 << 18) - 1).lines
    even = 2 * 4 * 8 * 1024
    for slices in (96, 80):
        assert even / slices < busiest(wide, slices=slices) < 2 * even / slices
    assert busiest(wide, slices=8) == even / 8


def test_stores_keep_slices_busy() -> None:
    lines = observed(copy, 16).lines
    assert lines.busiest_slice_cycles(8, 3.0, 1.0) == 3.0 * 16 * 8 / 8
    assert lines.busiest_slice_cycles(8, 0.0, 1.0) == 0.0


def test_float_additions_are_counted_by_address() -> None:
    assert [observed(float_total, 16, MASK=mask).lines.hottest_float_adds for mask in (0, 31)] == [16 * 256, 16 * 8]


def test_fetching_atomics_are_distinguished() -> None:
    lines = observed(swap, 2).lines
    atomic = np.flatnonzero(lines.kinds == Kind.ATOMIC)
    assert len(atomic) == 2 and set(lines.sites.fetching) == {int(atomic[0])}


@pytest.mark.parametrize(("stride", "cycles"), [(1, 1), (2, 2), (32, 32)])
def test_words_of_one_bank_of_l1_are_read_one_after_another(stride: int, cycles: int) -> None:
    launch = observed(reads, 2, elements=2 * 256 * 33, TIMES=3, STRIDE=stride)
    traffic = simulate(launch.lines, H200, 8, 0, cold=True)
    assert (
        traffic.total(Column.CYCLES, Kind.LOAD)
        == cycles * traffic.total(Column.ACCESSES, Kind.LOAD)
        == cycles * 2 * 8 * 3
    )


def test_consecutive_stores_merge() -> None:
    """Four stores per warp, to words of the same 16 sectors."""
    once = simulate(observed(rows, 132, outputs=4, READ=0, WORDS=4).lines, H200, 1, 0, cold=True)
    assert once.total(Column.SECTORS, Kind.STORE) == 4 * 16 * 8 * 132
    assert once.total(Column.MERGEABLE_SECTORS) == 3 * 16 * 8 * 132
    assert once.total(Column.L2_REQUESTS, Kind.STORE) == 4 * 8 * 132 and once.l2_sectors == 16 * 8 * 132 + once.total(
        Column.SECTORS, Kind.LOAD
    )
    assert once.total(Column.STORE_REHITS) == 3 * 4 * 8 * 132 and once.total(
        Column.STORE_REUSE_DISTANCE
    ) == 4 * once.total(Column.STORE_REHITS)


def test_closed_lines_do_not_merge() -> None:
    lines = observed(rows, 132, outputs=8, READ=0, WORDS=8).lines
    few, enough = (
        simulate(lines, replace(H200, timing=replace(H200.timing, open_lines=n)), 1, 0, cold=True) for n in (7, 8)
    )
    assert few.total(Column.MERGEABLE_SECTORS) == 0 and enough.total(Column.MERGEABLE_SECTORS) == 7 * 32 * 8 * 132


def test_unmerged_stores_are_l2_requests() -> None:
    """Of four stores to the same sectors, half of the mergeable ones do not merge."""
    once = simulate(observed(rows, 132, outputs=4, READ=0, WORDS=4).lines, H200, 1, 0, cold=True)
    half, loads, least = replace(once, merge_ratio=0.5), once.total(Column.SECTORS, Kind.LOAD), 16 * 8 * 132
    assert once.stored == (4 * 8 * 132, least) and half.stored == (4 * 8 * 132 * 2.5, 2.5 * least)
    assert half.l2_sectors == loads + 2.5 * least
    assert half.l2_hit == (once.total(Column.NEAR_HITS) + 1.5 * least) / half.l2_sectors


def test_a_sector_fetches_its_pair() -> None:
    """The other half of the sectors is then in L2."""
    lines = observed(halves, 64, elements=64 * 256 * 16).lines
    traffic = simulate(lines, H200, 8, 0, cold=True)
    assert traffic.total(Column.MISSES, Kind.LOAD) == 64 * 256 and traffic.dram_read == 64 * 256 * 64


def test_merging_does_not_depend_on_sampling() -> None:
    for words in (4, 8):
        complete, sampled = (
            observed(rows, 528, most=most, outputs=words, READ=0, WORDS=words).lines for most in (1 << 22, 1 << 14)
        )
        assert complete.sampling_stride == 1 < 4 <= sampled.sampling_stride
        whole, estimate = (
            simulate(lines, H200, 8, 0, cold=True).total(Column.MERGEABLE_SECTORS) for lines in (complete, sampled)
        )
        assert estimate == pytest.approx(whole, rel=0.05)


def test_fermi_moves_whole_lines_and_kepler_keeps_nothing_in_l1() -> None:
    fermi = simulate(
        observed(reads, 14, elements=14 * 256 * 32, device=C2070, TIMES=1, STRIDE=32).lines, C2070, 6, 0, True
    )
    assert fermi.dram_read == 14 * 256 * 128
    kepler = simulate(observed(reads, 15, device=K40, TIMES=4, STRIDE=1).lines, K40, 8, 0, True)
    assert kepler.l1_hit == 0.0


def test_blocks_that_were_not_traced_are_more_of_the_same() -> None:
    launch = observed(copy, 8192)
    tracer = SourceTracer(launch.request, most=1 << 22, accesses=8192 * 4)
    LlvmEngine(threads=1).run(replace(launch.request, trace=tracer))  # the progress of other threads varies
    partial = tracer.lines
    assert 1000 < partial.blocks < 4096
    whole, less = (simulate(lines, H200, 8, 0, cold=True) for lines in (launch.lines, partial))
    assert less.blocks == whole.blocks == 8192 and less.traced_blocks == partial.blocks
    assert less.dram_read == pytest.approx(whole.dram_read, rel=0.01)
    assert less.total(Column.SECTORS) == pytest.approx(whole.total(Column.SECTORS), rel=0.01)


def test_records_are_complete_for_any_threads() -> None:
    launch = observed(copy, 3000)
    records, first, lines = launch.lines.sorted
    assert len(records) == 4 * 2 * 8 * 3000 and first[-1] == 2 * 8 * 3000
    owners = records.reshape(-1, 4)[:, 0]
    assert (np.diff(owners) >= 0).all() and len(np.unique(lines >> 10)) == 2 * 3000 * 8


@pytest.mark.slow
def test_sampled_lines_represent_all() -> None:
    """A table larger than L1, read by all blocks: rates from one line of 16 equal those of all lines."""
    complete = observed(table, 264, elements=1 << 17, n=1 << 17)
    sampled = observed(table, 264, elements=1 << 17, n=1 << 17, most=1 << 17)
    assert complete.lines.sampling_stride == 1 < 8 <= sampled.lines.sampling_stride
    whole, estimate = (simulate(launch.lines, H200, 8, 0, cold=True) for launch in (complete, sampled))
    assert estimate.total(Column.SECTORS) == whole.total(Column.SECTORS)
    assert estimate.l1_hit == pytest.approx(whole.l1_hit, abs=0.02) and estimate.l2_hit == pytest.approx(
        whole.l2_hit, abs=0.02
    )
    assert estimate.dram_read == pytest.approx(whole.dram_read, rel=0.05)


@pytest.mark.slow
def test_concurrent_blocks_share_lines_under_sampling() -> None:
    """Rows of a matrix remain in L1 while columns pass: unsampled accesses take time too."""
    complete, sampled = observed_product(256), observed_product(256, most=1 << 15)
    assert complete.lines.sampling_stride == 1 < 32 <= sampled.lines.sampling_stride
    whole, estimate = (simulate(launch.lines, H200, 32, 0, cold=False) for launch in (complete, sampled))
    assert whole.l1_hit > 0.8
    assert estimate.l1_hit == pytest.approx(whole.l1_hit, abs=0.05)


def test_device_memory_moves_two_sectors_at_a_time() -> None:
    scattered = observed(reads, 64, elements=64 * 256 * 32, TIMES=1, STRIDE=32)
    assert simulate(scattered.lines, H200, 8, 0, cold=True).dram_read == 64 * 256 * 64
    halves = observed(reads, 64, elements=64 * 256 * 16, TIMES=1, STRIDE=16)
    assert simulate(halves.lines, H200, 8, 0, cold=True).dram_read == 64 * 256 * 64, "one sector of each half"
    pairs = observed(reads, 64, elements=64 * 256 * 8, TIMES=1, STRIDE=8)
    assert simulate(pairs.lines, H200, 8, 0, cold=True).dram_read == 64 * 256 * 32


@pytest.mark.parametrize(("stride", "sectors", "filled"), [(1, 4, 0), (8, 4, 4), (16, 2, 2), (32, 1, 1)])
def test_partial_writes_are_filled(stride: int, sectors: int, filled: int) -> None:
    """Written sectors per line, and partially written ones. A short line takes the time of 5.5 sectors."""
    blocks = 16384 // stride
    launch = observed(spread, blocks, outputs=stride, STRIDE=stride)
    traffic = simulate(launch.lines, replace(H200, l2=1 * MIB), 8, 0, cold=True)
    lines, loaded = blocks * 256 * stride // 32, blocks * 256 * 4
    assert traffic.dram_written == pytest.approx(32 * sectors * lines, rel=0.05)
    assert traffic.dram_filled == pytest.approx(32 * filled * lines, rel=0.05)
    assert traffic.dram_read == loaded + traffic.dram_filled
    assert traffic.dram_wasted == pytest.approx(32 * max(0.0, 5.5 - 2 * filled) * lines if filled else 0, rel=0.05)


def test_l2_limits_dirty_lines() -> None:
    """Repeated writes: a tenth of L2 remains dirty; three quarters are mostly written back each time."""
    for share, written in ((0.1, 0.0), (0.75, 1.0)):
        blocks = int(share * MIB / 1024)
        launch = observed(copy, blocks)
        traffic = simulate(launch.lines, replace(H200, l2=1 * MIB), 8, 0, cold=False)
        assert traffic.dram_written == pytest.approx(written * 1024 * blocks, abs=0.1 * 1024 * blocks)


def test_what_a_block_has_written_is_in_l1() -> None:
    """Fully written sectors hit, for any thread of the SM."""
    traffic = simulate(observed(written_and_read, 132).lines, H200, 8, 0, cold=True)
    assert traffic.l1_hit == pytest.approx(1 / 2)


def test_repeated_loads_of_sectors_by_a_warp_are_counted() -> None:
    """In rows of 32 words every eighth load touches other sectors."""
    lines = observed(own_rows, 64, elements=64 * 256 * 32, TIMES=32).lines
    (load,) = np.flatnonzero((lines.kinds == Kind.LOAD) & (lines.totals[:, Total.ACCESSES] > 0))
    assert lines.totals[load, Total.SAME_SECTORS] == lines.totals[load, Total.ACCESSES] * 7 // 8


@st.kernel
def wide_locals(which: st.Global[st.i32], out: st.Global[st.i64], LEFT: st.Const) -> None:
    """Each lane stores eight bytes to a given element of its own array."""
    held = st.local(st.i64, 4)
    if st.thread.x < LEFT:
        held[which[st.thread.x]] = st.i64(7)
    out[st.thread.x] = held[0]


@pytest.mark.parametrize(
    ("which", "left", "lines", "sectors", "partial"),
    [([0] * 32, 32, 2, 8, 0), ([0] * 32, 4, 2, 2, 2), ([k % 2 for k in range(32)], 32, 4, 16, 16), ([0] * 16 + [1] * 16, 32, 4, 8, 0)],
)  # fmt: skip
def test_local_arrays_are_interleaved_by_lane(
    which: list[int], left: int, lines: int, sectors: int, partial: int
) -> None:
    """An element has two lines, with eight lanes per sector."""
    args = {"which": np.array(which, np.int32), "out": np.zeros(32, np.int64), "LEFT": left}
    result = observe(prepare_request(wide_locals, grid=1, block=32, args=args, device=H200)).lines
    (store,) = np.flatnonzero(result.kinds == Kind.LOCAL_STORE)
    assert result.totals[store, [Total.LINES, Total.SECTORS, Total.PARTIAL_SECTORS]].tolist() == [
        lines,
        sectors,
        partial,
    ]


@st.kernel
def strewn(out: st.Global[st.i32], MASK: st.Const) -> None:
    """Additions to scattered words."""
    i = st.block.x * st.block_dim.x + st.thread.x
    for t in range(16):
        at = st.u32(t * 65536 + i) * st.u32(2654435761)
        st.atomic_add(out, st.i32(at >> st.u32(7)) & MASK, 1)


@pytest.mark.parametrize(("kib", "slices"), [(4, 8), (16, 24), (64, 32), (256, 55), (1024, 68)])
def test_fewer_pieces_of_memory_fill_the_busiest_slice(kib: int, slices: int) -> None:
    """As even as additions on an H200: 0.75 per slice and cycle, 6.0 to 50.6 in total."""
    args = {"out": np.zeros(256 * kib, np.int32), "MASK": 256 * kib - 1}
    lines = observe(prepare_request(strewn, grid=128, block=512, args=args, device=H200)).lines
    assert 16 * 65536 / lines.busiest_slice_cycles(96, 0.0, 1.0) == pytest.approx(slices, rel=0.25)
