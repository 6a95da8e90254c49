"""Copies of boxes of tensors as loops over 16 bytes of shared memory, with the swizzle, and the completion of their bytes.

A unit of 16 bytes inside the tensor is one access; of one that the end of a row cuts, and of a reduction, each element is. Orders are
those of `bulk_copies`. An H200 permutes the units by the address in shared memory; arrays are aligned to the repetition of the swizzle.
It ends a kernel with an illegal instruction where a box does not begin at a multiple of 16 bytes along the last axis, or where one that
is written begins before the tensor.
"""

from collections.abc import Iterator

from ..ir import nodes as ir
from ..ir.names import temporary
from ..ir.nodes import UNCOUNTED
from ..ir.wide import alignment_check
from ..language.forms import AccessOrder, AtomicOp
from ..language.tensor_maps import FIRST_ELEMENT, OOB_NAN, SHARED_ALIGNMENT, SIZES, STRIDES, UNIT
from ..language.types import BF16, BOOL, F16, F32, F64, I32, I64, SCALARS, U16, U32, U64, VECTORS, Scalar
from .generated import Code, Operand, combined, replaced

_WORDS = VECTORS["uint4"]
_BITS: dict[Scalar, Scalar] = {F16: U16, BF16: U16, F32: U32, F64: U64}
_MAX_INDEX = (1 << 31) - 1


def lower_tensor_copies(program: ir.Program) -> ir.Program:
    """Return the program without copies of boxes."""
    return replaced(program, ir.TensorCopy, lambda stmt, numbers: _Copy(stmt, numbers).statements())


class _Copy:
    """One copy. sizes, steps: elements, and those from one index to the next, by dimension. index: the type of an element's index."""

    def __init__(self, stmt: ir.TensorCopy, numbers: Iterator[int]) -> None:
        self.stmt, self.form, self.numbers = stmt, stmt.form, numbers
        self.element = stmt.form.element
        self.unit = UNIT // self.element.size
        self.index = I32 if stmt.form.length <= _MAX_INDEX and stmt.words is None else I64
        self.loads = stmt.barrier is not None
        self.order: AccessOrder = "weak" if self.loads else "bulk"
        self.written_order: AccessOrder = "bulk" if self.loads else "weak"

    def code(self) -> Code:
        return Code(self.stmt.span, "tensor@part", self.numbers)

    def register(self, type: Scalar) -> ir.Reg:
        return ir.Reg(temporary("tensor@part", next(self.numbers)), type, self.stmt.span)

    def number(self, value: int, type: Scalar = I32) -> ir.Const:
        return ir.Const(value, type, self.stmt.span)

    def assign(self, code: Code, register: ir.Reg, value: ir.Expr) -> None:
        code.body.append(ir.Let(register, value, code.span, UNCOUNTED))

    def loop(self, code: Code, number: ir.Reg, count: int, inner: Code) -> None:
        bounds = self.number(0), self.number(count)
        code.body.append(ir.For(number, *bounds, 1, False, tuple(inner.body), code.span, UNCOUNTED))

    def branch(self, code: Code, condition: ir.Expr, then: Code, orelse: Code | None = None) -> None:
        other = tuple(orelse.body) if orelse else ()
        code.body.append(ir.If(condition, tuple(then.body), other, code.span, UNCOUNTED))

    def inside(self, code: Code, at: ir.Expr, size: Operand, outer: ir.Expr) -> ir.Expr:
        own = code.op("both", code.op("ge", at, 0), code.op("lt", at, size))
        return code.op("both", outer, own)

    # -------------------------------------------------------------- loops
    def statements(self) -> list[ir.Stmt]:
        code, stmt = self.code(), self.stmt
        self.at = code.op("mul", code.let(code.cast(stmt.at, I32)), SHARED_ALIGNMENT // UNIT)
        self.first = [code.let(own) for own in stmt.coordinates]
        start = self.layout(code)
        self.check(code, code.op("add", start, code.cast(self.first[0], self.index)))
        self.dimension(code, len(self.first) - 1, self.number(0), self.number(1, BOOL), start)
        if stmt.barrier is not None:
            bytes = self.number(self.form.bytes, U64)
            op: AtomicOp = "mbarrier_complete_tx"
            array = stmt.barrier.name
            code.let(ir.Atomic(op, array, stmt.which, bytes, U64, stmt.span, "release", "block"), -1)
        return code.body

    def check(self, code: Code, first: ir.Expr) -> None:
        """Check the coordinates as the hardware does. first: the index of the first element, in the first row."""
        name, span = self.stmt.tensor.name, code.span
        aligned = code.op("eq", code.op("and", first, self.unit - 1), 0)
        code.body.append(alignment_check(name, first, self.element.size, UNIT, aligned, span))
        if not self.loads:
            for own in self.first:
                inside = code.op("ge", own, 0)
                code.body.append(ir.Check("bounds", inside, ir.Extent(name, I32, span), (own,), span))

    def layout(self, code: Code) -> ir.Expr:
        """Set sizes and steps; return the index of the first element."""
        form, words, word = self.form, self.stmt.words, self.stmt.word
        self.sizes: list[Operand] = list(form.sizes)
        self.steps: list[Operand] = [1, *(stride // self.element.size for stride in form.strides)]
        if words is None or word is None:
            return self.number(0, self.index)

        def read(number: int, type: Scalar) -> ir.Expr:
            index = code.op("add", word, number)
            return code.cast(code.let(ir.Load(words.name, index, U64, self.stmt.span, "weak")), type)

        shift = self.element.size.bit_length() - 1
        self.sizes = [read(SIZES + d, I32) for d in range(len(self.sizes))]
        self.steps = [1, *(code.op("shr", read(STRIDES + d, I64), shift) for d in range(len(self.steps) - 1))]
        return read(FIRST_ELEMENT, I64)

    def dimension(self, outer: Code, d: int, row: ir.Expr, inside: ir.Expr, flat: ir.Expr) -> None:
        """Loop over a dimension. row: of the box; inside: whether it is in the tensor; flat: the index of its element 0."""
        if d == 0:
            self.row(outer, row, inside, flat)
            return
        code, number = self.code(), self.register(I32)
        at = code.op("add", self.first[d], number)
        row = code.op("add", code.op("mul", row, self.form.box[d]), number)
        inside = self.inside(code, at, self.sizes[d], inside)
        flat = code.op("add", flat, code.op("mul", code.cast(at, self.index), self.steps[d]))
        self.dimension(code, d - 1, row, inside, flat)
        self.loop(outer, number, self.form.box[d], code)

    def row(self, outer: Code, row: ir.Expr, inside: ir.Expr, flat: ir.Expr) -> None:
        """Loop over the units of a row."""
        code, number = self.code(), self.register(I32)
        units = self.form.box[0] // self.unit
        at = code.op("add", self.first[0], code.op("mul", number, self.unit))
        place = code.op("add", self.at, code.op("add", code.op("mul", row, units), number))
        if self.form.swizzle:
            permuted = code.op("and", code.op("shr", place, 3), self.form.swizzle // UNIT - 1)
            place = code.op("xor", place, permuted)
        tensor, shared, span = self.stmt.tensor.name, self.stmt.shared.name, self.stmt.span
        if self.stmt.op is not None:
            self.elements(code, at, inside, flat, code.let(ir.Load(shared, place, _WORDS, span, self.order)))
            self.loop(outer, number, units, code)
            return
        enough = code.op("le", code.op("add", at, self.unit), self.sizes[0])
        whole = code.op("both", inside, code.op("both", code.op("ge", at, 0), enough))
        both, parts = self.code(), self.code()
        index = both.op("add", flat, both.cast(at, self.index))
        index = both.op("shr", index, self.unit.bit_length() - 1)
        if self.loads:
            words: ir.Expr = both.let(ir.Load(tensor, index, _WORDS, span, self.order))
            both.body.append(ir.Store(shared, place, words, span, UNCOUNTED, self.written_order))
            words = self.elements(parts, at, inside, flat, None)
            parts.body.append(ir.Store(shared, place, words, span, UNCOUNTED, self.written_order))
        else:
            loaded = code.let(ir.Load(shared, place, _WORDS, span, self.order))
            both.body.append(ir.Store(tensor, index, loaded, span, UNCOUNTED, self.written_order))
            self.elements(parts, at, inside, flat, loaded)
        self.branch(code, whole, both, parts)
        self.loop(outer, number, units, code)

    # -------------------------------------------------------------- elements
    def elements(self, code: Code, at: ir.Expr, inside: ir.Expr, flat: ir.Expr, stored: ir.Expr | None) -> ir.Expr:
        """Load the elements of a unit, and return the unit; or write those of `stored` that are in the tensor."""
        halves = self.register(U64), self.register(U64)
        for n, half in enumerate(halves):
            value: ir.Expr = self.number(0, U64)
            if stored is not None:
                low, high = (code.cast(self.word(code, stored, 2 * n + m), U64) for m in (0, 1))
                value = code.op("or", low, code.op("shl", high, 32))
            self.assign(code, half, value)
        inner, access, number = self.code(), self.code(), self.register(I32)
        own = inner.op("add", at, number)
        is_inside = self.inside(inner, own, self.sizes[0], inside)
        is_low = inner.op("lt", number, self.unit // 2)
        shift = inner.cast(inner.op("and", inner.op("mul", number, 8 * self.element.size), 63), U64)
        index = access.op("add", flat, access.cast(own, self.index))
        if stored is None:
            bits = self.register(U64)
            self.assign(inner, bits, self.number(OOB_NAN[self.element] if self.form.fill == "nan" else 0, U64))
            loaded = access.let(ir.Load(self.stmt.tensor.name, index, self.element, code.span, self.order))
            self.assign(access, bits, self.as_bits(access, loaded))
            self.branch(inner, is_inside, access)
            piece = inner.op("shl", bits, shift)
            for half, is_own in zip(halves, (is_low, inner.op("not", is_low)), strict=True):
                self.assign(inner, half, inner.op("select", is_own, inner.op("or", half, piece), half))
        else:
            chosen = access.op("select", is_low, *halves)
            value = self.from_bits(access, access.op("shr", chosen, shift))
            access.body.append(self.written(index, value))
            self.branch(inner, is_inside, access)
        self.loop(code, number, self.unit, inner)
        words = [code.cast(own, U32) for half in halves for own in (half, code.op("shr", half, 32))]
        return ir.Pack(tuple(words), _WORDS, code.span)

    def written(self, index: ir.Expr, value: ir.Expr) -> ir.Stmt:
        """Return the store or the reduction of an element."""
        name = self.stmt.tensor.name
        if self.stmt.op is not None:
            return combined(self.stmt.op, name, index, value)
        return ir.Store(name, index, value, self.stmt.span, UNCOUNTED, self.written_order)

    def word(self, code: Code, words: ir.Expr, number: int) -> ir.Expr:
        return code.let(ir.Component(words, self.number(number), U32, code.span))

    def as_bits(self, code: Code, value: ir.Expr) -> ir.Expr:
        """Return an element as u64; the upper bits of a smaller one are 0."""
        bits = _BITS.get(self.element)
        if bits is not None:
            value = code.op(f"as_{bits}", value)
        elif self.element.kind == "int" and self.element.size < 8:
            value = code.cast(value, SCALARS[f"u{8 * self.element.size}"])
        return code.cast(value, U64)

    def from_bits(self, code: Code, value: ir.Expr) -> ir.Expr:
        bits = _BITS.get(self.element)
        return code.cast(value, self.element) if bits is None else code.op(f"as_{self.element}", code.cast(value, bits))
