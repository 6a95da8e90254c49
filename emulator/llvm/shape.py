"""Operand shapes of an operation: scalar for uniform values, or a vector of lanes."""

from __future__ import annotations

from ..language.types import Scalar
from .builder import FunctionBuilder, literal, many, scalar_type, splat
from .values import Value, lanes


class Shape:
    """The LLVM type of operands: scalar if all are uniform, else a vector."""

    def __init__(self, type: Scalar, uniform: bool) -> None:
        self.scalar, self.uniform = type, uniform
        self.element = scalar_type(type)
        self.type = self.element if uniform else many(self.element)
        self.bool = "i1" if uniform else many("i1")

    def constant(self, value: int | float) -> str:
        text = literal(value, self.scalar)
        return text if self.uniform else splat(self.element, text)

    def with_type(self, type: Scalar) -> Shape:
        """Return the shape of another type."""
        return Shape(type, self.uniform)

    def refs(self, builder: FunctionBuilder, *args: Value) -> list[str]:
        return [a.ref if self.uniform else lanes(builder, a) for a in args]

    def value(self, type: Scalar, ref: str) -> Value:
        return Value(type, ref, "0" if self.uniform else None)
