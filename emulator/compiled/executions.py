"""Executions of a kernel's blocks: known counts and flow conservation; path sampling where these leave much uncertain."""

from __future__ import annotations

from collections import Counter as Occurrences
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from .constant_bank import BankLayout, ConstantPropagation
from .control_flow import Graph, graph
from .flow import SourceEvidence, estimate_executions
from .flow_records import FlowEstimate, KnownCounts, LocatedInstruction, Totals
from .kernel_launches import KernelLaunches
from .line_table_fixes import with_fixed_lines
from .loop_counters import exhausted_loop_edges
from .matching import LoopMatcher
from .opcode_classes import EFFECTS
from .path_estimator import PathEstimate, PathEstimator
from .source_statements import Place
from .tolerances import TOLERANCES

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Executions(Totals):
    """Executions by instruction: block, warps, threads, and certain bounds of `warps`. why: reason of uncertainty by
    block. walk: the path estimator, used or not."""

    placed: tuple[LocatedInstruction, ...]
    block_of: tuple[int, ...]
    warps: Floats
    threads: Floats
    least: Floats
    most: Floats
    uncertainty: dict[int, str]
    walk: PathEstimator


def executions_of(placed: Sequence[LocatedInstruction], launched: KernelLaunches) -> Executions:
    """Count the instructions of a compiled kernel. launched: with counts and decisions. Raises LaunchError without highspy."""
    whole = _graph(placed, launched)
    inlining_known = any(one.calls for one in placed)
    evidence = SourceEvidence(launched.executed, inlining_known)
    source = launched.statements if inlining_known else launched.statements.without_inlining()
    placed = with_fixed_lines(placed, source)
    matcher = LoopMatcher(whole, evidence.places(placed), source)
    known_counts, unmatched, evenly_split = _known_counts(matcher)
    known_with_arms = replace(known_counts, blocks=_known_arms(matcher, launched.threads) | known_counts.blocks)
    flow_estimate = estimate_executions(placed, evidence, launched.threads, launched.warps, known_with_arms, whole)
    doubled = _duplicated_places(matcher)
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
            doubled,
        )
    ]
    estimator = PathEstimator(matcher, launched)
    from_paths = _from_paths(placed, estimator, flow_estimate, certain)
    if isinstance(from_paths, Executions):
        return from_paths
    if from_paths is not None:
        flow_estimate = _with_path_divergence(estimator, flow_estimate, from_paths, certain)
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


def _graph(placed: Sequence[LocatedInstruction], launched: KernelLaunches) -> Graph:
    """Return the graph without unreachable edges."""
    whole = graph(tuple(one.instruction for one in placed))
    layout = BankLayout.detect(whole.instructions)
    never = (
        frozenset[tuple[int, int]]()
        if layout is None
        else ConstantPropagation(whole, launched.bank(layout)).unreachable_edges
    )
    return whole.without_edges(never | exhausted_loop_edges(whole))


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
    lower[is_open] = np.ceil(np.minimum(warps, threads / 32) - TOLERANCES.rounding)[is_open]
    upper[is_open] = np.floor(np.maximum(warps, threads) + TOLERANCES.rounding)[is_open]
    uncertain = {block for block, a, b in zip(block_of, lower, upper, strict=True) if a < b}
    reasons = {block: reason for block, reason in reasons.items() if block in uncertain}
    return Executions(tuple(placed), tuple(block_of), warps, threads, lower, upper, reasons, estimator)


def _from_paths(
    placed: Sequence[LocatedInstruction], estimator: PathEstimator, flow: FlowEstimate, certain: Sequence[int]
) -> Executions | PathEstimate | None:
    """Return the executions by path sampling if preferred; the path estimate if only its divergence is usable; else None."""
    blocks = estimator.matcher.graph.blocks
    sizes = [past - first for first, past in blocks]
    firsts = [first for first, _ in blocks]
    uncertain_fraction = 1 - sum(flow.warps[firsts[block]] * sizes[block] for block in certain) / flow.warps.sum()
    residual = estimator.mean_residual(flow.threads[firsts])
    has_yields = any(map(estimator.matcher.graph.ends_in_yield, range(len(blocks))))
    if uncertain_fraction <= TOLERANCES.executions and residual <= TOLERANCES.estimate and not has_yields:
        return None
    path_estimate = estimator.estimate()
    if path_estimate is None:
        return None
    if has_yields and estimator.mean_residual(path_estimate.threads) <= residual + TOLERANCES.estimate:
        uncertain_fraction = 1.0  # the flow ignores YIELD in warp counts
    if not _prefers_paths(estimator, path_estimate, flow, certain, uncertain_fraction, residual):
        is_representative = estimator.mean_residual(path_estimate.threads) <= TOLERANCES.sample_residual
        return (
            path_estimate
            if is_representative
            and max(residual, estimator.mean_residual(path_estimate.threads, path_estimate.event_counts))
            <= TOLERANCES.residual
            else None
        )
    block_of = np.repeat(np.arange(len(blocks)), sizes)
    warps, threads = path_estimate.warps[block_of], path_estimate.threads[block_of]
    deviating = "sampled paths have residuals here"
    reasons = dict.fromkeys(estimator.uncertain_blocks(path_estimate.threads), deviating)
    if (
        uncertain_fraction <= TOLERANCES.uncertain_fraction
        and estimator.mean_residual(path_estimate.threads) > residual - TOLERANCES.executions
    ):  # blocks with certain flow remain certain
        unconfirmed = "no statement determines the executions: estimated from sampled paths"
        reasons = {block: reasons.get(block, unconfirmed) for block in range(len(blocks)) if block not in certain}
    if path_estimate.complete_fraction < TOLERANCES.complete_fraction:
        incomplete = (
            f"{path_estimate.complete_fraction:.0%} of the sampled warps have complete records and represent the others"
        )
        reasons = {block: reasons.get(block, incomplete) for block in range(len(blocks)) if block not in certain}
    return _bounded(placed, block_of.tolist(), warps, threads, reasons, estimator)


def _with_path_divergence(
    estimator: PathEstimator, flow: FlowEstimate, path_estimate: PathEstimate, certain: Sequence[int]
) -> FlowEstimate:
    """Return the flow's thread counts, with warp counts by the sampled divergence where thread counts agree."""
    warps = flow.warps.copy()
    for block, (first, past) in enumerate(estimator.matcher.graph.blocks):
        threads = flow.threads[first]
        if block not in certain and abs(path_estimate.threads[block] - threads) < TOLERANCES.thread_deviation * threads:
            warps_per_thread = path_estimate.warps[block] / path_estimate.threads[block]
            warps[first:past] = min(max(threads * warps_per_thread, threads / 32), threads)
    return replace(flow, warps=warps)


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
        > estimator.residuals.excess_convergence(flow.warps[firsts]) + TOLERANCES.excess_convergence
    ):
        estimator.failure = "sampled paths reconverge later than the source"
        return False
    no_better = (
        path_residual > flow_residual - TOLERANCES.executions and path_residual >= flow_residual / 2
    )  # no lower residual than the flow
    if no_better and uncertain_fraction <= TOLERANCES.uncertain_fraction:
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
            sample_residual > TOLERANCES.estimate or path_residual > flow_residual + TOLERANCES.executions
        )
        if (
            is_incomplete
            or is_unrepresentative
            or deviation > min(TOLERANCES.executions, uncertain_fraction) * flow.warps.sum()
        ):
            return False
    elif (
        no_better
        and estimator.missing_effects(path_estimate.threads)
        > estimator.missing_effects(flow.threads[firsts]) + TOLERANCES.executions
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
        KnownCounts(
            arms=matcher.arms.shares, special_edges=matcher.special_edges, unused_slow_calls=matcher.unused_slow_calls
        ),
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


def _known_arms(matcher: LoopMatcher, threads: int) -> dict[int, tuple[float, float]]:
    """Return counts of arms after tests executed once by all threads, if the arm starts in one block only."""
    heads, result = matcher.arms.heads, dict[int, tuple[float, float]]()
    occurrences = Occurrences(heads.values())
    for block, arm in matcher.arms.shares.items():
        if block in heads and occurrences[heads[block]] == 1 and _is_executed_by_all(matcher.graph, arm.head):
            branches = [one for one in matcher.source.by_place[heads[block][0]] if one.site.kind == "branch"]
            lanes, warps = sum(one.lanes for one in branches), sum(one.warps for one in branches)
            if lanes == threads:
                result[block] = arm.lanes * lanes, arm.warps * warps
    return result


def _is_executed_by_all(whole: Graph, block: int) -> bool:
    """Return whether all remaining threads execute a block exactly once."""
    current: int | None = 0
    visited = set[int]()  # an infinite loop leads back to itself
    while current is not None and current != block and current not in visited:
        visited.add(current)
        onward = whole.successors[current]
        current = onward[0] if current in whole.exits and len(onward) == 1 else whole.postdominators[current]
    return current == block and not whole.enclosing_loops(block)


def _duplicated_places(matcher: LoopMatcher) -> frozenset[Place]:
    """Return locations of effects in blocks without dominance: the compiler duplicated the code."""
    blocks_by_place: dict[Place, set[int]] = defaultdict(set)
    for block, span in enumerate(matcher.graph.blocks):
        for n in range(*span):
            if any(kind in EFFECTS.values() for _, kind in matcher.instruction_amounts(n)):
                blocks_by_place[matcher.places[n]].add(block)
    dominates = matcher.graph.dominates
    return frozenset(
        place
        for place, blocks in blocks_by_place.items()
        if any(not dominates(a, b) and not dominates(b, a) for a, b in combinations(blocks, 2))
    )


def _is_certain(
    block: int, warps: float, threads: float, known_counts: KnownCounts, evidence: SourceEvidence, matcher: LoopMatcher,
    launched: KernelLaunches, duplicated: frozenset[Place],
) -> bool:  # fmt: skip
    """Return whether a matched loop or a statement has exactly these executions, or all threads execute the block."""
    if not threads or (threads == launched.threads and _is_executed_by_all(matcher.graph, block)):
        return True
    if block in known_counts.blocks:
        candidates = [known_counts.blocks[block]]
    else:
        places = {matcher.places[n] for n in range(*matcher.graph.blocks[block])} - duplicated
        candidates = [(e.lanes, e.warps) for place in places for e in evidence.statements.get(place, ())]
    return any(
        abs(t - threads) <= TOLERANCES.executions * threads and abs(w - warps) <= TOLERANCES.executions * warps
        for t, w in candidates
    )
