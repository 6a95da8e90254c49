"""Outputs of the configurations of a sweep: comparison with the launch as given, and the best choice."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import simtbed as st
from simtbed import Global, f32
from simtbed.model.outputs import Agreement, Comparison, Reference
from simtbed.model.sweep_table import SweepTable
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


def test_a_choice_with_other_outputs_is_not_the_best() -> None:
    table = st.whatif(row_sum, grid=32, block=32, args=ROWS, source_only=True, blocks=[32, 64, 128])
    assert table.agreements == [Agreement.reference, Agreement.differ, Agreement.differ]
    outputs = table.column("outputs")
    assert outputs[0] == "reference"
    assert outputs[1].startswith("out differs: 16 of 32 elements, first out[16]; if out depends on the configuration")
    assert "not_compared (--not-compared out)" in outputs[2] and "--grid 32" in outputs[2]
    assert table.best()["row_sum", "H200"][0] == "32"


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
    assert table.outputs("k", "H200", "256") == ["equal", "differ"]


def test_a_pickled_reference_computes_its_outputs_again() -> None:
    request = prepare_request(row_sum, grid=32, block=32, args=ROWS)
    reference = Reference(request)
    expected = reference.outputs()["out"]
    again = pickle.loads(pickle.dumps(Reference(request)))
    assert (again.outputs()["out"] == expected).all()
    assert again.compare(request, {"out": expected}, Comparison()) == (Agreement.equal, "equal")
