"""Compound conditions: the lanes that reach each block of a short-circuit test, as sets of condition codes.

A branch records which of its conditions held: a bit each, its code. The compiler tests some conditions in sequence and
others together, in its own order. Symbolic execution of the predicates maps each block to the codes of its lanes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

import numpy as np
import numpy.typing as npt

from ..engines.cuda.sass import Instruction
from ..ir import nodes as ir
from ..language.types import F32, F64, Scalar
from ..passes.decisions import MAX_ATOMS, atoms, is_connective
from ..profiler.decisions import Rows, SiteDecisions
from .control_flow import Graph, is_conditional
from .loop_counters import signed
from .source_statements import BranchArm, Place, SourceStatements
from .uniformity import operands_of, writes

Codes = int
"""A set of codes, a bit each."""
State = dict[str, Codes | None]
"""By predicate, the codes for which it holds; None if unknown."""

_ORDERS = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}
"""Comparisons with exchanged operands."""
_SET = re.compile(r"LOP3\.LUT R\d+, (R\d+), (0x[0-9a-f]+), RZ, (0xfc|0xc0), !PT$")
_MOVED = re.compile(r"(?:VIADD|IADD3) R\d+, (R\d+), (-?0x[0-9a-f]+)(?:, RZ)?$")
_NUMBER = re.compile(r"-?0x[0-9a-f]+")
_KINDS = {"ISETP": "int", "UISETP": "int", "FSETP": "f32", "DSETP": "f64"}


@dataclass(frozen=True)
class Condition:
    """A leaf condition. kind: of its operands, empty without a comparison. compared: SASS name of the comparison, with
    a constant on the right. constant: whether an operand is constant; unsigned: operand type. number: the integer
    constant."""

    kind: str = ""
    compared: str = ""
    constant: bool = False
    unsigned: bool = False
    number: int | None = None

    @staticmethod
    def from_expression(cond: ir.Expr) -> Condition:
        compared = cond.name.upper() if isinstance(cond, ir.Op) else ""
        if not isinstance(cond, ir.Op) or compared not in (*_ORDERS, "EQ", "NE"):
            return Condition()
        constant, type = [isinstance(arg, ir.Const) for arg in cond.args], cond.args[0].type
        assert isinstance(type, Scalar), "vectors are not compared"
        if constant[0]:
            compared = _ORDERS.get(compared, compared)
        kind = "f32" if type is F32 else "f64" if type is F64 else "int" if type.is_integer else ""
        number = next((int(arg.value) for arg in cond.args if isinstance(arg, ir.Const) and kind == "int"), None)
        return Condition(kind, compared, any(constant), type.kind == "uint", number)

    def bounds(self) -> tuple[int, int] | None:
        """Return the integer bounds on both sides of the comparison, or None."""
        if self.number is None or self.compared not in _ORDERS:
            return None
        least = self.number + (self.compared in ("GT", "LE"))
        return least, least - 1

    def holds(self, instruction: Instruction, compared: str, literal: Sequence[bool]) -> bool | None:
        """Return whether the condition equals a SASS comparison (True), its negation (False), or neither (None).
        literal: by operand."""
        if _KINDS[instruction.opcode] != self.kind:
            return None
        if self.kind != "int":
            return self._of_floats(compared)
        if any(literal) != self.constant or ("U32" in instruction.operation.split(".")) > self.unsigned:
            return None
        if compared in ("EQ", "NE") or self.compared in ("EQ", "NE"):
            return compared == self.compared if {compared, self.compared} <= {"EQ", "NE"} else None
        if self.constant:  # strictness depends on the constant
            return (_ORDERS[compared] if literal[0] else compared)[0] == self.compared[0]
        return (compared[1] == "E") == (self.compared[1] == "E")

    def _of_floats(self, compared: str) -> bool | None:
        """Match float comparisons; those true for NaN are negations."""
        if compared in ("EQ", "NEU"):
            return (compared == "NEU") == (self.compared == "NE") if self.compared in ("EQ", "NE") else None
        negated = compared.endswith("U")
        both_ordered = compared[:2] in _ORDERS and self.compared in _ORDERS
        return not negated if both_ordered and ((compared[1] == "E") == (self.compared[1] == "E")) != negated else None


@dataclass(frozen=True)
class TestedBlock:
    """A block after condition tests that start at `start`, reached by lanes with `codes`."""

    place: Place
    start: int
    codes: Codes


@dataclass
class Conditions:
    """Tested blocks of one kernel. places: by instruction. blocks: reached by some codes only. joint_tests: by block
    with combined tests, code sets with blocks elsewhere. sites: by location, branches with several conditions."""

    graph: Graph
    places: Sequence[Place]
    source: SourceStatements
    blocks: dict[int, TestedBlock] = field(default_factory=dict)
    joint_tests: dict[int, list[tuple[Place, Codes]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self._arrivals: dict[int, _BranchArrivals] = {}
        self.sites: dict[Place, list[int]] = defaultdict(list)
        for site in self.source.conditions:
            self.sites[self.source.statements[site].place].append(site)
        for place, sites in self.sites.items():
            distinct = {tuple(map(Condition.from_expression, atoms(self.source.conditions[site]))) for site in sites}
            if len(distinct) == 1 and len(conditions := distinct.pop()) <= MAX_ATOMS:
                self._find_chains(place, conditions)

    def _find_chains(self, place: Place, conditions: Sequence[Condition]) -> None:
        """Follow the codes from each first test of a location."""
        chains, visited = list[_TestChain](), set[int]()
        comparing = [
            block
            for block, span in enumerate(self.graph.blocks)
            if any(self.places[n] == place and self.graph.instructions[n].opcode in _KINDS for n in range(*span))
        ]
        for block in comparing:
            if block not in visited:
                chain = _TestChain(self.graph, self.places, place, conditions, block)
                if chain.partial_codes:
                    chains.append(chain)
                    visited |= chain.codes.keys()
        for chain in chains:
            for block, codes in chain.partial_codes.items():
                self.blocks[block] = TestedBlock(place, chain.start, codes)
        all_codes = {codes for chain in chains for codes in chain.partial_codes.values()}
        for chain in chains:
            for codes in sorted(all_codes - {*chain.partial_codes.values()}):
                candidates = [block for block in chain.tests if codes & ~chain.codes[block] == 0]
                if candidates:
                    smallest = min(candidates, key=lambda block: chain.codes[block].bit_count())
                    self.joint_tests[smallest].append((place, codes))
        for block in comparing:
            if block not in visited:
                self.joint_tests[block] += [(place, codes) for codes in sorted(all_codes)]

    def arm(self, tested: TestedBlock) -> BranchArm | None:
        """Return the branch arm of exactly the lanes that reach a block."""
        cond = self.source.conditions[self.sites[tested.place][0]]
        count = len(atoms(cond))
        true_codes = _value(cond, iter(_variables(count)), _all(count))
        if tested.codes == true_codes:
            return tested.place, "then"
        return (tested.place, "else") if tested.codes == _all(count) & ~true_codes else None

    def fractions(self, tested: TestedBlock) -> tuple[float, float]:
        """Return the fractions of lanes and warps at a branch with the block's codes."""
        lanes = warps = arrived = arrived_warps = 0
        for site in self.sites[tested.place]:
            if site not in self._arrivals:
                patterns = self.source.decisions.sites.get(site, SiteDecisions()).patterns
                self._arrivals[site] = _BranchArrivals.from_patterns(self.source.code_counts(site), patterns)
            arrivals = self._arrivals[site]
            chosen = np.array([bool(tested.codes >> code & 1) for code in arrivals.codes], np.bool_)
            lanes, warps = (
                lanes + arrivals.lanes[chosen].sum(),
                warps + arrivals.count[arrivals.has_code[:, chosen].any(axis=1)].sum(),
            )
            arrived, arrived_warps = arrived + arrivals.lanes.sum(), arrived_warps + arrivals.count.sum()
        return (lanes / arrived, warps / arrived_warps) if arrived else (0.0, 0.0)


@dataclass(frozen=True)
class _BranchArrivals:
    """Lanes at a branch. codes: present; lanes: by code; count: by pattern; has_code: bool[pattern, code]."""

    codes: Sequence[int]
    lanes: npt.NDArray[np.int64]
    count: npt.NDArray[np.int64]
    has_code: npt.NDArray[np.bool_]

    @staticmethod
    def from_patterns(lanes: Mapping[int, int], patterns: Rows) -> _BranchArrivals:
        """Return the arrivals of recorded patterns at a branch.

        lanes: by code. patterns: PATTERN[n].
        """
        active = (patterns["mask"][:, None] >> np.arange(32, dtype=np.uint32) & 1).astype(np.bool_)
        codes, codes_present = patterns["value"] >> 1, [code for code, n in lanes.items() if n]
        present = np.zeros((len(patterns), len(codes_present)), np.bool_)
        for n, code in enumerate(codes_present):
            present[:, n] = (active & (codes == code)).any(axis=1)
        return _BranchArrivals(
            codes_present, np.array([lanes[code] for code in codes_present], np.int64), patterns["count"], present
        )


class _TestChain:
    """Tests of a location's conditions from a block on. codes: by block. partial_codes: of blocks reached by some lanes
    only. tests: blocks with a test at their end."""

    def __init__(
        self, graph: Graph, places: Sequence[Place], place: Place, conditions: Sequence[Condition], start: int
    ) -> None:
        self.graph, self.places, self.place, self.conditions, self.start = graph, places, place, conditions, start
        self.variables, self.all = _variables(len(conditions)), _all(len(conditions))
        self.codes, self.partial_codes, self.tests = {start: self.all}, dict[int, Codes](), list[int]()
        states: dict[int, State] = {start: {}}
        incoming: dict[int, dict[int, Codes]] = defaultdict(dict)
        worklist = [start]
        while worklist:
            block = worklist.pop()
            state = dict(states[block])
            for target, codes in self._successors(block, state):
                incoming[target][block] = incoming[target].get(block, 0) | codes
                predecessors = graph.predecessors[target]
                if target in self.codes or incoming[target].keys() != {*predecessors}:
                    continue
                arriving = reduce(or_, incoming[target].values())
                if arriving == self.all:
                    continue
                self.codes[target], states[target] = arriving, state if len(predecessors) == 1 else {}
                worklist.append(target)
                if any(arriving != self.codes[one] for one in predecessors):
                    self.partial_codes[target] = arriving

    def _successors(self, block: int, state: State) -> Iterator[tuple[int, Codes]]:
        """Yield successors with their codes; none if the test is unknown. state: updated to the end of the block."""
        self._execute(block, state)
        last, successors, codes = self.graph.last(block), self.graph.successors[block], self.codes[block]
        if not is_conditional(last):
            yield from ((target, codes) for target in successors if len(successors) == 1)
            return
        names = [
            last.predicate.lstrip("@"),
            *(one for one in operands_of(last)[0] if one.lstrip("!").startswith(("P", "UP"))),
        ]
        taken_codes: Codes | None = self.all
        for name in filter(None, names):
            other = self._value(name, state)
            taken_codes = None if taken_codes is None or other is None else taken_codes & other
        if taken_codes is None:
            return
        self.tests.append(block)
        jumps = {edge.target for edge in self.graph.edges if edge.source == block and edge.kind == "jump"}
        for target in successors:
            yield target, codes & (taken_codes if target in jumps else ~taken_codes)

    def _execute(self, block: int, state: State) -> None:
        """Execute a block's predicate instructions symbolically."""
        used = set[int]()
        for n in range(*self.graph.blocks[block]):
            instruction = self.graph.instructions[n]
            written: State = {name: None for name in writes(instruction) if "P" in name}
            if not written:
                continue
            if instruction.opcode in ("PLOP3", "UPLOP3"):
                written |= self._truth_table(instruction, state)
            elif instruction.opcode in _KINDS and self.places[n] == self.place and not self._is_low_half(n, block):
                written |= self._comparison(n, block, used, state)
            if instruction.predicate:
                guard = self._value(instruction.predicate.lstrip("@"), state)
                for name, value in written.items():
                    previous = state.get(name)
                    if guard is None or value is None or previous is None:
                        written[name] = None
                    else:
                        written[name] = (guard & value) | (self.all & ~guard & previous)
            state |= written

    def _value(self, name: str, state: State) -> Codes | None:
        if name.lstrip("!") in ("PT", "UPT"):
            return 0 if name.startswith("!") else self.all
        value = state.get(name.lstrip("!"))
        return value if value is None or not name.startswith("!") else self.all & ~value

    def _truth_table(self, instruction: Instruction, state: State) -> State:
        """Return the predicate of a three-input truth table."""
        operands, _ = operands_of(instruction)
        inputs = [self._value(name, state) for name in operands[2:5]]
        table, total = int(operands[5], 16), 0
        for row in range(8):
            if table >> row & 1:
                term = self.all
                for bit, value in zip((4, 2, 1), inputs, strict=True):
                    if value is None:
                        return {}
                    term &= value if row & bit else ~value
                total |= term
        return {operands[0]: total}

    def _comparison(self, at: int, block: int, used: set[int], state: State) -> State:
        """Return the predicates written by a comparison."""
        instruction, codes = self.graph.instructions[at], self.codes[block]
        operands, _ = operands_of(instruction)
        modifiers = instruction.operation.split(".")
        preparation = self._preparation(at, block, operands[2])
        value = None if preparation is None else self._match_two(instruction, preparation, operands, used)
        if value is None:
            value = self._match_one(instruction, codes, operands, used, preparation is not None)
        other = self._value(operands[4], state)
        if value is None or other is None:
            return {}
        pair = value, self.all & ~value
        results = [
            combined | other if "OR" in modifiers else combined ^ other if "XOR" in modifiers else combined & other
            for combined in pair
        ]
        return {
            name: combined for name, combined in zip(operands[:2], results, strict=True) if name not in ("PT", "UPT")
        }

    def _match_one(
        self, instruction: Instruction, codes: Codes, operands: Sequence[str], used: set[int], was_modified: bool
    ) -> Codes | None:
        """Return the codes for which a comparison holds: those of the first open condition it may implement.
        was_modified: its operand was changed before, so its constant must be within 1 of the condition's."""
        literal = [_literal(each) for each in operands[2:4]]
        compared, number = instruction.operation.split(".")[1], _NUMBER.fullmatch(operands[3])
        for n, condition in enumerate(self.conditions):
            matches = condition.holds(instruction, compared, literal)
            if (
                was_modified
                and number
                and condition.number is not None
                and abs(int(number[0], 16) - condition.number) > 1
            ):
                continue
            variable = self.variables[n]
            if matches is None or n in used or not codes & variable or not codes & ~variable:
                continue
            used.add(n)
            return variable if matches else self.all & ~variable
        return None

    def _match_two(
        self, instruction: Instruction, preparation: tuple[str, int], operands: Sequence[str], used: set[int]
    ) -> Codes | None:
        """Return the codes for which a comparison implements two conditions: equality with two numbers that differ in
        one bit, set before; or a range test after subtraction of the lower bound."""
        if not _NUMBER.fullmatch(operands[3]):
            return None
        compared, limit = instruction.operation.split(".")[1:3], int(operands[3], 16)
        kind, amount = preparation
        free = [n for n in range(len(self.conditions)) if n not in used]
        if kind == "or" and compared[0] in ("EQ", "NE"):
            numbers = limit, limit & ~amount
            same = {
                n: codes for n in free for number in numbers if (codes := self._match_equality(n, number)) is not None
            }
            if len(same) != 2:
                return None
            used.update(same)
            either = reduce(or_, same.values())
            return either if compared[0] == "EQ" else self.all & ~either
        if kind == "add" and compared[-1] == "U32" and compared[0] in _ORDERS:
            lower, upper = -amount, -amount + limit - (compared[0] in ("LT", "GE"))
            in_range = self._match_range(lower, upper, free, used)
            if in_range is not None:
                return in_range if compared[0] in ("LT", "LE") else self.all & ~in_range
        return None

    def _match_equality(self, n: int, number: int) -> Codes | None:
        """Return the codes for which a condition implies equality with a number, or None."""
        condition = self.conditions[n]
        if condition.number != number or condition.compared not in ("EQ", "NE"):
            return None
        return self.variables[n] if condition.compared == "EQ" else self.all & ~self.variables[n]

    def _match_range(self, lower: int, upper: int, free: Sequence[int], used: set[int]) -> Codes | None:
        """Return the codes for which two conditions bound a range, or None."""
        sides: list[tuple[int, Codes]] = []
        for number, side in ((lower, 0), (upper, 1)):
            for n in free:
                bounds, compared = self.conditions[n].bounds(), self.conditions[n].compared
                if bounds and bounds[side] == number and all(n != other for other, _ in sides):
                    holds = (compared in ("GT", "GE")) == (side == 0)
                    sides.append((n, self.variables[n] if holds else self.all & ~self.variables[n]))
                    break
        if len(sides) != 2:
            return None
        used.update(n for n, _ in sides)
        return sides[0][1] & sides[1][1]

    def _preparation(self, at: int, block: int, register: str) -> tuple[str, int] | None:
        """Return how an operand was modified before a comparison: "or" with a bit or "add" of a number; 8 or 16 bits
        may be masked."""
        register = register.removesuffix(".reuse")
        for instruction in self.graph.instructions_before(at, block):
            if register not in writes(instruction):
                continue
            text = instruction.text.replace(".reuse", "")
            if instruction.predicate:
                return None
            if moved := _MOVED.match(text):
                return "add", signed(moved[2])
            masked = _SET.match(text)
            if masked and masked[3] == "0xfc":
                return "or", int(masked[2], 16)
            if masked is None or masked[2] not in ("0xff", "0xffff"):
                return None
            register = masked[1]
        return None

    def _is_low_half(self, n: int, block: int) -> bool:
        """Return whether a comparison is the low half of a 64-bit comparison."""
        written = operands_of(self.graph.instructions[n])[0][0]
        rest = (self.graph.instructions[k] for k in range(n + 1, self.graph.blocks[block][1]))
        reader = next((one for one in rest if one.opcode in _KINDS and written in operands_of(one)[0][2:]), None)
        return reader is not None and "EX" in reader.operation.split(".")


def _literal(operand: str) -> bool:
    return not operand.lstrip("-|~!").startswith(("R", "UR", "c[")) or operand in ("RZ", "URZ")


def _all(count: int) -> Codes:
    """Return the set of all codes."""
    return (1 << (1 << count)) - 1


def _variables(count: int) -> list[Codes]:
    """Return, by condition, the codes for which it holds."""
    return [sum(1 << code for code in range(1 << count) if code >> n & 1) for n in range(count)]


def _value(cond: ir.Expr, variables: Iterator[Codes], whole: Codes) -> Codes:
    """The codes with which a condition holds. variables: of those that it is made of, from the left."""
    if not is_connective(cond):
        return next(variables)
    operands = [_value(arg, variables, whole) for arg in cond.args]
    match cond.name:
        case "not":
            return whole & ~operands[0]
        case "both":
            return operands[0] & operands[1]
        case "either":
            return operands[0] | operands[1]
    return operands[0] ^ operands[1] if cond.name == "ne" else whole & ~(operands[0] ^ operands[1])
