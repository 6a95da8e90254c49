"""`mbarrier` and `cp.async.bulk` in inline PTX: the wait loops of CUTLASS and Triton, states, bytes, dynamic shared memory."""

from __future__ import annotations

import numpy as np
import pytest
import simtbed as st
from simtbed.runtime.registry import EngineName

from tests.table_checks import check_each

HEAD = r"""
#include <cstdint>
__device__ uint32_t at(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ void init(uint64_t *b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(b)), "r"(n)); }
__device__ uint64_t arrive(uint64_t *b) {
    uint64_t s;
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 %0, [%1];" : "=l"(s) : "r"(at(b)) : "memory");
    return s;
}
__device__ void expect(uint64_t *b, int n) {
    asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" :: "r"(at(b)), "r"(n) : "memory");
}
__device__ void complete(uint64_t *b, int n) {
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory");
}
__device__ void wait(uint64_t *b, int parity) {
    asm volatile("{\n.reg .pred P1;\nLAB_WAIT: \nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
        "@P1 bra DONE;\nbra LAB_WAIT;\nDONE:\n}" :: "r"(at(b)), "r"(parity) : "memory");
}
__device__ void wait_loop(uint64_t *b, int parity) {
    asm volatile("{ .reg .pred complete; waitLoop_%=: mbarrier.try_wait.parity.shared.b64 complete, [%0], %1; "
        "@!complete bra.uni waitLoop_%=; }" :: "r"(at(b)), "r"(parity) : "memory");
}
__device__ void wait_if(bool runs, uint64_t *b, int parity) {
    asm volatile("{ .reg .pred complete, p; setp.ne.b32 p, %2, 0; @!p bra.uni skip_%=; again_%=: "
        "mbarrier.try_wait.parity.shared.b64 complete, [%0], %1; @!complete bra.uni again_%=; skip_%=: }"
        :: "r"(at(b)), "r"(parity), "r"((int)runs) : "memory");
}
__device__ bool test(uint64_t *b, uint64_t state) {
    int ok;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
        : "=r"(ok) : "r"(at(b)), "l"(state) : "memory");
    return ok;
}
"""
BODY = """
    int t = threadIdx.x;
    if (t == 0) { init(&bars[0], 33); init(&bars[1], 32); init(&bars[2], 64); }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
    for (int k = 0; k < 3; ++k)
        if (t < 32) {
            wait_if(k == 1, &bars[1], (k + 1) & 1);
            if (k == 2) wait(&bars[1], (k + 1) & 1);
            buf[t] = x[k * 32 + t];
            arrive(&bars[0]);
            if (t == 0) { expect(&bars[0], 64); complete(&bars[0], 64); }
        } else {
            wait_loop(&bars[0], k & 1);
            out[k * 32 + t - 32] = buf[63 - t] * 2;
            arrive(&bars[1]);
        }
    uint64_t state = arrive(&bars[2]);
    while (!test(&bars[2], state)) {}
}"""
STATIC = (
    HEAD
    + "__global__ void pipe(const float *x, float *out) { __shared__ uint64_t bars[3]; __shared__ float buf[32];"
    + BODY
)
DYNAMIC = (
    HEAD + "__global__ void pipe(const float *x, float *out) { extern __shared__ char mem[];"
    "uint64_t *bars = (uint64_t *)mem; float *buf = (float *)(mem + 128);" + BODY
)

COPIED = (
    HEAD
    + """
__device__ void copy(void *to, const void *from, int n, uint64_t *b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        :: "r"(at(to)), "l"(from), "r"(n), "r"(at(b)) : "memory");
}
__global__ void copied(const float *x, float *out, int n) {
    extern __shared__ __align__(128) char mem[];
    uint64_t *b = (uint64_t *)mem;
    float *buf = (float *)(mem + 128);
    int t = threadIdx.x;
    if (t == 0) { init(b, 1); asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
    __syncthreads();
    for (int k = 0; k < 2; ++k) {
        if (t == 0) { expect(b, 2 * n); copy(buf, x + 256 * k, n, b); copy(buf + 128, x + 256 * k + 128, n, b); }
        wait(b, k);
        for (int i = t; i < 256; i += 64) out[256 * k + i] = buf[255 - i];
        __syncthreads();
    }
}"""
)
STORED = (
    HEAD
    + """
__global__ void stored(const float *x, float *out, int n) {
    __shared__ __align__(16) float buf[2][128];
    int t = threadIdx.x;
    for (int k = 0; k < 4; ++k) {
        if (t == 0) asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(1) : "memory");
        __syncthreads();
        for (int i = t; i < 128; i += 64) buf[k & 1][i] = 2 * x[128 * k + i];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (t == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                :: "l"(out + 128 * k), "r"(at(buf[k & 1])), "r"(n) : "memory");
            asm volatile("cp.async.bulk.commit_group;");
        }
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}"""
)
ARRIVAL_OF_COPIES = (
    HEAD
    + """
__global__ void reversed(const float *x, float *out) {
    __shared__ uint64_t b;
    __shared__ float buf[64];
    if (threadIdx.x == 0) init(&b, 64); __syncthreads();
    __pipeline_memcpy_async(buf + threadIdx.x, x + threadIdx.x, 4);
    asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" :: "r"(at(&b)) : "memory");
    arrive(&b);
    wait(&b, 0);
    out[threadIdx.x] = buf[63 - threadIdx.x];
}"""
)
NOINC = ARRIVAL_OF_COPIES.replace("arrive.shared", "arrive.noinc.shared").replace("    arrive(&b);\n", "")
X = np.arange(512, dtype=np.float32)
ENGINES: list[EngineName] = ["jit", "numpy"]


def test_bulk_copies() -> None:
    def check(engine: EngineName) -> None:
        args = {"x": X, "out": np.zeros_like(X), "n": 512}
        kernel = st.cuda_source(COPIED)["copied"]
        result = st.launch(kernel, grid=1, block=64, shared=2048, args=args, engine=engine, check="all")
        assert np.array_equal(result.out.reshape(2, 256), X.reshape(2, 256)[:, ::-1])
        stored = st.cuda_source(STORED)["stored"]
        assert np.array_equal(st.launch(stored, grid=1, block=64, args=args, engine=engine, check="all").out, 2 * X)

    check_each(ENGINES, check)


@pytest.mark.parametrize("engine", ENGINES)
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
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%0], 16",
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
