"""Control flow graph of a kernel's SASS: blocks, edges, dominators, natural loops."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from ..dominators import immediate_dominators, reverse_postorder
from ..engines.cuda.sass import Instruction

_JUMP_OPCODES = ("BRA", "BRX", "JMP", "JMX")
_END_OPCODES = ("EXIT", "RET", "KILL")
_CALL_OPCODE = "CALL"
RECONVERGE_OPCODE = "BSYNC"


@dataclass(frozen=True)
class Edge:
    """An edge between two blocks, by index.

    "next": the following block. "jump": the target of the block's last instruction. "call": the entry of a callee; the
    caller also has an edge to its next block. "divergent": followed only by a warp with diverged lanes.
    """

    source: int
    target: int
    kind: Literal["next", "jump", "call", "divergent"]


@dataclass(frozen=True)
class Graph:
    """A control flow graph. blocks: [first, past) instruction indices. exits: blocks where threads may leave the kernel
    or the callee.

    A convergence point (BSYNC or a block barrier) is a block of its own: each group of lanes executes it on arrival;
    the following block is executed once, by all of them.
    """

    instructions: tuple[Instruction, ...]
    blocks: tuple[tuple[int, int], ...]
    edges: tuple[Edge, ...]
    exits: tuple[int, ...]

    def last(self, block: int) -> Instruction:
        return self.instructions[self.blocks[block][1] - 1]

    def is_convergence_point(self, block: int) -> bool:
        """Return whether a block starts with BSYNC or a barrier."""
        return _is_convergence_point(self.instructions[self.blocks[block][0]])

    def reconverges(self, block: int) -> bool:
        """Return whether a block starts with BSYNC; -1 is no block."""
        return block >= 0 and self.instructions[self.blocks[block][0]].opcode == RECONVERGE_OPCODE

    def is_barrier(self, block: int) -> bool:
        """Return whether a block is a barrier of the thread block or of the full warp, after which its lanes are converged."""
        return _is_barrier(self.instructions[self.blocks[block][0]])

    @cached_property
    def bssy_block(self) -> dict[int, int]:
        """By convergence block, the block with its BSSY."""
        block_before_offset = {
            self.instructions[past - 1].offset + 16: block for block, (_, past) in enumerate(self.blocks)
        }
        result = {}
        for block, span in enumerate(self.blocks):
            for n in range(*span):
                target = re.search(r"BSSY\S* B\d+, 0x([0-9a-f]+)", self.instructions[n].text)
                if (
                    target
                    and (convergence := block_before_offset.get(int(target[1], 16))) is not None
                    and self.is_convergence_point(convergence)
                ):
                    result[convergence] = block
        return result

    def reachable_from(self, start: int) -> set[int]:
        """Return the blocks reachable from a block, itself included."""
        visited, worklist = {start}, [start]
        while worklist:
            successors = set(self.successors[worklist.pop()]) - visited
            worklist += successors
            visited |= successors
        return visited

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """By block, its successors. Calls continue at the next block; divergent edges are left out."""
        result: list[list[int]] = [[] for _ in self.blocks]
        for edge in self.edges:
            if edge.kind in ("next", "jump"):
                result[edge.source].append(edge.target)
        return tuple(map(tuple, result))

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """By block, its predecessors."""
        result: list[list[int]] = [[] for _ in self.blocks]
        for source, targets in enumerate(self.successors):
            for target in targets:
                result[target].append(source)
        return tuple(map(tuple, result))

    @cached_property
    def dominators(self) -> tuple[int | None, ...]:
        """By block, its immediate dominator; None for the entry and for unreachable blocks."""
        return _dominators(self.successors, 0)

    @cached_property
    def postdominators(self) -> tuple[int | None, ...]:
        """By block, its immediate postdominator; None without one."""
        last = len(self.blocks)
        backwards = [list(sources) for sources in self.predecessors] + [[]]
        for block, targets in enumerate(self.successors):
            if block in self.exits or not targets:
                backwards[last].append(block)
        return tuple(None if n == last else n for n in _dominators(backwards, last)[:last])

    def dominates(self, block: int, other: int | None) -> bool:
        """Return whether a block dominates another one."""
        while other is not None and other != block:
            other = self.dominators[other]
        return other == block

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """Natural loops, inner ones first, without blocks reachable only by divergent edges."""
        latches: dict[int, list[int]] = {}
        for source, targets in enumerate(self.successors):
            for target in targets:
                if (self.dominators[source] is not None or source == 0) and self.dominates(target, source):
                    latches.setdefault(target, []).append(source)
        result = []
        for header, sources in latches.items():
            body, worklist = {header}, list(sources)
            while worklist:
                block = worklist.pop()
                if block not in body:
                    body.add(block)
                    worklist += [
                        one for one in self.predecessors[block] if one == 0 or self.dominators[one] is not None
                    ]
            result.append(Loop(header, tuple(sources), frozenset(body)))
        result.sort(key=lambda loop: len(loop.body))
        return tuple(result)

    def enclosing_loops(self, block: int) -> list[Loop]:
        """Return the natural loops around a block, inner ones first."""
        return [loop for loop in self.loops if block in loop.body]


@dataclass(frozen=True)
class Loop:
    """A natural loop: header, sources of its back edges, and all of its blocks. Blocks are indices into `Graph.blocks`."""

    header: int
    latches: tuple[int, ...]
    body: frozenset[int]


def _dominators(successors: Sequence[Sequence[int]], entry: int) -> tuple[int | None, ...]:
    """Return the immediate dominator of each node; None for the entry and for a node that it does not reach."""
    order = reverse_postorder(dict(enumerate(successors)), entry)
    before: dict[int, list[int]] = {node: [] for node in order}
    for node in order:
        for target in successors[node]:
            before[target].append(node)
    dominators = immediate_dominators(order, before)
    return tuple(None if node == entry else dominators.get(node) for node in range(len(successors)))


def graph(instructions: Sequence[Instruction]) -> Graph:
    """Return the control flow graph of disassembled instructions; the first one is the kernel's entry."""
    index = {instruction.offset: n for n, instruction in enumerate(instructions)}
    leaders = {0}
    for n, instruction in enumerate(instructions):
        if instruction.opcode in (*_JUMP_OPCODES, *_END_OPCODES, _CALL_OPCODE) or _is_convergence_point(instruction):
            leaders.add(n + 1)
            leaders |= {index[target] for target in instruction.targets if target in index}
        if _is_convergence_point(instruction):
            leaders.add(n)
        if is_collective(instruction) or instruction.opcode == "YIELD":
            leaders.add(n + 1)
    starts = sorted(leaders - {len(instructions)})
    blocks = tuple(zip(starts, [*starts[1:], len(instructions)], strict=True))
    block_at = {first: block for block, (first, _) in enumerate(blocks)}
    edges: list[Edge] = []
    ends: list[int] = []
    for block, (_, past) in enumerate(blocks):
        last = instructions[past - 1]
        falls_through = last.opcode not in (*_JUMP_OPCODES, *_END_OPCODES) or is_conditional(last)
        if falls_through and block + 1 < len(blocks):
            edges.append(Edge(block, block + 1, "next"))
        kind: Literal["call", "divergent", "jump"] = (
            "call" if last.opcode == _CALL_OPCODE else "divergent" if ".DIV" in last.operation else "jump"
        )
        edges += [Edge(block, block_at[index[target]], kind) for target in last.targets if target in index]
        if ".CONV" in last.operation and block + 1 < len(blocks):
            edges.append(Edge(block, block + 1, "divergent"))
        if last.opcode in _END_OPCODES:
            ends.append(block)
    return _without_far_jumps(Graph(tuple(instructions), blocks, tuple(edges), tuple(ends)))


def _without_far_jumps(whole: Graph) -> Graph:
    """Replace calls without a return by jumps: nvcc uses CALL for far jumps too."""
    called = {edge.target for edge in whole.edges if edge.kind == "call"}
    not_returning = {target for target in called if not _returns(whole, target)}
    if not not_returning:
        return whole
    far_jumps = {edge.source for edge in whole.edges if edge.kind == "call" and edge.target in not_returning}
    edges = [replace(e, kind="jump") if e.kind == "call" and e.source in far_jumps else e for e in whole.edges]
    unconditional = {block for block in far_jumps if not is_conditional(whole.last(block))}
    return replace(whole, edges=tuple(e for e in edges if not (e.kind == "next" and e.source in unconditional)))


def _returns(whole: Graph, start: int) -> bool:
    """Return whether a callee returns to its caller."""
    return any(whole.last(block).opcode == "RET" for block in whole.reachable_from(start))


def _is_convergence_point(instruction: Instruction) -> bool:
    return instruction.opcode == RECONVERGE_OPCODE or _is_barrier(instruction)


def _is_barrier(instruction: Instruction) -> bool:
    return instruction.operation.startswith(("BAR.SYNC", "BAR.RED")) or instruction.operation == "WARPSYNC.ALL"


def is_collective(instruction: Instruction) -> bool:
    """Return whether an instruction gathers diverged lanes: each group executes it, then all lanes continue converged."""
    return instruction.operation.startswith("WARPSYNC.COLLECTIVE")


def is_conditional(instruction: Instruction) -> bool:
    """Return whether an instruction has a predicate, in front or among its operands, and so may not apply to all threads."""
    if instruction.predicate or ".DIV" in instruction.operation:
        return True
    operands = instruction.text.split()[1:]
    return bool(operands) and operands[0].lstrip("!").startswith(("P", "UP"))
