"""By how much a turn of a compiled loop moves the variable that its end tests, and which ways lead into a loop whose count is spent."""

from __future__ import annotations

import re
from collections import defaultdict

from ..ir import nodes as ir
from ..ir.walk import registers, statements
from .control_flow import Graph, Loop

MOST = 256
"""Iterations that a turn of a compiled loop has, at most."""
_STEP = re.compile(r"(?:IADD3|VIADD|UIADD3) (U?R\d+), (U?R\d+)(?:\.reuse)?, (-?0x[0-9a-f]+)")
_COPY = re.compile(r"(?:U?MOV|IMAD\.MOV\.U32) (U?R\d+), (?:RZ, RZ, )?(U?R\d+)$")
_NUMBER = r"(RZ|-?0x[0-9a-f]+)"
_LEFT = re.compile(
    rf"ISETP\.(?:GT\.AND (P\d), PT, (R\d+), {_NUMBER}|GE\.AND (P\d), PT, (R\d+), (0x1)|LT\.AND (P\d), PT, {_NUMBER}, (R\d+)), PT$"
)
"""A test whether more of a count is left than where it ends."""
_ENDS = re.compile(rf"ISETP\.(?:NE|GT)\.AND (P\d), PT, (R\d+), {_NUMBER}, PT$")
_LOW_BITS = re.compile(r"U?LOP3\.LUT (?:U?P\d, )?(U?R\d+), U?R\d+, (0x1|0x3|0x7|0xf), U?RZ, 0xc0,")
"""The lower bits of a count: what is left over of it where turns of 2, 4, 8 or 16 iterations do the rest."""
_AHEAD = 4
"""Blocks that may lie between a test and the loop that it leads to: where lanes meet before."""
_WRITES = re.compile(r"[A-Z0-9_.]+ (U?R\d+),")


def moved_by(graph: Graph, loop: Loop) -> int:
    """How much further every turn takes a register that is tested at a loop's end; 0 where none is seen."""
    moved = _moved(graph, loop)
    tested: list[str] = []
    for latch in loop.latches:
        predicate = graph.last(latch).predicate.lstrip("@!")
        for block in spine(graph, loop):
            for n in range(*graph.blocks[block]):
                text = graph.instructions[n].text
                if text.startswith(("ISETP", "UISETP")) and predicate and predicate in text.split(",")[0]:
                    tested = re.findall(r"U?R\d+", text)
    return next((amount for register in tested if (amount := abs(moved.get(register, 0)))), 0)


def step_of(loop: ir.While | ir.For) -> int:
    """By how much an iteration of a loop of the source moves what its test looks at; 1 where no constant is seen."""
    if isinstance(loop, ir.For):
        return loop.step if isinstance(loop.step, int) else 1
    written: dict[str, list[ir.Let]] = defaultdict(list)
    for stmt in statements(loop.body):
        if isinstance(stmt, ir.Let) and isinstance(stmt.target, ir.Reg):
            written[stmt.target.name].append(stmt)
    for name in (one.name for one in registers(loop.cond)):
        if len(written[name]) == 1 and any(one is written[name][0] for one in loop.body):
            match written[name][0].value:
                case ir.Op(name="add" | "sub", args=(ir.Reg(name=same), ir.Const(value=int(value)))) if same == name:
                    return value
    return 1


def iterations(amount: int, step: int) -> int:
    """How many iterations move by an amount what one of them moves by a step, in 32 bits and either way. Where no number does, it is
    iterations that the compiled loop counts."""
    return next(
        (n for n in range(1, MOST + 1) if any((n * step + each) % (1 << 32) == 0 for each in (-amount, amount))), amount
    )


def spent(graph: Graph) -> frozenset[tuple[int, int]]:
    """Ways from a test that says that nothing of a count is left, to a loop whose turns count it down to there: no lane goes there, as it
    was tested before that enough is left."""
    counting = {loop.header: (_moved(graph, loop), *_end(graph, loop)) for loop in graph.loops}
    found = set()
    for block in range(len(graph.blocks)):
        onward, left = graph.successors[block], _left(graph, block)
        if left is None or len(onward) != 2:
            continue
        register, end, jumps = left
        jump = next((e.target for e in graph.edges if e.source == block and e.kind == "jump"), None)
        target = next(to for to in onward if (to == jump) != jumps)
        at = target
        for _ in range(_AHEAD):
            names = all(one.opcode in ("BSSY", "BSYNC") for one in graph.instructions[slice(*graph.blocks[at])])
            if at in counting or not names or len(graph.successors[at]) != 1:
                break
            (at,) = graph.successors[at]
        moved, *ends = counting.get(at, ({},))
        if moved.get(register, 0) < 0 and ends == [register, end] and not graph.dominates(at, block):
            found.add((block, target))
    return frozenset(found)


def remainders(graph: Graph) -> list[tuple[Loop, int]]:
    """Loops whose turns count down to 0 what other turns, of several iterations each, leave over, and how many turns they make at
    most, however many iterations there are."""
    found = []
    for loop in graph.loops:
        register, end = _end(graph, loop) or ("", 0)
        counts_down = register and end == 0 and _moved(graph, loop).get(register) == -1
        if counts_down and (most := _left_over(graph, loop, register)):
            found.append((loop, most))
    return found


def _left_over(graph: Graph, loop: Loop, register: str) -> int:
    """The most that a register holds where a loop begins, if that is the lower bits of a count; else 0."""
    for one in graph.before(graph.blocks[loop.header][0], loop.header):
        text = one.text.replace(".reuse", "")
        if (bits := _LOW_BITS.match(text)) and bits[1] == register:
            return int(bits[2], 16)
        if (copied := _COPY.match(text)) and copied[1] == register:
            register = copied[2]
        elif (written := _WRITES.match(text)) and written[1] == register:
            return 0
    return 0


def _left(graph: Graph, block: int) -> tuple[str, int, bool] | None:
    """The register of which a block's end tests whether more is left than where a count ends, where that is, and whether it jumps then."""
    predicate = graph.last(block).predicate
    found = None
    for one in graph.instructions[slice(*graph.blocks[block])]:
        test = _LEFT.match(one.text.replace(".reuse", ""))
        if test is not None and predicate and predicate.lstrip("@!") in test.groups():
            _, a, b = (part for part in test.groups() if part)
            register, end = (a, b) if a.startswith("R") and a != "RZ" else (b, a)
            found = register, _number(end) - ("GE" in one.operation), not predicate.startswith("@!")
        elif predicate and predicate.lstrip("@!") in one.text.removeprefix(one.predicate).partition(",")[0]:
            found = None
    return found


def _end(graph: Graph, loop: Loop) -> tuple[str, int] | tuple[()]:
    """The register that a loop's end tests, and the number at which it turns no more."""
    for latch in loop.latches:
        predicate = graph.last(latch).predicate
        for one in graph.instructions[slice(*graph.blocks[latch])]:
            test = _ENDS.match(one.text.replace(".reuse", ""))
            if test is not None and predicate == f"@{test[1]}":
                return test[2], _number(test[3])
    return ()


def _number(text: str) -> int:
    return 0 if text == "RZ" else int(text, 16)


def signed(text: str) -> int:
    """A number of 32 bits as SASS adds it."""
    number = int(text, 16) & 0xFFFFFFFF
    return number - (1 << 32 if number >> 31 else 0)


def spine(graph: Graph, loop: Loop) -> list[int]:
    """The blocks that every turn of a loop leads through."""
    return [b for b in sorted(loop.body) if all(graph.dominates(b, latch) for latch in loop.latches)]


def _moved(graph: Graph, loop: Loop) -> dict[str, int]:
    """By register, how much further it is after a turn, of those that every turn moves by a constant."""
    value: dict[str, tuple[str, int] | None] = {}
    for block in spine(graph, loop):
        for n in range(*graph.blocks[block]):
            text = graph.instructions[n].text
            if copied := _COPY.match(text):
                value[copied[1]] = value.get(copied[2], (copied[2], 0))
            elif stepped := _STEP.match(text):
                base = value.get(stepped[2], (stepped[2], 0))
                value[stepped[1]] = None if base is None else (base[0], base[1] + signed(stepped[3]))
            elif written := _WRITES.match(text):
                value[written[1]] = None
    moved = {name: known[1] for name, known in value.items() if known is not None and known[0] == name}
    derived = {name: moved.get(known[0], 0) for name, known in value.items() if known is not None}
    return derived | moved
