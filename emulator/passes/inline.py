"""Inlining of device functions. The span of an inlined statement lists the calls it was reached through."""

from dataclasses import replace
from typing import Any

from ..ir import nodes as ir
from ..ir.names import component, in_call
from ..ir.walk import map_bodies, rewrite, rewrite_operands, statements
from ..language.types import Results


def inline(program: ir.Program) -> ir.Program:
    """The program as one function without calls."""
    inliner = _Inliner({f.name: f for f in program.functions})
    return ir.Program(replace(program.kernel, body=inliner.body(program.kernel.body)), ())


class _Inliner:
    def __init__(self, functions: dict[str, ir.Function]) -> None:
        self.functions = functions
        self.calls = 0

    def body(self, body: ir.Body) -> ir.Body:
        result: list[ir.Stmt] = []
        for stmt in body:
            if isinstance(stmt, ir.Let) and isinstance(stmt.value, ir.Call):
                result += self.call(stmt, stmt.value)
            else:
                result.append(map_bodies(rewrite_operands(stmt, _split_results), self.body))
        return tuple(result)

    def call(self, let: ir.Let, call: ir.Call) -> list[ir.Stmt]:
        call = rewrite(call, _split_results)
        callee = self.functions[call.function]
        self.calls += 1
        number = self.calls
        arrays = {p.name: a.name for p, a in zip(callee.params, call.args, strict=True) if isinstance(a, ir.ArrayRef)}
        own = {s.array for s in statements(callee.body) if isinstance(s, ir.Alloc)}

        def inlined(name: str) -> str:
            return in_call(name, callee.name, number)

        def array(name: str) -> str:
            return arrays.get(name, inlined(name) if name in own else name)

        def change(node: Any) -> Any:
            updates: dict[str, Any] = {"span": node.span.inside(call.span)}
            if isinstance(node, ir.Reg):
                updates["name"] = inlined(node.name)
            elif hasattr(node, "array"):
                updates["array"] = array(node.array)
            elif isinstance(node, ir.ArrayRef):
                updates["name"] = array(node.name)
            return replace(node, **updates)

        body = tuple(rewrite(s, change) for s in callee.body)
        result: list[ir.Stmt] = []
        for param, arg in zip(callee.params, call.args, strict=True):
            if not isinstance(arg, ir.ArrayRef):
                result.append(ir.Let(ir.Reg(inlined(param.name), arg.type, arg.span), arg, arg.span))
        returns = [s for s in statements(body) if isinstance(s, ir.Return)]
        if returns and not (len(returns) == 1 and returns[0] is body[-1]):
            framed = self.body(_returning(body, let.target))
            return [*result, ir.Frame(framed, call.span)]
        if returns:
            body = (*body[:-1], *_result(returns[0], let.target))
        return result + list(self.body(body))


def _split_results(node: Any) -> Any:
    """Replace a component of several results by its register."""
    match node:
        case ir.Component(value=ir.Reg(type=Results()) as whole, index=ir.Const() as index):
            return ir.Reg(component(whole.name, str(index.value)), node.type, node.span)
    return node


def _result(stmt: ir.Return, target: ir.Reg | ir.Item | None) -> list[ir.Stmt]:
    if isinstance(stmt.value, ir.Pack) and isinstance(stmt.value.type, Results):
        if not isinstance(target, ir.Reg):
            return []
        own = (ir.Reg(component(target.name, str(n)), arg.type, target.span) for n, arg in enumerate(stmt.value.args))
        return [ir.Let(register, arg, stmt.span) for register, arg in zip(own, stmt.value.args, strict=True)]
    return [] if target is None or stmt.value is None else [ir.Let(target, stmt.value, stmt.span)]


def _returning(body: ir.Body, target: ir.Reg | ir.Item | None) -> ir.Body:
    """Each `return value` as an assignment and a plain return, which leaves the frame."""
    result: list[ir.Stmt] = []
    for stmt in body:
        if isinstance(stmt, ir.Return):
            result += [*_result(stmt, target), ir.Return(None, stmt.span)]
        else:
            result.append(map_bodies(stmt, lambda inner: _returning(inner, target)))
    return tuple(result)
