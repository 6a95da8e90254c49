"""The control-flow graph of a kernel's SASS: blocks of instructions and the ways between them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
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

    Where the lanes of a warp meet again (BSYNC, and barriers of the block), that instruction is a block of its own: each
    group of lanes that arrives executes it once, what follows is executed by all of them together.
    """

    instructions: tuple[Instruction, ...]
    blocks: tuple[tuple[int, int], ...]
    edges: tuple[Edge, ...]
    ends: tuple[int, ...]
    joined: frozenset[int] = frozenset()

    def last(self, block: int) -> Instruction:
        return self.instructions[self.blocks[block][1] - 1]

    def meets(self, block: int) -> bool:
        """Whether the block is a meeting point, or a barrier."""
        return _meets(self.instructions[self.blocks[block][0]])

    def waits(self, block: int) -> bool:
        """Whether the block is a barrier of the block or of the whole warp, behind which all its lanes go on together."""
        return _waits(self.instructions[self.blocks[block][0]])

    def yields(self, block: int) -> bool:
        """Whether lanes let others go on at its end that wait for them."""
        return self.last(block).opcode == "YIELD"

    def whole_warp(self, block: int) -> bool:
        """Whether a jump that asks if lanes are together asks for all of a warp: its mask is a constant."""
        asked = re.search(r"BRA\.(?:DIV|CONV) (U?R\d+),", self.last(block).text)
        if asked is None:
            return False
        written = re.compile(rf"(?:@\S+ )?\S+ {asked[1]}, ")
        makers = (one for one in self.before(self.blocks[block][1] - 1, block) if written.match(one.text))
        maker = next(makers, None)
        return maker is not None and maker.text.endswith((" 0xffffffff", " -0x1"))

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

    @cached_property
    def made(self) -> dict[int, int]:
        """By meeting point, the block whose BSSY made it: that which names the place behind it."""
        behind = {self.instructions[past - 1].offset + 16: block for block, (_, past) in enumerate(self.blocks)}
        found = {}
        for block, span in enumerate(self.blocks):
            for n in range(*span):
                target = re.search(r"BSSY\S* B\d+, 0x([0-9a-f]+)", self.instructions[n].text)
                if target and (meeting := behind.get(int(target[1], 16))) is not None and self.meets(meeting):
                    found[meeting] = block
        return found

    @cached_property
    def narrow(self) -> frozenset[int]:
        """Blocks beside a call that divides 64 bits: they divide 32, and are taken where both operands need no more. The slow paths of
        other operations are called where operands are special; this one is called where they are not."""
        found = set()
        for edge in self.edges:
            if edge.kind == "call" and edge.target in self.dividing:
                at: int | None = edge.source
                while at is not None and len(self.successors[at]) < 2:
                    at = self.dominators[at]
                beside = self.successors[at] if at is not None else ()
                found |= {block for block in beside if not self.dominates(block, edge.source) and self._divides(block)}
        return frozenset(found)

    @cached_property
    def dividing(self) -> frozenset[int]:
        """The first blocks of callees that divide integers of 64 bits."""
        called = {edge.target for edge in self.edges if edge.kind == "call"}
        return frozenset(block for block in called if self._divides_long(block))

    def _divides(self, block: int) -> bool:
        """Whether integers of 32 bits are divided there."""
        return any(one.operation.startswith("I2F.U32.RP") for one in self.instructions[slice(*self.blocks[block])])

    def _divides_long(self, start: int) -> bool:
        """Whether a callee divides integers of 64 bits."""
        blocks = (self.instructions[slice(*self.blocks[block])] for block in self.reached(start))
        return any(one.operation.startswith("I2F.U64") for block in blocks for one in block)

    def without(self, ways: Collection[tuple[int, int]]) -> Graph:
        """The same graph, where lanes never go some ways from a block to another; nor from what is reached only by these."""
        edges = [
            edge for edge in self.edges if edge.kind not in ("next", "jump") or (edge.source, edge.target) not in ways
        ]
        onward: dict[int, list[int]] = {}
        for edge in edges:
            onward.setdefault(edge.source, []).append(edge.target)
        reached, waiting = {0}, [0]
        while waiting:
            further = {*onward.get(waiting.pop(), ())} - reached
            waiting += further
            reached |= further
        return replace(self, edges=tuple(edge for edge in edges if edge.source in reached))

    def reached(self, start: int) -> set[int]:
        """The blocks that ways from one lead to, and itself."""
        found, waiting = {start}, [start]
        while waiting:
            further = set(self.successors[waiting.pop()]) - found
            waiting += further
            found |= further
        return found

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """By block, where its threads go on: past a call, and not where only warps go whose lanes are apart."""
        found: list[list[int]] = [[] for _ in self.blocks]
        for edge in self.edges:
            if edge.kind in ("next", "jump"):
                found[edge.source].append(edge.target)
        return tuple(map(tuple, found))

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """By block, from where its threads come."""
        found: list[list[int]] = [[] for _ in self.blocks]
        for source, targets in enumerate(self.successors):
            for target in targets:
                found[target].append(source)
        return tuple(map(tuple, found))

    @cached_property
    def dominators(self) -> tuple[int | None, ...]:
        """By block, the nearest one through which all ways from the entry to it lead; None for the entry and for what it
        does not reach."""
        return _dominators(self.successors, 0)

    @cached_property
    def postdominators(self) -> tuple[int | None, ...]:
        """By block, the nearest one through which all ways from it to an end lead; None where there is none."""
        last = len(self.blocks)
        backwards = [list(sources) for sources in self.predecessors] + [[]]
        for block, targets in enumerate(self.successors):
            if block in self.ends or not targets:
                backwards[last].append(block)
        return tuple(None if n == last else n for n in _dominators(backwards, last)[:last])

    def dominates(self, one: int, other: int | None) -> bool:
        """Whether all ways from the entry to the other lead through the one."""
        while other is not None and other != one:
            other = self.dominators[other]
        return other == one

    def before(self, n: int, block: int) -> Iterator[Instruction]:
        """The instructions of a block before its n-th of the kernel, then those of the blocks that dominate it, the nearest first."""
        yield from reversed(self.instructions[self.blocks[block][0] : n])
        while (above := self.dominators[block]) is not None:
            yield from reversed(self.instructions[slice(*self.blocks[above])])
            block = above

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """Natural loops, inner ones first; without what only warps reach whose lanes are apart."""
        latches: dict[int, list[int]] = {}
        for source, targets in enumerate(self.successors):
            for target in targets:
                if (self.dominators[source] is not None or source == 0) and self.dominates(target, source):
                    latches.setdefault(target, []).append(source)
        found = []
        for header, sources in latches.items():
            body, waiting = {header}, list(sources)
            while waiting:
                block = waiting.pop()
                if block not in body:
                    body.add(block)
                    waiting += [one for one in self.predecessors[block] if one == 0 or self.dominators[one] is not None]
            found.append(Loop(header, tuple(sources), frozenset(body)))
        found.sort(key=lambda loop: len(loop.body))
        for n, loop in enumerate(found):
            if loop.header in self.joined:
                around = next(k for k in range(n + 1, len(found)) if loop.body < found[k].body)
                found[around] = replace(found[around], latches=(*found[around].latches, *loop.latches))
        return tuple(loop for loop in found if loop.header not in self.joined)

    def begins_with(self, around: Loop, loop: Loop) -> bool:
        """Whether every turn of a loop comes straight to another one inside, and only names meeting points before."""
        at = around.header
        while at != loop.header:
            names = all(one.opcode == "BSSY" for one in self.instructions[slice(*self.blocks[at])])
            if not names or len(self.successors[at]) != 1 or at not in around.body:
                return False
            at = self.successors[at][0]
        return loop.body < around.body

    def around(self, block: int) -> list[Loop]:
        """The natural loops around a block, inner ones first."""
        return [loop for loop in self.loops if block in loop.body]


@dataclass(frozen=True)
class Loop:
    """A natural loop: its first block, the blocks that jump back there, and all of its blocks."""

    header: int
    latches: tuple[int, ...]
    body: frozenset[int]


def _dominators(successors: Sequence[Sequence[int]], entry: int) -> tuple[int | None, ...]:
    """Immediate dominators (Cooper, Harvey, Kennedy 2001)."""
    order: list[int] = []
    seen = {entry}
    stack = [(entry, iter(successors[entry]))]
    while stack:
        block, targets = stack[-1]
        target = next((t for t in targets if t not in seen), None)
        if target is None:
            order.append(block)
            stack.pop()
        else:
            seen.add(target)
            stack.append((target, iter(successors[target])))
    number = {block: n for n, block in enumerate(order)}
    before: dict[int, list[int]] = {block: [] for block in order}
    for block in order:
        for target in successors[block]:
            before[target].append(block)
    found: dict[int, int] = {entry: entry}

    def meet(one: int, other: int) -> int:
        while one != other:
            while number[one] < number[other]:
                one = found[one]
            while number[other] < number[one]:
                other = found[other]
        return one

    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            known = [b for b in before[block] if b in found]
            new = known[0]
            for other in known[1:]:
                new = meet(new, other)
            if found.get(block) != new:
                found[block], changed = new, True
    return tuple(None if block == entry else found.get(block) for block in range(len(successors)))


def graph(instructions: Sequence[Instruction]) -> Graph:
    """The graph of what `disassemble` gave; the first instruction is the kernel's entry."""
    index = {instruction.offset: n for n, instruction in enumerate(instructions)}
    leaders = {0}
    for n, instruction in enumerate(instructions):
        if instruction.opcode in (*_JUMPS, *_ENDS, _CALL) or _meets(instruction):
            leaders.add(n + 1)
            leaders |= {index[target] for target in instruction.targets if target in index}
        if _meets(instruction):
            leaders.add(n)
        if collective(instruction) or instruction.opcode == "YIELD":
            leaders.add(n + 1)
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
        if ".CONV" in last.operation and block + 1 < len(blocks):
            edges.append(Edge(block, block + 1, "apart"))
        if last.opcode in _ENDS:
            ends.append(block)
    return _without_far_jumps(Graph(tuple(instructions), blocks, tuple(edges), tuple(ends)))


def _without_far_jumps(whole: Graph) -> Graph:
    """The same graph, where only calls that come back are calls: nvcc jumps far by CALL as well."""
    called = {edge.target for edge in whole.edges if edge.kind == "call"}
    gone = {target for target in called if not _returns(whole, target)}
    if not gone:
        return whole
    far = {edge.source for edge in whole.edges if edge.kind == "call" and edge.target in gone}
    edges = [replace(e, kind="jump") if e.kind == "call" and e.source in far else e for e in whole.edges]
    left = {block for block in far if not conditional(whole.last(block))}
    return replace(whole, edges=tuple(e for e in edges if not (e.kind == "next" and e.source in left)))


def _returns(whole: Graph, start: int) -> bool:
    """Whether what begins at a block comes back to whoever called it."""
    return any(whole.last(block).opcode == "RET" for block in whole.reached(start))


def _meets(instruction: Instruction) -> bool:
    return instruction.opcode == MEET or _waits(instruction)


def _waits(instruction: Instruction) -> bool:
    return instruction.operation.startswith(("BAR.SYNC", "BAR.RED")) or instruction.operation == "WARPSYNC.ALL"


def collective(instruction: Instruction) -> bool:
    """Whether a warp whose lanes are not together gathers there: each group of them executes it, what follows all together."""
    return instruction.operation.startswith("WARPSYNC.COLLECTIVE")


def conditional(instruction: Instruction) -> bool:
    """Whether some threads may not obey a jump or an end: it has a predicate, before it or among its operands."""
    if instruction.predicate or ".DIV" in instruction.operation:
        return True
    operands = instruction.text.split()[1:]
    return bool(operands) and operands[0].lstrip("!").startswith(("P", "UP"))
