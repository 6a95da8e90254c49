"""Residuals of block executions against the source: the fraction of executed events without matching instructions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .correspondence import Correspondence
from .decision_bytecode import condition_event, slow_path_event
from .expanded_cfg import ExpandedCfg
from .opcode_classes import CONVERGENT_KINDS, EFFECTS, is_elidable

Floats = npt.NDArray[np.float64]


class Residuals:
    """Residuals of one kernel, by feature."""

    def __init__(self, correspondence: Correspondence, nodes: ExpandedCfg) -> None:
        self._correspondence = correspondence
        first = {block: node for node, block in reversed(list(enumerate(nodes.blocks)))}
        self._blocks, first_nodes = list(first), list(first.values())
        self._required = correspondence.unconditional[first_nodes]
        self._allowed = self._required + correspondence.predicated[first_nodes]

    @cached_property
    def executed(self) -> npt.NDArray[np.bool_]:
        """By feature, whether it is an effect or operation of the source, not code motion."""
        return np.array([self._correspondence.is_executed(n) for n in range(len(self._correspondence.keys))], np.bool_)

    @cached_property
    def mandatory(self) -> npt.NDArray[np.bool_]:
        """By feature, whether it is an effect that the compiler neither drops nor repeats."""
        kinds = [kind for _, kind in self._correspondence.keys]
        return np.array([kind in EFFECTS.values() and not is_elidable(kind) for kind in kinds], np.bool_)

    def by_feature(self, threads: Floats, event_counts: Mapping[int, float] | None = None) -> Floats:
        """Return, by feature, the missing or excess fraction (0 to 1) of its source executions under block executions
        `threads`.

        Missing loads are tolerated. event_counts: executions of events by lanes, instead of those of all lanes.
        """
        executed = self._event_amounts(
            self._lanes if event_counts is None else event_counts, np.flatnonzero(self.executed).tolist()
        )
        required, allowed = self._emitted(self._required, threads), self._emitted(self._allowed, threads)
        loads = np.array([kind.endswith("load") for _, kind in self._correspondence.keys], np.bool_)
        missing = np.maximum(required - executed, 0) + np.where(loads, 0.0, np.maximum(executed - allowed, 0))
        return np.where(executed > 0, np.minimum(missing / np.maximum(executed, 1e-9), 1), 0.0)

    def excess_convergence(self, warps: Floats) -> float:
        """Return the mean relative excess (0 to 1) of warp executions of shuffles, votes and barriers over the source's."""
        convergent = [n for n, (_, kind) in enumerate(self._correspondence.keys) if kind in CONVERGENT_KINDS]
        executed = self._event_amounts(
            {number: one.warps for number, one in self._correspondence.source.statements.items()}, convergent
        )
        mask = executed > 0
        excess = np.maximum(self._emitted(self._required, warps) - executed, 0)[mask] / executed[mask]
        return float(np.minimum(excess, 1).mean()) if mask.any() else 0.0

    def _event_amounts(self, event_counts: Mapping[int, float], features: Iterable[int]) -> Floats:
        """Return the executed amount of selected features."""
        selected, amounts = frozenset(features), np.zeros(len(self._correspondence.keys))
        for site, events in self._correspondence.events.items():
            for event in events:
                if site in event_counts and event.feature in selected:
                    amounts[event.feature] += event.amount * event_counts[site]
        return self._of_calls(amounts)

    def _emitted(self, by_node: npt.NDArray[np.float32], executions: Floats) -> Floats:
        """Return the amount of each feature emitted by block executions."""
        return self._of_calls((executions[self._blocks] @ by_node)[: len(self._correspondence.keys)])

    def _of_calls(self, amounts: Floats) -> Floats:
        """Sum features over all calls of their function: the line table may give inlined code the line of another call."""
        together: dict[tuple[int, str], float] = defaultdict(float)
        lines = [(place[0], kind) for place, kind in self._correspondence.keys]
        for line, n, unit in zip(lines, amounts, self._correspondence.units, strict=True):
            together[line] += n * unit
        return np.array([together[line] for line in lines])

    @cached_property
    def _lanes(self) -> Mapping[int, float]:
        """Executions of all events by lanes."""
        source = self._correspondence.source
        lanes: dict[int, float] = {number: one.lanes for number, one in source.statements.items()}
        for number, divisions in source.slow_divisions.items():
            lanes |= {slow_path_event(number, n): source.slow_path_counts(number, n)[0] for n in range(len(divisions))}
        for number in source.conditions:
            lanes |= {condition_event(number, code): n for code, n in source.code_counts(number).items()}
        return lanes
