"""Accesses of which some lanes are outside the array: functions of the module, one for each way to access."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ....llvm.builder import Page, many, scalar_type
from ....llvm.values import Value, lanes
from ..counters.transactions import Meter
from ..fault_records import HEADER
from . import atomics, elements

if TYPE_CHECKING:
    from ..context import Build, Memory


def outside(
    build: Build,
    kind: str,
    memory: Memory,
    index: Value,
    meter: Meter,
    record: str,
    given: Sequence[Value],
    word: str,
) -> list[Value]:
    """Call the function: note the fault, correct the counts, and let the lanes that are inside go on.

    given: what they store or combine. The values they load: vectors, or none where all lanes mean one element.
    """
    page, type = build.page, index.type
    one = elements.one_for_all(memory, index) and not word
    width = scalar_type(type)
    name = "_".join(
        str(part)
        for part in ("outside", kind, memory.type.element, type, *(["one"] if one else []), *([word] if word else []))
    )
    counters, promised = "0", (0, 0)
    if meter.counted:
        counters, promised = str(meter.counters()), meter.promised()
    base = memory.base
    length = memory.length
    arguments = [
        ("ptr", base), ("i64", length), (many(width), lanes(page, index)), ("i32", build.active()), ("ptr", record),
        ("i64", build.block), ("i32", build.phase()), ("i32", build.warp),
        ("ptr", page.element("i64", "%.counts", counters, "counters")),
        ("i64", str(promised[0])), ("i64", str(promised[1])),
    ]  # fmt: skip
    stored = [] if one else [(many(scalar_type(v.type)), lanes(page, v)) for v in given]
    results = memory.parts if not one and (word or kind.endswith("load")) else 0
    element = many(scalar_type(memory.scalar))
    result = "void" if not results else element if results == 1 else f"{{ {', '.join([element] * results)} }}"
    build.rule(name, lambda: _function(build, name, kind, memory, index, meter, given, word, one, result))
    found = page.call(result, name, *arguments, *stored, hint="others")
    if results <= 1:
        return [Value(memory.scalar, found, None)] * results
    return [Value(memory.scalar, page.let(f"extractvalue {result} {found}, {n}", "part"), None) for n in range(results)]


def _function(
    build: Build,
    name: str,
    kind: str,
    memory: Memory,
    index: Value,
    meter: Meter,
    given: Sequence[Value],
    word: str,
    one: bool,
    result: str,
) -> str:
    page = Page()
    inner = replace(build, page=page, warp="%warp", block="%block", mask="%right")
    width = scalar_type(index.type)
    own = replace(memory, base="%base", length="%length")
    every = Value(index.type, "%index", None)
    parameters = [
        "ptr %base", "i64 %length", f"{many(width)} %index", "i32 %active", "ptr %record", "i64 %block", "i32 %barriers",
        "i32 %warp", "ptr %counters", "i64 %promised0", "i64 %promised1",
    ]  # fmt: skip
    page.reserve(*(p.rsplit("%", 1)[1] for p in parameters), "right", "given0", "given1", "given2", "given3")
    _report(page, inner, width)
    page.do("%right = and i32 %active, %kept")
    if meter.counted:
        _correct(inner, _of_any(inner, meter, every))
    returned = "ret void"
    values = [Value(v.type, f"%given{n}", None) for n, v in enumerate(given)]
    if not one:
        parameters += [f"{many(scalar_type(v.type))} {v.ref}" for v in values]
        returned = _go_on(inner, kind, own, every, values, word, result)
    build.page.declared |= page.declared
    lines = "\n".join([*page.slots, *page.lines, f"  {returned}"])
    return f"define internal {result} @{name}({', '.join(parameters)}) #2 {{\n.entry:\n{lines}\n}}"


def _report(page: Page, inner: Build, width: str) -> None:
    """Note the lanes outside; of the first fault the index and the length. `%kept`: the other lanes."""
    most = (
        "%length"
        if width == "i64"
        else page.let(f"trunc i64 {page.intrinsic('llvm.umin', 'i64', '%length', str(1 << 31))} to i32", "most")
    )
    wrong = page.let(f"and i32 {atomics.beyond(page, '%index', width, most)}, %active", "wrong")
    page.reserve("kept")
    page.do(f"%kept = xor i32 {wrong}, -1")
    place = (("i64", "%block"), ("i32", "%barriers"), ("i32", "%warp"))
    first = page.call("i1", "note_fault", ("ptr", "%record"), *place, ("i32", wrong), hint="first")
    keep, on = page.label("keep"), page.label("on")
    page.branch(first, keep, on)
    page.place(keep)
    lane = page.call("i32", "llvm.cttz.i32", ("i32", wrong), ("i1", "false"), hint="lane")
    lane = page.let(f"and i32 {lane}, 31", "lane")
    at = page.let(f"extractelement {many(width)} %index, i32 {lane}", "at")
    at = at if width == "i64" else page.let(f"zext i32 {at} to i64", "at")
    page.store("i64", at, page.element("i64", "%record", HEADER))
    page.store("i64", "%length", page.element("i64", "%record", HEADER + 1))
    page.jump(on)
    page.place(on)


def _of_any(inner: Build, meter: Meter, index: Value) -> Meter:
    """The meter of any index."""
    return Meter(inner, meter.kind, meter.site, meter.size, index)


def _correct(inner: Build, meter: Meter) -> None:
    """Add what the access costs, less what each execution adds anyway; %counters: requests and the two columns."""
    page = inner.page
    missed = page.let(f"sext i1 {page.let('icmp eq i32 %right, 0', 'nobody')} to i64", "missed")
    page.add_to("%counters", missed)
    costs = meter.exact("%right")
    low, high = page.let(f"and i64 {costs}, 4294967295", "cost"), page.let(f"lshr i64 {costs}, 32", "cost")
    for number, (cost, promised) in enumerate(((low, "%promised0"), (high, "%promised1"))):
        page.add_to(page.element("i64", "%counters", number + 1), page.let(f"sub i64 {cost}, {promised}", "cost"))


def _go_on(
    inner: Build, kind: str, memory: Memory, index: Value, given: Sequence[Value], word: str, result: str
) -> str:
    """The lanes inside access the array; how the function returns what they find."""
    page = inner.page
    if word:
        return f"ret {result} {atomics.act(inner, word, memory, index, given, '%right').ref}"
    if kind.endswith("store"):
        elements.scatter(inner, memory, index, given, "%right")
        return "ret void"
    found = elements.gather(inner, memory, index, "%right")
    if len(found) == 1:
        return f"ret {result} {found[0].ref}"
    packed = "poison"
    for number, value in enumerate(found):
        element = many(scalar_type(value.type))
        packed = page.let(f"insertvalue {result} {packed}, {element} {value.ref}, {number}", "packed")
    return f"ret {result} {packed}"
