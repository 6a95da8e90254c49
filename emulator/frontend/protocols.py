"""Interfaces of program and function readers, without imports between their modules."""

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
"""Reads a call of an intrinsic from its arguments by parameter name."""

T = TypeVar("T")


Progress = tuple[int, ...]
"""A position in the recorded errors of a program reader."""


class ProgramReader(Protocol):
    """Reader of a kernel and its device functions. depth: current nesting of constructs."""

    depth: int

    def count(self, span: Span) -> None:
        """Count a statement. Raises CompileError above the limit."""

    def report(self, span: Span, message: str, *notes: str) -> None:
        """Record an error and continue."""

    @property
    def host_calls(self) -> bool:
        """Whether a statement may call a Python function."""

    def progress(self) -> Progress:
        """Return the position in the recorded errors."""

    def restore(self, progress: Progress) -> None:
        """Forget later errors."""

    def external(self, source: FunctionSource, name: str) -> Any:
        """Return the object of a name outside the function; a later change makes the program stale."""

    def attribute(self, module: ModuleType, name: str) -> Any:
        """Return an attribute of a module; a later change makes the program stale."""

    def real_type(self, span: Span) -> Scalar:
        """Return the type of Real."""

    def call(self, caller: FunctionReader, node: ast.Call, device: DeviceFunction) -> Value:
        """Return the value of a call of a device function, specialised for the arguments."""


class Emitter(Protocol):
    """Collector of the statements of one function."""

    def emit(self, stmt: ir.Stmt) -> None:
        """Append a statement."""

    def let(self, value: ir.Expr | ir.Effect, stem: str, span: Span) -> ir.Reg:
        """Store a value in a generated register."""


class FunctionReader(Emitter, Protocol):
    """Reader of the expressions of one function, with the statements they need."""

    @property
    def program(self) -> ProgramReader: ...

    @property
    def in_kernel(self) -> bool:
        """Whether the function is the kernel."""

    @property
    def launch_known(self) -> LaunchKnown: ...

    def span(self, node: ast.AST) -> Span: ...

    def value(self, node: ast.expr) -> Value:
        """Return the value of an expression, typed or known at compile time."""

    def shallow(self, value: Value, operands: int, span: Span) -> Value:
        """Return the value of a chain of operands, stored in a register at intervals."""

    def expr(self, node: ast.expr, type: ValueType | None = None) -> ir.Expr:
        """Return the value as a typed expression; literals get `type` or their natural type."""

    def convert(self, node: ast.expr, type: ValueType, what: str) -> ir.Expr:
        """Return the value where `type` is expected."""

    def condition(self, node: ast.expr) -> ir.Expr:
        """Return the value where a bool is expected."""

    def together(self, *reads: Callable[[], T]) -> list[T]:
        """Run reads of sibling expressions and record the errors of all."""

    def values(self, *nodes: ast.expr) -> list[Value]:
        """Return the values of sibling expressions."""

    def names_elsewhere(self, node: ast.expr) -> list[str]:
        """Return the name in another library; empty for the kernel's own names."""

    def is_fixed(self, expr: ir.Expr) -> bool:
        """Return whether the expression is constant after unrolling."""

    def number_of(self, expr: ir.Expr) -> ir.Const | None:
        """Return the constant value of an expression; None also if it depends on an unrolled loop's variable."""

    def waits_for_unrolling(self, expr: ir.Expr) -> bool:
        """Return whether the expression is a constant only after the unrolled loops around it are expanded."""

    def constant_value(self, value: Value, span: Span, what: str, advice: str = ...) -> int:
        """Return the integer of a value known at compile time."""
        ...

    def constant_int(self, node: ast.expr, what: str, advice: str = ...) -> int:
        """Return an integer known at compile time."""

    def index(self, array: ArrayValue, node: ast.expr) -> ir.Expr:
        """Return the index of the element `array[node]` in the IR's array."""

    def struct(self, record: type, span: Span, arrays: bool = False) -> Any:
        """Return the `records.StructType` of a class."""

    def array(self, node: ast.expr, of_cluster: bool = False) -> ArrayValue:
        """Return the array named by an expression. of_cluster: whether another block of the cluster may have it."""

    def type_of(self, node: ast.expr) -> ValueType:
        """Return the type named by an expression."""

    def declare(
        self, name: str, type: Array, values: tuple[Any, ...], span: Span, count: ir.Expr | None = None
    ) -> ArrayValue:
        """Allocate an array under an unused name."""
