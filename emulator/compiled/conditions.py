"""Which lanes come to the blocks in which a compiled kernel tests the conditions that a branch of the source is made of by `and`,
`or`, `not`, or as equal or different.

A branch notes which of its conditions held, a bit each: its code. The compiler tests some conditions one after the other and others
together, in an order of its own. What its comparisons make of the predicates is followed from the first such test on, as sets of
codes: each block behind it is come to by the lanes of some codes.
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
"""By predicate the codes for which it holds, None where that is not known."""

_ORDERS = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}
"""Comparisons, and what they are with their operands exchanged."""
_SET = re.compile(r"LOP3\.LUT R\d+, (R\d+), (0x[0-9a-f]+), RZ, (0xfc|0xc0), !PT$")
_MOVED = re.compile(r"(?:VIADD|IADD3) R\d+, (R\d+), (-?0x[0-9a-f]+)(?:, RZ)?$")
_NUMBER = re.compile(r"-?0x[0-9a-f]+")
_KINDS = {"ISETP": "int", "UISETP": "int", "FSETP": "f32", "DSETP": "f64"}


@dataclass(frozen=True)
class Condition:
    """One of those that a branch is made of. kind: of what it compares, nothing for one that compares nothing. compared: as SASS names
    it, with what is constant behind. constant: whether one operand is; unsigned: whether both are. number: the constant, of whole
    numbers."""

    kind: str = ""
    compared: str = ""
    constant: bool = False
    unsigned: bool = False
    number: int | None = None

    @staticmethod
    def of(cond: ir.Expr) -> Condition:
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
        """The least number for which it holds, or does not, and the greatest for which it does not, or does: they lie beside each other.
        None where it is no bound of whole numbers."""
        if self.number is None or self.compared not in _ORDERS:
            return None
        least = self.number + (self.compared in ("GT", "LE"))
        return least, least - 1

    def holds(self, one: Instruction, compared: str, literal: Sequence[bool]) -> bool | None:
        """Whether it holds where a comparison does, or where that does not; None where it may be neither. literal: of the operands,
        which are."""
        if _KINDS[one.opcode] != self.kind:
            return None
        if self.kind != "int":
            return self._of_floats(compared)
        if any(literal) != self.constant or ("U32" in one.operation.split(".")) > self.unsigned:
            return None
        if compared in ("EQ", "NE") or self.compared in ("EQ", "NE"):
            return compared == self.compared if {compared, self.compared} <= {"EQ", "NE"} else None
        if self.constant:  # a constant that is one more or less makes it strict or not
            return (_ORDERS[compared] if literal[0] else compared)[0] == self.compared[0]
        return (compared[1] == "E") == (self.compared[1] == "E")

    def _of_floats(self, compared: str) -> bool | None:
        """Comparisons that NaN passes are those of what does not hold."""
        if compared in ("EQ", "NEU"):
            return (compared == "NEU") == (self.compared == "NE") if self.compared in ("EQ", "NE") else None
        fails = compared.endswith("U")
        alike = compared[:2] in _ORDERS and self.compared in _ORDERS
        return not fails if alike and ((compared[1] == "E") == (self.compared[1] == "E")) != fails else None


@dataclass(frozen=True)
class TestedBlock:
    """A block behind a test of conditions. start: where the first one is tested. codes: of the lanes that come there."""

    place: Place
    start: int
    codes: Codes


@dataclass
class Conditions:
    """Of one kernel. places: of each instruction. blocks: those that lanes of some codes come to. joined: by block where conditions are
    tested together, or become predicates, the sets of codes that have blocks of their own elsewhere. made: by place, of branches
    that are made of conditions, which these are."""

    graph: Graph
    places: Sequence[Place]
    source: SourceStatements
    blocks: dict[int, TestedBlock] = field(default_factory=dict)
    joined: dict[int, list[tuple[Place, Codes]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self._came: dict[int, _BranchArrivals] = {}
        self.sites: dict[Place, list[int]] = defaultdict(list)
        for site in self.source.conditions:
            self.sites[self.source.statements[site].place].append(site)
        for place, sites in self.sites.items():
            each = {tuple(map(Condition.of, atoms(self.source.conditions[site]))) for site in sites}
            if len(each) == 1 and len(conditions := each.pop()) <= MAX_ATOMS:
                self._find(place, conditions)

    def _find(self, place: Place, conditions: Sequence[Condition]) -> None:
        """Follow the codes from each block on which tests conditions of a place first."""
        chains, seen = list[_TestChain](), set[int]()
        comparing = [
            block
            for block, span in enumerate(self.graph.blocks)
            if any(self.places[n] == place and self.graph.instructions[n].opcode in _KINDS for n in range(*span))
        ]
        for block in comparing:
            if block not in seen:
                chain = _TestChain(self.graph, self.places, place, conditions, block)
                if chain.told:
                    chains.append(chain)
                    seen |= chain.codes.keys()
        for chain in chains:
            for block, codes in chain.told.items():
                self.blocks[block] = TestedBlock(place, chain.start, codes)
        every = {codes for chain in chains for codes in chain.told.values()}
        for chain in chains:
            for codes in sorted(every - {*chain.told.values()}):
                around = [block for block in chain.tests if codes & ~chain.codes[block] == 0]
                if around:
                    least = min(around, key=lambda block: chain.codes[block].bit_count())
                    self.joined[least].append((place, codes))
        for block in comparing:
            if block not in seen:
                self.joined[block] += [(place, codes) for codes in sorted(every)]

    def arm(self, tested: TestedBlock) -> BranchArm | None:
        """The arm of a branch that all its lanes take which come to a block, and no others."""
        cond = self.source.conditions[self.sites[tested.place][0]]
        count = len(atoms(cond))
        held = _value(cond, iter(_variables(count)), _all(count))
        if tested.codes == held:
            return tested.place, "then"
        return (tested.place, "else") if tested.codes == _all(count) & ~held else None

    def parts(self, tested: TestedBlock) -> tuple[float, float]:
        """Of the lanes, and of the warps, that come to the branches at a place, the part that has some codes; 0 where none comes."""
        lanes = warps = came = came_warps = 0
        for site in self.sites[tested.place]:
            if site not in self._came:
                patterns = self.source.decisions.sites.get(site, SiteDecisions()).patterns
                self._came[site] = _BranchArrivals.of(self.source.codes(site), patterns)
            each = self._came[site]
            chosen = np.array([bool(tested.codes >> code & 1) for code in each.codes], np.bool_)
            lanes, warps = lanes + each.lanes[chosen].sum(), warps + each.count[each.held[:, chosen].any(axis=1)].sum()
            came, came_warps = came + each.lanes.sum(), came_warps + each.count.sum()
        return (lanes / came, warps / came_warps) if came else (0.0, 0.0)


@dataclass(frozen=True)
class _BranchArrivals:
    """Lanes that came to a branch. codes: those that they had; lanes: how many had each; count: how often each pattern came; held:
    bool[pattern, code], whether a lane of it had the code."""

    codes: Sequence[int]
    lanes: npt.NDArray[np.int64]
    count: npt.NDArray[np.int64]
    held: npt.NDArray[np.bool_]

    @staticmethod
    def of(lanes: Mapping[int, int], patterns: Rows) -> _BranchArrivals:
        """lanes: how many had each code; patterns: PATTERN[n]."""
        active = (patterns["mask"][:, None] >> np.arange(32, dtype=np.uint32) & 1).astype(np.bool_)
        codes, known = patterns["value"] >> 1, [code for code, n in lanes.items() if n]
        held = np.zeros((len(patterns), len(known)), np.bool_)
        for n, code in enumerate(known):
            held[:, n] = (active & (codes == code)).any(axis=1)
        return _BranchArrivals(known, np.array([lanes[code] for code in known], np.int64), patterns["count"], held)


class _TestChain:
    """Tests of conditions at a place, from a block on. codes: of the lanes that come to each block. told: those of blocks that not all
    lanes come to which come to the block before. tests: blocks that end in a test."""

    def __init__(
        self, graph: Graph, places: Sequence[Place], place: Place, conditions: Sequence[Condition], start: int
    ) -> None:
        self.graph, self.places, self.place, self.conditions, self.start = graph, places, place, conditions, start
        self.variables, self.all = _variables(len(conditions)), _all(len(conditions))
        self.codes, self.told, self.tests = {start: self.all}, dict[int, Codes](), list[int]()
        states: dict[int, State] = {start: {}}
        coming: dict[int, dict[int, Codes]] = defaultdict(dict)
        waiting = [start]
        while waiting:
            block = waiting.pop()
            state = dict(states[block])
            for target, codes in self._onward(block, state):
                coming[target][block] = coming[target].get(block, 0) | codes
                before = graph.predecessors[target]
                if target in self.codes or coming[target].keys() != {*before}:
                    continue
                came = reduce(or_, coming[target].values())
                if came == self.all:
                    continue
                self.codes[target], states[target] = came, state if len(before) == 1 else {}
                waiting.append(target)
                if any(came != self.codes[one] for one in before):
                    self.told[target] = came

    def _onward(self, block: int, state: State) -> Iterator[tuple[int, Codes]]:
        """Where lanes go on from a block, and with which codes; nowhere where what is tested is not known. state: before the block,
        then behind it."""
        self._follow(block, state)
        last, onward, codes = self.graph.last(block), self.graph.successors[block], self.codes[block]
        if not is_conditional(last):
            yield from ((target, codes) for target in onward if len(onward) == 1)
            return
        names = [
            last.predicate.lstrip("@"),
            *(one for one in operands_of(last)[0] if one.lstrip("!").startswith(("P", "UP"))),
        ]
        held: Codes | None = self.all
        for name in filter(None, names):
            other = self._value(name, state)
            held = None if held is None or other is None else held & other
        if held is None:
            return
        self.tests.append(block)
        jumps = {edge.target for edge in self.graph.edges if edge.source == block and edge.kind == "jump"}
        for target in onward:
            yield target, codes & (held if target in jumps else ~held)

    def _follow(self, block: int, state: State) -> None:
        """What a block makes of the predicates."""
        used = set[int]()
        for n in range(*self.graph.blocks[block]):
            one = self.graph.instructions[n]
            found: State = {name: None for name in writes(one) if "P" in name}
            if not found:
                continue
            if one.opcode in ("PLOP3", "UPLOP3"):
                found |= self._combined(one, state)
            elif one.opcode in _KINDS and self.places[n] == self.place and not self._low(n, block):
                found |= self._compared(n, block, used, state)
            if one.predicate:
                when = self._value(one.predicate.lstrip("@"), state)
                for name, value in found.items():
                    before = state.get(name)
                    if when is None or value is None or before is None:
                        found[name] = None
                    else:
                        found[name] = (when & value) | (self.all & ~when & before)
            state |= found

    def _value(self, name: str, state: State) -> Codes | None:
        if name.lstrip("!") in ("PT", "UPT"):
            return 0 if name.startswith("!") else self.all
        value = state.get(name.lstrip("!"))
        return value if value is None or not name.startswith("!") else self.all & ~value

    def _combined(self, one: Instruction, state: State) -> State:
        """The predicate that a truth table makes of three."""
        operands, _ = operands_of(one)
        each = [self._value(name, state) for name in operands[2:5]]
        table, total = int(operands[5], 16), 0
        for row in range(8):
            if table >> row & 1:
                part = self.all
                for bit, value in zip((4, 2, 1), each, strict=True):
                    if value is None:
                        return {}
                    part &= value if row & bit else ~value
                total |= part
        return {operands[0]: total}

    def _compared(self, at: int, block: int, used: set[int], state: State) -> State:
        """The predicates that a comparison writes."""
        one, codes = self.graph.instructions[at], self.codes[block]
        operands, _ = operands_of(one)
        parts = one.operation.split(".")
        made = self._made(at, block, operands[2])
        value = None if made is None else self._of_two(one, made, operands, used)
        if value is None:
            value = self._of_one(one, codes, operands, used, made is not None)
        other = self._value(operands[4], state)
        if value is None or other is None:
            return {}
        pair = value, self.all & ~value
        both = [each | other if "OR" in parts else each ^ other if "XOR" in parts else each & other for each in pair]
        return {name: each for name, each in zip(operands[:2], both, strict=True) if name not in ("PT", "UPT")}

    def _of_one(
        self, one: Instruction, codes: Codes, operands: Sequence[str], used: set[int], made: bool
    ) -> Codes | None:
        """The codes for which a comparison holds: those of the first condition which it may be, of those that are still open. made:
        whether what is compared was changed before: then the number that it is compared with is known to be that of the condition, or
        one more or less."""
        literal = [_literal(each) for each in operands[2:4]]
        compared, number = one.operation.split(".")[1], _NUMBER.fullmatch(operands[3])
        for n, condition in enumerate(self.conditions):
            held = condition.holds(one, compared, literal)
            if made and number and condition.number is not None and abs(int(number[0], 16) - condition.number) > 1:
                continue
            variable = self.variables[n]
            if held is None or n in used or not codes & variable or not codes & ~variable:
                continue
            used.add(n)
            return variable if held else self.all & ~variable
        return None

    def _of_two(self, one: Instruction, made: tuple[str, int], operands: Sequence[str], used: set[int]) -> Codes | None:
        """The codes for which a comparison holds that stands for two conditions: whether a number is one of two that differ in a bit,
        which was set before, or lies between two bounds, the lower of which was taken away before."""
        if not _NUMBER.fullmatch(operands[3]):
            return None
        compared, limit = one.operation.split(".")[1:3], int(operands[3], 16)
        kind, amount = made
        free = [n for n in range(len(self.conditions)) if n not in used]
        if kind == "or" and compared[0] in ("EQ", "NE"):
            numbers = limit, limit & ~amount
            same = {n: codes for n in free for number in numbers if (codes := self._equal(n, number)) is not None}
            if len(same) != 2:
                return None
            used.update(same)
            either = reduce(or_, same.values())
            return either if compared[0] == "EQ" else self.all & ~either
        if kind == "add" and compared[-1] == "U32" and compared[0] in _ORDERS:
            lower, upper = -amount, -amount + limit - (compared[0] in ("LT", "GE"))
            between = self._between(lower, upper, free, used)
            if between is not None:
                return between if compared[0] in ("LT", "LE") else self.all & ~between
        return None

    def _equal(self, n: int, number: int) -> Codes | None:
        """The codes with which a condition says that something is this number; None where it says nothing of that."""
        condition = self.conditions[n]
        if condition.number != number or condition.compared not in ("EQ", "NE"):
            return None
        return self.variables[n] if condition.compared == "EQ" else self.all & ~self.variables[n]

    def _between(self, lower: int, upper: int, free: Sequence[int], used: set[int]) -> Codes | None:
        """The codes with which two conditions say that something lies between these."""
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

    def _made(self, at: int, block: int, register: str) -> tuple[str, int] | None:
        """Whether a bit of what is compared was set before, or a number added to it, and which; 8 or 16 bits may be cut off after."""
        register = register.removesuffix(".reuse")
        for one in self.graph.instructions_before(at, block):
            if register not in writes(one):
                continue
            text = one.text.replace(".reuse", "")
            if one.predicate:
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

    def _low(self, n: int, block: int) -> bool:
        """Whether a comparison is that of the lower half of two long numbers: another one takes it in."""
        written = operands_of(self.graph.instructions[n])[0][0]
        rest = (self.graph.instructions[k] for k in range(n + 1, self.graph.blocks[block][1]))
        reader = next((one for one in rest if one.opcode in _KINDS and written in operands_of(one)[0][2:]), None)
        return reader is not None and "EX" in reader.operation.split(".")


def _literal(operand: str) -> bool:
    return not operand.lstrip("-|~!").startswith(("R", "UR", "c[")) or operand in ("RZ", "URZ")


def _all(count: int) -> Codes:
    """All codes of so many conditions."""
    return (1 << (1 << count)) - 1


def _variables(count: int) -> list[Codes]:
    """By condition, the codes with which it holds."""
    return [sum(1 << code for code in range(1 << count) if code >> n & 1) for n in range(count)]


def _value(cond: ir.Expr, variables: Iterator[Codes], whole: Codes) -> Codes:
    """The codes with which a condition holds. variables: of those that it is made of, from the left."""
    if not is_connective(cond):
        return next(variables)
    each = [_value(arg, variables, whole) for arg in cond.args]
    match cond.name:
        case "not":
            return whole & ~each[0]
        case "both":
            return each[0] & each[1]
        case "either":
            return each[0] | each[1]
    return each[0] ^ each[1] if cond.name == "ne" else whole & ~(each[0] ^ each[1])
