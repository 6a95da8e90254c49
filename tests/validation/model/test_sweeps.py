"""What-if sweeps: configurations, refusals, best choice, caching, Dask."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.model import sweeps
from simtbed.model.launches import observe
from simtbed.model.sweep_table import COLUMNS, SweepTable

from tests.model.launches import copy, exchange

N = 1 << 14


def exchanged(**how: Any) -> SweepTable:
    args = {"x": np.ones(N, np.float32), "out": st.empty(N, "f32"), "STRIDE": 1, "BLOCK": 64}
    return st.whatif(exchange, grid=N // 64, block=64, args=args, **how)


def test_a_row_has_the_columns() -> None:
    (row,) = exchanged()
    assert tuple(row) == COLUMNS
    assert (row["kernel"], row["launch"], row["device"]) == ("exchange", 0, "H200")
    assert (row["grid"], row["block"], row["const"]) == ([256, 1, 1], [64, 1, 1], {"STRIDE": 1, "BLOCK": 64})
    assert row["low_us"] <= row["time_us"] < row["high_us"]
    assert 0 <= row["l1_hit"] <= 1 and 0 <= row["l2_hit"] <= 1 and row["dram_bytes"] == 0
    json.dumps(row)


def test_grid_and_constants_follow_the_block_size() -> None:
    table = exchanged(blocks=[64, 96, 256], tie={"BLOCK": "block.x"})
    assert table.column("grid") == [[256, 1, 1], [64, 1, 1]]
    assert "out of bounds" in table.refused[0]  # 171 blocks of 96 are more threads than numbers
    assert [row["const"]["BLOCK"] for row in table] == [64, 256]
    assert exchanged(grids=[7]).column("grid") == [[7, 1, 1]]


def test_all_choices_of_all_axes_on_all_devices() -> None:
    table = exchanged(
        blocks=[64, 128], tie={"BLOCK": "block.x"}, const={"STRIDE": [1, 32]}, device=["H200", "K40", "H100"]
    )
    assert len(table) == 12
    assert {(row["block"][0], row["const"]["STRIDE"], row["device"]) for row in table} == {
        (block, stride, device) for block in (64, 128) for stride in (1, 32) for device in ("H200", "K40", "H100")
    }
    best = table.best()
    assert set(best) == {("exchange", "H200"), ("exchange", "K40"), ("exchange", "H100")}
    choice, margin = best["exchange", "H200"]
    assert "STRIDE=1" in choice and 0 <= margin < 1
    sums = table.sums()["exchange", "H200"]
    assert choice == min(sums, key=lambda one: sums[one])


def test_refused_configurations_are_omitted_with_a_reason() -> None:
    table = exchanged(blocks=[64, 2048], tie={"BLOCK": "block.x"})
    assert len(table) == 1
    assert table.refused == ["exchange, 2048: block[0] is 2,048: the H200 takes at most 1,024"]
    with pytest.raises(st.LaunchError, match=r"block\[0\] is 2,048"):
        exchanged(blocks=[2048])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"const": {"TILE": [1]}}, "no launch has a Const parameter TILE; there are BLOCK, STRIDE"),
        ({"tie": {"BLOCK": "grid.x"}}, "tie of BLOCK is block.x, block.y or block.z"),
        ({"blocks": [0]}, "an extent is one to three positive whole numbers, not 0"),
        ({"objective": "money"}, "objective is 'time' or 'bytes', not 'money'"),
        ({"device": ["B300"]}, "no device is called 'B300'"),
    ],
)
def test_an_error_is_one_sentence(how: dict[str, Any], message: str) -> None:
    with pytest.raises(st.LaunchError, match=message):
        exchanged(**how)


def test_a_choice_with_faults_is_left_out_with_its_fault() -> None:
    args = {"x": np.ones(96, np.float32), "out": st.empty(96, "f32")}
    table = st.whatif(copy, grid=3, block=32, blocks=[32, 64], args=args)
    assert [row["block"] for row in table] == [[32, 1, 1]]
    (refused,) = table.refused
    assert refused.startswith("copy, 64: ") and "out of bounds" in refused
    assert table.best()["copy", "H200"][0] == "32"


def test_results_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMTBED_CACHE", str(tmp_path))
    tmp_path.chmod(0o700)
    first = exchanged(const={"STRIDE": [1, 2, 4]})
    files = list(tmp_path.glob("*.whatif"))
    assert len(files) == 3

    def refuse(request: object, **how: object) -> None:
        raise AssertionError("emulated again")

    monkeypatch.setattr(sweeps, "observe", refuse)
    again = exchanged(const={"STRIDE": [1, 2, 4]})
    assert list(again) == list(first) and again.explanations == first.explanations
    with pytest.raises(AssertionError):
        exchanged(const={"STRIDE": [8]})


def test_an_interrupted_sweep_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMTBED_CACHE", str(tmp_path))
    tmp_path.chmod(0o700)
    observed: list[Any] = []

    def interrupted(request: Any, **how: Any) -> Any:
        if len(observed) == 2:
            raise KeyboardInterrupt
        observed.append(request)
        return observe(request, **how)

    monkeypatch.setattr(sweeps, "observe", interrupted)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    with pytest.raises(KeyboardInterrupt):
        exchanged(const={"STRIDE": [1, 2, 4, 8]})

    def resumed(request: Any, **how: Any) -> Any:
        observed.append(request)
        return observe(request, **how)

    monkeypatch.setattr(sweeps, "observe", resumed)
    assert len(exchanged(const={"STRIDE": [1, 2, 4, 8]})) == 4
    assert len(observed) == 4


def test_other_contents_are_another_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMTBED_CACHE", str(tmp_path))
    tmp_path.chmod(0o700)
    for value in (1, 2):
        args = {"x": np.full(64, value, np.float32), "out": st.empty(64, "f32")}
        st.whatif(copy, grid=1, block=64, args=args)
    st.whatif(copy, grid=1, block=64, args=args, cold=True)
    assert len(list(tmp_path.glob("*.whatif"))) == 3


def test_a_table_converts_to_a_data_frame() -> None:
    table = exchanged(const={"STRIDE": [1, 2]})
    rows = list(csv.DictReader(io.StringIO(table.csv())))
    assert [row["const"] for row in rows] == ["STRIDE=1 BLOCK=64", "STRIDE=2 BLOCK=64"]
    assert isinstance(table, list) and table.columns == COLUMNS
    assert "<table>" in table._repr_html_()


def test_a_cluster_gives_the_rows_of_the_serial_run() -> None:
    serial = exchanged(const={"STRIDE": [1, 2, 4]}, cold=True)
    assert list(exchanged(const={"STRIDE": [1, 2, 4]}, cold=True, dask="local")) == list(serial)
