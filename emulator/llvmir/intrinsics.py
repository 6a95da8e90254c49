"""Functions that kernels call: LLVM's and NVVM's intrinsics, libdevice and the runtime library, in one table by name."""

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ..ir import nodes as ir
from ..language.forms import BarrierMode, ShuffleMode
from ..language.types import BOOL, I8, I16, I32, I64, Scalar
from .accesses import Scope
from .arithmetic import bitcast, cast, constant, is_constant, operation
from .calls import Handler, fixed, operand_values
from .effect_calls import header_call
from .halves import HalfFunction, half_function
from .instructions import atomic, lanewise, same_value
from .libdevice import FUNCTIONS, POINTED, convert
from .module import Instruction, Number
from .numeric_calls import (
    counted_bits,
    extreme_with_nan,
    float_class,
    fraction_and_exponent,
    funnel_shift,
    integer_power,
    ordering,
    reversed_bits,
    saturating,
    scaled,
    swapped_bytes,
    table_row,
    trailing_zeros,
    unsigned_table_row,
    vector_reduction,
    with_overflow,
)
from .pointers import ELEMENT_CALL, Pointer, indexed
from .printing import text_at
from .texture_calls import reference_handle
from .thread_calls import (
    RANKS,
    SPECIALS,
    active_mask_call,
    barrier,
    clock,
    fence,
    grid_barrier,
    grid_handle,
    lane_mask_call,
    mapped,
    match,
    rank_of_block,
    shuffle,
    sleep,
    special,
    trap,
    vote,
    warp_barrier,
    warp_size,
)
from .types import IntType, PointerType, SequenceType, UnsupportedError, scalar_of
from .values import Item

_INTEGERS = {1: I8, 2: I16, 4: I32, 8: I64}
"""Signed integer types by their bytes."""
MAX_COPY = 1024  # bytes of a memcpy


# ------------------------------------------------------------------ memory
def element_address(scope: Scope, call: Instruction) -> Item:
    """The address of an element: base, flat index, then index and extent of each dimension."""
    match = ELEMENT_CALL.match(call.function)
    assert match is not None
    base = scope.values.pointer(call.operands[0])
    flat, *pairs = arguments_after(scope, call)
    if scope.values.uses[call.name] != 1:
        flat, *pairs = (scope.emitter.let(x, "index") for x in (flat, *pairs))
    unit = SequenceType(IntType(8), int(match[2]))
    moved = indexed(base, unit, [flat])
    within = (tuple(pairs[0::2]), tuple(pairs[1::2]))
    if all(memory.is_dynamic for memory in moved.memories) and any(is_constant(extent, 0) for extent in within[1]):
        return moved  # the launch determines the extent, which the module does not know
    return replace(moved, within=within)


def arguments_after(scope: Scope, call: Instruction) -> list[ir.Expr]:
    return [scope.values.expr(operand) for operand in call.operands[1:]]


def _fill(scope: Scope, call: Instruction) -> None:
    """memset of a constant size: a store of each element."""
    pointer = scope.values.pointer(call.operands[0])
    value, size, *_ = arguments_after(scope, call)
    count, byte = fixed(size, "size of a memset"), fixed(value, "value of a memset") & 255
    (memory,) = pointer.memories
    element = scope.arrays.element(memory, scope.arrays.element_size(memory, 1))
    if count % element.size:
        raise UnsupportedError("a memset of less than an element is not supported")
    pattern = constant(int.from_bytes(bytes([byte]) * element.size, "little"), _INTEGERS[element.size], value.span)
    for offset in range(0, count, element.size):
        scope.arrays.store(pointer.moved(offset), bitcast(pattern, element), "weak")


def copy_unit(call: Instruction) -> int:
    """Return the bytes of each access of a memcpy or memmove: the alignment of its operands, 8 at most.

    Raises UnsupportedError for a size that is computed or too large.
    """
    size = call.operands[2]
    if not isinstance(size, Number) or not 0 <= size.value <= MAX_COPY:
        raise UnsupportedError(f"a copy of a computed size, or of more than {MAX_COPY} bytes, is not supported")
    unit = 8
    while unit > call.alignment or int(size.value) % unit:
        unit //= 2
    return unit


def _copy(scope: Scope, call: Instruction) -> None:
    """memcpy and memmove: all loads, then all stores."""
    target, source = (scope.values.pointer(operand) for operand in call.operands[:2])
    unit, size = copy_unit(call), call.operands[2]
    assert isinstance(size, Number)
    offsets = range(0, int(size.value), unit)
    loaded = [scope.arrays.load(source.moved(o), _INTEGERS[unit], "weak", "copied") for o in offsets]
    for offset, value in zip(offsets, [scope.emitter.let(v, "copied") for v in loaded], strict=True):
        scope.arrays.store(target.moved(offset), value, "weak")


def _ignored(scope: Scope, call: Instruction) -> Item | None:
    return scope.values.zero(call.type) if isinstance(call.type, PointerType | IntType) else None


def _library_atomic(word: str) -> Handler:
    """An atomic operation of the runtime library: pointer and value."""

    def translate(scope: Scope, call: Instruction) -> Item:
        pointer, value = scope.values.pointer(call.operands[0]), scope.values.expr(call.operands[1])
        if word in ("fmax", "fmin") and "_nan" not in call.function:
            return _extreme_of_numbers(scope, word, pointer, value, call)
        return atomic(scope, word, pointer, value, call)

    return translate


def _extreme_of_numbers(scope: Scope, word: str, pointer: Pointer, value: ir.Expr, call: Instruction) -> Item:
    """An atomic minimum or maximum that changes nothing where the element or the value is a NaN; return the old element."""
    emitter = scope.emitter
    value = emitter.let(value, "operand")
    type = scalar_of(call.operands[1].type)
    old = emitter.register("old", type)
    emitter.assign(old, scope.arrays.load(pointer, type, "volatile", "element"))
    ordered = operation("both", operation("eq", old, old), operation("eq", value, value))
    with emitter.block() as body:
        emitter.assign(old, atomic(scope, word, pointer, value, call, used=True))
    emitter.emit(ir.If(ordered, tuple(body), (), emitter.span))
    return old


LIBRARY_ATOMIC = re.compile(r"___numba_atomic_(?:float|double|u64|i\d+)_(\w+)|llvm\.nvvm\.atomic\.load\.(\w+)\..*")
_LIBRARY_WORDS = {
    "add": "fadd", "sub": "fsub", "max": "fmax", "min": "fmin", "nanmax": "fmax", "nanmin": "fmin", "inc": "uinc_wrap",
    "dec": "udec_wrap",
}  # fmt: skip


def library_atomic_word(name: str) -> str:
    """Return LLVM's word for an atomic function of the runtime library; "" for other functions."""
    match = LIBRARY_ATOMIC.fullmatch(name)
    return _LIBRARY_WORDS.get(match[1] or match[2], "") if match else ""


# ------------------------------------------------------------------ libdevice
_REFLECTED = {"__CUDA_FTZ": 1}
"""Parameters of libdevice's code: numbers below the normal ones are 0. Others are 0, as for NVVM."""


def _failed_assertion(scope: Scope, call: Instruction) -> None:
    text = text_at(scope.values.pointer(call.operands[0]))
    scope.emitter.emit(ir.Assert(constant(False, BOOL, scope.emitter.span), text, scope.emitter.span))


def _reflected(scope: Scope, call: Instruction) -> Item:
    text = text_at(scope.values.pointer(call.operands[0]))
    return constant(_REFLECTED.get(text, 0), I32, scope.emitter.span)


def _device_function(scope: Scope, call: Instruction) -> Item | None:
    name = call.function.removeprefix("__nv_")
    if name in POINTED:
        return _with_pointers(scope, call, name)
    arguments = operand_values(scope, call)
    if name in FUNCTIONS:
        return cast(FUNCTIONS[name](*arguments), scalar_of(call.type))
    if len(arguments) == 1 and (result := convert(name, arguments[0])) is not None:
        return result
    raise UnsupportedError(f"the function {call.function} is not supported")


def _of_libdevice(name: str) -> Handler:
    """A function of libdevice's table by another name."""
    return lambda scope, call: cast(FUNCTIONS[name](*operand_values(scope, call)), scalar_of(call.type))


def _of_halves(scope: Scope, call: Instruction) -> Item:
    low, high = operand_values(scope, call)
    return FUNCTIONS["hiloint2double"](high, low)


def _with_pointers(scope: Scope, call: Instruction, name: str) -> Item | None:
    row = POINTED[name]
    value = scope.emitter.let(scope.values.expr(call.operands[0]), "value")
    assert isinstance(value.type, Scalar)
    results = [(function(value), type or value.type) for function, type in row.stored]
    returned = row.returned(value) if row.returned else None
    for (result, type), operand in zip(results, call.operands[1:], strict=True):
        scope.arrays.store(scope.values.pointer(operand), cast(result, type), "weak")
    return returned


def _half_call(function: HalfFunction) -> Handler:
    """A function of halves, with pointers to the result and to its operands."""

    def translate(scope: Scope, call: Instruction) -> Item:
        pointers = [scope.values.pointer(operand) for operand in call.operands]
        values = [
            scope.arrays.load(pointer, memory_type(type), "weak", "operand")
            for pointer, type in zip(pointers[function.first :], function.operands, strict=True)
        ]
        operands = [scope.emitter.let(cast(v, type)) for v, type in zip(values, function.operands, strict=True)]
        result = cast(function.compute(*operands), memory_type(function.result))
        scope.arrays.store(pointers[function.target], result, "weak")
        return scope.values.zero(call.type)

    return translate


def memory_type(type: Scalar) -> Scalar:
    """Return the type of an element of memory with values of a type."""
    return I8 if type is BOOL else type


# ------------------------------------------------------------------ the table
_BARRIERS: dict[str, BarrierMode] = {"": "sync", ".popc": "count", ".and": "and", ".or": "or"}
_SHUFFLES: dict[str, ShuffleMode] = {"idx": "idx", "up": "up", "down": "down", "bfly": "xor"}

_OF_NUMBERS: Mapping[str, Handler] = {
    **{f"llvm.{name}": table_row(own) for name, own in {
        "smax": "max", "smin": "min", "abs": "abs", "fabs": "abs", "sqrt": "sqrt", "fma": "fma", "fmuladd": "fma",
        "maxnum": "max", "minnum": "min", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint",
        "nearbyint": "rint", "roundeven": "rint", "round": "round", "copysign": "copysign", "pow": "pow", "sin": "sin",
        "cos": "cos", "tan": "tan", "exp": "exp", "exp2": "exp2", "exp10": "exp10", "log": "log", "log2": "log2",
        "log10": "log10", "nvvm.fmax.f": "max", "nvvm.fmin.f": "min", "nvvm.fmax.d": "max", "nvvm.fmin.d": "min", "nvvm.fmax.ftz.f": "max",
        "nvvm.fmin.ftz.f": "min", "nvvm.floor": "floor", "nvvm.ceil": "ceil", "nvvm.trunc": "trunc", "nvvm.round": "rint",
        "nvvm.fabs": "abs", "nvvm.sqrt.rn": "sqrt", "nvvm.fma.rn": "fma", "nvvm.add.rn": "add", "nvvm.mul.rn": "mul",
        "nvvm.div.rn": "fdiv", "nvvm.mulhi": "mulhi",
    }.items()},
    **{f"llvm.{name}": unsigned_table_row(own) for name, own in {
        "umax": "max", "umin": "min", "nvvm.mulhi.ui": "mulhi", "nvvm.mulhi.ull": "mulhi",
    }.items()},
    "llvm.ctpop": counted_bits("popcount"), "llvm.ctlz": counted_bits("clz"), "llvm.cttz": trailing_zeros,
    "llvm.bitreverse": reversed_bits, "llvm.bswap": swapped_bytes, "llvm.fshl": funnel_shift(True),
    "llvm.fshr": funnel_shift(False), "llvm.scmp": ordering(True), "llvm.ucmp": ordering(False),
    **{f"llvm.{letter}{op}.sat": saturating(op, letter == "s") for letter in "su" for op in ("add", "sub")},
    "llvm.ldexp": scaled, "llvm.frexp": fraction_and_exponent, "llvm.powi": integer_power, "llvm.is.fpclass": float_class,
    "llvm.maximum": extreme_with_nan("max"), "llvm.minimum": extreme_with_nan("min"),
}  # fmt: skip
CALLS: Mapping[str, Handler] = MappingProxyType({
    **{name: lanewise(handler) for name, handler in _OF_NUMBERS.items()},
    "llvm.trap": trap,
    **{f"llvm.{letter}{op}.with.overflow": with_overflow(op, letter == "s")
       for letter in "su" for op in ("add", "sub", "mul")},
    **{f"llvm.vector.reduce.{op}": vector_reduction(op) for op in (
        "add", "mul", "and", "or", "xor", "smax", "smin", "umax", "umin", "fadd", "fmul", "fmax", "fmin",
    )},
    **{f"llvm.nvvm.read.ptx.sreg.{own}.{axis}": special(f"{index}.{axis}")
       for own, index in SPECIALS.items() for axis in "xyz"},
    **{f"llvm.nvvm.read.ptx.sreg.{own.replace('cluster_', 'cluster.')}": special(index) for own, index in RANKS.items()},
    **{f"llvm.nvvm.read.ptx.sreg.{own.replace('cluster_', 'cluster.')}.{axis}": special(f"{index}.{axis}")
       for own, index in SPECIALS.items() if "cluster" in own for axis in "xyz"},
    **{f"llvm.nvvm.barrier.cluster.{half}": barrier(f"cluster_{half}") for half in ("arrive", "wait")},  # type: ignore[arg-type]
    "llvm.nvvm.mapa": mapped, "llvm.nvvm.getctarank": rank_of_block, "llvm.nvvm.fence.sc.cluster": fence("device"),
    "llvm.nvvm.read.ptx.sreg.laneid": special("lane"), "llvm.nvvm.read.ptx.sreg.warpsize": warp_size,
    **dict.fromkeys((f"llvm.nvvm.read.ptx.sreg.{own}" for own in ("clock", "clock64", "globaltimer")), clock),
    **{f"llvm.nvvm.{own}": _of_libdevice(name) for own, name in {
        "d2i.hi": "double2hiint", "d2i.lo": "double2loint", "saturate": "saturatef", "sad.i": "sad", "sad.ui": "usad",
    }.items()},
    "llvm.nvvm.lohi.i2d": _of_halves,
    **{f"llvm.nvvm.read.ptx.sreg.lanemask.{order}": lane_mask_call(order) for order in ("lt", "le", "eq", "ge", "gt")},
    **{f"llvm.nvvm.barrier0{suffix}": barrier(mode)
       for suffix, mode in _BARRIERS.items()},
    "llvm.nvvm.barrier.cta.sync.aligned.all": barrier("sync"), "llvm.nvvm.barrier.cta.sync.all": barrier("sync"),
    **{f"llvm.nvvm.barrier.cta.red{word}.aligned.all": barrier(mode) for word, mode in _BARRIERS.items() if word},
    "llvm.nvvm.bar.warp.sync": warp_barrier, "cudaCGGetIntrinsicHandle": grid_handle, "cudaCGSynchronize": grid_barrier,
    "llvm.nvvm.membar.cta": fence("block"), "llvm.nvvm.membar.gl": fence("device"), "llvm.nvvm.membar.sys": fence("device"),
    "llvm.nvvm.shfl.sync": shuffle(None),
    **{f"llvm.nvvm.shfl.sync.{word}": shuffle(mode) for word, mode in _SHUFFLES.items()},
    "llvm.nvvm.vote.sync": vote(None), "llvm.nvvm.vote.all.sync": vote("all"), "llvm.nvvm.vote.any.sync": vote("any"),
    "llvm.nvvm.vote.uni.sync": vote("uni"), "llvm.nvvm.vote.ballot.sync": vote("ballot"),
    "llvm.nvvm.match.any.sync": match, "llvm.nvvm.match.all.sync": match, "llvm.nvvm.activemask": active_mask_call,
    "llvm.nvvm.nanosleep": sleep, "llvm.memset": _fill,
    "llvm.nvvm.texsurf.handle.internal": reference_handle,
    "llvm.memcpy": _copy, "llvm.memmove": _copy, "llvm.expect": same_value, "llvm.stacksave": _ignored,
    "llvm.stackrestore": _ignored,
    "__nvvm_reflect": _reflected, "__assertfail": _failed_assertion,
    "NRT_incref": _ignored, "NRT_decref": _ignored,  # allocations are refused: no count has an effect
})  # fmt: skip


def handler_of(name: str) -> Handler:
    """Return the translation of calls of a function; suffixes of overloaded intrinsics are ignored. Raises UnsupportedError."""
    if ELEMENT_CALL.match(name):
        return element_address
    if (own := header_call(name)) is not None:
        return own
    if name.startswith("__nv_"):
        return _device_function
    if (function := half_function(name)) is not None:
        return _half_call(function)
    if word := library_atomic_word(name):
        return _library_atomic(word)
    stem = name
    while stem:
        if stem in CALLS:
            return CALLS[stem]
        stem = stem.rpartition(".")[0]
    if name in _ALLOCATORS:
        raise UnsupportedError("an allocation of memory in a kernel is not supported")
    raise UnsupportedError(f"the function {source_name(name)} is not supported")


_ALLOCATORS = ("_Znwm", "_Znam", "malloc")


def source_name(symbol: str) -> str:
    """Return the name of a function of C++ in its symbol, with its namespaces; other symbols as they are."""
    match = re.match(r"_ZL?N?K?(\d.*)", symbol)
    rest, names = match[1] if match else "", list[str]()
    while length := re.match(r"\d+", rest):
        end = length.end() + int(length[0])
        names.append(rest[length.end() : end])
        rest = rest[end:]
    return "::".join(names) or symbol
