"""nvcuda::wmma: each type, shape and layout in global and shared memory, against products of the core's arithmetic; elements; counters."""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.cuda_cpp.kernel import CudaSource
from simtbed.engines.cuda import nvcc
from simtbed.ir import tensor_cores
from simtbed.ir.fused import fma
from simtbed.ir.matrices import INSTRUCTIONS
from simtbed.language.types import BF16
from simtbed.runtime.registry import EngineName

from tests.compilers import needs_sass
from tests.recorded_fragments import Values
from tests.table_checks import check_each
from tests.texts import texts

TEXTS = texts("cuda_cpp/tensor_cores.cu")

H200 = (9, 0)
SHAPES = [(16, 16, 16), (32, 8, 16), (8, 32, 16)]
TYPES = {
    "f16": ("half", "half"), "bf16": ("__nv_bfloat16", "__nv_bfloat16"), "s8": ("signed char", "signed char"),
    "u8": ("unsigned char", "unsigned char"), "tf32": ("wmma::precision::tf32", "float"), "f64": ("double", "double"),
}  # fmt: skip
"""Types of operands: of a fragment, and of its elements in memory."""
SUMS = {"f32": "float", "f16": "half", "s32": "int", "f64": "double"}
BITS = {"f16": "u2", "bf16": "u2", "s8": "u1", "u8": "u1", "tf32": "u4", "f64": "u8", "f32": "u4", "s32": "u4"}
TEXT = TEXTS["wmma"]


def source(type: str, total: str, shape: tuple[int, int, int]) -> CudaSource:
    """Return the kernels of a type and a shape. They compute d for A, B by rows and columns, C by the order of A."""
    sizes = ", ".join(f"{name} = {n}" for name, n in zip("MNK", shape, strict=True))
    words = {"OPERAND": TYPES[type][0], "MEMORY": TYPES[type][1], "SUM": SUMS[total], "SIZES": sizes}
    text = TEXT
    for word, name in words.items():
        text = text.replace(word, name)
    return st.cuda_source(text)


def matrices(type: str, total: str, shape: tuple[int, int, int], seed: int) -> tuple[Values, Values, Values]:
    """Return random bits of A, B and C: numbers of several magnitudes."""
    draw, (m, n, k) = np.random.default_rng(seed), shape

    def numbers(name: str, *size: int) -> Values:
        if name in ("s8", "u8", "s32"):
            return draw.integers(0, 256, (*size, int(BITS[name][1])), np.uint8).view(BITS[name])[..., 0]
        values = draw.standard_normal(size) * 2.0 ** draw.integers(-6, 6, size)
        if name == "bf16":
            return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return values.astype(f"f{BITS[name][1]}").view(BITS[name])

    return numbers(type, m, k), numbers(type, k, n), numbers(total, m, n)


def expected(type: str, total: str, a: Values, b: Values, c: Values) -> Values:
    """Return the bits of D: one sum over k, of tf32 one for each 4."""
    columns = np.ascontiguousarray(b.T)
    if total in ("s32", "f64"):
        x, y = (v.view({"s8": "i1", "u8": "u1", "f64": "f8"}[type]) for v in (a, columns))
        if total == "s32":
            return (x.astype(np.int64) @ y.astype(np.int64).T + c.view(np.int32)).astype(np.uint32)
        d = c.view(np.float64)
        for k in range(4):
            d = fma(np.repeat(x[:, k : k + 1], 8, 1), np.repeat(y[None, :, k], 8, 0), d)
        return d.view(np.uint64)
    k = 4 if type == "tf32" else 16
    row = INSTRUCTIONS[f"m16n8k{k}.{total}.{type}.{type}.{total}"]
    rule = tensor_cores.rule(row, H200)
    for first in range(0, a.shape[1], k):
        c = tensor_cores.product_sums(row, rule, a[:, first : first + k], columns[:, first : first + k], c)
    return c


def operands(a: Values, b: Values, c: Values, type: str, total: str) -> list[Values]:
    """Return the arrays of a launch: each matrix by rows and by columns."""
    types: dict[str, Any] = {
        "f16": np.float16,
        "tf32": np.float32,
        "f32": np.float32,
        "f64": np.float64,
        "s8": np.int8,
        "s32": np.int32,
        "bf16": BF16.dtype,
    }
    pairs = ((a, type), (b, type), (c, total))
    return [
        np.ascontiguousarray(own).reshape(-1).view(types.get(name, own.dtype)) for v, name in pairs for own in (v, v.T)
    ]


def launched(kernel: Any, a: Values, b: Values, c: Values, type: str, total: str, engine: EngineName = "jit") -> Values:
    """Return the bits of D of both layouts, [2, m, n]."""
    args = operands(a, b, c, type, total)
    blank = np.zeros(2 * c.size, args[4].dtype)
    check = "all" if engine == "jit" else ()
    d = st.launch(kernel, grid=1, block=32, args=(*args, blank), engine=engine, check=check).d
    first, second = np.asarray(d).reshape(2, -1).view(c.dtype)
    return np.stack([first.reshape(c.shape), second.reshape(c.T.shape).T])


def check_products(case: tuple[str, str, tuple[int, int, int]]) -> None:
    type, total, shape = case
    a, b, c = matrices(type, total, shape, 7)
    d, kernels = expected(type, total, a, b, c), source(type, total, shape)
    for name in ("in_global", "in_shared"):
        for layouts, actual in enumerate(launched(kernels[name], a, b, c, type, total)):
            assert np.array_equal(actual, d), f"{name}, layouts {layouts}: {(actual != d).sum()} of {d.size} differ"


CASES = [(type, total, shape) for shape in SHAPES for type, total in
         (("f16", "f32"), ("f16", "f16"), ("bf16", "f32"), ("s8", "s32"), ("u8", "s32"))]  # fmt: skip
CASES += [("tf32", "f32", (16, 16, 8)), ("f64", "f64", (8, 8, 4))]


@pytest.mark.slow
def test_every_type_shape_and_layout() -> None:
    check_each(CASES, check_products)


@pytest.mark.slow
def test_halves() -> None:
    check_products(CASES[0])


@needs_sass
@pytest.mark.slow
def test_machine_code_of_nvcc() -> None:
    """The SASS of the same text by nvcc and its own header gives the same bits: the splits over k and the elements agree."""
    includes = "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n"

    def check(case: tuple[str, str, tuple[int, int, int], str, str]) -> None:
        type, total, shape, name, arch = case
        text = includes + source(type, total, shape).source.text.replace("__global__", 'extern "C" __global__')
        a, b, c = matrices(type, total, shape, 9)
        kernel = st.cubin(nvcc.build(text, name, arch).cubin)[name]
        args = [
            own.view(np.uint16) if type == "bf16" and own.itemsize == 2 else own
            for own in operands(a, b, c, type, total)
        ]
        result = kernel.launch(*args, np.zeros(2 * c.size, args[4].dtype), grid=1, block=32)
        first, second = np.asarray(result.arguments[6]).reshape(2, -1).view(c.dtype)
        d = expected(type, total, a, b, c)
        assert np.array_equal(first.reshape(c.shape), d) and np.array_equal(second.reshape(c.T.shape).T, d)

    rows = [(*CASES[0], "in_shared"), (*CASES[7], "in_global"), (*CASES[13], "in_shared"), (*CASES[-2], "in_global")]
    check_each([(*row, arch) for row in rows for arch in ("sm_80", "sm_90")], check)


TILED = TEXTS["wmma tiled"]


@pytest.mark.slow
def test_tiled_product_and_its_counters() -> None:
    a, b, c = matrices("f16", "f32", (48, 32, 64), 8)
    args = (a.reshape(-1).view(np.float16), b.reshape(-1).view(np.float16), st.zeros(48 * 32, st.f32), 64, 32)
    d = expected("f16", "f32", a, b, np.zeros_like(c)).view(np.float32)
    for engine in ("numpy", "jit"):
        result = st.launch(
            st.cuda_source(TILED)["product"], grid=(2, 3), block=32, args=args, engine=engine, check="all"
        )
        assert np.array_equal(result.c.reshape(48, 32), 2 * d + 1)
        assert result.counters.total("mma_f16") == 6 * 4 * 2
        loads = result.counters.at("load_matrix_sync(left")
        # ldmatrix of four matrices: rows of 48 bytes are in different banks
        assert [loads.total(f"shared_load_{name}") for name in ("requests", "wavefronts")] == [6 * 4, 6 * 4 * 4]
        stores = result.counters.at("store_matrix_sync")
        # stores of two floats a lane: 8 rows of 32 bytes
        assert [stores.total(f"global_store_{name}") for name in ("requests", "sectors")] == [6 * 4, 6 * 4 * 8]
