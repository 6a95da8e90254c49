"""What simtbed prints as CUDA C++, read back: the same bits and the same memory counters. A sample; all are in tests/validation."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, i32
from simtbed.testing.conformance import FEATURES

from tests.cuda_cpp.round_trip import RoundTrips
from tests.texts import texts

TEXTS = texts("cuda_cpp/texts.cu")

EXAMPLES = ("transpose", "softmax", "bfs", "philox")


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_has_its_bits_and_counters(example: str) -> None:
    trips = RoundTrips()
    import_module(f"examples.kernels.{example}").check(trips.launch)
    assert trips.launches and (trips.refused, trips.bits, trips.counters) == ({}, {}, {})


@pytest.mark.parametrize("feature", FEATURES[::32], ids=lambda feature: feature.name)
def test_a_feature_has_its_bits(feature: Any) -> None:
    trips = RoundTrips()
    feature.launch(trips.launch)
    assert trips.launches and (trips.refused, trips.bits) == ({}, {})


@st.kernel
def numbered(out: Global[i32]) -> None:
    out[st.thread.x] = st.thread.x + 1


def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    trips = RoundTrips()
    again = trips.again

    def wrong(*args: Any, **options: Any) -> Any:
        result, printed = again(*args, **options)
        result.buffers["out"] = result.buffers["out"] + 1
        result.counts = np.zeros_like(result.counts)
        return result, printed

    monkeypatch.setattr(trips, "again", wrong)
    trips.launch(numbered, grid=1, block=32, args={"out": st.empty(32, "i32")})
    assert trips.bits == {"numbered": ["out"]} and "global_store_requests" in trips.counters["numbered"]


@st.device
def sign(x: i32) -> i32:
    if x > 0:
        return 1
    for i in range(3):
        if x < -i:
            return -1
    return 0


@st.kernel
def signs(x: Global[i32], out: Global[i32]) -> None:
    out[st.thread.x] = sign(x[st.thread.x]) + sign(5)


def test_a_printed_frame_is_read_back() -> None:
    """A call with a return inside is printed as a function or a lambda."""
    x = np.arange(-16, 16, dtype=np.int32)
    result = st.launch(signs, grid=1, block=32, args={"x": x, "out": st.empty(32, "i32")})
    again, _ = RoundTrips().again(result.request)
    np.testing.assert_array_equal(again.buffers["out"], np.sign(x) + 1)


def test_lanes_that_leave_a_loop_act_in_their_iteration() -> None:
    """A lock that is freed before a `break`: the lanes of a warp take it one after the other."""
    text = TEXTS["lanes that leave a loop act in their iteration"]
    args = (st.zeros(1, st.i32), st.zeros(2, st.i32))
    result = st.launch(st.cuda_source(text).k, grid=1, block=64, args=args, step_limit=100_000)
    assert result.count.tolist() == [64, 64]


SUMS = TEXTS["sums"]


@pytest.mark.slow
@pytest.mark.parametrize("line", ["", "#line 1", '#line 1 "other.cu"'])
@pytest.mark.parametrize(
    "loop",
    [
        "partial[threadIdx.x] = 0; for (int i = threadIdx.x; i < 40; i += 32) {\n    partial[threadIdx.x] += x[i];\n    }",
        "int i = threadIdx.x, t = 0; while (i < 40) { t += x[i];\n i += 32; } partial[threadIdx.x] = t;",
        "int i = threadIdx.x, t = 0; do { t += x[i];\n i += 32; } while (i < 40); partial[threadIdx.x] = t;",
        "int t = 0, i = threadIdx.x; while (true) { t += x[i]; if ((i += 32) >= 40) { partial[threadIdx.x] = t; break; } }",
        "partial[threadIdx.x] = total(x, 40);",
    ],
)
def test_a_barrier_behind_a_loop_is_behind_it(loop: str, line: str) -> None:
    """Lanes run the loop one or two times. The lines of a text may begin again."""
    x = np.arange(40, dtype=np.int32)
    text = SUMS.format(loop=loop, line=line)
    result = st.launch(
        st.cuda_source(text).sums, grid=1, block=32, args={"x": x, "out": st.empty(32, "i32")}, check="all"
    )
    expected = x[:32] + np.where(np.arange(32) < 8, np.arange(32) + 32, 0)
    np.testing.assert_array_equal(result.out, expected[::-1])
