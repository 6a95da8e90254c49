"""Random kernels with data-independent accesses, and their races by comparison of all pairs of accesses.

A kernel is a list of steps, each a line of source: threads write, read or atomically add to an element of a shared or
a global array, or wait at a barrier. The element depends on the thread index only, so the accesses are
the same in every order and the races follow from the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

SIZE = 64  # elements of the shared array; the global one has twice as many
MAPS = ("t", "t ^ {0}", "(t + {0}) % 64", "t // {1}", "{0}", "63 - t", "t % {1}")
"""Element indices by thread; the numbers are random."""
HEAD = '''"""A generated kernel."""
import simtbed as st
from simtbed import Global, i32


@st.kernel
def generated(cells: Global[i32], out: Global[i32]) -> None:
    tile = st.shared(i32, 64)
    t = st.thread.x
    total = 0
    tile[t] = 0
    st.sync()
'''
FIRST_LINE = HEAD.count("\n") + 1


@dataclass(frozen=True)
class Step:
    """One line. what: write, read, add, sync or syncwarp. guard: the lanes' or warps' test, or none."""

    what: str
    array: str = ""
    index: str = ""
    guard: str = ""

    def text(self, number: int) -> str:
        line = {
            "write": f"{self.array}[{self.index}] = {1000 * (number + 1)} + t",
            "read": f"total += {self.array}[{self.index}]",
            "add": f"st.atomic_add({self.array}, {self.index}, 1 + t)",
            "sync": "st.sync()",
            "syncwarp": "st.syncwarp()",
        }[self.what]
        return f"    {f'if {self.guard}: ' if self.guard else ''}{line}"


@dataclass(frozen=True)
class Program:
    """Steps of a loop with a number of iterations."""

    steps: tuple[Step, ...]
    iterations: int
    grid: int
    block: int

    @property
    def source(self) -> str:
        lines = [
            f"    for iteration in range({self.iterations}):",
            *(f"    {s.text(n)}" for n, s in enumerate(self.steps)),
        ]
        return HEAD + "\n".join(lines) + "\n    out[st.block.x * st.block_dim.x + t] = total\n"

    def without(self, number: int) -> Program:
        """Return the program without a step; a line without effect replaces it, so that line numbers do not change."""
        steps = list(self.steps)
        steps[number] = Step("read", "tile", "t", guard="t < 0")
        return Program(tuple(steps), self.iterations, self.grid, self.block)

    def races(self, lockstep: bool) -> set[frozenset[int]]:
        """Return the pairs of lines with a race between two threads."""
        pairs_of_lines = set()
        cells: dict[Any, list[Any]] = {}
        for at, step, thread, element in self._accesses():
            cells.setdefault((step.array, element), []).append((at, step.what, thread))
        pairs = (pair for met in cells.values() for pair in combinations(met, 2))
        for (at, what, thread), (later, other, second) in pairs:
            if what == other != "write" or thread == second:
                continue
            if not self._ordered(at, later, thread, second, lockstep):
                lines = (FIRST_LINE + 1 + at % len(self.steps), FIRST_LINE + 1 + later % len(self.steps))
                pairs_of_lines.add(frozenset(lines))
        return pairs_of_lines

    def _accesses(self) -> Any:
        """Yield (position in time, step, (block, thread), element) in order of position."""
        for at in range(self.iterations * len(self.steps)):
            step = self.steps[at % len(self.steps)]
            if not step.array:
                continue
            for block in range(self.grid):
                for t in range(self.block):
                    names = {"t": t, "warp": t // 32, "b": block}
                    guard = step.guard.replace("st.warp", "warp").replace("st.block.x", "b")
                    if guard and not eval(guard, {}, names):
                        continue
                    element = eval(step.index.replace("st.block.x", "b"), {}, names)
                    if step.array == "tile":
                        yield at, step, (block, t), (block, element)  # a tile a block
                    else:
                        yield at, step, (block, t), element

    def _ordered(self, at: int, later: int, first: Any, second: Any, lockstep: bool) -> bool:
        if first[0] != second[0]:
            return False
        kinds = {self.steps[n % len(self.steps)].what for n in range(at + 1, later)}
        if "sync" in kinds:
            return True
        return first[1] // 32 == second[1] // 32 and ("syncwarp" in kinds or (lockstep and later > at))


def draw(seed: int) -> Program:
    """Return a random program; most of its exchanges have the necessary barriers."""
    random = np.random.default_rng(seed)

    def choice(options: Any) -> Any:
        return options[random.integers(len(options))]

    def index(array: str) -> str:
        number = int(random.integers(1, 64))
        element: str = choice(MAPS).format(number, choice((2, 4, 8, 16, 32)))
        if array == "cells":
            return f"({element}) + {choice(('0', *('st.block.x * 64',) * 7))}"
        return element

    steps: list[Step] = []
    for _ in range(random.integers(2, 5)):
        array, own = choice(("tile", "tile", "cells")), random.random() < 0.85
        base = "t" if array == "tile" else "st.block.x * 64 + t"
        guard = choice(("", "", "", "t < 32", "st.warp == 1", "t % 2 == 0"))
        steps.append(Step(choice(("write", "write", "add")), array, base if own else index(array), guard))
        steps.append(Step(choice(("sync", "sync", "sync", "sync", "syncwarp"))))
        steps.append(Step(choice(("read", "read", "write", "add")), array, index(array), choice(("", "", "t < 48"))))
        if random.random() < 0.9:
            steps.append(Step("sync"))
    return Program(tuple(steps), int(random.integers(1, 3)), int(random.integers(1, 3)), 64)


def arguments(program: Program) -> dict[str, Any]:
    """Return the arguments of a launch."""
    return {"cells": np.zeros(128, np.int32), "out": np.zeros(program.grid * program.block, np.int32)}
