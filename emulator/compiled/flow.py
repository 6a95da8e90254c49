"""Flow conservation: executions of SASS blocks as the solution of a linear program.

The emulator counts executions of statements; the line table gives the line of each instruction. nvcc unrolls loops,
merges branches and moves code, so neither gives the executions of a block. Thread flow is conserved at each block (hard
constraints), and executions of statements constrain sums over their instructions (soft constraints).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..engines.cuda.sass import Instruction
from .control_flow import Graph, graph, is_conditional
from .instructions import LocatedInstruction, StatementCounts
from .linear_program import LinearProgram
from .opcode_classes import EFFECTS, OPERATIONS, access_width
from .source_statements import Place

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FlowEstimate:
    """Executions of each instruction, by warps and by threads."""

    instructions: tuple[Instruction, ...]
    warps: Floats
    threads: Floats

    @property
    def warp_instructions(self) -> int:
        return round(float(self.warps.sum()))

    @property
    def thread_instructions(self) -> int:
        return round(float(self.threads.sum()))


# Effects cannot be dropped or doubled; operations sometimes are; lines are hints for blocks without better evidence. A call
# is the slow path of a division, assumed only if needed.
_WEIGHT_COUNTED, _WEIGHT_RECONVERGENCE, _WEIGHT_DIVERGENCE, _COST_DIVERGENCE, _COST_GROUP = 300.0, 0.5, 0.05, 1e-4, 1e-6
"""Weights of constraints: counts of matched loops, above all estimates together; groups after reconvergence equal
groups at the BSSY; divergence as at the source branch. Costs: of divergence, and of a group."""
_RELATIVE_TOLERANCE, _MIN_BRANCH_FRACTION = 0.01, 0.75
"""Tolerance for equal executions. A branch with a lower fraction of the source's executions is one of several copies;
above, it is a rotated loop's test."""
_WEIGHT_EFFECT, _WEIGHT_OPERATION, _WEIGHT_LINE, _COST_CALL, _COST_INSTRUCTION = 1.0, 0.3, 1e-3, 0.05, 2e-6
"""Weights of constraints relative to expected executions: effects, operations, lines. Costs: of a slow-path call, and
of an instruction."""
_EXPANDS_INTO = {"fp32": ("fdiv", "sfu"), "fp64": ("fdiv", "sfu"), "sfu": ("fdiv",)}
"""By class, the classes whose expansion contains it: lines with these have more operations than the source."""
_MISSING_LOAD_FACTOR = 0.1
"""Weight of a missing load relative to an excess one: loads are dropped or sunk, but not repeated."""


@dataclass
class KnownCounts:
    """Known executions. blocks: by threads and warps. entries: of loops from outside, by header. divergences: by latch.
    special_edges: edges for special operands only. unused_slow_calls: blocks with a call that no
    lane executed."""

    blocks: dict[int, tuple[float, float]] = field(default_factory=dict)
    entries: dict[int, float] = field(default_factory=dict)
    divergences: dict[int, float] = field(default_factory=dict)
    special_edges: frozenset[tuple[int, int]] = frozenset()
    unused_slow_calls: frozenset[int] = frozenset()


def estimate_executions(
    sass: Sequence[LocatedInstruction],
    evidence: SourceEvidence,
    threads: int,
    warps: int,
    counted: KnownCounts | None = None,
    whole: Graph | None = None,
) -> FlowEstimate:
    """Estimate the executions of instructions from those of statements.

    threads, warps: launched in total. whole: the graph, if more is known than from the instructions. Raises LaunchError
    without highspy.
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
    """Statements by source location, with their total bytes or operations. inlining_known: whether locations include calls."""

    def __init__(self, executed: Iterable[StatementCounts], inlining_known: bool) -> None:
        self.statements: dict[Place, list[StatementCounts]] = defaultdict(list)
        self.amounts: dict[tuple[Place, str], int] = defaultdict(int)
        for e in executed:
            if e.line:
                place = (e.line, *e.calls) if inlining_known else (e.line,)
                self.statements[place].append(e)
                self.amounts[place, e.kind] += e.lanes * max(e.size, 1)
                for name, n in e.costs.items():
                    if name in OPERATIONS.values():
                        self.amounts[place, name] += e.lanes * n

    def places(self, sass: Sequence[LocatedInstruction]) -> list[Place]:
        """Return the location of each instruction; without call information, that of the nearest preceding one on its line."""
        result, last_of_line = list[Place](), dict[int, Place]()
        for placed in sass:
            place = placed.place if placed.place in self.statements else last_of_line.get(placed.line, placed.place)
            last_of_line[placed.line] = place
            result.append(place)
        return result


class _FlowProgram:
    """Linear programs for the thread flow and the warp flow through a graph."""

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
        for at, edge in enumerate(whole.edges):
            self.into[edge.target].append(at)
            if edge.kind != "call":
                self.out[edge.source].append(at)

    # -------------------------------------------------------------- threads
    def threads(self) -> Floats:
        """Return the executions of each block by threads."""
        program, edges = LinearProgram(), self.graph.edges
        sizes = [past - first for first, past in self.graph.blocks]
        unpenalized_callees = self.graph.long_division_callees
        for edge in edges:
            is_penalized = edge.kind == "call" and edge.target not in unpenalized_callees
            is_penalized |= (edge.source, edge.target) in self.counted.special_edges
            cost = _COST_CALL if is_penalized else _COST_INSTRUCTION * sizes[edge.target]
            is_unused = edge.kind == "divergent" or (
                edge.kind == "call" and edge.source in self.counted.unused_slow_calls
            )
            program.variable(cost, upper_bound=0.0 if is_unused else None)
        leaving = {block: program.variable(0.0) for block in self.graph.exits}
        entering = [dict.fromkeys(self.into[block], 1.0) for block in range(len(sizes))]
        entry_flow = [float(block == 0) for block in range(len(sizes))]
        for block, row in enumerate(entering):
            outgoing = Counter([*self.out[block], *([leaving[block]] if block in leaving else [])])
            program.equal(_difference(row, outgoing), -entry_flow[block])
        for at, edge in enumerate(edges):
            if edge.kind == "call" and not is_conditional(self.graph.last(edge.source)):
                program.equal(_difference(entering[edge.source], {at: 1}), -entry_flow[edge.source])
        for constraint in self._constraints():
            total: dict[int, float] = defaultdict(float)
            for block, n in constraint.blocks.items():
                for edge_variable in entering[block]:
                    total[edge_variable] += n
            constant = sum(n * entry_flow[block] for block, n in constraint.blocks.items())
            excess = 0.0 if constraint.at_least else constraint.weight
            program.soft_equal(
                total,
                constraint.executions / self.all_threads - constant,
                constraint.weight * constraint.missing_factor,
                excess,
            )
        for loop in self.graph.loops:
            if loop.header in self.counted.entries:
                entry_edges = {
                    edge_variable: 1.0
                    for edge_variable in self.into[loop.header]
                    if edges[edge_variable].source not in loop.body
                }
                program.soft_equal(
                    entry_edges, self.counted.entries[loop.header] / self.all_threads, _WEIGHT_COUNTED, _WEIGHT_COUNTED
                )
        solution = program.solve()
        self.edge_threads = solution[: len(edges)] * self.all_threads
        executions = np.array([
            (entry_flow[block] + sum(solution[edge_variable] for edge_variable in row)) * self.all_threads for block,
            row in enumerate(entering)
        ])  # fmt: skip
        return np.where(abs(executions - executions.round()) < 1e-3, executions.round(), executions)

    def _constraints(self) -> list[_SoftConstraint]:
        amounts, constraints = self.evidence.amounts, list[_SoftConstraint]()
        members: dict[tuple[Place, str], list[tuple[int, int, bool]]] = defaultdict(list)
        for block, n in self._numbered_instructions():
            instruction, line = self.graph.instructions[n], self.places[n]
            kind = EFFECTS.get(instruction.opcode) or OPERATIONS.get(instruction.opcode)
            expands_here = any((line, name) in amounts for name in _EXPANDS_INTO.get(kind or "", ()))
            if kind and not expands_here and (line, kind) in amounts:
                width = 4 if kind == "shuffle" else access_width(instruction) if "_" in kind else 1
                members[line, kind].append((block, width, bool(instruction.predicate)))
        for key, entries in members.items():
            max_width = max(width for _, width, _ in entries)
            weight = _WEIGHT_EFFECT if key[1] in EFFECTS.values() else _WEIGHT_OPERATION
            blocks = {block: sum(w for b, w, _ in entries if b == block) / max_width for block, _, _ in entries}
            missing_factor = _MISSING_LOAD_FACTOR if key[1].endswith("load") else 1.0
            constraints.append(
                _SoftConstraint(blocks, amounts[key] / max_width, weight, any(p for _, _, p in entries), missing_factor)
            )
        known_counts = [
            _SoftConstraint({block: 1.0}, threads, _WEIGHT_COUNTED, False)
            for block, (threads, _) in self.counted.blocks.items()
        ]
        return constraints + known_counts

    def _numbered_instructions(self) -> Iterator[tuple[int, int]]:
        """Yield the block and index of every instruction."""
        for block, (first, past) in enumerate(self.graph.blocks):
            yield from ((block, n) for n in range(first, past))

    # -------------------------------------------------------------- warps
    def warps(self, threads: Floats) -> Floats:
        """Return the executions of each block by warps, given those by threads.

        Groups of lanes are conserved, except that a branch may split a group and that groups merge at a convergence
        point; each group executes it, and as many groups leave it as executed its BSSY.
        """
        program, edges, scale = LinearProgram(), self.graph.edges, self.all_warps
        flow = self.edge_threads
        for edge_variable in range(len(edges)):
            program.variable(_COST_GROUP, upper_bound=flow[edge_variable] / scale)
        leaving = {block: program.variable(0.0) for block in self.graph.exits}
        blocks = range(len(threads))
        arriving = [dict.fromkeys(self.into[block], 1.0) for block in blocks]
        entry_flow = [float(block == 0) for block in blocks]
        for block in blocks:
            outgoing = dict.fromkeys([*self.out[block], *([leaving[block]] if block in leaving else [])], 1.0)
            if self.graph.is_convergence_point(block):
                program.at_most(_difference(outgoing, dict.fromkeys(arriving[block], 1)), entry_flow[block])
                setup = self.graph.bssy_block.get(block)
                if setup is not None:
                    program.soft_equal(
                        _difference(outgoing, dict.fromkeys(arriving[setup], 1)),
                        entry_flow[setup],
                        _WEIGHT_RECONVERGENCE,
                        _WEIGHT_RECONVERGENCE,
                    )
            elif len(outgoing) > 1:
                divergence = program.variable(_COST_DIVERGENCE)
                target = self._divergence(block, threads[block])
                if target is not None:
                    program.soft_equal({divergence: 1.0}, target / scale, _WEIGHT_DIVERGENCE, _WEIGHT_DIVERGENCE)
                program.equal(
                    _difference({**outgoing, divergence: -1.0}, dict.fromkeys(arriving[block], 1)), entry_flow[block]
                )
                for edge_variable in outgoing:
                    program.at_most(
                        _difference({edge_variable: 1.0}, dict.fromkeys(arriving[block], 1)), entry_flow[block]
                    )
            else:
                program.equal(_difference(outgoing, dict.fromkeys(arriving[block], 1)), entry_flow[block])
            least = max(threads[block] / 32, float(threads[block] > 0)) / scale
            program.at_most(
                dict.fromkeys(arriving[block], -1.0), entry_flow[block] - min(least, threads[block] / scale)
            )
            for target, weight in self._known_warps(block, threads[block]):
                program.soft_equal(arriving[block], target / scale - entry_flow[block], weight, weight)
        for at, edge in enumerate(edges):
            if edge.kind == "call" and not is_conditional(self.graph.last(edge.source)):
                program.equal(_difference(arriving[edge.source], {at: 1}), -entry_flow[edge.source])
        solution = program.solve()
        executions = np.array(
            [(entry_flow[b] + sum(solution[edge_variable] for edge_variable in arriving[b])) * scale for b in blocks]
        )
        return np.where(abs(executions - executions.round()) < 1e-3, executions.round(), executions)

    def _divergence(self, block: int, threads: float) -> float | None:
        """Return the divergent executions of a block's exit: those of its source branch, scaled if there are several
        copies; None if no source branch applies."""
        if block in self.counted.divergences:
            return self.counted.divergences[block]
        place = self.places[self.graph.blocks[block][1] - 1]
        branches = [e for e in self.evidence.statements.get(place, ()) if e.kind == "branch" and e.lanes]
        if not branches or threads <= 0:
            return None
        closest = min(branches, key=lambda e: abs(e.lanes - threads))
        share = threads / closest.lanes
        return closest.divergent * (share if share < _MIN_BRANCH_FRACTION else 1.0)

    def _known_warps(self, block: int, threads: float) -> Iterator[tuple[float, float]]:
        """Yield known warp executions of a block with weights."""
        if (
            block in self.counted.blocks
            and abs(threads - self.counted.blocks[block][0]) <= _RELATIVE_TOLERANCE * threads
        ):
            yield self.counted.blocks[block][1], _WEIGHT_COUNTED
            return
        votes: Counter[int] = Counter()
        for n in range(*self.graph.blocks[block]):
            effects = self._implemented_statements(n)
            for e in effects or self.evidence.statements.get(self.places[n], []):
                if e.lanes and abs(e.lanes - threads) <= _RELATIVE_TOLERANCE * threads:
                    votes[e.warps] += 10 if effects else 1
        if votes:
            warps, most = max(votes.items(), key=lambda vote: vote[1])
            yield warps, _WEIGHT_EFFECT if most >= 10 else _WEIGHT_LINE

    def _implemented_statements(self, n: int) -> list[StatementCounts]:
        """Return the statements implemented by an unpredicated effect instruction."""
        instruction = self.graph.instructions[n]
        kind = "" if instruction.predicate else EFFECTS.get(instruction.opcode, "")
        return [e for e in self.evidence.statements.get(self.places[n], ()) if e.kind == kind and e.lanes]


def _difference(row: Mapping[int, float], subtracted: Mapping[int, float]) -> dict[int, float]:
    """Return the difference of two linear expressions."""
    return {variable: row.get(variable, 0.0) - subtracted.get(variable, 0) for variable in {*row, *subtracted}}


@dataclass(frozen=True)
class _SoftConstraint:
    """A soft constraint: weighted executions of blocks equal, or are at least, a value. missing_factor: weight of a
    deficit relative to an excess."""

    blocks: dict[int, float]
    executions: float
    weight: float
    at_least: bool
    missing_factor: float = 1.0
