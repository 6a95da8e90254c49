"""Executions of a compiled kernel, walked: the recorded decisions of each warp tell the ways of its lanes through the source, and
those the ways through the compiled blocks, where lanes part and meet as the instructions say."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ..runtime.prepared import prepare
from .correspondence import Correspondence
from .expanded_cfg import ExpandedCfg
from .kernel_launches import KernelLaunches
from .matching import LoopMatcher
from .paths import PathSearch, ScoredPath
from .reconvergence import Counts, LanePath, WarpReconvergence
from .replay import DecisionReplay, RecordedDecisions, ReplayError, WarpName, WarpTrace
from .residuals import Residuals
from .sample_weights import calibrated
from .uniformity import Uniformity

WARPS = 128
"""Warps that are walked, at most; they stand for the others."""
STATES, MOST_STATES = 25_000_000, 50_000_000
"""States of the search that are gone on from for a kernel before the warps walked until then stand for the others, and at most: about
half a second of one core, and a second."""
FEWEST = 8
"""Warps that stand for all, at least."""
FIRST = 4
"""Warps that are walked to find which way all lanes go behind branches that all take alike."""
WHOLE = 0.9
"""How many of the warps that were chosen must be recorded whole for the others to stand for all without a word: those that are not
may differ from them."""
AGREES = 0.02
"""How near executions must be to be the same."""

Floats = npt.NDArray[np.float64]
T = TypeVar("T")


@dataclass
class PathEstimate:
    """Executions by block, of warps and threads. whole: the part of the warps that were asked for which is recorded whole. did: how often
    lanes did each thing that is told, of the warps that were walked, as they stand for the others."""

    warps: Floats
    threads: Floats
    whole: float = 1.0
    did: dict[int, float] = field(default_factory=dict)


@dataclass
class PathEstimator:
    """Of one kernel, whose blocks are matched with its loops. given_up: why its warps were not walked, if they should have been."""

    matcher: LoopMatcher
    launched: KernelLaunches
    ways: dict[int, ScoredPath] = field(default_factory=dict)
    given_up: str = ""

    def __post_init__(self) -> None:
        self.nodes = ExpandedCfg(self.matcher.graph, self.matcher.rare)
        self.anchors = Correspondence(self.matcher, self.nodes)
        self.explained = Residuals(self.anchors, self.nodes)
        self.paths = PathSearch(self.nodes, self.anchors)
        self.paths.close(self.matcher.rare)
        self.uniform = Uniformity(self.matcher.graph)
        self.warps = WarpReconvergence(self.nodes)

    def misfit(self, threads: Floats, did: Mapping[int, float] | None = None) -> float:
        """How far executions of blocks by threads are from what the source executed, on average of all that it did, as a part of it; or
        from what some of its lanes did."""
        return _mean(self.explained.misfits(threads, did)[self.explained.executed])

    def lost(self, threads: Floats) -> float:
        """The same of effects alone that no compiler drops or repeats: stores, atomics, shuffles, votes, barriers."""
        return _mean(self.explained.misfits(threads)[self.explained.kept])

    def doubtful(self, threads: Floats) -> list[int]:
        """Blocks that show something which was executed more often, or less often, than their threads say."""
        anchors = np.flatnonzero(self.explained.misfits(threads) > AGREES)
        return sorted({block for node, block in enumerate(self.nodes.blocks) if self.anchors.sure[node, anchors].any()})

    def run(self) -> PathEstimate | None:
        """None where what was recorded does not tell, or a walk would take too long."""
        if self.anchors.blind:
            self.given_up = "iterations may be predicated instructions that show nothing"
            return None
        least = min((weight for _, _, weight in self.alike), default=0.0)
        alike = sorted(self.alike, key=lambda one: one[2] == least)
        stood, walked = np.zeros(2), np.zeros(2)  # by warps that stand for more than the others, and by the others
        asked = 0.0
        executed, did = list[tuple[Counts, Counts]](), list[tuple[Counts, Counts]]()
        weights, parts = list[float](), list[int]()
        for number, (warp, lanes, weight) in enumerate(alike):
            part = int(weight == least)
            stood[part] += weight
            if self.paths.visited > (STATES if number >= FEWEST else MOST_STATES):
                if number < FEWEST:
                    self.given_up = "that would take too long"
                    return None
                continue
            asked += weight
            try:
                steps = self.replay.steps(warp, lanes)
                executed.append(self.warps.executions(self._strands(steps, lanes)))
            except ReplayError:
                continue
            did.append(steps.counts())
            weights.append(weight)
            parts.append(part)
            walked[part] += weight
        if not walked.sum():
            self.given_up = "none is recorded whole"
            return None
        known = stood[walked > 0].sum()
        scales = np.where(walked > 0, stood / np.maximum(walked, 1e-300), 0.0) * stood.sum() / known
        each = self._calibrated(np.array(weights) * scales[parts], np.array(did, np.float64))
        warps, threads = np.tensordot(each, np.array(executed, np.float64), axes=1)
        by_lanes = each @ np.array([of_lanes for _, of_lanes in did], np.float64)
        blocks = len(self.matcher.graph.blocks)
        told = dict(zip(self.paths.names, by_lanes.tolist(), strict=True))
        found = PathEstimate(np.zeros(blocks), np.zeros(blocks), walked.sum() / asked, told)
        np.add.at(found.warps, self.nodes.blocks, warps)
        np.add.at(found.threads, self.nodes.blocks, threads)
        return found

    def _calibrated(self, weights: Floats, did: Floats) -> Floats:
        """Weights of warps by which they executed the statements as often as all warps did. did: float64[warp, 2, thing told]: how often
        each did it, and its lanes together."""
        statements = self.launched.statements.statements
        plain = [(n, statements[name]) for n, name in enumerate(self.paths.names) if name in statements]
        told = [n for n, one in plain if one.number not in self.launched.statements.loops]
        warps = [statements[self.paths.names[n]].warps for n in told]
        lanes = [statements[self.paths.names[n]].lanes for n in told]
        return calibrated(weights, did[:, :, told].reshape(len(weights), -1), np.array([*warps, *lanes], np.float64))

    @cached_property
    def recorded(self) -> RecordedDecisions:
        """The decisions of its warps."""
        assert self.launched.decisions is not None, "recorded with the counts"
        return RecordedDecisions(self.launched.decisions)

    @cached_property
    def replay(self) -> DecisionReplay:
        """Tells what the anchors show."""
        body = prepare(self.launched.request.program).program.kernel.body
        return DecisionReplay(body, self.recorded, self.paths.names)

    @cached_property
    def alike(self) -> list[tuple[WarpName, int, float]]:
        """The warps that are walked, the lanes that enter each, and how many it stands for; what all lanes agree on is known then."""
        found = self._alike()
        self._agree([(warp, lanes) for warp, lanes, _ in found[:FIRST]])
        return found

    def strands(self, warp: WarpName, lanes: int) -> list[LanePath]:
        """The ways of a warp's lanes. Raises Lost where what was recorded of it does not tell them."""
        return self._strands(self.replay.steps(warp, lanes), lanes)

    def _strands(self, steps: WarpTrace, lanes: int) -> list[LanePath]:
        groups = ((what, mask & (1 << lanes) - 1) for what, mask in steps.alike().items())
        return [LanePath(mask, self._way(what, steps, mask).path) for what, mask in groups if mask]

    def _agree(self, first: Sequence[tuple[WarpName, int]]) -> None:
        """Close the ways behind uniform branches which the first warps' lanes do not go: all lanes go the same, which is that by which
        all together show best what they executed."""
        if self.launched.launches > 1:
            return  # each launch has constants of its own
        told = list[tuple[int, WarpTrace, int]]()
        for warp, lanes in first:
            with suppress(ReplayError):
                steps = self.replay.steps(warp, lanes)
                told += [(what, steps, mask) for what, mask in steps.alike().items() if mask & (1 << lanes) - 1]
                for each in told:
                    self._way(*each)
        for block in sorted(self.uniform.branches):
            gone = frozenset((block, onward) for onward in self.matcher.graph.successors[block])
            used = {pair for way in self.ways.values() for pair in self._pairs(way)} & gone
            if len(used) < 2:
                continue
            closed, known = self.paths.closed, self.ways
            costs = []
            for one in sorted(gone):
                self.paths.close(gone - {one})
                self.ways = {}
                with suppress(ReplayError):
                    costs.append((sum(self._way(*each).cost for each in told), one, self.ways))
                self.paths.reopen(closed)
            if costs:
                _, one, self.ways = min(costs, key=lambda each: each[:2])
                self.paths.close(gone - {one})
            else:
                self.ways = known

    def _pairs(self, way: ScoredPath) -> set[tuple[int, int]]:
        """The ways from block to block that it goes."""
        blocks = [self.nodes.blocks[node] for node in way.path]
        return set(itertools.pairwise(blocks))

    def _alike(self) -> list[tuple[WarpName, int, float]]:
        """The warps that are walked, each with the lanes that enter it, and how many it stands for: those of its launch that decided
        alike; where too many decided differently, some from all over stand for the others of their launch."""
        assert self.launched.decisions is not None, "recorded with the counts"
        every, of_launch = list[tuple[WarpName, int]](), list[float]()
        for launch, (blocks, threads) in enumerate(self.launched.shapes):
            told = self.launched.decisions.blocks(launch, blocks)
            of_launch.append(blocks / len(told) if told else 0.0)
            every += [
                ((launch, block, warp), min(32, threads - 32 * warp))
                for block in told
                for warp in range(-(-threads // 32))
            ]
        found: dict[object, tuple[WarpName, int, float]] = {}
        for warp, lanes in every:
            key = lanes, self.recorded.decided(warp)
            first, _, weight = found.get(key, (warp, lanes, 0.0))
            found[key] = first, lanes, weight + of_launch[warp[0]]
        if len(found) <= WARPS:
            return spread(list(found.values()), WARPS)
        chosen = spread(every, WARPS)
        times = {launch: of_launch[launch] * n for launch, n in Counter(warp[0] for warp, _ in every).items()}
        count = Counter(warp[0] for warp, _ in chosen)
        return [(warp, lanes, times[warp[0]] / count[warp[0]]) for warp, lanes in chosen]

    def _way(self, what: int, steps: WarpTrace, mask: int) -> ScoredPath:
        """Of lanes that did the same, by the number of what they did. Raises Lost where there is none."""
        if what not in self.ways:
            way = self.paths.way(steps, mask.bit_length() - 1)
            if way is None:
                raise ReplayError("no way leads to an end")
            self.ways[what] = way
        return self.ways[what]


def _mean(parts: Floats) -> float:
    return float(parts.mean()) if len(parts) else 0.0


def spread(warps: list[T], most: int) -> list[T]:
    """So many of them at most, from all over, in an order in which any first ones are too."""
    if len(warps) > most:
        warps = [warps[n] for n in np.linspace(0, len(warps) - 1, most).round().astype(int)]
    bits = max(len(warps) - 1, 1).bit_length()
    return [warps[n] for n in (int(f"{k:0{bits}b}"[::-1], 2) for k in range(1 << bits)) if n < len(warps)]
