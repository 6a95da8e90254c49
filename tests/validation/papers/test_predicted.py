"""Predictions from one SM's share of a GPU."""

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Global, devices, f32
from simtbed.model.launches import time_of
from simtbed.reports.papers.predicted import pace, share
from simtbed.runtime.engine import Request
from simtbed.runtime.request import prepare_request

K40 = devices.K40
WAVES = 12


@st.kernel
def _stream(x: Global[f32], y: Global[f32], TIMES: Const) -> None:
    """y = x with so many multiplications."""
    i = st.block.x * 256 + st.thread.x
    value = x[i]
    for _ in range(TIMES):
        value = value * f32(1.0001)
    y[i] = value


def _request(times: int) -> Request:
    """A launch that fills a K40 a few times over."""
    blocks = K40.sms * 8 * WAVES
    args = {"x": np.ones(256 * blocks, np.float32), "y": st.empty(256 * blocks, "f32"), "TIMES": times}
    return prepare_request(_stream, grid=blocks, block=256, args=args, device=K40)


@pytest.mark.parametrize("times", [1, 400])
def test_the_share_of_an_sm_represents_the_gpu(times: int) -> None:
    """Whether memory or instructions bound it."""
    request = _request(times)
    whole = time_of(request, K40, registers=32, cold=True)
    share = pace(request, K40, 32, "jit")
    assert share.blocks == 8
    alone = whole.time_us - K40.timing.launch / 1000
    assert share.microseconds * request.grid[0] == pytest.approx(alone, rel=0.2)


def test_what_memory_moves() -> None:
    """Much of what DRAM gives: L2's rates and the begin of the blocks add to the time."""
    moved = pace(_request(1), K40, 32, "jit")
    assert 0.4 * K40.bandwidth < moved.dram_bandwidth <= K40.bandwidth
    assert moved.l2_bandwidth >= moved.dram_bandwidth
    assert moved.shared_bandwidth == 0
    low, high = moved.interval
    assert low < moved.microseconds < high


def test_a_launch_that_does_not_fill_the_gpu() -> None:
    request = _request(1)
    assert pace(request, K40, 32, "jit", launched=K40.sms + 1).blocks == 2
    assert pace(request, K40, 32, "jit", launched=1).blocks == 1


def test_a_table_that_all_sms_read_is_in_the_whole_l2() -> None:
    assert share(K40).l2 == K40.l2 // K40.sms
    assert share(K40, whole_l2=True).l2 == K40.l2
    assert share(K40).bandwidth == pytest.approx(K40.bandwidth / K40.sms)


def test_hits_of_an_array() -> None:
    """What is read once is never hit."""
    request = _request(1)
    prediction = pace(request, K40, 32, "jit")
    assert prediction.hit_rate(request, "x") == pytest.approx(0, abs=0.01)
    arrays = [prediction.l2_bandwidth_of(request, array) for array in ("x", "y")]
    assert 0 < arrays[0] <= sum(arrays) == pytest.approx(prediction.l2_bandwidth, rel=0.01)
