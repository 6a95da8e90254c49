"""Symbol table of one function while it is read: values, registers, and definite assignment."""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar
from typing import Literal as Word

import numpy as np

from ..checked import closest
from ..ir import nodes as ir
from ..ir.building import BodyBuilder
from ..ir.names import renamed, temporary
from ..ir.ops import TABLE
from ..ir.walk import expressions
from ..language.intrinsics import INTRINSICS, Index
from ..language.types import I32, SCALARS, VECTORS, Scalar
from ..language.types import Value as ValueType
from ..span import Span
from . import foreign
from .constants import Literal, Tuple
from .inference import IsWhole, StartsAsFloat, decide, whole_number
from .launch_known import LaunchKnown
from .protocols import ProgramReader
from .source import MISSING, FunctionSource
from .swaps import Swaps
from .values import (
    AlreadyReported,
    ArrayValue,
    Choice,
    NeedsConstants,
    SourceError,
    Struct,
    TypeConflict,
    Value,
    of_python,
)

T = TypeVar("T")


class FunctionScope(BodyBuilder):
    """The variables of one function, and the statements emitted so far."""

    def __init__(self, program: ProgramReader, source: FunctionSource) -> None:
        super().__init__()
        self.program = program
        self.source = source
        self.names: dict[str, Value] = {}  # parameters, arrays and compile-time names
        self.types: dict[str, ValueType] = {}  # variables
        self.renamed: dict[str, str] = {}  # registers with other names than their variables
        self.bundles: dict[str, tuple[str, Any]] = {}  # tuple and struct variables: register, type
        self.registers: dict[str, tuple[Word["plain", "loop"], ValueType]] = {}  # registers
        self.assigned: set[str] = set()  # variables assigned on every path
        self.fixed: set[str] = set()  # constants after unrolling
        self.numbers: dict[str, ir.Const] = {}  # registers with constant values
        self.active: set[str] = set()  # variables of the enclosing loops
        self.ended: set[str] = set()  # variables of ended loops
        self.positive: set[str] = set()  # variables above 0
        self.soft: dict[str, frozenset[str]] = {}  # registers with a type decided by literals of others
        self.decided: dict[str, Scalar] = {}  # registers initialised by a literal, and the type of their other uses
        self.floats: dict[str, StartsAsFloat] = {}  # registers read as floats, to report their errors
        self.whole: set[str] = set()  # registers of whole numbers that a float was expected of
        self.once = assigned_once(source.tree)
        self.swaps = Swaps.find(source.tree)
        self.local = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.launch_known = LaunchKnown(source)
        self.in_kernel = False
        self.unresolved: set[str] = set()
        self.fresh: ir.Let | None = None  # the last Let, while only the current expression uses its register
        self.rebound_reads = rebound_reads(source.tree)
        self._temporaries = 0

    def value(self, node: ast.expr) -> Value:
        """Return the value of an expression, typed or known at compile time."""
        raise NotImplementedError

    # -------------------------------------------------------------- what is wrong
    def refuse(self, error: SourceError) -> None:
        """Record an error.

        Raises Decided if another type of a literal-initialised variable resolves it, NeedsConstants if the
        variable of an unrolled loop does, and IsWhole if a variable was read as a float.
        """
        notes = error.notes
        if isinstance(error, TypeConflict):
            decide(error, self.soft, self.decided)
            if any(self.waits_for_unrolling(expr) for expr, _ in error.pairs):
                raise NeedsConstants  # a literal adapts to the other type
            for expr, expected in error.pairs:
                name = whole_number(expr, expected, self.soft)
                if name is not None and name not in self.whole:
                    variable = next(n for n in self.types if self.register(n) == name)
                    advice = f"{variable} starts as a whole number: start it as a float, such as 0.0"
                    raise StartsAsFloat(name, expected, variable, SourceError(error.span, error.message, advice))
        else:
            for name, start in self.floats.items():
                if re.search(rf"\b{start.variable}\b", error.span.text):
                    raise IsWhole(name)
        self.program.report(error.span, error.message, *notes)

    def together(self, *reads: Callable[[], T]) -> list[T]:
        """Run reads of sibling expressions and record the errors of all. Raises AlreadyReported after an error."""
        results: list[T] = []
        for read in reads:
            try:
                results.append(read())
            except SourceError as error:
                self.refuse(error)
            except AlreadyReported:
                pass
        if len(results) < len(reads):
            raise AlreadyReported
        return results

    def reported(self, read: Callable[[], T]) -> T | None:
        """Return the result of a read; None after an error, which is recorded."""
        try:
            return read()
        except SourceError as error:
            self.refuse(error)
        except AlreadyReported:
            pass
        return None

    def values(self, *nodes: ast.expr) -> list[Value]:
        """Return the values of sibling expressions."""
        return self.together(*((lambda node=node: self.value(node)) for node in nodes))

    # -------------------------------------------------------------- emitting
    def span(self, node: ast.AST) -> Span:
        return self.source.span(node)

    @contextmanager
    def arm(self) -> Iterator[list[ir.Stmt]]:
        """Collect the statements emitted inside, which may not run: their assignments end with the block."""
        before = set(self.assigned)
        with self.block() as effects:
            yield effects
        self.assigned &= before

    def temporary(self, stem: str, type: ValueType, span: Span) -> ir.Reg:
        self._temporaries += 1
        return ir.Reg(temporary(stem, self._temporaries), type, span)

    def let(self, value: ir.Expr | ir.Effect, stem: str, span: Span) -> ir.Reg:
        """Store a value in a generated register."""
        assert value.type is not None
        target = self.temporary(stem, value.type, span)
        self.fresh = ir.Let(target, value, span)
        self.emit(self.fresh)
        return target

    def own_let(self, value: Value) -> ir.Let | None:
        """Return the last statement if it assigns this register and no other use exists."""
        last = self.body[-1] if self.body else None
        return last if isinstance(last, ir.Let) and last is self.fresh and last.target is value else None

    def snapshot(self, value: Value, span: Span, stem: str = "value") -> Value:
        """Return the current value. Constants after unrolling need no copy."""
        if isinstance(value, Tuple | Struct):
            return replace(value, items=tuple(self.snapshot(item, span, stem) for item in value.items))
        if isinstance(value, Choice):
            arms: list[Any] = [self.snapshot(arm, span, stem) for arm in (value.yes, value.no)]
            return Choice(self.let(value.condition, stem, span), *arms)
        if isinstance(value, ir.Expr) and not self.is_fixed(value):
            return self.let(value, stem, span)
        return value

    # -------------------------------------------------------------- names
    def register(self, name: str) -> str:
        """Return the register of a variable."""
        return self.renamed.get(name, name)

    def new_register(self, name: str, kind: Word["plain", "loop"], type: ValueType | None) -> str:
        """Return an unused register for a variable. Consecutive loops share the register of their variable. type: None
        if the first value decides it."""
        number, chosen = 1, name
        while self._is_used(chosen, kind, type):
            number += 1
            chosen = renamed(name, number)
        return chosen

    def _is_used(self, register: str, kind: Word["plain", "loop"], type: ValueType | None) -> bool:
        if register in self.registers:
            return kind == "plain" or self.registers[register] != (kind, type)
        value = self.names.get(register)
        return value is not None and not isinstance(value, Literal | Tuple)

    def _Name(self, node: ast.Name) -> Value:
        name, span = node.id, self.span(node)
        if name in self.unresolved:
            raise AlreadyReported
        if name in self.ended and name not in self.assigned:
            raise SourceError(span, f"{name} ends with its loop", f"keep it in another variable: last = {name}")
        value = self.names.get(name)
        is_view = isinstance(value, ArrayValue) and value.is_view and name in self.once
        variable = (
            name in self.types
            or name in self.bundles
            or is_view
            or (name in self.once and isinstance(value, Literal | Tuple))
        )
        is_unbound = value is None and name in self.local and name not in self.types
        if is_unbound or (variable and name not in self.assigned and name not in self.fixed):
            advice = "assign it on every path, for example before the loop or branch"
            raise SourceError(span, f"{name} may be unassigned here", advice)
        if name in self.types:
            value = ir.Reg(self.register(name), self.types[name], span)
        elif isinstance(value, ir.Reg):  # a scalar parameter, or an item of a loop
            value = ir.Reg(value.name, value.type, span)
        if value is not None:
            return self.snapshot(value, span) if (node.lineno, node.col_offset) in self.rebound_reads else value
        external = self.program.external(self.source, name)
        if external is MISSING:
            self.refuse_foreign([name], span)
            near = closest(name, [*self.names, *self.types, *self.source.function.__globals__], 0.6)
            if name in (SCALARS.keys() | VECTORS) or any(word.name == name for word in INTRINSICS.values()):
                near = f"st.{name}"
            meant = foreign.IMPORTS.get(name) or (
                f"do you mean {near}?" if near else "make it a parameter, or assign it first"
            )
            raise SourceError(span, f"{name} is not defined", meant)
        return self.special(external, span)

    def special(self, target: Any, span: Span) -> Value:
        """Return the value of a host object: `st.lane` and `st.warp` are numbers."""
        return ir.Special(target.name, I32, span) if isinstance(target, Index) else of_python(target)

    def refuse_foreign(self, names: Sequence[str], span: Span) -> None:
        """Raise SourceError for a word of another library."""
        if (equivalent := foreign.advice(names)) is not None:
            raise SourceError(span, *equivalent)

    def names_elsewhere(self, node: ast.expr) -> list[str]:
        """Return the name in another library of a name such as `cuda.threadIdx.x`; empty for the kernel's own names."""
        names = foreign.dotted(node)
        if not names or names[0] in {*self.names, *self.types, *self.local}:
            return []
        root = self.program.external(self.source, names[0])
        known_as = names[:1] if root is MISSING else foreign.names_elsewhere(root)
        return [*known_as, *names[1:]] if known_as else []

    # -------------------------------------------------------------- what is known of a value
    def is_fixed(self, expr: ir.Expr) -> bool:
        """Return whether the expression is constant after unrolling."""
        fixed = {self.register(name) for name in self.fixed}
        leaves = [e for e in (expr, *expressions(expr)) if not isinstance(e, ir.Op)]
        return all(isinstance(e, ir.Const) or (isinstance(e, ir.Reg) and e.name in fixed) for e in leaves)

    def number_of(self, expr: ir.Expr) -> ir.Const | None:
        """Return the constant value of an expression; None also if it depends on an unrolled loop's variable."""
        match expr:
            case ir.Const():
                return expr
            case ir.Reg():
                return self.numbers.get(expr.name)
            case ir.Op():
                constants = [self.number_of(arg) for arg in expr.args]
                values = [np.array([n.value], n.type.dtype) for n in constants if n is not None]
                if len(values) == len(constants):
                    with np.errstate(all="ignore"):
                        return ir.Const(TABLE[expr.name].meaning(*values).item(), expr.type, expr.span)
        return None

    def waits_for_unrolling(self, expr: ir.Expr) -> bool:
        """Return whether the expression is a constant only after the unrolled loops around it are expanded."""
        return self.is_fixed(expr) and self.number_of(expr) is None

    def is_positive(self, expr: ir.Expr) -> bool:
        """Return whether the expression is above 0 at any size: dimensions and their sums and products."""
        match expr:
            case ir.Const():
                return bool(expr.value > 0)
            case ir.Special():
                return expr.name.startswith(("block_dim", "grid_dim", "cluster_dim", "grid_clusters", "cluster_size"))
            case ir.Reg():
                return expr.name in {self.register(name) for name in self.positive}
            case ir.Op(name="add" | "mul" | "min") | ir.Op(name="cast_i32" | "cast_u32" | "cast_i64" | "cast_u64"):
                return all(map(self.is_positive, expr.args))
            case ir.Op(name="max"):
                return any(map(self.is_positive, expr.args))
            case ir.Op(name="shl"):
                return self.is_positive(expr.args[0])
        return False


def assigned_once(function: ast.FunctionDef) -> frozenset[str]:
    """Return the names with a single assignment of the form `name = value`."""
    stores = [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    targets = [t for n in ast.walk(function) if isinstance(n, ast.Assign) for t in n.targets]
    plain = {
        t.id for target in targets for t in ast.walk(target) if isinstance(t, ast.Name) and isinstance(t.ctx, ast.Store)
    }
    return frozenset(n for n in plain if stores.count(n) == 1)


def rebound_reads(function: ast.FunctionDef) -> frozenset[tuple[int, int]]:
    """Return the positions of names read before `:=` reassigns them in the same statement, as in `a + (a := 2)`."""
    places: set[tuple[int, int]] = set()
    if not any(isinstance(n, ast.NamedExpr) for n in ast.walk(function)):
        return frozenset()
    for stmt in (n for n in ast.walk(function) if isinstance(n, ast.stmt)):
        inside = list(_expressions_of(stmt))
        names = [(n.id, (n.lineno, n.col_offset)) for n in inside if isinstance(n, ast.Name)]
        for later in (n for n in inside if isinstance(n, ast.NamedExpr)):
            start = later.lineno, later.col_offset
            places |= {place for name, place in names if name == later.target.id and place < start}
    return frozenset(places)


def _expressions_of(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a statement, without nested statements."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt):
            yield child
            yield from _expressions_of(child)
