"""Tensor cores in CUDA C++: inline PTX and nvcuda::wmma with the bits of the core, moves, conversions, copies, refusals."""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.ir import tensor_cores
from simtbed.ir.matrices import BITS, FLOATS, INSTRUCTIONS, Instruction, moved
from simtbed.language.types import Vector
from simtbed.runtime.registry import EngineName

from tests.recorded_fragments import RECORD, Values, fragments, recorded_rows, result
from tests.table_checks import check_each, each_row
from tests.texts import texts

TEXTS = texts("cuda_cpp/tensor_cores.cu")

H200 = (9, 0)
TYPES = {"f32": ("float", "f"), "f64": ("double", "d"), "s32": ("int", "r"), "f16": ("unsigned", "r")}


def _count(type: Any) -> int:
    return type.lanes if isinstance(type, Vector) else 1


def _product(row: Instruction) -> Any:
    """Return a kernel with one fragment a block: d[i] = a[i] b[i] + c[i], by mma.sync."""
    operand = TYPES["f64" if row.a == "f64" else "f16"]
    types = (TYPES[row.total], operand, operand, TYPES[row.total])
    counts = [_count(row.types[n]) for n in (2, 0, 1, 2)]
    numbers = iter(range(sum(counts)))
    words = ["{" + ", ".join(f"%{next(numbers)}" for _ in range(count)) + "}" for count in counts]
    operands = [
        ", ".join(f'"{"=" * (name == "d")}{c}"({name}[at * {n} + {i}])' for i in range(n))
        for name, (_, c), n in zip("dabc", types, counts, strict=True)
    ]
    shape, _, names = row.name.partition(".")
    text = f"""
    __global__ void k(const {types[1][0]} *a, const {types[2][0]} *b, const {types[3][0]} *c, {types[0][0]} *d) {{
        int at = blockIdx.x * 32 + threadIdx.x;
        asm volatile("mma.sync.aligned.{shape}.row.col.{names} {", ".join(words)};\\n"
            : {operands[0]} : {", ".join(operands[1:])});
    }}"""
    return st.cuda_source(text)["k"]


def run(row: Instruction, a: Values, b: Values, c: Values, engine: EngineName = "jit") -> Values:
    """Return the bits of D [n, m, 8]."""
    own = [v.reshape(-1) for v in fragments(row, a, b, c)]
    args = (*own, st.zeros(own[2].shape, own[2].dtype))
    d = st.launch(_product(row), grid=len(a), block=32, args=args, engine=engine).d
    return result(row, np.asarray(d).reshape(len(a), 32, -1))


def operands(row: Instruction, seed: int) -> tuple[Values, Values, Values]:
    """Return random bits of A [2, m, k], B by its columns and C."""
    draw = np.random.default_rng(seed)
    sizes = [np.dtype(f"u{BITS[name] // 8}") for name in (row.a, row.b, row.total)]
    shapes = (2, row.m, row.k), (2, 8, row.k), (2, row.m, 8)
    a, b, c = (
        draw.integers(0, 256, (*s, t.itemsize), np.uint8).view(t)[..., 0] for s, t in zip(shapes, sizes, strict=True)
    )
    return a, b, c


def expected(row: Instruction, a: Values, b: Values, c: Values) -> Values:
    own = [[v[..., n] for n in range(v.shape[-1])] for v in fragments(row, a, b, c)]
    return result(row, np.stack(tensor_cores.multiply_add(row, H200, *own), axis=-1))


@pytest.mark.slow
def test_products_of_every_instruction() -> None:
    recorded = {row.name: (c, d) for row, c, d in recorded_rows()}

    def check(row: Instruction) -> None:
        if row.name in recorded:
            c, d = (RECORD[name] for name in recorded[row.name])
            a, b = (RECORD[f"{row.a}_{name}"][..., : row.k] for name in "AB")
        else:
            a, b, c = operands(row, 3)
            d = expected(row, a, b, c)
        assert np.array_equal(run(row, a, b, c), d)

    check_each(list(INSTRUCTIONS.values()), check)


def test_recorded_fragments() -> None:
    row, c, d = recorded_rows()[0]
    a, b = (RECORD[f"{row.a}_{name}"] for name in "AB")
    assert np.array_equal(run(row, a, b, RECORD[c]), RECORD[d])


MOVES = TEXTS["moves"]


@pytest.mark.slow
def test_moves_of_matrices() -> None:
    x = np.random.default_rng(4).integers(0, 1 << 32, 128, np.uint32)

    def check(case: tuple[int, bool]) -> None:
        count, transposed = case
        text = MOVES.replace("COUNT", str(count)).replace(" TRANS ", ".trans" * transposed)
        text = text.replace("NAMES", ", ".join(f"%{n}" for n in range(count)))
        own = x[: 32 * count]
        outputs = [st.zeros(32 * n, st.u32) for n in (count, count, 1)]
        launched = st.launch(st.cuda_source(text)["k"], grid=1, block=32, args=(own, *outputs), check="all")
        rows = np.resize(own, 128).reshape(32, 4)
        expected = moved("load", transposed, [np.ascontiguousarray(rows[:, n]) for n in range(4)])[:count]
        assert np.array_equal(launched.loaded.reshape(32, count).T, expected)
        assert np.array_equal(launched.stored, own)
        assert np.array_equal(launched.turned, moved("move", True, expected[:1])[0])
        loads = launched.counters.at("ldmatrix")
        assert (loads.total("shared_load_requests"), loads.total("shared_load_wavefronts")) == (1, count)

    check_each([(count, transposed) for count in (1, 2, 4) for transposed in (False, True)], check)


def _numbers(type: str) -> Values:
    """Return the number of each byte of a format."""
    form, byte = FLOATS[type], np.arange(256)
    fraction, field = byte & ((1 << form.fraction) - 1), byte >> form.fraction & ((1 << form.exponent) - 1)
    value = np.where(field == 0, fraction, fraction + (1 << form.fraction)) * 2.0 ** (
        np.maximum(field, 1) - 1 + form.lowest - form.fraction
    )
    top = field == (1 << form.exponent) - 1
    value = (
        np.where(top & (fraction == 7), np.nan, value)
        if type == "e4m3"
        else np.where(top, np.where(fraction, np.nan, np.inf), value)
    )
    return np.where(byte >= 128, -value, value)


def _nearest(x: Values, type: str) -> Values:
    """Return the byte of the nearest finite number, of the even one between two. x: numbers, none a NaN."""
    positive = _numbers(type)[:128]
    finite = positive[np.isfinite(positive)]
    distance = np.abs(np.minimum(np.abs(x), finite.max())[:, None] - finite)
    near = distance == distance.min(axis=1, keepdims=True)
    even = near & (np.arange(len(finite)) % 2 == 0)
    codes: Values = np.where(even.any(axis=1), even.argmax(axis=1), near.argmax(axis=1))
    return codes | np.where(np.signbit(x), 128, 0)


def _converted(assembly: str, *x: Values) -> Values:
    parameters = ", ".join(f"const {'float' if v.dtype == np.float32 else 'unsigned'} *x{n}" for n, v in enumerate(x))
    short = assembly.split()[0].endswith(("x2.f32", "x2.f16x2"))
    kind = ("unsigned short", "h") if short else ("unsigned", "r")
    inputs = ", ".join(
        f'"{"f" if v.dtype == np.float32 else "h" if "f16x2.e" in assembly else "r"}"(x{n}[i])' for n, v in enumerate(x)
    )
    text = f"""
    __global__ void k({parameters}, unsigned *out) {{
        int i = blockIdx.x * 32 + threadIdx.x;
        {kind[0]} d;
        asm("{assembly}" : "={kind[1]}"(d) : {inputs});
        out[i] = d;
    }}"""
    args = (*x, st.zeros(len(x[0]), st.u32))
    return np.asarray(st.launch(st.cuda_source(text)["k"], grid=len(x[0]) // 32, block=32, args=args).out)


@pytest.mark.slow
def test_conversions_of_operands() -> None:
    draw = np.random.default_rng(6)
    words = draw.integers(0, 1 << 32, 4064, np.uint32).view(np.float32)
    scaled = (draw.standard_normal(4064) * 2.0 ** draw.integers(-20, 12, 4064)).astype(np.float32)
    special = [0, -0.0, np.inf, -np.inf, *[448, 464, 480] * 8, *[-57344] * 4]
    x = np.concatenate([np.where(np.isnan(words), 1, words)[:2048], scaled[:2016], special])
    x = np.concatenate([x, np.ones(-len(x) % 32)]).astype(np.float32)
    nan = np.full(32, np.nan, np.float32)
    for type in ("e4m3", "e5m2"):
        both = _converted(f"cvt.rn.satfinite.{type}x2.f32 %0, %1, %2;", x[::-1].copy(), x)
        assert np.array_equal(both & 255, _nearest(x.astype(np.float64), type)), type
        assert np.array_equal(both >> 8, (both & 255)[::-1])
        assert (_converted(f"cvt.rn.satfinite.{type}x2.f32 %0, %1, %2;", nan, nan) == 0x7F7F).all()
        codes = np.arange(256, dtype=np.uint32)
        numbers = _converted(f"cvt.rn.f16x2.{type}x2 %0, %1;", codes | codes[::-1] << 8).view(np.float16).reshape(-1, 2)
        assert np.array_equal(numbers[:, 0], _numbers(type).astype(np.float16), equal_nan=True)
        assert np.array_equal(numbers[:, 1], numbers[::-1, 0], equal_nan=True)
        finite = np.isfinite(numbers).all(axis=1)
        back = _converted(f"cvt.rn.satfinite.{type}x2.f16x2 %0, %1;", numbers.view(np.uint32)[:, 0])
        assert np.array_equal(back[finite], (codes | codes[::-1] << 8)[finite])
    bits, fraction = x.view(np.uint32).astype(np.int64), 1 << 13
    for mode, half in (("rna", fraction // 2), ("rn", fraction // 2 - 1 + (bits >> 13 & 1))):
        expected = np.where(np.isinf(x), bits, (bits + half) & -fraction)
        assert np.array_equal(_converted(f"cvt.{mode}.tf32.f32 %0, %1;", x), expected), mode


@pytest.mark.slow
@each_row([(4, 4), (4, 0), (4, 3), (8, 4), (16, 16), (16, 0), (16, 9)])
def test_copies_of_fewer_bytes(case: tuple[int, int]) -> None:
    size, count = case
    text = f"""
    __global__ void k(const unsigned char *x, unsigned char *out, int bytes) {{
        __shared__ alignas(16) unsigned char tile[{size}];
        if (threadIdx.x == 0) {{
            unsigned to = __cvta_generic_to_shared(tile);
            asm volatile("cp.async.ca.shared.global [%0], [%1], {size}, %2;" :: "r"(to), "l"(x), "r"(bytes));
            asm volatile("cp.async.wait_all;");
            for (int i = 0; i < {size}; i++) out[i] = tile[i];
        }}
    }}"""
    x = np.arange(1, 17, dtype=np.uint8)
    out = st.launch(
        st.cuda_source(text)["k"], grid=1, block=32, args=(x, st.zeros(size, st.u8), count), check="all"
    ).out
    assert out.tolist() == [*x[:count], *[0] * (size - count)]


def test_pipeline_of_a_thread() -> None:
    text = TEXTS["pipeline of a thread"]
    x = np.arange(256, dtype=np.float32)
    args = (x, np.zeros(256, np.float32))
    out = st.launch(st.cuda_source(text.replace("PRIOR", "0"))["k"], grid=1, block=32, args=args, check="all").out
    assert np.array_equal(np.asarray(out).reshape(2, 32, 4), [x.reshape(2, 32, 4)[0, ::-1], x.reshape(2, 32, 4)[1]])
    with pytest.raises(st.FaultError, match=r"before its asynchronous copy"):
        st.launch(st.cuda_source(text.replace("PRIOR", "1"))["k"], grid=1, block=32, args=args, check="all")


def test_addresses_from_the_start_of_shared_memory() -> None:
    """The address of the array is a constant of the compiler; a swizzle exchanges its bits."""
    text = TEXTS["addresses from the start of shared memory"]
    x = np.arange(128, dtype=np.uint32)
    args = (x, st.zeros(32, st.u32))
    out = st.launch(st.cuda_source(text)["k"], grid=1, block=32, args=args, shared=512, check="all").out
    assert out.tolist() == x[:32].reshape(4, 2, 4)[:, ::-1].ravel().tolist()


REFUSED = [
    ("mbarrier.arrive_drop.shared.b64 _, [%1];", "mbarrier.arrive_drop"),
    (
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%1], [%1], [%1];",
        "cp.async.bulk.tensor",
    ),
    ("mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16 {%0,%0}, {%1,%1}, {%1,%1}, {%1,%1}, %1, 0;", "mma.sp"),
    (
        "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 {%0,%0}, {%1,%1}, {%1,%1}, {%1,%1};",
        "mma m8n8k4.f16.f16.f16.f16",
    ),
    ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {%0}, {%1}, {%1}, {%0};", "satfinite"),
    (
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0}, {%1,%1}, {%1,%1}, {%1,%1};",
        "other numbers of registers",
    ),
    ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16 {%0}, {%1}, {%1}, {%1};", "wmma m16n16k16.f32.f16"),
    ("wmma.load.a.sync.aligned.row.m8n8k32.s4 {%0}, [%1], 32;", "wmma m8n8k32 of s4"),
    ("ldmatrix.sync.aligned.m8n8.x1.b16 {%0}, [%2];", "x is not in shared memory"),
]


@pytest.mark.slow
@each_row(REFUSED)
def test_other_forms_are_refused_with_their_line(case: tuple[str, str]) -> None:
    assembly, name = case
    text = f"""__global__ void k(unsigned *x) {{
        unsigned d = 0;
        asm volatile("{assembly}" : "+r"(d) : "r"(x[0]), "l"(x));
        x[0] = d;
    }}"""
    with pytest.raises(st.CompileError, match=name) as raised:
        st.launch(st.cuda_source(text)["k"], grid=1, block=32, args=(np.zeros(64, np.uint32),))
    assert "asm volatile" in str(raised.value)
