"""Executions of a compiled kernel's blocks: counted where the source tells them, and conserved in between; where that leaves
much open, walked."""

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
from .flow import FlowEstimate, KnownCounts, LocatedInstruction, SourceEvidence, estimate_executions
from .kernel_launches import KernelLaunches
from .line_table_fixes import with_fixed_lines
from .loop_counters import exhausted_loop_edges
from .matching import LoopMatcher
from .opcode_classes import EFFECTS
from .path_estimator import MIN_COMPLETE_FRACTION, PathEstimate, PathEstimator
from .source_statements import Place

Floats = npt.NDArray[np.float64]
_AGREES = 0.01
"""How near two counts of executions must be to be the same: what a solver's tolerance may leave."""
_ROUNDED, _EXPLAINED = 1e-3, 1e-3
"""What is left of a whole number where it is computed; and the part of the source's executions that may be unexplained where all is."""
_APART = 0.2
"""By how much more often warps may meet where they were walked than in the source. Lanes that go through different copies of a loop meet
apart in each: twice as often."""
_UNLIKE = 0.05
"""How unlike all warps those may be that were walked, for their lanes to part as all do."""
_ELSEWHERE = 0.2
"""By which part lanes that came to a block may differ from those that the flow has there, to have been walked elsewhere."""
_OPEN, _MISFIT = 0.2, 0.02
"""The part of the executions that the flow may leave open, and the part of the source's that it may leave unexplained, before warps
are believed that explain no more. Measured on the 393 kernels of the records: of 27 of which the flow leaves less open those that
come to the same where the flow is sure are right, and those that do not are wrong."""


@dataclass(frozen=True)
class Executions:
    """Of each instruction, in order: block, executions by warps and by threads, and between which those by warps lie for
    certain. why: by block, what is not certain. walk: of the kernel's warps, whether or not it told the executions."""

    placed: tuple[LocatedInstruction, ...]
    block_of: tuple[int, ...]
    warps: Floats
    threads: Floats
    least: Floats
    most: Floats
    why: dict[int, str]
    walk: PathEstimator

    @property
    def warp_instructions(self) -> int:
        return round(float(self.warps.sum()))

    @property
    def thread_instructions(self) -> int:
        return round(float(self.threads.sum()))


def executions_of(placed: Sequence[LocatedInstruction], launched: KernelLaunches) -> Executions:
    """Count the instructions of a compiled kernel. launched: with counts and decisions. Raises LaunchError without highspy."""
    whole = _graph(placed, launched)
    apart = any(one.calls for one in placed)
    evidence = SourceEvidence(launched.executed, apart)
    source = launched.statements if apart else launched.statements.without_inlining()
    placed = with_fixed_lines(placed, source)
    matcher = LoopMatcher(whole, evidence.places(placed), source)
    counted, unmatched, even = _counted(matcher)
    known = replace(counted, blocks=_first_arms(matcher, launched.threads) | counted.blocks)
    found = estimate_executions(placed, evidence, launched.threads, launched.warps, known, whole)
    doubled = _doubled(matcher)
    sure = [
        block
        for block, (first, _) in enumerate(whole.blocks)
        if block not in even
        and _certain(block, found.warps[first], found.threads[first], counted, evidence, matcher, launched, doubled)
    ]
    walk = PathEstimator(matcher, launched)
    walked = _walked(placed, walk, found, sure)
    if isinstance(walked, Executions):
        return walked
    if walked is not None:
        found = _parted(walk, found, walked, sure)
    block_of = [block for block, (first, past) in enumerate(whole.blocks) for _ in range(first, past)]
    why: dict[int, str] = {}
    for block in range(len(whole.blocks)):
        if block in sure:
            continue
        if block in even:
            why[block] = "copies of a loop in an unrolled one are taken to turn as often as each other"
            continue
        lines = ", ".join(str(line) for line in unmatched)
        why[block] = "no statement alone tells how often: its threads follow from those around it" + (
            f"; the loop at line {lines} was not found in the compiled code" if unmatched else ""
        )
        why[block] += f"; its warps were not walked: {walk.failure}" if walk.failure else ""
    return _bounded(placed, block_of, found.warps, found.threads, why, walk)


def _graph(placed: Sequence[LocatedInstruction], launched: KernelLaunches) -> Graph:
    """Without ways that lanes never go."""
    whole = graph(tuple(one.instruction for one in placed))
    layout = BankLayout.of(whole.instructions)
    never = frozenset[tuple[int, int]]() if layout is None else ConstantPropagation(whole, launched.bank(layout)).never
    return whole.without_edges(never | exhausted_loop_edges(whole))


def _bounded(
    placed: Sequence[LocatedInstruction],
    block_of: Sequence[int],
    warps: Floats,
    threads: Floats,
    why: Mapping[int, str],
    walk: PathEstimator,
) -> Executions:
    """Executions, of which those of some blocks are not certain: between one by every 32 threads and one by each of them. Where
    that leaves one number, it is certain."""
    least, most = warps.copy(), warps.copy()
    open_blocks = np.isin(block_of, list(why))
    least[open_blocks] = np.ceil(np.minimum(warps, threads / 32) - _ROUNDED)[open_blocks]
    most[open_blocks] = np.floor(np.maximum(warps, threads) + _ROUNDED)[open_blocks]
    left = {block for block, a, b in zip(block_of, least, most, strict=True) if a < b}
    why = {block: told for block, told in why.items() if block in left}
    return Executions(tuple(placed), tuple(block_of), warps, threads, least, most, why, walk)


def _walked(
    placed: Sequence[LocatedInstruction], walk: PathEstimator, flow: FlowEstimate, sure: Sequence[int]
) -> Executions | PathEstimate | None:
    """The executions as walked, where the flow leaves too much open, or explains less of what was executed; what was walked where only
    the warps that stand for all are unlike these. sure: blocks of which the flow is certain."""
    blocks = walk.matcher.graph.blocks
    sizes = [past - first for first, past in blocks]
    firsts = [first for first, _ in blocks]
    open_ = 1 - sum(flow.warps[firsts[block]] * sizes[block] for block in sure) / flow.warps.sum()
    misfit = walk.mean_residual(flow.threads[firsts])
    yields = any(map(walk.matcher.graph.ends_in_yield, range(len(blocks))))
    if open_ <= _AGREES and misfit <= _EXPLAINED and not yields:
        return None
    found = walk.estimate()
    if found is None:
        return None
    if yields and walk.mean_residual(found.threads) <= misfit + _EXPLAINED:
        open_ = 1.0  # the flow is right by threads alone: it has lanes meet that do not wait for each other
    if not _believed(walk, found, flow, sure, open_, misfit):
        alike = walk.mean_residual(found.threads) <= _UNLIKE
        return (
            found if alike and max(misfit, walk.mean_residual(found.threads, found.event_counts)) <= _MISFIT else None
        )
    block_of = np.repeat(np.arange(len(blocks)), sizes)
    warps, threads = found.warps[block_of], found.threads[block_of]
    unlike = "lanes were walked through it that show not just what the source executed"
    why = dict.fromkeys(walk.uncertain_blocks(found.threads), unlike)
    if open_ <= _OPEN and walk.mean_residual(found.threads) > misfit - _AGREES:  # what the flow is sure of stands
        left = "no statement alone tells how often: lanes were walked through it that show what the source did"
        why = {block: why.get(block, left) for block in range(len(blocks)) if block not in sure}
    if found.complete_fraction < MIN_COMPLETE_FRACTION:
        others = f"{found.complete_fraction:.0%} of the warps that were asked for are recorded whole, and stand for the others"
        why = {block: why.get(block, others) for block in range(len(blocks)) if block not in sure}
    return _bounded(placed, block_of.tolist(), warps, threads, why, walk)


def _parted(walk: PathEstimator, flow: FlowEstimate, found: PathEstimate, sure: Sequence[int]) -> FlowEstimate:
    """The executions by threads that the flow tells, and as many by warps as the lanes that were walked parted: how many there are of
    these depends on the warps that stand for all, how they part less so. Where lanes were walked elsewhere they tell nothing."""
    warps = flow.warps.copy()
    for block, (first, past) in enumerate(walk.matcher.graph.blocks):
        threads = flow.threads[first]
        if block not in sure and abs(found.threads[block] - threads) < _ELSEWHERE * threads:
            part = found.warps[block] / found.threads[block]
            warps[first:past] = min(max(threads * part, threads / 32), threads)
    return replace(flow, warps=warps)


def _believed(
    walk: PathEstimator, found: PathEstimate, flow: FlowEstimate, sure: Sequence[int], open_: float, misfit: float
) -> bool:
    """Whether what was walked is taken rather than the flow, which leaves so much open, and so much of the source unexplained."""
    wrong, partly = walk.mean_residual(found.threads), found.complete_fraction < MIN_COMPLETE_FRACTION
    firsts = [first for first, _ in walk.matcher.graph.blocks]
    if walk.residuals.excess_convergence(found.warps) > walk.residuals.excess_convergence(flow.warps[firsts]) + _APART:
        walk.failure = "lanes go different ways to where they meet"
        return False
    no_better = (
        wrong > misfit - _AGREES and wrong >= misfit / 2
    )  # no more of what was executed is explained than by the flow
    if no_better and open_ <= _OPEN:
        sizes = [past - first for first, past in walk.matcher.graph.blocks]
        known = [block for block in sure if flow.warps[firsts[block]]]  # of several ways the flow goes one
        apart = sum(abs(found.warps[block] - flow.warps[firsts[block]]) * sizes[block] for block in known)
        drawn = wrong - walk.mean_residual(
            found.threads, found.event_counts
        )  # the warps that were walked are unlike the others
        unlike = drawn > _EXPLAINED or wrong > misfit + _AGREES
        if partly or unlike or apart > min(_AGREES, open_) * flow.warps.sum():
            return False
    elif no_better and walk.missing_effects(found.threads) > walk.missing_effects(flow.threads[firsts]) + _AGREES:
        walk.failure = "ways that fit do not show all that the source did"
        return False
    if partly and wrong > open_:  # some warps show how wrong they are, the flow how wrong it may be
        walk.failure = f"only {found.complete_fraction:.0%} of them are recorded whole"
        return False
    return True


def _counted(matcher: LoopMatcher) -> tuple[KnownCounts, list[int], set[int]]:
    """What the turns of matched loops tell, the lines of loops that could not be matched, and blocks of loops that an unrolled
    one around them has repeated."""
    counted, unmatched, even = (
        KnownCounts(arms=matcher.arms.parts, rare=matcher.rare, unused_slow_calls=matcher.unused_slow_calls),
        list[int](),
        set[int](),
    )
    for loop in matcher.loops:
        for stage in loop.stages:
            if stage is None:
                unmatched.append(loop.place[0])
                continue
            even.update(stage.certain if loop.even else ())
            for block in stage.certain:
                counted.blocks[block] = stage.threads.get(block, 0.0), stage.warps.get(block, 0.0)
            counted.entries |= stage.entries
            counted.parted |= stage.parted
    return counted, sorted(set(unmatched)), even


def _first_arms(matcher: LoopMatcher, threads: int) -> dict[int, tuple[float, float]]:
    """Executions of blocks behind a test that all threads come to once, by threads and warps, where an arm of its branch begins there and
    nowhere else."""
    heads, found = matcher.arms.heads, dict[int, tuple[float, float]]()
    alone = Occurrences(heads.values())
    for block, arm in matcher.arms.parts.items():
        if block in heads and alone[heads[block]] == 1 and _always(matcher.graph, arm.head):
            branches = [one for one in matcher.source.by_place[heads[block][0]] if one.site.kind == "branch"]
            lanes, warps = sum(one.lanes for one in branches), sum(one.warps for one in branches)
            if lanes == threads:
                found[block] = arm.lanes * lanes, arm.warps * warps
    return found


def _always(whole: Graph, block: int) -> bool:
    """Whether all threads come to a block, once each, that have not left the kernel before."""
    at: int | None = 0
    seen = set[int]()  # a loop that is left by the end of the kernel alone leads back to itself
    while at is not None and at != block and at not in seen:
        seen.add(at)
        onward = whole.successors[at]
        at = onward[0] if at in whole.exits and len(onward) == 1 else whole.postdominators[at]
    return at == block and not whole.enclosing_loops(block)


def _doubled(matcher: LoopMatcher) -> frozenset[Place]:
    """Places of effects that lie in blocks beside each other, neither of which dominates the other: the compiler has written what is there
    twice, and lanes go either way."""
    holding: dict[Place, set[int]] = defaultdict(set)
    for block, span in enumerate(matcher.graph.blocks):
        for n in range(*span):
            if any(kind in EFFECTS.values() for _, kind in matcher.instruction_amounts(n)):
                holding[matcher.places[n]].add(block)
    above = matcher.graph.dominates
    return frozenset(
        place
        for place, blocks in holding.items()
        if any(not above(a, b) and not above(b, a) for a, b in combinations(blocks, 2))
    )


def _certain(
    block: int, warps: float, threads: float, counted: KnownCounts, evidence: SourceEvidence, matcher: LoopMatcher,
    launched: KernelLaunches, doubled: frozenset[Place],
) -> bool:  # fmt: skip
    """Whether a matched loop or a statement tells just these executions of a block, or all threads come there. doubled: as `_doubled`."""
    if not threads or (threads == launched.threads and _always(matcher.graph, block)):
        return True
    if block in counted.blocks:
        known = [counted.blocks[block]]
    else:
        places = {matcher.places[n] for n in range(*matcher.graph.blocks[block])} - doubled
        known = [(e.lanes, e.warps) for place in places for e in evidence.statements.get(place, ())]
    return any(abs(t - threads) <= _AGREES * threads and abs(w - warps) <= _AGREES * warps for t, w in known)
