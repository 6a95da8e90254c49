"""Commands on CUDA C++: `.cu` files with a description of their launches, and scripts that import PyCUDA."""

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.reports.profile import annotate
from simtbed.reports.targets import cuda_file

from tests.hostile.mutations import mutated
from tests.pages import ROOT
from tests.reports.conftest import Simtbed, command_line
from tests.table_checks import each_row
from tests.texts import texts

KERNEL = texts("reports/kernels.cu")["shift"]
LAUNCH = """[[launch]]
kernel = "shift<float>"
grid = 1
block = 64
[launch.args]
in = {type = "f32", shape = 64, values = "random"}
out = {type = "f32", shape = 64, values = 0}
n = 64
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a CUDA C++ file and its description."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shift.cu").write_text(KERNEL)
    (tmp_path / "shift.toml").write_text(LAUNCH)
    return tmp_path


@pytest.mark.slow
def test_a_race_is_found_at_its_line(simtbed: Simtbed, project: Path) -> None:
    assert simtbed("check", "shift.cu").code == 0
    (project / "shift.cu").write_text(KERNEL.replace("    __syncthreads();\n", ""))
    result = simtbed("check", "shift.cu")
    assert result.code == 1 and "shift.cu:5:" in result.out and "race on shared memory: tile[" in result.out
    assert "__syncthreads()" in result.out and "st.sync" not in result.out


@pytest.mark.slow
def test_other_commands_take_the_file(simtbed: Simtbed, project: Path) -> None:
    profile = simtbed("profile", "shift.cu")
    assert profile.code == 0 and "shift.cu:7" in profile.out
    assert simtbed("verify", "shift.cu").code in (0, 3)
    assert simtbed("whatif", "--device", "H200,K40", "shift.cu").code == 0


WRONG = [
    ("block = 64", "", "launch[0]: missing key block"),
    ("block = 64", "block = 64\nblocks = 2", "launch[0]: unknown key blocks"),
    ("block = 64", "block = [64, 0]", "launch[0].block[1]: expected a whole number >= 1"),
    ("block = 64", "block = []", "launch[0].block: expected a list of length >= 1"),
    ("block = 64", "block = 2048", "launch[0]: block is 2,048: the H200 takes at most 1,024"),
    ("grid = 1", "grid = {}", "launch[0].grid: expected a whole number or a list, got a table"),
    ("grid = 1", "grid = 1\nshared = true", "launch[0].shared: expected a whole number, got true or false"),
    ("grid = 1", "grid = 1\nshared = 99999999", "launch[0]: shared is 99,999,999"),
    ("grid = 1", "grid = 1\ncooperative = 1", "launch[0].cooperative: expected true or false"),
    ('"shift<float>"', "7", "launch[0].kernel: expected a text, got a whole number"),
    ('"shift<float>"', '"shift<"', "expected expression"),
    ("shift<float>", "scale", "the text has no kernel scale"),
    ("[[launch]]", "[[launch", "shift.toml"),
    ("[[launch]]", "[launch]", "launch: expected a list, got a table"),
    ("[[launch]]", 'options = "-O3"\n[[launch]]', "options: expected a list, got a text"),
    ("[[launch]]", "options = [3]\n[[launch]]", "options[0]: expected a text, got a whole number"),
    ("[[launch]]", 'options = ["-D"]\n[[launch]]', "the option -D of a CUDA C++ text has no name"),
    ("[[launch]]", "name = 1\n[[launch]]", "unknown key name"),
    ("[launch.args]", "args = 3\n[launch.other]", "launch[0]"),
    ("n = 64", "", "launch[0]: shift<float> needs n"),
    ("n = 64", "n = 1979-05-27", "launch[0].args.n: expected"),
    ("n = 64", "n = 64.5", "launch[0]: n is i32: a whole number is expected, not 64.5"),
    ("n = 64", "n = 9999999999999999999999", "launch[0]: n is i32"),
    ("n = 64", "n = 64\nm = 64", "launch[0]: shift<float> has no parameter m"),
    ('"random"', '"noise"', 'launch[0].args.in: values: expected "empty", "random", "range", a number or a list, got \'noise\''),
    ('"random"', "[1, 2]", "launch[0].args.in: values: expected 64 numbers, got 2"),
    ('"random"', "[[1, true]]", "launch[0].args.in: values[0][1] is f32: a number is expected, not True"),
    ('"random"', "1e39", "launch[0].args.in: values is f32"),
    ('"random"', "{}", "launch[0].args.in.values: expected"),
    ('"f32"', '"float"', "launch[0].args.in: type: expected bool, i8"),
    ('"f32"', '"i32"', "launch[0]: in points to f32; the array given is int32"),
    ('"f32"', "32", "launch[0].args.in.type: expected a text"),
    ("shape = 64", "shape = -1", "launch[0].args.in.shape: expected a whole number >= 1"),
    ("shape = 64", "shape = 1.5", "launch[0].args.in.shape: expected a whole number or a list, got a number"),
    ("shape = 64", "shape = [1, 1, 1, 1, 64]", "launch[0].args.in.shape: expected a list of length <= 4"),
    ("shape = 64", "shape = 1125899906842624", "launch[0].args.in: an array of"),
    ("shape = 64", "shape = 64, size = 3", "launch[0].args.in: unknown key size"),
    *[('"f32", shape = 64, values = "random"', f'"u8", shape = 300, values = {values}', f"values{where} is u8")
      for values, where in (("nan", ""), ("-1", ""), ("256", ""), ("true", ""), ("0.5", ""), ("[0, 256]", "[1]"))],
    ('"f32", shape = 64, values = "random"', '"u8", shape = 300, values = "range"', "the last of its values is u8"),
]  # fmt: skip


@pytest.mark.slow
@each_row(WRONG)
def test_wrong_descriptions_are_refused(
    row: tuple[str, str, str], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names the file and the key; the exit code is 2. No value is converted to another one."""
    old, new, reason = row
    (project / "shift.toml").write_text(LAUNCH.replace(old, new, 1))
    with pytest.raises(SystemExit) as error:
        cuda_file.run("shift.cu", "shift.toml")
    message = capsys.readouterr().err
    assert error.value.code == 2 and message.startswith("simtbed: ") and reason in message, message
    assert message.count("\n") == 1 or "expression" in message


def test_descriptions_are_read(project: Path) -> None:
    (project / "shift.toml").write_text(
        LAUNCH.replace('"random"', "[[1, 2], [3, 4]]").replace("shape = 64", "shape = [2, 2]", 1)
    )
    entry = cuda_file._described("shift.toml")["launch"][0]
    assert cuda_file._arguments(entry, "")["in"].tolist() == [[1, 2], [3, 4]]
    shift = {"type": "u8", "shape": 256, "values": "range"}
    assert cuda_file._array(shift).tolist() == [*range(256)]
    assert cuda_file._array(shift | {"type": "bool", "values": True}).all()
    assert np.isnan(cuda_file._array(shift | {"type": "f16", "values": math.nan})).all()


@pytest.mark.slow
def test_a_wrong_description_ends_a_command(capfd: pytest.CaptureFixture[str], project: Path) -> None:
    simtbed = command_line(capfd)
    (project / "shift.toml").write_text(LAUNCH.replace("block = 64", "block = true"))
    assert "shift.toml: launch[0].block: expected" in simtbed("check", "shift.cu").refused()


def test_missing_files_are_refused(simtbed: Simtbed, project: Path) -> None:
    (project / "folder").mkdir()
    (project / "folder.py").mkdir()
    (project / "folder.cu").mkdir()
    for words, expected in {
        "other.cu": "other.cu: No such file",
        "folder": "folder: a folder; expected a program",
        "folder.py": "folder.py: a folder; expected a script,",
        "folder.cu": "folder.cu: a folder",
        os.devnull: f"{os.devnull}: not a regular file; expected a program",
    }.items():
        assert expected in simtbed("check", *words.split()).refused()
    (project / "shift.toml").unlink()
    assert "shift.toml: No such file" in simtbed("check", "shift.cu", "shift.toml").refused()


@pytest.mark.slow
def test_a_script_is_emulated_on_request(capfd: pytest.CaptureFixture[str]) -> None:
    simtbed = command_line(capfd)
    script = str(ROOT / "examples/cuda/pycuda_histogram.py")
    result = simtbed("check", "--emulate", "pycuda", script)
    assert result.code == 0 and "pycuda emulated" in result.err and "histogram" in result.out
    assert (
        "--emulate opencl: there are pycuda, cupy, numba, triton and none"
        in simtbed("check", "--emulate", "opencl", script).refused()
    )


@pytest.mark.parametrize("named", ['0 "user.cu"', '500 "user.cu"', '3 "/dev/zero"', '3 ""'])
def test_lines_that_no_file_has(project: Path, named: str) -> None:
    """`#line` may name a line or a file without a text; the source of that line is empty."""
    (project / "shift.cu").write_text(f"#line {named}\n__global__ void c(float *x) {{ x[threadIdx.x] += 1; }}\n")
    kernel = st.cuda_file(str(project / "shift.cu"))["c"]
    profile = st.launch(kernel, grid=1, block=8, args=(np.ones(8, np.float32),)).profile()
    assert {one.source for one in annotate.hottest(profile)} == {""}
    assert annotate.annotated(profile).endswith(" |")


def _exit_code() -> Any:
    try:
        cuda_file.run("shift.cu", "shift.toml")
    except SystemExit as error:
        return error.code
    return 0


@pytest.mark.slow
@each_row(range(50))
def test_mutated_descriptions(seed: int, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Any bytes are launched or refused."""
    (project / "shift.toml").write_bytes(mutated(LAUNCH.encode(), seed))
    code = _exit_code()
    assert code in (0, 1, 2)
    assert code < 2 or capsys.readouterr().err.startswith("simtbed: ")
