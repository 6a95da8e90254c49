"""Matrix multiply-accumulates of a warpgroup as those of its warps: loads of rows by descriptors, and an `Mma` for each 8 columns.

Warp w computes the rows 16 w ... 16 w + 15. A matrix in shared memory consists of blocks of 8 rows of 16 bytes: the 8x8 matrices of
`matrices.moved`. The hardware reads operands until a wait; here they are read where the instruction is issued, by loads of the order
"wgmma": the race checker knows those that may be pending.
"""

from collections.abc import Iterator

from ..ir import nodes as ir
from ..ir.matrices import GROUP_INSTRUCTIONS, INCOMPLETE, SIGNS, WITH_BASE, DescribedRows, GroupInstruction, registers
from ..ir.nodes import UNCOUNTED
from ..language.intrinsics import FULL_MASK
from ..language.types import I32, U32, Vector
from .generated import Code, replaced


def lower_products(program: ir.Program) -> ir.Program:
    """Return the program without products of warpgroups."""
    return replaced(program, ir.Wgmma, lambda stmt, numbers: _Product(stmt, numbers).statements())


class _Matrix:
    """A matrix in shared memory."""

    def __init__(self, code: Code, array: ir.ArrayRef, descriptor: ir.Expr, transposed: bool) -> None:
        self.code, self.array = code, array
        self.places = DescribedRows(code.op, lambda field: code.cast(field, I32), code.let(descriptor), transposed)
        code.body.append(ir.Assert(self.places.without_base, WITH_BASE, code.span, UNCOUNTED))

    def rows(self, block: ir.Expr, half: ir.Expr, count: int) -> ir.Expr:
        """Load 8x8 matrices, one a register: lane 8 i + r loads row r of matrix i. block, half: those of the lane."""
        code = self.code
        row = code.op("and", ir.Special("lane", I32, code.span), 7)
        index = self.places.at(block, half, row)
        four, full = registers(U32, 4), ir.Const(FULL_MASK, U32, code.span)
        loaded = code.let(ir.Load(self.array.name, index, four, code.span, "wgmma", lanes=8 * count))
        transposed = self.places.transposed
        return code.let(ir.MoveMatrix("load", transposed, loaded, full, registers(U32, count), code.span))


class _Product:
    """One instruction."""

    def __init__(self, stmt: ir.Wgmma, numbers: Iterator[int]) -> None:
        self.stmt, self.code = stmt, Code(stmt.span, "wgmma@part", numbers)
        self.row: GroupInstruction = GROUP_INSTRUCTIONS[stmt.instruction]

    def statements(self) -> list[ir.Stmt]:
        code, stmt = self.code, self.stmt
        self.require_warpgroup()
        lane = ir.Special("lane", I32, code.span)
        number = code.op("shr", lane, 3)  # of the 8x8 matrix
        low, high = code.op("and", number, 1), code.op("shr", number, 1)
        a: ir.Expr = stmt.a
        if stmt.in_a is not None:
            warp = code.op("and", ir.Special("warp", I32, code.span), 3)
            block = code.op("add", code.op("shl", warp, 1), low)
            a = _Matrix(code, stmt.in_a, stmt.a, stmt.transposed[0]).rows(block, high, 4)
        if stmt.negative:
            a = self.negated(a)
        matrix = _Matrix(code, stmt.in_b, stmt.b, stmt.transposed[1])
        for first in range(0, self.row.n // 8, 2):
            blocks = min(2, self.row.n // 8 - first)
            rows = matrix.rows(code.op("add", high, first), low, 2 * blocks)
            for column in range(blocks):
                self.multiply(a, self.registers_of(rows, 2 * column, 2), first + column)
        return code.body

    def require_warpgroup(self) -> None:
        code = self.code
        threads: ir.Expr = ir.Special("block_dim.x", I32, code.span)
        for axis in "yz":
            threads = code.op("mul", threads, ir.Special(f"block_dim.{axis}", I32, code.span))
        last = code.op("or", ir.Special("warp", I32, code.span), 3)
        whole = code.op("lt", code.op("shl", last, 5), threads)
        code.body.append(ir.Assert(whole, INCOMPLETE, code.span, UNCOUNTED))

    def registers_of(self, vector: ir.Expr, first: int, count: int) -> ir.Expr:
        """Return some registers of a vector as a fragment."""
        code, whole = self.code, vector.type
        assert isinstance(whole, Vector)
        if whole.lanes == count:
            return vector
        components = tuple(
            ir.Component(vector, ir.Const(first + n, I32, code.span), whole.element, code.span) for n in range(count)
        )
        return ir.Pack(components, registers(whole.element, count), code.span)

    def negated(self, a: ir.Expr) -> ir.Expr:
        code, whole = self.code, a.type
        assert isinstance(whole, Vector)
        fragment = code.let(a)
        components = tuple(
            code.op("xor", ir.Component(fragment, ir.Const(n, I32, code.span), U32, code.span), SIGNS[self.row.part.a])
            for n in range(whole.lanes)
        )
        return ir.Pack(components, whole, code.span)

    def multiply(self, a: ir.Expr, b: ir.Expr, block: int) -> None:
        """Multiply by 8 columns. The first one is the instruction."""
        code, stmt, part = self.code, self.stmt, self.row.part
        total, element = part.types[2], self.row.element
        lanes = total.lanes if isinstance(total, Vector) else 1
        items = [
            ir.Item(stmt.d.name, ir.Const(block * lanes + n, I32, code.span), element, code.span) for n in range(lanes)
        ]
        sums: list[ir.Expr] = list(items)
        if not (isinstance(stmt.add, ir.Const) and stmt.add.value):
            zero = ir.Const(element.dtype.type(0).item(), element, code.span)
            sums = [ir.Op("select", (stmt.add, item, zero), element, code.span) for item in items]
        full = ir.Const(FULL_MASK, U32, code.span)
        product = ir.Mma(part.name, a, b, ir.Pack(tuple(sums), total, code.span), full, total, code.span)
        result = code.let(product, -1 if block == 0 else UNCOUNTED)
        for n, item in enumerate(items):
            own = ir.Component(result, ir.Const(n, I32, code.span), element, code.span)
            code.body.append(ir.Let(item, own, code.span, UNCOUNTED))
