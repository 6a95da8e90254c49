"""Beam search, compared with an exhaustive search without beams, bounds and memoization."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from simtbed.compiled import paths, search_cache
from simtbed.compiled.correspondence import Event
from simtbed.compiled.matching_costs import GAP_COST_SHARE
from simtbed.compiled.replay import ReplayError, WarpTrace

FEW = 3
"""Features."""


@dataclass
class Case:
    """A graph and a sequence of events to match.

    onward: successors of each node; the last node may exit. unconditional, predicated: by node and feature. sequence: events of a
    lane.
    """

    onward: list[list[int]]
    unconditional: list[list[int]]
    predicated: list[list[int]]
    cost: list[float]
    events: list[list[tuple[int, float]]]
    sequence: list[int]
    weights: list[float] = field(default_factory=lambda: [1.0, 0.5, 0.125])

    @property
    def paths(self) -> paths.PathSearch:
        return paths.PathSearch(cast(Any, _Nodes(self)), cast(Any, _Anchors(self)))

    @property
    def steps(self) -> WarpTrace:
        sequence = np.array(self.sequence, np.int32)
        return WarpTrace(sequence, np.ones(len(sequence), np.uint32), np.arange(len(self.events), dtype=np.int32))


class _Nodes:
    def __init__(self, case: Case) -> None:
        self.blocks = list(range(len(case.onward)))
        self.may_exit = [n == len(case.onward) - 1 for n in self.blocks]
        self._case = case

    def adjacency(self, closed: object) -> tuple[Any, Any]:
        onward = self._case.onward
        return (
            np.array([n for each in onward for n in each] or [0], np.int32),
            np.cumsum([0, *map(len, onward)]).astype(np.int32),
        )


class _Anchors:
    def __init__(self, case: Case) -> None:
        self.weights = np.array(case.weights, np.float32)
        self.unconditional, self.predicated = (
            np.array(case.unconditional, np.float32),
            np.array(case.predicated, np.float32),
        )
        self.price = np.full_like(self.unconditional, 0.0625)
        self.cost = np.array(case.cost, np.float32)
        holds = (self.unconditional + self.predicated).sum(axis=1)
        self.span = np.where(holds > 0, holds + 2, 0).astype(np.int32)
        self.events = {n: [Event(*one) for one in each] for n, each in enumerate(case.events)}


def cheapest(case: Case) -> float:
    """Return the cost of the cheapest path, by label correction over all states."""
    anchors, nodes = _Anchors(case), len(case.onward)
    tokens = [token for name in case.sequence for token in anchors.events[name]]
    left = [float(anchors.weights[token.feature]) * token.amount for token in tokens]
    best = {(0, 0): 0.0}
    waiting = [(0, 0)]
    result = float("inf")

    def reach(node: int, at: int, cost: float) -> None:
        if cost < best.get((node, at), float("inf")) - 1e-9:
            best[node, at] = cost
            waiting.append((node, at))

    while waiting:
        node, at = waiting.pop()
        if at < len(tokens):
            reach(node, at + 1, best[node, at] + left[at])
        cost = best[node, at] + float(anchors.cost[node] + (anchors.unconditional[node] * anchors.weights).sum())
        have, useful, matched, gap_cost = np.zeros(FEW), False, False, 0.0
        for past in range(at, min(len(tokens), at + int(anchors.span[node])) + 1):
            if past == at or useful:
                for to in case.onward[node]:
                    reach(to, past, cost)
                if node == nodes - 1:
                    result = min(result, cost + sum(left[past:]))
            if past == len(tokens) or (past == at + 1 and not useful):
                break
            token, previous = tokens[past], have.copy()
            have[token.feature] += token.amount
            added = price(anchors, node, have) - price(anchors, node, previous)
            useful = added < left[past] - 1e-6
            if useful:
                cost += gap_cost * GAP_COST_SHARE
                matched, gap_cost = True, 0.0
            elif matched:
                gap_cost += left[past]
            cost += added
    return result


def price(anchors: _Anchors, node: int, have: Any) -> float:
    """Return the cost of a node for matched amounts of each feature."""
    sure, most = anchors.unconditional[node], anchors.unconditional[node] + anchors.predicated[node]
    wrong = np.maximum(sure - have, 0) + np.maximum(have - most, 0)
    return float((anchors.weights * wrong).sum() + (0.0625 * np.clip(have, sure, most)).sum())


@some.composite
def cases(draw: some.DrawFn) -> Case:
    nodes = draw(some.integers(2, 6))
    number = some.integers(0, nodes - 1)
    onward = [sorted({min(n + 1, nodes - 1), *draw(some.lists(number, max_size=2))}) for n in range(nodes)]
    amounts = some.lists(some.sampled_from([0, 0, 0, 1, 2]), min_size=FEW, max_size=FEW)
    token = some.tuples(some.integers(0, FEW - 1), some.sampled_from([1.0, 1.0, 0.5, 2.0]))
    names = draw(some.lists(some.lists(token, min_size=1, max_size=3), min_size=1, max_size=3))
    return Case(
        onward,
        [draw(amounts) for _ in range(nodes)],
        [draw(amounts) for _ in range(nodes)],
        [draw(some.sampled_from([0.0, 0.015625, 0.25])) for _ in range(nodes)],
        names,
        draw(some.lists(some.integers(0, len(names) - 1), max_size=6)),
    )


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "INITIAL_BEAM", 1000.0)


@pytest.mark.usefixtures("wide")
@given(cases())
def test_the_cheapest_path_is_found(case: Case) -> None:
    searches = case.paths
    result = searches.find(case.steps, 0)
    assert result.cost == pytest.approx(cheapest(case), abs=1e-5)
    assert result.path[0] == 0
    assert result.path[-1] == len(case.onward) - 1
    for node, to in zip(result.path.tolist(), result.path[1:].tolist(), strict=False):
        assert to in case.onward[node]


LOOP = Case(
    onward=[[1], [2, 3], [1], []],
    unconditional=[[0, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]],
    predicated=[[0, 0, 0]] * 4,
    cost=[0.0] * 4,
    events=[[(1, 1.0), (0, 1.0)], [(1, 1.0), (2, 1.0)]],
    sequence=[0] * 1000 + [1],
)
"""A thousand iterations, then what follows the loop."""
LOOP_PATH = [0, *[1, 2] * 1000, 1, 3]


def test_iterations_are_memoized() -> None:
    searches = LOOP.paths
    assert searches.find(LOOP.steps, 0).path.tolist() == LOOP_PATH
    first = searches.visited
    assert first < 1.2 * len(LOOP_PATH)  # one event each, and the new ones
    assert searches.find(LOOP.steps, 0).path.tolist() == LOOP_PATH
    assert searches.visited - first == 2 * 1001 + 1


def test_memoized_steps_depend_on_lookahead() -> None:
    """The same events with other successors lead elsewhere."""
    case = Case(
        onward=[[1, 2], [3], [3], []],
        unconditional=[[0, 0, 0], [1, 1, 0], [1, 0, 1], [0, 0, 0]],
        predicated=[[0, 0, 0]] * 4,
        cost=[0.0] * 4,
        events=[[(0, 1.0)], [(1, 1.0)], [(2, 1.0)]],
        sequence=[],
    )
    searches = case.paths
    for sequence, through in (([0, 1], 1), ([0, 2], 2), ([0, 1], 1)):
        case.sequence = sequence
        result = searches.find(case.steps, 0)
        assert result.path.tolist() == [0, through, 3] and result.cost < 1e-6


@pytest.mark.usefixtures("wide")
@given(cases())
def test_buffers_grow(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_cache, "_INITIAL_CAPACITY", 16)
        patch.setattr(search_cache, "_INITIAL_EVENTS", 4)
        little = case.paths.find(case.steps, 0)
    assert little.cost == pytest.approx(case.paths.find(case.steps, 0).cost)


def test_too_long_a_search_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "MAX_STATES_PER_LANE", 3)
    with pytest.raises(ReplayError, match="too long"):
        LOOP.paths.find(LOOP.steps, 0)
    monkeypatch.undo()
    monkeypatch.setattr(search_cache, "_INITIAL_CAPACITY", 16)
    monkeypatch.setattr(search_cache, "_MAX_CAPACITY", 16)
    with pytest.raises(ReplayError, match="too long"):
        LOOP.paths.find(LOOP.steps, 0)


def test_no_path_to_the_end() -> None:
    case = Case([[0], []], [[0, 0, 0]] * 2, [[0, 0, 0]] * 2, [0.0] * 2, [[(0, 1.0)]], [0])
    with pytest.raises(ReplayError, match="no path"):
        case.paths.find(case.steps, 0)


def test_gaps_cost_more() -> None:
    """A node matches events around one of the next node."""
    case = Case(
        onward=[[1], [2], [3], []],
        unconditional=[[0, 0, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0]],
        predicated=[[0, 0, 0]] * 4,
        cost=[0.0] * 4,
        events=[[(1, 1.0), (2, 1.0), (0, 1.0)]],
        sequence=[0],
    )
    missing = 2 * case.weights[2]
    assert case.paths.find(case.steps, 0).cost == pytest.approx(missing + GAP_COST_SHARE * case.weights[2], abs=1e-6)


def test_ties_prefer_the_first_path_in_address_order() -> None:
    """Copies of an arm, indistinguishable otherwise."""
    case = Case(
        onward=[[1, 2], [2], [3, 4], [4], []],
        unconditional=[[0, 0, 0], [1, 0, 0], [0, 0, 0], [1, 0, 0], [0, 0, 0]],
        predicated=[[0, 0, 0]] * 5,
        cost=[0.0] * 5,
        events=[[(0, 1.0)]],
        sequence=[0],
    )
    assert case.paths.find(case.steps, 0).path.tolist() == [0, 1, 2, 4]
