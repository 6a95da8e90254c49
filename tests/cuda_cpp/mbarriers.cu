//// head
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

//// pipe
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
}

//// copied
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
}

//// stored
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
}

//// arrival of copies
__global__ void reversed(const float *x, float *out) {
    __shared__ uint64_t b;
    __shared__ float buf[64];
    if (threadIdx.x == 0) init(&b, 64); __syncthreads();
    __pipeline_memcpy_async(buf + threadIdx.x, x + threadIdx.x, 4);
    asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" :: "r"(at(&b)) : "memory");
    arrive(&b);
    wait(&b, 0);
    out[threadIdx.x] = buf[63 - threadIdx.x];
}

//// reduced
__global__ void reduced(TYPE *out, const TYPE *x) {
    __shared__ __align__(16) TYPE buf[32];
    buf[threadIdx.x] = x[32 * blockIdx.x + threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.OP [%0], [%1], %2;"
            :: "l"(out), "r"(at(buf)), "r"((int)sizeof(buf)) : "memory");
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
