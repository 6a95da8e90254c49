"""`simtbed whatif`: targets of every kind, axes, files, JSON with its keys, and refusals in one line."""

import csv
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simtbed.reports.whatif.plots import _ticks, line_plot

from tests.reports.conftest import Simtbed

KEYS = [
    "kernel", "launch", "device", "grid", "block", "const", "time_us", "low_us", "high_us", "bound", "warp_instructions",
    "l1_hit", "l2_hit", "dram_bytes", "outputs",
]  # fmt: skip
SCRIPT = """
import numpy as np
import simtbed as st

@st.kernel
def scale(x: st.Global[st.f32], out: st.Global[st.f32], n: st.i32, BLOCK: st.Const, TILE: st.Const) -> None:
    i = st.block.x * BLOCK + st.thread.x
    for step in range(TILE):
        at = i + step * BLOCK
        if at < n:
            out[at] = x[at] * st.f32(2)

@st.kernel
def fill(out: st.Global[st.i32]) -> None:
    out[st.block.x * st.block_dim.x + st.thread.x] = 1

kept = st.DeviceArray(np.zeros(4096, np.int32))
for n in (4096, 8192):
    x = np.arange(n, dtype=np.float32)
    found = st.launch(scale, grid=n // 64, block=64, args=dict(x=x, out=st.empty(n, st.f32), n=n, BLOCK=64, TILE=1)).out
    assert (found == 2 * x).all()
    st.launch(fill, grid=16, block=256, args=dict(out=kept))
print("done")
"""


IN_PLACE = """
import numpy as np
import simtbed as st

@st.kernel
def shift(x: st.Global[st.i32], y: st.Global[st.i32]) -> None:
    y[st.thread.x] = x[st.thread.x] + 1

memory = np.arange(40, dtype=np.int32)
st.launch(shift, grid=1, block=32, args=(memory[:32], memory[2:]), in_place=True)
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


def rows(text: str) -> list[dict[str, Any]]:
    result = json.loads(text)
    assert isinstance(result, list) and all(list(row) == KEYS for row in result)
    return result


@pytest.mark.slow
def test_a_script_has_a_row_for_each_launch_and_configuration(simtbed: Simtbed, script: str) -> None:
    result = simtbed("whatif", "--device", "H100,K40", "--block", "64,128", "--tie", "BLOCK=block.x", "--json", script)
    assert result.code == 0, result.err
    table_rows = rows(result.out)
    assert len(table_rows) == 4 * 2 * 2
    assert [row["launch"] for row in table_rows if row["kernel"] == "scale"] == [0] * 4 + [2] * 4
    scale = [row for row in table_rows if row["kernel"] == "scale" and row["launch"] == 2 and row["device"] == "K40"]
    assert [(row["grid"], row["block"], row["const"]) for row in scale] == [
        ([128, 1, 1], [64, 1, 1], {"BLOCK": 64, "TILE": 1}),
        ([64, 1, 1], [128, 1, 1], {"BLOCK": 128, "TILE": 1}),
    ]
    assert all(row["low_us"] < row["time_us"] < row["high_us"] and row["warp_instructions"] > 0 for row in table_rows)


@pytest.mark.slow
def test_arrays_that_share_memory(simtbed: Simtbed, tmp_path: Path) -> None:
    (tmp_path / "in_place.py").write_text(IN_PLACE)
    result = simtbed("whatif", "--json", str(tmp_path / "in_place.py"))
    assert [row["outputs"] for row in rows(result.out)] == ["reference"], result.err


@pytest.mark.slow
def test_one_kernel_one_launch_and_a_report_with_the_best_choice(simtbed: Simtbed, script: str, tmp_path: Path) -> None:
    out, table, picture, page = (tmp_path / name for name in ("out.txt", "rows.csv", "plot.svg", "page.html"))
    result = simtbed(
        "whatif", "--kernel", "sc*", "--launch", "1", "--const", "TILE=1,2", "--block", "32,64", "--tie", "BLOCK=block.x",
        "--cold", "--source-only", "-o", str(out), "--csv", str(table), "--svg", str(picture), "--html", str(page), script,
    )  # fmt: skip
    assert result.code == 0, result.err
    text = out.read_text()
    assert "best of 4: " in text and "a tie with 32, TILE=1" in text and "cold caches" in text
    assert "validated on" in text
    table_rows = list(csv.DictReader(table.read_text().splitlines()))
    assert len(table_rows) == 4 and all(int(row["dram_bytes"]) >= 8192 * 4 for row in table_rows)
    ElementTree.parse(picture)
    content = page.read_text()
    assert content.count("<svg") == 3 and "http" not in content.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.slow
def test_a_shipped_variant_and_a_device_put_otherwise(simtbed: Simtbed) -> None:
    result = simtbed("whatif", "tree", "--replace", "l2=1MB,banks=16,timing.dram=900", "--device", "A100", "--json")
    assert result.code == 0, result.err
    (row,) = rows(result.out)
    assert row["device"] == "A100 l2=1MB banks=16 timing.dram=900"


@pytest.mark.slow
def test_the_objective_is_what_the_best_has_least_of(simtbed: Simtbed) -> None:
    result = simtbed("whatif", "tree", "--objective", "bytes", "--cold")
    assert result.code == 0 and "bytes of device memory" in result.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--device", "B300"), "no device is called 'B300'"),
        (("--block", "64,abc"), "--block 64,abc: expected sizes above 0, such as 64,128 or 32x8, got 'abc'"),
        (("--block", "0"), "--block 0: expected sizes above 0"),
        (("--const", "TILE"), "--const TILE: expected a name and a value, such as T=8,16,32"),
        (("--const", "T=1"), "no launch has a Const parameter T; there are"),
        (("--tie", "BLOCK=grid.x"), "--tie BLOCK=grid.x: expected block.x, block.y or block.z"),
        (("--replace", "cores=3"), "--replace cores=3: a device has no numeric field cores"),
        (("--replace", "l2=much"), "expected a number, such as 16 or 50MB"),
        (("--replace", "banks=20"), "banks: expected a power of two"),
        (("--kernel", "absent"), "no launched kernel matches 'absent'"),
        (("--block", "4096"), "a block"),
        (("--dask", "nowhere"), "a cluster is the address of its scheduler"),
    ],
)
def test_what_is_wrong_is_one_line(simtbed: Simtbed, options: tuple[str, ...], message: str) -> None:
    result = simtbed("whatif", *options, "tree")
    if options == ("--block", "4096"):
        assert result.code == 2 and "at most 1,024" in result.err
        return
    assert message in result.refused()


@pytest.mark.slow
def test_a_program_that_fails_gives_its_code(tmp_path: Path) -> None:
    path = tmp_path / "fails.py"
    path.write_text("import sys\nsys.exit(7)\n")
    completed = subprocess.run(
        [sys.executable, "-m", "simtbed", "whatif", str(path)], capture_output=True, text=True, check=False
    )
    assert completed.returncode == 7


@pytest.mark.slow
def test_a_cluster_gives_the_same_rows(
    simtbed: Simtbed, script: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    command = ("whatif", "--const", "TILE=1,2,4", "--kernel", "scale", "--source-only", "--json", script)
    tmp_path.chmod(0o700)
    result = []
    for name, options in (("one", ()), ("other", ("--dask", "local"))):
        (folder := tmp_path / name).mkdir(mode=0o700)
        monkeypatch.setenv("SIMTBED_CACHE", str(folder))
        result.append(rows(simtbed(command[0], *options, *command[1:]).out))
    assert result[0] == result[1] and len(result[0]) == 6


def test_a_page_has_its_own_option(simtbed: Simtbed, script: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    for command in ("whatif", "profile"):
        refused = simtbed(command, "--output", str(page), script).refused()
        assert f"--output {page}: takes the report as text; --html {page} writes such a file" in refused
    assert not page.exists()


def test_names_of_lines_of_one_height_do_not_overlap() -> None:
    point = (3.0, 2.0, 4.0)
    root = ElementTree.fromstring(line_plot({name: {"64": point, "128": point} for name in ("A", "B", "C")}, "us"))
    texts = {one.text: one for one in root.iter() if one.tag.endswith("text")}
    heights = sorted(float(texts[name].attrib["y"]) for name in "ABC")
    assert min(b - a for a, b in pairwise(heights)) >= 13
    assert {"us", "2", "5", "64", "128"} <= texts.keys()


@given(st.floats(1e-3, 1e9), st.floats(1, 1e6))
def test_ticks_enclose_the_values(least: float, times: float) -> None:
    ticks = _ticks(least, least * times)
    assert ticks == sorted(ticks) and 2 <= len(ticks) <= 16
    assert ticks[0] <= least * (1 + 1e-9) and least * times <= ticks[-1] * (1 + 1e-9)
