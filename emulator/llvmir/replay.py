"""Verifier of structured statements: replays them and their control flow graph on the same random decisions."""

from collections.abc import Iterator
from random import Random

from .graph import Graph
from .structure import Choose, Clear, Finish, Guard, Leave, Mark, Move, Repeat, Run, Statement, Tree

PATHS = 64
"""Paths of each graph, in addition to those that cover every edge."""
MAX_BLOCKS = 400
"""Length of a path."""

Event = tuple[str, str]
"""A block and "", or the two blocks of an edge that assigns registers."""


class StructureError(AssertionError):
    """Raised where the statements differ from the graph: a defect of this package."""


def verify_structure(graph: Graph, body: Tree, seed: int = 0) -> None:
    """Raise StructureError at the first path that differs. The paths cover every edge that random paths reach."""
    random, counts = Random(seed), dict[Event, int]()
    names = [statement.block for statement in _statements(body) if isinstance(statement, Run)]
    written = set(names)
    expected = {name for name, node in graph.nodes.items() if node.targets or node.body}
    if len(names) != len(written) or not expected <= written:
        raise StructureError("a block is not written once")
    for path in range(PATHS):
        events, decisions = _path(graph, random, counts, path % 2 == 0)
        replayed = []
        for event in _Replay(graph, decisions).run(body):
            replayed.append(event)
            if len(replayed) == len(events):
                break
        if replayed != events:
            place = next(i for i, pair in enumerate(zip([*replayed, None], events, strict=False)) if pair[0] != pair[1])
            raise StructureError(f"path {path}: {events[place]} is expected at step {place}")


def _statements(body: Tree) -> Iterator[Statement]:
    for statement in body:
        yield statement
        match statement:
            case Choose(_, then, orelse):
                yield from _statements(then + orelse)
            case Guard(_, inner):
                yield from _statements(inner)
            case Repeat(_, setup, inner, _, _):
                yield from _statements(setup + inner)


def _path(graph: Graph, random: Random, counts: dict[Event, int], rare: bool) -> tuple[list[Event], list[bool]]:
    """Return the events of a path, and its decisions: of the edges taken least, or random ones."""
    events: list[Event] = []
    decisions: list[bool] = []
    name = next(iter(graph.nodes))
    while len(events) < MAX_BLOCKS:
        node = graph.nodes[name]
        events.append((name, ""))
        if not node.targets:
            break
        target = node.targets[0]
        if len(node.targets) == 2:
            first, second = (counts.get((name, t), 0) for t in node.targets)
            holds = first < second if rare and first != second else random.random() < 0.5
            decisions.append(holds)
            target = node.targets[0 if holds else 1]
        counts[name, target] = counts.get((name, target), 0) + 1
        if graph.nodes[target].phis:
            events.append((name, target))
        name = target
    return events, decisions


class _Replay:
    """An interpreter of structured statements on given decisions."""

    def __init__(self, graph: Graph, decisions: list[bool]) -> None:
        self.graph, self.decisions = graph, iter(decisions)
        self.flags: dict[str, bool] = {}
        self.jump = ""  # "break", "continue", "return"

    def run(self, body: Tree) -> Iterator[Event]:
        for statement in body:
            match statement:
                case Run(block) | Finish(block):
                    yield block, ""
                    if isinstance(statement, Finish) and self.graph.nodes[block].body:
                        raise StructureError(f"{block} has instructions")
                    self.jump = "return" if isinstance(statement, Finish) else ""
                case Move(source, target):
                    yield source, target
                case Clear(targets):
                    self.flags |= dict.fromkeys(targets, False)
                case Mark(target, unless):
                    self.flags[target] = not any(self.flags[other] for other in unless)
                case Guard(target, inner):
                    if self.flags[target]:
                        yield from self.run(inner)
                case Choose(_, then, orelse):
                    yield from self.run(then if self.decide() else orelse)
                case Repeat():
                    yield from self.repeat(statement)
                case Leave(again):
                    self.jump = "continue" if again else "break"
            if self.jump:
                return

    def decide(self) -> bool:
        decision = next(self.decisions, None)
        if decision is None:
            raise StructureError("a path is longer than the graph's")
        return decision

    def repeat(self, loop: Repeat) -> Iterator[Event]:
        while True:
            yield from self.run(loop.setup)
            if not self.jump and loop.test and self.decide() is not loop.holds:
                return
            if not self.jump:
                yield from self.run(loop.body)
            if self.jump == "continue":
                self.jump = ""
            elif self.jump:
                self.jump = "" if self.jump == "break" else self.jump
                return
