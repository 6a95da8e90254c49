"""Flow conservation: executions of SASS blocks as the solution of a linear program.

The emulator counts executions of statements; the line table gives the line of each instruction. nvcc unrolls loops,
merges branches and moves code, so neither gives the executions of a block. Thread flow is conserved at each block (hard
constraints), and executions of statements constrain sums over their instructions (soft constraints).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .control_flow import Graph, graph, is_conditional
from .flow_records import Floats, FlowEstimate, KnownCounts, LocatedInstruction, Place, StatementCounts
from .linear_program import LinearProgram
from .opcode_classes import CONTROL, EFFECTS, OPERATIONS, access_width
from .tolerances import TOLERANCES

# Effects cannot be dropped or doubled; operations sometimes are; lines are hints for blocks without better evidence. A call
# is the slow path of a division, assumed only if needed.
_WEIGHT_COUNTED, _WEIGHT_RECONVERGENCE, _WEIGHT_DIVERGENCE, _COST_DIVERGENCE, _COST_GROUP = 300.0, 0.5, 0.05, 1e-4, 1e-6
"""Weights of constraints: counts of matched loops, above all estimates together; groups after reconvergence equal
groups at the BSSY; divergence as at the source branch. Costs: of divergence, and of a group."""
_MIN_BRANCH_FRACTION = 0.75
"""A branch with a lower fraction of the source's executions is one of several copies;
above, it is a rotated loop's test."""
_WEIGHT_EFFECT, _WEIGHT_OPERATION, _WEIGHT_LINE, _COST_CALL, _COST_INSTRUCTION = 1.0, 0.3, 1e-3, 0.05, 2e-6
"""Weights of constraints relative to expected executions: effects, operations, lines. Costs: of a slow-path call, and
of an instruction."""
_EXPANDS_INTO = {"fp32": ("fdiv", "sfu"), "fp64": ("fdiv", "sfu"), "sfu": ("fdiv",)}
"""By class, the classes whose expansion contains it: lines with these have more operations than the source."""
_MISSING_LOAD_FACTOR = 0.1
"""Weight of a missing load relative to an excess one: loads are dropped or sunk, but not repeated."""
_WEIGHT_ARM_SHARE = 0.01
"""Weight of equal arm shares in all copies of a branch, below any count."""
_WEIGHT_VOTE, _MAX_COPY_RATIO = 0.2, 1.2
"""Weight of an instruction's vote for its block's executions; maximal ratio of the counts of copies."""


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
        self.rolled = {places[whole.blocks[edge.source][1] - 1] for edge in whole.back_edges}
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
            is_penalized |= (
                edge.target in self.graph.narrow_divisions or (edge.source, edge.target) in self.counted.special_edges
            )
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
        self._set_loop_entries(program)
        for first, arm in self.counted.arms.items():
            head = Counter(dict.fromkeys(self.into[arm.head], arm.lanes))
            program.soft_equal(
                _difference(entering[first], head),
                arm.lanes * entry_flow[arm.head],
                _WEIGHT_ARM_SHARE,
                _WEIGHT_ARM_SHARE,
            )
        solution = program.solve()
        self.edge_threads = solution[: len(edges)] * self.all_threads
        executions = np.array([
            (entry_flow[block] + sum(solution[edge_variable] for edge_variable in row)) * self.all_threads for block,
            row in enumerate(entering)
        ])  # fmt: skip
        return np.where(abs(executions - executions.round()) < 1e-3, executions.round(), executions)

    def _set_loop_entries(self, program: LinearProgram) -> None:
        """Add the known entries of loops."""
        for loop in self.graph.loops:
            if loop.header in self.counted.entries:
                outside = (n for n in self.into[loop.header] if self.graph.edges[n].source not in loop.body)
                entries = self.counted.entries[loop.header] / self.all_threads
                program.soft_equal(dict.fromkeys(outside, 1.0), entries, _WEIGHT_COUNTED, _WEIGHT_COUNTED)

    def _constraints(self) -> list[_SoftConstraint]:
        amounts, constraints = self.evidence.amounts, list[_SoftConstraint]()
        members: dict[tuple[Place, str], list[tuple[int, int, bool]]] = defaultdict(list)
        constrained = set()
        for block, n in self._numbered_instructions():
            instruction, line = self.graph.instructions[n], self.places[n]
            kind = EFFECTS.get(instruction.opcode) or OPERATIONS.get(instruction.opcode)
            expands_here = any((line, name) in amounts for name in _EXPANDS_INTO.get(kind or "", ()))
            if kind and not expands_here and (line, kind) in amounts:
                width = 4 if kind == "shuffle" else access_width(instruction) if "_" in kind else 1
                members[line, kind].append((block, width, bool(instruction.predicate)))
                if not instruction.predicate:
                    constrained.add(block)
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
        return constraints + known_counts + self._line_constraints(constrained) + self._vote_constraints()

    def _numbered_instructions(self) -> Iterator[tuple[int, int]]:
        """Yield the block and index of every instruction."""
        for block, (first, past) in enumerate(self.graph.blocks):
            yield from ((block, n) for n in range(first, past))

    def _line_constraints(self, constrained: set[int]) -> list[_SoftConstraint]:
        """Constrain blocks without effects by the executions of their lines; copies in several loops share them. Lines
        with predicated instructions are no evidence."""
        constraints = []
        shares: dict[Place, dict[int, int]] = defaultdict(dict)
        for block, n in self._numbered_instructions():
            if (
                block not in constrained
                and self.graph.instructions[n].opcode not in CONTROL
                and not self._is_branch_test(block, n)
            ):
                share = shares[self.places[n]]
                share[block] = share.get(block, 0) + 1
        constrained_places = {self.places[n] for block, n in self._numbered_instructions() if block in constrained}
        predicated_places = self._predicated_places(lambda opcode: opcode not in CONTROL)
        for line, share in shares.items():
            if line in constrained_places or line in predicated_places:
                continue
            counts = {e.lanes for e in self.evidence.statements.get(line, ())}
            if not counts:
                continue
            weight, max_lanes = _WEIGHT_LINE if len(counts) == 1 else _WEIGHT_LINE / 1000, float(max(counts))
            loops: dict[tuple[int, int] | None, int] = defaultdict(int)
            for block, n in share.items():
                loops[self.graph.innermost_span(block)] += n
            if len(loops) == 1:
                constraints += [_SoftConstraint({block: 1.0}, max_lanes, weight, False) for block in share]
            else:
                least = min(n for loop, n in loops.items() if loop is not None)
                constraints.append(
                    _SoftConstraint({block: n / least for block, n in share.items()}, max_lanes, weight, False)
                )
        return constraints

    def _vote_constraints(self) -> list[_SoftConstraint]:
        """Constrain a block to the executions with most votes of its instructions with unambiguous locations.

        A location is unambiguous if its statements are executed equally often and it occurs in one block, or in one
        loop with all iterations unrolled. Branch tests of one or two instructions do not vote, as they may be
        elsewhere.
        """
        shares: dict[Place, Counter[int]] = defaultdict(Counter)
        for block, n in self._numbered_instructions():
            if self.graph.instructions[n].opcode not in (*CONTROL, *EFFECTS) and not self._is_branch_test(block, n):
                shares[self.places[n]][block] += 1
        predicated_places = self._predicated_places(lambda opcode: opcode in EFFECTS)
        votes: dict[int, Counter[float]] = defaultdict(Counter)
        for place, share in shares.items():
            statements = [e for e in self.evidence.statements.get(place, ()) if e.lanes]
            counts = {self._executions_once(e) for e in statements}
            if not counts or place in predicated_places:
                continue
            least = 3 if any(e.kind == "branch" for e in statements) else 1
            written_out = all(e.kind == "compute" and e.iterations and e.loop not in self.rolled for e in statements)
            in_one_loop = len({self.graph.innermost_span(block) for block in share}) == 1
            if len(counts) == 1:
                clear = len(share) == 1 or (written_out and in_one_loop)
            else:
                clear = len(share) == len(counts) and max(counts) < _MAX_COPY_RATIO * min(counts)
            if clear:
                for block, n in share.items():
                    votes[block][sum(counts) / len(counts)] += n if n >= least else 0
        constraints = []
        for block, ballot in votes.items():
            count, n = max(ballot.items(), key=lambda vote: (vote[1], vote[0]))
            constraints.append(_SoftConstraint({block: 1.0}, count, _WEIGHT_VOTE * n, False))
        return constraints

    def _is_branch_test(self, block: int, n: int) -> bool:
        """Return whether an instruction of an arm has the line of the test before it: executed by lanes of the arm only."""
        arm = self.counted.arms.get(block)
        return arm is not None and self.places[n] == self.places[self.graph.blocks[arm.head][1] - 1]

    def _predicated_places(self, accepts: Callable[[str], bool]) -> set[Place]:
        """Return the locations of predicated instructions with accepted opcodes."""
        instructions = (self.graph.instructions[n] for n in range(len(self.places)))
        return {place for i, place in zip(instructions, self.places, strict=True) if i.predicate and accepts(i.opcode)}

    def _executions_once(self, e: StatementCounts) -> float:
        """Return executions of a statement's instructions, with all iterations unrolled if its loop has no back edge."""
        return e.lanes if not e.iterations or e.loop in self.rolled else e.lanes / e.iterations

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
            self._conserve_groups(program, block, outgoing, arriving, threads)
            least = max(threads[block] / 32, float(threads[block] > 0)) / scale
            program.at_most(
                dict.fromkeys(arriving[block], -1.0), entry_flow[block] - min(least, threads[block] / scale)
            )
            for target, weight in self._known_warps(block, threads[block]):
                program.soft_equal(arriving[block], target / scale - entry_flow[block], weight, weight)
        for at, edge in enumerate(edges):
            if edge.kind == "call" and not is_conditional(self.graph.last(edge.source)):
                program.equal(_difference(arriving[edge.source], {at: 1}), -entry_flow[edge.source])
        for widths, target in self._effect_rows(threads):
            row: dict[int, float] = defaultdict(float)
            for block, n in widths.items():
                for edge_variable in arriving[block]:
                    row[edge_variable] += n
            constant = sum(n * entry_flow[block] for block, n in widths.items())
            program.soft_equal(row, target / scale - constant, _WEIGHT_EFFECT, _WEIGHT_EFFECT)
        for first, arm in self.counted.arms.items():
            head = Counter(dict.fromkeys(self.into[arm.head], arm.warps))
            program.soft_equal(
                _difference(arriving[first], head),
                arm.warps * entry_flow[arm.head],
                _WEIGHT_ARM_SHARE,
                _WEIGHT_ARM_SHARE,
            )
        solution = program.solve()
        executions = np.array(
            [(entry_flow[b] + sum(solution[edge_variable] for edge_variable in arriving[b])) * scale for b in blocks]
        )
        return np.where(abs(executions - executions.round()) < 1e-3, executions.round(), executions)

    def _conserve_groups(
        self, program: LinearProgram, block: int, outgoing: dict[int, float], arriving: list[dict[int, float]],
        threads: Floats,
    ) -> None:  # fmt: skip
        """Add the conservation of groups at a block. outgoing: edges; arriving: by block."""
        entry_flow, incoming = float(block == 0), dict.fromkeys(arriving[block], 1)
        if self.graph.is_convergence_point(block):
            program.at_most(_difference(outgoing, incoming), entry_flow)
            setup = self.graph.bssy_block.get(block)
            if setup is not None:
                merged = _difference(outgoing, dict.fromkeys(arriving[setup], 1))
                program.soft_equal(merged, float(setup == 0), _WEIGHT_RECONVERGENCE, _WEIGHT_RECONVERGENCE)
        elif len(outgoing) > 1:
            divergence = program.variable(_COST_DIVERGENCE)
            target = self._divergence(block, threads[block])
            if target is not None:
                program.soft_equal({divergence: 1.0}, target / self.all_warps, _WEIGHT_DIVERGENCE, _WEIGHT_DIVERGENCE)
            program.equal(_difference({**outgoing, divergence: -1.0}, incoming), entry_flow)
            for edge_variable in outgoing:
                program.at_most(_difference({edge_variable: 1.0}, incoming), entry_flow)
        else:
            program.equal(_difference(outgoing, incoming), entry_flow)

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

    def _effect_rows(self, threads: Floats) -> Iterator[tuple[dict[int, float], float]]:
        """Yield rows (instances by block, warp executions) of effects without predicates, except hoisted or dropped ones."""
        widths: dict[tuple[Place, str], dict[int, float]] = defaultdict(lambda: defaultdict(float))
        predicated = set()
        for block, n in self._numbered_instructions():
            instruction = self.graph.instructions[n]
            kind = EFFECTS.get(instruction.opcode)
            if kind is not None and "_" in kind:
                key = (self.places[n], kind)
                widths[key][block] += access_width(instruction)
                if instruction.predicate:
                    predicated.add(key)
        for (place, kind), blocks in widths.items():
            statements = [e for e in self.evidence.statements.get(place, ()) if e.kind == kind]
            expected = sum(e.warps * max(e.size, 1) for e in statements)
            lanes = sum(e.lanes * max(e.size, 1) for e in statements)
            is_reduced = sum(n * threads[block] for block, n in blocks.items()) < (1 - TOLERANCES.executions) * lanes
            if expected and not is_reduced and (place, kind) not in predicated:
                unit = max(blocks.values())
                yield {block: n / unit for block, n in blocks.items()}, expected / unit

    def _known_warps(self, block: int, threads: float) -> Iterator[tuple[float, float]]:
        """Yield known warp executions of a block with weights."""
        if (
            block in self.counted.blocks
            and abs(threads - self.counted.blocks[block][0]) <= TOLERANCES.executions * threads
        ):
            yield self.counted.blocks[block][1], _WEIGHT_COUNTED
            return
        votes: Counter[int] = Counter()
        for n in range(*self.graph.blocks[block]):
            effects = self._implemented_statements(n)
            for e in effects or self.evidence.statements.get(self.places[n], []):
                if e.lanes and abs(e.lanes - threads) <= TOLERANCES.executions * threads:
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
