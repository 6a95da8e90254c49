"""Accesses with lanes out of bounds: functions of the module, one for each kind of access and type."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....ir.access import AccessKind, Operation
from ....language.types import I64
from ....llvm.builder import FunctionBuilder, many, scalar_type
from ....llvm.values import Value, lanes
from ..context import ArrayLocation, CodegenContext
from ..counters.transactions import TransactionCounter
from ..fault_records import BOUNDS, position
from ..faults import LANES_FUNCTION
from . import atomics, elements


def access_out_of_bounds(
    context: CodegenContext,
    kind: AccessKind,
    array: ArrayLocation,
    index: Value,
    transactions: TransactionCounter,
    record: str,
    stored_values: Sequence[Value],
    word: str,
) -> list[Value]:
    """Call the function: it records the fault, corrects the counters, and executes the access of the lanes in bounds.

    stored_values: the stored or combined values. Returns the loaded vectors, or nothing if all lanes access one element.
    """
    builder, type = context.builder, index.type
    single_element = elements.one_for_all(array, index) and not word
    width = scalar_type(type)
    name = "_".join(
        str(part)
        for part in (
            "out_of_bounds",
            kind,
            array.type.element,
            type,
            *(["one"] if single_element else []),
            *([word] if word else []),
            *([f"from_{array.shift}"] if array.shift else []),
            *([f"cells_of_{array.cell}"] if array.cell > 1 else []),
            *(["of_block"] if array.blocks is not None else []),
            *([f"aligned_to_{array.alignment}"] if array.alignment != array.scalar.size else []),
        )
    )
    counters, constant_cost = "0", (0, 0)
    if transactions.counted:
        counters, constant_cost = str(transactions.counters()), transactions.constant_cost()
    base = array.base
    length = array.length
    arguments = [
        ("ptr", base), ("i64", length), (many(width), lanes(builder, index)), ("i32", context.active()), ("ptr", record),
        ("i64", context.block), ("i32", context.phase()), ("i32", context.warp),
        ("ptr", builder.element("i64", "%.counts", counters, "counters")),
        ("i64", str(constant_cost[0])), ("i64", str(constant_cost[1])),
    ]  # fmt: skip
    if array.blocks is not None:
        arguments.append((many("i64"), lanes(builder, elements.offset(context, array))))
    stored = [] if single_element else [(many(scalar_type(v.type)), lanes(builder, v)) for v in stored_values]
    results = array.components if not single_element and (word or kind.operation is Operation.LOAD) else 0
    element = many(scalar_type(array.scalar))
    result = "void" if not results else element if results == 1 else f"{{ {', '.join([element] * results)} }}"
    function = _Function(name, kind, array, index, stored_values, word, single_element, result)
    context.helper(name, lambda: function.text(context, transactions))
    gathered = builder.call(result, name, *arguments, *stored, hint="others")
    if results <= 1:
        return [Value(array.scalar, gathered, None)] * results
    return [
        Value(array.scalar, builder.let(f"extractvalue {result} {gathered}, {n}", "part"), None) for n in range(results)
    ]


@dataclass(frozen=True)
class _Function:
    """A function for accesses with lanes out of bounds. result: its LLVM type. The other fields are those of the access."""

    name: str
    kind: AccessKind
    array: ArrayLocation
    index: Value
    stored_values: Sequence[Value]
    word: str
    single_element: bool
    result: str

    def text(self, context: CodegenContext, transactions: TransactionCounter) -> str:
        """Generate the function."""
        builder = FunctionBuilder()
        inner = replace(context, builder=builder, warp="%warp", block="%block", mask="%right")
        width = scalar_type(self.index.type)
        own = replace(self.array, base="%base", elements=None)
        all_indices = Value(self.index.type, "%index", None)
        parameters = [
            "ptr %base", "i64 %base.length", f"{many(width)} %index", "i32 %active", "ptr %record", "i64 %block", "i32 %barriers",
            "i32 %warp", "ptr %counters", "i64 %promised0", "i64 %promised1",
        ]  # fmt: skip
        if self.array.blocks is not None:
            parameters.append(f"{many('i64')} %offset")
        builder.reserve(*(p.rsplit("%", 1)[1] for p in parameters), "right", "given0", "given1", "given2", "given3")
        _report(builder, inner, width)
        builder.do("%right = and i32 %active, %kept")
        if transactions.counted:
            _correct_counters(
                inner, TransactionCounter.of_array(inner, self.kind, transactions.site, self.array, all_indices)
            )
        returned = "ret void"
        values = [Value(v.type, f"%given{n}", None) for n, v in enumerate(self.stored_values)]
        if not self.single_element:
            parameters += [f"{many(scalar_type(v.type))} {v.ref}" for v in values]
            place = all_indices
            if self.array.blocks is not None:
                place = elements.shifted(inner, place, Value(I64, "%offset", None))
            returned = _access_inside(inner, self.kind, own, place, values, self.word, self.result)
        context.builder.declared |= builder.declared
        lines = "\n".join([*builder.slots, *builder.lines, f"  {returned}"])
        return f"define internal {self.result} @{self.name}({', '.join(parameters)}) #2 {{\n.entry:\n{lines}\n}}"


def _report(builder: FunctionBuilder, inner: CodegenContext, width: str) -> None:
    """Record the lanes out of bounds, and for the first fault the index and the length. `%kept`: the other lanes."""
    most = (
        "%base.length"
        if width == "i64"
        else builder.let(
            f"trunc i64 {builder.intrinsic('llvm.umin', 'i64', '%base.length', str(1 << 31))} to i32", "most"
        )
    )
    wrong = builder.let(f"and i32 {atomics.beyond(builder, '%index', width, most)}, %active", "invalid")
    builder.reserve("kept")
    builder.do(f"%kept = xor i32 {wrong}, -1")
    place = (("i64", "%block"), ("i32", "%barriers"), ("i32", "%warp"))
    first = builder.call("i1", LANES_FUNCTION, ("ptr", "%record"), *place, ("i32", wrong), hint="first")
    with builder.when(first, "store"):
        lane = builder.call("i32", "llvm.cttz.i32", ("i32", wrong), ("i1", "false"), hint="lane")
        lane = builder.let(f"and i32 {lane}, 31", "lane")
        at = builder.let(f"extractelement {many(width)} %index, i32 {lane}", "address")
        at = at if width == "i64" else builder.let(f"zext i32 {at} to i64", "address")
        builder.store("i64", at, builder.element("i64", "%record", position(BOUNDS, "index")))
        builder.store("i64", "%base.length", builder.element("i64", "%record", position(BOUNDS, "length")))


def _correct_counters(inner: CodegenContext, transactions: TransactionCounter) -> None:
    """Add the cost of the access minus the constant of each execution. %counters: requests, then the two columns."""
    builder = inner.builder
    missed = builder.let(f"sext i1 {builder.let('icmp eq i32 %right, 0', 'empty')} to i64", "missed")
    builder.add_to("%counters", missed)
    costs = transactions.exact("%right")
    low, high = builder.let(f"and i64 {costs}, 4294967295", "cost"), builder.let(f"lshr i64 {costs}, 32", "cost")
    for number, (cost, constant_cost) in enumerate(((low, "%promised0"), (high, "%promised1"))):
        builder.add_to(
            builder.element("i64", "%counters", number + 1), builder.let(f"sub i64 {cost}, {constant_cost}", "cost")
        )


def _access_inside(
    inner: CodegenContext,
    kind: AccessKind,
    array: ArrayLocation,
    index: Value,
    stored_values: Sequence[Value],
    word: str,
    result: str,
) -> str:
    """Generate the access of the lanes in bounds. Return the instruction that returns the loaded values."""
    builder = inner.builder
    if kind.operation in (Operation.STORE, Operation.COPY):
        elements.scatter(inner, array, index, stored_values, "%right")
        return "ret void"
    access = atomics.perform(inner, word, array, index, stored_values, "%right") if word else None
    gathered = elements.gather(inner, array, index, "%right") if access is None else access
    if len(gathered) == 1:
        return f"ret {result} {gathered[0].ref}"
    packed = "poison"
    for number, value in enumerate(gathered):
        element = many(scalar_type(value.type))
        packed = builder.let(f"insertvalue {result} {packed}, {element} {value.ref}, {number}", "packed")
    return f"ret {result} {packed}"
