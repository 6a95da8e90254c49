"""Programs with accesses of another type than their array's element (`ir.wide`): every pair of types, in every memory space.

Each thread copies its elements of `x` one by one to shared and local memory, reads them as one value of the other type from there, from
`x` and from a table in constant memory, and writes the values to `out`. With integers, atomic operations follow.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir import nodes as ir
from ...ir.spec import verify
from ...ir.wide import aligned_index, alignment_check
from ...language.types import (
    BOOL,
    I32,
    I64,
    SCALARS,
    U8,
    U32,
    VECTORS,
    Array,
    Scalar,
    Value,
    Vector,
)
from ...machine.device import H200
from ...runtime.arrays import split
from ...runtime.engine import Request
from ...runtime.specialisation import Specialisation
from ...span import GENERATED, Span

THREADS = 48
_NAMES = (
    "u8 u16", "u8 i32", "u8 f32", "u8 uint4", "i16 u32", "i16 f64", "i16 uchar4", "f32 i32", "f32 float2", "f32 float4", "u64 f64",
    "u64 float4", "float2 float4", "short2 uint4",
)  # fmt: skip
PAIRS = tuple(tuple((SCALARS | VECTORS)[name] for name in names.split()) for names in _NAMES)
"""Pairs of an element type and the type of an access."""


@dataclass(frozen=True)
class WideCase:
    """request: of the launch. expected: the bytes of `out` and of `totals`."""

    name: str
    request: Request
    expected: dict[str, bytes]


def wide_case(element: Value, type: Value) -> WideCase:
    """Return the launch for one of `PAIRS`."""
    return _Builder(element, type).case()


class _Builder:
    def __init__(self, element: Value, type: Value) -> None:
        self.element, self.type, self.ratio = element, type, type.size // element.size
        self.body: list[ir.Stmt] = []
        self.thread = ir.Special("thread.x", I32, GENERATED)
        self.other = self.op("sub", I32, self.number(THREADS - 1), self.thread)

    def number(self, value: int, type: Scalar = I32) -> ir.Const:
        return ir.Const(value, type, GENERATED)

    def op(self, name: str, type: Scalar, *args: ir.Expr) -> ir.Op:
        return ir.Op(name, args, type, GENERATED)

    def load(self, array: str, index: ir.Expr, type: Value, name: str) -> ir.Reg:
        register = ir.Reg(name, type, GENERATED)
        self.body.append(ir.Let(register, ir.Load(array, index, type, GENERATED), GENERATED))
        return register

    def store(self, array: str, index: ir.Expr, value: ir.Expr) -> None:
        self.body.append(ir.Store(array, index, value, GENERATED))

    def barrier(self) -> None:
        barrier = ir.Barrier("sync", self.number(True, BOOL), BOOL, GENERATED)
        self.body.append(ir.Let(None, barrier, GENERATED))

    def at(self, thread: ir.Expr, number: int, count: int) -> ir.Expr:
        """Return the index `thread * count + number`."""
        return self.op("add", I32, self.op("mul", I32, thread, self.number(count)), self.number(number))

    def case(self) -> WideCase:
        tables = isinstance(self.element, Scalar)
        arrays = {"x": "global", "out": "global", "totals": "global"}
        elements: dict[str, Value] = {"x": self.element, "out": self.element, "totals": U8}
        params = [ir.Param(n, Array(elements[n], None, space), GENERATED) for n, space in arrays.items()]  # type: ignore[arg-type]
        data = np.random.default_rng(7).integers(0, 100, THREADS * self.type.size, np.uint8)
        table = data[: 2 * self.type.size]
        self.allocate("tile", "shared", THREADS * self.ratio)
        self.allocate("own", "local", 3 * self.ratio + 1)
        if tables:
            self.allocate("table", "constant", 2 * self.ratio, tuple(table.view(split(self.element)[0].dtype).tolist()))
        self.copies()
        words = self.atomics() if self.type in (U32, I32) else 0
        kernel = ir.Function(f"{self.element}_as_{self.type}", tuple(params), tuple(self.body), None, GENERATED)
        program = ir.Program(kernel, ())
        verify(program)
        cells = data.reshape(THREADS, self.type.size)
        rows = [cells[::-1], cells, cells, *[np.resize(table.reshape(2, -1), cells.shape)] * tables]
        arguments = {
            "x": _elements(data, self.element),
            "out": _elements(np.zeros(len(rows) * data.size, np.uint8), self.element),
            "totals": np.zeros(4 * words + 3, np.uint8),
        }
        launched = Specialisation.of_program(program)
        request = Request(launched, (1, 1, 1), (THREADS, 1, 1), arguments, 0, H200, True, 1000)
        totals = np.array([THREADS, THREADS - 1][:words], np.uint32).tobytes() + bytes(3)
        return WideCase(kernel.name, request, {"out": np.stack(rows, 1).tobytes(), "totals": totals})

    def allocate(self, array: str, space: Any, length: int, values: tuple[Any, ...] = ()) -> None:
        self.body.append(ir.Alloc(array, Array(self.element, (length,), space), values, GENERATED))

    def copies(self) -> None:
        thread, ratio, type = self.thread, self.ratio, self.type
        for number in range(ratio):
            value = self.load("x", self.at(thread, number, ratio), self.element, f"x{number}")
            self.store("tile", self.at(thread, number, ratio), value)
            self.store("own", self.number(ratio + number), value)
        self.barrier()
        values = [
            self.load("tile", self.other, type, "from_tile"),
            self.load("own", self.number(1), type, "from_own"),
            self.load("x", thread, type, "from_x"),
        ]
        if isinstance(self.element, Scalar):
            values.append(self.load("table", self.op("and", I32, thread, self.number(1)), type, "from_table"))
        self.barrier()
        self.store("tile", thread, values[0])
        self.store("own", self.number(2), values[0])
        values[0] = self.load("own", self.number(2), type, "again")
        for number, value in enumerate(values):
            self.store("out", self.at(thread, number, len(values)), value)

    def atomics(self) -> int:
        """Add atomic operations on `totals`, bytes accessed as words. Return the number of words."""
        type = self.type
        assert isinstance(type, Scalar)
        add = ir.Atomic("add", "totals", self.number(0), self.number(1, type), type, GENERATED)
        self.body.append(ir.Let(None, add, GENERATED))
        most = ir.Atomic("max", "totals", self.number(1), self.op(f"cast_{type}", type, self.thread), type, GENERATED)
        if type is I32:
            most = ir.Atomic("max", "totals", self.number(1), self.thread, type, GENERATED)
        self.body.append(ir.Let(ir.Reg("before", type, GENERATED), most, GENERATED))
        return 2


def _elements(data: Any, type: Value) -> Any:
    scalar, lanes = split(type)
    elements = data.view(scalar.dtype)
    return elements.reshape(-1, lanes) if isinstance(type, Vector) else elements


def faulty_request(offset: int, type: Value, written: int, checks: tuple[str, ...]) -> Request:
    """Return a launch in which thread t reads a `type` at byte `offset + t * type.size` of 64 bytes, of which `written` are written."""
    builder = _Builder(U8, type)
    span = Span("wide", 1, 1, 1, 2)
    builder.allocate("tile", "shared", 64)
    guard = builder.op("lt", BOOL, builder.thread, builder.number(written))
    builder.body.append(ir.If(guard, (ir.Store("tile", builder.thread, builder.number(7, U8), span),), (), span))
    builder.barrier()
    place = builder.op("mul", I32, builder.thread, builder.number(type.size))
    at = ir.Reg("at", I32, span)
    builder.body.append(ir.Let(at, builder.op("add", I32, place, builder.number(offset)), span))
    index, aligned = aligned_index(at, 1, type.size)
    if aligned is not None:
        builder.body.append(alignment_check("tile", at, 1, type.size, aligned, span))
    value = ir.Reg("value", type, GENERATED)
    builder.body.append(ir.Let(value, ir.Load("tile", index, type, span), span))
    builder.store("out", builder.thread, value)
    builder.store("tile", builder.number(0), builder.number(1, U8))
    params = (ir.Param("out", Array(type, None, "global"), GENERATED),)
    program = ir.Program(ir.Function("faulty_access", params, tuple(builder.body), None, span), ())
    verify(program)
    out = _elements(np.zeros(64 * type.size, np.uint8), type)
    return Request(
        Specialisation.of_program(program), (1, 1, 1), (64, 1, 1), {"out": out}, 0, H200, True, 1000,
        checks=frozenset(checks),
    )  # fmt: skip


FAULTY: dict[str, tuple[int, Value, int, tuple[str, ...]]] = {
    "out of bounds": (0, U32, 64, ()),
    "misaligned": (2, U32, 64, ()),
    "uninitialised": (0, VECTORS["float4"], 40, ("uninitialised",)),
    "race": (0, I64, 64, ("races",)),
}
"""Arguments of `faulty_request`, by fault. Each has accesses out of bounds too."""
