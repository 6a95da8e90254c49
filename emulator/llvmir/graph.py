"""Control flow graph of a function: blocks with two successors at most, dominators, natural loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from ..dominators import immediate_dominators, reverse_postorder
from .module import Block, Function, Instruction, Local, Number, Operand
from .source_scopes import Scope, SourceScopes
from .types import I1, UnsupportedError


@dataclass(eq=False)
class Node:
    """A basic block. end: its `ret`, `unreachable` or `br`. targets: none, one or two different blocks."""

    name: str
    phis: list[Instruction]
    body: list[Instruction]
    end: Instruction
    targets: tuple[str, ...] = ()

    @property
    def condition(self) -> Operand:
        """The condition of a block with two targets; the first is the one where it holds."""
        return self.end.operands[0]


@dataclass(eq=False)
class Loop:
    """A natural loop. parent: the loop around it."""

    header: str
    blocks: set[str]
    parent: Loop | None = None


@dataclass
class Graph:
    """nodes: the reachable blocks in reverse postorder, the entry first. is_behind: whether an instruction is behind the loop of the
    source with a number."""

    nodes: Mapping[str, Node]
    predecessors: Mapping[str, list[str]] = field(default_factory=dict)
    is_behind: Callable[[int, Instruction], bool] = field(default=lambda loop, instruction: True)

    @cached_property
    def order(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.nodes)}

    @cached_property
    def immediate_dominators(self) -> dict[str, str]:
        """The immediate dominator of each block; the entry's is itself."""
        return immediate_dominators([*self.nodes], self.predecessors)

    def dominates(self, a: str, b: str) -> bool:
        while self.order[b] > self.order[a]:
            b = self.immediate_dominators[b]
        return a == b

    @cached_property
    def loops(self) -> dict[str, Loop]:
        """The natural loops by header. Raises UnsupportedError for a cycle with several entries."""
        loops: dict[str, Loop] = {}
        for name, node in self.nodes.items():
            for target in node.targets:
                if self.order[target] > self.order[name]:
                    continue
                if not self.dominates(target, name):
                    raise UnsupportedError("irreducible control flow is not supported: a loop has several entries")
                loop = loops.setdefault(target, Loop(target, {target}))
                work = [name]
                while work:
                    block = work.pop()
                    if block not in loop.blocks:
                        loop.blocks.add(block)
                        work += self.predecessors[block]
        for loop in loops.values():
            self._add_exits(loop, self.number_of(loop))
        for loop in loops.values():
            around = [o for o in loops.values() if o is not loop and loop.header in o.blocks]
            loop.parent = min(around, key=lambda o: len(o.blocks), default=None)
        return loops

    def number_of(self, loop: Loop) -> int:
        """Return the number of the loop in the source; -1 if it is unknown."""
        return next(self.nodes[name].end.loop for name in self.predecessors[loop.header] if name in loop.blocks)

    def _add_exits(self, loop: Loop, number: int) -> None:
        """Add the blocks that the source has in the body of a loop and that lead out of it, such as those before a `break`.

        The lanes that leave execute them in their own iteration.
        """
        pending = [target for name in loop.blocks for target in self.nodes[name].targets]
        while pending:
            name = pending.pop()
            node = self.nodes[name]
            if name in loop.blocks or not node.body or self.is_behind(number, node.body[0]):
                continue
            if all(source in loop.blocks for source in self.predecessors[name]):
                loop.blocks.add(name)
                pending += node.targets

    def loop_of(self, name: str) -> Loop | None:
        """The innermost loop of a block."""
        return self.innermost.get(name)

    @cached_property
    def innermost(self) -> dict[str, Loop]:
        result: dict[str, Loop] = {}
        for loop in sorted(self.loops.values(), key=lambda loop: -len(loop.blocks)):
            result |= dict.fromkeys(loop.blocks, loop)
        return result


def graph_of(
    function: Function,
    is_removed: Callable[[Instruction], bool],
    decided: Mapping[str, bool] | None = None,
    scopes: SourceScopes | None = None,
) -> Graph:
    """Return the graph of a function without some instructions. A switch becomes a chain of comparisons.

    decided: conditions of blocks that are constant: such a branch is a jump. scopes: of the source, where blocks that leave a loop from
    its body remain in it.
    Raises UnsupportedError for other terminators.
    """
    nodes: dict[str, Node] = {}
    is_behind = _is_behind(graph_of(function, is_removed, decided), scopes) if scopes is not None else None
    numbers = {block.instructions[-1].loop for block in function.blocks} - {-1}
    renamed: dict[tuple[str, str], list[str]] = {}  # (block, target) -> the blocks that jump to the target in its place
    for block in function.blocks:
        *body, end = [one for one in block.instructions if not is_removed(one)]
        phis = [one for one in body if one.op == "phi"]
        node = Node(block.name, phis, [one for one in body if one.op != "phi"], end, tuple(dict.fromkeys(end.targets)))
        nodes[block.name] = node
        if is_behind is not None and end.op != "switch":
            _split_behind_loops(node, nodes, renamed, [partial(is_behind, number) for number in numbers])
        if end.op == "switch":
            _expand_switch(node, nodes, renamed)
        elif end.op not in ("br", "ret", "unreachable"):
            raise UnsupportedError(f"the instruction {end.op} is not supported")
    for name, holds in (decided or {}).items():
        node = nodes[name]
        node.targets = (node.targets[0 if holds else 1],)
    for node in nodes.values():
        node.phis = [_with_sources(phi, node.name, renamed) for phi in node.phis]
    _return_early(nodes)
    graph = _reachable(nodes, function.blocks[0])
    if is_behind is not None:
        graph.is_behind = is_behind
    return graph


def _is_behind(graph: Graph, scopes: SourceScopes) -> Callable[[int, Instruction], bool]:
    """Return the function `Graph.is_behind` of a graph whose loops are those of the jumps alone."""
    bodies: dict[int, frozenset[Scope]] = {}
    for loop in graph.loops.values():
        number = graph.number_of(loop)
        repeated = (one for name in loop.blocks for one in (*graph.nodes[name].body, graph.nodes[name].end))
        bodies[number] = bodies.get(number, frozenset()) | scopes.of_body(number, repeated)
    return lambda number, instruction: bodies.get(number, frozenset()).isdisjoint(scopes.around(instruction.position))


def _split_behind_loops(
    node: Node,
    nodes: dict[str, Node],
    renamed: dict[tuple[str, str], list[str]],
    tests: Iterable[Callable[[Instruction], bool]],
) -> None:
    """Begin a block at the first instruction behind each loop that contains those before it."""
    places = set()
    for is_behind in tests:
        inside = [n for n, instruction in enumerate(node.body) if not is_behind(instruction)]
        if inside and inside[-1] + 1 < len(node.body):
            places.add(inside[-1] + 1)
    last = node
    for place in sorted(places, reverse=True):
        behind = Node(f"{node.name}.behind{place}", [], node.body[place:], node.end, node.targets)
        nodes[behind.name] = behind
        if last is node:
            last = behind
            renamed |= {(node.name, target): [behind.name] for target in node.targets}
        node.body = node.body[:place]
        node.end, node.targets = Instruction("br", "", node.end.type, position=node.end.position), (behind.name,)


def _return_early(nodes: Mapping[str, Node]) -> None:
    """Return in empty blocks that jump to a return: threads that have returned wait at no barrier."""
    for node in nodes.values():
        if node.phis or node.body or len(node.targets) != 1:
            continue
        target = nodes[node.targets[0]]
        if target.targets or target.body:
            continue
        incoming = {phi.name: dict(phi.incoming) for phi in target.phis}
        operands = tuple(
            incoming[one.name][node.name] if isinstance(one, Local) and one.name in incoming else one
            for one in target.end.operands
        )
        node.end, node.targets = replace(target.end, operands=operands, position=node.end.position), ()


def _expand_switch(node: Node, nodes: dict[str, Node], renamed: dict[tuple[str, str], list[str]]) -> None:
    """Replace a switch by blocks with one comparison each."""
    switch = node.end
    default, *targets = switch.targets
    last, current = len(targets) - 1, node
    sources: dict[str, list[str]] = {}
    jump = Instruction("br", "", switch.type, position=switch.position)
    if not targets:
        node.end, node.targets = jump, (default,)
        return
    for number, (case, target) in enumerate(zip(switch.cases, targets, strict=True)):
        (value,) = switch.operands
        flag = Local(f"{node.name}.equal{number}", I1)
        operands = (value, Number(case, value.type))
        current.body.append(Instruction("icmp", flag.name, I1, operands, switch.position, word="eq"))
        rest = default if number == last else f"{node.name}.case{number + 1}"
        current.end = replace(jump, operands=(flag,))
        current.targets = tuple(dict.fromkeys((target, rest)))
        sources.setdefault(target, []).append(current.name)
        if number == last:
            sources.setdefault(default, []).append(current.name)
        else:
            nodes[rest] = current = Node(rest, [], [], jump)
    renamed |= {(node.name, target): list(dict.fromkeys(blocks)) for target, blocks in sources.items()}


def _with_sources(phi: Instruction, block: str, renamed: Mapping[tuple[str, str], list[str]]) -> Instruction:
    incoming = dict(phi.incoming)
    for source in list(incoming):
        if (source, block) in renamed:
            value = incoming.pop(source)
            incoming |= dict.fromkeys(renamed[source, block], value)
    return replace(phi, incoming=tuple(incoming.items()))


def _reachable(nodes: Mapping[str, Node], entry: Block) -> Graph:
    """Return the graph of the blocks reached from the entry."""
    order = reverse_postorder({name: node.targets for name, node in nodes.items()}, entry.name)
    ordered = {name: nodes[name] for name in order}
    predecessors: dict[str, list[str]] = {name: [] for name in ordered}
    for name, node in ordered.items():
        for target in node.targets:
            predecessors[target].append(name)
    for name, node in ordered.items():
        node.phis = [_from_predecessors(phi, predecessors[name]) for phi in node.phis]
    return Graph(ordered, predecessors)


def _from_predecessors(phi: Instruction, predecessors: list[str]) -> Instruction:
    return replace(phi, incoming=tuple((source, value) for source, value in phi.incoming if source in predecessors))
