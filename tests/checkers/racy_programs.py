"""Random programs of two to four threads on three elements, run by an interpreter under the race checker and by the memory model.

`python -m tests.checkers.racy_programs 10000` compares as many, and prints the smallest programs about which the two disagree.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.runtime.registry import EngineName
from simtbed.sanitizer.races import detect, shadow
from simtbed.sanitizer.tracking import Plan

from tests.checkers.memory_model import Execution, Kind, Operation, Thread

BLOCKS, WARPS, STEPS = 2, 2, 6
THREADS = 32 * WARPS
LOAD, STORE = Kind(reads=True), Kind(writes=True)
UPDATE = Kind("device", reads=True, writes=True)
USED = Kind("device", reads=True, writes=True, used=True)
ACCESSES: dict[str, tuple[Kind, str]] = {
    "load": (LOAD, "total += {0}[0]"),
    "store": (STORE, "{0}[0] = v"),
    "volatile load": (Kind("device", reads=True, used=True), "total += st.volatile_load({0}, 0)"),
    "volatile store": (Kind("device", writes=True), "st.volatile_store({0}, 0, v)"),
    "load acquire": (Kind("device", reads=True, acquires=True, used=True), "total += st.load_acquire({0}, 0)"),
    "store release": (Kind("device", writes=True, releases=True), "st.store_release({0}, 0, v)"),
    "add": (UPDATE, "st.atomic_add({0}, 0, v)"),
    "add used": (USED, "total += st.atomic_add({0}, 0, v)"),
    "read": (Kind("device", reads=True, used=True), "total += st.atomic_add({0}, 0, 0)"),
    "exchange": (USED, "total += st.atomic_exchange({0}, 0, v)"),
    "swap": (Kind("device", reads=True, writes=True, used=True, swaps=True), "total += st.compare_swap({0}, 0, 0, v)"),
    "add of the block": (Kind("block", reads=True, writes=True, used=True), 'total += st.atomic_add({0}, 0, v, scope="block")'),
    "add acquire release": (
        Kind("device", reads=True, writes=True, used=True, acquires=True, releases=True),
        'total += st.atomic_add({0}, 0, v, order="acq_rel")',
    ),
    "release of the block": (Kind("block", writes=True, releases=True), 'st.store_release({0}, 0, v, scope="block")'),
}  # fmt: skip
FENCES = {"fence": "st.fence()", "fence_block": "st.fence_block()", "syncwarp": "st.syncwarp(st.u32(v))"}
ORDERS = {
    "fence": Kind("device", acquires=True, releases=True),
    "fence_block": Kind("block", acquires=True, releases=True),
    "syncwarp": Kind("device", acquires=True),
    "sync": Kind("device", acquires=True),
}
ELEMENTS = ("x", "y", "s")
LINES = [(name, element) for element in ELEMENTS for name in ACCESSES] + [(name, "") for name in FENCES]
"""What an operation of the interpreter does, by its number - 1: the kind, and the array of its element. s is in shared memory."""
HEAD = f'''"""An interpreter."""
import simtbed as st
from simtbed import Global, i32


@st.kernel
def interpret(kinds: Global[i32], values: Global[i32], x: Global[i32], y: Global[i32], out: Global[i32], phases: i32) -> None:
    s = st.shared(i32, 1)
    t, total = st.thread.x, 0
    if t == 0:
        s[0] = 0
    st.sync()
    for phase in range(phases):
        for step in range({STEPS}):
            at = ((phase * {BLOCKS} + st.block.x) * {STEPS} + step) * {THREADS} + t
            kind, v = kinds[at], values[at]
'''
TAIL = f"        st.sync()\n    out[st.block.x * {THREADS} + t] = total\n"
FIRST_LINE = HEAD.count("\n") + 1


@cache
def interpreter() -> st.Kernel:
    texts = [ACCESSES[name][1].format(element) if element else FENCES[name] for name, element in LINES]
    body = "".join(f"            if kind == {n}: {text}\n" for n, text in enumerate(texts, 1))
    return st.kernel(source=HEAD + body + TAIL)


Cell = tuple[str, str, int]
"""The name of an operation, the array of its element, and the lanes of a `syncwarp` as a mask."""


@dataclass(frozen=True)
class Program:
    """phases: of each phase, the operations by step, of the threads that have one. Phases are separated by barriers of the blocks."""

    phases: tuple[Mapping[tuple[int, Thread], Cell], ...]

    def execution(self) -> Execution:
        """Return the execution in the order of the emulator: by block, phase, warp, step, number of the operation, and lane."""
        operations: list[Operation] = []
        for block in range(BLOCKS):
            everyone = tuple((block, warp, lane) for warp in range(WARPS) for lane in range(32))
            for cells in self.phases:
                own = [(place, cell) for place, cell in cells.items() if place[1][0] == block]
                own.sort(key=lambda one: (one[0][1][1], one[0][0], LINES.index(one[1][:2]), one[0][1][2]))
                for (_, thread), (name, element, mask) in own:
                    if element:
                        key = (element, block if element == "s" else 0)
                        operations.append(Operation(name, ACCESSES[name][0], (thread,), key))
                    elif name != "syncwarp":
                        operations.append(Operation(name, ORDERS[name], (thread,)))
                    elif thread[2] == (mask & -mask).bit_length() - 1:
                        lanes = tuple((*thread[:2], lane) for lane in range(32) if mask >> lane & 1)
                        operations.append(Operation(name, ORDERS[name], lanes))
                operations.append(Operation("sync", ORDERS["sync"], everyone))
        return Execution(operations)

    def arguments(self) -> dict[str, Any]:
        shape = (len(self.phases), BLOCKS, STEPS, THREADS)
        kinds, values = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        number = 0
        for phase, cells in enumerate(self.phases):
            for (step, (block, warp, lane)), (name, element, mask) in cells.items():
                number += 1
                at = phase, block, step, 32 * warp + lane
                kinds[at] = 1 + LINES.index((name, element))
                values[at] = np.uint32(mask).astype(np.int32) if name == "syncwarp" else 1000 * number
        memory = {name: np.zeros(1, np.int32) for name in ("x", "y")}
        return {
            "kinds": kinds.ravel(), "values": values.ravel(), **memory, "out": np.zeros(BLOCKS * THREADS, np.int32),
            "phases": len(self.phases),
        }  # fmt: skip

    def without(self, phase: int, place: tuple[int, Thread]) -> Program:
        """Return the program without an operation."""
        cells = {key: cell for key, cell in self.phases[phase].items() if key != place}
        return Program((*self.phases[:phase], cells, *self.phases[phase + 1 :]))

    @property
    def text(self) -> str:
        lines = []
        for phase, cells in enumerate(self.phases):
            for (step, thread), (name, element, mask) in sorted(cells.items(), key=lambda one: (one[0][1], one[0][0])):
                lines.append(
                    f"phase {phase} {thread} step {step}: {name} {element}{f'{mask:#x}' if name == 'syncwarp' else ''}"
                )
        return "\n".join(lines)


Race = tuple[str, frozenset[tuple[str, Thread]]]
"""The array of a racing element, and the names and threads of the two accesses."""


def model_races(program: Program) -> set[Race]:
    execution = program.execution()
    result = set()
    for pair in execution.races():
        operations = [execution.operations[at] for at in pair]
        result.add((operations[0].element[0], frozenset((one.name, one.threads[0]) for one in operations)))
    return result


def checker_races(program: Program, engine: EngineName) -> set[Race]:
    """Return the races that the checker finds, with and without a release."""
    rows: list[Any] = []

    def record(plan: Plan, race: Any, *rest: Any) -> None:
        rows.extend((plan, row) for row in np.array(race.findings).reshape(-1, shadow.PAIR) if row[detect.USED])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plan, "report", record)
        how: Any = {"grid": BLOCKS, "block": THREADS, "check": "races", "faults": "return"}
        result = st.launch(interpreter(), args=program.arguments(), engine=engine, **how)
    assert not result.faults, result.faults[0]
    races = set()
    for plan, row in rows:
        names = list(plan.tracked)
        accesses = []
        for access, block, thread in (
            (detect.FIRST, detect.BLOCK_1, detect.THREAD_1),
            (detect.SECOND, detect.BLOCK_2, detect.THREAD_2),
        ):
            name, _ = LINES[plan.sites[int(row[access]) // 4].line - FIRST_LINE]
            accesses.append((name, (int(row[block]), int(row[thread]) // 32, int(row[thread]) % 32)))
        races.add((names[int(row[detect.ARRAY])], frozenset(accesses)))
    return races


THREAD_SETS: tuple[Sequence[Thread], ...] = (
    ((0, 0, 0), (1, 0, 0)), ((0, 0, 0), (0, 1, 0)), ((0, 0, 0), (0, 0, 1)), ((0, 0, 0), (0, 1, 0), (1, 0, 0)),
    ((0, 0, 0), (0, 0, 1), (0, 1, 0)), ((0, 0, 0), (0, 0, 1), (0, 0, 2)), ((0, 0, 0), (0, 0, 1), (1, 1, 3)),
    ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)), ((0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0)),
)  # fmt: skip
DATA = ("load", "load", "store", "store")


def draw(seed: int) -> Program:
    """Return a random program: any operations, or data passed by flags."""
    random = np.random.default_rng(seed)

    def choice(options: Sequence[Any]) -> Any:
        return options[int(random.integers(len(options)))]

    threads = choice(THREAD_SETS)
    passes, narrow = random.random() < 0.6, random.random() < 0.1
    kinds = [name for name, (kind, _) in ACCESSES.items() if narrow or kind.scope != "block"]
    flags = [name for name in kinds if name not in DATA]
    phases = []
    for _ in range(choice((1, 1, 1, 2, 2, 3))):
        cells: dict[tuple[int, Thread], Cell] = {}
        for warp in sorted({thread[:2] for thread in threads}):
            lanes = [thread for thread in threads if thread[:2] == warp]
            synced = int(random.integers(STEPS)) if len(lanes) > 1 and random.random() < 0.5 else -1
            named = [lane for lane in lanes if random.random() < 0.8]
            if len(named) > 1 and synced >= 0:
                mask = sum(1 << lane for _, _, lane in named)
                cells |= {(synced, thread): ("syncwarp", "", mask) for thread in named}
        for thread in threads:
            for step in range(STEPS):
                if (step, thread) in cells or random.random() < 0.5:
                    continue
                draw = random.random()
                if draw < 0.25:
                    cells[step, thread] = (choice(("fence", "fence", "fence_block")), "", 0)
                elif passes:
                    element = choice(ELEMENTS)
                    cells[step, thread] = (choice(flags if element == "y" else DATA), element, 0)
                else:
                    cells[step, thread] = (choice(kinds), choice(ELEMENTS), 0)
        phases.append(cells)
    return Program(tuple(phases))


def disagreement(program: Program, engine: EngineName = "jit") -> str:
    """Return "miss" or "false alarm" for an element about which the checker and the model disagree; "" if there is none."""
    expected, reported = (
        {array for array, _ in races} for races in (model_races(program), checker_races(program, engine))
    )
    return "miss" if expected - reported else "false alarm" if reported - expected else ""


def smallest(program: Program, kind: str) -> Program:
    """Return the program without the operations that a disagreement does not need."""
    for phase, cells in enumerate(program.phases):
        for place, (name, _, _) in cells.items():
            names = [one for one in cells if name == "syncwarp" and one[0] == place[0] and one[1][:2] == place[1][:2]]
            smaller = program
            for one in names or [place]:
                smaller = smaller.without(phase, one)
            if disagreement(smaller) == kind:
                return smallest(smaller, kind)
    return program


def main(count: int, shown: int = 4) -> None:
    """Compare programs, and print the number of each disagreement with its first examples."""
    counts: Counter[str] = Counter()
    for seed in range(count):
        program = draw(seed)
        counts["racy"] += bool(model_races(program))
        if kind := disagreement(program):
            counts[kind] += 1
            if counts[kind] <= shown:
                print(f"{kind}, seed {seed}:\n{smallest(program, kind).text}")
    print(dict(counts))


if __name__ == "__main__":
    main(int(sys.argv[1]))
