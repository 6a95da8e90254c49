"""Functions of the module that go through lanes: atomics, one lane after the other; loads of bytes from words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....language.types import I64, Scalar
from ....llvm.builder import Page, many, scalar_type, splat
from ....llvm.operations import extended
from ....llvm.values import Value, broadcast, chosen, lanes
from ..counters.rules import function

if TYPE_CHECKING:
    from ..context import Build, Memory


def beyond(page: Page, index: str, element: str, limit: str) -> str:
    """An i32 of the lanes whose index is not below the limit."""
    outside = page.let(f"icmp uge {many(element)} {index}, {broadcast(page, element, limit)}", "beyond")
    return page.let(f"bitcast {many('i1')} {outside} to i32", "beyond")


def act(build: Build, word: str, memory: Memory, index: Value, operands: Sequence[Value], mask: str) -> Value:
    """An atomic operation of the lanes of a mask."""
    page, element = build.page, scalar_type(memory.scalar)
    name = _in_turn(build, word, memory.scalar, memory.type.space == "global" and build.options.atomic)
    at = lanes(page, index if index.type is I64 else extended(page, index, I64))
    given = [(many(element), lanes(page, v)) for v in operands]
    found = page.call(many(element), name, ("ptr", memory.base), (many("i64"), at), *given, ("i32", mask), hint="found")
    return Value(memory.scalar, found, None)


def _in_turn(build: Build, word: str, type: Scalar, atomic: bool) -> str:
    """`old = f(base, <32 x i64> index, operands, mask)`: each lane in the mask changes its element.

    atomic: other threads may change it at the same time.
    """
    name = f"{'atomic' if atomic else 'lanes'}_{word}_{type}"
    element = scalar_type(type)
    operands = ("expected", "value") if word == "compare_swap" else ("value",)
    arguments = f"ptr %base, {many('i64')} %index, {', '.join(f'{many(element)} %{o}' for o in operands)}, i32 %mask"

    def body(page: Page) -> str:
        slots = {"index": page.slot(many("i64"), "index.lanes"), "old": page.slot(many(element), "old.lanes")}
        page.store(many("i64"), "%index", slots["index"])
        page.store(many(element), "zeroinitializer", slots["old"])
        for operand in operands:
            slots[operand] = page.slot(many(element), f"{operand}.lanes")
            page.store(many(element), f"%{operand}", slots[operand])
        rest = page.slot("i32", "rest")
        page.store("i32", "%mask", rest)
        head, turn, done = page.label("head"), page.label("turn"), page.label("done")
        page.jump(head)
        page.place(head)
        left = page.load("i32", rest, "left")
        page.branch(page.let(f"icmp ne i32 {left}, 0", "more"), turn, done)
        page.place(turn)
        lane = page.call("i32", "llvm.cttz.i32", ("i32", left), ("i1", "true"), hint="lane")
        at = page.load("i64", page.element("i64", slots["index"], lane, width="i32"), "at")
        where = page.element(element, "%base", at)
        own = [page.load(element, page.element(element, slots[o], lane, width="i32"), o) for o in operands]
        old = _atomic(page, word, type, where, own) if atomic else _plain(page, word, type, where, own)
        page.store(element, old, page.element(element, slots["old"], lane, width="i32"))
        page.store("i32", page.let(f"and i32 {left}, {page.let(f'sub i32 {left}, 1', 'below')}", "left"), rest)
        page.jump(head)
        page.place(done)
        return page.load(many(element), slots["old"], "found")

    return build.rule(name, lambda: function(build, many(element), name, arguments, body))


def _plain(page: Page, word: str, type: Scalar, where: str, operands: list[str]) -> str:
    element = scalar_type(type)
    old = page.load(element, where, "found", type.size)
    match word:
        case "exchange":
            new = operands[0]
        case "compare_swap":
            same = page.let(f"icmp eq {element} {old}, {operands[0]}", "same")
            new = page.let(f"select i1 {same}, {element} {operands[1]}, {element} {old}", "new")
        case "min" | "max":
            new = page.intrinsic(
                f"llvm.{'s' if type.kind == 'int' else 'u'}{word}", element, old, operands[0], hint="new"
            )
        case _:
            new = page.let(f"{'f' if type.is_float else ''}{word} {element} {old}, {operands[0]}", "new")
    page.store(element, new, where, type.size)
    return old


def _atomic(page: Page, word: str, type: Scalar, where: str, operands: list[str]) -> str:
    """Only what commutes runs in several threads, so the order among them does not show."""
    assert not type.is_float and word not in ("exchange", "compare_swap")
    element = scalar_type(type)
    unsigned = "u" if word in ("min", "max") and type.kind == "uint" else ""
    return page.let(
        f"atomicrmw {unsigned}{word} ptr {where}, {element} {operands[0]} monotonic, align {type.size}", "found"
    )


def gather_small(build: Build, size: int) -> str:
    """`words = f(base, <32 x i64> index, mask)`: elements of 1 or 2 bytes, through the aligned words they lie in."""
    name = f"gather_{size}"
    V, W = many("i32"), many("i64")

    def body(page: Page) -> str:
        base = page.let("ptrtoint ptr %base to i64", "base")
        low = page.let(f"and i64 {base}, 3", "low")
        start = page.element("i8", "%base", page.let(f"sub i64 0, {low}", "back"), "start")
        at = page.let(f"shl {W} %index, {splat('i64', 1)}", "byte") if size == 2 else "%index"
        one = page.let(f"insertelement {W} poison, i64 {low}, i64 0", "one")
        all_low = page.let(f"shufflevector {W} {one}, {W} poison, {V} zeroinitializer", "all")
        at = page.let(f"add {W} {at}, {all_low}", "byte")
        word = page.let(f"ashr {W} {at}, {splat('i64', 2)}", "word")
        pointers = page.let(f"getelementptr i32, ptr {start}, {W} {word}", "at")
        active = chosen(page, "%mask")
        arguments = ((many("ptr"), pointers), (many("i1"), active), (V, "zeroinitializer"))
        found = page.call(V, "llvm.masked.gather.v32i32.v32p0", *arguments, hint="words")
        within = page.let(f"and {W} {at}, {splat('i64', 3)}", "within")
        within = page.let(f"shl {W} {within}, {splat('i64', 3)}", "bits")
        shift = page.let(f"trunc {W} {within} to {V}", "shift")
        return page.let(f"lshr {V} {found}, {shift}", "moved")

    return build.rule(name, lambda: function(build, V, name, f"ptr %base, {W} %index, i32 %mask", body))
