"""Which way warps take at the branches of a compiled kernel: those that decide alike are one class, of which there are few.

Each warp is told by how often it came to each statement list of the source, in instructions. Classes come by median cut (Heckbert
1982): what differs most is parted at its mean, until there are CLASSES of them or all that is left is alike.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..compiled.control_flow import Graph
from ..compiled.linear_program import LinearProgram
from ..compiled.loop_counters import bounded_loops
from ..compiled.source_statements import SourceStatements, Statement
from ..profiler.warp_decisions import ENTRIES, EXECUTIONS, FALSE_COUNT, ITERATIONS, TRUE_COUNT, WarpDecisions

Words = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Lists = frozenset[tuple[int, str]]
"""Statement lists of the source, each by the branch or loop that it is an arm of, and which one."""

CLASSES = 16
"""Classes of warps at most."""
_NEAR = 0.02
"""How near two numbers of executions must be to be one."""
_TIE = 0.05
"""How near the ways out of a loop and back must be to make it one of two turns, which all warps make: 1.95, not half of them 2 and 1."""
_OPEN = 0.01
"""What a turn in a loop costs beside an execution that does not fit."""
_PARTED = 0.02
"""What it costs that lanes part, beside the same."""
_STAGES = 3
"""Compiled loops that one of the source may be as its turns are unrolled by two steps; more are copies of the whole loop, of each of which
the turns of all tell nothing."""
_ALIKE = 0.01
"""The standard deviation of instructions, as a share of those of the average warp, that warps of one class have without harm."""


@dataclass(frozen=True)
class WarpClasses:
    """Of each class. blocks: int64[class, block, 5]: the first instruction, the one past the last, the usual next block and the
    other one, -1 where the warp ends, and the block in which lanes that part here meet, -1 where they stay apart. rare, parted:
    float64[class, block], the shares of the executions in which the warp goes the other way alone, and in which its lanes part and
    it goes both, one after the other. loops: int64[class, block], where the other way is out of a loop, so that all warps count alike,
    the block with whose executions those of this one are counted, as all ways out of a loop are; else -1. strands: bool[block, block + 1],
    whether from the first no way leads to the second, one where lanes meet, unless they part anew; the second is counted from 1, 0 is
    nowhere. meets: bool[block], whether lanes wait there for each other. lengths: float64[class], instructions of a warp. executions:
    float64[class, block], of a warp. warps: float64[class], how many there are in the launch. longest: of the warp that executes most
    of all, its class and how many times as much as that of the average warp of the class. kept: int64[n], blocks of the launch, in
    order; of: int64[n, warp], the class of each of their warps.
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
    longest: tuple[int, float]
    kept: Words
    of: Words

    def classes(self, blocks: npt.NDArray[np.int64]) -> Words:
        """Those of the warps of blocks, a dimension more than these have; of a block that was not kept those of its neighbour."""
        found: Words = self.of[np.minimum(np.searchsorted(self.kept, blocks), len(self.kept) - 1)]
        return found


def classify_warps(
    graph: Graph, executions: Floats, places: Sequence[tuple[int, ...]], source: SourceStatements, decided: WarpDecisions,
    grid: int, warps: int, tickets: bool,
) -> WarpClasses:  # fmt: skip
    """executions: of the blocks of the graph, by all warps. places: of its instructions, among those of the source. grid: blocks
    that were launched; warps: of each. tickets: whether they take work until none is left: then all are taken to do as much, while on
    an emulator the first ones do."""
    sizes = np.array([past - first for first, past in graph.blocks], np.float64)
    each = executions / (grid * warps)
    as_one = each.copy()  # where lanes meet, each group that arrives executes the meeting point
    for meeting, made in graph.bssy_block.items():
        as_one[meeting] = min(each[meeting], each[made])
    by_place = {
        place: frozenset(_list_of(one, source) for one in statements) for place, statements in source.by_place.items()
    }
    known = [frozenset({(-1, "kernel")}), *sorted({*by_place.values()} - {frozenset({(-1, "kernel")})}, key=sorted)]
    known += [frozenset({(site, "entered")}) for site in sorted(source.loops)]
    came, kept = _came(known, decided, grid, warps)
    mean = came.mean(axis=0)
    numbers = {one: n for n, one in enumerate(known)}
    told = [numbers.get(by_place.get(place, frozenset()), -1) for place in places]
    which, stages = _lists(graph, each, told, [place[:1] == (0,) for place in places], mean)
    _enter(graph, each, which, stages, known, mean)
    gated = _gated(graph, each, which, stages, known, came)
    weights = np.bincount(which, each * sizes, len(known))  # instructions that the average warp executes in each
    per_list = np.where(mean > 0, weights / np.maximum(mean, 1e-300), 0.0)
    apart = _parted(came * per_list, _ALIKE * float(weights.sum()))
    of = np.zeros_like(apart) if tickets else apart
    flows, came_to, reached = [], [], [graph.reachable_from(block) for block in range(len(graph.blocks))]
    ordered = _from_above(graph)
    meetings = [_meeting(graph, block, reached) for block in range(len(graph.blocks))]
    for one in range(int(of.max()) + 1):
        share: Floats = np.where(mean > 0, came[of == one].mean(axis=0) / np.maximum(mean, 1e-300), 1.0)[which]
        for block, by_warp in gated.items():
            share[block] = by_warp[of == one].mean() / by_warp.mean()
        executed = _no_oftener(graph, each, each * share, ordered)
        here = np.divide(executed, each, out=share, where=each > 0)
        flows.append(_flows(graph, as_one * here, reached, meetings))
        came_to.append(executed)
    blocks, rare, parted, loops = (np.array(found) for found in zip(*flows, strict=True))
    executed = np.array(came_to)
    meets = np.array([graph.is_convergence_point(block) for block in range(len(graph.blocks))])
    own = (came * per_list).sum(axis=1)
    most = int(own.argmax())
    longest = int(of[most]), max(1.0, float(own[most] / max(own[of == of[most]].mean(), 1e-300)))
    many: Floats = np.bincount(of).astype(np.float64) * (grid / len(kept))
    return WarpClasses(
        blocks,
        rare,
        parted,
        loops,
        _strands(graph),
        meets,
        executed @ sizes,
        executed,
        many,
        (0, 1.0) if tickets else longest,
        kept,
        of.reshape(len(kept), warps),
    )


# ------------------------------------------------------------------ the source's statement lists
def _lists(
    graph: Graph, each: Floats, numbers: Sequence[int], without: Sequence[bool], mean: Floats
) -> tuple[Words, dict[int, int]]:
    """By block, which statement lists it belongs to: those of most instructions of all blocks that are executed together, of the
    lists that warps came to as often as to the blocks, or more often, as to loops that are unrolled; but not what a compiler
    took out of a loop, which has other blocks of that list. Blocks of which no instruction tells are taken for those through which all
    ways to them lead, in no other loop than they; what is left over of unrolled loops for what comes before it. And the lists of loops
    of which blocks have something that lie in fewer loops. each: executions by the average warp; numbers: of
    the lists of each instruction, -1 for none; without: whether it has no line, and only speaks for a list beside others; mean: how often
    the average warp came to them."""
    together = _together(graph)
    votes: dict[int, Counter[int]] = defaultdict(Counter)
    often: dict[int, float] = defaultdict(float)
    inside = [{loop.header for loop in graph.enclosing_loops(block)} for block in range(len(graph.blocks))]
    deepest: Counter[int] = Counter()  # by list, how many loops are around the blocks that have something of it
    for block, (first, past) in enumerate(graph.blocks):
        votes[together[block]].update(numbers[n] for n in range(first, past) if numbers[n] >= 0 and not without[n])
        for n in range(first, past):
            deepest[numbers[n]] = max(deepest[numbers[n]], len(inside[block]))
        if not graph.is_convergence_point(block):
            often[together[block]] = max(often[together[block]], each[block])
    for block, span in enumerate(graph.blocks):
        ballot = votes[together[block]]
        ballot.update(numbers[n] for n in range(*span) if without[n] and ballot[numbers[n]])
    found: dict[int, int] = {}
    taken_out: dict[int, int] = {}
    for one, ballot in votes.items():
        fits = {n: count for n, count in ballot.items() if mean[n] * (1 + _NEAR) >= often[one]}
        exact = {n: count for n, count in fits.items() if mean[n] <= often[one] * (1 + _NEAR)}
        likely = {n: count for n, count in fits.items() if deepest[n] <= len(inside[one])}
        if exact:  # by chance, maybe, where most of the block is of a loop of which it does just two or four iterations
            most, unrolled = max(exact.values()), [2 * often[one], 4 * often[one]]
            likely = exact | {
                n: count for n, count in likely.items() if count > 2 * most and np.isclose(mean[n], unrolled).any()
            }
        if likely:
            found[one] = max(likely, key=lambda n: (likely[n], -n))
        elif fits:
            taken_out[one] = max(fits, key=lambda n: (fits[n], -n))
    which = np.zeros(len(graph.blocks), np.int64)
    ahead = {block: graph.dominators[loop.header] for loop, _ in bounded_loops(graph) for block in loop.body}
    for block in range(len(graph.blocks)):
        above: int | None = ahead.get(block, block)
        while above is not None and (together[above] not in found or not inside[above] <= inside[block]):
            above = graph.dominators[above]
        which[block] = found[together[above]] if above is not None else 0
    return which, {block: taken_out[one] for block, one in enumerate(together) if one in taken_out}


def _enter(
    graph: Graph, each: Floats, which: Words, stages: dict[int, int], known: Sequence[Lists], mean: Floats
) -> None:
    """Blocks that lead into a loop are executed as often as it is entered, where the average warp was found to come there as often; else by
    some that turn in it."""
    entered = {site: n for n, one in enumerate(known) for site, arm in one if arm == "entered"}
    for loop in graph.loops:
        sites = {site for site, arm in known[which[loop.header]] if arm in ("body", "test")} & entered.keys()
        for block in graph.predecessors[loop.header]:
            if block not in loop.body and len(graph.successors[block]) == 1 and len(sites) == 1:
                one = entered[next(iter(sites))]
                if abs(mean[one] - each[block]) <= _NEAR * each[block]:
                    which[block] = one
                else:
                    stages.setdefault(block, int(which[loop.header]))


def _from_above(graph: Graph) -> list[int]:
    """Blocks in an order in which each comes behind the one that dominates it."""
    below: dict[int | None, list[int]] = defaultdict(list)
    for block, above in enumerate(graph.dominators):
        below[above].append(block)
    ordered = [0]
    for block in ordered:
        ordered += below[block]
    return ordered


def _no_oftener(graph: Graph, each: Floats, executed: Floats, ordered: Sequence[int]) -> Floats:
    """Executions of blocks by a class; no more than those of what dominates them allow, to which all warps together had so many."""
    found = executed.copy()
    for block in ordered:
        above = graph.dominators[block]
        if above is None or graph.is_convergence_point(block):
            continue
        if not found[above] and each[above]:
            found[block] = 0.0
        elif graph.enclosing_loops(block)[:1] == graph.enclosing_loops(above)[:1]:
            found[block] = min(found[block], found[above] * max(1.0, each[block] / max(each[above], 1e-300)))
    return found


def _gated(
    graph: Graph, each: Floats, which: Words, stages: Mapping[int, int], known: Sequence[Lists], came: Floats
) -> dict[int, Floats]:
    """By block, how often each warp comes there as far as its turns tell, float64[warp]: blocks around what an unrolled loop does several
    iterations at a time are executed where there are enough, by the warps that turn most; and such a loop by no others. stages: by block,
    the list of the loop it has something of; known: what these lists are. came: how often each warp came to them."""
    found: dict[int, Floats] = {}
    sites = [{site for site, arm in one if arm in ("body", "test")} for one in known]
    for block, turning in sorted(stages.items()):
        entries = came[:, which[block]]
        entered = entries > 0
        turns = np.divide(came[:, turning], entries, out=np.zeros(len(came)), where=entered)
        of_loop = [loop for loop in graph.loops if sites[turning] & sites[which[loop.header]]]
        if len(of_loop) > _STAGES or not turns.any() or each[block] >= (1 - _NEAR) * entries.mean():
            continue
        order = np.sort(turns[entered])
        least = order[min(len(order) - 1, int((1 - each[block] / entries.mean()) * len(order)))]
        enough = entries * (turns >= least) * (turns > 0)
        found[block] = enough
        for loop in graph.loops:
            if graph.dominates(block, loop.header) and not graph.enclosing_loops(block):
                for inner in loop.body:
                    if which[inner] != which[block]:
                        found[inner] = came[:, which[inner]] * (enough > 0)
    return {block: weights for block, weights in found.items() if weights.any()}


def _together(graph: Graph) -> list[int]:
    """By block, the first of those that are executed together: each way through the one leads through the other, in one loop."""
    inner = [next((loop.header for loop in graph.enclosing_loops(block)), -1) for block in range(len(graph.blocks))]
    after: list[set[int]] = []
    for block in range(len(graph.blocks)):
        behind, one = set[int](), graph.postdominators[block]
        while one is not None and one not in behind:
            behind.add(one)
            one = graph.postdominators[one]
        after.append(behind)
    found = list(range(len(graph.blocks)))
    for block in range(len(graph.blocks)):
        above = graph.dominators[block]
        while above is not None:
            if inner[above] == inner[block] and block in after[above]:
                found[block] = found[above] if above < block else found[block]
                break
            above = graph.dominators[above]
    return found


def _list_of(statement: Statement, source: SourceStatements) -> tuple[int, str]:
    """A loop itself is executed as often as its test; what is behind a statement by which lanes may leave, as the next branch."""
    if statement.number in source.loops:
        return statement.number, "test"
    if statement.number in source.next_branch:
        return source.next_branch[statement.number], "at"
    return statement.context.site, statement.context.arm


def _came(lists: Sequence[Lists], decided: WarpDecisions, grid: int, warps: int) -> tuple[Floats, Words]:
    """How often each kept warp came to each of the lists, float64[warp, list], and the blocks that were kept."""
    rows = decided.rows
    kept = decided.blocks(grid) if len(rows) else np.zeros(1, np.int64)
    at = np.searchsorted(kept, rows[:, 0]) * warps + rows[:, 1]
    by_site = defaultdict(list)
    for n, one in enumerate(lists):
        for site, arm in one:
            by_site[site].append((n, arm))
    came = np.zeros((len(kept) * warps, len(lists)))
    for site, of in by_site.items():
        mine = rows[rows[:, 2] == site]
        here = at[rows[:, 2] == site]
        counted = {
            "then": mine[:, TRUE_COUNT], "else": mine[:, FALSE_COUNT], "body": mine[:, ITERATIONS],
            "test": mine[:, ITERATIONS] + mine[:, EXECUTIONS],
            "at": mine[:, EXECUTIONS], "entered": mine[:, ENTRIES],
        }  # fmt: skip
        for n, arm in of:
            if arm == "kernel":
                came[:, n] += 1.0
            else:
                came[here, n] += counted[arm]
    return came, kept


def _parted(points: Floats, alike: float) -> Words:
    """The class of each point."""
    of = np.zeros(len(points), np.int64)
    widest: dict[int, tuple[float, int]] = {}

    def measure(one: int) -> None:
        mine = points[of == one]
        deviations = mine.std(axis=0)
        column = int(deviations.argmax())
        apart = float(deviations[column])
        widest[one] = (apart * apart * len(mine) if apart > alike else 0.0, column)

    measure(0)
    while len(widest) < CLASSES:
        one = max(widest, key=lambda known: widest[known][0])
        spread, column = widest[one]
        if spread <= 0:
            break
        values = points[:, column]
        of[(of == one) & (values > values[of == one].mean())] = len(widest)
        measure(len(widest))
        measure(one)
    return of


# ------------------------------------------------------------------ flows
def _flows(
    whole: Graph, executions: Floats, reached: Sequence[set[int]], meetings: Sequence[int]
) -> tuple[Words, Floats, Floats, Words]:
    """Of each block its two ways on, how often the rarer one is taken alone, and how often both are. Flows along edges fit the
    executions of the blocks: where lanes part, more goes on than came, and so much less where they meet. Where these leave it open,
    loops are entered rather than turned in once more, and lanes stay together. A callee is passed by: what is executed there takes as
    long an instruction as the rest. reached, meetings: by block, what ways lead to, and where lanes that part behind it meet."""
    program, count = LinearProgram(), len(whole.blocks)
    trust = 1 / np.sqrt(np.maximum(executions, 1e-6 * max(1.0, float(executions.max(initial=1.0)))))
    arriving, leaving = (list[dict[int, float]](defaultdict(float) for _ in range(count)) for _ in range(2))
    out: dict[int, list[tuple[int, int]]] = defaultdict(list)
    turned: dict[int, float] = defaultdict(float)  # by block, what it costs to turn in a loop behind it
    for source, target in [
        *((e.source, e.target) for e in whole.edges if e.kind != "call"),
        *((b, -1) for b in whole.exits),
    ]:
        if 0 <= target <= source:
            turned[source] += _OPEN * trust[target]
        way = program.variable(_OPEN * trust[target] if 0 <= target <= source else 0.0)
        out[source].append((way, target))
        leaving[source][way] += 1.0
        if target >= 0:
            arriving[target][way] += 1.0
    both = dict[int, int]()
    for block, onward in enumerate(whole.successors):
        apart = len(set(onward)) == 2 and not reached[onward[0]] & reached[onward[1]]
        if apart or (len(set(onward)) == 2 and meetings[block] >= 0):
            both[block] = program.variable(_PARTED * trust[block] + turned[block])
            leaving[block][both[block]] += 1.0
            for target in onward:
                arriving[target][both[block]] += 1.0
            if meetings[block] >= 0:
                arriving[meetings[block]][both[block]] -= 1.0
    for block in range(count):
        program.soft_equal(
            arriving[block], executions[block] * (block > 0 or bool(arriving[0])), trust[block], trust[block]
        )
        program.soft_equal(leaving[block], executions[block], trust[block], trust[block])
    flows = program.solve()
    blocks = np.full((count, 5), -1, np.int64)
    rare, parted, loops = np.zeros(count), np.zeros(count), np.full(count, -1)
    left: dict[int, int] = {}  # by the first block of a loop, the first of those that lead out of it
    for block, (first, past) in enumerate(whole.blocks):
        blocks[block, :2] = first, past
        around = whole.enclosing_loops(block)
        stays = around[0].body if around else frozenset[int]()
        turns = [(float(flows[way]), target in stays, target) for way, target in out[block]]
        most = max((flow for flow, _, _ in turns), default=0.0)
        turns.sort(key=lambda one: (one[0] >= (1 - _TIE) * most, one[1] == (most > 0), one[0]), reverse=True)
        exits = [(flow, target) for flow, _, target in turns[:2]]  # a loop of two turns is not left first
        if exits:
            blocks[block, 2] = exits[0][1]
        if len(exits) == 2:
            blocks[block, 3] = exits[1][1]
            blocks[block, 4] = meetings[block]
            together = float(flows[both[block]]) if block in both else 0.0
            came = exits[0][0] + exits[1][0] + together
            rare[block], parted[block] = (exits[1][0] / came, together / came) if came else (0.0, 0.0)
            out_of = [loop for loop in around if exits[0][1] in loop.body and exits[1][1] not in loop.body]
            if out_of:
                loops[block] = left.setdefault(out_of[0].header, block)
            elif 0 <= exits[0][1] <= block:
                loops[block] = block
    return blocks, rare, parted, loops


def _strands(whole: Graph) -> npt.NDArray[np.bool_]:
    """As `WarpClasses.unreachable_convergence`."""
    found = np.zeros((len(whole.blocks), len(whole.blocks) + 1), np.bool_)
    for meeting, made in whole.bssy_block.items():
        leads, new = {meeting}, [meeting]
        while new:
            before = {block for block in whole.predecessors[new.pop()] if block not in leads}
            leads |= before
            new += before - {made}
        found[:, meeting + 1] = True
        found[list(leads), meeting + 1] = False
    return found


def _meeting(whole: Graph, block: int, reached: Sequence[set[int]]) -> int:
    """Where lanes that part behind a block meet: at the BSYNC of the innermost BSSY around it that all of them come to, as some may leave
    the loop that others go on with; or, where no BSSY is around it, at a barrier; -1 where they stay apart. reached: by block, what ways
    lead to."""
    around = [
        (made, meeting)
        for meeting, made in whole.bssy_block.items()
        if whole.dominates(made, block) and not whole.dominates(meeting, block)
    ]
    inner = sorted(around, key=lambda one: -sum(whole.dominates(other, one[0]) for other, _ in around))
    for _, meeting in inner:
        if all(meeting in reached[onward] for onward in whole.successors[block]):
            return meeting
    if around:
        return -1
    at = whole.postdominators[block]
    while at is not None and not whole.is_barrier(at):
        at = whole.postdominators[at]
    return -1 if at is None else at
