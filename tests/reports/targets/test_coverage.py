"""Coverage of kernels: lines and branches, as LCOV and in the data of coverage.py."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Global, f32, i32
from simtbed.reports.targets.coverage import FileCoverage, as_lcov, coverage_of, merged_data
from simtbed.runtime.observing import observing
from simtbed.runtime.recording import Recorder

from tests.reports.conftest import Simtbed


@st.device
def magnitude(v: f32) -> f32:
    if v < 0.0:
        return -v
    return v


@st.kernel
def summed(x: Global[f32], out: Global[f32], n: i32, K: Const) -> None:
    """Sum some elements."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    total = f32(0)
    for j in range(n):
        if j == 5:
            break
        if j == 100:
            continue
        total += x[j]
    if K == 3:
        total += 1.0
    if K == 2:
        total += 2.0
    view = x[1:]
    out[i] = magnitude(total) + view[0]


LINES = {text.strip(): number for number, text in enumerate(Path(__file__).read_text().splitlines(), 1)}
MISSING = ("return -v", "return", "continue", "total += 1.0")


def covered(n: int = 8) -> FileCoverage:
    launches: list[st.Launch] = []
    args = {"x": np.ones(8, np.float32), "out": st.empty(8, f32), "n": n, "K": 2}
    with observing(Recorder(launches.append, keep="program")):
        st.launch(summed, grid=1, block=8, args=args)
        st.launch(summed, grid=1, block=8, args=args)
    return coverage_of(launches)[__file__]


def test_lines_are_counted_by_threads_over_all_launches() -> None:
    lines = covered().lines
    expected = {
        "if v < 0.0:": 16, "return -v": 0, "return v": 16, "if i >= n:": 16, "return": 0, "if j == 5:": 96, "break": 16,
        "continue": 0, "total += x[j]": 80, "if K == 3:": 16, "if K == 2:": 16, "total += 2.0": 16, "view = x[1:]": 16,
        "out[i] = magnitude(total) + view[0]": 16,
    }  # fmt: skip
    assert {text: lines[LINES[text]] for text in expected} == expected
    assert LINES["total += 1.0"] not in lines  # not compiled for K = 2


def test_both_ways_of_a_branch() -> None:
    branches = {line: both for (line, _), both in covered(6).branches.items()}
    assert branches[LINES["if i >= n:"]] == (4, 12) and branches[LINES["if j == 5:"]] == (12, 60)
    assert branches[LINES["for j in range(n):"]] == (72, 0) and branches[LINES["if v < 0.0:"]] == (0, 12)


def test_a_trace_file_of_lcov() -> None:
    file = FileCoverage({2: 8, 3: 0}, {(2, 8): (0, 8), (3, 8): (0, 0)})
    assert as_lcov({"/a.cu": file}).splitlines() == [
        "TN:", "SF:/a.cu", "DA:2,8", "DA:3,0", "LF:2", "LH:1", "BRDA:2,8,0,0", "BRDA:2,8,1,8", "BRDA:3,8,0,-",
        "BRDA:3,8,1,-", "BRF:4", "BRH:1", "end_of_record",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("branch", [False, True])
def test_the_data_of_the_host_is_merged(branch: bool, tmp_path: Path) -> None:
    coverage = pytest.importorskip("coverage")
    (tmp_path / "host.py").write_text("print(1)\n")
    path = tmp_path / ".coverage"
    options = ["--branch"] if branch else []
    command = [sys.executable, "-m", "coverage", "run", *options, "--data-file", str(path), str(tmp_path / "host.py")]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)  # not with the options of this project
    path.write_bytes(merged_data(path, {__file__: covered(), "/kernels.cu": FileCoverage({1: 1})}))
    measured = coverage.Coverage(data_file=str(path), config_file=False)
    measured.load()
    assert {Path(name).name for name in measured.get_data().measured_files()} == {"host.py", Path(__file__).name}
    missing = measured.analysis2(__file__)[3]
    first, last = LINES["i = st.block.x * st.block_dim.x + st.thread.x"], LINES["out[i] = magnitude(total) + view[0]"]
    expected = {LINES[text] for text in MISSING} - {LINES["return -v"]}
    assert {line for line in missing if first <= line <= last} == expected
    if branch:
        arcs = measured.get_data().arcs(__file__)
        assert arcs is not None and (LINES["if i >= n:"], LINES["total = f32(0)"]) in arcs
        assert (LINES["if i >= n:"], LINES["return"]) not in arcs


@pytest.mark.slow
def test_check_writes_the_coverage(
    simtbed: Simtbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_cuda: Callable[[], None]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_cuda()
    assert simtbed("check", "--coverage", "kernels.info", "half.cu").code == 0
    text = Path("kernels.info").read_text()
    assert f"SF:{tmp_path / 'half.cu'}\nDA:3,64\nDA:4,64\nDA:5,0\nDA:6,64\nLF:4\n" in text  # no brace, not line 1
    assert "\nBRDA:4,9,0,0\nBRDA:4,9,1,64\nBRDA:6,9,0,32\nBRDA:6,9,1,32\n" in text
    Path("half.cu").write_text(
        "__global__ void half_of(float *out, int n)\n{\n    int i = threadIdx.x;\n    if (i > 60)\n        return;\n"
        "    if (i < 10) {\n        out[i] = 2;\n        return;\n    }\n    out[i] = 3;\n    if (i > n)\n"
        "        out[i] = 4;\n}\n"
    )
    assert simtbed("check", "--coverage", "kernels.info", "half.cu").code == 0
    lines = dict(re.findall(r"^DA:(\d+),(\d+)$", Path("kernels.info").read_text(), re.MULTILINE))
    counts = {3: 64, 4: 64, 5: 3, 6: 61, 7: 10, 8: 10, 10: 51, 11: 51, 12: 0}  # 9 and 13: closing braces
    assert lines == {str(line): str(count) for line, count in counts.items()}
    pytest.importorskip("coverage")
    assert "names Python files only" in simtbed("check", "--coverage", ".coverage", "half.cu").err
    Path("other").write_text("no data")
    assert "other: expected data of coverage.py" in simtbed("check", "--coverage", "other", "half.cu").refused()
    assert Path("other").read_text() == "no data"


@pytest.fixture
def write_cuda() -> Callable[[], None]:
    def write() -> None:
        Path("half.cu").write_text(
            "__global__ void half_of(float *out, int n)\n{\n    int i = threadIdx.x;\n    if (i > n)\n"
            "        out[i] = 1;\n    if (i < 32) out[i] = 2;\n}\n"
        )
        Path("half.toml").write_text(
            '[[launch]]\nkernel = "half_of"\ngrid = 1\nblock = 64\n[launch.args]\n'
            'out = {type = "f32", shape = 64, values = 0}\nn = 100\n'
        )

    return write
