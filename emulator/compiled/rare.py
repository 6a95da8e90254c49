"""Ways that a compiled operation goes for special operands only: the tests that nvcc writes into it for NaN, infinity, zero and one.

Where such code compares for equality with a constant, or asks for NaN, the answer is taken to be no.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ..engines.cuda.sass import Instruction
from .control_flow import Graph, conditional

_TEST = re.compile(r"[FDHI]SETP\.([A-Z]+)(?:\.U32|\.FTZ)?\.(AND|OR) (P\d), PT, (\S+?)\s*, (\S+?)\s*, (!?P[T\d])$")
_CONSTANT = re.compile(r"-?\|?(?:RZ|[+-]?INF|0x7f800000|0x7ff00000|[+-]?\d[\d.e+-]*)\|?$")
_BOTH = re.compile(r"PLOP3\.LUT (P\d), PT, (P\d), (P\d), PT, 0xa8, 0x0")
"""PLOP3 with the truth table of an or of two predicates."""


def rare_ways(graph: Graph, blocks: Collection[int]) -> frozenset[tuple[int, int]]:
    """The ways that are taken for special operands alone, from blocks that belong to an operation."""
    found = set()
    for block in blocks:
        last, targets = graph.last(block), graph.successors[block]
        if len(targets) == 2 and last.opcode == "BRA" and conditional(last):
            taken = _holds(graph, block, last.predicate)
            jump = next((e.target for e in graph.edges if e.source == block and e.kind == "jump"), None)
            if taken is not None and jump is not None:
                found |= {(block, target) for target in targets if (target == jump) != taken}
            found |= {(block, target) for target in targets if _makes_nan(graph, target)}
    return frozenset(found)


def of_operations(graph: Graph, expanded: Collection[int]) -> frozenset[tuple[int, int]]:
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
    return rare_ways(graph, {*called, *expanded})


def _makes_nan(graph: Graph, block: int) -> bool:
    return any("QNAN" in one.text for one in graph.instructions[slice(*graph.blocks[block])])


def _holds(graph: Graph, block: int, predicate: str) -> bool | None:
    """Whether a predicate holds for operands that are not special, where tests in its block or before it tell."""
    known: dict[str, bool | None] = {}
    for n in range(*graph.blocks[block]):
        _follow(graph.instructions[n], known)
    name = predicate.lstrip("@!")
    value = known.get(name)
    return None if value is None else value != predicate.startswith("@!")


def _follow(one: Instruction, known: dict[str, bool | None]) -> None:
    """What an instruction makes of the predicates that are known."""
    if (test := _TEST.match(one.text)) is not None:
        compared, how, written, a, b, other = test.groups()
        usual = _usual(compared, a, b)
        with_ = True if other == "PT" else known.get(other.lstrip("!"))
        with_ = None if with_ is None else with_ != other.startswith("!")
        known[written] = _either(usual, with_) if how == "OR" else _not(_either(_not(usual), _not(with_)))
    elif (both := _BOTH.match(one.text)) is not None:
        known[both[1]] = _either(known.get(both[2]), known.get(both[3]))
    else:
        for name in re.findall(r"\bP\d\b", one.text.removeprefix(one.predicate).partition(",")[0]):
            known[name] = None


def _usual(compared: str, a: str, b: str) -> bool | None:
    """Whether a comparison of floats holds for usual ones."""
    if compared == "NAN" or (compared == "GTU" and "INF" in b):
        return False
    if compared in ("EQ", "NEU", "NE", "EQU") and (_CONSTANT.match(a) or _CONSTANT.match(b)):
        return compared.startswith("NE")
    return None


def _not(one: bool | None) -> bool | None:
    return None if one is None else not one


def _either(one: bool | None, other: bool | None) -> bool | None:
    if one or other:
        return True
    return None if one is None or other is None else False
