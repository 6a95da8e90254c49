"""Executions of compiled code, estimated from the emulator's counts: how often warps and threads execute each SASS instruction.

The emulator knows how often each statement of the source was executed, the compiler's line table from which line
each instruction came. Neither says how often a block of SASS runs: nvcc unrolls loops, merges branches, moves
instructions. But the flow of threads through the blocks is conserved, and some instructions the compiler cannot
multiply: all loads of a line together are executed as often as the line's loads were. So the flow is the solution of
a linear program: conservation holds exactly, and the executions of the statements are missed by as little as possible.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..engines.cuda.sass import Instruction
from .control_flow import Graph, graph, is_conditional
from .linear_program import LinearProgram
from .opcode_classes import CONTROL, EFFECTS, OPERATIONS, access_width

Floats = npt.NDArray[np.float64]
Place = tuple[int, ...]
"""A line, then those of the calls that lead there, innermost first."""


@dataclass(frozen=True)
class LocatedInstruction:
    """An instruction and the line it came from, 0 for none. calls: the lines of the calls that were inlined to reach it,
    innermost first."""

    instruction: Instruction
    line: int
    calls: tuple[int, ...] = ()

    @property
    def place(self) -> Place:
        """All its lines."""
        return (self.line, *self.calls)


@dataclass(frozen=True)
class StatementCounts:
    """One statement of the emulated program: its line and kind (`profiler.events`), how often warps and lanes executed
    it, how often the active lanes of a branch disagreed, the bytes a lane moves, and the instructions of each class.
    loop: which is the innermost around it; iterations: how many iterations it makes each time it is entered, where that is
    always the same, else 0. calls: the lines of the calls that were inlined to reach it, innermost first."""

    line: int
    kind: str
    warps: int
    lanes: int
    divergent: int
    size: int
    costs: dict[str, int]
    loop: Place = ()
    iterations: int = 0
    calls: tuple[int, ...] = ()


@dataclass(frozen=True)
class FlowEstimate:
    """Executions of each instruction, by warps and by threads, in the order of the instructions."""

    instructions: tuple[Instruction, ...]
    warps: Floats
    threads: Floats

    @property
    def warp_instructions(self) -> int:
        return round(float(self.warps.sum()))

    @property
    def thread_instructions(self) -> int:
        return round(float(self.threads.sum()))


# The weight of a miss, relative to what was expected. Effects cannot be dropped or doubled; operations sometimes
# are; that a block runs as often as some statement of its lines is a hint for blocks that hold nothing better; and a
# call is the slow path of a division, which is taken when nothing else explains the rest.
_COUNTED, _MET, _DISAGREED, _PARTED, _TOGETHER = 300.0, 0.5, 0.05, 1e-4, 1e-6
"""The weights of what is counted: executions of a matched loop, which weigh more than all estimates together; that as many
groups leave a meeting point as made it; that lanes disagree as at the branch of their line; that they do not where nothing
says so; and that groups are few."""
_SAME, _TESTED = 0.01, 0.75
"""How near executions must be to be the same. A branch executed less often than this part of the source's is one of several;
one executed nearly as often is the test of a loop that moved to its end, once less an entry."""
_EFFECT, _OPERATION, _LINE, _CALLED, _SHORTER = 1.0, 0.3, 1e-3, 0.05, 2e-6
_MADE_OF = {"fp32": ("fdiv", "sfu"), "fp64": ("fdiv", "sfu"), "sfu": ("fdiv",)}
"""Operations by those that others are made of: at a line with one of these they are more than the source asked for."""
_LOST = 0.1
"""The weight of a load that is missing, as part of one too many: what was loaded once need not be loaded again, and what only
one branch needs is loaded there; but nothing is loaded twice."""
_ALIKE = 0.01
"""The weight of that copies of a branch are taken alike: less than that of any count, as they need not be."""
_VOTE, _NEARLY = 0.2, 1.2
"""The weight of an instruction's vote on its block, and how near the counts of copies must be to stand for one of them."""


@dataclass(frozen=True)
class ArmShare:
    """An arm of a branch of the source, behind the block `head` that tests for it: the part of the lanes, and of the warps,
    that come there which take it, over all copies of the branch."""

    head: int
    lanes: float
    warps: float


@dataclass
class KnownCounts:
    """What is known of loops. blocks: executions of a block by threads and by warps. entries: of threads that come to the
    first block of a loop from outside. parted: by a loop's last block, how often the lanes of a warp disagreed there. arms:
    by the first block of an arm of a branch. rare: ways from block to block that special operands alone take.
    fast: blocks that end in the call of a slow path which no lane took."""

    blocks: dict[int, tuple[float, float]] = field(default_factory=dict)
    entries: dict[int, float] = field(default_factory=dict)
    parted: dict[int, float] = field(default_factory=dict)
    arms: dict[int, ArmShare] = field(default_factory=dict)
    rare: frozenset[tuple[int, int]] = frozenset()
    unused_slow_calls: frozenset[int] = frozenset()


def estimate_executions(
    sass: Sequence[LocatedInstruction],
    evidence: SourceEvidence,
    threads: int,
    warps: int,
    counted: KnownCounts | None = None,
    whole: Graph | None = None,
) -> FlowEstimate:
    """The executions of instructions from those of statements.

    threads, warps: that entered the kernel, over all launches that the evidence counts. whole: the graph of the instructions, where
    more is known of it than they say. Raises LaunchError without highspy.
    """
    instructions = tuple(placed.instruction for placed in sass)
    flow = _FlowProgram(
        whole or graph(instructions), evidence.places(sass), evidence, threads, warps, counted or KnownCounts()
    )
    by_block = flow.threads()
    warps_of = flow.warps(by_block)
    sizes = [past - first for first, past in flow.graph.blocks]
    return FlowEstimate(instructions, np.repeat(warps_of, sizes), np.repeat(by_block, sizes))


class SourceEvidence:
    """Statements by place, and the bytes or operations they moved or made together. apart: whether a function is told
    apart by its calls."""

    def __init__(self, executed: Iterable[StatementCounts], apart: bool) -> None:
        self.statements: dict[Place, list[StatementCounts]] = defaultdict(list)
        self.amounts: dict[tuple[Place, str], int] = defaultdict(int)
        for e in executed:
            if e.line:
                place = (e.line, *e.calls) if apart else (e.line,)
                self.statements[place].append(e)
                self.amounts[place, e.kind] += e.lanes * max(e.size, 1)
                for name, n in e.costs.items():
                    if name in OPERATIONS.values():
                        self.amounts[place, name] += e.lanes * n

    def places(self, sass: Sequence[LocatedInstruction]) -> list[Place]:
        """One an instruction. Where the compiler forgot the calls, those of the nearest before it with the same line."""
        found, last = list[Place](), dict[int, Place]()
        for placed in sass:
            place = placed.place if placed.place in self.statements else last.get(placed.line, placed.place)
            last[placed.line] = place
            found.append(place)
        return found


class _FlowProgram:
    """Threads, then warps, through the blocks of a graph."""

    def __init__(
        self,
        whole: Graph,
        places: Sequence[Place],
        evidence: SourceEvidence,
        threads: int,
        warps: int,
        counted: KnownCounts,
    ) -> None:
        self.counted = counted
        self.graph, self.places, self.evidence = whole, places, evidence
        self.all_threads, self.all_warps = threads, warps
        self.into: dict[int, list[int]] = defaultdict(list)
        self.out: dict[int, list[int]] = defaultdict(list)
        self.rolled = {places[whole.blocks[edge.source][1] - 1] for edge in whole.back_edges}
        for at, edge in enumerate(whole.edges):
            self.into[edge.target].append(at)
            if edge.kind != "call":
                self.out[edge.source].append(at)

    # -------------------------------------------------------------- threads
    def threads(self) -> Floats:
        """Executions of each block by threads."""
        program, edges = LinearProgram(), self.graph.edges
        sizes = [past - first for first, past in self.graph.blocks]
        usual = self.graph.long_division_callees
        for edge in edges:
            called = edge.kind == "call" and edge.target not in usual
            called |= edge.target in self.graph.narrow_divisions or (edge.source, edge.target) in self.counted.rare
            cost = _CALLED if called else _SHORTER * sizes[edge.target]
            never = edge.kind == "divergent" or (edge.kind == "call" and edge.source in self.counted.unused_slow_calls)
            program.variable(cost, most=0.0 if never else None)
        leaving = {block: program.variable(0.0) for block in self.graph.exits}
        entering = [dict.fromkeys(self.into[block], 1.0) for block in range(len(sizes))]
        started = [float(block == 0) for block in range(len(sizes))]
        for block, row in enumerate(entering):
            out = Counter([*self.out[block], *([leaving[block]] if block in leaving else [])])
            program.equal(_less(row, out), -started[block])
        for at, edge in enumerate(edges):
            if edge.kind == "call" and not is_conditional(self.graph.last(edge.source)):
                program.equal(_less(entering[edge.source], {at: 1}), -started[edge.source])
        for hint in self._hints():
            total: dict[int, float] = defaultdict(float)
            for block, n in hint.blocks.items():
                for way in entering[block]:
                    total[way] += n
            constant = sum(n * started[block] for block, n in hint.blocks.items())
            excess = 0.0 if hint.at_least else hint.weight
            program.near(total, hint.executions / self.all_threads - constant, hint.weight * hint.lost, excess)
        for loop in self.graph.loops:
            if loop.header in self.counted.entries:
                ways = {way: 1.0 for way in self.into[loop.header] if edges[way].source not in loop.body}
                program.near(ways, self.counted.entries[loop.header] / self.all_threads, _COUNTED, _COUNTED)
        for first, arm in self.counted.arms.items():
            head = Counter(dict.fromkeys(self.into[arm.head], arm.lanes))
            program.near(_less(entering[first], head), arm.lanes * started[arm.head], _ALIKE, _ALIKE)
        flow = program.solve()
        self.edge_threads = flow[: len(edges)] * self.all_threads
        found = np.array([
            (started[block] + sum(flow[way] for way in row)) * self.all_threads for block, row in enumerate(entering)
        ])  # fmt: skip
        return np.where(abs(found - found.round()) < 1e-3, found.round(), found)

    def _hints(self) -> list[_SoftConstraint]:
        amounts, found = self.evidence.amounts, list[_SoftConstraint]()
        members: dict[tuple[Place, str], list[tuple[int, int, bool]]] = defaultdict(list)
        anchored = set()
        for block, n in self._numbered():
            instruction, line = self.graph.instructions[n], self.places[n]
            kind = EFFECTS.get(instruction.opcode) or OPERATIONS.get(instruction.opcode)
            others = any((line, name) in amounts for name in _MADE_OF.get(kind or "", ()))
            if kind and not others and (line, kind) in amounts:
                width = 4 if kind == "shuffle" else access_width(instruction) if "_" in kind else 1
                members[line, kind].append((block, width, bool(instruction.predicate)))
                if not instruction.predicate:
                    anchored.add(block)
        for key, each in members.items():
            unit = max(width for _, width, _ in each)
            weight = _EFFECT if key[1] in EFFECTS.values() else _OPERATION
            blocks = {block: sum(w for b, w, _ in each if b == block) / unit for block, _, _ in each}
            lost = _LOST if key[1].endswith("load") else 1.0
            found.append(_SoftConstraint(blocks, amounts[key] / unit, weight, any(p for _, _, p in each), lost))
        counted = [
            _SoftConstraint({block: 1.0}, threads, _COUNTED, False)
            for block, (threads, _) in self.counted.blocks.items()
        ]
        return found + counted + self._line_hints(anchored) + self._votes()

    def _numbered(self) -> Iterator[tuple[int, int]]:
        """Block and index of every instruction."""
        for block, (first, past) in enumerate(self.graph.blocks):
            yield from ((block, n) for n in range(first, past))

    def _line_hints(self, anchored: set[int]) -> list[_SoftConstraint]:
        """A block that holds no anchor runs as often as its lines; copies of a line in several loops share its iterations. A
        line that became predicated instructions runs as often as what is around it, and is no evidence."""
        found = []
        shares: dict[Place, dict[int, int]] = defaultdict(dict)
        for block, n in self._numbered():
            if block not in anchored and self.graph.instructions[n].opcode not in CONTROL and not self._tests(block, n):
                share = shares[self.places[n]]
                share[block] = share.get(block, 0) + 1
        known = {self.places[n] for block, n in self._numbered() if block in anchored}
        converted = self._predicated(lambda opcode: opcode not in CONTROL)
        for line, share in shares.items():
            if line in known or line in converted:
                continue
            counts = {e.lanes for e in self.evidence.statements.get(line, ())}
            if not counts:
                continue
            weight, most = _LINE if len(counts) == 1 else _LINE / 1000, float(max(counts))
            loops: dict[tuple[int, int] | None, int] = defaultdict(int)
            for block, n in share.items():
                loops[self.graph.innermost_span(block)] += n
            if len(loops) == 1:
                found += [_SoftConstraint({block: 1.0}, most, weight, False) for block in share]
            else:
                least = min(n for loop, n in loops.items() if loop is not None)
                found.append(_SoftConstraint({block: n / least for block, n in share.items()}, most, weight, False))
        return found

    def _votes(self) -> list[_SoftConstraint]:
        """A block runs as often as most of its instructions vote, of those whose place is clear evidence: a place whose
        statements were executed equally often and that is in no other block; or in as many blocks, one loop's, as
        there are iterations written out. Tests of one or two instructions are easily made elsewhere."""
        shares: dict[Place, Counter[int]] = defaultdict(Counter)
        for block, n in self._numbered():
            if self.graph.instructions[n].opcode not in (*CONTROL, *EFFECTS) and not self._tests(block, n):
                shares[self.places[n]][block] += 1
        converted = self._predicated(lambda opcode: opcode in EFFECTS)
        votes: dict[int, Counter[float]] = defaultdict(Counter)
        for place, share in shares.items():
            statements = [e for e in self.evidence.statements.get(place, ()) if e.lanes]
            counts = {self._once(e) for e in statements}
            if not counts or place in converted:
                continue
            least = 3 if any(e.kind == "branch" for e in statements) else 1
            written_out = all(e.kind == "compute" and e.iterations and e.loop not in self.rolled for e in statements)
            in_one_loop = len({self.graph.innermost_span(block) for block in share}) == 1
            if len(counts) == 1:
                clear = len(share) == 1 or (written_out and in_one_loop)
            else:
                clear = len(share) == len(counts) and max(counts) < _NEARLY * min(counts)
            if clear:
                for block, n in share.items():
                    votes[block][sum(counts) / len(counts)] += n if n >= least else 0
        found = []
        for block, ballot in votes.items():
            count, n = max(ballot.items(), key=lambda vote: (vote[1], vote[0]))
            found.append(_SoftConstraint({block: 1.0}, count, _VOTE * n, False))
        return found

    def _tests(self, block: int, n: int) -> bool:
        """Whether an instruction of an arm has the line of the test before it: it is executed by those who take the arm."""
        arm = self.counted.arms.get(block)
        return arm is not None and self.places[n] == self.places[self.graph.blocks[arm.head][1] - 1]

    def _predicated(self, wanted: Callable[[str], bool]) -> set[Place]:
        """Places of instructions, of the opcodes wanted, that only some of the lanes obey."""
        found = (self.graph.instructions[n] for n in range(len(self.places)))
        return {place for i, place in zip(found, self.places, strict=True) if i.predicate and wanted(i.opcode)}

    def _once(self, e: StatementCounts) -> float:
        """Executions of a statement's instructions: all iterations at once where nothing jumps back to the loop around it."""
        return e.lanes if not e.iterations or e.loop in self.rolled else e.lanes / e.iterations

    # -------------------------------------------------------------- warps
    def warps(self, threads: Floats) -> Floats:
        """Executions of each block by warps, `threads` given.

        Groups of lanes are conserved as threads are, but that a branch may part a group in two, and that groups become
        one again at a meeting point, which each executes as it arrives: behind it go as many as came to the BSSY that
        made it.
        """
        program, edges, scale = LinearProgram(), self.graph.edges, self.all_warps
        flow = self.edge_threads
        for way in range(len(edges)):
            program.variable(_TOGETHER, most=flow[way] / scale)
        leaving = {block: program.variable(0.0) for block in self.graph.exits}
        blocks = range(len(threads))
        arriving = [dict.fromkeys(self.into[block], 1.0) for block in blocks]
        started = [float(block == 0) for block in blocks]
        for block in blocks:
            out = dict.fromkeys([*self.out[block], *([leaving[block]] if block in leaving else [])], 1.0)
            if self.graph.is_convergence_point(block):
                program.most(_less(out, dict.fromkeys(arriving[block], 1)), started[block])
                made = self.graph.bssy_block.get(block)
                if made is not None:
                    program.near(_less(out, dict.fromkeys(arriving[made], 1)), started[made], _MET, _MET)
            elif len(out) > 1:
                parted = program.variable(_PARTED)
                known = self._parted(block, threads[block])
                if known is not None:
                    program.near({parted: 1.0}, known / scale, _DISAGREED, _DISAGREED)
                program.equal(_less({**out, parted: -1.0}, dict.fromkeys(arriving[block], 1)), started[block])
                for way in out:
                    program.most(_less({way: 1.0}, dict.fromkeys(arriving[block], 1)), started[block])
            else:
                program.equal(_less(out, dict.fromkeys(arriving[block], 1)), started[block])
            least = max(threads[block] / 32, float(threads[block] > 0)) / scale
            program.most(dict.fromkeys(arriving[block], -1.0), started[block] - min(least, threads[block] / scale))
            for known, weight in self._warps_known(block, threads[block]):
                program.near(arriving[block], known / scale - started[block], weight, weight)
        for at, edge in enumerate(edges):
            if edge.kind == "call" and not is_conditional(self.graph.last(edge.source)):
                program.equal(_less(arriving[edge.source], {at: 1}), -started[edge.source])
        for held, known in self._effects(threads):
            row: dict[int, float] = defaultdict(float)
            for block, n in held.items():
                for way in arriving[block]:
                    row[way] += n
            constant = sum(n * started[block] for block, n in held.items())
            program.near(row, known / scale - constant, _EFFECT, _EFFECT)
        for first, arm in self.counted.arms.items():
            head = Counter(dict.fromkeys(self.into[arm.head], arm.warps))
            program.near(_less(arriving[first], head), arm.warps * started[arm.head], _ALIKE, _ALIKE)
        ways = program.solve()
        found = np.array([(started[b] + sum(ways[way] for way in arriving[b])) * scale for b in blocks])
        return np.where(abs(found - found.round()) < 1e-3, found.round(), found)

    def _parted(self, block: int, threads: float) -> float | None:
        """How often the lanes of a warp disagree at the end of a block: as at the branch of its line, or a share of that
        where the compiler made several of it. None where no one branch of the source is meant."""
        if block in self.counted.parted:
            return self.counted.parted[block]
        place = self.places[self.graph.blocks[block][1] - 1]
        branches = [e for e in self.evidence.statements.get(place, ()) if e.kind == "branch" and e.lanes]
        if not branches or threads <= 0:
            return None
        best = min(branches, key=lambda e: abs(e.lanes - threads))
        share = threads / best.lanes
        return best.divergent * (share if share < _TESTED else 1.0)

    def _effects(self, threads: Floats) -> Iterator[tuple[dict[int, float], float]]:
        """Effects by place and kind, that no lane's predicate takes part in: how many of one statement each block holds, and
        how many executions by warps all together are. Those that lanes execute less often than in the source were moved out of
        loops, or are kept: warps need not either."""
        held: dict[tuple[Place, str], dict[int, float]] = defaultdict(lambda: defaultdict(float))
        predicated = set()
        for block, n in self._numbered():
            instruction = self.graph.instructions[n]
            kind = EFFECTS.get(instruction.opcode)
            if kind is not None and "_" in kind:
                key = (self.places[n], kind)
                held[key][block] += access_width(instruction)
                if instruction.predicate:
                    predicated.add(key)
        for (place, kind), blocks in held.items():
            statements = [e for e in self.evidence.statements.get(place, ()) if e.kind == kind]
            known = sum(e.warps * max(e.size, 1) for e in statements)
            lanes = sum(e.lanes * max(e.size, 1) for e in statements)
            fewer = sum(n * threads[block] for block, n in blocks.items()) < (1 - _SAME) * lanes
            if known and not fewer and (place, kind) not in predicated:
                unit = max(blocks.values())
                yield {block: n / unit for block, n in blocks.items()}, known / unit

    def _warps_known(self, block: int, threads: float) -> Iterator[tuple[float, float]]:
        """Executions by warps that statements tell, each with its weight."""
        if block in self.counted.blocks and abs(threads - self.counted.blocks[block][0]) <= _SAME * threads:
            yield self.counted.blocks[block][1], _COUNTED
            return
        votes: Counter[int] = Counter()
        for n in range(*self.graph.blocks[block]):
            effects = self._stands_for(n)
            for e in effects or self.evidence.statements.get(self.places[n], []):
                if e.lanes and abs(e.lanes - threads) <= _SAME * threads:
                    votes[e.warps] += 10 if effects else 1
        if votes:
            known, most = max(votes.items(), key=lambda vote: vote[1])
            yield known, _EFFECT if most >= 10 else _LINE

    def _stands_for(self, n: int) -> list[StatementCounts]:
        """The statements of which an instruction is the effect, where every lane that reaches it has it."""
        instruction = self.graph.instructions[n]
        kind = "" if instruction.predicate else EFFECTS.get(instruction.opcode, "")
        return [e for e in self.evidence.statements.get(self.places[n], ()) if e.kind == kind and e.lanes]


def _less(row: Mapping[int, float], taken: Mapping[int, float]) -> dict[int, float]:
    """One sum of variables less another."""
    return {way: row.get(way, 0.0) - taken.get(way, 0) for way in {*row, *taken}}


@dataclass(frozen=True)
class _SoftConstraint:
    """Executions of blocks by threads, each times its factor, are so many together; or at least so many. lost: what
    the weight of each that is missing, as part of one in excess."""

    blocks: dict[int, float]
    executions: float
    weight: float
    at_least: bool
    lost: float = 1.0
