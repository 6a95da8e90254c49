"""Emission of IR: statements, registers, folded operations, conversions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from ..frontend.typing import must_be_guarded
from ..ir import names
from ..ir import nodes as ir
from ..ir.building import BodyBuilder
from ..ir.ops import TABLE
from ..ir.walk import expressions
from ..language.types import BF16, BOOL, F16, F32, F64, I32, I64, U32, Scalar, Vector
from ..span import GENERATED, Span
from .types import CType, Refusal
from .values import Choice, Pointer, Value

_BIT_CASTS = {F32: ("as_f32", "as_i32", "as_u32"), F64: ("as_f64", "as_i64", "as_u64")}
_BIT_CASTS |= {F16: ("as_f16", "as_i16", "as_u16"), BF16: ("as_bf16", "as_i16", "as_u16")}


class Emitter(BodyBuilder):
    """The statements of one program. position: that of the nodes that are created."""

    def __init__(self) -> None:
        super().__init__()
        self.position: Span = GENERATED
        self.calls: list[tuple[str, int, Span]] = []  # of the inlined functions: name, number, position
        self.stable: set[str] = set()  # registers that are assigned once, before their first use
        self.reserved_names: set[str] = set()
        self.unrolled: set[str] = set()  # counters of unrolled loops
        self._numbers = 0

    # -------------------------------------------------------------- statements and registers
    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def name(self, user: str) -> str:
        """Return a new name for a variable or an array of the user's."""
        if self.calls:
            user = names.in_call(user, *self.calls[-1][:2])
        result, count = user, 1
        while result in self.reserved_names:
            count += 1
            result = names.renamed(user, count)
        self.reserved_names.add(result)
        return result

    def register(self, user: str, type: Scalar | Vector, stable: bool = False) -> ir.Reg:
        """Return a new register for a variable. stable: whether it is assigned once."""
        register = ir.Reg(self.name(user), type, self.position)
        if stable:
            self.stable.add(register.name)
        return register

    def let(self, value: ir.Expr | ir.Effect, stem: str) -> ir.Reg:
        """Assign a value to a new register."""
        type = cast(Any, value.type)
        register = ir.Reg(names.temporary(stem, self.number()), type, self.position)
        self.stable.add(register.name)
        self.emit(ir.Let(register, value, self.position))
        return register

    def read(self, register: ir.Reg) -> ir.Reg:
        return replace(register, span=self.position)

    def assign(self, register: ir.Reg, value: ir.Expr) -> None:
        """Assign a register. An effect that was just computed for it is assigned directly."""
        last = self.body[-1] if self.body else None
        if (
            isinstance(last, ir.Let) and isinstance(last.target, ir.Reg) and isinstance(value, ir.Reg)
            and isinstance(last.value, ir.Effect) and last.target.name == value.name and value.type == register.type
            and names.Name.parse(value.name).temporary
        ):  # fmt: skip
            self.body[-1] = replace(last, target=replace(register, span=last.span))
            return
        self.emit(ir.Let(self.read(register), value, self.position))

    # -------------------------------------------------------------- expressions
    def constant(self, value: Any, type: Scalar) -> ir.Const:
        """Return a constant, wrapped or rounded to its type."""
        if type is BOOL:
            return ir.Const(bool(value), type, self.position)
        if type.is_float:
            return ir.Const(float(type.dtype.type(value)), type, self.position)
        low, high = type.range
        return ir.Const((int(value) - low) % (high - low + 1) + low, type, self.position)

    def operation(self, name: str, *args: ir.Expr) -> ir.Expr:
        """Return an operation, computed if all operands are constant and inside its domain."""
        row = TABLE[name]
        kind = cast(Scalar, row.deciding(args).type)
        if kind not in row.types:
            raise Refusal(f"the operation {name} is not defined for {kind}")
        type = row.result_type(kind)
        operation = ir.Op(name, args, type, self.position)
        if all(isinstance(arg, ir.Const) for arg in args):
            values = [np.array([arg.value], arg.type.dtype) for arg in args if isinstance(arg, ir.Const)]
            if row.domain is None or bool(np.all(row.domain.holds(*values))):
                with np.errstate(all="ignore"):
                    return self.constant(row.meaning(*values)[0].item(), type)
        return operation

    def converted(self, value: ir.Expr, type: CType) -> ir.Expr:
        """Return a value converted to another scalar type as C++ converts it."""
        if value.type == type or not isinstance(type, Scalar):
            return value
        if type is BOOL:
            return self.truth(value)
        source = cast(Scalar, value.type)
        if isinstance(value, ir.Const) and not (source.is_float and type.is_integer):
            return self.constant(value.value, type)
        wider = source.is_integer and type.is_integer and source.size >= type.size
        if wider and isinstance(value, ir.Op) and value.name == f"cast_{source}" and value.args[0].type == type:
            return value.args[0]
        if type is I32 and source is U32 and (signed := self._signed(value)) is not None:
            return signed
        return self.operation(f"cast_{type}", value)

    def _signed(self, value: ir.Expr) -> ir.Expr | None:
        """Return arithmetic on indices, which CUDA C++ has as unsigned, as the int that it is converted to; None for others.

        Sums, differences and products have the same low bits in both types.
        """
        if isinstance(value, ir.Const) and int(value.value) < 1 << 31:
            return self.constant(value.value, I32)
        if isinstance(value, ir.Op) and value.name == "cast_u32" and isinstance(value.args[0], ir.Special):
            return value.args[0]
        if isinstance(value, ir.Op) and value.name in ("add", "sub", "mul"):
            a, b = (self._signed(arg) for arg in value.args)
            return None if a is None or b is None else self.operation(value.name, a, b)
        return None

    def truth(self, value: ir.Expr) -> ir.Expr:
        """Return whether a value is not zero."""
        if value.type is BOOL:
            return value
        if isinstance(value, ir.Op) and value.name.startswith("cast_") and value.args[0].type is BOOL:
            return value.args[0]
        return self.operation("ne", value, self.constant(0, cast(Scalar, value.type)))

    def bits(self, value: ir.Expr, type: Scalar) -> ir.Expr:
        """Return the bits of a value as another type of its size."""
        source = cast(Scalar, value.type)
        if source == type:
            return value
        if BOOL in (source, type):
            return self.converted(value, type)
        if source.size != type.size:
            raise Refusal(f"the bits of {source} as {type}: not supported")
        if source in _BIT_CASTS:
            as_integer = self.operation(_BIT_CASTS[source][1 if type.kind == "int" else 2], value)
            return self.bits(as_integer, type) if type in _BIT_CASTS else as_integer
        return self.operation(_BIT_CASTS[type][0] if type in _BIT_CASTS else f"cast_{type}", value)

    def added(self, a: ir.Expr, b: ir.Expr) -> ir.Expr:
        """Return the sum of two indices, with 64 bits if one has 64."""
        if isinstance(a, ir.Const) and not a.value:
            return b
        if isinstance(b, ir.Const) and not b.value:
            return a
        wide = I64 if max(cast(Scalar, a.type).size, cast(Scalar, b.type).size) > 4 else I32
        return self.operation("add", self.converted(a, wide), self.converted(b, wide))

    # -------------------------------------------------------------- values that keep
    def as_register(self, value: Any) -> Any:
        """Return a value that later assignments do not change."""
        if isinstance(value, Pointer):
            return replace(value, terms=tuple((self.as_register(index), size) for index, size in value.terms))
        if isinstance(value, Choice):
            return Choice(self.as_register(value.condition), self.as_register(value.yes), self.as_register(value.no))
        if not isinstance(value, ir.Expr) or self.is_stable(value):
            return value
        return self.let(value, "kept")

    def is_stable(self, value: ir.Expr) -> bool:
        return not any(
            isinstance(entry, ir.Item) or (isinstance(entry, ir.Reg) and entry.name not in self.stable)
            for entry in (value, *expressions(value))
        )

    def must_be_guarded(self, value: Value) -> bool:
        """Return whether a value may be computed only under its condition, because it may leave its domain otherwise."""
        return isinstance(value, ir.Expr) and bool(must_be_guarded(value))
