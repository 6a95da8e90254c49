"""Folding of generated temporaries into the expressions that read them, for readable C++.

The front end names every effect by a temporary, which fixes the order of effects. A temporary with a single, nearby read is folded.
Folding never repeats, drops or reorders an access, and never moves one under a condition.
Afterwards expressions may contain effects, and there are new forms: `Update` (`a[i] += v`); `both`, `either` and
`select` with effects in their later arms; loops with the test in their body.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

from ...ir import nodes as ir
from ...ir.effects import ROWS
from ...ir.walk import map_bodies, rewrite, same, statements
from ...language.types import BOOL, Scalar
from ...span import Span
from .operators import infix

LAZY = ("both", "either", "select")
"""Operations that always evaluate their first operand, and the others only if needed."""
DEEPEST = 30
"""Levels of an expression beyond which it is not folded into another."""
READ_ONCE: dict[type, tuple[str, ...]] = {
    ir.Let: ("target", "value"), ir.If: ("cond",), ir.For: ("start",), ir.Return: ("value",), ir.Assert: ("cond",),
    ir.Print: ("items",), **{row.node: tuple(row.operands) for row in ROWS if row.is_statement},
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Update:
    """`array[index] symbol= value`, the index computed once."""

    array: str
    index: ir.Expr
    symbol: str
    value: ir.Expr
    span: Span


READ_ONCE[Update] = ("index", "value")


def fold(function: ir.Function) -> ir.Function:
    """The function with its temporaries folded."""
    return replace(function, body=_Folder(function).body(function.body))


# ------------------------------------------------------------------ traversal of trees with effects
def operands(node: Any) -> Iterator[Any]:
    """Expressions, effects and array references directly under a node (bodies left out)."""
    for field in fields(node):
        value = getattr(node, field.name)
        for operand in value if isinstance(value, tuple) else (value,):
            if isinstance(operand, ir.Expr | ir.Effect | ir.ArrayRef):
                yield operand


def nodes(node: Any) -> Iterator[Any]:
    """Expressions, effects and array references under a node, at any depth (bodies left out)."""
    for operand in operands(node):
        yield operand
        yield from nodes(operand)


def reads(stmt: Any) -> Iterator[Any]:
    """All nodes of a statement but the register it assigns."""
    target = stmt.target if isinstance(stmt, ir.Let) and isinstance(stmt.target, ir.Reg) else getattr(stmt, "var", None)
    return (n for n in nodes(stmt) if n is not target)


def touched(node: Any) -> set[str]:
    """Registers and register arrays that a node reads."""
    inside = [node, *nodes(node)]
    items = {n.array for n in inside if isinstance(n, ir.Item)}
    return items | {n.name for n in inside if isinstance(n, ir.Reg | ir.ArrayRef)}


def assigned(stmt: Any) -> set[str]:
    """Registers and register arrays that a statement may change, at any depth."""
    result: set[str] = set()
    for inner in statements((stmt,)):
        target = getattr(inner, "target", None)
        if target is not None:
            result.add(target.name if isinstance(target, ir.Reg) else target.array)
        if isinstance(inner, ir.For):
            result.add(inner.var.name)
        result.update(n.name for n in nodes(inner) if isinstance(n, ir.ArrayRef))
    return result


class _Folder:
    def __init__(self, function: ir.Function) -> None:
        self.reads: Counter[str] = Counter()
        self.writes: Counter[str] = Counter()
        for stmt in statements(function.body):
            self.reads.update(n.name for n in reads(stmt) if isinstance(n, ir.Reg))
            if isinstance(stmt, ir.Let) and isinstance(stmt.target, ir.Reg):
                self.writes[stmt.target.name] += 1

    def body(self, body: ir.Body) -> ir.Body:
        out: list[Any] = []
        for stmt in body:
            for new in self.statement(stmt):
                self.append(out, new)
        return tuple(out)

    def statement(self, stmt: ir.Stmt) -> list[ir.Stmt]:
        """The statement with folded bodies."""
        match stmt:
            case ir.If() | ir.Frame():
                return [map_bodies(stmt, self.body)]
            case ir.For():
                return self.counted(stmt)
            case ir.While():
                return [self.loop(stmt)]
            case ir.Let(target=ir.Reg(name=name), value=ir.Atomic()) if "@" in name and not self.reads[name]:
                return [replace(stmt, target=None)]
        return [stmt]

    def counted(self, loop: ir.For) -> list[ir.Stmt]:
        """C++ evaluates `stop` and `step` before every iteration: compute them before the loop if the body may change them."""
        body = self.body(loop.body)
        changed = set().union(*(assigned(s) for s in body)) | {loop.var.name}
        before: list[ir.Stmt] = []
        bounds: dict[str, Any] = {}
        for field in ("stop", "step"):
            bound = getattr(loop, field)
            if not isinstance(bound, int) and touched(bound) & changed:
                bounds[field] = ir.Reg(f"{loop.var.name}_{field}@", bound.type, bound.span)
                before.append(ir.Let(bounds[field], bound, bound.span))
        return [*before, replace(loop, body=body, **bounds)]

    def loop(self, loop: ir.While) -> ir.While:
        """A setup that does not fold into the condition moves into the body, with the test after it."""
        setup = list(self.body(loop.setup))
        test: ir.Let = self.pull(setup, ir.Let(None, loop.cond, loop.span))
        cond: Any = test.value
        if not setup:
            return replace(loop, setup=(), cond=cond, body=self.body(loop.body))
        if not (isinstance(cond, ir.Const) and cond.value):
            setup.append(ir.If(ir.Op("not", (cond,), BOOL, cond.span), (ir.Break(cond.span),), (), cond.span))
        return replace(loop, setup=(), cond=ir.Const(True, BOOL, loop.span), body=(*setup, *self.body(loop.body)))

    def append(self, out: list[Any], stmt: Any) -> None:
        """Append a statement, folding earlier ones into it."""
        stmt = self.chosen(stmt)
        if out and (joined := self.joined(out[-1], stmt)) is not None:
            out.pop()
            return self.append(out, joined)
        stmt = self.pull(out, stmt)
        if self.named(out, stmt):
            return None
        updated = _update(stmt)
        if updated is not None:
            self.reads.subtract(n.name for n in (updated.index, *nodes(updated.index)) if isinstance(n, ir.Reg))
            stmt = self.pull(out, updated)
        out.append(stmt)
        return None

    # -------------------------------------------------------------- conditions written as statements
    def chosen(self, stmt: Any) -> Any:
        """`if c: t = a else: t = b` of a temporary number is a conditional expression."""
        if not (isinstance(stmt, ir.If) and len(stmt.then) == len(stmt.orelse) == 1):
            return stmt
        match stmt.then[0], stmt.orelse[0]:
            case ir.Let(target=ir.Reg() as target) as yes, ir.Let(target=ir.Reg() as other) as no:
                if target.name == other.name and "@" in target.name and isinstance(target.type, Scalar):
                    self.writes[target.name] -= 1
                    return ir.Let(target, _op("select", (stmt.cond, yes.value, no.value), target), stmt.span)
        return stmt

    def joined(self, before: Any, stmt: Any) -> ir.Let | None:
        """`t = a; if t: t = b` of a temporary is `a and b`, with `else` in place of the branch `a or b`."""
        match before, stmt:
            case ir.Let(target=ir.Reg() as target), ir.If(cond=ir.Reg() as cond):
                name, arm = ("either", stmt.orelse) if stmt.orelse else ("both", stmt.then)
                if "@" not in target.name or target.name != cond.name or len(stmt.then) + len(stmt.orelse) != 1:
                    return None
                if isinstance(arm[0], ir.Let) and _assigns(arm[0], target.name) and not _deep(before.value):
                    self.writes[target.name] -= 1
                    self.reads[target.name] -= 1
                    return ir.Let(target, _op(name, (before.value, arm[0].value), target), stmt.span)
        return None

    def named(self, out: list[Any], stmt: Any) -> bool:
        """`t = effect ... x = t`, with an effect that must not move, is `x = effect ...`."""
        match stmt:
            case ir.Let(target=ir.Reg() as target, value=ir.Reg() as value):
                at = next((i for i in reversed(range(len(out))) if _assigns(out[i], value.name)), None)
                if at is None or not self.single(value.name):
                    return False
                intermediate = out[at + 1 :]
                if any(not isinstance(s, ir.Let) or target.name in touched(s) | assigned(s) for s in intermediate):
                    return False
                out[at] = ir.Let(target, out[at].value, stmt.span)
                return True
        return False

    # -------------------------------------------------------------- temporaries read once
    def single(self, name: str) -> bool:
        """Whether a register is a temporary, assigned once and read once."""
        return "@" in name and self.reads[name] == 1 and self.writes[name] == 1

    def pull(self, out: list[Any], stmt: Any) -> Any:
        """The statement with temporaries of `out` substituted; those leave `out`."""
        again = True
        while again:
            again = False
            for name in _registers_read_once(stmt):
                if not self.single(name):
                    continue
                at = next((i for i in reversed(range(len(out))) if _assigns(out[i], name)), None)
                if at is not None and _may_move(out[at].value, out[at + 1 :], stmt, name):
                    stmt = _substitute(stmt, name, out.pop(at).value)
                    again = True
                    break
        return stmt


def _op(name: str, args: tuple[Any, ...], like: ir.Reg) -> Any:
    return ir.Op(name, args, like.type, like.span)  # type: ignore[arg-type]


def _assigns(stmt: Any, name: str) -> bool:
    return isinstance(stmt, ir.Let) and isinstance(stmt.target, ir.Reg) and stmt.target.name == name


def _read_once(stmt: Any) -> Iterator[tuple[str, Any]]:
    for field in READ_ONCE.get(type(stmt), ()):
        value = getattr(stmt, field)
        if value is not None and not (field == "target" and isinstance(value, ir.Reg)):
            yield field, value


def _registers_read_once(stmt: Any) -> list[str]:
    fields_read = [value if isinstance(value, tuple) else (value,) for _, value in _read_once(stmt)]
    roots = [operand for operands in fields_read for operand in operands if not isinstance(operand, str)]
    return [n.name for root in roots for n in (root, *nodes(root)) if isinstance(n, ir.Reg)]


def _substitute(stmt: Any, name: str, new: Any) -> Any:
    def change(node: Any) -> Any:
        return new if isinstance(node, ir.Reg) and node.name == name else node

    updates: dict[str, Any] = {}
    for field, value in _read_once(stmt):
        if isinstance(value, tuple):
            updates[field] = tuple(p if isinstance(p, str) else rewrite(p, change) for p in value)
        else:
            updates[field] = rewrite(value, change)
    return replace(stmt, **updates)


def _may_move(value: Any, intermediate: list[Any], stmt: Any, name: str) -> bool:
    """Whether `value` means the same when it is computed at the read of `name` in `stmt`."""
    inside = [value, *nodes(value)]
    effects = [n for n in inside if isinstance(n, ir.Effect)]
    if _deep(value) or any(touched(value) & assigned(s) for s in intermediate):
        return False
    if not effects:
        return True
    light = all(_is_light(e) for e in effects)
    above = _path(stmt, name)
    for node, below in pairwise(above):
        if isinstance(node, ir.Op) and node.name in LAZY and node.args[0] is not below:
            return False
    if not all(isinstance(s, ir.Let) for s in intermediate):
        return False
    passed_by = [n for s in (*intermediate, stmt) for n in nodes(s) if n not in above]
    if any(isinstance(n, ir.Effect) and not (light and _is_light(n)) for n in passed_by):
        return False
    # A call may change registers: nothing between the two positions, or in the same statement, may read them.
    arrays = {n.name for n in inside if isinstance(n, ir.ArrayRef)}
    return not any(isinstance(n, ir.Item) and n.array in arrays for n in passed_by)


def _deep(node: Any) -> bool:
    """Whether an expression is as deep as one may become by folding: compilers have their limits too."""
    level = [node]
    for _ in range(DEEPEST):
        level = [operand for one in level for operand in operands(one)]
    return bool(level)


def _is_light(node: Any) -> bool:
    """Whether a node is a load that may pass other ones."""
    return isinstance(node, ir.Load) and node.order == "weak"


def _path(node: Any, name: str) -> list[Any]:
    """The nodes from a statement down to the read of a register, both included."""
    if isinstance(node, ir.Reg) and node.name == name:
        return [node]
    for operand in operands(node):
        if below := _path(operand, name):
            return [node, *below]
    return []


def _update(stmt: Any) -> Update | None:
    """`a[i] = a[i] + v` as an Update."""
    match stmt:
        case ir.Store(value=ir.Op() as op):
            result = infix(op)
            old: Any = op.args[0]
            if result is None or not _is_light(old) or old.array != stmt.array or stmt.order != "weak":
                return None
            if old.block is not None or stmt.block is not None:
                return None
            inside = (old.index, *nodes(old.index))
            if same(old.index, stmt.index) and not any(isinstance(n, ir.Effect) for n in inside):
                return Update(stmt.array, stmt.index, *result, stmt.span)
    return None
