"""Predicted times of barriers in shared memory and of bulk copies, and those measured on an H200."""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.errors import LaunchError
from simtbed.model import sm_simulator
from simtbed.model.launches import time_of
from simtbed.runtime.request import prepare_request
from simtbed.sass import counts, phases
from simtbed.testing.conformance import FEATURES

from tests.compilers import needs_sass

pytestmark = [needs_sass, pytest.mark.slow]


@st.kernel
def ring(
    x: st.Global[st.f32], out: st.Global[st.f32], steps: st.i32, hop: st.i32, BYTES: st.Const, STAGES: st.Const
) -> None:
    """Sum what a block copies, with copies of STAGES steps at once. hop: elements from one copy to the next."""
    buffer = st.shared(st.f32, STAGES * BYTES // 4)
    full = st.shared(st.u64, STAGES)
    if st.thread.x == 0:
        for s in range(STAGES):
            st.mbarrier_init(full, s, 1)
        st.fence_async()
    st.sync()
    first, total = st.block.x * steps, st.f32(0)
    for ahead in range(steps + STAGES - 1):
        if st.thread.x == 0 and ahead < steps:
            st.mbarrier_arrive_expect_tx(full, ahead % STAGES, BYTES)
            place = ahead % STAGES * (BYTES // 4)
            st.bulk_copy(buffer, place, x, (first + ahead) * hop, BYTES, full, ahead % STAGES)
        step = ahead - (STAGES - 1)
        if step >= 0:
            while not st.mbarrier_try_wait_parity(full, step % STAGES, step // STAGES % 2):
                pass
            for k in range(BYTES // 4 // 128):
                total += buffer[step % STAGES * (BYTES // 4) + k * 128 + st.thread.x]
            st.sync()
    out[st.block.x * 128 + st.thread.x] = total


@st.kernel
def exchange(out: st.Global[st.i32], n: st.i32) -> None:
    """Two warps wait for each other in sequence."""
    bars = st.shared(st.u64, 2)
    total = 0
    if st.thread.x == 0:
        st.mbarrier_init(bars, 0, 1)
        st.mbarrier_init(bars, 1, 1)
    st.sync()
    for i in range(n):
        if st.warp == 0:
            if st.lane == 0:
                st.mbarrier_arrive(bars, 0)
            while not st.mbarrier_try_wait_parity(bars, 1, i % 2):
                pass
        else:
            while not st.mbarrier_try_wait_parity(bars, 0, i % 2):
                pass
            if st.lane == 0:
                st.mbarrier_arrive(bars, 1)
        total += i
    out[st.thread.x] = total


@pytest.mark.parametrize(
    ("bytes", "stages", "blocks", "measured"),
    [(4096, 4, 132, 15.4), (4096, 8, 132, 14.2), (16384, 4, 132, 33.8), (4096, 4, 264, 20.2), (1024, 4, 132, 13.0)],
)
def test_copies_of_several_steps_at_once(bytes: int, stages: int, blocks: int, measured: float) -> None:
    """Nsight Compute measured the microseconds on an H200, with cold caches."""
    x = np.zeros(blocks * 64 * (bytes // 4), np.float32)
    args = {"x": x, "out": st.empty(blocks * 128, st.f32), "steps": 64, "hop": bytes // 4, "BYTES": bytes}
    request = prepare_request(ring, grid=blocks, block=128, device="H200", args={**args, "STAGES": stages})
    assert time_of(request, cold=True).time_us == pytest.approx(measured, rel=0.1)


def test_warps_that_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 iterations lasted 101.4 us on an H200."""
    args = {"out": st.empty(64, st.i32), "n": 100}
    request = prepare_request(exchange, grid=1, block=64, device="H200", args=args)
    usual = time_of(request).time_us
    assert usual - time_of(
        prepare_request(exchange, grid=1, block=64, device="H200", args={**args, "n": 50})
    ).time_us == (pytest.approx(5.07, rel=0.1))
    monkeypatch.setattr(sm_simulator, "_PHASE_LATENCY", 130)
    assert time_of(request).time_us == pytest.approx(usual + 200 * 100 / 1980, rel=0.05)


@pytest.mark.parametrize("name", ["bulk_copies", "bulk_stores", "tensor_copies", "tensor_stores", "phases_of_barriers"])
def test_features_with_barriers_have_a_time(name: str) -> None:
    (feature,) = (one for one in FEATURES if one.name == name)
    estimated = feature.launch(lambda *a, **how: time_of(prepare_request(*a, **{**how, "device": "H200"})))
    assert 2 < estimated.time_us < 50


def test_requests_of_several_sms_for_a_line_merge() -> None:
    """Blocks that copy the same lines; a block alone copies them again and again."""
    x, shared = np.zeros(64 * 1024, np.float32), []
    for blocks in (1, 4):
        args = {"x": x, "out": st.empty(blocks * 128, st.f32), "steps": 8, "hop": 0, "BYTES": 4096, "STAGES": 2}
        request = prepare_request(ring, grid=blocks, block=128, device="H200", args=args)
        shared.append(time_of(request, cold=True).traffic.merged_copies)
    assert shared[0] == 0 and 0.6 * 4 * 8 * 128 > shared[1] > 0.6 * 2 * 8 * 128


def test_a_phase_that_is_never_complete_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*values: Any) -> phases.PhaseEvents:
        events = phases.events_of(*values)
        return events._replace(arrivals=events.arrivals + 1)

    monkeypatch.setattr(counts, "events_of", lacking)
    request = prepare_request(exchange, grid=1, block=64, device="H200", args={"out": st.empty(64, st.i32), "n": 4})
    with pytest.raises(LaunchError, match="the time is not predicted: warps wait for each other"):
        time_of(request)
