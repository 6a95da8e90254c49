"""How much of what the source executed, executions of a compiled kernel's blocks explain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .correspondence import Correspondence
from .decision_bytecode import coded, slow
from .expanded_cfg import ExpandedCfg
from .opcode_classes import EFFECTS, MEETING, may_be_missing

Floats = npt.NDArray[np.float64]


class Residuals:
    """Of one kernel."""

    def __init__(self, anchors: Correspondence, nodes: ExpandedCfg) -> None:
        self._anchors = anchors
        first = {block: node for node, block in reversed(list(enumerate(nodes.blocks)))}
        self._blocks, nodes_there = list(first), list(first.values())
        self._sure = anchors.sure[nodes_there]
        self._most = self._sure + anchors.maybe[nodes_there]

    @cached_property
    def executed(self) -> npt.NDArray[np.bool_]:
        """By anchor, whether it is what the source executes, not what a compiler moves about."""
        return np.array([self._anchors.executed(n) for n in range(len(self._anchors.keys))], np.bool_)

    @cached_property
    def kept(self) -> npt.NDArray[np.bool_]:
        """By anchor, whether it is an effect that a compiler keeps as often as it was asked for."""
        kinds = [kind for _, kind in self._anchors.keys]
        return np.array([kind in EFFECTS.values() and not may_be_missing(kind) for kind in kinds], np.bool_)

    def misfits(self, threads: Floats, did: Mapping[int, float] | None = None) -> Floats:
        """By anchor of effects and operations, the part of what the source executed that so many executions of each block show
        too much or too little of, at most 1; 0 for other anchors. Loads may be missing: what was loaded is there. did: how often lanes did
        what is told, where that is not what all of them did."""
        executed = self._told(self._lanes if did is None else did, np.flatnonzero(self.executed).tolist())
        least, most = self._shown(self._sure, threads), self._shown(self._most, threads)
        loads = np.array([kind.endswith("load") for _, kind in self._anchors.keys], np.bool_)
        missed = np.maximum(least - executed, 0) + np.where(loads, 0.0, np.maximum(executed - most, 0))
        return np.where(executed > 0, np.minimum(missed / np.maximum(executed, 1e-9), 1), 0.0)

    def parted(self, warps: Floats) -> float:
        """By how much more often than in the source warps execute shuffles, votes and barriers, for which their lanes meet: as a part of
        that, at most 1, on average."""
        meeting = [n for n, (_, kind) in enumerate(self._anchors.keys) if kind in MEETING]
        executed = self._told({number: one.warps for number, one in self._anchors.source.statements.items()}, meeting)
        known = executed > 0
        excess = np.maximum(self._shown(self._sure, warps) - executed, 0)[known] / executed[known]
        return float(np.minimum(excess, 1).mean()) if known.any() else 0.0

    def _told(self, times: Mapping[int, float], anchors: Iterable[int]) -> Floats:
        """How much of some anchors was executed, of others nothing. times: how often what is told was done."""
        wanted, found = frozenset(anchors), np.zeros(len(self._anchors.keys))
        for site, tokens in self._anchors.tokens.items():
            for token in tokens:
                if site in times and token.anchor in wanted:
                    found[token.anchor] += token.amount * times[site]
        return self._of_calls(found)

    def _shown(self, by_node: npt.NDArray[np.float32], executions: Floats) -> Floats:
        """How much of each anchor so many executions of each block show."""
        return self._of_calls((executions[self._blocks] @ by_node)[: len(self._anchors.keys)])

    def _of_calls(self, amounts: Floats) -> Floats:
        """By anchor, the sum over all calls of its function: the compiler gives what is inlined the line of another call at times."""
        together: dict[tuple[int, str], float] = defaultdict(float)
        lines = [(place[0], kind) for place, kind in self._anchors.keys]
        for line, n, unit in zip(lines, amounts, self._anchors.units, strict=True):
            together[line] += n * unit
        return np.array([together[line] for line in lines])

    @cached_property
    def _lanes(self) -> Mapping[int, float]:
        """How often lanes did what is told."""
        source = self._anchors.source
        lanes: dict[int, float] = {number: one.lanes for number, one in source.statements.items()}
        for number, divisions in source.divided.items():
            lanes |= {slow(number, n): source.slow_lanes(number, n)[0] for n in range(len(divisions))}
        for number in source.conditions:
            lanes |= {coded(number, code): n for code, n in source.codes(number).items()}
        return lanes
