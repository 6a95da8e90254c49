"""Time: launches that a known part of the GPU bounds take what that part takes; steps help where they should."""

from __future__ import annotations

from dataclasses import replace

import pytest
from simtbed import devices
from simtbed.model.explain import changes, text
from simtbed.model.launches import counting_rules
from simtbed.model.time import estimate

from tests.model.launches import chain, copy, exchange, observed, reads, total

H200, H100, A100, K40 = devices.H200, devices.H100, devices.A100, devices.K40
ROWS = devices.DEVICES.values()


@pytest.mark.slow
def test_a_large_copy_takes_what_device_memory_takes() -> None:
    """Measured on an H200: a copy runs at 4.27 TB/s."""
    found = estimate(observed(copy, 1 << 17), H200)
    assert found.bound == "DRAM"
    assert 8 * 256 * (1 << 17) / found.limits["DRAM"] / 1e6 == pytest.approx(4.27, rel=0.01)
    assert found.limits["DRAM"] < found.time_us < 1.2 * found.limits["DRAM"]


@pytest.mark.slow
def test_the_two_hoppers_differ_as_their_memories_do() -> None:
    launch = observed(copy, 1 << 17)
    assert estimate(launch, H100).limits["DRAM"] / estimate(launch, H200).limits["DRAM"] == pytest.approx(4800 / 3350)
    busy = observed(chain, 4096, TURNS=400)
    assert estimate(busy, H100).time_us == pytest.approx(estimate(busy, H200).time_us)


def test_arithmetic_takes_what_its_pipe_takes() -> None:
    """Measured on an H200: 32.6 T multiplications and additions a second."""
    found = estimate(observed(chain, 132 * 8 * 4, TURNS=400), H200)
    operations = 132 * 8 * 4 * 256 * 800
    assert found.limits["fp32"] == pytest.approx(operations / 33.45e6, rel=0.01)
    assert found.bound in ("fp32", "issue")


def test_a_lone_warp_takes_its_chain() -> None:
    """800 products and sums, one after another, at 4 cycles each."""
    found = estimate(observed(chain, 1, 32, TURNS=800), H200)
    assert found.bound == "latency"
    assert found.limits["latency"] * H200.clock == pytest.approx(1600 * 4, rel=0.05)
    assert any("small grid" in remark for remark in found.remarks)


def test_more_warps_hide_the_latency_of_each() -> None:
    """As many turns of the chain on 1 to 8 blocks of an SM take the same; then the pipe is full."""
    times = [estimate(observed(chain, 132 * n, 128, TURNS=400), H200).time_us for n in (1, 2, 4, 8, 16)]
    assert times[1] == pytest.approx(times[0], rel=0.1)
    assert times[4] > 1.5 * times[2]


def test_bank_conflicts_cost_what_they_serialise() -> None:
    free, worst = (estimate(observed(exchange, 4096, STRIDE=stride, BLOCK=256), H200) for stride in (1, 32))
    assert worst.limits["L1"] > 10 * free.limits["L1"]
    assert worst.bound == "L1"


def test_atomic_operations_on_one_address_go_one_after_another() -> None:
    one, many = (estimate(observed(total, 4096, MASK=mask), H200) for mask in (0, 4095))
    assert one.bound == "atomics" and one.time_us > 10 * many.time_us


def test_far_lines_cost_more() -> None:
    launch = observed(reads, 4096, elements=4096 * 256 * 4, TIMES=1, STRIDE=4)
    warm, cold = (estimate(launch, H200, cold=c) for c in (False, True))
    assert warm.traffic.dram_bytes == 0 < cold.traffic.dram_bytes
    assert warm.time_us < cold.time_us


def test_a_tail_is_named() -> None:
    """One block more than all SMs hold takes a turn more."""
    full = observed(chain, 132 * 8, 256, TURNS=2000)
    more = observed(chain, 132 * 8 + 1, 256, TURNS=2000)
    assert estimate(more, H200).time_us > 1.05 * estimate(full, H200).time_us
    lone = observed(chain, 133, 1024, TURNS=2000)
    assert estimate(lone, H200).bound == "tail"
    step = next(s for s in changes(lone, H200, estimate(lone, H200)) if s.what.startswith("with the same work"))
    assert step.saved > 0.3


def test_an_empty_kernel_takes_the_launch() -> None:
    found = estimate(observed(copy, 1, 32), H200)
    assert found.bound == "launch" and found.time_us > H200.timing.launch / 1000


@pytest.mark.parametrize("device", ROWS, ids=[d.name for d in ROWS])
def test_every_device_has_a_time_an_interval_and_says_that_it_is_not_validated(device: devices.Device) -> None:
    found = estimate(observed(copy, 512, device=device), device)
    assert 0 < found.low_us < found.time_us < found.high_us
    assert max(found.limits.values()) < found.time_us
    assert f"not validated on {device.name}: no measured times are recorded" in found.remarks


def test_fewer_registers_are_a_step_where_registers_limit() -> None:
    launch = replace(observed(chain, 4096, 256, TURNS=50), registers=128)
    found = estimate(launch, H200)
    assert found.occupancy.active_blocks == 2 and "registers" in found.occupancy.limiter
    scaled = replace(found, time_us=found.time_us)
    words = text(launch, H200, scaled)
    assert "resident: 2 blocks an SM, limited by registers" in words


def test_steps_are_computed_by_the_model() -> None:
    launch = observed(exchange, 4096, STRIDE=32, BLOCK=256)
    found = estimate(launch, H200)
    step = next(s for s in changes(launch, H200, found) if s.what == "with half of the bytes of L1")
    again = estimate(launch, H200, traffic=found.traffic, scale={"L1": 0.5})
    assert step.time_us == again.time_us and step.saved == 1 - again.time_us / found.time_us


def test_devices_that_count_alike_share_an_emulation() -> None:
    assert counting_rules(replace(H200, l2=1 << 20, name="small")) == counting_rules(H200)
    assert counting_rules(replace(H200, banks=16)) != counting_rules(H200)
    assert counting_rules(K40) != counting_rules(H200)
