"""Errors of a kernel in one round: the errors behind a variable that starts as a whole number are reported too."""

import pytest
import simtbed as st
from simtbed import CompileError
from simtbed.frontend.reader import specialise

from tests.table_checks import each_row

HEAD = "def k(a: st.Global[st.u8], x: st.Global[st.f32], n: st.i32) -> None:\n    "
START = "start it as a float, such as 0.0"
Row = tuple[str, list[str], str]
ROWS: tuple[Row, ...] = (
    (
        "t = 0\nfor i in range(n):\n    t += x[i]\na[0] = x[0] > t\nx[1] = t / n\nhit = 0\nhit = x[3] > t\na[2] = hit",
        [
            f"t starts as a whole number: {START}",
            "nothing is converted silently: write st.u8(x[0] > t)",
            "write st.f32(n)",
            "write st.u8(x[3] > t) here, or start hit as st.bool(...)",
        ],
        "t = 0.0\nfor i in range(n):\n    t += x[i]\na[0] = st.u8(x[0] > t)\nx[1] = t / st.f32(n)\n"
        "hit = 0\nhit = st.u8(x[3] > t)\na[2] = hit",
    ),
    (
        "count = 0\nfor i in range(n):\n    if x[i] > 0.5:\n        count += 1\ny = count * 0.5\nx[count] = x[0] / count + y",
        ["write st.f32(count)", "write st.f32(count)"],
        "count = 0\nfor i in range(n):\n    if x[i] > 0.5:\n        count += 1\ny = st.f32(count) * 0.5\n"
        "x[count] = x[0] / st.f32(count) + y",
    ),
    (
        "at = 0\nbest = x[0]\nfor i in range(n):\n    if x[i] > best:\n        best = x[i]\n        at = i\nx[0] = best + at",
        ["write st.f32(at)"],
        "at = 0\nbest = x[0]\nfor i in range(n):\n    if x[i] > best:\n        best = x[i]\n        at = i\n"
        "x[0] = best + st.f32(at)",
    ),
    (
        "s = 0\nq = 0\nfor i in range(n):\n    s += x[i]\n    q = q + x[i] * x[i]\nx[0] = q / n - (s / n) * (s / n)",
        [f"s starts as a whole number: {START}", f"q starts as a whole number: {START}", *["write st.f32(n)"] * 3],
        "m = st.f32(n)\ns = 0.0\nq = 0.0\nfor i in range(n):\n    s += x[i]\n    q = q + x[i] * x[i]\n"
        "x[0] = q / m - (s / m) * (s / m)",
    ),
)


def kernel(body: str) -> st.Kernel:
    return st.kernel(source=HEAD + body.replace("\n", "\n    ") + "\n")


@each_row(ROWS, lambda row: row[0][:30])
def test_one_round(row: Row) -> None:
    body, advice, correct = row
    with pytest.raises(CompileError) as caught:
        specialise(kernel(body), {})
    assert [diagnostic.notes[-1] for diagnostic in caught.value.diagnostics] == advice
    specialise(kernel(correct), {})
