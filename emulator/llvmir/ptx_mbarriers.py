"""The PTX instructions of barriers in shared memory: rows as in `ptx_table`."""

import re
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from ..ir import mbarriers
from ..ir import nodes as ir
from ..ir.updates import reduced_types
from ..language.forms import AsyncMode
from ..language.tensor_maps import ELEMENTS, FIRST_ELEMENT, SHARED_ALIGNMENT, SIZES, STRIDES, SWIZZLES, WORDS
from ..language.types import BOOL, I32, I64, U8, U32, U64, Scalar
from .arithmetic import cast, operation
from .arrays import Need, atomic_need
from .assembly import Registers
from .calls import fixed
from .handles import KernelMap
from .pointers import Pointer
from .ptx_table import TYPES, row
from .types import UnsupportedError

_SHARED = r"(?:\.shared(?:::cta|::cluster)?)?\.b64"
_RELEASE, _ACQUIRE = r"(?:\.release)?(?:\.cta|\.cluster)?", r"(?:\.acquire)?(?:\.cta|\.cluster)?"


def _number(r: Registers, operand: str) -> ir.Expr:
    return r.let(cast(r.read(operand, U32), U64))


def _operate(r: Registers, op: Any, place: str, operand: ir.Expr, order: Any) -> ir.Expr:
    """Perform an operation; return the word before it."""
    return r.let(r.scope.arrays.atomic(op, r.address(place), operand, True, "barrier", (order, "block")))


@row(rf"mbarrier\.(init|inval){_SHARED}")
def _initialise(r: Registers, mode: str, place: str, count: str = "0") -> None:
    word = mbarriers.initial(_number(r, count)) if mode == "init" else r.number(0, U64)
    r.scope.arrays.store(r.address(place), word, "mbarrier")


@row(rf"mbarrier\.arrive(\.expect_tx)?{_RELEASE}{_SHARED}")
def _arrive(r: Registers, expects: str | None, state: str, place: str, count: str = "1") -> None:
    op = "mbarrier_arrive_expect_tx" if expects else "mbarrier_arrive"
    r.write(state, _operate(r, op, place, _number(r, count), "release"))


@row(rf"cp\.async\.mbarrier\.arrive(\.noinc)?{_SHARED}")
def _arrive_after_copies(r: Registers, noinc: str | None, place: str) -> None:
    """Wait for the copies of the thread, then arrive. Without noinc the instruction also expects this arrival: no change."""
    r.scope.emitter.emit(ir.AsyncCommit(r.span))
    r.scope.emitter.emit(ir.AsyncWait(0, r.span))
    if noinc:
        _operate(r, "mbarrier_arrive", place, r.number(1, U64), "release")


@row(rf"mbarrier\.(expect|complete)_tx(?:\.relaxed)?(?:\.cta|\.cluster)?{_SHARED}")
def _transaction(r: Registers, mode: str, place: str, bytes: str) -> None:
    order = "relaxed" if mode == "expect" else "release"
    _operate(r, f"mbarrier_{mode}_tx", place, _number(r, bytes), order)


@row(rf"mbarrier\.(loop\.)?(test|try)_wait(\.parity)?{_ACQUIRE}{_SHARED}")
def _wait(
    r: Registers, loop: str | None, mode: str, parity: str | None, complete: str, place: str, state: str, time: str = ""
) -> None:
    """loop: the instruction is repeated until it succeeds (`assembly.statements`). time: a limit, without an effect here."""
    phase = mbarriers.state_of_parity(_number(r, state)) if parity else r.read(state, U64)
    op = f"mbarrier_{mode if parity else 'test'}_wait{'_parity' if parity else ''}"
    phase, emitter = r.let(phase), r.scope.emitter
    if not loop:
        r.write(complete, mbarriers.is_complete(_operate(r, op, place, phase, "acquire"), phase))
        return
    with emitter.block() as setup:
        is_done = r.let(mbarriers.is_complete(_operate(r, op, place, phase, "acquire"), phase))
    emitter.emit(ir.While(tuple(setup), operation("not", is_done), (), r.span))
    r.write(complete, ir.Const(True, BOOL, r.span))


@row(r"cp\.async\.bulk\.shared::(?:cluster|cta)\.global\.mbarrier::complete_tx::bytes(?:\.L2::cache_hint)?")
def _bulk_copy(r: Registers, target: str, source: str, bytes: str, barrier: str, hint: str = "") -> None:
    counted = r.scope.arrays.own_place(r.address(barrier), 8, U64)
    copy = replace(_copied(r, target, source, bytes), barrier=ir.ArrayRef(counted.array, r.span), which=counted.index)
    r.scope.emitter.emit(copy)


def _copied(r: Registers, target: str, source: str, bytes: str) -> ir.BulkCopy:
    """Return a copy without a barrier."""
    own, other = (
        r.scope.arrays.own_place(r.address(place), 16, U32, reads) for place, reads in ((target, False), (source, True))
    )
    refs = [ir.ArrayRef(place.array, r.span) for place in (own, other)]
    size = r.let(r.read(bytes, I32))
    return ir.BulkCopy(refs[0], own.index, refs[1], other.index, size, None, r.number(0), r.span)


@row(r"cp\.async\.bulk\.global\.shared::cta\.bulk_group(?:\.L2::cache_hint)?")
def _bulk_store(r: Registers, target: str, source: str, bytes: str, hint: str = "") -> None:
    r.scope.emitter.emit(_copied(r, target, source, bytes))


_OP = r"(add|min|max|inc|dec|and|or|xor)"
_REDUCTION = re.compile(
    rf"cp\.reduce\.async\.bulk\.global\.shared::cta\.bulk_group(?:\.L2::cache_hint)?\.{_OP}(?:\.noftz)?\.(b?[subf]\d+)"
)


@row(_REDUCTION.pattern)
def _bulk_reduction(r: Registers, op: Any, type: str, target: str, source: str, bytes: str, hint: str = "") -> None:
    element = _reduced(op, TYPES[type], False)
    r.scope.emitter.emit(replace(_copied(r, target, source, bytes), op=op, element=element))


def _reduced(op: Any, type: Scalar, boxes: bool) -> Scalar:
    """Return the type of elements that PTX has a reduction for. Raises UnsupportedError."""
    if type not in reduced_types(op, boxes):
        raise UnsupportedError(f"a bulk reduction {op} of {type} is not supported: PTX has none")
    return type


_COORDINATES = re.compile(r"\[([^,]+),\s*\{([^}]*)\}\s*\]")
"""The operand of a box: the tensor map, and its coordinates from the innermost on."""
_TILE = r"([1-5])d"
_SHARED_BOX = r"shared::(?:cluster|cta)\.global(?:\.tile)?\.mbarrier::complete_tx::bytes"


@row(rf"cp\.async\.bulk\.tensor\.{_TILE}\.{_SHARED_BOX}(?:\.L2::cache_hint)?")
def _tensor_copy(r: Registers, rank: str, target: str, box: str, barrier: str, hint: str = "") -> None:
    counted = r.scope.arrays.own_place(r.address(barrier), 8, U64)
    _copy_box(r, int(rank), target, box, ir.ArrayRef(counted.array, r.span), counted.index)


@row(rf"cp\.async\.bulk\.tensor\.{_TILE}\.global\.shared::cta()(?:\.tile)?\.bulk_group(?:\.L2::cache_hint)?")
@row(
    rf"cp\.reduce\.async\.bulk\.tensor\.{_TILE}\.global\.shared::cta\.{_OP}(?:\.tile)?\.bulk_group(?:\.L2::cache_hint)?"
)
def _tensor_store(r: Registers, rank: str, op: Any, box: str, source: str, hint: str = "") -> None:
    _copy_box(r, int(rank), source, box, None, r.number(0), op or None)


def _copy_box(
    r: Registers, rank: int, shared: str, box: str, barrier: ir.ArrayRef | None, which: ir.Expr, op: Any = None
) -> None:
    match = _COORDINATES.fullmatch(box.strip())
    coordinates = match[2].split(",") if match else []
    if match is None or len(coordinates) != rank:
        raise UnsupportedError(f"the box {box} of inline assembly is not supported")
    pointer, words = r.address(match[1]), None
    if kernel_map := r.scope.textures.kernel_maps.get(_key(pointer)):
        name, form, words = kernel_map.array, kernel_map.form(rank), r.scope.arrays.own_place(pointer, 8, U64, True)
    else:
        name, form = r.scope.textures.tensor(pointer, rank)
    place = r.scope.arrays.own_place(r.address(shared), SHARED_ALIGNMENT, U32, barrier is None)
    refs = [ir.ArrayRef(own, r.span) for own in (name, place.array)]
    at = tuple(r.let(r.read(own.strip(), I32)) for own in coordinates)
    if op is not None:
        _reduced(op, form.element, True)
    copy = ir.TensorCopy(refs[0], at, form, refs[1], place.index, barrier, which, r.span, op=op)
    if words is not None:
        copy = replace(copy, words=ir.ArrayRef(words.array, r.span), word=r.let(cast(words.index, I64)))
    r.scope.emitter.emit(copy)


@row(r"fence\.proxy\.tensormap(?:::generic)?\.(?:acquire|release)\.(?:cta|cluster|gpu|sys)")
def _fence_of_maps(r: Registers, *operands: str) -> None:
    """A copy reads a tensor map where it is issued."""


_ELEMENT_TYPES = {**dict(enumerate(ELEMENTS[:8])), **dict(enumerate(ELEMENTS[8:10], 9))}
"""Those of `elemtype`; number 8 flushes f32, later ones round to tf32."""


def _key(pointer: Pointer) -> Hashable:
    """Return what two pointers to one address have in common where they are the same value and a constant."""
    terms = ((value.name if isinstance(value, ir.Reg) else id(value), scale) for value, scale in pointer.terms)
    return tuple(map(id, pointer.memories)), pointer.constant, tuple(terms)


@row(r"tensormap\.replace\.tile\.(\w+)\.shared::cta\.b1024\.b(?:32|64)")
def _replace_field(r: Registers, name: str, place: str, *operands: str) -> None:
    """Write a field of a tensor map in shared memory, of which the sizes, strides and the first element are data."""
    pointer, arrays, value = r.address(place), r.scope.arrays, operands[-1]
    maps = r.scope.textures.kernel_maps
    kernel_map = maps.setdefault(pointer.memories, KernelMap())  # one at a time in each shared array
    number = int(operands[0], 0) if operands[0].isalnum() else 0
    match name:
        case "global_address" if not kernel_map.array:
            tensor = r.address(value)
            kernel_map.element = tensor.memories[0].declared or U8
            own = arrays.place(tensor, kernel_map.element.size)
            kernel_map.array = own.array
            arrays.store(pointer.moved(8 * FIRST_ELEMENT), cast(own.index, U64), "weak")
        case "global_dim":
            arrays.store(pointer.moved(8 * (SIZES + number)), cast(r.read(value, U32), U64), "weak")
        case "global_stride":
            arrays.store(pointer.moved(8 * (STRIDES + number)), r.read(value, U64), "weak")
        case "box_dim":
            kernel_map.extents[number] = fixed(r.read(value, I32), "box of a tensor map")
        case "swizzle_mode":
            kernel_map.swizzle = SWIZZLES[number]
        case "fill_mode":
            kernel_map.fill = "nan" if number else "zero"
        case "elemtype" if number in _ELEMENT_TYPES:
            kernel_map.type = _ELEMENT_TYPES[number]
        case "rank" | "element_stride" | "interleave_layout":
            pass
        case _:
            raise UnsupportedError(f"the field {name} of a tensor map is not supported with {value} here")


@row(r"tensormap\.cp_fenceproxy\.global\.shared::cta\.tensormap::generic\.release\.\w+\.sync\.aligned")
def _publish_map(r: Registers, target: str, source: str, bytes: str) -> None:
    """Copy a tensor map to global memory, a word a lane."""
    arrays, emitter, lane = r.scope.arrays, r.scope.emitter, ir.Special("lane", I32, r.span)
    pointers = r.address(target), r.address(source)
    to, own = (replace(pointer, terms=(*pointer.terms, (lane, 8))) for pointer in pointers)
    with emitter.block() as body:
        arrays.store(to, arrays.load(own, U64, "weak", "word"), "weak")
    emitter.emit(ir.If(operation("lt", lane, r.number(WORDS)), tuple(body), (), r.span))
    if kernel_map := r.scope.textures.kernel_maps.pop(pointers[1].memories, None):
        r.scope.textures.kernel_maps[_key(pointers[0])] = kernel_map


@row(r"cp\.async\.bulk\.(commit_group|wait_group(?:\.read)?)")
def _bulk_order(r: Registers, name: str, pending: str = "0") -> None:
    modes: dict[str, AsyncMode] = {
        "commit_group": "bulk_commit",
        "wait_group": "bulk_wait",
        "wait_group.read": "bulk_wait_read",
    }
    number = fixed(r.read(pending, I32), "number of pending copies")
    r.scope.emitter.emit(ir.AsyncOrder(modes[name], r.span, pending=number))


@row(r"fence\.mbarrier_init\.release\.cluster")
def _initialised(r: Registers) -> None:
    """A barrier of the block follows."""


def accessed(name: str) -> list[tuple[Scalar, Need]]:
    """Return the type of the elements that an instruction accesses, and its need."""
    if reduction := _REDUCTION.fullmatch(name):
        type = TYPES[reduction[2]]
        return [(type, atomic_need(reduction[1], type))]
    if name.startswith(("cp.async.bulk", "cp.reduce.async.bulk")) and "shared" in name:
        return [(U32, "any")]
    if name.startswith("tensormap."):
        return [(U64, "any")]
    return [(U64, "exact")] if name.startswith(("mbarrier.", "cp.async.mbarrier.")) else []
