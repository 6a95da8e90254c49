//// printf
__global__ void k(const char *x, const unsigned *u) {
    printf("base %c\n", x[0]);
    printf("0x%08x %llu\n", u[0], 18446744073709551615ull);
    printf("%u %5.2f|%-6d|%03d\n", -1, 3.14159, 7, 7);
    printf("%*d|%.*f\n", 5, 10, 1, 2.25);
    printf("%e %g %s %%\n", 12345.678, 1e-5f, u[0] ? "yes" : "no");
    for (int i = 0; i < 4; i++) printf("%c", x[i]);
    printf("\n");
    printf("end");
}

//// atomics stores and asynchronous copies
__global__ void k(unsigned *x, unsigned *out) {
    __shared__ alignas(16) unsigned tile[32];
    unsigned place = __cvta_generic_to_shared(tile + 4 * threadIdx.x), old;
    if (threadIdx.x < 8) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(place), "l"(x + 4 * threadIdx.x));
        asm volatile("cp.async.commit_group; cp.async.wait_group 0;");
    }
    asm volatile("bar.sync 0;");
    asm volatile("atom.global.add.u32 %0, [%1], 1;" : "=r"(old) : "l"(out) : "memory");
    asm volatile("red.relaxed.gpu.global.max.u32 [%0], %1;" :: "l"(out + 1), "r"(threadIdx.x));
    asm volatile("st.global.cs.v2.u32 [%0], {%1, %2};" :: "l"(out + 2 + 2 * threadIdx.x), "r"(tile[threadIdx.x]), "r"(old));
}

//// atomics of vectors
__global__ void k(float *x, unsigned *halves, float *old) {
    float a, b, c, d;
    asm volatile("atom.global.gpu.acq_rel.add.v4.f32 {%0, %1, %2, %3}, [%4 + 0], {%5, %5, %6, %6};"
                 : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(x), "f"(1.0f), "f"(2.0f) : "memory");
    old[threadIdx.x] = a + b + c + d;
    asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %1};" :: "l"(x + 4), "f"(0.5f) : "memory");
    asm volatile("red.global.add.noftz.v2.f16x2 [%0], {%1, %2};" :: "l"(halves), "r"(0x3C003C00), "r"(0x40003C00) : "memory");
    asm volatile("{ .reg .b16 h; mov.b16 h, 0x3F80; red.global.add.noftz.v2.bf16 [%0], {h, h}; }" :: "l"(halves + 2) : "memory");
}

//// lanes that leave a loop act in their iteration
__global__ void k(int *lock, int *count) {
    while (true) {
        if (atomicCAS(lock, 0, 1) == 0) {
            *(volatile int *)count += 1;
            __threadfence();
            atomicExch(lock, 0);
            break;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) count[1] = count[0];
}

//// sums
__device__ int total(const int *x, int n) {{ int t = 0; for (int i = threadIdx.x; i < n; i += 32) t += x[i]; return t; }}
__global__ void sums(const int *x, int *out) {{
    __shared__ int partial[32];
    {loop}
{line}
    __syncthreads();
    out[threadIdx.x] = partial[threadIdx.x ^ 31];
}}

//// struct pointers
struct Args { float *out; int n; const float *in[2]; struct { double *count; } inner; };
__global__ void select(Args a, float f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.n) return;
    a.out[i] = a.in[i & 1][i] * f;
    if (a.inner.count) atomicAdd(a.inner.count, 1.0);
}
//// halves
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void add(const __half *x, const __half *y, __half *out) { out[threadIdx.x] = __hadd(x[threadIdx.x], y[threadIdx.x]); }
__global__ void pairs(const __half2 *x, __half *out, float q, __half2 *z) { out[threadIdx.x] = x[0].x; }
__global__ void brain(const __nv_bfloat16 *x, __nv_bfloat16 *out) { out[threadIdx.x] = x[threadIdx.x]; }
__global__ void value(half a, half *out) { out[threadIdx.x] = a; }
__global__ void over(const float *x, float *out) { out[0] = x[0]; }
__global__ void over(const half *x, half *out) { out[0] = x[0]; }
extern "C" __global__ void plain(half *x) { x[0] = x[1]; }
template <typename T> __global__ void first(T *x, const T *y) { x[0] = y[0]; }
namespace inner { __global__ void named(half *x, half *y) { x[0] = y[1]; } }

//// null pointers
__global__ void k(int *scalar, float4 *vector, int *out) {
    int lane = threadIdx.x;
    if (lane == 1) out[1] = scalar[0];
    if (lane == 2) scalar[7] = lane;
    if (lane == 3) out[3] = atomicAdd(scalar, 1);
    if (lane == 4) out[4] = atomicCAS(scalar + 1, 1, 2);
    if (lane == 5) { float4 four = vector[2]; out[5] = four.x + four.w; }
    if (lane == 6) vector[1] = make_float4(1, 2, 3, 4);
    if (lane == 7) out[7] = lane;
}

//// accesses of other sizes
#include <cuda_fp16.h>
__global__ void swap(double *x) {
    unsigned long long *p = (unsigned long long *)x, old = *p, seen;
    do { seen = old; old = atomicCAS(p, seen, __double_as_longlong(1.0 + __longlong_as_double(seen))); } while (seen != old);
}
__global__ void pairs(__half *x) { if (threadIdx.x < 3) ((unsigned *)x)[threadIdx.x] = 0x3c004000u; }
__global__ void parts(float *x) { if (threadIdx.x < 3) ((unsigned short *)x)[2 * threadIdx.x + 1] = 0x4000; }
__global__ void vectors(float4 *x) { if (threadIdx.x < 3) x[threadIdx.x].y = 1.f; }

//// pointers in memory
struct Node { int value; Node *next; };
__global__ void rows(float **rows, float *out) { out[threadIdx.x] = rows[threadIdx.x / 16][threadIdx.x] + 1; }
__global__ void list(Node *head, int *out) { for (Node *p = head; p; p = p->next) atomicAdd(out, p->value); }
__global__ void push(Node **head, Node *nodes) {
    Node *own = nodes + threadIdx.x;
    own->value = threadIdx.x;
    own->next = (Node *)atomicExch((unsigned long long *)head, (unsigned long long)own);
}
__global__ void wide(float4 **rows, float *out) { float4 v = rows[0][threadIdx.x]; out[threadIdx.x] = v.x + v.w; }
__global__ void store(float **rows, int at) { rows[0][at] = 1; }
__global__ void race(float **rows, int at) { rows[0][at] = threadIdx.x; }

//// returns of inlined calls
__device__ int find(const int *x, int n, int v)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < 2; j++)
            if (x[i] == v + j) return i;
    return -1;
}
__device__ int place(const int *x, int n, int v) { if (v < 0) return -2; int at = find(x, n, v); return at < 0 ? -3 : at; }
__global__ void k(const int *x, int *out)
{
    out[threadIdx.x] = 7;
    if (threadIdx.x < 15) out[threadIdx.x] = place(x, 8, threadIdx.x - 3);
    __syncthreads();
    if (threadIdx.x == 3) return;
    out[threadIdx.x] += 10;
}

//// exponentials
__global__ void own(const float *x, float *direct, float *later, int *exact) {
    int i = threadIdx.x;
    direct[i] = expf(x[i]);
    later[i] = expf(x[i]) - 1.0f;
    exact[i] = i;
}
