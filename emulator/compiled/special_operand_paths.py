"""Edges within expanded operations for special operands only: NaN, infinity, zero and one.

Tests for equality with constants and for NaN in such code are assumed false.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence

from ..engines.cuda.sass import Instruction
from .control_flow import Graph, is_conditional
from .source_statements import Place, SourceStatements

_TEST = re.compile(r"[FDHI]SETP\.([A-Z]+)(?:\.U32|\.FTZ)?\.(AND|OR) (P\d), PT, (\S+?)\s*, (\S+?)\s*, (!?P[T\d])$")
_CONSTANT = re.compile(r"-?\|?(?:RZ|[+-]?INF|0x7f800000|0x7ff00000|[+-]?\d[\d.e+-]*)\|?$")
_INFINITE = re.compile(r"0x7f[0-9a-f]{6}$")
"""High word of infinity and of the largest numbers, as compared: raw, or minus 1 so that zero and negatives exceed it too."""
_BOTH = re.compile(r"PLOP3\.LUT (P\d), PT, (P\d), (P\d), PT, 0xa8, 0x0")
"""PLOP3 with the truth table of `or`."""


def special_edges_in(graph: Graph, blocks: Collection[int]) -> frozenset[tuple[int, int]]:
    """Return the edges for special operands in blocks of expanded operations."""
    result = set()
    for block in blocks:
        last, targets = graph.last(block), graph.successors[block]
        if len(targets) == 2 and last.opcode == "BRA" and is_conditional(last):
            jumps = _holds(graph, block, last.predicate)
            jump = next((e.target for e in graph.edges if e.source == block and e.kind == "jump"), None)
            if jumps is not None and jump is not None:
                result |= {(block, target) for target in targets if (target == jump) != jumps}
            result |= {(block, target) for target in targets if _makes_nan(graph, target)}
    return frozenset(result)


def special_operand_edges(graph: Graph, expanded: Collection[int]) -> frozenset[tuple[int, int]]:
    """Return the edges for special operands in callees and in inline expansions."""
    main_body, worklist = {0}, [0]
    while worklist:
        successors = set(graph.successors[worklist.pop()]) - main_body
        main_body |= successors
        worklist += successors
    callee_blocks, worklist = {edge.target for edge in graph.edges if edge.kind == "call"} - main_body, list[int]()
    worklist += callee_blocks
    while worklist:
        successors = set(graph.successors[worklist.pop()]) - callee_blocks
        callee_blocks |= successors
        worklist += successors
    return special_edges_in(graph, {*callee_blocks, *expanded})


def _makes_nan(graph: Graph, block: int) -> bool:
    return any("QNAN" in one.text for one in graph.instructions[slice(*graph.blocks[block])])


def _holds(graph: Graph, block: int, predicate: str) -> bool | None:
    """Return whether a guard holds for usual operands; None if unknown."""
    value = _value(graph, block, graph.blocks[block][1], predicate.lstrip("@!"))
    return None if value is None else value != predicate.startswith("@!")


def _value(graph: Graph, block: int, past: int, name: str) -> bool | None:
    """Return a predicate's value for usual operands before an instruction of a block; None if unknown."""
    if name == "PT":
        return True
    current: int | None = block
    while current is not None:
        for n in range(past - 1, graph.blocks[current][0] - 1, -1):
            instruction = graph.instructions[n]
            if name in _written_predicates(instruction):
                is_current = current == block or not any(
                    _writes(graph, between, name) for between in _blocks_between(graph, current, block)
                )
                return _evaluate(graph, current, n, instruction) if is_current else None
        current = graph.dominators[current]
        past = 0 if current is None else graph.blocks[current][1]
    return None


def _blocks_between(graph: Graph, dominator: int, block: int) -> set[int]:
    """Return the blocks on paths from a dominator to a block."""
    visited, worklist = set[int](), [block]
    while worklist:
        predecessors = set(graph.predecessors[worklist.pop()]) - visited - {dominator}
        visited |= predecessors
        worklist += predecessors
    return visited


def _writes(graph: Graph, block: int, name: str) -> bool:
    return any(name in _written_predicates(one) for one in graph.instructions[slice(*graph.blocks[block])])


def _written_predicates(instruction: Instruction) -> set[str]:
    """Return the predicates written by an instruction."""
    return set(re.findall(r"\bP\d\b", instruction.text.removeprefix(instruction.predicate).partition(",")[0]))


def _evaluate(graph: Graph, block: int, n: int, instruction: Instruction) -> bool | None:
    """Return the predicate written by an instruction for usual operands; None if unknown."""

    def value(name: str) -> bool | None:
        operand = _value(graph, block, n, name.lstrip("!"))
        return None if operand is None else operand != name.startswith("!")

    if (test := _TEST.match(instruction.text)) is not None:
        compared, how, _, a, b, other = test.groups()
        usual, with_ = _holds_for_usual(compared, a, b), value(other)
        return or3(usual, with_) if how == "OR" else not3(or3(not3(usual), not3(with_)))
    if (both := _BOTH.match(instruction.text)) is not None:
        return or3(value(both[2]), value(both[3]))
    return None


def _holds_for_usual(compared: str, a: str, b: str) -> bool | None:
    """Return whether a comparison of floats, or of their words, holds for usual operands; None if unknown."""
    if compared == "NAN" or (compared == "GTU" and "INF" in b):
        return False
    if _INFINITE.match(b) and compared in ("GE", "GT", "LE", "LT"):
        return compared.startswith("L")
    if compared in ("EQ", "NEU", "NE", "EQU") and (_CONSTANT.match(a) or _CONSTANT.match(b)):
        return compared.startswith("NE")
    return None


def not3(value: bool | None) -> bool | None:
    return None if value is None else not value


def or3(a: bool | None, b: bool | None) -> bool | None:
    if a or b:
        return True
    return None if a is None or b is None else False


def slow_path_divisions(
    graph: Graph, places: Sequence[Place], source: SourceStatements
) -> dict[int, list[tuple[int, int]]]:
    """Return, by block with a slow-path call, its candidate divisions and roots (statement, index). With equal or
    multiple numbers of calls and divisions at a location, they correspond in order. places: by instruction."""
    calls: dict[tuple[Place, bool], list[int]] = defaultdict(list)
    for edge in graph.edges:
        if edge.kind == "call":
            place = places[graph.blocks[edge.source][1] - 1]
            calls[place, edge.target in graph.long_division_callees].append(edge.source)
    divisions: dict[tuple[Place, bool], list[tuple[int, int]]] = defaultdict(list)
    for number, divisions_of in sorted(source.slow_divisions.items()):
        statement = source.statements[number]
        for n, long in enumerate(divisions_of if statement.lanes else ()):
            divisions[statement.place, long].append((number, n))
    without_calls = {(place[0], long) for place, long in divisions.keys() - calls.keys()}
    result = {}
    for place, long in list(calls):
        at = {(place, long)}
        if (place[0], long) in without_calls:  # inlined code may have another call's line
            at |= {key for key in divisions if (key[0][0], key[1]) == (place[0], long)}
        candidates = sorted(division for key in at for division in divisions.get(key, ()))
        blocks = sorted(block for key in at for block in calls.get(key, ()))
        recorded = all(number in source.decisions.sites for number, _ in candidates)
        distinct = bool(candidates) and len(blocks) % len(candidates) == 0
        for n, block in enumerate(blocks if candidates and recorded else ()):
            result[block] = [candidates[n % len(candidates)]] if distinct else candidates
    return result
