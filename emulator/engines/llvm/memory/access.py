"""Code generation for loads, stores and atomics: bounds check, counters, and the access.

The inline code handles accesses with all lanes in bounds. Other accesses call a function of the module (`out_of_bounds`), in which
a lane out of bounds loads 0 and stores nothing.
"""

from collections.abc import Sequence
from dataclasses import replace

from ....errors import Diagnostic
from ....ir import nodes as ir
from ....ir.access import open_dimensions, shown_dimensions
from ....ir.walk import expressions
from ....ir.wide import width
from ....language.types import I32, I64, Scalar, Vector
from ....llvm.builder import FULL, many, scalar_type
from ....llvm.casts import extended
from ....llvm.values import Value, Values, broadcast, lanes, number
from ....runtime.engine import MAX_FAULTS_PER_LOOP, Request
from ....sanitizer import bounds
from ....sanitizer.tracking import AccessId
from ..context import ArrayLocation, CodegenContext
from ..counters.transactions import TransactionCounter
from ..fault_records import BOUNDS, FaultRecord, Number, length, position
from ..faults import record_values
from ..races.tracking import TrackedAccess
from . import atomics, dimensions, elements
from .out_of_bounds import access_out_of_bounds


def load(context: CodegenContext, node: ir.Load, site: int) -> Values:
    """Return the loaded value of each lane."""
    access = _Access(context, node, site)
    array = access.array
    access.begin()
    place = access.place()
    if elements.one_for_all(array, place):
        loaded = elements.load_one(context, array, place)
    else:
        loaded = elements.load_lanes(context, array, place, context.mask)
    loaded = access.finish(loaded)
    return tuple(loaded) if isinstance(node.type, Vector) else loaded[0]


def store(context: CodegenContext, stmt: ir.Store) -> None:
    """Generate a store; lanes write in ascending order."""
    new_values = context.values(stmt.value)
    access = _Access(context, stmt, stmt.site, new_values)
    access.begin()
    place = access.place()
    if elements.one_for_all(access.array, place):
        elements.store_one(context, access.array, place, new_values)
    else:
        elements.store_lanes(context, access.array, place, new_values, context.mask)
    access.finish([], new_values)


def atomic(context: CodegenContext, node: ir.Atomic | ir.CompareSwap, site: int) -> Values:
    """Generate an atomic operation, lane by lane in ascending order. Return the old values."""
    operands = list(context.values(node.value))
    if isinstance(node, ir.CompareSwap):
        operands.insert(0, context.expression(node.expected))
    access = _Access(context, node, site)
    access.begin()
    word = node.op if isinstance(node, ir.Atomic) else "compare_swap"
    loaded = atomics.perform(context, word, access.array, access.place(), operands, context.active())
    for tracked_access in access.tracked_accesses if isinstance(node, ir.CompareSwap) else ():
        tracked_access.swapped(operands[0], loaded[0])
    loaded = access.finish(loaded, operands, word)
    return tuple(loaded) if isinstance(node.type, Vector) else loaded[0]


class _Access:
    """One access: `begin` generates the bounds check, the caller generates the access in bounds, `finish` the remaining cases."""

    def __init__(self, context: CodegenContext, node: ir.Access, site: int, new_values: Sequence[Value] = ()) -> None:
        self.context, self.node, self.site = context, node, site
        self.kind = context.prepared.sites[site].access
        self.full_index = context.expression(node.index)
        self.dimensions = [
            (context.expression(part), context.expression(extent)) for part, extent in open_dimensions(node)
        ]
        self.index = self._of_all_lanes(_index(context, self.full_index))
        self.array = elements.own(context, context.accessed(node))
        if node.block is not None:
            self.array = replace(self.array, blocks=_blocks_away(context, context.expression(node.block)))
        multiple = context.divergence.multiple(node.index)
        self.transactions = TransactionCounter.of_array(context, self.kind, site, self.array, self.index, multiple)
        tracked = node.array in context.plan.tracked
        access = AccessId.for_access(site, self.kind.operation, node)
        self.tracked_accesses = (
            TrackedAccess.of_elements(context, node, site, access, self.array, self.index, new_values)
            if tracked
            else []
        )

    def place(self) -> Value:
        """Return the index from the start of the array in the block of the thread."""
        return elements.place(self.context, self.array, self.index)

    @property
    def _is_wide(self) -> bool:
        """Whether the access is of several elements, whose number its record has after the registers."""
        return width(self.node, self.context.arrays[self.node.array].type) > 1

    def _of_all_lanes(self, index: Value) -> Value:
        """Return the index, as a vector if a uniform index may exceed a dimension in some lanes only."""
        if not index.uniform or all(part.uniform and extent.uniform for part, extent in self.dimensions):
            return index
        return Value(index.type, lanes(self.context.builder, index), None)

    def begin(self) -> None:
        """Check the bounds. Continue with all active lanes in bounds, and count the access."""
        builder = self.context.builder
        inside, self.out_of_bounds, self.exit_label = (
            builder.label("inside"),
            builder.label("out.of.bounds"),
            builder.label("accessed"),
        )
        tests = [_all_inside(self.context, self.array, self.index)]
        tests += [dimensions.all_inside(self.context, part, extent) for part, extent in self.dimensions]
        whole = tests[0]
        for test in tests[1:]:
            whole = builder.let(f"and i1 {whole}, {test}", "inside")
        builder.branch(whole, inside, self.out_of_bounds, rarely=True)
        builder.place(inside)
        self.transactions.inside()
        for tracked_access in self.tracked_accesses:
            tracked_access.inside()

    def finish(self, loaded: Sequence[Value], new_values: Sequence[Value] = (), word: str = "") -> list[Value]:
        """Generate the code for accesses with lanes out of bounds. Return the loaded values of both cases."""
        context, builder = self.context, self.context.builder
        good = builder.block
        builder.jump(self.exit_label)
        builder.place(self.out_of_bounds)
        self.index = dimensions.invalid(context, self.index, self.dimensions)
        if self.tracked_accesses:
            self._track_others()
        record = self._record()
        pointer = builder.element("i64", "%.faults", record.start, "record")
        lanes_before = builder.load("i64", pointer, "seen")
        other = access_out_of_bounds(
            context, self.kind, self.array, self.index, self.transactions, pointer, new_values, word
        )
        self._record_registers(record, pointer, lanes_before)
        self._count_out_of_bounds()
        if not other and loaded:
            other = [number(0, self.array.scalar)] * len(loaded)
        bad = builder.block
        builder.jump(self.exit_label)
        builder.place(self.exit_label)
        return [_either(context, a, good, b, bad) for a, b in zip(loaded, other, strict=False)]

    def _track_others(self) -> None:
        """Check the lanes in bounds of an access with other lanes out of bounds."""
        builder, element = self.context.builder, scalar_type(self.index.type)
        beyond = atomics.beyond(builder, lanes(builder, self.index), element, limit(self.array, self.index.type))
        right = builder.let(
            f"and i32 {builder.let(f'xor i32 {beyond}, -1', 'offset')}, {self.context.active()}", "offset"
        )
        with builder.when_any(right, "some"):
            for tracked_access in self.tracked_accesses:
                tracked_access.partly_inside(right)

    def _count_out_of_bounds(self) -> None:
        """Count the out-of-bounds access in the enclosing loops; a loop with too many ends before its next iteration."""
        builder = self.context.builder
        for loop in self.context.loops.values():
            before = builder.load("i64", loop.out_of_bounds, "outside")
            out_of_bounds = builder.let(f"add i64 {before}, 1", "outside")
            builder.store("i64", out_of_bounds, loop.out_of_bounds)
            many = builder.let(f"icmp uge i64 {out_of_bounds}, {MAX_FAULTS_PER_LOOP}", "excess")
            iterations = builder.load("i64", loop.iterations, "iterations")
            builder.store(
                "i64", builder.let(f"select i1 {many}, i64 {loop.limit}, i64 {iterations}", "taken"), loop.iterations
            )

    # -------------------------------------------------------------- the fault
    def _registers(self) -> list[ir.Reg]:
        """Return the scalar registers in the index."""
        names = bounds.index_registers(self.node.index)
        index = self.node.index
        index_registers = {e.name: e for e in (index, *expressions(index)) if isinstance(e, ir.Reg)}
        return [index_registers[name] for name in names if isinstance(index_registers[name].type, Scalar)]

    def _record(self) -> FaultRecord:
        """Return the fault record; the values after BOUNDS are the registers of the index."""
        node, array = self.node, self.array
        type = self.context.arrays[node.array].type
        registers = self._registers()
        names = [bounds.user_name(r.name) for r in registers]
        operation, is_wide = self.kind.operation, self._is_wide

        def describe(place: str, request: Request, loaded: Sequence[Number]) -> Diagnostic:
            rest, tail = loaded[2 : 2 + len(names)], loaded[2 + len(names) :]
            shown: dict[str, object] = dict(zip(names, rest, strict=True))
            index, length, *dimensions = (int(number) for number in (*loaded[:2], *tail))
            numbers = index, dimensions.pop(0) if is_wide else length, *dimensions
            return bounds.out_of_bounds(operation, node, type, numbers, place, shown, array.allocated)

        types = [r.type for r in registers if isinstance(r.type, Scalar)] + [I64] * is_wide
        types += [r.type for r in shown_dimensions(node) if isinstance(r.type, Scalar)]
        index = self.full_index.type if self.full_index.type.size == 8 else self.index.type
        return self.context.records.record("bounds", self.site, [index, I64, *types], describe)

    def _record_registers(self, record: FaultRecord, pointer: str, lanes_before: str) -> None:
        """Record the registers of the index and its dimensions for the first fault."""
        context, builder, registers = self.context, self.context.builder, self._registers()
        shown = shown_dimensions(self.node)
        own = [Value(I64, context.arrays[self.node.array].length)] * self._is_wide
        if not registers and not shown and not own:
            return
        with builder.when(builder.let(f"icmp eq i64 {lanes_before}, 0", "first"), "store"):
            mask = builder.load("i64", builder.element("i64", pointer, position(BOUNDS, "mask")))
            values = [value for register in registers if isinstance(value := context.read(register), Value)]
            values += own + [context.expression(part) for part in shown]
            wrong = builder.let(f"trunc i64 {mask} to i32", "invalid")
            record_values(builder, pointer, length(BOUNDS), wrong, values)


def _either(context: CodegenContext, first: Value, good: str, second: Value, bad: str) -> Value:
    element = scalar_type(first.type)
    type = element if first.uniform else many(element)
    ref = second.ref if first.uniform else lanes(context.builder, second)
    return Value(first.type, context.builder.phi(type, (first.ref, good), (ref, bad), hint="loaded"), first.stride)


# ------------------------------------------------------------------ blocks of a cluster
def _blocks_away(context: CodegenContext, rank: Value) -> Value:
    """Return the rank of a block minus that of the block of the thread, an i64."""
    builder, wide = context.builder, elements.wide(context, rank)
    own = elements.wide(context, context.special("cluster_rank")).ref
    if wide.uniform:
        return Value(I64, builder.let(f"sub i64 {wide.ref}, {own}", "blocks"))
    return Value(
        I64, builder.let(f"sub {many('i64')} {lanes(builder, wide)}, {broadcast(builder, 'i64', own)}", "blocks"), None
    )


# ------------------------------------------------------------------ bounds
def _index(context: CodegenContext, full: Value) -> Value:
    """Return the index as i32 or i64. Values from 2 ** 63 on become negative, which is also out of bounds."""
    if full.type is I32:
        return full
    if full.type.size == 4:
        return extended(context.builder, full, I64)
    return Value(I64, full.ref, full.stride, full.constant)


def limit(array: ArrayLocation, type: Scalar) -> str:
    """Return the length of the array as an unsigned number of the index type."""
    return f"{array.base}.limit" if array.elements is None and type.size == 4 else array.length


def _all_inside(context: CodegenContext, array: ArrayLocation, index: Value) -> str:
    """Return an i1: the indices of all active lanes are in bounds."""
    builder, element = context.builder, scalar_type(index.type)
    if index.uniform:
        return builder.let(f"icmp ult {element} {index.ref}, {limit(array, index.type)}", "inside")
    if index.affine and context.mask is None:
        # In 64 bits: if both ends are in bounds, no lane between them wrapped around.
        first = extended(builder, Value(index.type, index.ref), I64).ref
        step = (
            extended(builder, Value(index.type, str(index.stride)), I64).ref if index.step is None else str(index.step)
        )
        reach = builder.let(f"mul i64 {step}, 31", "reach") if index.step is None else str(31 * index.step)
        ends = (first, builder.let(f"add i64 {first}, {reach}", "last"))
        most = array.length if array.elements is not None or index.type.size == 8 else f"{array.base}.reach"
        tests = [builder.let(f"icmp ult i64 {end}, {most}", "inside") for end in ends]
        return builder.let(f"and i1 {tests[0]}, {tests[1]}", "inside")
    beyond = atomics.beyond(builder, lanes(builder, index), element, limit(array, index.type))
    wrong = beyond if context.active() == str(FULL) else builder.let(f"and i32 {beyond}, {context.active()}", "invalid")
    return builder.let(f"icmp eq i32 {wrong}, 0", "inside")
