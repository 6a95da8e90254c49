"""Calls of the tensor core intrinsics."""

import ast
from typing import cast

from ..ir import nodes as ir
from ..ir.matrices import GROUP_INSTRUCTIONS, INSTRUCTIONS, registers
from ..ir.wide import aligned_index, alignment_check
from ..language import forms
from ..language.intrinsics import FULL_MASK, WARP_SIZE, Intrinsic
from ..language.types import BOOL, I32, U32, U64, Vector
from ..span import Span
from .protocols import Args, Binder, FunctionReader
from .values import NOTHING, Host, SourceError, Value

_SUMS = {"float4": "f32", "uint2": "f16", "int2": "s32", "int4": "s32", "double2": "f64"}


def _word(reader: FunctionReader, argument: object, name: str) -> str:
    """Return a text known at compile time."""
    (value,) = reader.values(cast(ast.expr, argument))
    text = value.object if isinstance(value, Host) else None
    if not isinstance(text, str):
        raise SourceError(reader.span(cast(ast.expr, argument)), f"{name} is a text", f'write {name}="..."')
    return text


def _full(span: Span) -> ir.Expr:
    return ir.Const(FULL_MASK, U32, span)


def _mma(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    shape, type = _word(reader, args["shape"], "shape"), _word(reader, args["type"], "type")
    a, b, c = (reader.expr(cast(ast.expr, args[name])) for name in "abc")
    total = _SUMS.get(str(c.type), "")
    first, _, second = type.partition(".")
    instruction = INSTRUCTIONS.get(f"{shape}.{total}.{first}.{second or first}.{total}")
    if instruction is None:
        names = sorted({f"{i.name.partition('.')[0]} of {i.a}" for i in INSTRUCTIONS.values()})
        raise SourceError(
            span, f"no mma has shape {shape}, operands of {type} and sums in {c.type}", f"there are {', '.join(names)}"
        )
    expected = dict(zip("abc", instruction.types, strict=True))
    for name, fragment in zip("abc", (a, b, c), strict=True):
        if fragment.type != expected[name]:
            message = f"the fragment {name} of {instruction.name} is {expected[name]}, this is {fragment.type}"
            raise SourceError(reader.span(cast(ast.expr, args[name])), message)
    return reader.let(ir.Mma(instruction.name, a, b, c, _full(span), instruction.types[2], span), "mma", span)


def _flag(reader: FunctionReader, argument: object, name: str = "transposed") -> bool:
    if not isinstance(argument, ast.expr):
        return bool(argument)
    condition = reader.number_of(reader.condition(argument))
    if condition is None:
        raise SourceError(reader.span(argument), f"{name} must be known at compile time", "write True or False")
    return bool(condition.value)


def _row(reader: FunctionReader, args: Args, lanes: int, span: Span) -> tuple[str, ir.Expr]:
    """Return the array in shared memory, and the index of a row in units of 16 bytes. lanes: the first lanes, which give rows."""
    array = reader.array(args["shared"])
    if array.type.space != "shared" or not reader.in_kernel:
        message = f"matrices are in shared memory, and their rows are read in the kernel itself; {array.shown} is {array.type.space}"
        raise SourceError(span, message, "write the call in the kernel, for an array of st.shared")
    place, size = reader.index(array, args["index"]), array.type.element.size
    offset = place.flat if isinstance(place, ir.Within) else place
    index, aligned = aligned_index(offset, size, 16)
    if aligned is not None:
        if lanes < WARP_SIZE:
            lane = ir.Special("lane", I32, span)
            other = ir.Op("ge", (lane, ir.Const(lanes, I32, span)), BOOL, span)
            aligned = ir.Op("either", (other, aligned), BOOL, span)
        reader.emit(alignment_check(array.name, offset, size, 16, aligned, span))
    return array.name, index


def _matrix(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    mode = cast(forms.MatrixForm, word.form).mode
    if mode == "move":
        value = reader.convert(args["value"], U32, "a register of a matrix")
        return reader.let(ir.MoveMatrix("move", True, value, _full(span), U32, span), "moved", span)
    transposed = _flag(reader, args["transposed"])
    four = registers(U32, 4)
    if mode == "load":
        number = args["count"]
        count = reader.constant_int(number, "the number of matrices") if isinstance(number, ast.expr) else number
        if count not in (1, 2, 4):
            raise SourceError(span, f"load_matrix loads 1, 2 or 4 matrices, not {count}", "write count=4")
        array, index = _row(reader, args, 8 * count, span)
        rows = reader.let(ir.Load(array, index, four, span, lanes=8 * count), "rows", span)
        result = registers(U32, count)
        return reader.let(ir.MoveMatrix("load", transposed, rows, _full(span), result, span), "matrices", span)
    value = reader.expr(args["value"])
    if value.type not in [registers(U32, count) for count in (1, 2, 4)]:
        raise SourceError(span, f"store_matrix stores registers u32, uint2 or uint4, not {value.type}")
    count = value.type.lanes if isinstance(value.type, Vector) else 1
    array, index = _row(reader, args, 8 * count, span)
    rows = reader.let(ir.MoveMatrix("store", transposed, value, _full(span), four, span), "rows", span)
    reader.emit(ir.Store(array, index, rows, span, lanes=8 * count))
    return NOTHING


_GROUP_SUMS = {"f32": "f32", "u32": "f16", "i32": "s32"}
SWIZZLES = {0: 0, 128: 1, 64: 2, 32: 3}
"""The field of a descriptor, by the bytes of the swizzle."""


def _in_shared(reader: FunctionReader, pair: ast.Tuple) -> tuple[ir.ArrayRef, ir.Expr]:
    """Return the array and the descriptor of an operand in shared memory."""
    span = reader.span(pair)
    if len(pair.elts) != 2:
        raise SourceError(span, "a matrix in shared memory is an array and a descriptor")
    array = reader.array(pair.elts[0])
    if array.type.space != "shared" or array.is_view:
        raise SourceError(span, f"wgmma reads arrays of st.shared; {array.shown} is not one", "write the array itself")
    return ir.ArrayRef(array.name, span), reader.convert(pair.elts[1], U64, "a descriptor")


def _wgmma(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    shape, type = _word(reader, args["shape"], "shape"), _word(reader, args["type"], "type")
    if not reader.in_kernel:
        raise SourceError(span, "wgmma is executed in the kernel itself", "write the call in the kernel")
    d = reader.array(args["d"])
    total = _GROUP_SUMS.get(str(d.type.element), "") if d.type.space == "register" else ""
    first, _, second = type.partition(".")
    row = GROUP_INSTRUCTIONS.get(f"{shape}.{total}.{first}.{second or first}")
    if row is None:
        raise SourceError(
            span,
            f"no wgmma has shape {shape}, operands of {type} and sums in {d.type.space} {d.type.element}",
            f"there are {', '.join(sorted({f'm64nNk{r.part.k} of {r.part.a}' for r in GROUP_INSTRUCTIONS.values()}))}",
        )
    if d.type.length != row.registers:
        message = f"D of {row.name} has {row.registers} registers a lane, {d.shown} has {d.type.length}"
        raise SourceError(reader.span(cast(ast.expr, args["d"])), message)
    in_a, given = None, cast(ast.expr, args["a"])
    if isinstance(given, ast.Tuple):
        in_a, a = _in_shared(reader, given)
    else:
        a = reader.expr(given)
        if a.type != row.part.types[0]:
            message = f"the fragment a of {row.name} is {row.part.types[0]}, this is {a.type}"
            raise SourceError(reader.span(given), message)
    if not isinstance(args["b"], ast.Tuple):
        raise SourceError(span, "b of wgmma is in shared memory", "write b=(array, st.matrix_descriptor(...))")
    in_b, b = _in_shared(reader, args["b"])
    add = reader.condition(args["add"]) if isinstance(args["add"], ast.expr) else ir.Const(True, BOOL, span)
    which = _word(reader, args["transposed"], "transposed") if isinstance(args["transposed"], ast.expr) else ""
    if which and (which not in ("a", "b", "ab") or first not in ("f16", "bf16") or (in_a is None and "a" in which)):
        raise SourceError(
            span, f'transposed is "a", "b" or "ab", of f16 or bf16 in shared memory, not "{which}" of {first}'
        )
    negative = _flag(reader, args["negative"], "negative")
    if negative and total == "s32":
        raise SourceError(span, "a product of integers is not subtracted")
    transposed = "a" in which, "b" in which
    reader.emit(ir.Wgmma(row.name, ir.ArrayRef(d.name, span), a, in_a, b, in_b, add, transposed, negative, span))
    return NOTHING


def _descriptor(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    given = args["swizzle"]
    swizzle = reader.constant_int(given, "the swizzle") if isinstance(given, ast.expr) else given
    if swizzle not in SWIZZLES:
        raise SourceError(span, f"a swizzle has 0, 32, 64 or 128 bytes, not {swizzle}")
    bits = SWIZZLES[swizzle] << 62
    for name, shift in (("leading", 16), ("stride", 32)):
        step = reader.constant_int(args[name], f"the {name} offset")
        if step % 16 or not 0 <= step < 1 << 18:
            raise SourceError(span, f"the {name} offset is a multiple of 16 bytes below 2**18, not {step}")
        bits |= step >> 4 << shift
    offset = reader.convert(args["offset"], I32, "an offset")
    units = ir.Op("cast_u64", (ir.Op("shr", (offset, ir.Const(4, I32, span)), I32, span),), U64, span)
    return ir.Op("or", (units, ir.Const(bits, U64, span)), U64, span)


BINDERS: dict[type, Binder] = {
    forms.MmaForm: _mma, forms.MatrixForm: _matrix, forms.WgmmaForm: _wgmma, forms.DescriptorForm: _descriptor,
}  # fmt: skip
