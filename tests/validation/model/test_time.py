"""Execution time of launches bound by a known resource, and the gain of changes."""

from dataclasses import replace

import numpy as np
import pytest
from simtbed import devices
from simtbed.model import sm_simulator, time
from simtbed.model.access_lines import Kind
from simtbed.model.explain import changes, text
from simtbed.model.instruction_stream import as_sectors
from simtbed.model.launches import counting_rules, observe
from simtbed.model.time import estimate
from simtbed.model.traffic import Column
from simtbed.model.validated import VALIDATED
from simtbed.runtime.request import prepare_request

from tests.model.launches import (
    again,
    broadcast,
    chain,
    copy,
    exchange,
    float_total,
    observed,
    read_again,
    reads,
    swap,
    table_traffic,
    total,
    uneven,
    voted,
)
from tests.validation.launches.kinds import cases

H200, H100, A100, K40 = devices.H200, devices.H100, devices.A100, devices.K40
ROWS = devices.DEVICES.values()


def test_a_large_copy_takes_what_device_memory_takes() -> None:
    """Measured on an H200: 4.52 TB/s of reads; block launches take less."""
    result = estimate(observed(copy, 1 << 17), H200)
    assert 8 * 256 * (1 << 17) / result.limits["DRAM"] / 1e6 == pytest.approx(4.52, rel=0.01)
    assert result.bound == "blocks" and result.limits["DRAM"] < result.limits["blocks"] < result.time_us


def test_the_two_hoppers_differ_as_their_memories_do() -> None:
    launch = observed(copy, 1 << 17)
    memories = (one.bandwidth * one.timing.dram_share for one in (H200, H100))
    ratio = estimate(launch, H100).limits["DRAM"] / estimate(launch, H200).limits["DRAM"]
    assert ratio == pytest.approx(next(memories) / next(memories), rel=1e-3)
    busy = observed(chain, 4096, TURNS=400)
    later = (H100.timing.launch - H200.timing.launch) / 1000
    assert estimate(busy, H100).time_us == pytest.approx(estimate(busy, H200).time_us + later, rel=0.02)


def test_arithmetic_takes_what_its_pipe_takes() -> None:
    """Measured on an H200: 32.6 T fused multiply-adds per second."""
    result = estimate(observed(chain, 132 * 8 * 4, TURNS=400), H200)
    operations = 132 * 8 * 4 * 256 * 800
    assert result.limits["fp32"] == pytest.approx(operations / 33.45e6, rel=0.01)
    assert result.bound in ("fp32", "issue")


def test_a_single_warp_takes_its_critical_path() -> None:
    """800 dependent operations of 4 cycles each."""
    result = estimate(observed(chain, 1, 32, TURNS=800), H200)
    assert result.bound == "latency"
    assert result.limits["latency"] * H200.clock == pytest.approx(1600 * 4, rel=0.05)
    assert any("small grid" in remark for remark in result.remarks)


def test_more_warps_hide_the_latency_of_each() -> None:
    """1 to 8 blocks per SM take the same time until the pipe is full."""
    times = [estimate(observed(chain, 132 * n, 128, TURNS=400), H200).time_us for n in (1, 2, 4, 8, 16)]
    assert times[1] == pytest.approx(times[0], rel=0.1)
    assert times[4] > 1.5 * times[2]


def test_bank_conflicts_cost_what_they_serialise() -> None:
    free, worst = (estimate(observed(exchange, 4096, STRIDE=stride, BLOCK=256), H200) for stride in (1, 32))
    assert worst.limits["L1"] > 10 * free.limits["L1"]
    assert worst.bound == "L1"


def test_atomics_on_one_address_are_serialized() -> None:
    contended, spread = (estimate(observed(total, 4096, MASK=mask), H200) for mask in (0, 4095))
    assert contended.bound == "atomics" and contended.time_us > 10 * spread.time_us


def test_float_additions_to_one_address_are_slower() -> None:
    whole, floating = (estimate(observed(kernel, 1024, MASK=0), H200) for kernel in (total, float_total))
    assert floating.limits["atomics"] == pytest.approx(3.48 / 1.45 * whole.limits["atomics"])


def test_atomics_that_return_a_value_take_longer() -> None:
    """Measured on an H200: 51 or 39.5 sectors per cycle, one lane each."""
    n = 1 << 12
    fast = replace(H200, timing=replace(H200.timing, atomic_interval=0.01))
    slow = replace(fast, timing=replace(fast.timing, fetch_rate=fast.timing.atomic_rate))
    result, without = (estimate(observed(swap, n), device).limits["atomics"] for device in (fast, slow))
    assert result == pytest.approx((4 / 51 + 4 / 39.5) * 8 * n / 1980, rel=0.01)
    assert without == pytest.approx(8 / 51 * 8 * n / 1980, rel=0.01)


def test_stores_to_few_lines_keep_slices_of_l2_busy() -> None:
    """Stores to all of memory or repeatedly to eight lines: 2.2 cycles per slice each."""
    few = estimate(observed(again, 1 << 12, MASK=255), H200)
    assert few.limits["slices"] == pytest.approx(2.2 * (1 << 12) * 8 / 8 / 1980)
    assert few.time_us > few.limits["slices"]
    assert estimate(observed(again, 1 << 12, MASK=(1 << 20) - 1), H200).limits["slices"] < few.limits["slices"] / 8


def test_l2_gives_few_sectors_of_many_lines_more_slowly() -> None:
    """Measured on an H200: 82 lines per cycle with one sector read, 110 sectors of full lines; 62 written lines."""
    timing = H200.timing
    sectors = timing.l2_bandwidth * 1000 / 32 / H200.clock
    assert as_sectors(1, 1, H200, stored=False) == pytest.approx(sectors / timing.load_rate)
    assert as_sectors(1, 4, H200, stored=False) == pytest.approx(4)
    assert as_sectors(1, 1, H200, stored=True) == pytest.approx(sectors / timing.request_rate)
    assert as_sectors(1, 4, H200, stored=True) == pytest.approx(4 * sectors / timing.store_rate)


def test_l2_of_an_h100_is_slower_than_that_of_an_h200() -> None:
    """By measured atomics: 44 of 51."""
    launch = observed(reads, 512, elements=512 * 256 * 32, TIMES=1, STRIDE=32)
    h100, h200 = (estimate(launch, device).limits["L2"] for device in (H100, H200))
    assert h100 / h200 == pytest.approx(51 / 44, rel=0.01)


def test_far_lines_cost_more() -> None:
    launch = observed(reads, 4096, elements=4096 * 256 * 4, TIMES=1, STRIDE=4)
    warm, cold = (estimate(launch, H200, cold=c) for c in (False, True))
    assert warm.traffic.dram_bytes == 0 < cold.traffic.dram_bytes
    assert warm.time_us < cold.time_us


def test_a_tail_is_named() -> None:
    """One block more than resident on all SMs takes another wave."""
    full = observed(chain, 132 * 8, 256, TURNS=2000)
    more = observed(chain, 132 * 8 + 1, 256, TURNS=2000)
    assert estimate(more, H200).time_us > 1.05 * estimate(full, H200).time_us
    launch = observed(chain, 133, 1024, TURNS=2000)
    assert estimate(launch, H200).bound == "tail"
    step = next(s for s in changes(launch, H200, estimate(launch, H200)) if s.what.startswith("with the same work"))
    assert step.saved > 0.3


def test_an_empty_kernel_takes_the_launch() -> None:
    result = estimate(observed(copy, 1, 32), H200)
    assert result.bound == "launch" and result.time_us > H200.timing.launch / 1000


@pytest.mark.parametrize("device", ROWS, ids=[d.name for d in ROWS])
def test_every_device_has_a_time_and_an_unvalidated_interval(device: devices.Device) -> None:
    result = estimate(observed(copy, 512, device=device), device)
    assert 0 < result.low_us < result.time_us < result.high_us
    assert max(result.limits.values()) < result.time_us
    reason = " without nvcc" if device.name in VALIDATED else ": no measured times are recorded"
    assert f"not validated on {device.name}{reason}" in result.remarks


def test_fewer_registers_are_a_step_where_registers_limit() -> None:
    launch = replace(observed(chain, 4096, 256, TURNS=50), registers=128)
    result = estimate(launch, H200)
    assert result.occupancy.active_blocks == 2 and "registers" in result.occupancy.limiter
    scaled = replace(result, time_us=result.time_us)
    words = text(launch, H200, scaled)
    assert "resident: 2 blocks an SM, limited by registers" in words


def test_steps_are_computed_by_the_model() -> None:
    launch = observed(exchange, 4096, STRIDE=32, BLOCK=256)
    result = estimate(launch, H200)
    step = next(s for s in changes(launch, H200, result) if s.what == "with half of the bytes of L1")
    again = estimate(launch, H200, traffic=result.traffic, scale={"L1": 0.5})
    assert step.time_us == again.time_us and step.saved == 1 - again.time_us / result.time_us


def test_devices_with_equal_counting_rules_share_an_emulation() -> None:
    assert counting_rules(replace(H200, l2=1 << 20, name="small")) == counting_rules(H200)
    assert counting_rules(replace(H200, banks=16)) != counting_rules(H200)
    assert counting_rules(K40) != counting_rules(H200)


# ------------------------------------------------------------------ compiled
def test_compiled_kernels_are_counted_as_they_are() -> None:
    """With constants nvcc evaluates the loop at compile time: one store remains."""
    launch = observed(chain, 132, 128, source_only=False, TURNS=400)
    kernel = launch.compiled(H200)
    if isinstance(kernel, str):
        pytest.skip(kernel)
    result = estimate(launch, H200)
    assert result.warp_instructions < 132 * 4 * 20
    assert "instructions are counted as nvcc compiles them for sm_90" in result.remarks
    assert estimate(launch, K40).warp_instructions > 132 * 4 * 400  # not supported by nvcc


def test_no_limit_exceeds_the_total(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the simulated SM is faster than the source's accesses."""
    launch = observed(copy, 1 << 10, 128, source_only=False)
    if isinstance(kernel := launch.compiled(H200), str):
        pytest.skip(kernel)
    simulated = sm_simulator.run
    monkeypatch.setattr(time, "run", lambda *how: replace(simulated(*how), cycles=10.0))
    result = estimate(launch, H200)
    assert 0 < max(result.limits.values()) <= result.time_us


def test_one_lane_acts_for_all_where_the_compiler_makes_it() -> None:
    """All lanes add 1 to one address: 8 atomics per block, not 256."""
    launch = observed(voted, 2048, source_only=False)
    if isinstance(kernel := launch.compiled(H200), str):
        pytest.skip(kernel)
    result = estimate(launch, H200).limits["atomics"]
    assert result * 32 == pytest.approx(estimate(replace(launch, memory=None), H200).limits["atomics"])


def test_values_in_registers_are_not_read_again() -> None:
    launch = observed(read_again, 512, source_only=False)
    if isinstance(kernel := launch.compiled(H200), str):
        pytest.skip(kernel)
    result, source = (estimate(one, H200).traffic for one in (launch, replace(launch, memory=None)))
    assert 2 * result.total(Column.SECTORS, Kind.LOAD) == source.total(Column.SECTORS, Kind.LOAD) == 2 * 512 * 256 // 8


def test_numbers_that_all_lanes_read_take_two_wavefronts() -> None:
    """Four adjacent numbers are one load of 16 bytes. Measured on an H200: 2.02 cycles for a broadcast, 4.01 for
    separate addresses."""
    launch = observed(broadcast, 132 * 2, 1024, source_only=False, TURNS=2000)
    if isinstance(kernel := launch.compiled(H200), str):
        pytest.skip(kernel)
    loads = [one for one in kernel.instructions if one.instruction.opcode == "LDS"]
    assert {one.instruction.operation for one in loads} == {"LDS.128"}
    cycles = 64 * 2000 * 2  # per SM, with two blocks of 32 warps
    assert cycles < estimate(launch, H200).time_us * 1980 < 1.5 * cycles


def test_validated_times_have_the_interval_that_was_measured() -> None:
    launch = observed(copy, 1 << 14, 32, source_only=False)
    if isinstance(kernel := launch.compiled(H200), str):
        pytest.skip(kernel)
    result, source = estimate(launch, H200), estimate(replace(launch, memory=None), H200)
    low, high = VALIDATED["H200"].factors(result.bound)
    assert low < 1 < high and (result.low_us, result.high_us) == (low * result.time_us, high * result.time_us)
    assert high / low < source.high_us / source.low_us
    assert str(VALIDATED["H200"]) in result.remarks
    assert str(VALIDATED["H100"]) in estimate(launch, H100).remarks
    assert "not validated on A100: no measured times are recorded" in estimate(launch, A100).remarks


def test_uneven_warps_are_said_to_be_beyond_what_was_validated() -> None:
    """One warp of 64 reads 64 times, the others once."""
    args = {"x": np.ones(64, np.float32), "out": np.zeros(64 * 32, np.float32)}
    launch = observe(prepare_request(uneven, grid=64, block=32, args=args))
    assert launch.lines.imbalance == pytest.approx(65 / (65 + 63 * 2) * 64, rel=0.01)
    if isinstance(kernel := launch.compiled(H200), str):
        pytest.skip(kernel)
    assert any(remark.startswith("uneven warps") for remark in estimate(launch, H200).remarks)


def test_blocks_that_begin_limit_small_ones() -> None:
    """Measured on an H200: 262,144 blocks of one empty warp take 160 microseconds."""
    launch = observed(copy, 1 << 14, 32, source_only=False)
    if isinstance(kernel := launch.compiled(H200), str):
        pytest.skip(kernel)
    result = estimate(launch, H200)
    assert result.bound == "blocks"
    assert result.time_us == pytest.approx(160.1 / 16 + 2.8, rel=0.15)


@pytest.mark.parametrize(("stride", "time"), [(1, 7.8), (32, 73.9)])
def test_bank_conflicts_take_the_measured_time(stride: int, time: float) -> None:
    """16 exchanges through shared memory by 2,048 blocks, measured on an H200."""
    case = next(one for one in cases() if one.name == f"conflicts stride {stride} 256")
    request = prepare_request(case.kernel, grid=case.grid, block=case.block, args=dict(case.make()))
    launch = observe(request)
    if isinstance(kernel := launch.compiled(H200), str):
        pytest.skip(kernel)
    assert estimate(launch, H200).time_us == pytest.approx(time, rel=0.15)


@pytest.mark.parametrize(("grid", "block", "time"), [(132, 1024, 71.3), (1056, 128, 73.0)])
def test_constant_tables_take_the_measured_time(grid: int, block: int, time: float) -> None:
    """2,048 lookups in a table of 512 bytes by each of 32 warps per SM, measured on an H100."""
    arrays = {"table": np.arange(128, dtype=np.int32), "out": np.zeros(grid * block, np.int32)}
    args = {**arrays, "turns": 256, "mask": 127, "apart": 0}
    launch = observe(prepare_request(table_traffic, grid=grid, block=block, args=args, device=H100))
    if isinstance(kernel := launch.compiled(H100), str):
        pytest.skip(kernel)
    assert estimate(launch, H100).time_us == pytest.approx(time, rel=0.1)
