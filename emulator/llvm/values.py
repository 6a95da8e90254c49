"""Values of a warp: uniform, affine in the lane (base and stride), or one number a lane."""

from dataclasses import dataclass

from ..language.types import BOOL, Scalar
from .builder import FULL, IOTA, FunctionBuilder, is_constant, literal, many, scalar_type, splat, vector


@dataclass(frozen=True)
class Value:
    """A scalar expression of a warp.

    ref: the LLVM value: of all lanes (stride "0"), of lane 0 (affine), or the vector (stride None). stride:
    difference of neighbouring lanes, a literal or an LLVM value; None if it varies. constant: the number, if known
    at compile time.
    """

    type: Scalar
    ref: str
    stride: str | None = "0"
    constant: bool | int | float | None = None

    @property
    def uniform(self) -> bool:
        return self.stride == "0"

    @property
    def affine(self) -> bool:
        """Whether lanes differ by a constant nonzero stride."""
        return self.stride is not None and self.stride != "0"

    @property
    def step(self) -> int | None:
        """The stride, if known at compile time."""
        return int(self.stride) if self.stride is not None and is_constant(self.stride) else None


Values = Value | tuple[Value, ...]
"""A scalar, or the components of a vector."""


def number(value: bool | int | float, type: Scalar) -> Value:
    """Return a constant."""
    return Value(type, literal(value, type), constant=value)


def broadcast(builder: FunctionBuilder, element: str, ref: str) -> str:
    """Return a vector with one value in every lane."""
    if is_constant(ref):
        return splat(element, ref)
    first = builder.let(f"insertelement {many(element)} poison, {element} {ref}, i64 0", "lane.value")
    return builder.let(
        f"shufflevector {many(element)} {first}, {many(element)} poison, <32 x i32> zeroinitializer", "all"
    )


def lanes(builder: FunctionBuilder, value: Value) -> str:
    """Return the value as a vector."""
    element = scalar_type(value.type)
    if value.stride is None:
        return value.ref
    base = broadcast(builder, element, value.ref)
    if value.uniform:
        return base
    if value.step is not None:
        steps = vector(element, (_wrapped(value.step * lane, value.type.bits) for lane in IOTA))
    else:
        stride = broadcast(builder, element, value.stride)
        steps = builder.let(f"mul {many(element)} {stride}, {vector(element, IOTA)}", "steps")
    return builder.let(f"add {many(element)} {base}, {steps}", "lanes")


def moved(builder: FunctionBuilder, value: Value, amount: int) -> Value:
    """Return an integer value increased by a constant."""
    element = scalar_type(value.type)
    if value.constant is not None:
        return Value(value.type, str(int(value.constant) + amount), value.stride, int(value.constant) + amount)
    if value.stride is None:
        return Value(
            value.type, builder.let(f"add {many(element)} {value.ref}, {splat(element, amount)}", "moved"), None
        )
    return Value(value.type, builder.let(f"add {element} {value.ref}, {amount}", "moved"), value.stride)


def _wrapped(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def one_lane(builder: FunctionBuilder, value: Value, lane: str) -> str:
    """Return the value of one lane, an i32 index."""
    if value.uniform:
        return value.ref
    return builder.let(
        f"extractelement {many(scalar_type(value.type))} {lanes(builder, value)}, i32 {lane}", "lane.value"
    )


def bits(builder: FunctionBuilder, value: Value) -> str:
    """Return the mask of a bool, an i32."""
    assert value.type is BOOL
    if value.uniform:
        return builder.let(f"sext i1 {value.ref} to i32", "holds")
    return builder.let(f"bitcast <32 x i1> {value.ref} to i32", "holds")


def chosen(builder: FunctionBuilder, mask: str | None) -> str:
    """Return a mask as <32 x i1>."""
    if mask is None or mask == str(FULL):
        return splat("i1", "true")
    return builder.let(f"bitcast i32 {mask} to <32 x i1>", "active")
