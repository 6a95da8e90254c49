"""The IR as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import nodes as ir


def show(program: ir.Program) -> str:
    """The whole program, two spaces a level, one statement a line."""
    return "\n".join(line for f in (*program.functions, program.kernel) for line in _function(f)) + "\n"


def _function(function: ir.Function) -> Iterator[str]:
    params = ", ".join(f"{p.name}: {p.type}" for p in function.params)
    yield f"{function.name}({params}){f' -> {function.result}' if function.result else ''}"
    yield from _body(function.body, "  ")


def _body(body: ir.Body, lead: str) -> Iterator[str]:
    for stmt in body:
        for line in _statement(stmt):
            yield lead + line


def _statement(stmt: ir.Stmt) -> Iterator[str]:
    match stmt:
        case ir.Let(target=None):
            yield _text(stmt.value)
        case ir.Let():
            assert stmt.target is not None
            yield f"{_text(stmt.target)}: {stmt.target.type} = {_text(stmt.value)}"
        case ir.Store():
            order = "" if stmt.order == "weak" else f" {stmt.order} {stmt.scope}"
            yield f"{stmt.array}[{_text(stmt.index)}] = {_text(stmt.value)}{order}"
        case ir.Alloc():
            count = f" of {_text(stmt.count)}" if stmt.count is not None else ""
            yield f"alloc {stmt.array}: {stmt.type}{count}{f' = {stmt.values}' if stmt.values else ''}"
        case ir.If():
            yield f"if {_text(stmt.cond)}"
            yield from _body(stmt.then, "  ")
            if stmt.orelse:
                yield "else"
                yield from _body(stmt.orelse, "  ")
        case ir.While():
            yield "while"
            yield from _body(stmt.setup, "  ")
            yield f"  test {_text(stmt.cond)}"
            yield "do"
            yield from _body(stmt.body, "  ")
        case ir.For():
            unroll = "unroll " if stmt.unroll else ""
            step = stmt.step if isinstance(stmt.step, int) else f"{'positive ' if stmt.rises else ''}{_text(stmt.step)}"
            yield f"{unroll}for {stmt.var.name}: {stmt.var.type} from {_text(stmt.start)} to {_text(stmt.stop)} by {step}"
            yield from _body(stmt.body, "  ")
        case ir.Frame():
            yield "frame"
            yield from _body(stmt.body, "  ")
        case ir.Return(value=value):
            yield f"return{f' {_text(value)}' if value is not None else ''}"
        case ir.WarpBarrier():
            yield f"syncwarp {_text(stmt.mask)}"
        case ir.Fence():
            yield f"fence {stmt.scope}"
        case ir.AsyncCommit():
            yield "commit copies"
        case ir.AsyncWait():
            yield f"wait for copies but {stmt.pending}"
        case ir.Sleep():
            yield f"sleep {_text(stmt.time)}"
        case ir.Assert():
            yield f"assert {_text(stmt.cond)}{f', {stmt.message!r}' if stmt.message else ''}"
        case ir.Note():
            yield f"note {stmt.about} {_text(stmt.value)}"
        case ir.Check():
            yield f"check {stmt.about} {_text(stmt.cond)}"
        case ir.Print():
            yield f"print {', '.join(repr(p) if isinstance(p, str) else _text(p) for p in stmt.parts)}"
        case ir.Break() | ir.Continue():
            yield type(stmt).__name__.lower()


def _text(node: Any) -> str:
    match node:
        case ir.Const():
            return f"{node.value}:{node.type}"
        case ir.Reg() | ir.Special():
            return node.name
        case ir.ArrayRef():
            return f"&{node.name}"
        case ir.Item():
            return f"{node.array}[{_text(node.index)}]"
        case ir.Op():
            return f"{node.name}({_all(node.args)})"
        case ir.Pack():
            return f"{node.type}({_all(node.args)})"
        case ir.Part():
            return f"{_text(node.value)}.[{_text(node.index)}]"
        case ir.Extent():
            return f"len({node.array})"
        case ir.Within():
            dimensions = zip(node.index, node.extents, strict=True)
            inside = ", ".join(":" if i is None else f"{_text(i)} < {_text(n)}" for i, n in dimensions)
            return f"{_text(node.flat)} in {inside}"
        case ir.Defined():
            return f"defined {_text(node.value)}"
        case ir.Load():
            order = "" if node.order == "weak" else f" {node.order} {node.scope}"
            return f"load {node.array}[{_text(node.index)}]{order}"
        case ir.Atomic():
            return f"atomic {node.op} {node.array}[{_text(node.index)}], {_text(node.value)}{_ordering(node)}"
        case ir.CompareSwap():
            compared = f"{_text(node.expected)}, {_text(node.value)}"
            return f"compare_swap {node.array}[{_text(node.index)}], {compared}{_ordering(node)}"
        case ir.Shuffle():
            return f"shuffle {node.mode} {_text(node.value)}, {_text(node.lane)}, width {node.width}, mask {_text(node.mask)}"
        case ir.Vote():
            return f"vote {node.mode} {_text(node.value)}, mask {_text(node.mask)}"
        case ir.Clock():
            return f"clock {node.type}"
        case ir.Barrier():
            return f"barrier {node.mode}{f' {_text(node.value)}' if node.mode not in ('sync', 'grid') else ''}"
        case ir.Call():
            return f"call {node.function}({_all(node.args)})"
    raise TypeError(type(node))


def _ordering(node: ir.Atomic | ir.CompareSwap) -> str:
    """The order and the scope where they are not the usual ones."""
    return "" if (node.order, node.scope) == ("relaxed", "device") else f" {node.order} {node.scope}"


def _all(nodes: tuple[Any, ...]) -> str:
    return ", ".join(_text(n) for n in nodes)
