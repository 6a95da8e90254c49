"""Run files from untrusted sources: a file with any wrong value is refused with one sentence."""

import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Global, Run, SimtbedError, f32
from simtbed.reports.cli.app import run as run_command

ODD: list[Any] = [
    None, True, -1, 0, 1.5, 1e308, 10**30, -(10**30), 1 << 63, "", "x", "\x1b[31m\n", "\ud800", [], {}, [1], [[1]],
    {"a": 1}, math.nan, math.inf, "A" * 5000, [0] * 300, 99_999,
]  # fmt: skip
ABSENT = object()


@st.kernel
def halves(x: Global[f32], out: Global[f32], N: Const) -> None:
    for each in range(N[0]):
        if x[st.thread.x + 1] > f32(each):
            out[st.thread.x] = x[st.thread.x + 1] / f32(2.0)


@pytest.fixture(scope="module")
def good() -> dict[str, Any]:
    with st.profiling(detail=True) as run:
        args = {"x": np.ones(33, np.float32), "out": st.zeros(32, "f32"), "N": (2, 1.0)}
        st.launch(halves, grid=1, block=32, args=args, detail=True)
    content: dict[str, Any] = json.loads(run.json())
    assert content["launches"][0]["samples"]["remedies"]
    span = content["kernels"][0]["span"]
    remark = {"kind": "race", "message": "m", "span": span, "notes": ["n"], "count": 1, "related": None}
    content["launches"][0]["remarks"] = [remark]
    return content


def _places(content: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value of the document; of lists, the first two and the last element."""
    yield at
    if isinstance(content, dict):
        for key in content:
            yield from _places(content[key], (*at, key))
    elif isinstance(content, list):
        for place in sorted({0, 1, len(content) - 1} & {*range(len(content))}):
            yield from _places(content[place], (*at, place))


def changed_at(content: Any, at: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(content)
    inner = changed
    for key in at[:-1]:
        inner = inner[key]
    if value is ABSENT:
        del inner[at[-1]]
    else:
        inner[at[-1]] = value
    return changed


def trials(good: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """Return (path, odd value) for each value of the document and each odd value; ABSENT deletes the value."""
    return [(at, value) for at in _places(good) if at for value in (*ODD, ABSENT)]


def handled(content: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return an error of `simtbed diff` on a file; empty if the file is accepted or refused with one sentence."""
    file, other = folder / "run.json", folder / "other.json"
    file.write_text(json.dumps(content))
    try:
        Run.load(file).html()
    except SimtbedError as error:
        if "\n" in str(error) or len(str(error)) > 700:
            return f"no sentence: {error}"
    except Exception as error:
        return f"raised {error!r}"
    code = run_command(["diff", "-o", str(folder / "out"), str(file), str(other)])  # the changed file is read first
    error_text = capsys.readouterr().err
    return "" if (code, error_text.count("\n")) in ((0, 0), (2, 1)) else f"{code}: {error_text}"


def all_handled(good: Any, chosen: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "other.json").write_text(json.dumps(good))
    wrong = [(at, value, handled(changed_at(good, at, value), folder, capsys)) for at, value in chosen]
    assert [one for one in wrong if one[2]] == []


def test_wrong_values(good: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    all_trials = trials(good)
    assert len(all_trials) > 3_000
    all_handled(good, all_trials[::97], tmp_path, capsys)


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"{", b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"\x80", b"NaN", b"1" * 10_000, b'"\\ud800"'],
)
def test_other_content_is_refused(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(data)
    with pytest.raises(SimtbedError, match=r"run\.json: expected a run that simtbed saved") as caught:
        Run.load(file)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize("path", [".", "none.json", "a\0b", "/dev/null", "x" * 5000])
def test_a_path_without_a_run(path: str) -> None:
    with pytest.raises(SimtbedError) as caught:
        Run.load(path)
    assert "\n" not in str(caught.value)
