"""Structured statements of random graphs: replays of the graph, and mutations that the verifier reports."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
import simtbed.llvmir.structure as structure_module
from simtbed.llvmir.graph import Graph, graph_of
from simtbed.llvmir.module import Block, Function, Instruction, Local
from simtbed.llvmir.replay import StructureError, verify_structure
from simtbed.llvmir.structure import Choose, Guard, Leave, Mark, Repeat, Statement, Tree, structure
from simtbed.llvmir.types import I1, VOID, IntType, UnsupportedError

GRAPHS = 200
NUMBER = IntType(32)


def random_function(seed: int) -> Function:
    """A function of up to 13 blocks with random targets, most of them close behind their source."""
    random = Random(seed)
    count = random.randrange(2, 14)
    blocks = []
    for number in range(count):
        targets = [
            random.randrange(1, count) if random.random() < 0.3 else min(count - 1, number + random.randrange(1, 4))
            for _ in range(2)
        ]
        kind = random.random()
        end = Instruction("br", "", VOID, (Local("c", I1),), targets=(str(targets[0]), str(targets[1])))
        if number == count - 1 or kind < 0.08:
            end = Instruction("ret", "", VOID)
        elif kind < 0.35:
            end = Instruction("br", "", VOID, targets=(str(targets[0]),))
        body = [Instruction("phi", f"p{number}", NUMBER)] if number and random.random() < 0.5 else []
        if random.random() < 0.8:
            body.append(Instruction("add", f"v{number}", NUMBER))
        blocks.append(Block(str(number), [*body, end]))
    return Function("f", (), VOID, blocks)


def structured(seed: int) -> tuple[Graph, Tree] | None:
    graph = graph_of(random_function(seed), lambda instruction: False)
    try:
        return graph, structure(graph)
    except UnsupportedError:
        return None


def mutations(body: Tree) -> Iterator[Tree]:
    """Yield the statements with one change each: exchanged arms, a missing mark or jump, an inverted test."""
    for number, statement in enumerate(body):
        before, after = body[:number], body[number + 1 :]

        def changed(new: Statement, before: Tree = before, after: Tree = after) -> Tree:
            return (*before, new, *after)

        match statement:
            case Choose(_, then, orelse):
                if then != orelse:
                    yield changed(replace(statement, then=orelse, orelse=then))
                yield from (changed(replace(statement, then=new)) for new in mutations(then))
                yield from (changed(replace(statement, orelse=new)) for new in mutations(orelse))
            case Guard(_, inner):
                yield changed(replace(statement, body=()))
                yield from (changed(replace(statement, body=new)) for new in mutations(inner))
            case Repeat():
                if statement.test:
                    yield changed(replace(statement, holds=not statement.holds))
                yield from (changed(replace(statement, body=new)) for new in mutations(statement.body))
            case Mark():
                yield (*before, *after)
            case Leave(again):
                yield changed(Leave(not again))


@pytest.mark.slow
@pytest.mark.parametrize("arms", [structure_module.MAX_ARMS, 2, 0])
def test_random_graphs_are_structured(arms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structure_module, "MAX_ARMS", arms)
    refused = 0
    for seed in range(GRAPHS):
        result = structured(seed)
        if result is None:
            refused += 1
        else:
            verify_structure(*result, seed=seed)
    assert 0 < refused < GRAPHS // 4


def test_verifier_reports_mutations() -> None:
    mutants = reported = 0
    for seed in range(300):
        result = structured(seed)
        for mutant in mutations(result[1]) if result else ():
            mutants += 1
            try:
                verify_structure(result[0], mutant, seed=seed)  # type: ignore[index]
            except StructureError:
                reported += 1
    assert mutants > 600
    assert (
        reported >= 0.98 * mutants
    )  # a jump at the end of its loop, or a mark on a path without one, may be superfluous


def test_irreducible_graphs_are_refused() -> None:
    jump = Instruction("br", "", VOID, (Local("c", I1),))
    blocks = [
        Block("entry", [replace(jump, targets=("a", "b"))]),
        Block("a", [Instruction("add", "x", NUMBER), replace(jump, targets=("b", "end"))]),
        Block("b", [Instruction("add", "y", NUMBER), replace(jump, targets=("a", "end"))]),
        Block("end", [Instruction("ret", "", VOID)]),
    ]
    with pytest.raises(UnsupportedError, match="irreducible control flow"):
        structure(graph_of(Function("f", (), VOID, blocks), lambda instruction: False))
