"""Random kernels with all kinds of control flow: text of Python functions whose loops end."""

from collections.abc import Callable
from random import Random
from typing import Any

MODULUS = 997  # small values, since Python's integers do not wrap
WORDS = ("x", "y", "z")


class Generator:
    """A generator of one kernel `kernel(a, out)` of i64 arrays. a: 40 values; out: one for each thread."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lines: list[str] = []
        self.counters = 0
        self.functions = self.random.randrange(3)

    def text(self) -> str:
        for number in range(self.functions):
            self._function(number)
        self._add(0, "def kernel(a, out):")
        self._add(1, "t = cuda.threadIdx.x")
        for word, index in zip(WORDS, ("t", "t + 1", "(t * 7) % 40"), strict=True):
            self._add(1, f"{word} = a[{index}]")
        self._block(1, loops=0, budget=self.random.randrange(3, 9), ends=["out[t] = x + 2 * y", "return"])
        self._add(1, "out[t] = x * 3 + y * 5 + z * 7")
        return "\n".join(self.lines) + "\n"

    def _function(self, number: int) -> None:
        self._add(0, "@device")
        self._add(0, f"def f{number}(x, y):")
        self._add(1, "z = x")
        self._block(1, loops=0, budget=4, ends=[f"return (x + {number}) % {MODULUS}"], calls=number)
        self._add(1, f"return (x + y * 2 + z) % {MODULUS}")

    def _add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def _block(self, depth: int, loops: int, budget: int, ends: list[str], calls: int | None = None) -> None:
        """Statements. ends: those that leave the function."""
        calls = self.functions if calls is None else calls
        for _ in range(max(1, self.random.randrange(budget + 1))):
            kind = self.random.random()
            inner = (loops, budget - 2, ends, calls)
            if kind < 0.3 or budget < 2:
                self._assignment(depth, calls)
            elif kind < 0.55:
                self._choice(depth, inner)
            elif kind < 0.8 and loops < 3:
                self._loop(depth, inner)
            elif kind < 0.92 and loops:
                self._add(depth, f"if {self._condition()}:")
                self._add(depth + 1, self.random.choice(("break", "continue")))
            elif kind < 0.97:
                self._add(depth, f"if {self._condition()}:")
                for line in ends:
                    self._add(depth + 1, line)
            else:
                self._assignment(depth, calls)

    def _choice(self, depth: int, inner: tuple[int, int, list[str], int]) -> None:
        self._add(depth, f"if {self._condition()}:")
        self._block(depth + 1, *inner)
        if self.random.random() < 0.3:
            self._add(depth, f"elif {self._condition()}:")
            self._block(depth + 1, *inner)
        if self.random.random() < 0.5:
            self._add(depth, "else:")
            self._block(depth + 1, *inner)

    def _loop(self, depth: int, inner: tuple[int, int, list[str], int]) -> None:
        loops, budget, ends, calls = inner
        self.counters += 1
        counter = f"c{self.counters}"
        if self.random.random() < 0.5:
            bounds = self.random.choice(("{n}", "x % 5", "1, {n}", "{n}, 0, -1", "0, y % 7, 2"))
            self._add(depth, f"for {counter} in range({bounds.format(n=self.random.randrange(2, 6))}):")
        else:
            self._add(depth, f"{counter} = 0")
            self._add(depth, f"while {counter} < {self.random.choice(('4', 'x % 6', 'y % 3 + 1'))}:")
            self._add(depth + 1, f"{counter} += 1")
        self._block(depth + 1, loops + 1, budget, ends, calls)
        if self.random.random() < 0.5:
            self._add(depth + 1, f"{self.random.choice(WORDS)} += {counter}")
        if self.random.random() < 0.3:
            self._add(depth, "else:")
            self._block(depth + 1, *inner)

    def _assignment(self, depth: int, calls: int) -> None:
        target, a, b = (self.random.choice(WORDS) for _ in range(3))
        number = self.random.randrange(1, 9)
        forms = [
            f"({a} + {b} * {number}) % {MODULUS}", f"({a} - {b}) % {number + 5}", f"({a} * {number} + 1) % {MODULUS}",
            f"{a} // {number}", f"({a} if {self._condition()} else {b})", f"{b}",
        ]  # fmt: skip
        if calls:
            forms.append(f"f{self.random.randrange(calls)}({a}, {b})")
        if self.random.random() < 0.15:
            self._add(depth, f"{a}, {b} = {b}, {a}")
            return
        self._add(depth, f"{target} = {self.random.choice(forms)}")

    def _condition(self) -> str:
        a, b = self.random.choice(WORDS), self.random.choice(WORDS)
        simple = [
            f"{a} % {self.random.randrange(2, 5)} == {self.random.randrange(2)}", f"{a} < {b}",
            f"{a} > {self.random.randrange(40)}", f"{a} != {b}",
        ]  # fmt: skip
        first, second = self.random.choice(simple), self.random.choice(simple)
        kind = self.random.random()
        if kind < 0.25:
            return f"{first} and {second}"
        if kind < 0.5:
            return f"{first} or not {second}"
        return first


def functions(text: str, device: Callable[[Any], Any], cuda: Any) -> dict[str, Any]:
    """Return the functions of a text. device: the decorator of those that the kernel calls. cuda: has `threadIdx.x`."""
    namespace: dict[str, Any] = {"device": device, "cuda": cuda}
    exec(compile(text, "<kernel>", "exec"), namespace)
    return namespace
