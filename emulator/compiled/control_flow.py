"""The control-flow graph of a kernel's SASS: blocks of instructions and the ways between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ..engines.cuda.sass import Instruction

_JUMPS = ("BRA", "BRX", "JMP", "JMX")
_ENDS = ("EXIT", "RET", "KILL")
_CALL = "CALL"
MEET = "BSYNC"


@dataclass(frozen=True)
class Edge:
    """A way from one block to another, both by their index.

    "next": the following block. "jump": taken by the block's last instruction. "call": into a callee, whose flow does
    not leave the caller: it goes on at the next block. "apart": taken only by a warp whose lanes are not together.
    """

    source: int
    target: int
    kind: Literal["next", "jump", "call", "apart"]


@dataclass(frozen=True)
class Graph:
    """blocks: (first, past the last) instruction. ends: blocks where threads may leave the kernel or the callee.

    Where the lanes of a warp meet again (BSYNC), that instruction is a block of its own: each group of lanes that
    arrives executes it once, what follows is executed by all of them together.
    """

    instructions: tuple[Instruction, ...]
    blocks: tuple[tuple[int, int], ...]
    edges: tuple[Edge, ...]
    ends: tuple[int, ...]

    def last(self, block: int) -> Instruction:
        return self.instructions[self.blocks[block][1] - 1]

    def meets(self, block: int) -> bool:
        """Whether the block is a meeting point."""
        return self.instructions[self.blocks[block][0]].opcode == MEET

    @cached_property
    def back(self) -> tuple[Edge, ...]:
        """Ways from the ends of loops to their beginnings. What only lanes that are not together reach lies behind the
        kernel and jumps back as well, but is no loop."""
        reached, waiting = {0}, [0]
        while waiting:
            block = waiting.pop()
            further = {e.target for e in self.edges if e.source == block and e.kind != "apart"} - reached
            reached |= further
            waiting += further
        return tuple(e for e in self.edges if e.kind == "jump" and e.target <= e.source and e.source in reached)

    def loop(self, block: int) -> tuple[int, int] | None:
        """First and last block of the innermost loop around a block: compilers lay loops out in one piece."""
        around = [(e.target, e.source) for e in self.back if e.target <= block <= e.source]
        return min(around, key=lambda loop: loop[1] - loop[0], default=None)


def graph(instructions: Sequence[Instruction]) -> Graph:
    """The graph of what `disassemble` gave; the first instruction is the kernel's entry."""
    index = {instruction.offset: n for n, instruction in enumerate(instructions)}
    leaders = {0}
    for n, instruction in enumerate(instructions):
        if instruction.opcode in (*_JUMPS, *_ENDS, _CALL, MEET):
            leaders.add(n + 1)
            leaders |= {index[target] for target in instruction.targets if target in index}
        if instruction.opcode == MEET:
            leaders.add(n)
    starts = sorted(leaders - {len(instructions)})
    blocks = tuple(zip(starts, [*starts[1:], len(instructions)], strict=True))
    block_at = {first: block for block, (first, _) in enumerate(blocks)}
    edges: list[Edge] = []
    ends: list[int] = []
    for block, (_, past) in enumerate(blocks):
        last = instructions[past - 1]
        goes_on = last.opcode not in (*_JUMPS, *_ENDS) or conditional(last)
        if goes_on and block + 1 < len(blocks):
            edges.append(Edge(block, block + 1, "next"))
        kind: Literal["call", "apart", "jump"] = (
            "call" if last.opcode == _CALL else "apart" if ".DIV" in last.operation else "jump"
        )
        edges += [Edge(block, block_at[index[target]], kind) for target in last.targets if target in index]
        if last.opcode in _ENDS:
            ends.append(block)
    return Graph(tuple(instructions), blocks, tuple(edges), tuple(ends))


def conditional(instruction: Instruction) -> bool:
    """Whether some threads may not obey a jump or an end: it has a predicate, before it or among its operands."""
    if instruction.predicate or ".DIV" in instruction.operation:
        return True
    operands = instruction.text.split()[1:]
    return bool(operands) and operands[0].lstrip("!").startswith(("P", "UP"))
