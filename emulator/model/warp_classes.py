"""Classes of warps with similar decisions, and their branch profiles in the compiled kernel.

A warp is described by its visits of each source statement list, weighted by instructions. Median cut (Heckbert 1982)
splits the class with the largest deviation at its mean, up to CLASSES classes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..compiled.control_flow import Graph
from ..compiled.loop_counters import bounded_loops
from ..compiled.source_statements import SourceStatements, Statement
from ..profiler.warp_decisions import ENTRIES, EXECUTIONS, FALSE_COUNT, ITERATIONS, TRUE_COUNT, WarpDecisions
from .branch_profiles import branch_profile, convergence_of, unreachable_convergence

Words = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
ListSet = frozenset[tuple[int, str]]
"""Source statement lists, each by its branch or loop and arm."""

CLASSES = 16
"""Maximal number of classes."""
_RELATIVE_TOLERANCE = 0.02
"""Tolerance for equal executions."""
_MAX_COMPILED_LOOPS = 3
"""Compiled loops of a source loop unrolled in two stages; more are copies of the loop."""
_MAX_DEVIATION = 0.01
"""Standard deviation of instructions within a class, relative to the mean warp, that needs no split."""


@dataclass(frozen=True)
class WarpClasses:
    """Branch profiles by class.

    blocks: int64[class, block, 5]: first instruction, past the last, majority successor, minority successor (-1: exit),
    convergence block of divergent lanes (-1: none). minority_shares, divergent_shares: float64[class, block],
    probabilities of the minority successor and of divergence. exit_counters: int64[class, block], block of the shared
    accumulator of a loop's exits, else -1. unreachable_convergence: bool[block, block + 1], whether no path leads from
    the first to the second, a convergence block (index from 1; 0: none). convergence_blocks: bool[block]. lengths:
    float64[class], instructions of a warp. executions: float64[class, block], of a warp. warps: float64[class], in the
    launch. longest: class of the longest warp, and its instructions relative to the class mean. traced_blocks:
    int64[n], in order; class_of: int64[n, warp].
    """

    blocks: Words
    minority_shares: Floats
    divergent_shares: Floats
    exit_counters: Words
    unreachable_convergence: npt.NDArray[np.bool_]
    convergence_blocks: npt.NDArray[np.bool_]
    lengths: Floats
    executions: Floats
    warps: Floats
    imbalance: tuple[int, float]
    traced_blocks: Words
    class_of: Words

    def classes(self, blocks: npt.NDArray[np.int64]) -> Words:
        """Return the classes of the warps of some blocks; blocks without a trace use their neighbor's."""
        result: Words = self.class_of[
            np.minimum(np.searchsorted(self.traced_blocks, blocks), len(self.traced_blocks) - 1)
        ]
        return result


def classify_warps(
    graph: Graph, executions: Floats, places: Sequence[tuple[int, ...]], source: SourceStatements, decided: WarpDecisions,
    grid: int, warps: int, tickets: bool,
) -> WarpClasses:  # fmt: skip
    """Return the warp classes. executions: of the graph's blocks, by all warps. places: source locations by
    instruction. grid: blocks; warps: per block. tickets: whether warps claim work dynamically; then all warps are
    assumed equal."""
    sizes = np.array([past - first for first, past in graph.blocks], np.float64)
    mean_executions = executions / (grid * warps)
    merged = mean_executions.copy()  # each group executes a convergence point on arrival
    for convergence, setup in graph.bssy_block.items():
        merged[convergence] = min(mean_executions[convergence], mean_executions[setup])
    by_place = {
        place: frozenset(_list_of_statement(class_number, source) for class_number in statements)
        for place, statements in source.by_place.items()
    }
    list_sets = [frozenset({(-1, "kernel")}), *sorted({*by_place.values()} - {frozenset({(-1, "kernel")})}, key=sorted)]
    list_sets += [frozenset({(site, "entered")}) for site in sorted(source.loops)]
    visits, traced_blocks = _visit_counts(list_sets, decided, grid, warps)
    mean = visits.mean(axis=0)
    numbers = {class_number: n for n, class_number in enumerate(list_sets)}
    list_of_instruction = [numbers.get(by_place.get(place, frozenset()), -1) for place in places]
    list_of_block, unrolled_lists = _assign_lists(
        graph, mean_executions, list_of_instruction, [place[:1] == (0,) for place in places], mean
    )
    _assign_preheaders(graph, mean_executions, list_of_block, unrolled_lists, list_sets, mean)
    gated = _gate_unrolled_blocks(graph, mean_executions, list_of_block, unrolled_lists, list_sets, visits)
    weights = np.bincount(list_of_block, mean_executions * sizes, len(list_sets))  # of the average warp, by list
    per_list = np.where(mean > 0, weights / np.maximum(mean, 1e-300), 0.0)
    class_by_divergence = _median_cut(visits * per_list, _MAX_DEVIATION * float(weights.sum()))
    class_of = np.zeros_like(class_by_divergence) if tickets else class_by_divergence
    reachable = [graph.reachable_from(block) for block in range(len(graph.blocks))]
    convergence_blocks = [convergence_of(graph, block, reachable) for block in range(len(graph.blocks))]
    ordered, profiles, executions_by_class = _dominance_order(graph), [], []
    for class_number in range(int(class_of.max()) + 1):
        in_class = class_of == class_number
        relative_visits = visits[in_class].mean(axis=0) / np.maximum(mean, 1e-300)
        share: Floats = np.where(mean > 0, relative_visits, 1.0)[list_of_block]
        for block, by_warp in gated.items():
            share[block] = by_warp[in_class].mean() / by_warp.mean()
        executed = _cap_by_dominator(graph, mean_executions, mean_executions * share, ordered)
        relative = np.divide(executed, mean_executions, out=share, where=mean_executions > 0)
        profiles.append(branch_profile(graph, merged * relative, reachable, convergence_blocks))
        executions_by_class.append(executed)
    blocks, minority_shares, divergent_shares, exit_counters = (
        np.array(table) for table in zip(*profiles, strict=True)
    )
    executed, work = np.array(executions_by_class), (visits * per_list).sum(axis=1)
    warps_in_class: Floats = np.bincount(class_of).astype(np.float64) * (grid / len(traced_blocks))
    return WarpClasses(
        blocks, minority_shares, divergent_shares, exit_counters, unreachable_convergence(graph),
        np.array([graph.is_convergence_point(block) for block in range(len(graph.blocks))]), executed @ sizes, executed,
        warps_in_class, (0, 1.0) if tickets else _longest_warp(work, class_of), traced_blocks,
        class_of.reshape(len(traced_blocks), warps),
    )  # fmt: skip


def _longest_warp(work: Floats, class_of: Words) -> tuple[int, float]:
    """Return the class of the warp with most work, and its work relative to the mean of the class."""
    longest = int(work.argmax())
    mean = max(work[class_of == class_of[longest]].mean(), 1e-300)
    return int(class_of[longest]), max(1.0, float(work[longest] / mean))


def _fitting_lists(
    ballot: Mapping[int, int], mean_visits: Floats, executions: float, deepest: Mapping[int, int], depth: int
) -> tuple[dict[int, int], dict[int, int]]:
    """Return the votes for lists with at least as many visits as a block has executions, and of those the candidates.

    deepest: loop depth by list. depth: of the block. Lists with equally many visits are preferred.
    """
    fits = {n: count for n, count in ballot.items() if mean_visits[n] * (1 + _RELATIVE_TOLERANCE) >= executions}
    exact = {n: count for n, count in fits.items() if mean_visits[n] <= executions * (1 + _RELATIVE_TOLERANCE)}
    candidates = {n: count for n, count in fits.items() if deepest[n] <= depth}
    if exact:  # possibly by chance, with two or four iterations of a loop
        max_votes, unrolled = max(exact.values()), [2 * executions, 4 * executions]
        candidates = exact | {
            n: count
            for n, count in candidates.items()
            if count > 2 * max_votes and np.isclose(mean_visits[n], unrolled).any()
        }
    return fits, candidates


def _assign_lists(
    graph: Graph, mean_executions: Floats, numbers: Sequence[int], has_no_line: Sequence[bool], mean_visits: Floats
) -> tuple[Words, dict[int, int]]:
    """Return the list set of each block, and hoisted-from lists of unrolled loops by block.

    A block belongs to the list of most instructions of its control-equivalent blocks, among lists with at least as many
    visits; hoisted code is excluded. Blocks without a list use their dominator's; remainder loops that of the block
    before. mean_executions: by the average warp. numbers: list by instruction, -1 for none. has_no_line: instructions
    that vote only with others. mean_visits: by list.
    """
    equivalent = _control_equivalence(graph)
    votes: dict[int, Counter[int]] = defaultdict(Counter)
    max_executions: dict[int, float] = defaultdict(float)
    enclosing_headers = [{loop.header for loop in graph.enclosing_loops(block)} for block in range(len(graph.blocks))]
    deepest: Counter[int] = Counter()  # loop depth by list
    for block, (first, past) in enumerate(graph.blocks):
        votes[equivalent[block]].update(
            numbers[n] for n in range(first, past) if numbers[n] >= 0 and not has_no_line[n]
        )
        for n in range(first, past):
            deepest[numbers[n]] = max(deepest[numbers[n]], len(enclosing_headers[block]))
        if not graph.is_convergence_point(block):
            max_executions[equivalent[block]] = max(max_executions[equivalent[block]], mean_executions[block])
    for block, span in enumerate(graph.blocks):
        ballot = votes[equivalent[block]]
        ballot.update(numbers[n] for n in range(*span) if has_no_line[n] and ballot[numbers[n]])
    list_of_class: dict[int, int] = {}
    hoisted: dict[int, int] = {}
    for representative, ballot in votes.items():
        fits, candidates = _fitting_lists(
            ballot, mean_visits, max_executions[representative], deepest, len(enclosing_headers[representative])
        )
        if candidates:
            list_of_class[representative] = max(candidates, key=lambda n: (candidates[n], -n))
        elif fits:
            hoisted[representative] = max(fits, key=lambda n: (fits[n], -n))
    list_of_block = np.zeros(len(graph.blocks), np.int64)
    before_remainder = {block: graph.dominators[loop.header] for loop, _ in bounded_loops(graph) for block in loop.body}
    for block in range(len(graph.blocks)):
        dominator: int | None = before_remainder.get(block, block)
        while dominator is not None and (
            equivalent[dominator] not in list_of_class or not enclosing_headers[dominator] <= enclosing_headers[block]
        ):
            dominator = graph.dominators[dominator]
        list_of_block[block] = list_of_class[equivalent[dominator]] if dominator is not None else 0
    return list_of_block, {
        block: hoisted[representative] for block, representative in enumerate(equivalent) if representative in hoisted
    }


def _assign_preheaders(
    graph: Graph,
    mean_executions: Floats,
    list_of_block: Words,
    unrolled_lists: dict[int, int],
    list_sets: Sequence[ListSet],
    mean_visits: Floats,
) -> None:
    """Assign loop preheaders to the loop's entries if the counts agree; else gate them."""
    entry_lists = {site: n for n, entry_list in enumerate(list_sets) for site, arm in entry_list if arm == "entered"}
    for loop in graph.loops:
        sites = {
            site for site, arm in list_sets[list_of_block[loop.header]] if arm in ("body", "test")
        } & entry_lists.keys()
        for block in graph.predecessors[loop.header]:
            if block not in loop.body and len(graph.successors[block]) == 1 and len(sites) == 1:
                entry_list = entry_lists[next(iter(sites))]
                if (
                    abs(mean_visits[entry_list] - mean_executions[block])
                    <= _RELATIVE_TOLERANCE * mean_executions[block]
                ):
                    list_of_block[block] = entry_list
                else:
                    unrolled_lists.setdefault(block, int(list_of_block[loop.header]))


def _dominance_order(graph: Graph) -> list[int]:
    """Return blocks in preorder of the dominator tree."""
    below: dict[int | None, list[int]] = defaultdict(list)
    for block, dominator in enumerate(graph.dominators):
        below[dominator].append(block)
    ordered = [0]
    for block in ordered:
        ordered += below[block]
    return ordered


def _cap_by_dominator(graph: Graph, mean_executions: Floats, executed: Floats, ordered: Sequence[int]) -> Floats:
    """Return executions of a class, at most proportional to those of the dominator."""
    capped = executed.copy()
    for block in ordered:
        dominator = graph.dominators[block]
        if dominator is None or graph.is_convergence_point(block):
            continue
        if not capped[dominator] and mean_executions[dominator]:
            capped[block] = 0.0
        elif graph.enclosing_loops(block)[:1] == graph.enclosing_loops(dominator)[:1]:
            capped[block] = min(
                capped[block],
                capped[dominator] * max(1.0, mean_executions[block] / max(mean_executions[dominator], 1e-300)),
            )
    return capped


def _gate_unrolled_blocks(
    graph: Graph,
    mean_executions: Floats,
    list_of_block: Words,
    unrolled_lists: Mapping[int, int],
    list_sets: Sequence[ListSet],
    visits: Floats,
) -> dict[int, Floats]:
    """Return float64[warp] visits of blocks entered with enough iterations only: unrolled bodies execute for the warps
    with the most.

    unrolled_lists: by block. list_sets: source lists. visits: by warp and list.
    """
    gated: dict[int, Floats] = {}
    sites = [{site for site, arm in one if arm in ("body", "test")} for one in list_sets]
    for block, trip_list in sorted(unrolled_lists.items()):
        entries = visits[:, list_of_block[block]]
        entered = entries > 0
        trips_per_entry = np.divide(visits[:, trip_list], entries, out=np.zeros(len(visits)), where=entered)
        matching_loops = [loop for loop in graph.loops if sites[trip_list] & sites[list_of_block[loop.header]]]
        if (
            len(matching_loops) > _MAX_COMPILED_LOOPS
            or not trips_per_entry.any()
            or mean_executions[block] >= (1 - _RELATIVE_TOLERANCE) * entries.mean()
        ):
            continue
        order = np.sort(trips_per_entry[entered])
        threshold = order[min(len(order) - 1, int((1 - mean_executions[block] / entries.mean()) * len(order)))]
        gated_entries = entries * (trips_per_entry >= threshold) * (trips_per_entry > 0)
        gated[block] = gated_entries
        for loop in graph.loops:
            if graph.dominates(block, loop.header) and not graph.enclosing_loops(block):
                for inner in loop.body:
                    if list_of_block[inner] != list_of_block[block]:
                        gated[inner] = visits[:, list_of_block[inner]] * (gated_entries > 0)
    return {block: weights for block, weights in gated.items() if weights.any()}


def _control_equivalence(graph: Graph) -> list[int]:
    """Return, by block, the first control-equivalent block in the same loop."""
    innermost = [next((loop.header for loop in graph.enclosing_loops(block)), -1) for block in range(len(graph.blocks))]
    postdominators: list[set[int]] = []
    for block in range(len(graph.blocks)):
        postdominators_of_block, current = set[int](), graph.postdominators[block]
        while current is not None and current not in postdominators_of_block:
            postdominators_of_block.add(current)
            current = graph.postdominators[current]
        postdominators.append(postdominators_of_block)
    representatives = list(range(len(graph.blocks)))
    for block in range(len(graph.blocks)):
        dominator = graph.dominators[block]
        while dominator is not None:
            if innermost[dominator] == innermost[block] and block in postdominators[dominator]:
                representatives[block] = representatives[dominator] if dominator < block else representatives[block]
                break
            dominator = graph.dominators[dominator]
    return representatives


def _list_of_statement(statement: Statement, source: SourceStatements) -> tuple[int, str]:
    """Return the statement list of a statement. Loops count as their test, statements after an early exit as the next branch."""
    if statement.number in source.loops:
        return statement.number, "test"
    if statement.number in source.next_branch:
        return source.next_branch[statement.number], "at"
    return statement.context.site, statement.context.arm


def _visit_counts(list_sets: Sequence[ListSet], decided: WarpDecisions, grid: int, warps: int) -> tuple[Floats, Words]:
    """Return float64[warp, list] visits of traced warps, and the traced blocks."""
    rows = decided.rows
    traced_blocks = decided.blocks(grid) if len(rows) else np.zeros(1, np.int64)
    row_warp = np.searchsorted(traced_blocks, rows[:, 0]) * warps + rows[:, 1]
    by_site = defaultdict(list)
    for n, list_set in enumerate(list_sets):
        for site, arm in list_set:
            by_site[site].append((n, arm))
    visits = np.zeros((len(traced_blocks) * warps, len(list_sets)))
    for site, list_and_arm in by_site.items():
        site_rows = rows[rows[:, 2] == site]
        warp_of_row = row_warp[rows[:, 2] == site]
        counted = {
            "then": site_rows[:, TRUE_COUNT], "else": site_rows[:, FALSE_COUNT], "body": site_rows[:, ITERATIONS],
            "test": site_rows[:, ITERATIONS] + site_rows[:, EXECUTIONS],
            "at": site_rows[:, EXECUTIONS], "entered": site_rows[:, ENTRIES],
        }  # fmt: skip
        for n, arm in list_and_arm:
            if arm == "kernel":
                visits[:, n] += 1.0
            else:
                visits[warp_of_row, n] += counted[arm]
    return visits, traced_blocks


def _median_cut(points: Floats, max_deviation: float) -> Words:
    """Return the class of each point."""
    class_of = np.zeros(len(points), np.int64)
    spread_by_class: dict[int, tuple[float, int]] = {}

    def measure(largest: int) -> None:
        members = points[class_of == largest]
        deviations = members.std(axis=0)
        column = int(deviations.argmax())
        deviation = float(deviations[column])
        spread_by_class[largest] = (deviation * deviation * len(members) if deviation > max_deviation else 0.0, column)

    measure(0)
    while len(spread_by_class) < CLASSES:
        largest = max(spread_by_class, key=lambda known: spread_by_class[known][0])
        spread, column = spread_by_class[largest]
        if spread <= 0:
            break
        column_values = points[:, column]
        class_of[(class_of == largest) & (column_values > column_values[class_of == largest].mean())] = len(
            spread_by_class
        )
        measure(len(spread_by_class))
        measure(largest)
    return class_of


# ------------------------------------------------------------------ branch profiles
