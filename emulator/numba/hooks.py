"""Changes of Numba's lowering that preserve columns, element accesses and array names in its LLVM IR. They change no result.

They act during a compilation for the emulator (`compiling.recording`). Other compilations, as by `cuda.compile`, are unchanged.
The import of this module imports Numba's lowering: `numba.cuda` defers it to the first compilation.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from llvmlite import ir as llvm
from numba.cuda import cgutils, cudaimpl, debuginfo, lowering, types
from numba.cuda.core import callconv
from numba.cuda.np import arrayobj

from ..errors import CompileError, Diagnostic
from ..llvmir.emitting import VARIABLE
from ..llvmir.pointers import ELEMENT
from ..span import Span
from .marks import (
    EXCEPTIONS,
    FIRST_CODE,
    MARKS,
    POSITIONS,
    RaisedException,
    identifier,
    preserve_columns,
    variable_name,
)
from .packages import NUMBA_CUDA
from .positions import PositionLine

PURE = ("nounwind", "readnone", "willreturn", "speculatable")
"""Attributes of the opaque function of an element's address: LLVM may move, merge and remove its calls."""
_WORD = llvm.IntType(64)


@cache
def install_hooks() -> None:
    """Replace the functions of Numba, once in a process."""
    _preserve_columns()
    _preserve_element_accesses()
    _preserve_pointers()
    _preserve_array_names()
    _reshape_without_library()
    _preserve_variable_names()
    _number_exceptions()
    _explain_empty_bodies()


# ------------------------------------------------------------------ columns
def _preserve_columns() -> None:
    preserve_columns(NUMBA_CUDA)
    adjusted = lowering.Lower._adjust_line_if_prologue

    def adjust_line(
        self: Any, line: int
    ) -> Any:  # of a function inlined by Numba: also one before the kernel in its file
        return line if isinstance(line, PositionLine) else adjusted(self, line)

    lowering.Lower._adjust_line_if_prologue = adjust_line
    location = debuginfo.DIBuilder._di_location

    def di_location(self: Any, line: int) -> Any:
        if not MARKS.active:
            return location(self, line)
        number = line.number if isinstance(line, PositionLine) else POSITIONS.number(_whole_line(self.filepath, line))
        return location(self, number)

    debuginfo.DIBuilder._di_location = di_location
    for builder in (debuginfo.DIBuilder, debuginfo.CUDADIBuilder):
        builder.mark_variable = _unless_active(builder.mark_variable, lambda self: None)
        builder._di_subroutine_type = _unless_active(builder._di_subroutine_type, _untyped)


def _whole_line(file: str, line: int) -> Span:
    return Span(file, line, 1, line, 1)


def _unless_active(function: Any, active: Any) -> Any:
    """Return a method with another result in a compilation for the emulator: types and variables of debuggers are half of the text."""

    def call(self: Any, *args: Any, **options: Any) -> Any:
        return active(self) if MARKS.active else function(self, *args, **options)

    return call


def _untyped(builder: Any) -> Any:
    return builder.module.add_debug_info("DISubroutineType", {"types": builder.module.add_metadata([])})


# ------------------------------------------------------------------ element accesses
def _preserve_element_accesses() -> None:
    """Compute the address of an element by a call with its indices and extents. Atomics, ufuncs and slices use the same function."""
    original = cgutils.get_item_pointer2

    def get_item_pointer2(  # noqa: PLR0913 - the parameters are Numba's
        context: Any,
        builder: Any,
        data: Any,
        shape: Sequence[Any],
        strides: Sequence[Any],
        layout: str,
        inds: Sequence[Any],
        wraparound: bool = False,
        boundscheck: bool = False,
    ) -> Any:
        if not MARKS.active or not inds:
            return original(context, builder, data, shape, strides, layout, inds, wraparound, boundscheck)
        indices = [_widened(builder, index) for index in inds]
        if wraparound:
            indices = [_wrapped(builder, index, extent) for index, extent in zip(indices, shape, strict=False)]
        size = context.get_abi_sizeof(data.type.pointee)
        steps = _steps(builder, shape, strides, layout, size)
        flat = _WORD(0)
        for index, step in zip(indices, steps, strict=False):
            flat = builder.add(flat, builder.mul(index, step))
        operands = [data, flat]
        for index, extent in zip(indices, shape, strict=False):
            operands += [index, extent]
        return builder.call(_element_function(builder.module, data.type, len(indices), size), operands)

    cgutils.get_item_pointer2 = get_item_pointer2


def _widened(builder: Any, index: Any) -> Any:
    return builder.sext(index, _WORD) if index.type.width < _WORD.width else index


def _wrapped(builder: Any, index: Any, extent: Any) -> Any:
    """Return an index of Python: a negative one counts from the end."""
    negative = builder.icmp_signed("<", index, index.type(0))
    return builder.select(negative, builder.add(extent, index), index)


def _steps(builder: Any, shape: Sequence[Any], strides: Sequence[Any], layout: str, size: int) -> list[Any]:
    """Return the distance of neighbours along each dimension, in elements."""
    if layout == "A":
        return [builder.sdiv(stride, _WORD(size), flags=("exact",)) for stride in strides]
    axes = range(len(shape)) if layout == "F" else reversed(range(len(shape)))
    steps: list[Any] = [None] * len(shape)
    step: Any = _WORD(1)
    for axis in axes:
        steps[axis] = step
        step = builder.mul(step, shape[axis])
    return steps


def _element_function(module: Any, pointer: Any, dimensions: int, size: int) -> Any:
    """Return the declaration of the opaque function of the address of an element (`simtbed.llvmir`)."""
    suffix = "".join(character if character.isalnum() else "_" for character in str(pointer))
    name = f"{ELEMENT}.{dimensions}.{size}.{suffix}"
    function = cgutils.get_or_insert_function(
        module, llvm.FunctionType(pointer, [pointer] + [_WORD] * (1 + 2 * dimensions)), name
    )
    attributes = function.attributes
    attributes._known = attributes._known | set(PURE)
    for attribute in PURE:
        attributes.add(attribute)
    return function


def _preserve_pointers() -> None:
    """Add bytes to a pointer without a conversion to a number. Iterators of arrays do so."""
    original = cgutils.pointer_add

    def pointer_add(builder: Any, ptr: Any, offset: Any, return_type: Any = None) -> Any:
        if not MARKS.active:
            return original(builder, ptr, offset, return_type)
        count = _WORD(offset) if isinstance(offset, int) else offset
        moved = builder.gep(builder.bitcast(ptr, cgutils.voidptr_t), [count])
        return builder.bitcast(moved, return_type or ptr.type)

    cgutils.pointer_add = pointer_add


# ------------------------------------------------------------------ array names
def _preserve_array_names() -> None:
    """Add the variable of a shared or local array, whether its integers are unsigned, and its position to its symbol."""
    generic_array, lower_assign = cudaimpl._generic_array, lowering.Lower.lower_assign

    def named_array(
        context: Any, builder: Any, shape: Any, dtype: Any, symbol_name: str, *rest: Any, **options: Any
    ) -> Any:
        if MARKS.active:
            unsigned = isinstance(dtype, types.Integer) and not dtype.signed
            symbol_name += f".simtbed.{MARKS.target or 'array'}.{'u' if unsigned else 's'}.{MARKS.position}"
        array = generic_array(context, builder, shape, dtype, symbol_name, *rest, **options)
        if MARKS.active:
            _remove_fill(builder.function.entry_basic_block, symbol_name)
        return array

    def lower_named_assign(self: Any, type: Any, statement: Any) -> Any:
        if MARKS.active:
            MARKS.target = variable_name(NUMBA_CUDA, self.blocks, statement.target)
        return lower_assign(self, type, statement)

    lower_inst = lowering.Lower.lower_inst

    def lower_at_position(self: Any, statement: Any) -> Any:
        before, MARKS.position = MARKS.position, getattr(self.loc.line, "number", 0)
        try:
            return lower_inst(self, statement)
        finally:
            MARKS.position = before  # of a statement that compiles a function

    lowering.Lower.lower_inst = lower_at_position
    cudaimpl._generic_array = named_array
    lowering.Lower.lower_assign = lower_named_assign


def _remove_fill(entry: Any, symbol: str) -> None:
    """Remove the store of zeros to a new local array: its elements are 0 on the emulators, and have not been written by the kernel."""
    for store in entry.instructions:
        if isinstance(store, llvm.StoreInstr) and store.operands[1].name.startswith(symbol):
            entry.instructions.remove(store)
            return


# ------------------------------------------------------------------ reshape
def _reshape_without_library() -> None:
    """Compute the strides of a reshaped contiguous array here: Numba links a function of CUDA C++ for arrays of all layouts."""
    original = arrayobj._attempt_nocopy_reshape

    def reshape(context: Any, builder: Any, aryty: Any, ary: Any, newnd: int, newshape: Any, newstrides: Any) -> Any:
        if not MARKS.active or aryty.layout != "C":
            return original(context, builder, aryty, ary, newnd, newshape, newstrides)
        extents = cgutils.unpack_tuple(builder, builder.load(newshape))
        count, steps = _WORD(1), []
        for extent in reversed(extents):
            steps.append(builder.mul(count, ary.itemsize))
            count = builder.mul(count, extent)
        builder.store(cgutils.pack_array(builder, steps[::-1], _WORD), newstrides)
        return builder.zext(builder.icmp_signed("==", count, ary.nitems), llvm.IntType(32))

    arrayobj._attempt_nocopy_reshape = reshape


# ------------------------------------------------------------------ variable names
def _preserve_variable_names() -> None:
    """Name the values of variables after them."""
    store, allocate = lowering.Lower.storevar, lowering.Lower._alloca_var

    def store_named(self: Any, value: Any, name: str, argidx: Any = None) -> Any:
        is_number = isinstance(value.type, llvm.IntType | llvm.FloatType | llvm.DoubleType)
        if MARKS.active and MARKS.target and argidx is None and is_number and isinstance(value, llvm.Instruction):
            value.name = VARIABLE + MARKS.target
        return store(self, value, name, argidx)

    def allocate_named(self: Any, name: str, type: Any) -> Any:
        result = allocate(self, name, type)
        if MARKS.active and not name.startswith("$") and name in self.varmap:
            self.varmap[name].name = VARIABLE + identifier(name.split(".")[0])
        return result

    lowering.Lower.storevar = store_named
    lowering.Lower._alloca_var = allocate_named


# ------------------------------------------------------------------ exceptions
def _number_exceptions() -> None:
    """Give the exceptions of all functions different codes. Numba counts them in each function, and loses those of device functions."""
    helper = callconv._MinimalCallHelper
    add_exception = helper._add_exception

    def add_numbered(self: Any, type: Any, arguments: Any, place: Any) -> Any:
        if not MARKS.active:
            return add_exception(self, type, arguments, place)
        span = POSITIONS.spans.get(getattr(place[2], "number", 0) if place else MARKS.position)
        if span is not None and span.file.startswith(NUMBA_CUDA.folders):
            span = None
        own = place and (place[0], place[1], int(place[2]))
        code = FIRST_CODE + len(EXCEPTIONS)
        EXCEPTIONS[code] = RaisedException(type, tuple(arguments or ()), own, span)
        return code

    helper._add_exception = add_numbered


# ------------------------------------------------------------------ errors
def _explain_empty_bodies() -> None:
    """Name the cause where Numba-CUDA fails: it looks for the first statement after the docstring, on a GPU too."""
    definition_line = lowering.get_func_def_lineno

    def explained(function: Any) -> Any:
        try:
            return definition_line(function)
        except IndexError:
            code = function.__code__
            span = Span(code.co_filename, code.co_firstlineno, 1, code.co_firstlineno, 1)
            message = f"{function.__name__}: Numba-CUDA compiles no body of a docstring alone: write pass after it"
            raise CompileError([Diagnostic("compile", message, span)]) from None

    lowering.get_func_def_lineno = explained
