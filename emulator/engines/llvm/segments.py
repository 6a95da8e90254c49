"""Segments of a kernel that one warp executes at a time, and their registers."""

from collections.abc import Iterable, Iterator, Sequence

from ...ir import nodes as ir
from ...ir.names import elements
from ...ir.walk import registers, statements
from ...language.types import Array
from ...passes.barriers import holds_barrier

Node = ir.Stmt | ir.Expr


def assigning(stmt: ir.For) -> ir.Let:
    """Return the initialisation of the loop variable as a statement."""
    return ir.Let(stmt.var, stmt.start, stmt.span)


def tested(stmt: ir.For) -> tuple[ir.Expr, ...]:
    """Return the expressions in the test and the step of a counted loop, without its variable."""
    bounds = (stmt.stop, stmt.step, stmt.limit)
    return tuple(bound for bound in bounds if bound is not None and not isinstance(bound, int))


def segments(stmts: Sequence[ir.Stmt]) -> Iterator[list[Node]]:
    """Yield the segments generated for one warp at a time by `BlockEmitter`."""
    run: list[Node] = []
    for stmt in stmts:
        if not holds_barrier(stmt):
            run.append(stmt)
            continue
        if run:
            yield run
            run = []
        match stmt:
            case ir.If():
                yield [stmt.cond]
                yield from segments(stmt.then)
                yield from segments(stmt.orelse)
            case ir.While():
                yield from segments(stmt.setup)
                yield [stmt.cond]
                yield from segments(stmt.body)
            case ir.For():
                yield [assigning(stmt)]
                yield [stmt.var, *tested(stmt)]
                yield from segments(stmt.body)
            case ir.Frame():
                yield from segments(stmt.body)
            case ir.Let(value=ir.Barrier() as barrier, target=target):
                yield [barrier.value, *([target] if isinstance(target, ir.Reg) else [])]
                if isinstance(target, ir.Reg):
                    yield [target]
    if run:
        yield run


def mentioned(nodes: Iterable[Node]) -> list[str]:
    """Return the registers read or written, in order of appearance."""
    names: dict[str, None] = {}
    for node in nodes:
        if isinstance(node, ir.Stmt):
            for stmt in statements((node,)):
                names |= dict.fromkeys(r.name for r in registers(stmt))
                names |= dict.fromkeys(_targets(stmt))
        else:
            names |= dict.fromkeys([node.name] if isinstance(node, ir.Reg) else [])
            names |= dict.fromkeys(r.name for r in registers(node))
    return list(names)


def written(nodes: Iterable[Node]) -> set[str]:
    """Return the assigned registers."""
    stmts = tuple(node for node in nodes if isinstance(node, ir.Stmt))
    return {name for stmt in statements(stmts) for name in _targets(stmt)}


def _targets(stmt: ir.Stmt) -> Iterator[str]:
    match stmt:
        case ir.Let(target=ir.Reg() as target):
            yield target.name
        case ir.For(var=var):
            yield var.name
        case ir.Alloc(type=Array(space="register")):
            yield from elements(stmt.array, stmt.type.length)
