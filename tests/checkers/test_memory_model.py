"""The race checker against the memory model of PTX: random programs, and the smallest program of each rule."""

import pytest
from simtbed.sanitizer import tracking
from simtbed.sanitizer.races import shadow

from tests.checkers.memory_model import Thread
from tests.checkers.racy_programs import Cell, Program, checker_races, disagreement, draw, model_races
from tests.table_checks import each_row

A, B, C, D = (0, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0)
"""Threads of two warps of a block, of a second lane, and of another block."""


def program(*phases: tuple[tuple[Thread, str], ...]) -> Program:
    """Return a program of threads and their operations, "kind of array" each; each operation has an own step."""
    cells: list[dict[tuple[int, Thread], Cell]] = []
    for phase in phases:
        own: dict[tuple[int, Thread], Cell] = {}
        for step, (thread, text) in enumerate(phase):
            name, _, array = text.partition(" of ")
            own[step, thread] = (name, array, 0)
        cells.append(own)
    return Program(tuple(cells))


RULES: tuple[tuple[str, Program, set[str]], ...] = (
    ("acquire before the check", program(((A, "store of y"), (A, "fence"), (A, "add used of y"), (D, "load acquire of y"))), set()),
    ("no acquire", program(((A, "store of y"), (A, "fence"), (A, "add used of y"), (D, "volatile load of y"))), {"y"}),
    ("a release is no fence", program(((A, "store of x"), (A, "store release of y"), (A, "volatile store of s"), (B, "volatile load of s"),
                                       (B, "fence"), (B, "load of x"))), {"x"}),
    ("a release acquires nothing", program(((A, "store of x"), (A, "store release of y"), (D, "volatile load of y"),
                                            (D, "store release of s"), (D, "store of x"))), {"x"}),
    ("a release covers itself", program(((A, "store release of y"), (D, "load acquire of y"), (D, "load of y"))), set()),
    ("a release continues", program(((A, "store of x"), (A, "store release of y"), (A, "volatile store of y"), (D, "load acquire of y"),
                                     (D, "load of x"))), set()),
    ("two fences", program(((A, "store of x"), (A, "fence"), (A, "fence_block"), (A, "volatile store of y"), (D, "load acquire of y"),
                            (D, "load of x"))), set()),
    ("the later fence", program(((A, "fence"), (A, "store of x"), (A, "fence_block"), (A, "volatile store of y"), (D, "load acquire of y"),
                                 (D, "load of x"))), {"x"}),
    ("polled, then stored", program(((A, "add of y"), (B, "add of y"), (D, "volatile load of y"), (D, "store of y"))), set()),
    ("polled by another thread", program(((B, "volatile load of y"), (D, "volatile load of y"), (D, "store of y"))), {"y"}),
    ("counted and acquired", program(((A, "add used of y"), (B, "exchange of y"), (B, "store release of x"), (D, "load acquire of x"),
                                      (D, "load of y"))), set()),
    ("own store, then exchange", program(((A, "volatile store of y"), (D, "volatile store of y"), (D, "exchange of y"), (D, "load of y"))),
     set()),
)  # fmt: skip


@pytest.fixture(autouse=True)
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch clears its tables: small ones take less time."""
    monkeypatch.setattr(shadow, "MOST_EVENTS", 1 << 11)
    monkeypatch.setattr(tracking, "LOG_ROWS", 1 << 12)


@pytest.mark.slow
@each_row(RULES, lambda row: row[0])
def test_every_rule_has_its_program(row: tuple[str, Program, set[str]]) -> None:
    for races in (model_races(row[1]), checker_races(row[1], "jit")):
        assert {array for array, _ in races} == row[2], races


@pytest.mark.slow
def test_random_programs() -> None:
    racy = 0
    for seed in range(300):
        assert disagreement(draw(seed)) == "", f"seed {seed}:\n{draw(seed).text}"
        racy += bool(model_races(draw(seed)))
    assert 100 < racy < 250


@pytest.mark.slow
def test_both_engines_find_the_same() -> None:
    for seed in range(0, 40, 10):
        assert checker_races(draw(seed), "numpy") == checker_races(draw(seed), "jit")
