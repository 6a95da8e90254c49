"""Ways that a compiled operation goes for special operands only: the tests that nvcc writes into it for NaN, infinity, zero and one.

Where such code compares for equality with a constant, or asks for NaN, the answer is taken to be no.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ..engines.cuda.sass import Instruction
from .control_flow import Graph, is_conditional

_TEST = re.compile(r"[FDHI]SETP\.([A-Z]+)(?:\.U32|\.FTZ)?\.(AND|OR) (P\d), PT, (\S+?)\s*, (\S+?)\s*, (!?P[T\d])$")
_CONSTANT = re.compile(r"-?\|?(?:RZ|[+-]?INF|0x7f800000|0x7ff00000|[+-]?\d[\d.e+-]*)\|?$")
_INFINITE = re.compile(r"0x7f[0-9a-f]{6}$")
"""The upper word of the largest numbers, and of infinity, to which words are compared: whole ones, as they lie in memory, or with 1
taken away, so that zero and negative ones are greater too."""
_BOTH = re.compile(r"PLOP3\.LUT (P\d), PT, (P\d), (P\d), PT, 0xa8, 0x0")
"""PLOP3 with the truth table of an or of two predicates."""


def special_edges_in(graph: Graph, blocks: Collection[int]) -> frozenset[tuple[int, int]]:
    """The ways that are taken for special operands alone, from blocks that belong to an operation."""
    found = set()
    for block in blocks:
        last, targets = graph.last(block), graph.successors[block]
        if len(targets) == 2 and last.opcode == "BRA" and is_conditional(last):
            taken = _holds(graph, block, last.predicate)
            jump = next((e.target for e in graph.edges if e.source == block and e.kind == "jump"), None)
            if taken is not None and jump is not None:
                found |= {(block, target) for target in targets if (target == jump) != taken}
            found |= {(block, target) for target in targets if _makes_nan(graph, target)}
    return frozenset(found)


def special_operand_edges(graph: Graph, expanded: Collection[int]) -> frozenset[tuple[int, int]]:
    """Those of callees, and of blocks in which operations are written out."""
    inside, waiting = {0}, [0]
    while waiting:
        further = set(graph.successors[waiting.pop()]) - inside
        inside |= further
        waiting += further
    called, waiting = {edge.target for edge in graph.edges if edge.kind == "call"} - inside, list[int]()
    waiting += called
    while waiting:
        further = set(graph.successors[waiting.pop()]) - called
        called |= further
        waiting += further
    return special_edges_in(graph, {*called, *expanded})


def _makes_nan(graph: Graph, block: int) -> bool:
    return any("QNAN" in one.text for one in graph.instructions[slice(*graph.blocks[block])])


def _holds(graph: Graph, block: int, predicate: str) -> bool | None:
    """Whether a predicate holds for operands that are not special, where tests in its block or before it tell."""
    value = _value(graph, block, graph.blocks[block][1], predicate.lstrip("@!"))
    return None if value is None else value != predicate.startswith("@!")


def _value(graph: Graph, block: int, past: int, name: str) -> bool | None:
    """What a predicate is before an instruction of a block, for operands that are not special; None where no test tells."""
    if name == "PT":
        return True
    at: int | None = block
    while at is not None:
        for n in range(past - 1, graph.blocks[at][0] - 1, -1):
            one = graph.instructions[n]
            if name in _written(one):
                kept = at == block or not any(_writes(graph, between, name) for between in _between(graph, at, block))
                return _tested(graph, at, n, one) if kept else None
        at = graph.dominators[at]
        past = 0 if at is None else graph.blocks[at][1]
    return None


def _between(graph: Graph, above: int, block: int) -> set[int]:
    """The blocks on ways from one that dominates another to that one: itself too where a way leads through it."""
    found, waiting = set[int](), [block]
    while waiting:
        further = set(graph.predecessors[waiting.pop()]) - found - {above}
        found |= further
        waiting += further
    return found


def _writes(graph: Graph, block: int, name: str) -> bool:
    return any(name in _written(one) for one in graph.instructions[slice(*graph.blocks[block])])


def _written(one: Instruction) -> set[str]:
    """The predicates that an instruction writes."""
    return set(re.findall(r"\bP\d\b", one.text.removeprefix(one.predicate).partition(",")[0]))


def _tested(graph: Graph, block: int, n: int, one: Instruction) -> bool | None:
    """What an instruction of a block makes of the predicate that it writes, for usual operands."""

    def value(name: str) -> bool | None:
        known = _value(graph, block, n, name.lstrip("!"))
        return None if known is None else known != name.startswith("!")

    if (test := _TEST.match(one.text)) is not None:
        compared, how, _, a, b, other = test.groups()
        usual, with_ = _usual(compared, a, b), value(other)
        return _either(usual, with_) if how == "OR" else _not(_either(_not(usual), _not(with_)))
    if (both := _BOTH.match(one.text)) is not None:
        return _either(value(both[2]), value(both[3]))
    return None


def _usual(compared: str, a: str, b: str) -> bool | None:
    """Whether a comparison of floats, or of words that hold them, holds for usual ones."""
    if compared == "NAN" or (compared == "GTU" and "INF" in b):
        return False
    if _INFINITE.match(b) and compared in ("GE", "GT", "LE", "LT"):
        return compared.startswith("L")
    if compared in ("EQ", "NEU", "NE", "EQU") and (_CONSTANT.match(a) or _CONSTANT.match(b)):
        return compared.startswith("NE")
    return None


def _not(one: bool | None) -> bool | None:
    return None if one is None else not one


def _either(one: bool | None, other: bool | None) -> bool | None:
    if one or other:
        return True
    return None if one is None or other is None else False
