"""State of the code generation for one kernel: builder, arrays, registers, counters and the current mask."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from ...ir import nodes as ir
from ...ir.ops import TABLE
from ...ir.walk import statements
from ...ir.wide import accessed_array, widest_accesses, width
from ...language.intrinsics import WARP_SIZE
from ...language.types import I32, Array, Scalar, Vector
from ...llvm.builder import FULL, LANES, FunctionBuilder, literal, memory_type, quoted, vector
from ...llvm.operations import operation
from ...llvm.values import Value, Values, number
from ...passes.divergence import Divergence, thread_index
from ...runtime.prepared import PreparedProgram
from ...sanitizer.tracking import Plan
from ...span import Span
from .block_frames import Frame
from .counters.slots import CounterSlots, SampleSlots
from .domains import defined
from .fault_records import FaultRecords
from .layout import Options
from .registers import Registers


@dataclass(frozen=True)
class ArrayLocation:
    """Location of an array in compiled code.

    base: address; for a local array, of the copies of the current warp. elements: number of elements, None if only the launch knows
    it. shift: for an array in dynamic shared memory, the elements between the start of a bank word and the start of the array.
    warp_bytes: of a local array, the bytes of a warp's copies; cell: the elements of a lane that are together in them. alignment: of
    its memory, in bytes. blocks: the rank of the block that has the accessed array minus that of the block of the thread, an i64; None for
    the own block.
    """

    name: str
    type: Array
    base: str
    elements: int | None
    allocated: Span
    shift: int = 0
    warp_bytes: int = 0
    cell: int = 1
    alignment: int = 1
    blocks: Value | None = None

    @property
    def length(self) -> str:
        """Return the number of elements, an i64."""
        return f"{self.base}.length" if self.elements is None else str(self.elements)

    @property
    def scalar(self) -> Scalar:
        return _component(self.type)

    @property
    def components(self) -> int:
        element = self.type.element
        return element.lanes if isinstance(element, Vector) else 1


def _component(type: Array) -> Scalar:
    return type.element.element if isinstance(type.element, Vector) else type.element


@dataclass
class HostCalls:
    """Calls from compiled code to Python, by number: print statements."""

    requests: list[ir.Print] = field(default_factory=list)

    def printing(self, stmt: ir.Print) -> int:
        if stmt not in self.requests:
            self.requests.append(stmt)
        return self.requests.index(stmt)


@dataclass(frozen=True)
class LoopSlots:
    """Counters of a loop. iterations: completed iterations. limit: their limit. out_of_bounds: number of such accesses."""

    iterations: str
    limit: str
    out_of_bounds: str


@dataclass
class CodegenContext:
    """State of the code generation for one kernel.

    mask: i32 of the active lanes, None if all 32 are active. warp: index of the warp in the block. executions: counter slot of the
    current run of statements. specialise_depth: allowed nesting of regions with a version for full warps.
    """

    prepared: PreparedProgram
    options: Options
    divergence: Divergence
    builder: FunctionBuilder
    registers: Registers
    plan: Plan
    specialise_depth: int
    arrays: dict[str, ArrayLocation] = field(default_factory=dict)
    counter_slots: CounterSlots = field(default_factory=CounterSlots)
    sample_slots: SampleSlots = field(default_factory=SampleSlots)
    records: FaultRecords = field(default_factory=FaultRecords)
    host_calls: HostCalls = field(default_factory=HostCalls)
    tables: dict[str, str] = field(default_factory=dict)  # constants of the module
    helpers: dict[str, str] = field(default_factory=dict)  # functions of the module
    buffers: dict[str, str] = field(default_factory=dict)  # stack slots that statements share
    mask: str | None = None
    warp: str = "0"
    block: str = "%.block"
    executions: int = -1
    loops: dict[int, LoopSlots] = field(default_factory=dict)  # enclosing loops, by site
    frame: Frame | None = None  # state of blocks that wait for others
    shared_bytes: int = 0
    local_bytes: int = 0

    @property
    def kernel(self) -> ir.Function:
        return self.prepared.program.kernel

    @property
    def warps(self) -> int:
        x, y, z = self.options.block
        return -(-x * y * z // LANES)

    def active(self) -> str:
        """Return the mask as an i32."""
        return str(FULL) if self.mask is None else self.mask

    def phase(self) -> str:
        """Return the number of barriers passed by the block, an i32."""
        return self.builder.load("i32", "%.phase", "barriers")

    def count(self, slot: int, amount: object = 1) -> None:
        """Add to a counter."""
        if self.options.counters:
            self.builder.add_to(self.builder.element("i64", "%.counts", slot, "counter"), amount)

    def count_constant(self, site: int, column: int, amount: int) -> None:
        """Add a constant to a counter for each execution of the current run of statements."""
        if amount:
            self.counter_slots.contribute(self.executions, site, column, amount)

    def population(self, mask: str, hint: str = "lanes") -> str:
        """Return the number of lanes in a mask, an i64."""
        builder = self.builder
        return builder.let(f"zext i32 {builder.call('i32', 'llvm.ctpop.i32', ('i32', mask), hint=hint)} to i64", hint)

    def table(self, name: str, text: str) -> str:
        """Return the name of a constant of the module."""
        names = {v: k for k, v in self.tables.items()}
        if text in names:
            return names[text]
        name = f"@{quoted(name)}.{len(self.tables)}"
        self.tables[name] = text
        return name

    def helper(self, name: str, make: Callable[[], str]) -> str:
        """Return the name of a function of the module, generated on first use."""
        if name not in self.helpers:
            self.helpers[name] = ""  # it may call other helpers
            self.helpers[name] = make()
        return name

    def scratch(self, name: str, type: str) -> str:
        """Return a stack slot shared by several statements."""
        if name not in self.buffers:
            self.buffers[name] = self.builder.slot(type, name)
        return self.buffers[name]

    def call_host(self, request: int, mask: str, data: str) -> None:
        """Call Python with the number of a host call, a mask of lanes, and their data."""
        self.builder.do(
            f"call void %.host_call(i32 {request}, i64 {self.block}, i32 {self.warp}, i32 {mask}, ptr {data})"
        )

    # -------------------------------------------------------------- arrays
    def place_arrays(self, params: Sequence[ir.Param]) -> None:
        """Assign a location to every array."""
        for param in params:
            if isinstance(param.type, Array):
                base = f"%{quoted(param.name)}"
                alignment = _component(param.type).size
                self.arrays[param.name] = ArrayLocation(
                    param.name, param.type, base, None, param.span, alignment=alignment
                )
        for stmt in statements(self.kernel.body):
            if isinstance(stmt, ir.Alloc) and stmt.type.space != "register":
                self.arrays[stmt.array] = self._allocate(stmt)

    def _allocate(self, stmt: ir.Alloc) -> ArrayLocation:
        type, name = stmt.type, quoted(stmt.array)
        carved = dict(self.options.carved).get(stmt.array)
        length = carved.length if carved is not None else type.length
        assert length is not None
        base = self._constant(stmt) if type.space == "constant" else f"%{name}"
        shift = carved.shift(type.element.size, self.options.device.bank_width) if carved is not None else 0
        if stmt.array in self.arrays:
            return self.arrays[stmt.array]
        location = ArrayLocation(stmt.array, type, base, length, stmt.span, shift, alignment=_component(type).size)
        if type.space == "shared":
            self.builder.do(f"{base} = getelementptr i8, ptr %.shared, i64 {self.shared_bytes}")
            self.shared_bytes += -(-length * type.element.size // 128) * 128
        elif type.space == "local":
            self.builder.do(f"{base} = getelementptr i8, ptr %.local, i64 {self.local_bytes}")
            cell = widest_accesses(self.kernel).get(stmt.array, type.element.size) // type.element.size
            size = -(-length // cell) * cell * type.element.size * LANES
            location = replace(location, warp_bytes=size, cell=cell)
            self.local_bytes += -(-size * self.warps // 128) * 128
        return location

    def accessed(self, access: ir.Access) -> ArrayLocation:
        """Return the array of an access, in units of the access."""
        location = self.arrays[access.array]
        type, ratio = accessed_array(access, location.type), width(access, location.type)
        if ratio == 1:
            return replace(location, type=type)
        location = replace(location, type=type, shift=location.shift // ratio, cell=max(1, location.cell // ratio))
        if location.elements is None:
            return replace(location, base=f"{location.base}.by{ratio}")
        return replace(location, elements=location.elements // ratio)

    def _constant(self, stmt: ir.Alloc) -> str:
        element = stmt.type.element
        assert isinstance(element, Scalar)
        kind = memory_type(element)
        values = ", ".join(f"{kind} {int(v) if kind == 'i8' else literal(v, element)}" for v in stmt.values)
        return self.table(stmt.array, f"internal constant [{len(stmt.values)} x {kind}] [{values}], align 64")

    # -------------------------------------------------------------- expressions
    def special(self, name: str) -> Value:
        """Return the value of a special register: thread.x ... lane, warp."""
        if name == "lane":
            return Value(I32, "0", "1")
        if name == "warp":
            return Value(I32, self.warp)
        if name == "cluster_size":
            return number(prod(self.options.cluster), I32)
        if name == "cluster_rank":
            return self._cluster_rank()
        match ir.INDICES[name]:
            case "block_dim", axis:
                return number(self.options.block[axis], I32)
            case "cluster_dim", axis:
                return number(self.options.cluster[axis], I32)
            case ("cluster_block" | "cluster_index" | "grid_clusters") as index, axis:
                word, extent = {"cluster_block": ("urem", "block"), "cluster_index": ("udiv", "block")}.get(
                    index, ("udiv", "grid_dim")
                )
                operands = f"%{extent}.{'xyz'[axis]}, {self.options.cluster[axis]}"
                return Value(I32, self.builder.let(f"{word} i32 {operands}", index))
            case "thread", axis:
                return self._thread(axis)
        return Value(I32, f"%{name}")  # of the block and the grid: computed at the start of a block

    def _cluster_rank(self) -> Value:
        rank = "0"
        for axis in "zyx":
            scaled = self.builder.let(f"mul i32 {rank}, {self.options.cluster['xyz'.index(axis)]}", "row")
            rank = self.builder.let(f"add i32 {scaled}, {self.special(f'cluster_block.{axis}').ref}", "rank")
        return Value(I32, rank)

    def _thread(self, axis: int) -> Value:
        index, builder = thread_index(self.options.block, axis), self.builder
        stride = self.divergence.stride_of(ir.Special(f"thread.{'xyz'[axis]}", I32, self.kernel.span))
        if stride == "varying":
            rows = ", ".join(f"<32 x i32> {vector('i32', row)}" for row in index)
            table = self.table(
                f"thread.{'xyz'[axis]}", f"internal constant [{len(index)} x <32 x i32>] [{rows}], align 64"
            )
            return Value(
                I32, builder.load("<32 x i32>", builder.element("<32 x i32>", table, self.warp, width="i32")), None
            )
        first = index[:, 0].tolist()
        if all(n == first[0] for n in first):
            return Value(I32, str(first[0]), str(stride), first[0] if stride == 0 else None)
        if first == [WARP_SIZE * w for w in range(len(first))]:
            return Value(I32, builder.let(f"shl i32 {self.warp}, 5", "first"), str(stride))
        cells = ", ".join(f"i32 {n}" for n in first)
        table = self.table(f"thread.{'xyz'[axis]}", f"internal constant [{len(first)} x i32] [{cells}], align 64")
        return Value(I32, builder.load("i32", builder.element("i32", table, self.warp, width="i32")), str(stride))

    def extent(self, array: str) -> Value:
        """Return the number of elements of an array, as the i32 of the language."""
        location = self.arrays[array]
        if location.elements is not None:
            return number(location.elements, I32)
        return Value(I32, self.builder.let(f"trunc i64 {location.length} to i32", "extent"))

    def expression(self, expr: ir.Expr) -> Value:
        """Return the value of a scalar expression."""
        match expr:
            case ir.Const():
                return number(expr.value, expr.type)
            case ir.Reg():
                register_value = self.read(expr)
                assert isinstance(register_value, Value)
                return register_value
            case ir.Special():
                return self.special(expr.name)
            case ir.Extent():
                return self.extent(expr.array)
            case ir.Op():
                assert expr.name in TABLE
                return self.operation(expr, [self.expression(a) for a in expr.args])
            case ir.Within():
                return self.expression(expr.flat)
            case ir.Defined(value=op):
                return defined(self.builder, op, [self.expression(a) for a in op.args])
            case ir.Component():
                assert isinstance(expr.index, ir.Const)
                return self.values(expr.value)[int(expr.index.value)]
        raise TypeError(f"{type(expr).__name__} is left after unrolling")

    def operation(self, op: ir.Op, args: list[Value]) -> Value:
        return operation(self.builder, op, args)

    def values(self, expr: ir.Expr) -> tuple[Value, ...]:
        """Return the components of an expression: one for a scalar."""
        if isinstance(expr, ir.Pack):
            return tuple(self.expression(a) for a in expr.args)
        if isinstance(expr.type, Vector):
            assert isinstance(expr, ir.Reg)
            register_value = self.read(expr)
            return register_value if isinstance(register_value, tuple) else (register_value,)
        return (self.expression(expr),)

    def read(self, register: ir.Reg) -> Values:
        if register.name in self.registers.cells:
            return self.registers.read(register.name)
        assert isinstance(register.type, Scalar)  # a parameter without assignments
        return Value(register.type, f"%{quoted(register.name)}")

    def parameter(self, param: ir.Param) -> Value:
        """Return the argument of the launch."""
        assert isinstance(param.type, Scalar)
        return Value(param.type, f"%{quoted(param.name)}")
