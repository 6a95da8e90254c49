"""Assignments in a kernel against Python: chained, to tuples and elements, and `:=` inside expressions."""

from textwrap import indent
from typing import Any

import numpy as np
import pytest
import simtbed as st
from hypothesis import given, settings
from hypothesis import strategies as hs

SIZE = 4
NAMES = ("a", "b", "c")
PLACES = (*(f"out[{k}]" for k in range(SIZE)), "piece[0]", "piece[1]")
FIRST = ["a, b, c = out[0], out[1], out[2]", "t, s = (a, 5), (b, c)", "piece[0] = piece[1] = 0"]
LAST = ["out[0] += t[0] + 3 * t[1] + piece[0]", "out[1] += s[0] + 3 * s[1] + piece[1]", "out[2] += a + 3 * b + 9 * c"]


def numbers() -> hs.SearchStrategy[str]:
    """Generate expressions of one number; `:=` may change a name read by other operands."""
    leaves = hs.sampled_from((*NAMES, *PLACES, "t[0]", "t[1]", "s[1]", "3", "added(out, 1, 2)"))

    def wider(inner: hs.SearchStrategy[str]) -> hs.SearchStrategy[str]:
        return hs.one_of(
            hs.builds("({} + {})".format, inner, inner),
            hs.builds("(1 if {} > {} else 2)".format, inner, inner),
            hs.builds("({} if {} > 4 else {})".format, inner, inner, inner),
            hs.builds("({} := {})".format, hs.sampled_from(NAMES), inner),
        )

    return hs.recursive(leaves, wider, max_leaves=4)


PAIRS = hs.one_of(hs.sampled_from(("t", "s")), hs.builds("({}, {})".format, numbers(), numbers()))
TARGETS = hs.sampled_from((*NAMES, *PLACES))
PAIR_TARGETS = hs.one_of(
    hs.sampled_from(("t", "s")),
    hs.builds("({}, {})".format, TARGETS, TARGETS),
    hs.builds("[{}, {}]".format, TARGETS, TARGETS),
)


def chained(targets: list[str], value: str) -> str:
    return " = ".join([*targets, value])


PLAIN = hs.one_of(
    hs.builds(chained, hs.lists(TARGETS, min_size=1, max_size=3), numbers()),
    hs.builds(chained, hs.lists(PAIR_TARGETS, min_size=1, max_size=3), PAIRS),
    hs.builds("{} += {}".format, TARGETS, numbers()),
)
STATEMENTS = hs.one_of(
    PLAIN,
    hs.builds("for i in range(2):\n    {}\n    {}".format, PLAIN, PLAIN),
    hs.builds("if {} > 4:\n    {}\nelse:\n    {}".format, numbers(), PLAIN, PLAIN),
)


def as_kernel(lines: list[str]) -> list[int]:
    """Return `out` of a kernel of these lines."""
    text = "\n".join(["piece = st.registers(st.i32, 2)", *FIRST, *lines, *LAST]).replace("added(", "st.atomic_add(")
    kernel = st.kernel(source=f"def assigns(out: st.Global[st.i32]) -> None:\n{indent(text, '    ')}\n")
    numbers = np.arange(1, SIZE + 1, dtype=np.int32)
    return st.launch(kernel, grid=1, block=1, args={"out": numbers}, engine="numpy").out.tolist()  # type: ignore[no-any-return]


def as_python(lines: list[str]) -> list[int]:
    """Return Python's `out`."""

    def added(array: list[int], at: int, step: int) -> int:
        old = array[at]
        array[at] += step
        return old

    space: dict[str, Any] = {"out": list(range(1, SIZE + 1)), "piece": [0, 0], "added": added}
    exec("\n".join([*FIRST, *lines, *LAST]), space)
    return space["out"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "line",
    [
        "a = b = out[0]",
        "a = b = c + 1",
        "a = b = added(out, 0, 1)",
        "a = b = c = out[0] + out[1]",
        "piece[0] = a = piece[1] = b + 1",
        "a, b = t = (b, a)",
        "t = s = (out[0], a)",
        "[a, b] = t = (out[0], out[1])",
        "a = b = 0 if a > 0 else 2",
        "a, b = (9 if b > 1 else 2), (3 if a > 1 else 4)",
        "t = (a, out[1]); b = t[1]",
        "a = b + (b := 5) + b",
        "a += (a := 5)",
        "out[2] = (a := 1) * 10 + (a := 2)",
        "out[a] += (a := 2)",
        "for v in ((3 if a > 0 else 2), (4 if a > 0 else 5)):\n    a = v - 9; b += v",
    ],
)
def test_order_of_assignments(line: str) -> None:
    assert as_kernel([line]) == as_python([line])


@pytest.mark.parametrize(
    "text",
    [
        "while True:\n    late = out[a]\n    if late > 2:\n        break\n    a += 1\nout[3] = late",
        "while True:\n    if a > 2:\n        late = 1\n        break\n    if b > 3:\n        late = 2\n        break\n    a, b = b, a + 1\n"
        "out[3] = late",
        "while True:\n    if a > 2:\n        late = 1\n    else:\n        a += 1\n        continue\n    break\nout[3] = late",
        "for k in range(3):\n    late = k + a\nout[3] = late",
        "for k in range(3):\n    if k == b:\n        late = 7\n        continue\n    late = k\n    if a > 5:\n        break\nout[3] = late",
    ],
)  # fmt: skip
def test_names_assigned_on_every_exit_of_a_loop_are_assigned(text: str) -> None:
    assert as_kernel(text.splitlines()) == as_python(text.splitlines())


@pytest.mark.parametrize(
    "text",
    [
        "while True:\n    if a > 2:\n        break\n    late = a",
        "while True:\n    for k in range(2):\n        if k > a:\n            break\n        late = k\n    if b > 0:\n        break",
        "while a < 3:\n    late = a\n    a += 1",
        "for k in range(3):\n    if a > k:\n        continue\n    late = k",
        "for k in range(3, 3):\n    late = k",
        "for k in range(a):\n    late = k",
        "for k in range(3):\n    late = (k, a)",
    ],
)  # fmt: skip
def test_names_unassigned_on_an_exit_of_a_loop_are_not_assigned(text: str) -> None:
    with pytest.raises(st.CompileError, match="late may be unassigned here"):
        as_kernel([*text.splitlines(), "out[3] = late[0]" if "(k, a)" in text else "out[3] = late"])


@pytest.mark.slow
@settings(max_examples=150)
@given(hs.lists(STATEMENTS, min_size=1, max_size=4))
def test_assignments_are_pythons(lines: list[str]) -> None:
    assert as_kernel(lines) == as_python(lines)
