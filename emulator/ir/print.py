"""The IR as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from . import nodes as ir
from .effects import TABLE


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
    if type(stmt) in TABLE:
        yield _effect(stmt)
    match stmt:
        case ir.Let(target=None):
            yield _text(stmt.value)
        case ir.Let():
            assert stmt.target is not None
            yield f"{_text(stmt.target)}: {stmt.target.type} = {_text(stmt.value)}"
        case ir.Alloc():
            count = f" of {_text(stmt.count)}" if stmt.count is not None else ""
            yield f"alloc {stmt.array}: {stmt.type}{count}{f' = {stmt.values}' if stmt.values else ''}"
        case ir.If() | ir.While() | ir.For() | ir.Frame():
            yield from _control(stmt)
        case ir.Return(value=value):
            yield f"return{f' {_text(value)}' if value is not None else ''}"
        case ir.Assert():
            pieces = [
                repr(item) if isinstance(item, str) else _text(item) for item in stmt.items or (stmt.message,) if item
            ]
            yield ", ".join([f"assert {_text(stmt.cond)}", *pieces])
        case ir.Check():
            yield f"check {stmt.about} {_text(stmt.cond)}"
        case ir.HostCall():
            yield f"python {stmt.source}"
        case ir.Print():
            yield f"print {', '.join(repr(p) if isinstance(p, str) else _text(p) for p in stmt.items)}"
        case ir.Break() | ir.Continue():
            yield type(stmt).__name__.lower()


def _control(stmt: ir.If | ir.While | ir.For | ir.Frame) -> Iterator[str]:
    match stmt:
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
            limit = "" if stmt.limit is None else f" before {_text(stmt.limit)}"
            step = stmt.step if isinstance(stmt.step, int) else f"{'positive ' if stmt.rises else ''}{_text(stmt.step)}"
            yield f"{unroll}for {stmt.var.name}: {stmt.var.type} from {_text(stmt.start)} to {_text(stmt.stop)} by {step}{limit}"
            yield from _body(stmt.body, "  ")
        case ir.Frame():
            yield "frame"
            yield from _body(stmt.body, "  ")


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
        case ir.Component():
            return f"{_text(node.value)}.[{_text(node.index)}]"
        case ir.Extent():
            return f"len({node.array})"
        case ir.Within():
            dimensions = zip(node.index, node.extents, strict=True)
            inside = ", ".join(":" if i is None else f"{_text(i)} < {_text(n)}" for i, n in dimensions)
            return f"{_text(node.flat)} in {inside}"
        case ir.Defined():
            return f"defined {_text(node.value)}"
    if type(node) in TABLE:
        return _effect(node)
    raise TypeError(type(node))


def _effect(node: Any) -> str:
    """The text of an effect, by its row."""
    shown = {f.name: _field(getattr(node, f.name)) for f in fields(node)}
    ordering = [(f.name, f.default) for f in fields(node) if f.name in ("order", "scope", "lanes")]
    usual = all(getattr(node, name) == default for name, default in ordering)
    suffix = "" if usual else "".join(f" {getattr(node, name)}" for name, _ in ordering)
    remote = f" of block {shown['block']}" if getattr(node, "block", None) is not None else ""
    return TABLE[type(node)].text.format(**shown, ordering=suffix, remote=remote)


def _field(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(_field(item) for item in value)
    return _text(value) if isinstance(value, ir.Expr | ir.ArrayRef) else str(value)


def _all(nodes: tuple[Any, ...]) -> str:
    return ", ".join(_text(n) for n in nodes)
