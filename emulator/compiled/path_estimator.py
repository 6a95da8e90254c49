"""Execution counts from sampled lane paths: replay decisions of sampled warps, search each lane's path through the
SASS, simulate reconvergence, and weight the warps."""

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
from .sample_weights import calibrate
from .tolerances import TOLERANCES
from .uniformity import Uniformity

MAX_WARPS = 128
"""Warps in the sample, at most."""
SEARCH_BUDGET, HARD_SEARCH_BUDGET = 25_000_000, 50_000_000
"""Expanded search nodes of a kernel before the sample stops growing, and at most (about 0.5 s and 1 s on one core)."""
MIN_WARPS = 8
"""Warps in a valid sample, at least."""
PILOT_WARPS = 4
"""Warps searched first, to decide uniform branches."""

Floats = npt.NDArray[np.float64]
T = TypeVar("T")


@dataclass
class PathEstimate:
    """Executions by block, of warps and threads. complete_fraction: of sampled warps, those with complete records.
    event_counts: weighted executions of each event by lanes."""

    warps: Floats
    threads: Floats
    complete_fraction: float = 1.0
    event_counts: dict[int, float] = field(default_factory=dict)


@dataclass
class PathEstimator:
    """Path sampling of one kernel. failure: reason why no estimate is available."""

    matcher: LoopMatcher
    launched: KernelLaunches
    paths_by_hash: dict[int, ScoredPath] = field(default_factory=dict)
    failure: str = ""

    def __post_init__(self) -> None:
        self.nodes = ExpandedCfg(self.matcher.graph, self.matcher.special_edges)
        self.correspondence = Correspondence(self.matcher, self.nodes)
        self.residuals = Residuals(self.correspondence, self.nodes)
        self.search = PathSearch(self.nodes, self.correspondence)
        self.search.close_edges(self.matcher.special_edges)
        self.uniformity = Uniformity(self.matcher.graph)
        self.warps = WarpReconvergence(self.nodes)

    def mean_residual(self, threads: Floats, event_counts: Mapping[int, float] | None = None) -> float:
        """Return the mean residual of block executions over all features, or relative to some event counts."""
        return _mean_or_zero(self.residuals.by_feature(threads, event_counts)[self.residuals.executed])

    def missing_effects(self, threads: Floats) -> float:
        """Return the mean residual of mandatory effects alone: stores, atomics, shuffles, votes, barriers."""
        return _mean_or_zero(self.residuals.by_feature(threads)[self.residuals.mandatory])

    def uncertain_blocks(self, threads: Floats) -> list[int]:
        """Return the blocks with a feature of residual above TOLERANCES.residual."""
        features = np.flatnonzero(self.residuals.by_feature(threads) > TOLERANCES.residual)
        return sorted(
            {
                block
                for node, block in enumerate(self.nodes.blocks)
                if self.correspondence.unconditional[node, features].any()
            }
        )

    def estimate(self) -> PathEstimate | None:
        """Return the estimate, or None with `failure` set."""
        if self.correspondence.has_silent_iterations:
            self.failure = "iterations may be predicated instructions without features"
            return None
        min_weight = min((weight for _, _, weight in self.sampled_warps), default=0.0)
        ordered = sorted(self.sampled_warps, key=lambda one: one[2] == min_weight)
        represented, completed = (
            np.zeros(2),
            np.zeros(2),
        )  # stratum 0: warps of higher weight; stratum 1: all others
        attempted = 0.0
        executions, counts = list[tuple[Counts, Counts]](), list[tuple[Counts, Counts]]()
        weights, strata = list[float](), list[int]()
        for number, (warp, lanes, weight) in enumerate(ordered):
            stratum = int(weight == min_weight)
            represented[stratum] += weight
            if self.search.visited > (SEARCH_BUDGET if number >= MIN_WARPS else HARD_SEARCH_BUDGET):
                if number < MIN_WARPS:
                    self.failure = "the search exceeds its budget"
                    return None
                continue
            attempted += weight
            try:
                steps = self.replay.trace(warp, lanes)
                executions.append(self.warps.executions(self._lane_paths(steps, lanes)))
            except ReplayError:
                continue
            counts.append(steps.counts())
            weights.append(weight)
            strata.append(stratum)
            completed[stratum] += weight
        if not completed.sum():
            self.failure = "no warp has a complete record"
            return None
        covered = represented[completed > 0].sum()
        scales = np.where(completed > 0, represented / np.maximum(completed, 1e-300), 0.0) * represented.sum() / covered
        calibrated = self._calibrate(np.array(weights) * scales[strata], np.array(counts, np.float64))
        warps, threads = np.tensordot(calibrated, np.array(executions, np.float64), axes=1)
        by_lanes = calibrated @ np.array([of_lanes for _, of_lanes in counts], np.float64)
        blocks = len(self.matcher.graph.blocks)
        event_counts = dict(zip(self.search.names, by_lanes.tolist(), strict=True))
        result = PathEstimate(np.zeros(blocks), np.zeros(blocks), completed.sum() / attempted, event_counts)
        np.add.at(result.warps, self.nodes.blocks, warps)
        np.add.at(result.threads, self.nodes.blocks, threads)
        return result

    def _calibrate(self, weights: Floats, counts: Floats) -> Floats:
        """Return weights under which the sample executes each statement as often as all warps did.

        counts: float64[warp, 2, event], executions by the warp and by its lanes.
        """
        statements = self.launched.statements.statements
        known_statements = [(n, statements[name]) for n, name in enumerate(self.search.names) if name in statements]
        chosen = [n for n, one in known_statements if one.number not in self.launched.statements.loops]
        warps = [statements[self.search.names[n]].warps for n in chosen]
        lanes = [statements[self.search.names[n]].lanes for n in chosen]
        return calibrate(
            weights, counts[:, :, chosen].reshape(len(weights), -1), np.array([*warps, *lanes], np.float64)
        )

    @cached_property
    def recorded(self) -> RecordedDecisions:
        """Decisions of the launch's warps."""
        assert self.launched.decisions is not None, "recorded with the counts"
        return RecordedDecisions(self.launched.decisions)

    @cached_property
    def replay(self) -> DecisionReplay:
        """Replay with the events of the correspondence."""
        body = prepare(self.launched.request.program).program.kernel.body
        return DecisionReplay(body, self.recorded, self.search.names)

    @cached_property
    def sampled_warps(self) -> list[tuple[WarpName, int, float]]:
        """Sampled warps with active lanes and weight. Uniform branches are decided on first use."""
        sampled = self._sample_warps()
        self._close_uniform_branches([(warp, lanes) for warp, lanes, _ in sampled[:PILOT_WARPS]])
        return sampled

    def lane_paths(self, warp: WarpName, lanes: int) -> list[LanePath]:
        """Return the lane paths of a warp. Raises ReplayError if its record is incomplete."""
        return self._lane_paths(self.replay.trace(warp, lanes), lanes)

    def _lane_paths(self, steps: WarpTrace, lanes: int) -> list[LanePath]:
        groups = ((lane_hash, mask & (1 << lanes) - 1) for lane_hash, mask in steps.lane_groups_by_hash().items())
        return [LanePath(mask, self._find_path(lane_hash, steps, mask).path) for lane_hash, mask in groups if mask]

    def _close_uniform_branches(self, pilots: Sequence[tuple[WarpName, int]]) -> None:
        """Decide uniform branches: close all but one edge of each, by the least total cost of the pilot warps' paths."""
        if self.launched.launches > 1:
            return  # constants differ between launches
        traces = list[tuple[int, WarpTrace, int]]()
        for warp, lanes in pilots:
            with suppress(ReplayError):
                steps = self.replay.trace(warp, lanes)
                traces += [
                    (what, steps, mask) for what, mask in steps.lane_groups_by_hash().items() if mask & (1 << lanes) - 1
                ]
                for trace in traces:
                    self._find_path(*trace)
        for block in sorted(self.uniformity.branches):
            edges = frozenset((block, onward) for onward in self.matcher.graph.successors[block])
            used_edges = {pair for path in self.paths_by_hash.values() for pair in self._edges_of(path)} & edges
            if len(used_edges) < 2:
                continue
            closed, paths = self.search.closed, self.paths_by_hash
            costs = []
            for edge in sorted(edges):
                self.search.close_edges(edges - {edge})
                self.paths_by_hash = {}
                with suppress(ReplayError):
                    costs.append((sum(self._find_path(*trace).cost for trace in traces), edge, self.paths_by_hash))
                self.search.set_closed_edges(closed)
            if costs:
                _, edge, self.paths_by_hash = min(costs, key=lambda trace: trace[:2])
                self.search.close_edges(edges - {edge})
            else:
                self.paths_by_hash = paths

    def _edges_of(self, path: ScoredPath) -> set[tuple[int, int]]:
        """Return the edges between blocks on a path."""
        blocks = [self.nodes.blocks[node] for node in path.path]
        return set(itertools.pairwise(blocks))

    def _sample_warps(self) -> list[tuple[WarpName, int, float]]:
        """Return one warp per group of equal decisions, weighted by the group's size; a spread sample of warps,
        weighted per launch, if there are more than MAX_WARPS groups."""
        assert self.launched.decisions is not None, "recorded with the counts"
        warps, weights = list[tuple[WarpName, int]](), list[float]()
        for launch, (blocks, threads) in enumerate(self.launched.shapes):
            blocks_recorded = self.launched.decisions.blocks(launch, blocks)
            weights.append(blocks / len(blocks_recorded) if blocks_recorded else 0.0)
            warps += [
                ((launch, block, warp), min(32, threads - 32 * warp))
                for block in blocks_recorded
                for warp in range(-(-threads // 32))
            ]
        groups: dict[object, tuple[WarpName, int, float]] = {}
        for warp, lanes in warps:
            key = lanes, self.recorded.decision_key(warp)
            first, _, weight = groups.get(key, (warp, lanes, 0.0))
            groups[key] = first, lanes, weight + weights[warp[0]]
        if len(groups) <= MAX_WARPS:
            return spread_sample(list(groups.values()), MAX_WARPS)
        chosen = spread_sample(warps, MAX_WARPS)
        launch_weight = {launch: weights[launch] * n for launch, n in Counter(warp[0] for warp, _ in warps).items()}
        count = Counter(warp[0] for warp, _ in chosen)
        return [(warp, lanes, launch_weight[warp[0]] / count[warp[0]]) for warp, lanes in chosen]

    def _find_path(self, lane_hash: int, steps: WarpTrace, mask: int) -> ScoredPath:
        """Return the path of lanes with equal event sequences, by hash. Raises ReplayError without one."""
        if lane_hash not in self.paths_by_hash:
            path = self.search.find(steps, mask.bit_length() - 1)
            if path is None:
                raise ReplayError("no path reaches an exit")
            self.paths_by_hash[lane_hash] = path
        return self.paths_by_hash[lane_hash]


def _mean_or_zero(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0


def spread_sample(warps: list[T], most: int) -> list[T]:
    """Return at most `most` evenly spaced items, in an order with evenly spaced prefixes (bit reversal)."""
    if len(warps) > most:
        warps = [warps[n] for n in np.linspace(0, len(warps) - 1, most).round().astype(int)]
    bits = max(len(warps) - 1, 1).bit_length()
    return [warps[n] for n in (int(f"{k:0{bits}b}"[::-1], 2) for k in range(1 << bits)) if n < len(warps)]
