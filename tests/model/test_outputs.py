"""Outputs of the configurations of a sweep: comparison with the launch as given, and the best choice."""

import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, f32, float4, i32, u8
from simtbed.model.launches import observe
from simtbed.model.outputs import Agreement, Comparison, Reference
from simtbed.model.sweep_table import SweepTable
from simtbed.reports.whatif import report
from simtbed.runtime.request import prepare_request

X = np.random.default_rng(7).random(256).astype(np.float32)


@st.kernel
def row_sum(x: Global[f32], out: Global[f32]) -> None:
    """One block a row of 8 elements."""
    if st.thread.x == 0:
        total = f32(0)
        for k in range(8):
            total += x[st.block.x * 8 + k]
        out[st.block.x] = total


ROWS = {"x": X, "out": st.empty(32, "f32")}


def test_a_name_that_no_launch_writes_is_refused() -> None:
    with pytest.raises(st.LaunchError, match="not_compared: no launch writes 'x'; there are out"):
        st.whatif(row_sum, grid=32, block=32, args=ROWS, source_only=True, not_compared=["x"])


def test_a_choice_without_one_of_the_launches_is_no_candidate() -> None:
    table = SweepTable()
    for launch, choice, time, agreement in (
        (0, "64", 5.0, Agreement.reference), (1, "64", 5.0, Agreement.reference), (0, "128", 1.0, Agreement.equal),
        (0, "256", 1.0, Agreement.equal), (1, "256", 2.0, Agreement.differ),
        (0, "512", 6.0, Agreement.equal), (1, "512", 6.0, Agreement.equal),
    ):  # fmt: skip
        table.append({"kernel": "k", "device": "H200", "launch": launch, "time_us": time, "outputs": agreement.value})
        table.choices.append(choice)
        table.agreements.append(agreement)
    assert table.candidates() == {("k", "H200"): {"64": 10.0, "512": 12.0}}
    configuration, margin = table.best()["k", "H200"]
    assert configuration == "64" and margin == pytest.approx(1 / 6)
    assert table.ties() == {("k", "H200"): ["64"]}
    assert table.outputs("k", "H200", "256") == ["equal", "differ"]


def test_a_pickled_reference_computes_its_outputs_again() -> None:
    request = prepare_request(row_sum, grid=32, block=32, args=ROWS)
    launch = observe(request, source_only=True, writes=True)
    reference = pickle.loads(pickle.dumps(Reference(request)))
    assert reference.compare(launch, Comparison()) == (Agreement.equal, "equal")
    assert (reference.outputs().arrays["out"] == launch.outputs["out"]).all()


def test_choices_with_nearly_equal_times_are_a_tie() -> None:
    table = SweepTable()
    for choice, time in (("32", 10.05), ("64", 10.0), ("128", 10.0), ("256", 10.2)):
        table.append({
            "kernel": "k", "device": "H200", "launch": 0, "grid": [1, 1, 1], "time_us": time, "low_us": 9.0, "high_us": 11.0,
            "l1_hit": 0.0, "l2_hit": 0.0, "dram_bytes": 0, "bound": "L1", "outputs": "equal",
        })  # fmt: skip
        table.choices.append(choice)
        table.agreements.append(Agreement.equal)
        table.explanations.append(f"explanation of {choice}")
    assert table.ties() == {("k", "H200"): ["64", "128", "32"]}
    assert "best of 4: 64: 10.00 us, a tie with 128, 32\nexplanation of 64" in report.text("title", table)
    table[1]["time_us"] = table[2]["time_us"] = 9.4567
    table[2]["time_us"] = 9.8
    assert "best of 4: 64: 9.46 us, 3.5 % less than the next\n" in report.text("title", table)


@dataclass
class Point:
    x: f32
    y: i32


@st.kernel
def constants(
    octets: Global[u8], truths: Global[bool], nans: Global[f32], vectors: Global[float4], rows: Global[f32], points: Global[Point],
    largest: Global[i32], kept: Global[f32],
) -> None:  # fmt: skip
    """The arrays contain the results already: a block writes its 32 elements of each."""
    i = st.block.x * 32 + st.thread.x
    octets[i] = 1
    truths[i] = True
    nans[i] = math.nan
    vectors[i] = float4(1, 2, 3, 4)
    rows[st.block.x, st.thread.x] = 1
    points[i].y = 2
    st.atomic_max(largest, i, 1)
    kept[i] = max(kept[i], 1.0)


@pytest.mark.slow
def test_a_choice_writes_the_elements_that_the_launch_writes() -> None:
    """Values alone cannot show it: the arrays contain the results of an earlier launch."""
    arguments = {
        "octets": np.ones(64, np.uint8), "truths": np.ones(64, np.bool_), "nans": np.full(64, np.nan, np.float32),
        "vectors": np.tile(np.arange(1, 5, dtype=np.float32), (64, 1)), "rows": np.ones((2, 64), np.float32)[:, ::2],
        "points": np.array([(1, 2)] * 64, [("x", np.float32), ("y", np.int32)]), "largest": np.ones(64, np.int32),
        "kept": np.ones(64, np.float32),
    }  # fmt: skip
    firsts = {
        "octets[32]": 32, "truths[32]": 32, "nans[32]": 32, "vectors[32].x": 128, "rows[1, 0]": 32, "points[32].y": 32,
        "largest[32]": 32, "kept[32]": 32,
    }  # fmt: skip
    table = st.whatif(constants, grid=2, block=32, args=arguments, source_only=True, grids=[2, 1, (2, 2)])
    assert table[2]["outputs"] == "equal"
    reason = table[1]["outputs"]
    for first, number in firsts.items():
        assert f" is not written: {number} of {2 * number} elements, first {first}, which" in reason


@pytest.mark.slow
def test_a_choice_is_compared_with_device_arrays_after_a_launch() -> None:
    arguments = {"x": st.DeviceArray(X), "out": st.DeviceArray(np.zeros(32, np.float32))}
    st.launch(row_sum, grid=32, block=32, args=arguments)
    table = st.whatif(row_sum, grid=32, block=32, args=arguments, source_only=True, blocks=[32, 64])
    assert table.agreements == [Agreement.reference, Agreement.differ]
    assert table[1]["outputs"].startswith("out is not written: 16 of 32 elements, first out[16], which the launch")
    assert table[1]["outputs"].endswith("grids=[32] (--grid 32) keeps that of the launch")
    waived = st.whatif(row_sum, grid=32, block=32, args=arguments, source_only=True, blocks=[64], not_compared="out")
    assert waived.agreements == [Agreement.unknown]
