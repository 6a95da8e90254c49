"""Symbolic values: NumPy expressions of the opcode table, emitted as LLVM IR for one lane.

A row's meaning is written with NumPy once. Given `Traced` values instead of arrays, NumPy's protocols for functions and
universal functions call this module, which emits the same operation with NumPy's types and promotions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..ir import fused
from ..ir.library import PREFIX
from ..ir.maths import Computed
from ..language.types import F16
from ..llvm import halves
from ..llvm.builder import FunctionBuilder
from ..llvm.shape import Shape

_HALF = Shape(F16, uniform=True)
_TYPES = {"b": "i1", "f4": "float", "f8": "double"}


class Untranslatable(Exception):
    """Raised for an operation that this module does not emit."""


def llvm_type(dtype: np.dtype[Any]) -> str:
    """Return the LLVM type of a value."""
    if dtype.kind in "iu" or dtype == np.float16:
        return f"i{8 * dtype.itemsize}"
    name = _TYPES.get("b" if dtype.kind == "b" else f"{dtype.kind}{dtype.itemsize}")
    if name is None:
        raise Untranslatable(f"values of {dtype}")
    return name


def literal(value: Any, dtype: np.dtype[Any]) -> str:
    """Return a constant: a number, or an array of one."""
    array = np.asarray(value)
    if array.size != 1:
        raise Untranslatable(f"a constant of {array.size} numbers")
    number = array.reshape(-1)[0].astype(dtype)
    if dtype.kind == "b":
        return "true" if number else "false"
    if dtype.kind in "iu":
        return str(int(number.view(f"i{dtype.itemsize}")))
    return f"0x{int(np.float64(number).view(np.uint64)):016X}"


def fma(a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, rounded once."""
    traced = next((one for one in (a, b, c) if isinstance(one, Traced)), None)
    if traced is None:
        return fused.fma(a, b, c)
    dtype = np.result_type(*(one.dtype for one in (a, b, c)))
    refs = [traced.operand(one, dtype) for one in (a, b, c)]
    return traced.new(traced.builder.intrinsic("llvm.fma", llvm_type(dtype), *refs), dtype)


def special_function(name: str, value: Any) -> Any:
    """Return the results of a function of the library, of the type of the argument."""
    if not isinstance(value, Traced):
        return Computed(name)(value)
    builder = value.builder
    places = [builder.slot("double", name) for _ in range(2)]
    builder.store("double", value.astype(np.float64).ref, places[0])
    builder.call("void", PREFIX + name, *(("ptr", place) for place in places), ("i64", "1"))
    return value.new(builder.load("double", places[1]), np.float64).astype(value.dtype)


def contiguous(value: Any) -> Any:
    """Return an array whose bits can be viewed as another type."""
    return value if isinstance(value, Traced) else np.ascontiguousarray(value)


class Traced(NDArrayOperatorsMixin):
    """A value of one lane. ref: its LLVM name."""

    shape = (1, 1)

    def __init__(self, builder: FunctionBuilder, ref: str, dtype: Any) -> None:
        self.builder, self.ref, self.dtype = builder, ref, np.dtype(dtype)

    def new(self, ref: str, dtype: Any) -> Traced:
        return Traced(self.builder, ref, dtype)

    def operand(self, value: Any, dtype: np.dtype[Any]) -> str:
        """Return the LLVM name or constant of a value, converted."""
        return value.astype(dtype).ref if isinstance(value, Traced) else literal(value, dtype)

    # -------------------------------------------------------------- methods of arrays
    def __getitem__(self, key: Any) -> Traced:
        """Axes have one element here."""
        return self

    def any(self, axis: int) -> Traced:
        return self

    def astype(self, dtype: Any) -> Traced:
        to, old = np.dtype(dtype), self.dtype
        if to == old:
            return self
        if old == np.float16:
            wide = self.new(halves.widened(self.builder, _HALF, self.ref), np.float32)
            return wide.astype(to)
        if to == np.float16:
            wide = self.astype(np.float64)
            return self.new(halves.rounded_f64(self.builder, _HALF, F16, wide.ref), to)
        source, target = llvm_type(old), llvm_type(to)
        if to.kind == "b":
            zero = "0.0" if old.kind == "f" else "0"
            compare = "fcmp une" if old.kind == "f" else "icmp ne"
            return self.new(self.builder.let(f"{compare} {source} {self.ref}, {zero}"), to)
        if old.kind == "f" and to.kind in "iu":
            name = f"llvm.fpto{'s' if to.kind == 'i' else 'u'}i.sat.{target}.f{8 * old.itemsize}"
            return self.new(self.builder.call(target, name, (source, self.ref)), to)
        if old.kind == "f":
            word = "fpext" if to.itemsize > old.itemsize else "fptrunc"
        elif to.kind == "f":
            word = "sitofp" if old.kind == "i" else "uitofp"
        elif source == target:
            return self.new(self.ref, to)
        elif old.kind == "b" or to.itemsize > old.itemsize:
            word = "sext" if old.kind == "i" else "zext"
        else:
            word = "trunc"
        return self.new(self.builder.let(f"{word} {source} {self.ref} to {target}"), to)

    def view(self, dtype: Any) -> Traced:
        to = np.dtype(dtype)
        source, target = llvm_type(self.dtype), llvm_type(to)
        if self.dtype.itemsize != to.itemsize:
            raise Untranslatable(f"a view of {self.dtype} as {to}")
        if source == target:
            return self.new(self.ref, to)
        return self.new(self.builder.let(f"bitcast {source} {self.ref} to {target}"), to)

    # -------------------------------------------------------------- NumPy's protocols
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, dtype: Any = None) -> Any:
        emit = _UFUNCS.get(ufunc)
        if emit is None or method != "__call__":
            raise Untranslatable(f"numpy.{ufunc.__name__}")
        if dtype is not None:
            types = (np.dtype(dtype),) * (ufunc.nin + ufunc.nout)
        else:
            types = ufunc.resolve_dtypes((*map(_type_of, inputs), *[None] * ufunc.nout))
        refs = [self.operand(value, to) for value, to in zip(inputs, types, strict=False)]
        return emit(self, types[0], types[-1], refs)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        emit = _FUNCTIONS.get(function)
        if emit is None:
            raise Untranslatable(f"numpy.{function.__name__}")
        return emit(self, *arguments, **options)

    def compare(self, word: str, a: str, b: str, dtype: np.dtype[Any]) -> str:
        """Compare values of a type. word: such as "lt"."""
        if dtype.kind == "f":
            return self.builder.let(f"fcmp {'une' if word == 'ne' else 'o' + word} {llvm_type(dtype)} {a}, {b}")
        sign = "" if word in ("eq", "ne") else "s" if dtype.kind == "i" else "u"
        return self.builder.let(f"icmp {sign}{word} {llvm_type(dtype)} {a}, {b}")

    def select(self, condition: str, a: str, b: str, dtype: np.dtype[Any]) -> str:
        return self.builder.let(f"select i1 {condition}, {llvm_type(dtype)} {a}, {llvm_type(dtype)} {b}")


class Lanes(Traced):
    """Active lanes that exchange values. exchange: emits an exchange, given these lanes, its kind and its operands."""

    def __init__(
        self, builder: FunctionBuilder, ref: str, uniform: bool, exchange: Callable[..., dict[str, Traced]]
    ) -> None:
        super().__init__(builder, ref, np.bool_)
        self.uniform, self.exchange = uniform, exchange


class Pointer:
    """Memory of elements in LLVM IR. base: its address; size: its bytes, a number."""

    def __init__(self, builder: FunctionBuilder, base: str, size: Any, dtype: Any = np.uint8) -> None:
        self.builder, self.base, self.size, self.dtype = builder, base, size, np.dtype(dtype)

    def view(self, dtype: Any) -> Pointer:
        return Pointer(self.builder, self.base, self.size, dtype)

    def at(self, index: Any) -> str:
        number = index.astype(np.int64).ref if isinstance(index, Traced) else literal(index, np.dtype(np.int64))
        return self.builder.element(llvm_type(self.dtype), self.base, number)

    def __getitem__(self, index: Any) -> Traced:
        return self.load(self.at(index))

    def load(self, at: str) -> Traced:
        value = self.builder.load(memory_type(self.dtype), at)
        if self.dtype == np.bool_:
            value = self.builder.let(f"trunc i8 {value} to i1")
        return Traced(self.builder, value, self.dtype)

    def put(self, at: str, value: Any) -> None:
        ref = value.astype(self.dtype).ref if isinstance(value, Traced) else literal(value, self.dtype)
        if self.dtype == np.bool_:
            ref = self.builder.let(f"zext i1 {ref} to i8")
        self.builder.store(memory_type(self.dtype), ref, at)

    def store(self, index: Any, lanes: Any, value: Any) -> None:
        """Store a value if the lane is active."""
        self.update(index, lanes, lambda old: value)

    def update(self, index: Any, lanes: Any, update: Callable[..., Any], *values: Any) -> Traced:
        """Update an element if the lane is active, and return its old value, else 0."""
        b = self.builder
        start, on, after = b.block, b.label("active"), b.label("after")
        active = lanes.ref if isinstance(lanes, Traced) else literal(lanes, np.dtype(np.bool_))
        b.branch(active, on, after)
        b.place(on)
        at = self.at(index)
        old = self.load(at)
        self.put(at, update(old, *values))
        end = b.block
        b.jump(after)
        b.place(after)
        zero = literal(0, self.dtype)
        return Traced(b, b.phi(llvm_type(self.dtype), (old.ref, end), (zero, start)), self.dtype)


def memory_type(dtype: np.dtype[Any]) -> str:
    return "i8" if dtype == np.bool_ else llvm_type(dtype)


def _type_of(value: Any) -> Any:
    """Return the type of a value; of a Python number, which adapts to others, its class."""
    if isinstance(value, bool):
        return np.dtype(np.bool_)
    return type(value) if type(value) in (int, float) else value.dtype


# ------------------------------------------------------------------ universal functions
Emit = Callable[[Traced, "np.dtype[Any]", "np.dtype[Any]", list[str]], Any]
"""Arguments: a value, the type of the first operand, the type of the result, the operands."""


def _binary(integer: str, floating: str = "") -> Emit:
    def emit(t: Traced, dtype: np.dtype[Any], out: np.dtype[Any], refs: list[str]) -> Any:
        word = floating if dtype.kind == "f" else integer
        return t.new(t.builder.let(f"{word} {llvm_type(dtype)} {refs[0]}, {refs[1]}"), out)

    return emit


def _comparison(word: str) -> Emit:
    return lambda t, dtype, out, refs: t.new(t.compare(word, refs[0], refs[1], dtype), out)


def _shift(left: bool) -> Emit:
    """A shift by the width or more gives 0, or the sign."""

    def emit(t: Traced, dtype: np.dtype[Any], out: np.dtype[Any], refs: list[str]) -> Any:
        kind, bits = llvm_type(dtype), 8 * dtype.itemsize
        within = t.builder.let(f"icmp ult {kind} {refs[1]}, {bits}")
        least = t.select(within, refs[1], str(bits - 1), dtype)
        word = "shl" if left else "ashr" if dtype.kind == "i" else "lshr"
        shifted = t.builder.let(f"{word} {kind} {refs[0]}, {least}")
        return t.new(shifted if word == "ashr" else t.select(within, shifted, "0", dtype), out)

    return emit


def _extreme(word: str) -> Emit:
    """The minimum or maximum; NaN if an operand is NaN."""

    def emit(t: Traced, dtype: np.dtype[Any], out: np.dtype[Any], refs: list[str]) -> Any:
        chosen = t.select(t.compare(word, refs[0], refs[1], dtype), refs[0], refs[1], dtype)
        if dtype.kind == "f":
            for ref in refs:
                chosen = t.select(t.builder.let(f"fcmp uno {llvm_type(dtype)} {ref}, {ref}"), ref, chosen, dtype)
        return t.new(chosen, out)

    return emit


def _intrinsic(name: str) -> Emit:
    return lambda t, dtype, out, refs: t.new(t.builder.intrinsic(name, llvm_type(dtype), *refs), out)


def _invert(t: Traced, dtype: np.dtype[Any], out: np.dtype[Any], refs: list[str]) -> Any:
    return t.new(t.builder.let(f"xor {llvm_type(dtype)} {refs[0]}, {'true' if dtype.kind == 'b' else '-1'}"), out)


def _negative(t: Traced, dtype: np.dtype[Any], out: np.dtype[Any], refs: list[str]) -> Any:
    kind = llvm_type(dtype)
    return t.new(t.builder.let(f"fneg {kind} {refs[0]}" if dtype.kind == "f" else f"sub {kind} 0, {refs[0]}"), out)


def _absolute(t: Traced, dtype: np.dtype[Any], out: np.dtype[Any], refs: list[str]) -> Any:
    if dtype.kind == "f":
        return _intrinsic("llvm.fabs")(t, dtype, out, refs)
    value = t.new(refs[0], dtype)
    return _select(value, value < 0, -value, value)


def _is_nan(t: Traced, dtype: np.dtype[Any], out: np.dtype[Any], refs: list[str]) -> Any:
    return t.new(t.builder.let(f"fcmp uno {llvm_type(dtype)} {refs[0]}, {refs[0]}"), out)


def _bits(t: Traced, dtype: np.dtype[Any], ref: str) -> Traced:
    return t.new(ref, dtype).view(f"i{dtype.itemsize}")


def _next_after(t: Traced, dtype: np.dtype[Any], out: np.dtype[Any], refs: list[str]) -> Any:
    """The neighbour of a finite number towards another one."""
    value: Any = t.new(refs[0], dtype)
    to: Any = t.new(refs[1], dtype)
    bits: Any = _bits(t, dtype, refs[0])
    upward = to > value
    least = np.where(upward, bits.dtype.type(1), bits.dtype.type(1) | np.iinfo(bits.dtype).min)
    step = np.where(upward == (value > 0), bits.dtype.type(1), bits.dtype.type(-1))
    return np.where(value == to, bits, np.where(value == 0, least, bits + step)).view(dtype)


def _fraction_exponent(t: Traced, dtype: np.dtype[Any], out: np.dtype[Any], refs: list[str]) -> Any:
    """numpy.frexp of a float64 that is 0 or a normal number; the exponent alone."""
    if dtype != np.float64:
        raise Untranslatable(f"numpy.frexp of {dtype}")
    exponent = (_bits(t, dtype, refs[0]) >> 52 & 0x7FF) - 1022
    return None, _select(t, t.new(refs[0], dtype) == 0, 0, exponent).astype(np.int32)


_UFUNCS: dict[Any, Emit] = {
    np.add: _binary("add", "fadd"), np.subtract: _binary("sub", "fsub"), np.multiply: _binary("mul", "fmul"),
    np.bitwise_and: _binary("and"), np.bitwise_or: _binary("or"), np.bitwise_xor: _binary("xor"),
    np.equal: _comparison("eq"), np.not_equal: _comparison("ne"), np.less: _comparison("lt"),
    np.less_equal: _comparison("le"), np.greater: _comparison("gt"), np.greater_equal: _comparison("ge"),
    np.left_shift: _shift(True), np.right_shift: _shift(False), np.minimum: _extreme("lt"), np.maximum: _extreme("gt"),
    np.invert: _invert, np.negative: _negative, np.absolute: _absolute, np.isnan: _is_nan,
    np.isfinite: lambda t, dtype, out, refs: np.abs(t.new(refs[0], dtype)) < dtype.type(np.inf),
    np.signbit: lambda t, dtype, out, refs: _bits(t, dtype, refs[0]) < 0,
    np.bitwise_count: lambda t, dtype, out, refs: _intrinsic("llvm.ctpop")(t, dtype, dtype, refs).astype(out),
    np.copysign: _intrinsic("llvm.copysign"), np.rint: _intrinsic("llvm.rint"), np.trunc: _intrinsic("llvm.trunc"),
    np.floor: _intrinsic("llvm.floor"), np.ceil: _intrinsic("llvm.ceil"), np.nextafter: _next_after,
    np.frexp: _fraction_exponent,
}  # fmt: skip


# ------------------------------------------------------------------ functions
def _select(t: Traced, condition: Any, a: Any, b: Any) -> Any:
    if not isinstance(condition, Traced):
        return a if np.asarray(condition).all() else b
    values = [one if type(one) in (int, float, bool) else one.dtype for one in (a, b)]
    dtype = np.result_type(*values)
    return t.new(t.select(condition.astype(np.bool_).ref, t.operand(a, dtype), t.operand(b, dtype), dtype), dtype)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _select,
    np.broadcast_to: lambda t, value, shape: value,
    np.broadcast_arrays: lambda t, *values: values,
    np.zeros_like: lambda t, value: np.zeros((1, 1), value.dtype),
    np.clip: lambda t, value, least, most: np.minimum(np.maximum(value, least), most),
    np.nan_to_num: lambda t, value, nan: np.where(np.isnan(value), nan, value),
}
