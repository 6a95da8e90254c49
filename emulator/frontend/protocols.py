"""The interfaces of program and function readers, so that their files need not import each other."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol, TypeVar

from ..ir import nodes as ir
from ..language.functions import DeviceFunction
from ..language.intrinsics import Intrinsic
from ..language.types import Array, Scalar
from ..language.types import Value as ValueType
from ..span import Span
from .launch_known import LaunchKnown
from .source import FunctionSource
from .values import ArrayValue, Value

Args = dict[str, Any]
Binder = Callable[["FunctionReader", Intrinsic, Args, Span], Value]
"""Reads a call of an intrinsic: its arguments by parameter name."""

T = TypeVar("T")


Progress = tuple[int, ...]
"""How much a program reader has noted."""


class ProgramReader(Protocol):
    """Reads a kernel and the device functions it calls. depth: how deep what is being read is nested."""

    depth: int

    def count(self, span: Span) -> None:
        """Count a statement that is read. Raises CompileError where there are too many."""

    def report(self, span: Span, message: str, *notes: str) -> None:
        """Note an error and go on."""

    def progress(self) -> Progress:
        """How much is noted."""

    def restore(self, progress: Progress) -> None:
        """Forget what was noted since."""

    def external(self, source: FunctionSource, name: str) -> Any:
        """What a name from outside the function stands for; a later change makes the program stale."""

    def attribute(self, module: ModuleType, name: str) -> Any:
        """An attribute of a module; a later change makes the program stale."""

    def real_type(self, span: Span) -> Scalar:
        """The type that Real stands for."""

    def call(self, caller: FunctionReader, node: ast.Call, device: DeviceFunction) -> Value:
        """The value of a call of a device function, which is specialised for the arguments."""


class Emitter(Protocol):
    """Collects the statements of one function."""

    def emit(self, stmt: ir.Stmt) -> None:
        """Add a statement."""

    def let(self, value: ir.Expr | ir.Effect, stem: str, span: Span) -> ir.Reg:
        """Keep a value in a generated register."""


class FunctionReader(Emitter, Protocol):
    """Reads the expressions of one function and collects the statements they need."""

    @property
    def program(self) -> ProgramReader: ...

    @property
    def in_kernel(self) -> bool:
        """Whether the function is the kernel."""

    @property
    def launch_known(self) -> LaunchKnown: ...

    def span(self, node: ast.AST) -> Span: ...

    def value(self, node: ast.expr) -> Value:
        """The value of an expression, typed or known at compile time."""

    def shallow(self, value: Value, operands: int, span: Span) -> Value:
        """The value of many operands in a row, kept in a register now and then."""

    def expr(self, node: ast.expr, type: ValueType | None = None) -> ir.Expr:
        """The value as a typed expression; literals become `type` or their natural type."""

    def convert(self, node: ast.expr, type: ValueType, what: str) -> ir.Expr:
        """The value where a `type` is expected."""

    def condition(self, node: ast.expr) -> ir.Expr:
        """The value where a bool is expected."""

    def together(self, *reads: Callable[[], T]) -> list[T]:
        """What several parts of an expression are; what is wrong with any of them is noted."""

    def values(self, *nodes: ast.expr) -> list[Value]:
        """The values of several parts of an expression."""

    def names_elsewhere(self, node: ast.expr) -> list[str]:
        """How another library calls what a name stands for, or would; empty where it is one of the kernel's own."""

    def is_fixed(self, expr: ir.Expr) -> bool:
        """Whether the expression is a constant once loops are unrolled."""

    def number_of(self, expr: ir.Expr) -> ir.Const | None:
        """The constant that an expression is; None also where an unrolled loop's variable decides."""

    def waits_for_unrolling(self, expr: ir.Expr) -> bool:
        """Whether the expression is a number where the unrolled loops around it are written out."""

    def constant_int(self, node: ast.expr, what: str, advice: str = ...) -> int:
        """A whole number that is known at compile time."""

    def index(self, array: ArrayValue, node: ast.expr) -> ir.Expr:
        """The index of the element `array[node]` in the array of the IR."""

    def struct(self, record: type, span: Span, arrays: bool = False) -> Any:
        """The `records.StructType` that a class is."""

    def array(self, node: ast.expr) -> ArrayValue:
        """The array an expression names."""

    def type_of(self, node: ast.expr) -> ValueType:
        """The type an expression names."""

    def declare(
        self, name: str, type: Array, values: tuple[Any, ...], span: Span, count: ir.Expr | None = None
    ) -> ArrayValue:
        """Allocate an array under a name the function does not use yet."""
