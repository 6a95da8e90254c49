"""`simtbed profile`: figures worked out by hand for sums of four blocks of 64, 200 numbers in all."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.reports import sums
from tests.reports.conftest import Simtbed

SOURCE = Path(sums.__file__).read_text(encoding="utf-8").splitlines()
ADD = next(n for n, text in enumerate(SOURCE, 1) if "partial[t] += " in text)
LOAD = next(n for n, text in enumerate(SOURCE, 1) if "x[i] if i < n" in text)


@pytest.fixture
def content(simtbed: Simtbed) -> Any:
    return json.loads(simtbed("profile", "tree", "--json").out)


def test_totals_and_ratios(content: Any) -> None:
    totals = content["totals"]
    # 200 floats of 4 bytes; four results, one lane each.
    assert (totals["global_load_sectors"], totals["global_store_sectors"]) == (25, 4)
    # 6 warps are whole, one has 8 lanes, one reads nothing; the add: one warp of each block at widths 32 to 1.
    assert (totals["global_load_requests"], totals["shared_load_requests"]) == (7, 4 * 6 * 2 + 4)
    assert content["derived"]["global_load_efficiency"] == 1.0
    assert content["launches"] == 1


@pytest.mark.slow
def test_the_heading_counts_the_launches_with_counters(simtbed: Simtbed) -> None:
    """The table of k-mers is made by kernels that a profile of a variant leaves out."""
    first = simtbed("profile", "correction/packed").out.splitlines()[0]
    assert first == "packed on the example, H200, 3 of 8 launches"


def test_the_hottest_lines(content: Any) -> None:
    hottest = {entry["what"]: (entry["line"], entry["count"]) for entry in content["hottest"]}
    assert hottest["shared wavefronts"] == (ADD, 4 * 6 * 3)
    assert hottest["global sectors"] == (LOAD, 25)


def test_a_row_of_its_own_for_each_lane(content: Any) -> None:
    (load,) = [entry for entry in content["traffic"] if entry["kind"] == "global_load"]
    assert (load["line"], load["requests"], load["sectors"], load["sectors_if_scattered"], load["bytes"]) == (
        LOAD,
        7,
        25,
        200,
        800,
    )


def test_rows_interleaved_for_the_warp_are_read_whole(simtbed: Simtbed) -> None:
    """Pair-HMM, one thread a pair: 32 floats are 4 sectors (doubles 8), and every byte of them is used."""
    content = json.loads(simtbed("profile", "intertask-naive", "--device", "K40", "--json").out)
    assert content["derived"]["global_load_efficiency"] >= 1.0
    rows = [t for t in content["traffic"] if t["requests"] > 1000]
    assert len(rows) > 3
    for t in rows:
        assert t["sectors"] == t["requests"] * t["size"]
        assert t["sectors_if_scattered"] == 32 * t["requests"]


def test_lines_add_up_to_the_totals(content: Any) -> None:
    for name, total in content["totals"].items():
        assert sum(row.get(name, 0) for row in content["lines"]) == total


def test_the_page(simtbed: Simtbed) -> None:
    result = simtbed("profile", "tree", "--device", "k40")
    assert (result.code, result.err) == (0, "")
    page = result.out.splitlines()
    assert page[0] == "tree on the example, K40, 1 launch"
    assert any(row.split()[:2] == ["global_load_efficiency", "100.0"] for row in page)
    assert any(row.startswith("most shared wavefronts: ") and f"sums.py:{ADD}, 72 (" in row for row in page)
    assert any("transfer 204 sectors" in row for row in page)
    (add,) = [row for row in page if f" {ADD} | " in row]
    assert add.endswith(SOURCE[ADD - 1])
    assert " 72 " in add
    shown = [row.split(" | ", 1)[1] for row in page if " | " in row]
    start = SOURCE.index("@st.kernel")
    assert shown == SOURCE[start : start + len(shown)]


def test_a_device_of_ones_own(simtbed: Simtbed, tmp_path: Path) -> None:
    file = tmp_path / "empty.toml"
    file.write_text("")
    assert "empty.toml" in simtbed("profile", "tree", "--device", str(file)).refused()
    file.write_text('like = "L4"\nname = "mine"\nsms = 40\n')
    note = "empty.toml: as L4: compute_capability (8, 9), warps_per_sm 48"
    assert note in simtbed("profile", "tree", "--device", str(file)).err


COPY = """
import numpy as np
import simtbed as st

@st.kernel
def copy(x: st.Global[st.f32], out: st.Global[st.f32]):
    out[st.thread.x] = x[st.thread.x]

st.launch(copy, grid=1, block=32, args={"x": np.ones(32, np.float32), "out": st.empty(32, st.f32)})
"""


@pytest.mark.slow
def test_words_of_a_family_are_not_in_the_report_of_a_script(simtbed: Simtbed, tmp_path: Path) -> None:
    script = tmp_path / "copies.py"
    script.write_text(COPY)
    text = simtbed("profile", str(script)).out
    assert "No avoidable cost is 1 % of the cycles or more." in text and "100.0 %" in text
    assert "scattered" not in text and "pair" not in text
    assert "sectors_if_scattered" not in simtbed("profile", "--json", str(script)).out
    assert "sectors if scattered" in simtbed("profile", "tree").out
