"""`simtbed diff`: what changed between two runs, worked out by hand for a kernel that was made better."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import simtbed as st
from simtbed import Global, f32

from tests.reports.conftest import Simtbed

KERNEL = """
import numpy as np
import simtbed as st
@st.kernel
def copy(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    i = st.thread.x
    {more}
    out[i] = x[{stride} * i]
def run() -> None:
    args = dict(x=np.zeros(64, np.float32), out=st.empty(32, st.f32))
    st.launch(copy, grid=1, block=32, args=args)
if __name__ == "__main__":
    print("mine")
    run()
"""


@st.kernel
def fill(out: Global[f32]) -> None:
    out[st.thread.x] = f32(1)


def saved_run(folder: Path, name: str, stride: int, more: str = "pass") -> Path:
    """A run of `copy`, kept in a file."""
    file = folder / f"{name}.py"
    file.write_text(KERNEL.format(stride=stride, more=more))
    space: dict[str, Any] = {"__name__": name}
    exec(compile(file.read_text(), str(file), "exec"), space)
    with st.profiling() as run:
        space["run"]()
    run.save(folder / f"{name}.json")
    return folder / f"{name}.json"


@pytest.fixture
def runs(tmp_path: Path) -> tuple[str, str]:
    return str(saved_run(tmp_path, "before", 2)), str(saved_run(tmp_path, "after", 1))


def test_counters_by_kernel_and_line(simtbed: Simtbed, runs: tuple[str, str]) -> None:
    result = simtbed("diff", "--format", "json", *runs)
    changes = json.loads(result.out)["changes"]
    changed = {(c["line"], c["counter"]): (c["before"], c["after"]) for c in changes if c["kernel"] == "copy"}
    # 32 floats, every second one: 8 sectors; adjacent ones: 4. The store is the same.
    assert changed[0, "global_load_sectors"] == (8, 4)
    assert changed[0, "global_load_efficiency"] == (0.5, 1.0)
    assert (0, "global_store_sectors") not in changed
    assert result.code == 0


def test_a_line_that_moved_is_the_same_line(simtbed: Simtbed, tmp_path: Path) -> None:
    before = saved_run(tmp_path, "before", 1)
    after = saved_run(tmp_path, "after", 1, more="i += 0\n    i += 0")
    changes = json.loads(simtbed("diff", "--format", "json", str(before), str(after)).out)["changes"]
    lines = {c["source"] for c in changes if c["line"]}
    assert lines == {"i += 0"}


def test_the_same_run(simtbed: Simtbed, runs: tuple[str, str]) -> None:
    before, _ = runs
    assert simtbed("diff", before, before).out == f"the counters of {before} and {before} are equal\n"


def test_text_and_csv(simtbed: Simtbed, runs: tuple[str, str], tmp_path: Path) -> None:
    text = simtbed("diff", *runs).out
    (row,) = [line for line in text.split("\n\n")[1].splitlines() if line.startswith("global_load_sectors ")]
    assert row.split() == ["global_load_sectors", "8", "4", "0.5", "x"]
    file = tmp_path / "changes.csv"
    assert simtbed("diff", "--format", "csv", "-o", str(file), *runs).out == ""
    rows = list(csv.DictReader(file.read_text().splitlines()))
    place = {"kernel": "copy", "file": "", "line": "0", "source": ""}
    assert {**place, "counter": "global_load_sectors", "a": "8", "b": "4"} in rows


def test_a_kernel_of_one_run_alone(simtbed: Simtbed, runs: tuple[str, str], tmp_path: Path) -> None:
    with st.profiling() as run:
        st.launch(fill, grid=1, block=32, args={"out": st.empty(32, f32)})
    run.save(tmp_path / "other.json")
    result = simtbed("diff", "--format", "json", runs[0], str(tmp_path / "other.json"))
    changes = json.loads(result.out)["changes"]
    assert {(c["kernel"], c["after"] is None, c["before"] is None) for c in changes} == {
        ("copy", True, False),
        ("fill", False, True),
    }
    only = json.loads(simtbed("diff", "--kernel", "fi*", "--format", "json", runs[0], str(tmp_path / "other.json")).out)
    assert {c["kernel"] for c in only["changes"]} == {"fill"}


@pytest.mark.slow
def test_targets(simtbed: Simtbed, runs: tuple[str, str], tmp_path: Path) -> None:
    result = simtbed("diff", runs[0], str(tmp_path / "after.py"))
    assert result.code == 0 and "global_load_sectors " in result.out


def test_what_is_no_run(simtbed: Simtbed, tmp_path: Path) -> None:
    file = tmp_path / "wrong.json"
    file.write_text("{}")
    assert "wrong.json: expected a run that simtbed saved" in simtbed("diff", str(file), str(file)).refused()
    assert "expected a saved run or a target, got an empty name" in simtbed("diff", " ", str(file)).refused()
