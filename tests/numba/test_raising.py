"""Exceptions of kernels with debug=True: raised on the host, found at their statements. Prints in branches, long chains, empty bodies."""

import json
from pathlib import Path

import pytest

from tests.numba.running import FOLDER, run

pytestmark = [pytest.mark.integration, pytest.mark.slow]
RAISING = FOLDER / "raising.py"
RAISED = {
    "device": "ValueError In function 'limited', file {}, line {}, tid=[0, 0, 6] ctaid=[0, 0, 0]: too big",
    "nested": "AssertionError In function 'limited_twice', file {}, line {}, tid=[0, 0, 3] ctaid=[0, 0, 0]: three",
    "own_and_device": "IndexError In function 'own_and_device', file {}, line {}, tid=[0, 0, 2] ctaid=[0, 0, 0]: two",
    "division": "ZeroDivisionError tid=[0, 0, 4] ctaid=[0, 0, 0]: integer division by zero",
    "second_division": "ZeroDivisionError tid=[0, 0, 1] ctaid=[0, 0, 0]: integer division by zero",
}


def test_exceptions_prints_and_chains() -> None:
    completed = run("-m", "simtbed", "check", "--json", RAISING, code=1)
    report = json.loads(completed.stdout)
    lines = completed.stderr.splitlines()
    assert lines.pop(0).startswith("simtbed: numba emulated: ")
    source = RAISING.read_text(encoding="utf-8").splitlines()
    marks = {line.split("# raises ")[1]: number for number, line in enumerate(source, 1) if "# raises " in line}
    assert lines[:5] == [f"{name} {text.format(RAISING, marks[name])}" for name, text in RAISED.items()]
    assert sorted(lines[5:]) == ["big 3.000000 3", "equal", *(f"small {n}.000000 {n}" for n in range(3))]
    places = {own["kernel"]: {fault["line"] for fault in own["faults"]} for own in report["kernels"] if own["faults"]}
    assert places == {name: {marks[name]} for name in RAISED}


EMPTY = '''
from numba import cuda

@cuda.jit
def empty(x):
    """To be written."""

empty[1, 1](1)
'''


def test_a_body_of_a_docstring_alone(tmp_path: Path) -> None:
    script = tmp_path / "empty.py"
    script.write_text(EMPTY)
    message = "4:1: empty: Numba-CUDA compiles no body of a docstring alone: write pass after it"
    assert message in run("-m", "simtbed.numba", script, code=1).stderr
