"""Registers of a warp: stack slots, promoted by LLVM to machine registers, and spilled to the workspace between the phases of a
block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ...ir import nodes as ir
from ...ir.names import elements
from ...ir.walk import statements
from ...language.intrinsics import WARP_SIZE
from ...language.types import BOOL, Array, Scalar, Vector
from ...llvm.builder import FunctionBuilder, many, scalar_type
from ...llvm.values import Value, Values, chosen, lanes
from ...passes.divergence import Divergence, Stride


@dataclass(frozen=True)
class Slot:
    """A stack slot: one scalar, or one for each lane."""

    name: str
    type: Scalar
    vector: bool

    @property
    def llvm(self) -> str:
        element = scalar_type(self.type)
        return many(element) if self.vector else element

    @property
    def size(self) -> int:
        """Return the bytes in the workspace; a bool takes an i32."""
        return 4 if self.type is BOOL else self.type.size * (WARP_SIZE if self.vector else 1)


@dataclass(frozen=True)
class Cell:
    """A scalar register: a slot for its number or vector, and a slot for an unknown step."""

    type: Scalar
    stride: Stride
    slot: Slot
    step: Slot | None

    def slots(self) -> Iterator[Slot]:
        yield self.slot
        if self.step is not None:
            yield self.step


@dataclass
class Registers:
    """Registers of a kernel by name; a vector has a cell for each component."""

    builder: FunctionBuilder
    cells: dict[str, tuple[Cell, ...]] = field(default_factory=dict)
    spilled: dict[str, list[int]] = field(default_factory=dict)  # offsets in the workspace, by slot
    workspace: int = 0  # bytes

    @staticmethod
    def for_kernel(builder: FunctionBuilder, kernel: ir.Function, divergence: Divergence) -> Registers:
        types = Registers(builder)
        for name, type in _types(kernel).items():
            stride = divergence.registers.get(name, 0)
            components = (
                [(name, type)]
                if isinstance(type, Scalar)
                else [(f"{name}.{i}", type.element) for i in range(type.lanes)]
            )
            types.cells[name] = tuple(types._cell(label, scalar, stride) for label, scalar in components)
        return types

    def _cell(self, name: str, type: Scalar, stride: Stride) -> Cell:
        slot = self._slot(name, type, stride == "varying")
        return Cell(type, stride, slot, self._slot(f"{name}.step", type, False) if stride == "dynamic" else None)

    def _slot(self, name: str, type: Scalar, vector: bool) -> Slot:
        element = scalar_type(type)
        return Slot(self.builder.slot(many(element) if vector else element, name), type, vector)

    # -------------------------------------------------------------- reading and writing
    def read(self, name: str) -> Values:
        values = tuple(self._value(cell, name) for cell in self.cells[name])
        return values if len(values) > 1 else values[0]

    def _value(self, cell: Cell, name: str) -> Value:
        ref = self.builder.load(cell.slot.llvm, cell.slot.name, name)
        if cell.step is not None:
            return Value(cell.type, ref, self.builder.load(cell.step.llvm, cell.step.name, "step"))
        return Value(cell.type, ref, None if cell.stride == "varying" else str(cell.stride))

    def assign(self, name: str, new: Values, mask: str | None) -> None:
        """Assign a register in all lanes, or in those of a mask."""
        components = new if isinstance(new, tuple) else (new,)
        for cell, value in zip(self.cells[name], components, strict=True):
            self._store(cell, value, mask)

    def _store(self, cell: Cell, value: Value, mask: str | None) -> None:
        builder, slot = self.builder, cell.slot
        if cell.stride == "varying":
            ref = lanes(builder, value)
            if mask is not None:
                old = builder.load(slot.llvm, slot.name, "old")
                chosen_lanes = chosen(builder, mask)
                ref = builder.let(f"select <32 x i1> {chosen_lanes}, {slot.llvm} {ref}, {slot.llvm} {old}", "merged")
            builder.store(slot.llvm, ref, slot.name)
            return
        assert value.stride is not None, "the analysis promised a step"
        builder.store(slot.llvm, value.ref, slot.name)
        if cell.step is not None:
            builder.store(cell.step.llvm, value.stride, cell.step.name)
        else:
            assert value.stride == str(cell.stride), "the analysis promised this step"

    # -------------------------------------------------------------- spilling
    def clear(self, names: Iterable[str]) -> None:
        """Set registers to zero, so that no value is undefined; register arrays start as zeros."""
        for name in names:
            for cell in self.cells[name]:
                for slot in cell.slots():
                    self.builder.store(slot.llvm, "zeroinitializer", slot.name)

    def reserve(self, names: Iterable[str], warps: int) -> None:
        """Reserve space in the workspace for registers."""
        for name in names:
            self.spilled[name] = []
            for cell in self.cells[name]:
                for slot in cell.slots():
                    self.spilled[name].append(self.workspace)
                    self.workspace += -(-slot.size * warps // 64) * 64

    def reload(self, names: Iterable[str], warp: str) -> None:
        """Load spilled registers from the workspace."""
        builder = self.builder
        for name, slot, pointer in self._places(names, warp):
            if slot.type is BOOL:
                packed = builder.load("i32", pointer, name)
                word = "bitcast" if slot.vector else "trunc"
                builder.store(slot.llvm, builder.let(f"{word} i32 {packed} to {slot.llvm}", name), slot.name)
            else:
                builder.store(slot.llvm, builder.load(slot.llvm, pointer, name), slot.name)

    def spill(self, names: Iterable[str], warp: str) -> None:
        """Store registers with space in the workspace."""
        builder = self.builder
        for name, slot, pointer in self._places(names, warp):
            value = builder.load(slot.llvm, slot.name, name)
            if slot.type is BOOL:
                word = "bitcast" if slot.vector else "sext"
                builder.store("i32", builder.let(f"{word} {slot.llvm} {value} to i32", name), pointer)
            else:
                builder.store(slot.llvm, value, pointer)

    def _places(self, names: Iterable[str], warp: str) -> Iterator[tuple[str, Slot, str]]:
        """Yield (register, slot, address of the slot in the workspace)."""
        for name in names:
            slots = [slot for cell in self.cells[name] for slot in cell.slots()]
            for slot, offset in zip(slots, self.spilled.get(name, ()), strict=False):
                start = self.builder.element("i8", "%.workspace", offset, f"{name}.spilled")
                yield name, slot, self.builder.element(f"[{slot.size} x i8]", start, warp, f"{name}.spilled", "i32")


def _types(kernel: ir.Function) -> dict[str, Scalar | Vector]:
    """Return the type of every register, without parameters."""
    types: dict[str, Scalar | Vector] = {}
    for stmt in statements(kernel.body):
        match stmt:
            case ir.Let(target=ir.Reg() as target):
                types[target.name] = target.type
            case ir.For(var=var):
                types[var.name] = var.type
            case ir.Alloc(type=Array(space="register", element=element)):
                types |= dict.fromkeys(elements(stmt.array, stmt.type.length), element)
    return types
