"""Where the registers of a warp live: in stack slots, which LLVM turns into its own registers, and between the
phases of a block in the workspace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ...ir import nodes as ir
from ...ir.walk import statements
from ...language.types import BOOL, Array, Scalar, Vector
from ...llvm.builder import FunctionBuilder, many, scalar_type
from ...llvm.values import Value, Values, chosen, lanes
from ...passes.divergence import Shapes, Stride


@dataclass(frozen=True)
class Cell:
    """One scalar register: a slot for its number or vector, and one for its step where that is not known."""

    type: Scalar
    stride: Stride
    slot: str
    step: str | None

    @property
    def llvm(self) -> str:
        element = scalar_type(self.type)
        return many(element) if self.stride == "varying" else element

    def slots(self) -> Iterator[tuple[str, str]]:
        """(slot, LLVM type) pairs."""
        yield self.slot, self.llvm
        if self.step is not None:
            yield self.step, scalar_type(self.type)


@dataclass
class Registers:
    """The registers of a kernel by name; a vector's are its parts."""

    builder: FunctionBuilder
    cells: dict[str, tuple[Cell, ...]] = field(default_factory=dict)
    kept: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # (offset, bytes a warp), by slot
    workspace: int = 0  # bytes

    @staticmethod
    def of(builder: FunctionBuilder, kernel: ir.Function, shapes: Shapes) -> Registers:
        found = Registers(builder)
        for name, type in _types(kernel).items():
            stride = shapes.registers.get(name, 0)
            parts = (
                [(name, type)]
                if isinstance(type, Scalar)
                else [(f"{name}.{i}", type.element) for i in range(type.lanes)]
            )
            found.cells[name] = tuple(found._cell(label, scalar, stride) for label, scalar in parts)
        return found

    def _cell(self, name: str, type: Scalar, stride: Stride) -> Cell:
        element = scalar_type(type)
        slot = self.builder.slot(many(element) if stride == "varying" else element, name)
        return Cell(type, stride, slot, self.builder.slot(element, f"{name}.step") if stride == "dynamic" else None)

    # -------------------------------------------------------------- reading and writing
    def read(self, name: str) -> Values:
        values = tuple(self._value(cell, name) for cell in self.cells[name])
        return values if len(values) > 1 else values[0]

    def _value(self, cell: Cell, name: str) -> Value:
        ref = self.builder.load(cell.llvm, cell.slot, name)
        if cell.step is not None:
            return Value(cell.type, ref, self.builder.load(scalar_type(cell.type), cell.step, "step"))
        return Value(cell.type, ref, None if cell.stride == "varying" else str(cell.stride))

    def assign(self, name: str, new: Values, mask: str | None) -> None:
        """Give a register its value: in all lanes, or only in those of a mask."""
        parts = new if isinstance(new, tuple) else (new,)
        for cell, value in zip(self.cells[name], parts, strict=True):
            self._store(cell, value, mask)

    def _store(self, cell: Cell, value: Value, mask: str | None) -> None:
        builder, element = self.builder, scalar_type(cell.type)
        if cell.stride == "varying":
            ref = lanes(builder, value)
            if mask is not None:
                old = builder.load(cell.llvm, cell.slot, "old")
                ref = builder.let(
                    f"select <32 x i1> {chosen(builder, mask)}, {cell.llvm} {ref}, {cell.llvm} {old}", "merged"
                )
            builder.store(cell.llvm, ref, cell.slot)
            return
        assert value.stride is not None, "the analysis promised a step"
        builder.store(element, value.ref, cell.slot)
        if cell.step is not None:
            builder.store(element, value.stride, cell.step)
        else:
            assert value.stride == str(cell.stride), "the analysis promised this step"

    # -------------------------------------------------------------- phases
    def clear(self, names: Iterable[str]) -> None:
        """Start from zeros: nothing is ever undefined, and register arrays begin so."""
        for name in names:
            for cell in self.cells[name]:
                for slot, type in cell.slots():
                    self.builder.store(type, "zeroinitializer", slot)

    def keep(self, names: Iterable[str], warps: int) -> None:
        """Give registers a place in the workspace."""
        for name in names:
            self.kept[name] = []
            for cell in self.cells[name]:
                for _, type in cell.slots():
                    size = 4 if cell.type is BOOL else cell.type.size
                    size *= 32 if type.startswith("<") and cell.type is not BOOL else 1
                    self.kept[name].append((self.workspace, size))
                    self.workspace += -(-size * warps // 64) * 64

    def restore(self, names: Iterable[str], warp: str) -> None:
        """Take kept registers from the workspace."""
        builder = self.builder
        for name, cell, slot, type, pointer in self._kept(names, warp):
            if cell.type is BOOL:
                packed = builder.load("i32", pointer, name)
                builder.store(type, builder.let(_unpacked(type, packed), name), slot)
            else:
                builder.store(type, builder.load(type, pointer, name), slot)

    def save(self, names: Iterable[str], warp: str) -> None:
        """Put kept registers into the workspace."""
        builder = self.builder
        for name, cell, slot, type, pointer in self._kept(names, warp):
            value = builder.load(type, slot, name)
            if cell.type is BOOL:
                word = "bitcast" if type.startswith("<") else "sext"
                builder.store("i32", builder.let(f"{word} {type} {value} to i32", name), pointer)
            else:
                builder.store(type, value, pointer)

    def _kept(self, names: Iterable[str], warp: str) -> Iterator[tuple[str, Cell, str, str, str]]:
        """(name, cell, slot, its type, its address in the workspace)."""
        for name in names:
            if name not in self.kept:
                continue
            places = iter(self.kept[name])
            for cell in self.cells[name]:
                for slot, type in cell.slots():
                    offset, size = next(places)
                    start = self.builder.element("i8", "%.workspace", offset, f"{name}.kept")
                    yield (
                        name,
                        cell,
                        slot,
                        type,
                        self.builder.element(f"[{size} x i8]", start, warp, f"{name}.kept", "i32"),
                    )


def _unpacked(type: str, packed: str) -> str:
    return f"bitcast i32 {packed} to {type}" if type.startswith("<") else f"trunc i32 {packed} to i1"


def _types(kernel: ir.Function) -> dict[str, Scalar | Vector]:
    """Every register and its type; parameters are not among them."""
    found: dict[str, Scalar | Vector] = {}
    for stmt in statements(kernel.body):
        match stmt:
            case ir.Let(target=ir.Reg() as target):
                found[target.name] = target.type
            case ir.For(var=var):
                found[var.name] = var.type
            case ir.Alloc(type=Array(space="register", element=element)):
                found |= {f"{stmt.array}[{i}]": element for i in range(stmt.type.length or 0)}
    return found
