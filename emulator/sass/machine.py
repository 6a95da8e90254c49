"""Symbolic state of the machine: straight-line SASS of one warp as LLVM IR, in loops over its lanes.

The rows of the opcode table run once on symbolic values (`traced.py`). `Machine` has the names of `state.State` and emits
reads and writes of its arrays. Instructions are together in one loop over the active lanes up to an exchange between
lanes, an instruction on uniform registers, or an access that could see a write of another lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..llvm.builder import FunctionBuilder
from .calls import Calls
from .counts import COLUMNS, WINDOW
from .groups import Groups
from .memory import spaces_of
from .operands import Decoded
from .state import FAILURES, GLOBAL_BASE, PADDING, SPECIAL_NAMES, State
from .steps import Step
from .traced import Lanes, Pointer, Traced, Untranslatable

BANKS = 5
FIELDS = (
    "registers", "register_bytes", "uniform_registers", "uniform_register_bytes", "predicates", "predicate_bytes",
    "uniform_predicates", "uniform_predicate_bytes", "special", "special_bytes", "global", "global_size", "owned", "shared",
    "shared_size", "shared_bytes", "local", "local_size", "block_of_warp", "barrier_results", "wild", "exchange", "copy_units",
    "copy_box", "move_elements", "products", "places", "units", "log_phase", "phases_of_words", "phase_events", "phase_count",
    "phase_capacity", "first_of_cluster", "cluster_blocks",
    "count_global", "count_atomic", "count_shared", "load_sector", "sector", "line", "bank_shapes", "bank_kinds", "bank_load",
    "traffic", "active", "begin_run", "end_run", "table", "rows", "row_lanes", "chosen", "values", "awaited_threads", *Groups._fields,
    *(f"bank{n}" for n in range(BANKS)), *(f"bank{n}_size" for n in range(BANKS)), "trace", "trace_arguments",
)  # fmt: skip
"""Addresses and numbers of a launch that compiled code reads, int64 each."""
OPERATIONS = ("load", "store", "reduction", "atomic", "copy", "count", "swap")
_ALL_LANES = np.array([[True]])
_IN_BULK = ("UBLKCP", "UTMALDG", "UTMASTG")
_FILES = {
    "registers": (np.uint32, 32), "predicates": (np.bool_, 32), "uniform_registers": (np.uint32, 1),
    "uniform_predicates": (np.bool_, 1), "special": (np.uint32, 32),
}  # fmt: skip


class _Warps:
    """The warps of an access to the state: the one of the function."""


_ONE_WARP: Any = _Warps()


@dataclass(frozen=True)
class _Cell:
    """A register or predicate of the state, by warps."""

    machine: Machine
    file: str
    number: int

    def __getitem__(self, rows: Any) -> Traced:
        return self.machine.read(self.file, self.number)

    def __setitem__(self, rows: Any, value: Any) -> None:
        self.machine.write(self.file, self.number, value)


@dataclass(frozen=True)
class _File:
    machine: Machine
    name: str

    def __getitem__(self, number: Any) -> _Cell:
        return _Cell(self.machine, self.name, SPECIAL_NAMES.index(number) if self.name == "special" else number)


@dataclass
class _Loop:
    """A loop over lanes. position: of its first line in the builder. cells: stack slots of registers, and whether they are
    written. spaces: memories that it accesses, and those that it writes."""

    position: int
    again: str
    out: str
    cells: dict[tuple[str, int], list[Any]] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    accesses: list[Callable[[], None]] = field(default_factory=list)


class Machine:
    """Symbolic state while a function is emitted."""

    local_stride = State.local_stride

    def __init__(self) -> None:
        self.builder = FunctionBuilder()
        self.builder.reserve("s", "warp", "active", "values", "awaited_threads")
        self.head: list[str] = []
        self.loop: _Loop | None = None
        self.registers, self.predicates = _File(self, "registers"), _File(self, "predicates")
        self.uniform_registers = _File(self, "uniform_registers")
        self.uniform_predicates = _File(self, "uniform_predicates")
        self.special, self.memory, self._number = _File(self, "special"), self, 0
        self.exchanging = False
        self.constants: dict[int, int] = {}
        self._fields: set[str] = set()
        self.calls = Calls(self)

    # -------------------------------------------------------------- names of State
    @property
    def contents(self) -> Pointer:
        return self.pointer("global", self.number("global_size"))

    @property
    def shared(self) -> Pointer:
        return self.pointer("shared", self.number("shared_size"))

    @property
    def local(self) -> Pointer:
        return self.pointer("local", self.number("local_size"))

    @property
    def shared_bytes(self) -> Traced:
        return self.number("shared_bytes")

    @property
    def barrier_results(self) -> Pointer:
        return self.pointer("barrier_results", 0).view(np.uint32)

    @property
    def cluster_blocks(self) -> Traced:
        return self.number("cluster_blocks")

    @property
    def block_of_warp(self) -> Any:
        return self._of_warp("block_of_warp")

    @property
    def first_of_cluster(self) -> Any:
        return self._of_warp("first_of_cluster")

    def _of_warp(self, name: str) -> Any:
        return {_ONE_WARP: self.pointer(name, 0).view(np.int64)[Traced(self.builder, "%warp", np.int64)]}

    def bank(self, number: int, size: int = 1) -> Pointer:
        """Return a constant bank. size: the bytes that it has at least; without them nothing is executed compiled."""
        if number >= BANKS:
            raise Untranslatable(f"constant bank {number}")
        self.constants[number] = max(self.constants.get(number, 0), size)
        return self.pointer(f"bank{number}", self.number(f"bank{number}_size"))

    def constant(self, bank: int, offset: int, size: int) -> Traced:
        pointer = self.bank(bank, offset + size)
        at = self.builder.element("i8", pointer.base, offset)
        return pointer.view(np.uint64 if size == 8 else np.uint32).load(at)

    def threads_of(self, rows: Any) -> Any:
        return Traced(self.builder, "%warp", np.int64) * 32 + self.lane

    def checked(self, op: Decoded, index: Any, lanes: Any, address: Any, size: int, limit: Any) -> Any:
        """Return the index of active lanes, others 0; leave the function with a wild or misaligned address."""
        index = np.where(lanes, index, 0)
        self._leave(op, (index < 0) | (index > limit - PADDING) | ((index & (size - 1)) != 0), address)
        return index

    def check_owned(self, op: Decoded, index: Any, lanes: Any, address: Any, size: int) -> None:
        """Leave the function with an address outside of the arrays."""
        owned = self.pointer("owned", 0)
        self._leave(op, np.where(lanes, owned[index + (size - 1)] == 0, False), address)

    def copy_units(self, op: Decoded, index: Any, capacity: Any, address: Any, bytes: Any, counts: Any) -> None:
        """Copy bytes as `bulk_copy.copy_units`; leave the function with a wild or misaligned address."""
        offset, size = address.astype(np.int64) - GLOBAL_BASE, self.number("global_size")
        units = self.pointer("units", 0)
        values = [self.shared, index, capacity, self.contents, self.pointer("owned", 0), size, offset, bytes, units]
        wrong = self._call("copy_units", values)
        self._leave(op, wrong >= 0, np.where(wrong == 0, (self.shared_bytes - capacity).astype(np.uint64), address))
        self._trace_units(op)

    def _trace_units(self, op: Decoded) -> None:
        self.builder.do(f"call void @trace_units(ptr %s, i64 %warp, i64 {op.number}, ptr {self.field('units', 'ptr')})")

    def _call(self, name: str, values: list[Any]) -> Any:
        """Call a native function whose address is a field; return its result."""
        refs = [f"ptr {one.base}" if isinstance(one, Pointer) else f"i64 {one.ref}" for one in values]
        result = self.builder.let(f"call i64 {self.field(name, 'ptr')}({', '.join(refs)})")
        return Traced(self.builder, result, np.int64)

    def copy_box(
        self, op: Decoded, index: Any, address: Any, tensor: Any, coordinates: Any, active: Any, counts: Any
    ) -> Any:
        """Copy a box as `bulk_copy.copy_box`, return its bytes; leave the function with a wild or misaligned address."""
        if isinstance(active, Traced):
            raise Untranslatable("a copy of a box with a predicate")
        first = Pointer(self.builder, self.builder.slot(f"[{len(coordinates)} x i64]", "first"), 0, np.int64)
        for n, one in enumerate(coordinates):
            first.put(first.at(n), one)
        offset, size = tensor.astype(np.int64) - GLOBAL_BASE, self.number("global_size")
        units = self.pointer("units", 0)
        values = [self.shared, index, address, self.shared_bytes - address, self.contents, size, offset, first, units]
        bytes = self._call("copy_box", values)
        self._leave(op, bytes < 0, np.where(bytes == -1, address.astype(np.uint64), tensor))
        self._trace_units(op)
        return bytes

    @property
    def warps_per_block(self) -> Traced:
        return self.number("warps_per_block")

    def require(self, op: Decoded, holds: Any, failure: str) -> None:
        """Leave the function with the number of a failure if a condition does not hold."""
        self._leave(op, ~holds, np.uint64(1 + FAILURES.index(failure)), self.pointer("wild", 0).view(np.uint64).at(1))

    def _leave(self, op: Decoded, wrong: Any, value: Any, place: str = "") -> None:
        """Leave the function if something is wrong. value, place: an address at the start of `wild`, or what is stored elsewhere in it."""
        builder, bad, good = self.builder, self.builder.label("wild"), self.builder.label("inside")
        wild = self.pointer("wild", 0).view(np.uint64)
        builder.branch(wrong.ref, bad, good)
        builder.place(bad)
        wild.put(place or wild.base, value)
        builder.do(f"ret i64 {op.number + 1}")
        builder.place(good)

    # -------------------------------------------------------------- fields and registers
    def field(self, name: str, type: str) -> str:
        if name not in self._fields:
            self._fields.add(name)
            self.head += [
                f"  %.at.{name} = getelementptr i64, ptr %s, i64 {FIELDS.index(name)}",
                f"  %.{name} = load {type}, ptr %.at.{name}",
            ]
        return f"%.{name}"

    def pointer(self, name: str, size: Any) -> Pointer:
        return Pointer(self.builder, self.field(name, "ptr"), size)

    def number(self, name: str) -> Traced:
        return Traced(self.builder, self.field(name, "i64"), np.int64)

    @property
    def lane(self) -> Any:
        """The lane of the loop; 0 outside of loops."""
        return Traced(self.builder, f"%{self.loop.again}.lane", np.int64) if self.loop is not None else np.int64(0)

    def _address(self, file: str, number: int) -> tuple[Pointer, str]:
        dtype, lanes = _FILES[file]
        name = file.removesuffix("s") if file != "special" else file
        base, stride = self.pointer(file, 0), self.number(f"{name}_bytes")
        warp = Traced(self.builder, "%warp", np.int64)
        at = stride * number + (warp * lanes + (self.lane if lanes > 1 else 0)) * np.dtype(dtype).itemsize
        return base.view(dtype), self.builder.element("i8", base.base, at.ref)

    def read(self, file: str, number: int) -> Traced:
        """Return a register: from its stack slot in a loop over lanes."""
        lanes = _FILES[file][1]
        if self.loop is None and lanes > 1 and file != "special":
            raise Untranslatable("a uniform instruction that reads lanes")
        if self.loop is None or lanes == 1 or file == "special":
            pointer, at = self._address(file, number)
            return pointer.load(at)
        slot, _ = self._slot(file, number)
        pointer = Pointer(self.builder, slot, 0, _FILES[file][0])
        return pointer.load(slot)

    def write(self, file: str, number: int, value: Any) -> None:
        if (self.loop is None) != (_FILES[file][1] == 1) and not (self.loop is not None and self.exchanging):
            raise Untranslatable("an instruction with results of lanes and of warps")
        if _FILES[file][1] == 1:  # of an exchange: active lanes have equal values
            pointer, at = self._address(file, number)
            pointer.put(at, value)
            return
        cell = self._slot(file, number)
        cell[1] = True
        Pointer(self.builder, cell[0], 0, _FILES[file][0]).put(cell[0], value)

    def _slot(self, file: str, number: int) -> list[Any]:
        assert self.loop is not None
        if (file, number) not in self.loop.cells:
            self.loop.cells[file, number] = [self.builder.slot("i8" if "pred" in file else "i32", "cell"), False]
        return self.loop.cells[file, number]

    # -------------------------------------------------------------- loops over lanes
    def open_loop(self, masked: bool = True) -> None:
        """Start a loop over the active lanes, or all lanes."""
        builder = self.builder
        again, out = builder.label("again"), builder.label("out")
        iteration, body, start = builder.label("iteration"), builder.label("body"), builder.block
        builder.jump(iteration)
        builder.place(iteration)
        lane = f"%{again}.lane"
        builder.do(f"{lane} = phi i64 [ 0, %{start} ], [ {lane}.next, %{again} ]")
        if masked:
            is_active = builder.load("i8", builder.element("i8", "%active", lane))
            builder.branch(builder.let(f"icmp ne i8 {is_active}, 0"), body, again)
            builder.place(body)
        self._iteration = iteration
        self.loop = _Loop(len(builder.lines), again, out)

    def close_loop(self) -> None:
        """End the loop: its registers are loaded before its body and stored after it; its accesses are counted."""
        if self.loop is None:
            return
        loop, builder = self.loop, self.builder
        tail, builder.lines = builder.lines[loop.position :], builder.lines[: loop.position]
        end = builder.block
        for (file, number), (slot, _) in loop.cells.items():
            pointer, at = self._address(file, number)
            Pointer(builder, slot, 0, pointer.dtype).put(slot, pointer.load(at))
        builder.lines += tail
        builder.block = end
        for (file, number), (slot, is_written) in loop.cells.items():
            if is_written:
                pointer, at = self._address(file, number)
                pointer.put(at, Pointer(builder, slot, 0, pointer.dtype).load(slot))
        builder.jump(loop.again)
        builder.place(loop.again)
        lane = f"%{loop.again}.lane"
        builder.do(f"{lane}.next = add nuw nsw i64 {lane}, 1")
        more = builder.let(f"icmp ult i64 {lane}.next, 32")
        builder.branch(more, self._iteration, loop.out)
        builder.place(loop.out)
        self.loop = None
        for count in loop.accesses:
            count()

    def prepare_access(self, space: str, writes: bool) -> None:
        """Start another loop if lanes could see writes of others in this one."""
        assert self.loop is not None
        if space != "local" and (space in self.loop.written or (writes and space in self.loop.read)):
            self.close_loop()
            self.open_loop()
        (self.loop.written if writes else self.loop.read).add(space)

    # -------------------------------------------------------------- names of Counts
    def add_access(self, op: Decoded, space: str, operation: str, address: Any, lanes: Any, size: int) -> None:
        """Keep the elements that lanes access, and count them after the loop."""
        assert self.loop is not None
        log = size.bit_length() - 1
        elements, active = self._of_lanes(address.astype(np.int64) >> log, lanes)
        self.loop.accesses.append(lambda: self._count(op, space, operation, elements, active, log))

    def _of_lanes(self, value: Any, lanes: Any) -> tuple[str, str]:
        """Keep a number of each active lane. Return the addresses of the numbers, and of the lanes."""
        builder, at = self.builder, self.lane
        elements, active = builder.slot("[32 x i64]", "elements"), builder.slot("<32 x i8>", "accessing")
        self.head.append(f"  store <32 x i8> zeroinitializer, ptr {active}, align 32")
        pointer = Pointer(builder, elements, 0, np.int64)
        pointer.put(pointer.at(at), value)
        flags = Pointer(builder, active, 0, np.bool_)
        flags.put(builder.element("i8", active, at.ref if isinstance(at, Traced) else 0), lanes)
        return elements, active

    def log_phases(self, op: Decoded, kind: int, r: Any, words: Any, lanes: Any) -> None:
        """Log what lanes do with barriers, as `phases.log_phase`, after the loop."""
        elements, active = self._of_lanes(words, lanes)

        def call() -> None:
            places = [self.field(name, "ptr") for name in ("phases_of_words", "phase_events", "phase_count")]
            event = self.builder.let(f"or i64 {self.builder.let('shl i64 %warp, 32')}, {op.number}")
            log = ", ".join([*(f"ptr {one}" for one in places), f"i64 {self.field('phase_capacity', 'i64')}"])
            arguments = f"{log}, i64 {kind}, i64 {event}, ptr {elements}, ptr {active}"
            self.builder.do(f"call void {self.field('log_phase', 'ptr')}({arguments})")

        if self.loop is None:
            call()
        else:
            self.loop.accesses.append(call)

    def _count(self, op: Decoded, space: str, operation: str, elements: str, active: str, log: int) -> None:
        builder, number = self.builder, op.number
        on, after = builder.label("count"), builder.label("counted")
        some = builder.let(f"icmp ne <32 x i8> {builder.load('<32 x i8>', active)}, zeroinitializer")
        mask = builder.let(f"bitcast <32 x i1> {some} to i32")
        builder.branch(builder.let(f"icmp ne i32 {mask}, 0"), on, after)
        builder.place(on)
        lanes = builder.let(f"zext i32 {builder.intrinsic('llvm.ctpop', 'i32', mask)} to i64")
        builder.add_to(builder.element("i64", self.field("active", "ptr"), number), lanes)
        first = COLUMNS * number + (WINDOW if space == "window" else 0)
        out = builder.element("i64", self.field("traffic", "ptr"), first)
        if space in ("local", "constant"):
            builder.add_to(out, 1)
        elif space in ("shared", "window"):
            shape = builder.element("i64", self.field("bank_shapes", "ptr"), 3 * log)
            kind = builder.load(
                "i64", builder.element("i64", self.field("bank_kinds", "ptr"), OPERATIONS.index(operation))
            )
            builder.do(
                f"call void {self.field('count_shared', 'ptr')}(i64 {kind}, ptr {elements}, ptr {active}, i64 1, "
                f"ptr {shape}, ptr {self.field('bank_load', 'ptr')}, ptr {out})"
            )
        else:
            sector = self.field("load_sector" if operation == "load" else "sector", "i64")
            to_sector = builder.let(f"sub i64 {sector}, {log}")
            to_line = builder.let(f"sub i64 {self.field('line', 'i64')}, {sector}")
            packets = operation not in ("load", "store")
            function = self.field("count_atomic" if packets else "count_global", "ptr")
            size = f"i64 {1 << log}, " if packets else ""
            builder.do(
                f"call void {function}(ptr {elements}, ptr {active}, i64 1, {size}i64 {to_sector}, i64 {to_line}, ptr {out})"
            )
        if space not in ("shared", "window"):
            builder.do(f"call void @trace(ptr %s, i64 %warp, i64 {number}, ptr {elements}, ptr {active})")
        builder.jump(after)
        builder.place(after)

    # -------------------------------------------------------------- instructions
    def exchange(self, lanes: Lanes, kind: int, operands: Sequence[Any]) -> dict[str, Traced]:
        """Exchange values between lanes; continue after it in a loop over lanes, or for uniform results outside of loops."""
        builder = self.builder
        buffers = [builder.slot("[32 x i32]", "values") for _ in range(4)]
        active, holds = builder.slot("<32 x i8>", "active"), builder.slot("<32 x i8>", "holds")
        out = Pointer(builder, buffers[3], 0, np.uint32)
        for buffer, value in zip(buffers, operands, strict=False):
            pointer = Pointer(builder, buffer, 0, np.uint32)
            pointer.put(pointer.at(self.lane), value)
        flags, results = Pointer(builder, active, 0, np.bool_), Pointer(builder, holds, 0, np.bool_)
        flags.put(builder.element("i8", active, self.lane.ref), lanes)
        self.close_loop()
        a, b, c, result_buffer = buffers
        builder.do(
            f"call void {self.field('exchange', 'ptr')}(i64 {kind}, i64 1, ptr {a}, ptr {b}, ptr {c}, ptr {active}, "
            f"ptr {result_buffer}, ptr {holds})"
        )
        if lanes.uniform:
            some = builder.let(f"icmp ne <32 x i8> {builder.load('<32 x i8>', active)}, zeroinitializer")
            lanes.ref = builder.let(f"icmp ne i32 {builder.let(f'bitcast <32 x i1> {some} to i32')}, 0")
            return {"out": out.load(result_buffer), "holds": results.load(holds)}
        self.open_loop()
        at = self.lane.ref
        lanes.ref = flags.load(builder.element("i8", active, at)).ref
        return {
            "out": out.load(builder.element("i32", result_buffer, at)),
            "holds": results.load(builder.element("i8", holds, at)),
        }

    def step(self, step: Step) -> None:
        """Emit an instruction that does not end a run."""
        op = step.op
        assert step.execute is not None
        if not op.operands:
            return
        self.exchanging = step.exchanges
        uniform = op.opcode in _IN_BULK or (op.operands[0].uniform and op.operands[0].kind in ("register", "predicate"))
        if step.exchanges:
            self.close_loop()
            self.open_loop(masked=False)
            is_active = self.builder.load("i8", self.builder.element("i8", "%active", self.lane.ref))
            active = Traced(self.builder, self.builder.let(f"icmp ne i8 {is_active}, 0"), np.bool_)
            if step.guard is not None:
                active = active & step.guard(self, _ONE_WARP)  # type: ignore[arg-type]
            lanes: Any = Lanes(self.builder, active.ref, uniform, self.exchange)
        else:
            if uniform:
                self.close_loop()
            elif self.loop is None:
                self.open_loop()
            for space, writes in spaces_of(op):
                self.prepare_access(space, writes)
            lanes = _ALL_LANES if step.guard is None else step.guard(self, _ONE_WARP)  # type: ignore[arg-type]
        step.execute(self, _ONE_WARP, lanes, self)  # type: ignore[arg-type]
        if step.exchanges:
            self.close_loop()

    def control(self, step: Step) -> str:
        """Emit the selection of lanes by a control instruction. Return their bits, -1 for all active ones."""
        control, guard = step.control, step.guard
        assert control is not None
        if control.error is not None:
            raise Untranslatable("an instruction that is refused")
        operands = [
            (name, read)
            for name, read in (("values", control.values), ("awaited_threads", control.awaited_threads))
            if read
        ]
        if control.select is None and guard is None and not operands:
            return "-1"
        bits = self.builder.slot("i64", "bits")
        self.head.append(f"  store i64 0, ptr {bits}")
        self.open_loop()
        lanes: Any = _ALL_LANES if guard is None else guard(self, _ONE_WARP)  # type: ignore[arg-type]
        if control.select is not None:
            lanes = control.select(self, _ONE_WARP, lanes)  # type: ignore[arg-type]
        selected = Traced(self.builder, self.builder.load("i64", bits), np.int64)
        Pointer(self.builder, bits, 0, np.int64).put(bits, selected | lanes.astype(np.int64) << self.lane)
        for name, read in operands:
            to = Pointer(self.builder, f"%{name}", 0, np.int64)
            to.put(to.at(self.lane), read(self, _ONE_WARP).astype(np.int64))  # type: ignore[arg-type]
        self.close_loop()
        return self.builder.load("i64", bits)

    def text(self, name: str, result: str = "0") -> list[str]:
        """Return the text of the function."""
        self.close_loop()
        return [
            f"define internal i64 @{name}(ptr %s, i64 %warp, ptr %active, ptr %values, ptr %awaited_threads) nounwind noinline {{",
            ".entry:", *self.builder.slots, *self.head, *self.builder.lines, f"  ret i64 {result}", "}",
        ]  # fmt: skip
