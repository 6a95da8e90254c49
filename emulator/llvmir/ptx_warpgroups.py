"""The PTX instructions of warpgroups: rows as in `ptx_table`.

A descriptor has the address of its matrix in shared memory. The number of an address has the bytes from the start of its memory in its
low bits (`Memories.address`), as `ir.Wgmma` expects it; the memory is that of the operand.
"""

import re

from ..ir import nodes as ir
from ..ir.matrices import BITS, GROUP_INSTRUCTIONS
from ..language.types import BOOL, U32, U64, Array, Scalar
from .arithmetic import constant
from .assembly import Registers
from .pointers import Pointer
from .ptx_matrices import fragment, names
from .ptx_table import row
from .types import UnsupportedError


def _matrix(r: Registers, name: str) -> tuple[ir.ArrayRef, ir.Expr]:
    """Return the array and the descriptor of an operand. Raises UnsupportedError for one of several arrays."""
    source = r.sources.get(name.strip())
    memories = [] if source is None else [own for own in r.scope.memories.addressed_by(source) if own.space == "shared"]
    if len(memories) != 1:
        raise UnsupportedError(f"the shared memory of the descriptor {name} of wgmma is not known")
    place = r.scope.arrays.place(Pointer((memories[0],)), U32.size, U32, reads=True)
    return ir.ArrayRef(place.array, r.span), r.let(r.read(name, U64))


@row(r"wgmma\.mma_async\.sync\.aligned\.(m64n\d+k\d+)((?:\.\w+){3})")
def _multiply_add(r: Registers, shape: str, types: str, d: str, a: str, b: str, scale: str, *flags: str) -> None:
    instruction = GROUP_INSTRUCTIONS.get(shape + types)
    if instruction is None:
        raise UnsupportedError(f"the matrix multiply-accumulate wgmma {shape}{types} is not supported")
    part, in_a = instruction.part, None
    if a.strip().startswith("{"):
        own = fragment(r, [r.read(name, U32) for name in names(a)], U32)
    else:
        in_a, own = _matrix(r, a)
    in_b, other = _matrix(r, b)
    add = r.let(r.read(scale, BOOL))
    numbers = [int(flag, 0) for flag in flags]
    signs, order = ([1, 1], numbers) if part.total == "s32" else (numbers[:2], numbers[2:])
    given = 0 if BITS[part.a] != 16 else 1 if in_a is None else 2
    if len(order) != given or len(signs) != 2 or own.type not in (U64, part.types[0]):
        raise UnsupportedError(f"the operands of wgmma {shape}{types} are not supported")
    transposed = [False, False, *map(bool, order)][-2:]
    span, results = r.span, names(d)
    if len(results) != instruction.registers:
        raise UnsupportedError(f"D of wgmma {shape}{types} has other registers")
    emitter, element = r.scope.emitter, instruction.element
    array = emitter.register("wgmma", element).name
    emitter.emit(ir.Alloc(array, Array(element, (len(results),), "register"), (), span))
    items = [ir.Item(array, r.number(number), element, span) for number in range(len(results))]
    for item, name in zip(items, results, strict=True):
        before = (
            r.read(name, element) if name in r.values else constant(0, element, span)
        )  # only written: `add` is false
        emitter.emit(ir.Let(item, before, span))
    negative = signs[0] * signs[1] < 0
    emitter.emit(
        ir.Wgmma(
            instruction.name, ir.ArrayRef(array, span), own, in_a, other, in_b, add,
            (transposed[0], transposed[1]), negative, span,
        )
    )  # fmt: skip
    for item, name in zip(items, results, strict=True):
        r.write(name, item)


@row(r"wgmma\.(fence|commit_group|wait_group)\.sync\.aligned")
def _order(r: Registers, mode: str, pending: str = "0") -> None:
    words = {"fence": "fence", "commit_group": "commit", "wait_group": "wait"}
    r.scope.emitter.emit(ir.AsyncOrder(words[mode], r.span, pending=int(pending, 0)))  # type: ignore[arg-type]


@row(r"fence\.proxy\.async(?:\.shared::cta|\.shared::cluster|\.global)?")
def _proxy_fence(r: Registers) -> None:
    r.scope.emitter.emit(ir.AsyncOrder("proxy", r.span))


def accessed(name: str) -> list[Scalar]:
    """Return the types of the elements that an instruction accesses."""
    return [U32] if re.match(r"wgmma\.mma_async\.", name) else []
