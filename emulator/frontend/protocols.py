"""The interfaces of program and function readers, so that their files need not import each other."""

from __future__ import annotations

import ast
from types import ModuleType
from typing import Any, Protocol

from ..ir import nodes as ir
from ..language.functions import DeviceFunction
from ..language.types import Array, Scalar
from ..language.types import Value as ValueType
from ..span import Span
from .source import FunctionSource
from .values import ArrayValue, Value


class ProgramReader(Protocol):
    """Reads a kernel and the device functions it calls."""

    def report(self, span: Span, message: str, *notes: str) -> None:
        """Note an error and go on."""

    def external(self, source: FunctionSource, name: str) -> Any:
        """What a name from outside the function stands for; a later change makes the program stale."""

    def attribute(self, module: ModuleType, name: str) -> Any:
        """An attribute of a module; a later change makes the program stale."""

    def real_type(self, span: Span) -> Scalar:
        """The type that Real stands for."""

    def call(self, caller: FunctionReader, node: ast.Call, device: DeviceFunction) -> Value:
        """The value of a call of a device function, which is specialised for the arguments."""


class FunctionReader(Protocol):
    """Reads the expressions of one function and collects the statements they need."""

    @property
    def program(self) -> ProgramReader: ...

    def span(self, node: ast.AST) -> Span: ...

    def emit(self, stmt: ir.Stmt) -> None:
        """Add a statement."""

    def let(self, value: ir.Expr | ir.Effect, stem: str, span: Span) -> ir.Reg:
        """Keep a value in a generated register."""

    def value(self, node: ast.expr) -> Value:
        """The value of an expression, typed or known at compile time."""

    def expr(self, node: ast.expr, type: ValueType | None = None) -> ir.Expr:
        """The value as a typed expression; literals become `type` or their natural type."""

    def convert(self, node: ast.expr, type: ValueType, what: str) -> ir.Expr:
        """The value where a `type` is expected."""

    def condition(self, node: ast.expr) -> ir.Expr:
        """The value where a bool is expected."""

    def known(self, node: ast.expr, what: str) -> int:
        """A whole number that is known at compile time."""

    def index(self, array: ArrayValue, node: ast.expr) -> ir.Expr:
        """The flat index of `array[node]`."""

    def array(self, node: ast.expr) -> ArrayValue:
        """The array an expression names."""

    def type_of(self, node: ast.expr) -> ValueType:
        """The type an expression names."""

    def declare(self, name: str, type: Array, values: tuple[Any, ...], span: Span) -> ArrayValue:
        """Allocate an array under a name the function does not use yet."""
