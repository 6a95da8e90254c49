"""Executions of a kernel's blocks: known counts and flow conservation; path sampling where these leave much uncertain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .control_flow import Graph, graph
from .flow import FlowEstimate, KnownCounts, SourceEvidence, estimate_executions
from .instructions import LocatedInstruction
from .kernel_launches import KernelLaunches
from .line_table_fixes import with_fixed_lines
from .matching import LoopMatcher
from .path_estimator import PathEstimate, PathEstimator
from .tolerances import TOLERANCES

Floats = npt.NDArray[np.float64]
_RELATIVE_TOLERANCE = 0.01
"""Tolerance for equal executions, given the solver's tolerance."""
_ROUNDING_TOLERANCE, _RESIDUAL_TOLERANCE = 1e-3, 1e-3
"""Rounding of computed integers; residual considered zero."""
_MAX_EXCESS_CONVERGENCE = 0.2
"""Maximal excess of convergent operations under path sampling. Lanes in different copies of a loop double them."""
_MAX_UNCERTAIN_FRACTION = 0.2
"""Maximal uncertain fraction of the flow for which it is preferred to paths without lower residual. Fitted on the kernels of
the records."""


@dataclass(frozen=True)
class Executions:
    """Executions by instruction: block, warps, threads, and certain bounds of `warps`. why: reason of uncertainty by
    block. estimator: of the paths, used or not."""

    placed: tuple[LocatedInstruction, ...]
    block_of: tuple[int, ...]
    warps: Floats
    threads: Floats
    least: Floats
    most: Floats
    uncertainty: dict[int, str]
    estimator: PathEstimator

    @property
    def warp_instructions(self) -> int:
        return round(float(self.warps.sum()))

    @property
    def thread_instructions(self) -> int:
        return round(float(self.threads.sum()))


def executions_of(placed: Sequence[LocatedInstruction], launched: KernelLaunches) -> Executions:
    """Count the instructions of a compiled kernel. launched: with counts and decisions. Raises LaunchError without highspy."""
    whole = graph(tuple(one.instruction for one in placed))
    inlining_known = any(one.calls for one in placed)
    evidence = SourceEvidence(launched.executed, inlining_known)
    source = launched.statements if inlining_known else launched.statements.without_inlining()
    placed = with_fixed_lines(placed, source)
    matcher = LoopMatcher(whole, evidence.places(placed), source)
    known_counts, unmatched, evenly_split = _known_counts(matcher)
    flow_estimate = estimate_executions(placed, evidence, launched.threads, launched.warps, known_counts, whole)
    certain = [
        block
        for block, (first, _) in enumerate(whole.blocks)
        if block not in evenly_split
        and _is_certain(
            block,
            flow_estimate.warps[first],
            flow_estimate.threads[first],
            known_counts,
            evidence,
            matcher,
            launched,
        )
    ]
    estimator = PathEstimator(matcher, launched)
    from_paths = _from_paths(placed, estimator, flow_estimate, certain)
    if from_paths is not None:
        return from_paths
    block_of = [block for block, (first, past) in enumerate(whole.blocks) for _ in range(first, past)]
    reasons: dict[int, str] = {}
    for block in range(len(whole.blocks)):
        if block in certain:
            continue
        if block in evenly_split:
            reasons[block] = "copies of a loop in an unrolled loop are assumed to have equal trip counts"
            continue
        lines = ", ".join(str(line) for line in unmatched)
        reasons[block] = "no statement determines the executions: threads follow from flow conservation" + (
            f"; the loop at line {lines} was not found in the compiled code" if unmatched else ""
        )
        reasons[block] += f"; no path sampling: {estimator.failure}" if estimator.failure else ""
    return _bounded(placed, block_of, flow_estimate.warps, flow_estimate.threads, reasons, estimator)


def _bounded(
    placed: Sequence[LocatedInstruction],
    block_of: Sequence[int],
    warps: Floats,
    threads: Floats,
    reasons: Mapping[int, str],
    estimator: PathEstimator,
) -> Executions:
    """Return executions with bounds for uncertain blocks: threads / 32 to threads. Equal bounds are certain."""
    lower, upper = warps.copy(), warps.copy()
    is_open = np.isin(block_of, list(reasons))
    lower[is_open] = np.ceil(np.minimum(warps, threads / 32) - _ROUNDING_TOLERANCE)[is_open]
    upper[is_open] = np.floor(np.maximum(warps, threads) + _ROUNDING_TOLERANCE)[is_open]
    uncertain = {block for block, a, b in zip(block_of, lower, upper, strict=True) if a < b}
    reasons = {block: reason for block, reason in reasons.items() if block in uncertain}
    return Executions(tuple(placed), tuple(block_of), warps, threads, lower, upper, reasons, estimator)


def _from_paths(
    placed: Sequence[LocatedInstruction], estimator: PathEstimator, flow: FlowEstimate, certain: Sequence[int]
) -> Executions | None:
    """Return the executions by path sampling if preferred, else None."""
    blocks = estimator.matcher.graph.blocks
    sizes = [past - first for first, past in blocks]
    firsts = [first for first, _ in blocks]
    uncertain_fraction = 1 - sum(flow.warps[firsts[block]] * sizes[block] for block in certain) / flow.warps.sum()
    residual = estimator.mean_residual(flow.threads[firsts])
    has_yields = any(map(estimator.matcher.graph.ends_in_yield, range(len(blocks))))
    if uncertain_fraction <= _RELATIVE_TOLERANCE and residual <= _RESIDUAL_TOLERANCE and not has_yields:
        return None
    path_estimate = estimator.estimate()
    if path_estimate is None:
        return None
    if has_yields and estimator.mean_residual(path_estimate.threads) <= residual + _RESIDUAL_TOLERANCE:
        uncertain_fraction = 1.0  # the flow ignores YIELD in warp counts
    if not _prefers_paths(estimator, path_estimate, flow, certain, uncertain_fraction, residual):
        return None
    block_of = np.repeat(np.arange(len(blocks)), sizes)
    warps, threads = path_estimate.warps[block_of], path_estimate.threads[block_of]
    deviating = "sampled paths have residuals here"
    reasons = dict.fromkeys(estimator.uncertain_blocks(path_estimate.threads), deviating)
    if (
        uncertain_fraction <= _MAX_UNCERTAIN_FRACTION
        and estimator.mean_residual(path_estimate.threads) > residual - _RELATIVE_TOLERANCE
    ):  # blocks with certain flow remain certain
        unconfirmed = "no statement determines the executions: estimated from sampled paths"
        reasons = {block: reasons.get(block, unconfirmed) for block in range(len(blocks)) if block not in certain}
    if path_estimate.complete_fraction < TOLERANCES.complete_fraction:
        incomplete = (
            f"{path_estimate.complete_fraction:.0%} of the sampled warps have complete records and represent the others"
        )
        reasons = {block: reasons.get(block, incomplete) for block in range(len(blocks)) if block not in certain}
    return _bounded(placed, block_of.tolist(), warps, threads, reasons, estimator)


def _prefers_paths(
    estimator: PathEstimator,
    path_estimate: PathEstimate,
    flow: FlowEstimate,
    certain: Sequence[int],
    uncertain_fraction: float,
    flow_residual: float,
) -> bool:
    """Return whether path sampling is preferred to the flow."""
    path_residual, is_incomplete = (
        estimator.mean_residual(path_estimate.threads),
        path_estimate.complete_fraction < TOLERANCES.complete_fraction,
    )
    firsts = [first for first, _ in estimator.matcher.graph.blocks]
    if (
        estimator.residuals.excess_convergence(path_estimate.warps)
        > estimator.residuals.excess_convergence(flow.warps[firsts]) + _MAX_EXCESS_CONVERGENCE
    ):
        estimator.failure = "sampled paths reconverge later than the source"
        return False
    no_better = (
        path_residual > flow_residual - _RELATIVE_TOLERANCE and path_residual >= flow_residual / 2
    )  # no lower residual than the flow
    if no_better and uncertain_fraction <= _MAX_UNCERTAIN_FRACTION:
        sizes = [past - first for first, past in estimator.matcher.graph.blocks]
        certain_executed = [
            block for block in certain if flow.warps[firsts[block]]
        ]  # blocks on alternative flows are excluded
        deviation = sum(
            abs(path_estimate.warps[block] - flow.warps[firsts[block]]) * sizes[block] for block in certain_executed
        )
        sample_residual = path_residual - estimator.mean_residual(
            path_estimate.threads, path_estimate.event_counts
        )  # residual due to the sample
        is_unrepresentative = (
            sample_residual > _RESIDUAL_TOLERANCE or path_residual > flow_residual + _RELATIVE_TOLERANCE
        )
        if (
            is_incomplete
            or is_unrepresentative
            or deviation > min(_RELATIVE_TOLERANCE, uncertain_fraction) * flow.warps.sum()
        ):
            return False
    elif (
        no_better
        and estimator.missing_effects(path_estimate.threads)
        > estimator.missing_effects(flow.threads[firsts]) + _RELATIVE_TOLERANCE
    ):
        estimator.failure = "sampled paths miss effects of the source"
        return False
    if is_incomplete and path_residual > uncertain_fraction:  # compare the sample's error with the flow's uncertainty
        estimator.failure = f"only {path_estimate.complete_fraction:.0%} of the warps have complete records"
        return False
    return True


def _known_counts(matcher: LoopMatcher) -> tuple[KnownCounts, list[int], set[int]]:
    """Return known counts of matched loops, lines of unmatched loops, and blocks with assumed even splits."""
    known_counts, unmatched, evenly_split = (
        KnownCounts(special_edges=matcher.special_edges, unused_slow_calls=matcher.unused_slow_calls),
        list[int](),
        set[int](),
    )
    for loop in matcher.loops:
        for stage in loop.stages:
            if stage is None:
                unmatched.append(loop.place[0])
                continue
            evenly_split.update(stage.certain if loop.evenly_split else ())
            for block in stage.certain:
                known_counts.blocks[block] = stage.threads.get(block, 0.0), stage.warps.get(block, 0.0)
            known_counts.entries |= stage.entries
            known_counts.divergences |= stage.divergences
    return known_counts, sorted(set(unmatched)), evenly_split


def _is_executed_by_all(whole: Graph, block: int) -> bool:
    """Return whether all remaining threads execute a block exactly once."""
    current: int | None = 0
    visited = set[int]()  # an infinite loop leads back to itself
    while current is not None and current != block and current not in visited:
        visited.add(current)
        onward = whole.successors[current]
        current = onward[0] if current in whole.exits and len(onward) == 1 else whole.postdominators[current]
    return current == block and not whole.enclosing_loops(block)


def _is_certain(
    block: int, warps: float, threads: float, known_counts: KnownCounts, evidence: SourceEvidence, matcher: LoopMatcher,
    launched: KernelLaunches,
) -> bool:  # fmt: skip
    """Return whether a matched loop or a statement has exactly these executions, or all threads execute the block."""
    if not threads or (threads == launched.threads and _is_executed_by_all(matcher.graph, block)):
        return True
    if block in known_counts.blocks:
        candidates = [known_counts.blocks[block]]
    else:
        places = {matcher.places[n] for n in range(*matcher.graph.blocks[block])}
        candidates = [(e.lanes, e.warps) for place in places for e in evidence.statements.get(place, ())]
    return any(
        abs(t - threads) <= _RELATIVE_TOLERANCE * threads and abs(w - warps) <= _RELATIVE_TOLERANCE * warps
        for t, w in candidates
    )
