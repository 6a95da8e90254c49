"""The PTX instructions of inline assembly that access memory or other lanes: rows as in `ptx_table`."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..ir import nodes as ir
from ..language.types import BOOL, F32, I16, I32, I64, U32, VECTORS, Scalar, Vector
from .accesses import regrouped
from .arithmetic import SIGNED, UNSIGNED, cast, constant, operation
from .arrays import Need, Ordering, atomic_need
from .assembly import Registers, Statement, packed, pairs
from .calls import fixed
from .effect_calls import COPIED, copy_async
from .ptx_table import PAIRED, TYPES, row
from .thread_calls import active_mask, shuffled, shuffled_in_limits, trap
from .types import UnsupportedError

# ------------------------------------------------------------------ memory
_HINTS = r"ca|cg|cs|lu|wb|nc|L1::\w+|L2::\w+|unified"
_SPACE = r"global|shared|local|const|param|shared::cta|shared::cluster"
_ORDER = r"volatile|weak|relaxed|acquire|release|acq_rel|cv|wt|cta|cluster|gpu|sys"
_ACCESS = re.compile(rf"(ld|ldu|st)((?:\.(?:{_ORDER}|{_SPACE}|{_HINTS}))*)(\.v2|\.v4)?\.([subf]+\d+)")
_HINT = ".L2::cache_hint"
"""The modifier of an access whose last operand is a policy of the cache."""
_LEVELS: dict[str | None, Any] = {"cta": "block", "cluster": "device", "gpu": "device", "sys": "system", None: "device"}


_WORDS: dict[int, Scalar | Vector] = {2: I16, 4: I32, 8: VECTORS["int2"], 16: VECTORS["int4"]}
"""Accesses to vectors without a type of their own, by their bytes."""


def _value_type(vector: str | None, type: str) -> Scalar | Vector:
    """Return the type of the access. Raises UnsupportedError."""
    own = TYPES[type]
    if vector is None:
        return own
    lanes = int(vector[2:])
    result = next((v for v in VECTORS.values() if v.element is own and v.lanes == lanes and v.name[0] != "c"), None)
    if result is None and own.size * lanes not in _WORDS:
        raise UnsupportedError(f"an access {vector}.{type} of inline assembly is not supported")
    return result or _WORDS[own.size * lanes]


@row(_ACCESS.pattern)
def _access(
    r: Registers,
    op: str,
    modifiers: str,
    vector: str | None,
    type: str,
    *operands: str,
) -> None:
    orders = {"acquire": "acquire", "release": "release"} | dict.fromkeys(
        ("volatile", "relaxed", "cv", "wt"), "volatile"
    )
    words = modifiers.split(".")
    how: Any = next((orders[word] for word in words if word in orders), "weak")
    level = next((word for word in words if word in _LEVELS), None)
    own, arrays = _value_type(vector, type), r.scope.arrays
    operands = operands[: len(operands) - (_HINT in modifiers)]
    place, register = operands[::-1] if op != "st" else operands
    names = _names(register)
    pointer = r.address(place)
    lane, unit = TYPES[type], own.element if isinstance(own, Vector) else own
    if op == "st":
        values = regrouped([r.read(name, lane) for name in names], unit)
        if isinstance(own, Vector):
            arrays.store_vector(pointer, values, own, how)
        else:
            arrays.store(pointer, values[0], how, _LEVELS[level])
        return
    if isinstance(own, Vector):
        loaded = arrays.load_vector(pointer, own, how, "loaded")
    else:
        loaded = [r.let(arrays.load(pointer, own, how, "loaded", _LEVELS[level]))]
    if unit is not lane:
        loaded = regrouped(loaded, lane)
    for name, value in zip(names, loaded, strict=True):
        r.write(name, cast(value, I32 if lane in UNSIGNED else U32) if lane.size < 2 else value)


_MODIFIERS = (
    r"((?:\.(?:relaxed|acquire|release|acq_rel|global|shared|shared::cta|shared::cluster|cta|cluster|gpu|sys))*)"
)
_ATOMIC = re.compile(
    rf"(atom|red){_MODIFIERS}\.(add|min|max|and|or|xor|exch|cas|inc|dec){_MODIFIERS}(?:\.noftz)?"
    rf"(?:\{_HINT})?(\.v[248])?\.([subf]+\d+(?:x2)?)"
)


def _atomic_vector(lanes: str | None, type: str) -> Vector | None:
    """Return the vector of one access of an atomic operation; None for a number. The hardware adds to each element on its own."""
    if TYPES.get(type) is F32 and lanes:
        return VECTORS[f"float{lanes[2:]}"]
    if lanes or type in PAIRED:
        return VECTORS["half2" if type.startswith("f16") else "bfloat162"]
    return None


@row(_ATOMIC.pattern)
def _atomic(
    r: Registers,
    kind: str,
    first: str,
    op: str,
    last: str,
    lanes: str | None,
    type: str,
    *operands: str,
) -> None:
    words = (first + last).split(".")
    order: Any = next((word for word in words if word in ("acquire", "release", "acq_rel")), "relaxed")
    ordering: Ordering = (order, _LEVELS[next((word for word in words if word in _LEVELS), None)])
    d, place, *values = operands if kind == "atom" else ("_", *operands)
    pointer, arrays = r.address(place), r.scope.arrays
    vector = _atomic_vector(lanes, type)
    if vector is not None and op != "add":
        raise UnsupportedError(f"an atomic {op} of vectors in inline assembly is not supported")
    if vector is not None:
        added, old = _components(r, values[0], type), list[ir.Expr]()
        for at in range(0, len(added), vector.lanes):
            own = pointer.moved(at * vector.element.size)
            old += arrays.atomic_vector(own, added[at : at + vector.lanes], vector, d != "_", ordering)
        if d != "_":
            _write_components(r, d, old, type)
        return
    own_type = TYPES[type]
    if op == "cas":
        expected, value = (r.read(own, own_type) for own in values[:2])
        old_value = arrays.compare_swap(pointer, expected, value, "old", ordering)
    else:
        name: Any = {"exch": "exchange"}.get(op, op)
        old_value = arrays.atomic(name, pointer, r.read(values[0], own_type), d != "_", "old", ordering)
    if d != "_":
        r.write(d, old_value)


def _names(operand: str) -> list[str]:
    return [name.strip() for name in operand.strip("{}").split(",")]


def _components(r: Registers, operand: str, type: str) -> list[ir.Expr]:
    """Return the numbers of a vector operand; a register of a packed type has two."""
    if type not in PAIRED:
        return [r.read(name, TYPES[type]) for name in _names(operand)]
    return [half for name in _names(operand) for half in pairs(r.read(name, I32), PAIRED[type], r)]


def _write_components(r: Registers, operand: str, values: list[ir.Expr], type: str) -> None:
    own = [packed(values[at : at + 2], r) for at in range(0, len(values), 2)] if type in PAIRED else values
    for name, value in zip(_names(operand), own, strict=True):
        r.write(name, value)


@row(r"cp\.async\.c[ag]\.shared(?:::cta)?\.global((?:\.L2::\w+)*)")
def _copy_async(r: Registers, hints: str, target: str, source: str, size: str, *rest: str) -> None:
    """rest: bytes that are copied, the others become zero; a policy of the cache."""
    rest, count = rest[: len(rest) - (_HINT in hints)], r.read(size, I32)
    unit = COPIED.get(int(count.value)) if isinstance(count, ir.Const) else None
    if unit is None or len(rest) > 1:
        raise UnsupportedError("an asynchronous copy of a computed size is not supported")
    to, start, emitter = r.address(target), r.address(source), r.scope.emitter
    bytes = r.let(r.read(rest[0], I32)) if rest else count
    if isinstance(bytes, ir.Const) and bytes.value == unit.size:
        copy_async(r.scope, to, start, unit)
        return
    with emitter.block() as whole:
        copy_async(r.scope, to, start, unit)
    with emitter.block() as part:
        for at in range(0, unit.size, U32.size):
            word, inside = emitter.register("word", U32), operation("gt", bytes, r.number(at))
            emitter.assign(word, r.number(0, U32))
            with emitter.block() as body:
                emitter.assign(word, r.scope.arrays.load(start.moved(at), U32, "weak", "copied"))
                emitter.assign(word, operation("and", word, _low_bytes(r, operation("sub", bytes, r.number(at)))))
            emitter.emit(ir.If(inside, tuple(body), (), r.span))
            r.scope.arrays.store(to.moved(at), word, "weak")
    emitter.emit(ir.If(operation("eq", bytes, count), tuple(whole), tuple(part), r.span))


def _low_bytes(r: Registers, count: ir.Expr) -> ir.Expr:
    """Return the mask of the first bytes of a word."""
    unused = operation("mul", operation("sub", r.number(4), operation("min", count, r.number(4))), r.number(8))
    return operation("shr", r.number(-1, U32), unused)


@row(r"cp\.async\.commit_group")
def _commit(r: Registers) -> None:
    r.scope.emitter.emit(ir.AsyncCommit(r.span))


@row(r"cp\.async\.wait_all")
def _wait_all(r: Registers) -> None:
    """Wait for all copies, those of no group too."""
    _commit(r)
    r.scope.emitter.emit(ir.AsyncWait(0, r.span))


@row(r"cp\.async\.wait_group")
def _wait(r: Registers, pending: str) -> None:
    r.scope.emitter.emit(ir.AsyncWait(fixed(r.read(pending, I32), "number of pending copies"), r.span))


def accessed(statement: Statement) -> Iterator[tuple[Scalar | Vector, Need]]:
    """Yield the types of the elements that an instruction accesses, and the need of the access."""
    if match := _ACCESS.fullmatch(statement.name):
        yield _value_type(match[3], match[4]), "any"
    elif match := _ATOMIC.fullmatch(statement.name):
        op, type = match[3], match[6]
        own = _atomic_vector(match[5], type) or TYPES[type]
        yield own, atomic_need(op, own)
    elif statement.name.startswith("cp.async.c") and "commit" not in statement.name:
        yield U32, "any"


# ------------------------------------------------------------------ warps and blocks
@row(r"(?:bar|barrier)\.(?:cta\.)?sync(?:\.aligned)?")
def _barrier(r: Registers, number: str = "0", *threads: str) -> None:
    if threads or number.strip() != "0":
        raise UnsupportedError("barriers with other numbers than 0, or of a number of threads, are not supported")
    r.scope.emitter.effect(ir.Barrier("sync", constant(True, BOOL, r.span), I32, r.span), used=False)


@row(r"barrier\.cluster\.(arrive|wait)(?:\.release|\.relaxed|\.acquire)?(?:\.aligned)?")
def _cluster_barrier(r: Registers, half: str) -> None:
    """A relaxed arrival counts as a release: the race checker may miss what it does not order."""
    mode: Any = f"cluster_{half}"
    r.scope.emitter.effect(ir.Barrier(mode, constant(True, BOOL, r.span), I32, r.span), used=False)


@row(r"mapa(?:\.shared::cluster)?\.u(?:32|64)")
def _map(r: Registers, d: str, a: str, rank: str) -> None:
    r.values[d] = replace(r.address(a), block=r.let(r.read(rank, I32)))


@row(r"getctarank(?:\.shared::cluster)?\.u(?:32|64)")
def _rank(r: Registers, d: str, a: str) -> None:
    r.write(d, r.scope.values.block(r.address(a)))


@row(r"bar\.warp\.sync")
def _warp_barrier(r: Registers, mask: str) -> None:
    r.scope.emitter.emit(ir.WarpBarrier(r.read(mask, U32), r.span))


@row(r"membar\.(cta|gl|sys)")
@row(r"fence(?:\.sc|\.acq_rel|\.proxy\.alias)?(?:\.(cta|gpu|sys|cluster))?(?:\.sc|\.acq_rel)?")
def _fence(r: Registers, level: str | None) -> None:
    r.scope.emitter.emit(ir.Fence("block" if level == "cta" else "device", r.span))


@row(r"shfl\.sync\.(up|down|bfly|idx)\.b32")
def _shuffle(r: Registers, mode: str, d: str, a: str, b: str, c: str, mask: str) -> None:
    own: Any = {"bfly": "xor"}.get(mode, mode)
    name, _, predicate = d.partition("|")
    arguments = r.scope, own, r.read(mask, U32), r.read(a, I32), r.read(b, I32), r.read(c, I32)
    if predicate:
        value, inside = shuffled_in_limits(*arguments)
        r.write(name, value)
        r.write(predicate, inside)
    else:
        r.write(name, shuffled(*arguments))


@row(r"vote\.(?:sync\.)?(ballot|any|all)\.(?:sync\.)?(?:b32|pred)")
def _vote(r: Registers, mode: str, d: str, a: str, mask: str) -> None:
    own: Any = mode
    vote = ir.Vote(own, r.read(a, BOOL), r.read(mask, U32), U32 if mode == "ballot" else BOOL, r.span)
    r.write(d, r.scope.emitter.effect(vote, mode))


@row(r"elect\.sync")
def _elect(r: Registers, d: str, mask: str) -> None:
    """The lowest lane of the mask is elected."""
    name, _, predicate = d.partition("|")
    own = r.let(r.read(mask, U32))
    below = operation("and", operation("invert", own), operation("sub", own, r.number(1, U32)))
    leader = cast(operation("popcount", below), I32)
    r.write(name, leader)
    r.write(predicate, operation("eq", ir.Special("lane", I32, r.span), leader))


@row(r"redux\.sync\.(add|min|max|and|or|xor)\.(T)")
def _reduce(r: Registers, mode: str, type: str, d: str, a: str, mask: str) -> None:
    own: Any = mode
    element = SIGNED.get(TYPES[type], TYPES[type]) if type[0] == "s" else UNSIGNED.get(TYPES[type], TYPES[type])
    r.write(d, r.scope.emitter.effect(ir.Vote(own, r.read(a, element), r.read(mask, U32), element, r.span), mode))


@row(r"match\.any\.sync\.b(32|64)")
def _match(r: Registers, bits: str, d: str, a: str, mask: str) -> None:
    r.write(
        d,
        r.scope.emitter.effect(ir.Vote("match", r.read(a, TYPES[f"u{bits}"]), r.read(mask, U32), U32, r.span), "match"),
    )


@row(r"activemask\.b32")
def _active(r: Registers, d: str) -> None:
    r.write(d, active_mask(r.scope))


@row(r"nanosleep\.u32")
def _sleep(r: Registers, time: str) -> None:
    r.scope.emitter.emit(ir.Sleep(r.read(time, U32), r.span))


@row(r"exit")
def _exit(r: Registers) -> None:
    r.scope.emitter.emit(ir.Return(None, r.span))


@row(r"trap|brkpt")
def _trap(r: Registers) -> None:
    trap(r.scope)


@row(r"createpolicy\.[\w.:]+")
def _policy(r: Registers, d: str, *operands: str) -> None:
    r.write(d, r.number(0, I64))


@row(
    r"griddepcontrol\.\w+|prefetchu?\.[\w.:]+|applypriority\.[\w.:]+|discard\.[\w.:]+|pmevent|cp\.async\.bulk\.prefetch\.tensor\.[\w.:]+"
)
def _hint(r: Registers, *operands: str) -> None:
    """A hint without an effect on values."""
