"""Calls in a kernel: intrinsics by form, casts, device functions, and Python's min, max, abs, len and print."""

import ast
import builtins
import inspect
import math
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, NoReturn, cast

import numpy as np

from ..ir import nodes as ir
from ..ir.limits import array_size, over_capacity
from ..ir.ops import TABLE
from ..language import forms, hints
from ..language.functions import DeviceFunction, Kernel
from ..language.intrinsics import INTRINSICS, Intrinsic
from ..language.types import (
    BOOL,
    COMPLEX,
    F32,
    F64,
    I16,
    I32,
    I64,
    SCALARS,
    U16,
    U32,
    U64,
    UNSIGNED,
    VECTORS,
    Array,
    Scalar,
    Vector,
    from_numpy,
)
from ..language.types import Value as ValueType
from ..span import Span
from . import (
    arrays,
    atomics,
    clusters,
    complex_numbers,
    copies,
    foreign,
    maths,
    matrices,
    mbarriers,
    printing,
    records,
    struct_arrays,
    typing,
    warps,
)
from .advice import LISTED, cast_of
from .constants import Literal, Tuple, is_struct
from .protocols import Args, Binder, FunctionReader, ProgramReader
from .values import NOTHING, ArrayValue, Host, SourceError, StructArray, Value, describe, written


def call(reader: FunctionReader, node: ast.Call, target: Any) -> Value:
    """Return the value of a call and emit its effects."""
    span = reader.span(node)
    if isinstance(target, DeviceFunction):
        return reader.program.call(reader, node, target)
    if isinstance(target, Kernel):
        raise SourceError(
            span, f"{target.__name__} is a kernel: only launch can run it", "mark it @st.device to call it"
        )
    type = value_type(reader.program, target, span)
    if isinstance(type, Scalar):
        return typing.cast(_only(reader, node), type, span)
    if type in COMPLEX:
        return complex_numbers.construct(reader, node, type, span)
    if isinstance(type, Vector):
        return _pack(reader, node, type)
    if isinstance(target, builtins.type) and issubclass(target, np.generic):
        return _numpy_cast(reader, node, target, span)
    if is_struct(target):
        arguments = bind_arguments(reader, node, target.__name__, inspect.signature(target))
        return records.construct(reader, reader.struct(target, span), arguments, span)
    if target in _BUILTINS:
        return _BUILTINS[target](reader, node, span)
    word = intrinsic_of(target)
    if word is None:
        _refuse(target, reader.names_elsewhere(node.func), span, reader.program.host_calls)
    args = _bind(reader, node, word)
    if target in maths.WORDS and isinstance(word.form, forms.OperationForm):
        return _operation(reader, word, args, span, target)
    return _BINDERS[word.form.__class__](reader, word, args, span)


def is_builtin(target: Any) -> bool:
    """Return whether kernels can call a function of Python."""
    return isinstance(target, Hashable) and target in _BUILTINS


def intrinsic_of(target: Any) -> Intrinsic | None:
    """Return the table row of an intrinsic; None for other objects."""
    return INTRINSICS.get(maths.WORDS.get(target, target)) if isinstance(target, Hashable) else None


def value_type(program: ProgramReader, target: Any, span: Span) -> ValueType | None:
    """Return the type named by an object such as `f32`, `float4`, `bool` or `Real`."""
    if target is bool:
        return BOOL
    if isinstance(target, hints.ScalarType):  # type: ignore[attr-defined]
        if target is hints.Real:
            return program.real_type(span)
        return SCALARS.get(target.name) or VECTORS[target.name]
    if isinstance(target, type) and target.__module__ == hints.__name__:
        return VECTORS.get(target.__name__)
    return None


def _refuse(target: Any, called: list[str], span: Span, host_calls: bool) -> NoReturn:
    """Raise SourceError for an object that kernels cannot call. host_calls: whether a statement may call a Python function."""
    name = getattr(target, "__name__", None) or f"this {type(target).__name__}"
    names = foreign.names_elsewhere(target)
    equivalent = foreign.advice(called) or foreign.advice(names)
    if equivalent is not None:
        raise SourceError(span, *equivalent)
    intrinsics = [word.name for word in INTRINSICS.values() if names and word.name == name]
    if intrinsics:
        raise SourceError(span, f"{name} runs on the host", f"write st.{name}(...)")
    if str(getattr(target, "__module__", "")).partition(".")[0] == __package__.partition(".")[0]:
        raise SourceError(span, f"{name} belongs to the host", "call it outside of the kernel")
    if host_calls and callable(target):
        advice = "call it as a statement of its own, or mark the function @st.device"
        raise SourceError(span, f"the value of {name} has no type in a kernel", advice)
    if foreign.for_debugging(target):
        raise SourceError(span, f"{name} is not in the kernel language", foreign.ENGINE)
    advice = "mark the function @st.device" if inspect.isfunction(target) else LISTED
    raise SourceError(span, f"{name} is not in the kernel language", advice)


def bind_arguments(reader: FunctionReader, node: ast.Call, name: str, signature: inspect.Signature) -> Args:
    """Return a call's arguments by parameter name: expressions, or the signature's defaults."""
    span = reader.span(node)
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        raise SourceError(span, "`*` and `**` are not in the kernel language", "write the arguments one by one")
    try:
        arguments = signature.bind(*node.args, **{str(k.arg): k.value for k in node.keywords})
    except TypeError as error:
        params = ", ".join(p.name for p in signature.parameters.values() if p.default is p.empty)
        raise SourceError(span, f"{name}: {error}", f"write {name}({params})") from None
    arguments.apply_defaults()
    return dict(arguments.arguments)


def _bind(reader: FunctionReader, node: ast.Call, word: Intrinsic) -> Args:
    """Return the argument nodes by parameter name; defaults are Python values."""
    return bind_arguments(reader, node, f"st.{word.name}", word.signature)


def _only(reader: FunctionReader, node: ast.Call) -> Value:
    if len(node.args) != 1 or node.keywords:
        raise SourceError(reader.span(node), "a cast takes one value", "write one cast for each value")
    return reader.value(node.args[0])


def _pack(reader: FunctionReader, node: ast.Call, type: Vector) -> Value:
    if len(node.args) != type.lanes or node.keywords:
        components = ", ".join("xyzw"[: type.lanes])
        raise SourceError(
            reader.span(node), f"{type} takes {type.lanes} values", f"write {written(type)}({components})"
        )
    what = f"a component of {type}"
    args = reader.together(*(partial(reader.convert, a, type.element, what) for a in node.args))
    return ir.Pack(tuple(args), type, reader.span(node))


def _numpy_cast(reader: FunctionReader, node: ast.Call, target: type[np.generic], span: Span) -> Value:
    """Read `np.float32(x)` as `f32(x)`."""
    type = from_numpy(target)
    if type in COMPLEX:
        return complex_numbers.construct(reader, node, type, span)
    if not isinstance(type, Scalar):
        raise SourceError(
            span, f"np.{target.__name__} is not a type of the language", "write st.f32(...), st.i64(...) ..."
        )
    return typing.cast(_only(reader, node), type, span)


# ------------------------------------------------------------------ Python's own
def _python_cast(target: type[int | float], type: Scalar) -> Callable[[FunctionReader, ast.Call, Span], Value]:
    """Read `int(x)` as `i32(x)`, and `float(x)` as `f32(x)`, as in CUDA, for types without loss."""

    def word(reader: FunctionReader, node: ast.Call, span: Span) -> Value:
        if len(node.args) == 1 and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
            return _of_text(target, node.args[0].value, span)
        value = _only(reader, node)
        if isinstance(value, Literal):
            return typing.fold(target, [value], span)
        source = typing.expression(value, span)
        if source.type in _LOSES[target]:
            other = F64 if target is float else I64
            message = f"{target.__name__} of {source.type} could mean {type} or {other}"
            raise SourceError(span, message, f"write {written(type)}(...) or {written(other)}(...)")
        return typing.cast(source, type, span)

    return word


_LOSES: dict[type, tuple[Scalar, ...]] = {int: (I64, U32, U64), float: (F64, I64, U64)}
"""Source types for which Python's int and float are exact and the CUDA casts are not."""


def _of_text(target: type[int | float], text: str, span: Span) -> Value:
    try:
        return Literal(target(text))
    except ValueError as error:
        raise SourceError(span, f"this constant cannot be computed: {error}", 'write a number, or "inf"') from None


def _extreme(name: str, python: Callable[..., Any]) -> Callable[[FunctionReader, ast.Call, Span], Value]:
    def word(reader: FunctionReader, node: ast.Call, span: Span) -> Value:
        if len(node.args) < 2 or node.keywords:
            raise SourceError(span, f"{name} takes two or more numbers", f"write {name}(a, b), or a loop over an array")
        values = list(zip(reader.values(*node.args), map(reader.span, node.args), strict=True))
        literals = [v for v, _ in values if isinstance(v, Literal)]
        if len(literals) == len(values):
            return typing.fold(python, literals, span)
        args = typing.unified(values, name)
        result: ir.Expr = args[0]
        for number, arg in enumerate(args[1:], 1):
            shallow = reader.shallow(typing.operation(name, [result, arg], span, name), number, span)
            assert isinstance(shallow, ir.Expr)
            result = shallow
        return result

    return word


def _least(*numbers: Any) -> Any:
    """Return the smallest number as a kernel does: NaN only of NaNs, and -0 before +0."""
    return min([n for n in numbers if n == n] or numbers, key=lambda n: (n, math.copysign(1, n)))


def _greatest(*numbers: Any) -> Any:
    """Return the largest number as a kernel does: NaN only of NaNs, and +0 after -0."""
    return max([n for n in numbers if n == n] or numbers, key=lambda n: (n, math.copysign(1, n)))


def _abs(reader: FunctionReader, node: ast.Call, span: Span) -> Value:
    value = _only(reader, node)
    if isinstance(value, Literal):
        return typing.fold(abs, [value], span)
    if complex_numbers.is_complex(value):
        return complex_numbers.magnitude(reader, value, span)
    (number,) = typing.unified([(value, span)], "abs")
    if number.type in UNSIGNED:
        message = f"abs is not defined for {number.type}: a difference of unsigned numbers has wrapped already"
        raise SourceError(span, message, _distance(number.type, node.args[0], reader.span(node.args[0])))
    return typing.operation("abs", [number], span, "abs")


def _distance(type: ValueType, node: ast.expr, span: Span) -> str:
    """Return the hint for the distance of two unsigned numbers."""
    wider = next((t for t in (I32, I64) if t.size > type.size), None)
    if wider is None:
        return "write max(a, b) - min(a, b)"
    is_difference = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
    inside = cast_of(wider, type, span) if is_difference else f"{written(wider)}(a) - {written(wider)}(b)"
    return f"write abs({inside})"


def _len(reader: FunctionReader, node: ast.Call, span: Span) -> Value:
    value = _only(reader, node)
    if isinstance(value, Tuple):
        return Literal(len(value.items))
    if isinstance(value, StructArray):
        value = struct_arrays.leaves(value)[0]
    if not isinstance(value, ArrayValue):
        raise SourceError(span, f"len takes an array or a tuple, this is {describe(value)}", "pass the length")
    return arrays.extent(value, 0, span)


def _power(reader: FunctionReader, node: ast.Call, span: Span) -> Value:
    if len(node.args) != 2 or node.keywords:
        raise SourceError(span, "pow takes two numbers", "write pow(x, y), or x ** y")
    (a, b), (left, right) = reader.values(*node.args), map(reader.span, node.args)
    return maths.power(reader, a, b, span, left, right)


def _ord(reader: FunctionReader, node: ast.Call, span: Span) -> Value:
    value = reader.value(node.args[0]) if len(node.args) == 1 and not node.keywords else NOTHING
    if not (isinstance(value, Host) and isinstance(value.object, str) and len(value.object) == 1):
        raise SourceError(span, "ord takes a text of one character", 'write ord("A"), or compare the numbers')
    return Literal(ord(value.object))


def _range(reader: FunctionReader, node: ast.Call, span: Span) -> Value:
    raise SourceError(span, "range is allowed only in a for statement", "write: for i in range(n): ...")


_BUILTINS: dict[Any, Callable[[FunctionReader, ast.Call, Span], Value]] = {
    builtins.min: _extreme("min", _least), builtins.max: _extreme("max", _greatest), builtins.abs: _abs,
    builtins.int: _python_cast(int, I32), builtins.float: _python_cast(float, F32),
    math.fabs: _abs, builtins.len: _len, builtins.ord: _ord, builtins.pow: _power, builtins.print: printing.print_call,
    builtins.range: _range,
}  # fmt: skip


# ------------------------------------------------------------------ memory
def _not_declaring(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    name = word.name
    raise SourceError(span, f"st.{name} must be the whole right side of an assignment", f"write: name = st.{name}(...)")


def declared(reader: FunctionReader, name: str, node: ast.Call, target: Any) -> ArrayValue | None:
    """Return the array declared by `name = st.shared(...)` and similar calls; None for any other call."""
    word = intrinsic_of(target)
    if word is None or not isinstance(word.form, forms.AllocationForm):
        return None
    span = reader.span(node)
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        raise SourceError(span, "`*` is not in the kernel language", "give the tuple itself: a shape may be one")
    args = _bind(reader, node, word)
    kind = reader.value(args["element"])
    if isinstance(kind, Tuple | Literal):
        stated = ast.unparse(node.args[1]) if len(node.args) > 1 else "st.f32"
        advice = f"write st.{word.name}({stated}, {ast.unparse(args['element'])})"
        raise SourceError(reader.span(args["element"]), "the type precedes the shape", advice)
    if isinstance(kind, Host) and is_struct(kind.object):
        advice = f"declare one array a field, each by st.{word.name}(...)"
        raise SourceError(span, f"{word.form.space} memory holds no structs, this is {kind.name}", advice)
    element = reader.type_of(args["element"])
    values: tuple[Any, ...] = ()
    shape: tuple[int, ...] | None = None
    match word.form:
        case forms.AllocationForm(dynamic=True):
            count = _count(reader, name, args["count"], span)
            return reader.declare(name, Array(element, None, "shared"), (), span, count)
        case forms.AllocationForm("register"):
            shape = _shape(reader, [args["count"]])
            if len(shape) > 1:
                advice = f"write st.registers({written(element)}, {array_size(Array(element, shape, 'register'))})"
                raise SourceError(span, f"registers have one dimension, not {len(shape)}", advice)
        case forms.AllocationForm("constant"):
            values = _table(reader, args["values"], element)
            shape = (len(values),)
        case _:
            shape = _shape(reader, args["shape"])
            if not shape:
                raise SourceError(
                    span, f"st.{word.name} needs its size", f"write st.{word.name}({written(element)}, 64)"
                )
    type = Array(element, shape, word.form.space)
    excess = over_capacity(type.space, array_size(type))
    if excess is not None:
        raise SourceError(span, *excess)
    return reader.declare(name, type, values, span)


def _count(reader: FunctionReader, name: str, node: ast.expr | None, span: Span) -> ir.Expr | None:
    """Return the number of elements of a dynamic shared array; None for the array of all remaining bytes."""
    if not reader.in_kernel:
        raise SourceError(
            span, "dynamic shared memory is declared in the kernel", "declare it there, and pass the array"
        )
    before = reader.launch_known.takes_rest
    if before is not None:
        raise SourceError(
            span,
            f"{before} has no count and takes the rest of the dynamic shared memory: no array can follow it",
            f"give {before} a count: st.dynamic_shared(..., n)",
        )
    if node is None:
        reader.launch_known.takes_rest = name
        return None
    value = reader.value(node)
    if isinstance(value, Tuple) and len(value.items) == 1:
        (value,) = value.items
    if isinstance(value, Literal):
        return ir.Const(_extent(reader, value, reader.span(node)), I32, reader.span(node))
    count = reader.launch_known.resolve(value) if isinstance(value, ir.Expr) else None
    if count is None or count.type.size < 4:
        raise SourceError(
            reader.span(node),
            "a count of dynamic shared memory is an integer that the launch knows",
            "use constants, parameters that are not assigned, st.block_dim and st.grid_dim, of 32 or 64 bits",
        )
    return count


def _shape(reader: FunctionReader, nodes: Sequence[ast.expr]) -> tuple[int, ...]:
    """Return the extents of an array: numbers, or one tuple of them."""
    if len(nodes) == 1 and isinstance(nodes[0], ast.Tuple | ast.List):
        nodes = nodes[0].elts
    values = [(reader.value(node), reader.span(node)) for node in nodes]
    if len(values) == 1 and isinstance(values[0][0], Tuple):
        values = [(item, values[0][1]) for item in values[0][0].items]
    return tuple(_extent(reader, value, span) for value, span in values)


def _extent(reader: FunctionReader, value: Value, span: Span) -> int:
    if isinstance(value, Tuple):
        raise SourceError(span, "an extent is a number, this is a tuple", "write one tuple of numbers, or the numbers")
    extent = reader.constant_value(value, span, "an array's size")
    if extent < 1:
        advice = "write a positive number of elements"
        raise SourceError(span, f"an array needs at least one element, not {extent}", advice)
    return extent


def _table(reader: FunctionReader, node: ast.expr, element: ValueType) -> tuple[Any, ...]:
    value, span = reader.value(node), reader.span(node)
    if isinstance(value, Host) and isinstance(value.object, tuple):  # longer than the compile-time limit
        raise SourceError(span, *(over_capacity("constant", len(value.object)) or ()))
    if not isinstance(value, Tuple) or not value.items or not isinstance(element, Scalar):
        advice = "write st.constant(st.f32, (1.0, 2.0)), or a tuple of the module"
        raise SourceError(span, "a constant table is a tuple of numbers of a scalar type", advice)
    if excess := over_capacity("constant", len(value.items) * element.size):  # before the items are checked
        raise SourceError(span, *excess)
    if not all(isinstance(item, Literal) for item in value.items):
        advice = "use an array of the launch, or shared memory that the kernel fills"
        raise SourceError(span, "a constant table's values must be known at compile time", advice)
    return tuple(typing.cast(item, element, span).value for item in value.items)  # type: ignore[union-attr]


# ------------------------------------------------------------------ arithmetic
def _operation(
    reader: FunctionReader, word: Intrinsic, args: Args, span: Span, python: Callable[..., Any] | None = None
) -> Value:
    """Emit an operation. python: the Python function for folding constants; None for no folding."""
    form = cast(forms.OperationForm, word.form)
    places = form.order or tuple(range(len(args)))
    operands = list(zip(reader.values(*args.values()), map(reader.span, args.values()), strict=True))
    literals = [value for value, _ in operands if isinstance(value, Literal)]
    if python is not None and len(literals) == len(operands):
        return typing.fold(python, literals, span)
    if "count" in args and isinstance(count := operands[-1][0], ir.Expr) and count.type == I32:  # as of >>
        operands[-1] = (typing.cast(count, U32, operands[-1][1]), operands[-1][1])
    values = [operands[place] for place in places]
    fixed: list[ir.Expr] = []
    if first := TABLE[form.op].first:
        (value, value_span), *values = values
        fixed = [typing.converted(value, first, value_span, f"st.{word.name}'s {list(args)[places[0]]}")]
    return typing.operation(form.op, [*fixed, *typing.unified(values, f"st.{word.name}")], span, f"st.{word.name}")


def _operations(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    (node,) = args.values()
    (value,) = typing.unified([(reader.value(node), reader.span(node))], f"st.{word.name}")
    value = value if isinstance(value, ir.Const | ir.Reg) else reader.let(value, word.name, span)
    ops = cast(forms.OperationsForm, word.form).ops
    return Tuple(tuple(typing.operation(op, [value], span, f"st.{word.name}") for op in ops))


def _conjugate(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    return complex_numbers.conjugate(reader, reader.value(args["z"]), span)


def _bitcast(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    target, value = reader.type_of(args["to"]), reader.expr(args["x"])
    if target == value.type:
        return value
    row = f"as_{target}"
    if (
        isinstance(target, Scalar)
        and target.is_integer
        and value.type in (I16, U16, I32, U32, I64, U64)
        and target.size == value.type.size
    ):
        return typing.cast(value, target, span)
    return (
        typing.operation(row, [value], span, f"st.bitcast to {target}")
        if row in TABLE
        else _no_bitcast(value, target, span)
    )


def _no_bitcast(value: ir.Expr, target: ValueType, span: Span) -> Value:
    raise SourceError(
        span,
        f"{value.type} and {target} have no common bits",
        "bitcast joins f32 with i32 and u32, f64 with i64 and u64, f16 and bf16 with i16 and u16",
    )


def _unrolled_range(reader: FunctionReader, word: Intrinsic, args: Args, span: Span) -> Value:
    raise SourceError(span, "st.unroll is allowed only in a for statement", "write: for k in st.unroll(range(K)): ...")


_BINDERS: dict[type, Binder] = {
    **warps.BINDERS,
    **atomics.BINDERS,
    **clusters.BINDERS,
    **copies.BINDERS,
    **matrices.BINDERS,
    **mbarriers.BINDERS,
    forms.AllocationForm: _not_declaring,
    forms.OperationForm: _operation,
    forms.OperationsForm: _operations,
    forms.ConjugateForm: _conjugate, forms.BitcastForm: _bitcast, forms.UnrolledRangeForm: _unrolled_range,
}  # fmt: skip
