"""Functions of the module for atomic operations, lane by lane, and for gathers of elements smaller than 4 bytes."""

from collections.abc import Sequence

from ....ir import nodes as ir
from ....ir.effects import MBARRIER_OPS
from ....ir.mbarriers import COUNT, EXPECTED, NO_BYTES, TX, TX_FIELD, WAITS
from ....language.types import HALVES, I64, Scalar
from ....llvm.builder import FunctionBuilder, many, scalar_type, splat
from ....llvm.casts import extended
from ....llvm.operations import operation
from ....llvm.values import Value, broadcast, chosen, lanes
from ....span import GENERATED
from ..context import ArrayLocation, CodegenContext
from ..counters.rules import helper_text

_LEAST_NORMAL = "0x3810000000000000"
"""2**-126, as LLVM writes an f32."""


def beyond(builder: FunctionBuilder, index: str, element: str, limit: str) -> str:
    """Return an i32 of the lanes with an index not below the limit."""
    outside = builder.let(f"icmp uge {many(element)} {index}, {broadcast(builder, element, limit)}", "outside")
    return builder.let(f"bitcast {many('i1')} {outside} to i32", "outside")


def perform(
    context: CodegenContext, word: str, array: ArrayLocation, index: Value, operands: Sequence[Value], mask: str
) -> list[Value]:
    """Generate an atomic operation of the lanes of a mask, by component for a vector."""
    builder, element = context.builder, scalar_type(array.scalar)
    name = _lane_by_lane(context, word, array.scalar, array.type.space == "global" and context.options.atomic)
    at = lanes(builder, index if index.type is I64 else extended(builder, index, I64))
    call_arguments = [(many(element), lanes(builder, v)) for v in operands]

    def single(at: str, *operands: tuple[str, str]) -> Value:
        arguments = (("ptr", array.base), (many("i64"), at), *operands, ("i32", mask))
        return Value(array.scalar, builder.call(many(element), name, *arguments, hint="old"), None)

    if array.components == 1:
        return [single(at, *call_arguments)]
    first = builder.let(f"mul {many('i64')} {at}, {splat('i64', array.components)}", "part")
    places = [
        builder.let(f"add {many('i64')} {first}, {splat('i64', part)}", "part") for part in range(array.components)
    ]
    return [single(place, part) for place, part in zip(places, call_arguments, strict=True)]


def _lane_by_lane(context: CodegenContext, word: str, type: Scalar, atomic: bool) -> str:
    """Return the function `old = f(base, <32 x i64> index, operands, mask)`: each lane of the mask updates its element.

    atomic: other threads may update it concurrently.
    """
    name = f"{'atomic' if atomic else 'lanes'}_{word}_{type}"
    element = scalar_type(type)
    operands = ("expected", "value") if word == "compare_swap" else ("value",)
    arguments = f"ptr %base, {many('i64')} %index, {', '.join(f'{many(element)} %{o}' for o in operands)}, i32 %mask"

    def body(builder: FunctionBuilder) -> str:
        slots = {"index": builder.slot(many("i64"), "index.lanes"), "old": builder.slot(many(element), "old.lanes")}
        builder.store(many("i64"), "%index", slots["index"])
        builder.store(many(element), "zeroinitializer", slots["old"])
        for operand in operands:
            slots[operand] = builder.slot(many(element), f"{operand}.lanes")
            builder.store(many(element), f"%{operand}", slots[operand])
        rest = builder.slot("i32", "rest")
        builder.store("i32", "%mask", rest)
        head, iteration, end = builder.label("head"), builder.label("lane"), builder.label("done")
        builder.jump(head)
        builder.place(head)
        left = builder.load("i32", rest, "left")
        builder.branch(builder.let(f"icmp ne i32 {left}, 0", "more"), iteration, end)
        builder.place(iteration)
        lane = builder.call("i32", "llvm.cttz.i32", ("i32", left), ("i1", "true"), hint="lane")
        at = builder.load("i64", builder.element("i64", slots["index"], lane, width="i32"), "address")
        pointer = builder.element(element, "%base", at)
        own = [builder.load(element, builder.element(element, slots[o], lane, width="i32"), o) for o in operands]
        old = _atomic(builder, word, type, pointer, own) if atomic else _plain(builder, word, type, pointer, own)
        builder.store(element, old, builder.element(element, slots["old"], lane, width="i32"))
        builder.store("i32", builder.let(f"and i32 {left}, {builder.let(f'sub i32 {left}, 1', 'below')}", "left"), rest)
        builder.jump(head)
        builder.place(end)
        return builder.load(many(element), slots["old"], "old")

    return context.helper(name, lambda: helper_text(context, many(element), name, arguments, body))


def _plain(builder: FunctionBuilder, word: str, type: Scalar, pointer: str, operands: list[str]) -> str:
    element = scalar_type(type)
    old = builder.load(element, pointer, "old", type.size)
    match word:
        case "exchange":
            new = operands[0]
        case "compare_swap":
            same = builder.let(f"icmp eq {element} {old}, {operands[0]}", "same")
            new = builder.let(f"select i1 {same}, {element} {operands[1]}, {element} {old}", "new")
        case "inc" | "dec":
            new = _wrapping(builder, word, element, old, operands[0])
        case _ if word in MBARRIER_OPS:
            new = _arrived(builder, word, old, operands[0])
        case "min" | "max" if not type.is_float:
            new = builder.intrinsic(
                f"llvm.{'s' if type.kind == 'int' else 'u'}{word}", element, old, operands[0], hint="new"
            )
        case "add_ftz" | "sub_ftz":
            sum = builder.let(
                f"f{word[:3]} {element} {_flushed(builder, old)}, {_flushed(builder, operands[0])}", "sum"
            )
            new = _flushed(builder, sum)
        case _ if type in HALVES or word in ("min", "max"):
            new = operation(builder, ir.Op(word, (), type, GENERATED), [Value(type, v) for v in (old, *operands)]).ref
        case _:
            new = builder.let(f"{'f' if type.is_float else ''}{word} {element} {old}, {operands[0]}", "new")
    builder.store(element, new, pointer, type.size)
    return old


def _flushed(builder: FunctionBuilder, value: str) -> str:
    """Return an f32, zero with its sign if it is subnormal."""
    size = builder.intrinsic("llvm.fabs", "float", value, hint="size")
    zero = builder.intrinsic("llvm.copysign", "float", "0.0", value, hint="zero")
    is_subnormal = builder.let(f"fcmp olt float {size}, {_LEAST_NORMAL}", "subnormal")
    return builder.let(f"select i1 {is_subnormal}, float {zero}, float {value}", "flushed")


def _wrapping(builder: FunctionBuilder, word: str, element: str, old: str, limit: str) -> str:
    """Increment or decrement with wrap-around between 0 and a limit."""
    if word == "inc":
        more = builder.let(f"add {element} {old}, 1", "more")
        return builder.let(
            f"select i1 {builder.let(f'icmp uge {element} {old}, {limit}')}, {element} 0, {element} {more}"
        )
    none, beyond = builder.let(f"icmp eq {element} {old}, 0"), builder.let(f"icmp ugt {element} {old}, {limit}")
    less = builder.let(f"sub {element} {old}, 1", "less")
    wraps = builder.let(f"or i1 {none}, {beyond}", "wraps")
    return builder.let(f"select i1 {wraps}, {element} {limit}, {element} {less}", "new")


def _arrived(builder: FunctionBuilder, word: str, old: str, operand: str) -> str:
    """Return the word of a barrier after an operation, see `ir.updates`."""
    if word in WAITS:
        return old
    new, bytes = old, builder.let(f"shl i64 {operand}, {TX}", "bytes")
    if word.endswith("_tx"):
        new = builder.let(f"{'sub' if word == 'mbarrier_complete_tx' else 'add'} i64 {new}, {bytes}", "new")
    if "arrive" in word:
        new = builder.let(f"sub i64 {new}, {operand if word == 'mbarrier_arrive' else 1}", "new")
    arrivals = builder.let(f"and i64 {new}, {COUNT}", "arrivals")
    left = builder.let(f"and i64 {builder.let(f'lshr i64 {new}, {TX}')}, {TX_FIELD}", "bytes")
    left = builder.let(f"or i64 {builder.let(f'xor i64 {left}, {NO_BYTES}')}, {arrivals}", "left")
    count = builder.let(f"and i64 {builder.let(f'lshr i64 {new}, {EXPECTED}')}, {COUNT}", "count")
    following = builder.let(f"or i64 {builder.let(f'xor i64 {new}, {-1 << 63}')}, {count}", "following")
    return builder.let(f"select i1 {builder.let(f'icmp eq i64 {left}, 0')}, i64 {following}, i64 {new}", "new")


def _atomic(builder: FunctionBuilder, word: str, type: Scalar, pointer: str, operands: list[str]) -> str:
    """Return the operation as one instruction. Only commutative operations run in several threads: their order is unobservable."""
    assert not type.is_float and word not in ("exchange", "compare_swap")
    element = scalar_type(type)
    unsigned = "u" if word in ("min", "max") and type.kind == "uint" else ""
    return builder.let(
        f"atomicrmw {unsigned}{word} ptr {pointer}, {element} {operands[0]} monotonic, align {type.size}", "old"
    )


def gather_small(context: CodegenContext, size: int) -> str:
    """Return the function `words = f(base, <32 x i64> index, mask)`: elements of 1 or 2 bytes, from their aligned words."""
    name = f"gather_{size}"
    V, W = many("i32"), many("i64")

    def body(builder: FunctionBuilder) -> str:
        base = builder.let("ptrtoint ptr %base to i64", "base")
        low = builder.let(f"and i64 {base}, 3", "low")
        start = builder.element("i8", "%base", builder.let(f"sub i64 0, {low}", "offset"), "start")
        at = builder.let(f"shl {W} %index, {splat('i64', 1)}", "byte") if size == 2 else "%index"
        single = builder.let(f"insertelement {W} poison, i64 {low}, i64 0", "lane.value")
        all_low = builder.let(f"shufflevector {W} {single}, {W} poison, {V} zeroinitializer", "all")
        at = builder.let(f"add {W} {at}, {all_low}", "byte")
        word = builder.let(f"ashr {W} {at}, {splat('i64', 2)}", "word")
        pointers = builder.let(f"getelementptr i32, ptr {start}, {W} {word}", "address")
        active = chosen(builder, "%mask")
        arguments = ((many("ptr"), pointers), (many("i1"), active), (V, "zeroinitializer"))
        words = builder.call(V, "llvm.masked.gather.v32i32.v32p0", *arguments, hint="words")
        within = builder.let(f"and {W} {at}, {splat('i64', 3)}", "offset")
        within = builder.let(f"shl {W} {within}, {splat('i64', 3)}", "bits")
        shift = builder.let(f"trunc {W} {within} to {V}", "shift")
        return builder.let(f"lshr {V} {words}, {shift}", "moved")

    return context.helper(name, lambda: helper_text(context, V, name, f"ptr %base, {W} %index, i32 %mask", body))
