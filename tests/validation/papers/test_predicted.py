"""Predictions from one SM's share of a GPU, and claims on speed by model and measurement."""

from __future__ import annotations

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Global, devices, f32
from simtbed.model.launches import time_of
from simtbed.reports.papers.predicted import pace, settled, share
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
    assert pace(request, K40, 32, "jit").hit_rate(request, "x") == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize(
    ("predicted", "measured", "holds", "evidence"),
    [
        ((True, "2 times"), (True, "3 times"), True, "time model: 2 times; GPU: 3 times"),
        ((True, "2 times"), (False, "0.5 times"), None, "time model: 2 times; GPU: 0.5 times"),
        ((False, "1 time"), (None, ""), False, "time model: 1 time"),
        ((None, ""), (True, "3 times"), True, "GPU: 3 times"),
        ((None, ""), (None, ""), None, "needs times of a GPU"),
    ],
)
def test_a_claim_holds_where_model_and_gpu_do_not_differ(
    predicted: tuple[bool | None, str], measured: tuple[bool | None, str], holds: bool | None, evidence: str
) -> None:
    claim = settled("it is faster", predicted, measured)
    assert (claim.holds, claim.evidence) == (holds, evidence)
