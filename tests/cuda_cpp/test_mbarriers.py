"""`mbarrier` and `cp.async.bulk` in inline PTX: the wait loops of CUTLASS and Triton, states, bytes, dynamic shared memory."""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.cuda_cpp.kernel import CudaKernel
from simtbed.runtime.registry import EngineName

from tests.table_checks import check_each, each_row
from tests.texts import texts

TEXTS = texts("cuda_cpp/mbarriers.cu")
HEAD = TEXTS["head"]
PIPE = HEAD + "__global__ void pipe(const float *x, float *out) {"
STATIC = PIPE + "__shared__ uint64_t bars[3]; __shared__ float buf[32];" + TEXTS["pipe"]
DYNAMIC = (
    f"{PIPE}extern __shared__ char mem[]; uint64_t *bars = (uint64_t *)mem; float *buf = (float *)(mem + 128);"
    + TEXTS["pipe"]
)

COPIED, STORED = HEAD + TEXTS["copied"], HEAD + TEXTS["stored"]
ARRIVAL_OF_COPIES = HEAD + TEXTS["arrival of copies"]
NOINC = ARRIVAL_OF_COPIES.replace("arrive.shared", "arrive.noinc.shared").replace("    arrive(&b);\n", "")
X = np.arange(512, dtype=np.float32)
ENGINES: list[EngineName] = ["jit", "numpy"]


@pytest.mark.slow
@each_row(ENGINES)
def test_bulk_copies(engine: EngineName) -> None:
    args = {"x": X, "out": np.zeros_like(X), "n": 512}
    kernel = st.cuda_source(COPIED)["copied"]
    result = st.launch(kernel, grid=1, block=64, shared=2048, args=args, engine=engine, check="all")
    assert np.array_equal(result.out.reshape(2, 256), X.reshape(2, 256)[:, ::-1])
    stored = st.cuda_source(STORED)["stored"]
    assert np.array_equal(st.launch(stored, grid=1, block=64, args=args, engine=engine, check="all").out, 2 * X)


def _reduction(type: str, op: str) -> CudaKernel:
    text = HEAD + TEXTS["reduced"].replace("TYPE", type).replace("OP", op)
    return st.cuda_source("#include <cuda_fp16.h>\n" + text)["reduced"]


@pytest.mark.slow
def test_bulk_reductions() -> None:
    """The type is that of the instruction, not of the array; two blocks reduce the same elements."""

    def check(case: tuple[str, str, Any, Any, EngineName]) -> None:
        type, op, x, combined, engine = case
        args = {"out": x[64:].copy(), "x": x[:64].copy()}
        kernel = _reduction(type, op)
        result = st.launch(
            kernel, grid=2, block=32, args=args, engine=engine, check="" if engine == "python" else "all"
        )
        np.testing.assert_array_equal(result.out, combined(combined(x[64:], x[:32]), x[32:64]))

    bits = np.random.default_rng(1).integers(0, 1 << 63, 96, np.uint64) * np.uint64(2)
    words, halves = bits.astype(np.uint32), (bits.astype(np.float64) / 2.0**60).astype(np.float16)
    wide = words.astype(np.float32)
    cases: list[tuple[str, str, Any, Any]] = [
        ("float", "add.f32", wide, np.add), ("double", "add.f64", wide.astype(np.float64), np.add),
        ("unsigned", "min.s32", words, lambda a, b: np.minimum(a.view(np.int32), b.view(np.int32)).view(np.uint32)),
        ("int", "max.u32", words.view(np.int32), lambda a, b: np.maximum(a.view(np.uint32), b.view(np.uint32)).view(np.int32)),
        ("float", "xor.b32", wide, lambda a, b: (a.view(np.uint32) ^ b.view(np.uint32)).view(np.float32)),
        ("long long", "add.u64", bits.view(np.int64), np.add), ("long long", "min.s64", bits.view(np.int64), np.minimum),
        ("__half", "add.noftz.f16", halves, np.add), ("__half", "max.f16", halves, np.maximum),
    ]  # fmt: skip
    engines: list[EngineName] = ["jit", "numpy", "python"]
    check_each([(*case, engine) for case in cases for engine in engines], check)


def test_reductions_that_ptx_does_not_have() -> None:
    for type, op, x, own in (
        ("long long", "add.s64", np.zeros(32, np.int64), "add of i64"),
        ("float", "min.f32", np.zeros(32, np.float32), "min of f32"),
        ("int", "inc.s32", np.zeros(32, np.int32), "inc of i32"),
    ):
        args = {"out": x, "x": x.copy()}
        with pytest.raises(st.CompileError, match=f"a bulk reduction {own} is not supported: PTX has none"):
            st.launch(_reduction(type, op), grid=1, block=32, args=args)


@pytest.mark.slow
@each_row(ENGINES)
def test_arrival_of_asynchronous_copies(engine: EngineName) -> None:
    for text, count in ((ARRIVAL_OF_COPIES, 0), (NOINC, 0), (NOINC.replace("    wait(&b, 0);\n", ""), 1)):
        kernel, args = st.cuda_source(text)["reversed"], {"x": X[:64], "out": np.zeros_like(X[:64])}
        result = st.launch(kernel, grid=1, block=64, args=args, engine=engine, check="all", faults="return")
        assert [fault.kind for fault in result.faults] == ["race"] * count
        assert count or np.array_equal(result.out, X[63::-1])


@pytest.mark.slow
def test_producer_and_consumer() -> None:
    x = np.arange(96, dtype=np.float32)

    def check(case: tuple[str, int, EngineName]) -> None:
        text, shared, engine = case
        checks = "" if engine == "python" else "all"
        result = st.launch(
            st.cuda_source(text)["pipe"], grid=1, block=64, shared=shared, args={"x": x, "out": np.zeros_like(x)},
            engine=engine, check=checks,
        )  # fmt: skip
        assert np.array_equal(result.out.reshape(3, 32), 2 * x.reshape(3, 32)[:, ::-1])
        assert not result.remarks

    rows: list[tuple[str, int, EngineName]] = [
        (STATIC, 0, "jit"), (DYNAMIC, 256, "jit"), (STATIC, 0, "numpy"), (STATIC, 0, "python")
    ]  # fmt: skip
    check_each(rows, check)


@pytest.mark.parametrize(
    "name",
    [
        "mbarrier.arrive_drop.shared.b64 _, [%0]",
        "mbarrier.arrive.noComplete.shared.b64 _, [%0], 1",
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%0], [%0], 16, [%0]",
        "cp.async.bulk.prefetch.L2.global [%0], 16",
    ],
)
def test_other_forms_are_refused_by_name(name: str) -> None:
    text = (
        HEAD
        + f'__global__ void pipe(float *out) {{ __shared__ uint64_t b[1]; asm volatile("{name};" :: "r"(at(b))); }}'
    )
    with pytest.raises(st.CompileError, match=r"the inline assembly '(mbarrier|cp\.(reduce\.)?async\.bulk)"):
        st.launch(st.cuda_source(text)["pipe"], grid=1, block=1, args={"out": np.zeros(1, np.float32)})
