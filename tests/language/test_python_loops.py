"""Loops against Python's semantics: generated kernels and the same text run as Python, lane by lane."""

from typing import Any

import pytest
import simtbed as st
from hypothesis import given, settings
from hypothesis import strategies as some
from simtbed import i32
from simtbed.runtime.request import prepare_request
from simtbed.testing.conformance.outcomes import engine_of

DIGITS = (3, 1, 4, 1, 5)
SINGLE = (
    "range(lane % 4)", "range(5, total % 3, -2)", "range(0, 9, 1 + lane % 3)", "range(4, -3, -1 - lane % 2)",
    "st.unroll(range(3))", "st.unroll(DIGITS)", "DIGITS", "[2, 7, lane]", "reversed(DIGITS)",
)  # fmt: skip
PAIRS = ("enumerate(DIGITS)", "zip(DIGITS, (1, 2, 3, 4, 5))")
DEEPEST = 4


class _Words:
    """The members of `st` used by the text under Python."""

    @staticmethod
    def unroll(items: Any) -> Any:
        return items


class _Text:
    """The text of a kernel's body, generated statement by statement."""

    def __init__(self, data: some.DataObject) -> None:
        self.data, self.lines, self.names = data, [""], 0

    def pick(self, *choices: str) -> str:
        return self.data.draw(some.sampled_from(choices))

    def number(self, most: int) -> int:
        return self.data.draw(some.integers(0, most))

    def emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def value(self, cached: tuple[str, ...]) -> str:
        name = self.pick("lane", *cached)
        return self.pick("total % 50", name, f"{name} * 2 + 1", f"(total + {name}) % 7")

    def body(self, depth: int, cached: tuple[str, ...], in_loop: bool) -> None:
        for _ in range(1 + self.number(2)):
            kinds = ["add"] + ["leave"] * in_loop + (["branch", "loop", "loop", "while"] if depth < DEEPEST else [])
            kind = self.pick(*kinds)
            if kind == "add":
                self.emit(depth, f"total += {self.value(cached)}")
            elif kind == "leave":
                self.emit(depth, f"if {self.value(cached)} % {2 + self.number(2)} == {self.number(2)}:")
                self.emit(depth + 1, self.pick("break", "continue"))
            elif kind == "branch":
                self.emit(depth, f"if {self.value(cached)} > {self.number(20)}:")
                self.body(depth + 1, cached, in_loop)
            else:
                self.loop(depth, cached, kind)
                if self.number(1):
                    self.emit(depth, "else:")
                    self.body(depth + 1, cached, in_loop)

    def loop(self, depth: int, cached: tuple[str, ...], kind: str) -> None:
        self.names += 1
        own = self.pick(*sorted({"i", "j", "k"} - {*cached}), f"n{self.names}")
        if kind == "while":
            own = f"n{self.names}"
            self.emit(depth, f"{own} = 0")
            self.emit(depth, f"while {own} < {1 + self.number(3)} + lane % 2:")
            self.emit(depth + 1, f"{own} += 1")
            self.body(depth + 1, (*cached, own), True)
        elif self.number(2):
            self.emit(depth, f"for {own} in {self.pick(*SINGLE)}:")
            self.body(depth + 1, (*cached, own), True)
        else:
            self.emit(depth, f"for {own}, w{self.names} in {self.pick(*PAIRS)}:")
            self.body(depth + 1, (*cached, own, f"w{self.names}"), True)


@pytest.mark.slow
@settings(max_examples=10)
@given(some.data())
def test_loops_mean_what_python_means(data: some.DataObject) -> None:
    text = _Text(data)
    text.body(1, (), False)
    body = "\n".join(text.lines)
    space: dict[str, Any] = {"DIGITS": DIGITS, "st": _Words}
    exec(f"def plain(lane):\n    total = 0\n{body}\n    return total\n", space)
    expected = [space["plain"](lane) for lane in range(32)]
    head = "def loops(out: st.Global[i32]) -> None:\n    lane = st.lane\n    total = 0\n"
    kernel = st.kernel(source=f"{head}{body}\n    out[st.lane] = total\n")
    request = prepare_request(kernel, grid=1, block=32, args={"out": st.empty(32, i32)})
    for engine in ("numpy", "jit", "python"):
        outcome = engine_of(engine).run(request)
        assert (outcome.faults, outcome.buffers["out"].tolist()) == ([], expected), engine
