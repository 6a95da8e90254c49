"""Structured statements of a control flow graph: its dominator tree, with flags for jumps over code.

Each block is written once, inside the block that dominates it immediately; a block outside a loop whose dominator is inside is
written after the loop (its owner is the loop). A block with several predecessors is written after the branches that reach it, in
reverse postorder. All jumps lead to the end of the statements that they are in: `Mark` sets the flag of the target, and `Guard` runs the
target where its flag is set. A flag is used only where several targets are possible; other marks are removed. Blocks that only return
are copied to each jump.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .graph import Graph, Loop


@dataclass(frozen=True)
class Run:
    """The instructions of a block, without its end."""

    block: str


@dataclass(frozen=True)
class Move:
    """The assignment of the phis of `target` for the edge from `source`."""

    source: str
    target: str


@dataclass(frozen=True)
class Clear:
    """The flags of blocks become false."""

    targets: tuple[str, ...]


@dataclass(frozen=True)
class Mark:
    """The flag of a block becomes true; with `unless`, true where none of those flags is."""

    target: str
    unless: tuple[str, ...] = ()


@dataclass(frozen=True)
class Guard:
    """Statements that run where the flag of a block is set."""

    target: str
    body: Tree


@dataclass(frozen=True)
class Choose:
    """A branch on the condition of a block."""

    block: str
    then: Tree
    orelse: Tree


@dataclass(frozen=True)
class Repeat:
    """A loop: setup, then leave it where the condition of the header is not `holds`, then body. test: whether there is a test."""

    header: str
    setup: Tree
    body: Tree
    test: bool
    holds: bool = True


@dataclass(frozen=True)
class Leave:
    """A break (`again` false) or continue of the innermost loop."""

    again: bool


@dataclass(frozen=True)
class Finish:
    """The `ret` or `unreachable` of a block."""

    block: str


Statement = Run | Move | Clear | Mark | Guard | Choose | Repeat | Leave | Finish
Tree = tuple[Statement, ...]


@dataclass
class _Around:
    """The loop whose body is written. exits: targets of its breaks."""

    loop: Loop | None = None
    exits: set[str] = field(default_factory=set)


def structure(graph: Graph) -> Tree:
    """Return the statements of a graph. Raises UnsupportedError for irreducible graphs."""
    structurer = _Structurer(graph)
    out: list[Statement] = []
    pending = structurer.region(next(iter(graph.nodes)), _Around(), out)
    assert not pending, pending
    return _pruned(out, structurer.flagged)


MAX_ARMS = 24
"""Branches inside each other; a block inside more is written behind them, under a flag."""


class _Structurer:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.flagged: set[str] = set()
        self.owned: dict[str, list[str]] = {name: [] for name in graph.nodes}
        self.after_loop: dict[str, list[str]] = {header: [] for header in graph.loops}
        self.is_merge = {name: self._forward_edges(name) > 1 for name in graph.nodes}
        owners = self._owners()
        for name, dominator in owners.items():
            left = self._outermost_left(dominator, name)
            if not self.is_leaf(name):
                (self.owned[dominator] if left is None else self.after_loop[left.header]).append(name)
        for names in (*self.owned.values(), *self.after_loop.values()):
            names.sort(key=graph.order.__getitem__)

    def _owners(self) -> dict[str, str]:
        """Return the block in which each block is written: its immediate dominator; for a block inside too many branches one further
        out, behind which it runs under a flag."""
        entry, *rest = self.graph.nodes
        owners: dict[str, str] = {}
        moved = False
        bases = {entry: (entry, 0)}  # by block: the block further out, and the branches between
        dominators = self.graph.immediate_dominators
        for name in rest:
            dominator = dominators[name]
            base, depth = bases[dominator]
            loop = self.graph.loop_of(name)
            straight = dominator == base and len(self.graph.nodes[base].targets) == 1
            if straight or self.graph.loop_of(base) is not loop:
                base, depth = name, 0
            elif not self.is_merge[name] and len(self.graph.nodes[dominator].targets) > 1:
                depth += 1
            owners[name] = dominator
            if depth > MAX_ARMS and base != name:
                owners[name], self.is_merge[name], depth = base, True, 0
                moved = True
            bases[name] = base, depth
        while moved:  # the jumps of a moved block must reach blocks that are written behind it
            moved = False
            for name in rest:
                own = owner = owners[name]
                for source in self.graph.predecessors[name]:
                    while self.graph.order[source] < self.graph.order[name] and not _is_inside(source, owner, owners):
                        owner = owners[owner]
                if owner != own:
                    owners[name], self.is_merge[name], moved = owner, True, True
        return owners

    def _forward_edges(self, name: str) -> int:
        return sum(self.graph.order[p] < self.graph.order[name] for p in self.graph.predecessors[name])

    def _outermost_left(self, source: str, target: str) -> Loop | None:
        """The outermost loop with one block and without the other."""
        loop, left = self.graph.loop_of(source), None
        while loop is not None and target not in loop.blocks:
            loop, left = loop.parent, loop
        return left

    def is_leaf(self, name: str) -> bool:
        """Whether a block only returns."""
        node = self.graph.nodes[name]
        return not node.targets and not node.body

    def moves(self, source: str, target: str) -> list[Statement]:
        return [Move(source, target)] if self.graph.nodes[target].phis else []

    # -------------------------------------------------------------- blocks
    def region(self, name: str, around: _Around, out: list[Statement]) -> set[str]:
        """Write a block and those it owns. Return the targets of the jumps to the end of these statements."""
        while True:
            loop = self.graph.loops.get(name)
            if loop is not None and around.loop is not loop:
                children = self.after_loop[name]
                out.append(Clear(tuple(children)))
                pending, tail = self.loop(loop, around, out), None
            else:
                children = [child for child in self.owned[name] if self.is_merge[child]]
                out += [Clear(tuple(children)), Run(name)]
                pending, tail = self.end(name, around, out, bool(children))
            if tail is None:
                pending, tail = self.sequence(children, pending, around, out)
            if tail is None:
                return pending
            name = tail

    def sequence(
        self, children: Iterable[str], pending: set[str], around: _Around, out: list[Statement]
    ) -> tuple[set[str], str | None]:
        """Write the blocks that jumps reached. Return the targets of jumps further on. The last block, where nothing else is
        reached, is returned to be written next."""
        rest = list(children)
        while rest:
            child = rest.pop(0)
            if child not in pending:
                continue
            if pending == {child}:
                if not rest:
                    return set(), child
                pending = self.region(child, around, out)
            else:
                body: list[Statement] = []
                targets_of_body = self.region(child, around, body)
                self.flagged.add(child)
                out.append(Guard(child, tuple(body)))
                pending = (pending - {child}) | targets_of_body
        return pending, None

    def end(self, name: str, around: _Around, out: list[Statement], merges: bool) -> tuple[set[str], str | None]:
        """Write the end of a block. Return the targets of jumps, and a block to be written next in place of them."""
        node = self.graph.nodes[name]
        if not node.targets:
            out.append(Finish(name))
            return set(), None
        if len(node.targets) == 1:
            return self.jump(name, node.targets[0], around, out, True)
        arms: tuple[list[Statement], list[Statement]] = ([], [])
        if not merges:  # the arm that does not end here continues behind the other one
            for number, target in enumerate(node.targets):
                if self._ends(target, around):
                    self.jump(name, target, around, arms[number], False)
                    out.append(Choose(name, tuple(arms[0]), tuple(arms[1])))
                    return self.jump(name, node.targets[1 - number], around, out, True)
        targets_of_body = [self.jump(name, t, around, arm, False)[0] for t, arm in zip(node.targets, arms, strict=True)]
        if not targets_of_body[0]:
            out += [Choose(name, tuple(arms[0]), ()), *arms[1]]
        elif not targets_of_body[1]:
            out += [Choose(name, (), tuple(arms[1])), *arms[0]]
        else:
            out.append(Choose(name, tuple(arms[0]), tuple(arms[1])))
        return targets_of_body[0] | targets_of_body[1], None

    def _ends(self, target: str, around: _Around) -> bool:
        """Whether a jump to a block leaves the loop, its iteration or the function."""
        return self.is_leaf(target) or (
            around.loop is not None and (target == around.loop.header or target not in around.loop.blocks)
        )

    def jump(
        self, source: str, target: str, around: _Around, out: list[Statement], last: bool
    ) -> tuple[set[str], str | None]:
        """Write a jump. Return as `end` does. last: whether a block with one predecessor may be written next."""
        out += self.moves(source, target)
        if self.is_leaf(target):
            out.append(Finish(target))
            return set(), None
        if self._ends(target, around):
            assert around.loop is not None
            again = target == around.loop.header
            if not again:
                around.exits.add(target)
                out.append(Mark(target))
            out.append(Leave(again))
            return set(), None
        if not self.is_merge[target] and target in self.owned[source]:
            return (set(), target) if last else (self.region(target, around, out), None)
        out.append(Mark(target))
        return {target}, None

    # -------------------------------------------------------------- loops
    def loop(self, loop: Loop, around: _Around, out: list[Statement]) -> set[str]:
        """Write a loop. Return the targets of the jumps behind it."""
        inner = _Around(loop)
        header = loop.header
        merges = [child for child in self.owned[header] if self.is_merge[child]]
        setup: list[Statement] = [Clear((header, *merges)), Run(header)]
        behind: list[Statement] = []
        body: list[Statement] = []
        targets = self.graph.nodes[header].targets
        exit_target = next((t for t in targets if t not in loop.blocks), None)
        tested = False
        if len(targets) == 2 and exit_target is not None and targets[0] != targets[1]:
            inner_target = next(t for t in targets if t != exit_target)
            if inner_target in loop.blocks:
                tested = self._tested(loop, inner_target, exit_target, inner, merges, body, behind)
        if not tested:
            inner, body = _Around(loop), []
            pending = self.region(header, inner, body)
            assert not pending, pending
            body, setup = [Clear((header,)), *body], []
        holds = not tested or targets[1] == exit_target
        out += [Repeat(header, tuple(setup), tuple(body), tested, holds), *behind]
        if tested and exit_target is not None and not self.is_leaf(exit_target):
            inner.exits.add(exit_target)
        return self.leave(inner.exits, around, out)

    def _tested(
        self, loop: Loop, inner_target: str, exit_target: str, inner: _Around, merges: list[str], body: list[Statement],
        behind: list[Statement],
    ) -> bool:  # fmt: skip
        """Write the body of a loop whose header decides whether it ends. Return False where the edge that leaves it must be in the
        loop, since other jumps leave it too and the edge assigns registers or returns."""
        flagged = set(self.flagged)
        pending, tail = self.jump(loop.header, inner_target, inner, body, False)
        pending, tail = self.sequence(merges, pending, inner, body)
        if tail is not None:
            pending = self.region(tail, inner, body)
        assert not pending, pending
        other_exits = inner.exits - {exit_target}
        moves = self.moves(loop.header, exit_target)
        if inner.exits and (moves or self.is_leaf(exit_target)):
            self.flagged = flagged
            return False
        behind += moves
        if self.is_leaf(exit_target):
            behind.append(Finish(exit_target))
        else:
            behind.append(Mark(exit_target, tuple(sorted(other_exits))))
            self.flagged |= other_exits
        return True

    def leave(self, exits: set[str], around: _Around, out: list[Statement]) -> set[str]:
        """Continue the jumps out of a loop that lead further than the statements behind it."""
        pending = set(exits)
        for target in sorted(exits, key=self.graph.order.__getitem__):
            if around.loop is None or not self._ends(target, around):
                continue
            again = target == around.loop.header
            if not again:
                around.exits.add(target)
            if pending == {target}:
                out.append(Leave(again))
                return set()
            self.flagged.add(target)
            out.append(Guard(target, (Leave(again),)))
            pending.discard(target)
        return pending


def _is_inside(block: str, outer: str, owners: Mapping[str, str]) -> bool:
    """Whether a block is another one, or is written inside it."""
    while block != outer and block in owners:
        block = owners[block]
    return block == outer


# ------------------------------------------------------------------ removal of statements without an effect
def _pruned(body: Iterable[Statement], flagged: set[str]) -> Tree:
    """Remove the marks of unused flags, and a `continue` at the end of a loop."""
    out: list[Statement] = []
    for statement in body:
        match statement:
            case Clear(targets):
                if used := tuple(t for t in targets if t in flagged):
                    out.append(Clear(used))
            case Mark(target):
                if target in flagged:
                    out.append(statement)
            case Guard(target, inner):
                out.append(Guard(target, _pruned(inner, flagged)))
            case Choose(block, then, orelse):
                out.append(Choose(block, _pruned(then, flagged), _pruned(orelse, flagged)))
            case Repeat(header, setup, inner, test, holds):
                rest = _without_continue(_pruned(inner, flagged))
                out.append(Repeat(header, _pruned(setup, flagged), rest, test, holds))
            case _:
                out.append(statement)
    return tuple(out)


def _without_continue(body: Tree) -> Tree:
    """Remove jumps to the next iteration at the end of a loop's body."""
    while body and body[-1] == Leave(again=True):
        body = body[:-1]
    match body[-1] if body else None:
        case Choose(block, then, orelse):
            return (*body[:-1], Choose(block, _without_continue(then), _without_continue(orelse)))
        case Guard(target, inner):
            return (*body[:-1], Guard(target, _without_continue(inner)))
    return body
