"""Induction variables of compiled loops: step per trip, exit tests, and remainder loops with a bounded trip count."""

from __future__ import annotations

import re
from collections import defaultdict

from ..ir import nodes as ir
from ..ir.walk import registers, statements
from .control_flow import Graph, Loop

MAX_ITERATIONS = 256
"""Source iterations per trip of a compiled loop, at most."""
_STEP = re.compile(r"(?:IADD3|VIADD|UIADD3) (U?R\d+), (U?R\d+)(?:\.reuse)?, (-?0x[0-9a-f]+)")
_COPY = re.compile(r"(?:U?MOV|IMAD\.MOV\.U32) (U?R\d+), (?:RZ, RZ, )?(U?R\d+)$")
_NUMBER = r"(RZ|-?0x[0-9a-f]+)"
_REMAINING_TEST = re.compile(
    rf"ISETP\.(?:GT\.AND (P\d), PT, (R\d+), {_NUMBER}|GE\.AND (P\d), PT, (R\d+), (0x1)|LT\.AND (P\d), PT, {_NUMBER}, (R\d+)), PT$"
)
"""A test for remaining iterations of a counter."""
_EXIT_TEST = re.compile(rf"ISETP\.(?:NE|GT)\.AND (P\d), PT, (R\d+), {_NUMBER}, PT$")
_LOW_BITS = re.compile(r"U?LOP3\.LUT (?:U?P\d, )?(U?R\d+), U?R\d+, (0x1|0x3|0x7|0xf), U?RZ, 0xc0,")
"""Low bits of a count: the remainder after trips of 2, 4, 8 or 16 iterations."""
_MAX_INTERVENING_BLOCKS = 4
"""Blocks with convergence instructions only, between a test and its loop."""
_WRITTEN = re.compile(r"[A-Z0-9_.]+ (U?R\d+),")


def counter_step(graph: Graph, loop: Loop) -> int:
    """Return the step per trip of a register in the loop's exit test; 0 if unknown."""
    steps = _steps_per_trip(graph, loop)
    tested: list[str] = []
    for latch in loop.latches:
        predicate = graph.last(latch).predicate.lstrip("@!")
        for block in blocks_of_every_trip(graph, loop):
            for n in range(*graph.blocks[block]):
                text = graph.instructions[n].text
                if text.startswith(("ISETP", "UISETP")) and predicate and predicate in text.split(",")[0]:
                    tested = re.findall(r"U?R\d+", text)
    return next((amount for register in tested if (amount := abs(steps.get(register, 0)))), 0)


def source_step(loop: ir.While | ir.For) -> int:
    """Return the step per iteration of the variable in a source loop's test; 1 if it is no constant."""
    if isinstance(loop, ir.For):
        return loop.step if isinstance(loop.step, int) else 1
    written: dict[str, list[ir.Let]] = defaultdict(list)
    for stmt in statements(loop.body):
        if isinstance(stmt, ir.Let) and isinstance(stmt.target, ir.Reg):
            written[stmt.target.name].append(stmt)
    for name in (one.name for one in registers(loop.cond)):
        if len(written[name]) == 1 and any(one is written[name][0] for one in loop.body):
            match written[name][0].value:
                case ir.Op(name="add" | "sub", args=(ir.Reg(name=same_name), ir.Const(value=int(value)))) if (
                    same_name == name
                ):
                    return value
    return 1


def iterations(amount: int, step: int) -> int:
    """Return the iterations n with n * step = +-amount (mod 2^32); `amount` if there is none up to MAX_ITERATIONS."""
    return next(
        (
            n
            for n in range(1, MAX_ITERATIONS + 1)
            if any((n * step + signed_amount) % (1 << 32) == 0 for signed_amount in (-amount, amount))
        ),
        amount,
    )


def exhausted_loop_edges(graph: Graph) -> frozenset[tuple[int, int]]:
    """Return edges from a failed test for remaining iterations to a loop that counts down to the same bound: no lane
    follows them."""
    counting = {loop.header: (_steps_per_trip(graph, loop), *_exit_test(graph, loop)) for loop in graph.loops}
    result = set()
    for block in range(len(graph.blocks)):
        successors, test = graph.successors[block], _remaining_test(graph, block)
        if test is None or len(successors) != 2:
            continue
        register, end, jumps_if_remaining = test
        jump = next((e.target for e in graph.edges if e.source == block and e.kind == "jump"), None)
        target = next(to for to in successors if (to == jump) != jumps_if_remaining)
        block_ahead = target
        for _ in range(_MAX_INTERVENING_BLOCKS):
            only_convergence = all(
                one.opcode in ("BSSY", "BSYNC") for one in graph.instructions[slice(*graph.blocks[block_ahead])]
            )
            if block_ahead in counting or not only_convergence or len(graph.successors[block_ahead]) != 1:
                break
            (block_ahead,) = graph.successors[block_ahead]
        steps, *exits = counting.get(block_ahead, ({},))
        if steps.get(register, 0) < 0 and exits == [register, end] and not graph.dominates(block_ahead, block):
            result.add((block, target))
    return frozenset(result)


def bounded_loops(graph: Graph) -> list[tuple[Loop, int]]:
    """Return remainder loops with the maximum of their trips: loops that count the low bits of a count down to 0."""
    result = []
    for loop in graph.loops:
        register, end = _exit_test(graph, loop) or ("", 0)
        counts_down = register and end == 0 and _steps_per_trip(graph, loop).get(register) == -1
        if counts_down and (maximum := _maximum_count(graph, loop, register)):
            result.append((loop, maximum))
    return result


def _maximum_count(graph: Graph, loop: Loop, register: str) -> int:
    """Return the maximum of a register at a loop's entry if it holds the low bits of a count; else 0."""
    for instruction in graph.instructions_before(graph.blocks[loop.header][0], loop.header):
        text = instruction.text.replace(".reuse", "")
        if (bits := _LOW_BITS.match(text)) and bits[1] == register:
            return int(bits[2], 16)
        if (copied := _COPY.match(text)) and copied[1] == register:
            register = copied[2]
        elif (written := _WRITTEN.match(text)) and written[1] == register:
            return 0
    return 0


def _remaining_test(graph: Graph, block: int) -> tuple[str, int, bool] | None:
    """Return, for a block's exit test of remaining iterations: the register, the bound, and whether it jumps if some remain."""
    predicate = graph.last(block).predicate
    result = None
    for instruction in graph.instructions[slice(*graph.blocks[block])]:
        test = _REMAINING_TEST.match(instruction.text.replace(".reuse", ""))
        if test is not None and predicate and predicate.lstrip("@!") in test.groups():
            _, a, b = (group for group in test.groups() if group)
            register, end = (a, b) if a.startswith("R") and a != "RZ" else (b, a)
            result = register, _number(end) - ("GE" in instruction.operation), not predicate.startswith("@!")
        elif (
            predicate
            and predicate.lstrip("@!") in instruction.text.removeprefix(instruction.predicate).partition(",")[0]
        ):
            result = None
    return result


def _exit_test(graph: Graph, loop: Loop) -> tuple[str, int] | tuple[()]:
    """Return the register of a loop's exit test and the bound of its last trip."""
    for latch in loop.latches:
        predicate = graph.last(latch).predicate
        for instruction in graph.instructions[slice(*graph.blocks[latch])]:
            test = _EXIT_TEST.match(instruction.text.replace(".reuse", ""))
            if test is not None and predicate == f"@{test[1]}":
                return test[2], _number(test[3])
    return ()


def _number(text: str) -> int:
    return 0 if text == "RZ" else int(text, 16)


def signed(text: str) -> int:
    """Return a 32-bit hexadecimal number as signed."""
    number = int(text, 16) & 0xFFFFFFFF
    return number - (1 << 32 if number >> 31 else 0)


def blocks_of_every_trip(graph: Graph, loop: Loop) -> list[int]:
    """Return the blocks on every path from a loop's header back to it."""
    return [b for b in sorted(loop.body) if all(graph.dominates(b, latch) for latch in loop.latches)]


def _steps_per_trip(graph: Graph, loop: Loop) -> dict[str, int]:
    """Return the change per trip of each register with a constant step."""
    value: dict[str, tuple[str, int] | None] = {}
    for block in blocks_of_every_trip(graph, loop):
        for n in range(*graph.blocks[block]):
            text = graph.instructions[n].text
            if copied := _COPY.match(text):
                value[copied[1]] = value.get(copied[2], (copied[2], 0))
            elif stepped := _STEP.match(text):
                base = value.get(stepped[2], (stepped[2], 0))
                value[stepped[1]] = None if base is None else (base[0], base[1] + signed(stepped[3]))
            elif written := _WRITTEN.match(text):
                value[written[1]] = None
    steps = {name: known[1] for name, known in value.items() if known is not None and known[0] == name}
    derived = {name: steps.get(known[0], 0) for name, known in value.items() if known is not None}
    return derived | steps
