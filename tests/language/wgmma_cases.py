"""Kernels and operands of `wgmma`: one product of a warpgroup, with A in registers or in shared memory, in each layout."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import simtbed as st
from simtbed import Global, i32, u32
from simtbed.ir import tensor_cores
from simtbed.ir.matrices import BITS, FLOATS, GROUP_INSTRUCTIONS, GroupInstruction, fragment, matrix
from simtbed.language.types import SCALARS
from simtbed.runtime.registry import EngineName

from tests.recorded_fragments import Values, lanes_of

H200 = (9, 0)


@dataclass(frozen=True)
class Layout:
    """A matrix in shared memory: whether M or N is contiguous, and the bytes of its swizzle and of its strides."""

    transposed: bool
    swizzle: int
    leading: int
    stride: int

    def places(self, rows: int, columns: int, size: int) -> Values:
        """Return the byte of each element [rows, columns]; columns: of K. size: bytes of an element."""
        row, k = np.arange(rows)[:, None], np.arange(columns)[None, :]
        chunk, width = 16 // size, self.swizzle or 16
        if not self.transposed:
            column = k * size if self.swizzle else k % chunk * size + k // chunk * self.leading
            place = row % 8 * width + row // 8 * self.stride + column
        else:
            chunks, blocks = row // chunk, k // 8
            place = row % chunk * size + k % 8 * width
            if self.swizzle:
                place = (
                    place + chunks % (width // 16) * 16 + chunks // (width // 16) * self.leading + blocks * self.stride
                )
            else:
                place = place + chunks * self.stride + blocks * self.leading
        return np.asarray(place ^ ((place >> 7 & (width // 16 - 1)) << 4))

    def words(self, values: Values) -> Values:
        """Return shared memory with a matrix [rows, columns] of bits: u32."""
        size = values.dtype.itemsize
        places = self.places(values.shape[0], values.shape[1], size)
        memory = np.zeros(-(-(places.max() + size) // 1024) * 1024, np.uint8)
        memory.view(values.dtype)[places // size] = values
        return memory.view(np.uint32)


def layouts(rows: int, size: int) -> list[Layout]:
    """Return layouts of a matrix with so many rows or columns of 32 bytes of K."""
    plain = [Layout(False, 0, 128, 256), Layout(False, 0, 8 * rows * 2, 128)]
    plain += [Layout(False, swizzle, 16, 8 * swizzle) for swizzle in (32, 64, 128)]
    if size != 2:
        return plain
    blocks = rows // 8
    plain += [Layout(True, 0, 128, 256), Layout(True, 0, 128 * blocks, 128)]
    for swizzle in (32, 64, 128):
        bands = -(-16 * blocks // swizzle)
        plain += [
            Layout(True, swizzle, 16 * swizzle, 8 * swizzle),
            Layout(True, swizzle, 8 * swizzle, 8 * swizzle * bands),
        ]
    return plain


@dataclass(frozen=True)
class Case:
    """A form of the instruction. a: None for A in registers."""

    row: GroupInstruction
    a: Layout | None
    b: Layout
    add: bool = True
    negative: bool = False

    @property
    def name(self) -> str:
        a = "registers" if self.a is None else f"{self.a.swizzle}{'T' * self.a.transposed}"
        flags = f"{' negative' * self.negative}{'' if self.add else ' alone'}"
        return f"wgmma {self.row.name} {a} x {self.b.swizzle}{'T' * self.b.transposed}{flags}"


def kernel_of(case: Case, words_a: int, words_b: int) -> Any:
    """Return the kernel of a case."""
    row, a, b, negative = case.row, case.a, case.b, case.negative
    shape, _, first, second = row.name.split(".")
    kind, sums, count = f"{first}.{second}", getattr(st, row.element.name), row.registers
    transposed = "a" * (a is not None and a.transposed) + "b" * b.transposed
    a_leading, a_stride, a_swizzle = (a.leading, a.stride, a.swizzle) if a is not None else (0, 0, 0)
    b_leading, b_stride, b_swizzle = b.leading, b.stride, b.swizzle

    @st.kernel
    def from_shared(a: Global[u32], b: Global[u32], c: Global[u32], d: Global[u32], add: i32) -> None:
        tile_a = st.shared(u32, words_a)
        tile_b = st.shared(u32, words_b)
        for i in range(st.thread.x, words_a, 128):
            tile_a[i] = a[i]
        for i in range(st.thread.x, words_b, 128):
            tile_b[i] = b[i]
        total = st.registers(sums, count)
        for i in st.unroll(range(count)):
            total[i] = st.bitcast(sums, c[st.thread.x * count + i])
        st.fence_async()
        st.sync()
        st.wgmma_fence()
        left = st.matrix_descriptor(0, a_leading, a_stride, a_swizzle)
        right = st.matrix_descriptor(0, b_leading, b_stride, b_swizzle)
        st.wgmma(total, (tile_a, left), (tile_b, right), shape, kind, add != 0, transposed, negative)
        st.wgmma_commit()
        st.wgmma_wait()
        for i in st.unroll(range(count)):
            d[st.thread.x * count + i] = st.bitcast(u32, total[i])

    @st.kernel
    def from_registers(a: Global[u32], b: Global[u32], c: Global[u32], d: Global[u32], add: i32) -> None:
        tile_b = st.shared(u32, words_b)
        for i in range(st.thread.x, words_b, 128):
            tile_b[i] = b[i]
        total = st.registers(sums, count)
        for i in st.unroll(range(count)):
            total[i] = st.bitcast(sums, c[st.thread.x * count + i])
        t = 4 * st.thread.x
        rows = st.uint4(a[t], a[t + 1], a[t + 2], a[t + 3])
        st.fence_async()
        st.sync()
        st.wgmma_fence()
        right = st.matrix_descriptor(0, b_leading, b_stride, b_swizzle)
        st.wgmma(total, rows, (tile_b, right), shape, kind, add != 0, transposed, negative)
        st.wgmma_commit()
        st.wgmma_wait()
        for i in st.unroll(range(count)):
            d[st.thread.x * count + i] = st.bitcast(u32, total[i])

    return from_registers if a is None else from_shared


def launched(case: Case, a: Values, b: Values, c: Values, engine: EngineName) -> st.Result:
    """Launch the kernel of a case with A [64, k], B by its columns [n, k], and C [64, n], as bits."""
    row, width = case.row, max(32 // BITS[case.row.part.a], 1)
    own_b = case.b.words(b)
    fragments = lanes_of(a.reshape(4, 16, -1), row.part.types[0], width).view(np.uint32).reshape(-1)
    own_a = fragments if case.a is None else case.a.words(a)
    own_c = fragment_of_sums(row, c)
    args = {"a": own_a, "b": own_b, "c": own_c, "d": np.zeros_like(own_c), "add": int(case.add)}
    return st.launch(kernel_of(case, len(own_a), len(own_b)), grid=1, block=128, args=args, engine=engine)


def run(case: Case, a: Values, b: Values, c: Values, engine: EngineName) -> Values:
    """Return the bits of D [64, n]."""
    return sums_of_fragment(case.row, np.asarray(launched(case, a, b, c, engine)["d"]))


def fragment_of_sums(row: GroupInstruction, c: Values) -> Values:
    """Return the registers of C [64, n], u32[128 * registers]."""
    blank = [np.zeros(0, SCALARS[row.element.name].dtype)] * row.registers
    own = [np.asarray(one) for one in fragment(np.ascontiguousarray(c.reshape(4, 16, -1)), blank, 2)]
    return np.stack(own, axis=-1).view(np.uint32).reshape(-1)


def sums_of_fragment(row: GroupInstruction, d: Values) -> Values:
    lanes = d.reshape(4, 32, -1)
    registers = [np.ascontiguousarray(lanes[..., n]) for n in range(lanes.shape[-1])]
    return matrix(registers, 16, row.n, BITS[row.part.total], 2).reshape(64, row.n)


def expected(case: Case, a: Values, b: Values, c: Values) -> Values:
    """Return the bits of D by the rule of the reference."""
    instruction = case.row.part
    c = c if case.add else np.zeros_like(c)
    if instruction.total == "s32":
        x, y = (
            v.astype(np.int64) if t == "u8" else v.view(np.int8).astype(np.int64)
            for v, t in ((a, instruction.a), (b, instruction.b))
        )
        return (x @ y.T + c.astype(np.int64)).astype(np.uint32)
    if case.negative:
        a = a ^ (a.dtype.type(1) << a.dtype.type(8 * a.dtype.itemsize - 1))
    return np.asarray(
        tensor_cores.product_sums(instruction, tensor_cores.rule(instruction, H200), a[None], b[None], c[None])[0]
    )


def operands(row: GroupInstruction, seed: int) -> tuple[Values, Values, Values]:
    """Return random bits of A, B and C: small numbers, and now and then any."""
    draw, instruction = np.random.default_rng(seed), row.part
    kinds = {8: np.uint8, 16: np.uint16, 32: np.uint32}
    values = []
    for shape, name in (
        ((64, instruction.k), instruction.a),
        ((row.n, instruction.k), instruction.b),
        ((64, row.n), instruction.total),
    ):
        type = kinds[BITS[name]]
        bits = draw.integers(0, 1 << BITS[name], shape, dtype=np.uint64).astype(type)
        if name[0] not in "su":
            form = FLOATS[name]
            middle = draw.integers((1 << form.exponent - 1) - 4, (1 << form.exponent - 1) + 2, shape)
            fields = ((1 << form.exponent) - 1) << (form.fraction + form.unused)
            usual = (bits & type(~fields & ((1 << BITS[name]) - 1))) | (middle << (form.fraction + form.unused)).astype(
                type
            )
            bits = np.where(draw.random(shape) < 0.02, bits, usual).astype(type)
        values.append(bits)
    return values[0], values[1], values[2]


def cases() -> list[Case]:
    """Return forms that have each type, each layout of A and of B, the flags, and narrow and wide products."""
    draw, results = np.random.default_rng(3), list[Case]()
    instructions = {row.part.name: row.part for row in GROUP_INSTRUCTIONS.values()}
    for instruction in instructions.values():
        rows = sorted((row for row in GROUP_INSTRUCTIONS.values() if row.part is instruction), key=lambda row: row.n)
        size, floats = BITS[instruction.a] // 8, instruction.total != "s32"
        for a in (*layouts(64, size), None):
            row = rows[draw.integers(len(rows) // 2)]
            mine = layouts(row.n, size)
            b = mine[draw.integers(len(mine))]
            results.append(Case(row, a, b, bool(draw.random() < 0.8), floats and bool(draw.random() < 0.3)))
        results += [Case(row, layouts(64, size)[4], layouts(row.n, size)[2]) for row in (rows[0], rows[-1])]
    return results
