"""Texts of whole CUDA C++ programs, and their run under a command."""

import subprocess
import sys
from pathlib import Path

CHECKED = r"""
#include <cstdio>
#include <cstdlib>
#define CHECK(call) do { cudaError_t e = call; if (e != cudaSuccess) { \
    printf("%d: %s, %s\n", __LINE__, cudaGetErrorName(e), cudaGetErrorString(e)); return 1; } } while (0)
"""

VECTOR_ADD = r"""#include <iostream>
#include <vector>
#include <cuda_runtime.h>
__global__ void add(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
    if (i == 0) printf("kernel %d\n", n);
}
int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 1000;
    std::vector<float> a(n, 1.5f), b(n, 2.0f), c(n);
    float *x, *y, *z;
    cudaMalloc(&x, 4 * n); cudaMalloc((void **)&y, 4 * n); cudaMalloc(&z, 4 * n);
    cudaMemcpy(x, a.data(), 4 * n, cudaMemcpyHostToDevice);
    cudaMemcpy(y, b.data(), 4 * n, cudaMemcpyHostToDevice);
    printf("before\n");
    add<<<(n + 255) / 256, 256>>>(x, y, z, n);
    if (cudaGetLastError() != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) return 9;
    cudaMemcpy(c.data(), z, 4 * n, cudaMemcpyDeviceToHost);
    for (float v : c) if (v != 3.5f) return 8;
    std::cout << "PASS" << std::endl;
    cudaFree(x); cudaFree(y); cudaFree(z);
    return argc > 2 ? atoi(argv[2]) : 0;
}
"""

MANY_FUNCTIONS = r"""#include <cstdio>
#include "helper.h"
#define CHECK(call) do { if (cudaError_t e = call) { printf("%d: %s\n", __LINE__, cudaGetErrorString(e)); return 1; } } while (0)
__constant__ float weights[4] = {1, 2, 3, 4};
__device__ int counter = 5;
__managed__ int managed = 7;
template <class T, int N> __global__ void scale(T *x, T a) {
    __shared__ T tile[N];
    int i = blockIdx.x * N + threadIdx.x;
    tile[threadIdx.x] = x[i] * a; __syncthreads();
    x[i] = tile[threadIdx.x] + weights[i % 4];
    atomicAdd(&counter, 1);
    if (i == 0) managed += 1;
}
__global__ void pitched(float *p, size_t pitch, int w, int h) {
    int x = threadIdx.x, y = blockIdx.x;
    if (x < w) ((float *)((char *)p + y * pitch))[x] = y * 100 + x;
}
static void called(void *data) { printf("callback %d\n", *(int *)data); }
int main(int argc, char **argv) {
    cudaDeviceProp p;
    CHECK(cudaGetDeviceProperties(&p, 0));
    int sms;
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    printf("%s %d.%d %d %d\n", p.name, p.major, p.minor, p.multiProcessorCount, sms);
    float w[4] = {10, 20, 30, 40};
    CHECK(cudaMemcpyToSymbol(weights, w, sizeof w));
    double *d;
    CHECK(cudaMallocManaged(&d, 64 * sizeof(double)));
    for (int i = 0; i < 64; i++) d[i] = i;
    cudaStream_t s;
    cudaEvent_t a, b;
    CHECK(cudaStreamCreate(&s)); CHECK(cudaEventCreate(&a)); CHECK(cudaEventCreate(&b));
    CHECK(cudaEventRecord(a, s));
    scale<double, 32><<<2, 32, 0, s>>>(d, 2.0);
    CHECK(cudaEventRecord(b, s)); CHECK(cudaEventSynchronize(b));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, a, b));
    if (ms <= 0) return 3;
    for (int i = 0; i < 64; i++) if (d[i] != 2 * i + w[i % 4]) return 4;
    int c;
    CHECK(cudaMemcpyFromSymbol(&c, counter, sizeof c));
    printf("counter %d managed %d\n", c, managed);
    float *q;
    size_t pitch;
    CHECK(cudaMallocPitch(&q, &pitch, 10 * sizeof(float), 5));
    pitched<<<5, 32>>>(q, pitch, 10, 5);
    float h[50];
    CHECK(cudaMemcpy2D(h, 40, q, pitch, 40, 5, cudaMemcpyDeviceToHost));
    if (h[49] != 409) return 5;
    int n, g, block;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, scale<double, 32>, 32, 0));
    CHECK(cudaOccupancyMaxPotentialBlockSize(&g, &block, pitched));
    printf("occupancy %d %d %d\n", n, g, block);
    int *m, *mapped;
    CHECK(cudaHostAlloc(&m, 4, cudaHostAllocMapped));
    *m = 3;
    CHECK(cudaHostGetDevicePointer(&mapped, m, 0)); CHECK(cudaLaunchHostFunc(s, called, mapped));
    if (cudaStreamDestroy(s) || cudaStreamSynchronize(s) != cudaErrorInvalidResourceHandle) return 6;
    printf("helper %d\n", max(helper(LIMIT), min(3, 4)));
    return 0;
}
"""


ARRAYS_AND_GRAPHS = (
    CHECKED
    + r"""
__global__ void fetch(float *out, cudaTextureObject_t t, int w) { out[threadIdx.x] = tex2D<float>(t, threadIdx.x % w, threadIdx.x / w); }
__global__ void line(float *out, cudaTextureObject_t t) { out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x); }
__global__ void store(cudaSurfaceObject_t s, int w) { surf2Dwrite(float(threadIdx.x), s, (threadIdx.x % w) * 4, threadIdx.x / w); }
__global__ void layers(int *out, cudaTextureObject_t t) {
    out[threadIdx.x] = tex2DLayered<int>(t, threadIdx.x % 2, threadIdx.x / 2 % 2, threadIdx.x / 4); }
struct P { int a; float b; };
__global__ void two(int *x, int *y, P p) { x[0] = p.a; y[1] = p.b; }
static void host(void *x) { ++*(int *)x; }
int main() {
    float h[12], *d; for (int i = 0; i < 12; i++) h[i] = i * 2;
    CHECK(cudaMalloc(&d, 48));
    cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
    cudaArray_t a; CHECK(cudaMallocArray(&a, &f, 4, 3, cudaArraySurfaceLoadStore));
    CHECK(cudaMemcpy2DToArray(a, 0, 0, h, 16, 16, 3, cudaMemcpyHostToDevice));
    cudaResourceDesc r = {}; r.resType = cudaResourceTypeArray; r.res.array.array = a;
    cudaTextureDesc t = {}; t.addressMode[0] = t.addressMode[1] = cudaAddressModeClamp;
    cudaTextureObject_t o; CHECK(cudaCreateTextureObject(&o, &r, &t, NULL));
    fetch<<<1, 12>>>(d, o, 4);
    float g[12]; CHECK(cudaMemcpy(g, d, 48, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 12; i++) if (g[i] != h[i]) return 3;
    cudaSurfaceObject_t s; CHECK(cudaCreateSurfaceObject(&s, &r));
    store<<<1, 12>>>(s, 4);
    CHECK(cudaMemcpyFromArray(g, a, 0, 0, 48, cudaMemcpyDeviceToHost));
    if (g[11] != 11) return 4;
    cudaResourceDesc l = {}; l.resType = cudaResourceTypeLinear; l.res.linear.devPtr = d;
    l.res.linear.desc = f; l.res.linear.sizeInBytes = 48;
    cudaTextureObject_t ol; CHECK(cudaCreateTextureObject(&ol, &l, &t, NULL));
    float *e2; CHECK(cudaMalloc(&e2, 50));
    line<<<1, 12>>>(e2, ol); CHECK(cudaMemcpy(g, e2, 48, cudaMemcpyDefault)); if (g[5] != 10) return 5;
    int v[8] = {0, 1, 2, 3, 4, 5, 6, 7}, *q; CHECK(cudaMalloc(&q, 32));
    cudaChannelFormatDesc fi = cudaCreateChannelDesc<int>(); cudaArray_t b;
    CHECK(cudaMalloc3DArray(&b, &fi, make_cudaExtent(2, 2, 2), cudaArrayLayered));
    cudaMemcpy3DParms c = {}; c.srcPtr = make_cudaPitchedPtr(v, 8, 2, 2);
    c.dstArray = b; c.extent = make_cudaExtent(2, 2, 2); c.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&c)); r.res.array.array = b; CHECK(cudaDestroyTextureObject(o)); CHECK(cudaCreateTextureObject(&o, &r, &t, NULL));
    layers<<<1, 8>>>(q, o); int w[8]; CHECK(cudaMemcpy(w, q, 32, cudaMemcpyDeviceToHost)); if (w[7] != 7 || w[2] != 2) return 6;
    two<<<1, 1>>>(q, q, P{5, 6.0f}); CHECK(cudaMemcpy(w, q, 8, cudaMemcpyDeviceToHost)); if (w[0] != 5 || w[1] != 6) return 7;
    cudaPitchedPtr pp; CHECK(cudaMalloc3D(&pp, make_cudaExtent(20, 3, 2))); CHECK(cudaMemset3D(pp, 1, make_cudaExtent(20, 3, 2)));
    // graphs
    cudaStream_t st; CHECK(cudaStreamCreate(&st)); cudaGraph_t gr; cudaGraphExec_t x; int calls = 0;
    CHECK(cudaStreamBeginCapture(st, cudaStreamCaptureModeGlobal));
    two<<<1, 1, 0, st>>>(q, q + 2, P{8, 9.0f}); CHECK(cudaMemcpyAsync(w, q, 32, cudaMemcpyDeviceToHost, st));
    CHECK(cudaLaunchHostFunc(st, host, &calls));
    CHECK(cudaStreamEndCapture(st, &gr)); if (w[0] != 5 || calls) return 8;
    CHECK(cudaGraphInstantiate(&x, gr, NULL, NULL, 0)); CHECK(cudaGraphLaunch(x, st)); CHECK(cudaGraphLaunch(x, st));
    if (w[0] != 8 || w[3] != 9 || calls != 2) return 9;
    cudaGraph_t m; cudaGraphNode_t n1, n2, n3; CHECK(cudaGraphCreate(&m, 0));
    cudaMemsetParams ms = {}; ms.dst = q; ms.value = 3; ms.elementSize = 4; ms.width = 8; ms.height = 1; ms.pitch = 0;
    CHECK(cudaGraphAddMemsetNode(&n1, m, NULL, 0, &ms));
    P p{1, 2}; int *q2 = q; void *args[] = {&q, &q2, &p};
    cudaKernelNodeParams k = {}; k.func = (void *)two; k.gridDim = dim3(1); k.blockDim = dim3(1); k.kernelParams = args;
    CHECK(cudaGraphAddKernelNode(&n2, m, &n1, 1, &k)); CHECK(cudaGraphAddMemcpyNode1D(&n3, m, &n2, 1, w, q, 32, cudaMemcpyDeviceToHost));
    cudaGraphExec_t y; CHECK(cudaGraphInstantiate(&y, m)); CHECK(cudaGraphLaunch(y, 0)); if (w[0] != 1 || w[1] != 2 || w[7] != 3) return 10;
    size_t count; CHECK(cudaGraphGetNodes(m, NULL, &count));
    cudaFuncAttributes fa; CHECK(cudaFuncGetAttributes(&fa, two)); cudaPointerAttributes pa; CHECK(cudaPointerGetAttributes(&pa, q));
    int can; CHECK(cudaDeviceCanAccessPeer(&can, 0, 0));
    printf("nodes %d type %d threads %d peer %d\n", (int)count, pa.type, fa.maxThreadsPerBlock, can);
    cudaFree(d); cudaFree(e2); cudaFree(q); cudaFree(pp.ptr); cudaFreeArray(a); cudaFreeArray(b);
    return 0;
}
"""
)

POINTERS = (
    CHECKED
    + r"""
struct Node { int value; Node *next; };
struct Pool { Node *nodes; int used; Node *heads[4]; };
__device__ Node *first;
__constant__ float *weights[2];
__global__ void sum(Node *head, int *out) { for (Node *p = head; p; p = p->next) atomicAdd(out, p->value); }
__global__ void reverse(Node **head) {
    Node *last = nullptr, *p = *head;
    while (p) { Node *next = p->next; p->next = last; last = p; p = next; }
    *head = last;
}
__global__ void push(Pool *pool) {
    Node *own = pool->nodes + atomicAdd(&pool->used, 1);
    own->value = threadIdx.x;
    unsigned long long *head = (unsigned long long *)&pool->heads[threadIdx.x % 4], old = *(volatile unsigned long long *)head, seen;
    do { seen = old; own->next = (Node *)seen; old = atomicCAS(head, seen, (unsigned long long)own); } while (old != seen);
}
__global__ void count(Pool *pool, int *out) {
    int sum = 0;
    for (int h = 0; h < 4; h++) for (Node *p = pool->heads[h]; p; p = p->next) sum += p->value;
    *out = sum;
}
__global__ void constant(float *out) { out[0] = weights[0][1] + weights[1][2]; }
__global__ void set(Node *node) { first = node; }
__global__ void get(int *out) { *out = first->value; }
__global__ void local(float **rows, float *out) {
    float *own[2];
    for (int i = 0; i < 2; i++) own[i] = rows[i ^ (threadIdx.x & 1)];
    out[threadIdx.x] = own[0][0] - own[1][0];
}
__global__ void shared(float **rows, float *out) {
    __shared__ float *tile[2];
    if (threadIdx.x < 2) tile[threadIdx.x] = rows[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x & 1][2];
}
__global__ void vector(float4 **rows, float4 *out) { out[0] = rows[0][1]; }
template <class T> T *device(const T *values, int count) {
    T *p; if (cudaMalloc(&p, count * sizeof(T)) || cudaMemcpy(p, values, count * sizeof(T), cudaMemcpyHostToDevice)) exit(9);
    return p;
}
template <class T> T host(const T *p, int at = 0) { T v; if (cudaMemcpy(&v, p + at, sizeof v, cudaMemcpyDeviceToHost)) exit(8); return v; }
int main() {
    int zero = 0, *out = device(&zero, 1);
    Node *head = nullptr;
    for (int i = 1; i <= 10; i++) { Node n{i, head}; head = device(&n, 1); }
    Node **holder = device(&head, 1);
    reverse<<<1, 1>>>(holder); head = host(holder); if (host(head).value != 1) return 2;
    sum<<<1, 1>>>(head, out); printf("list %d\n", host(out));
    Pool h{}; CHECK(cudaMalloc(&h.nodes, 64 * sizeof(Node))); Pool *pool = device(&h, 1);
    push<<<1, 64>>>(pool); count<<<1, 1>>>(pool, out); printf("stack %d\n", host(out));
    float v[8] = {1, 2, 3, 4}, w[8] = {10, 2, 3, 4, 10, 2, 3, 4}, *rows[] = {device(v, 8), device(w, 8)}, **table = device(rows, 2);
    float *c = device(v, 8);
    CHECK(cudaMemcpyToSymbol(weights, rows, 16)); constant<<<1, 1>>>(c); printf("constant %g\n", host(c));
    set<<<1, 1>>>(head); get<<<1, 1>>>(out); printf("variable %d\n", host(out));
    local<<<1, 2>>>(table, c); printf("local %g %g\n", host(c), host(c, 1));
    shared<<<1, 4>>>(table, c); printf("shared %g\n", host(c, 3));
    vector<<<1, 1>>>((float4 **)table + 1, (float4 *)c); printf("vector %g %g\n", host(c), host(c, 3));
    CHECK(cudaGetLastError());
    return 0;
}
"""
)


def run(
    folder: Path, text: str, *arguments: str, command: str = "check", options: tuple[str, ...] = (), input: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a program under a command of simtbed, in a folder. options: of the command. input: on stdin."""
    (folder / "program.cu").write_text(text)
    words = [sys.executable, "-m", "simtbed", command, *options, "program.cu", *arguments]
    return subprocess.run(words, cwd=folder, input=input, capture_output=True, text=True, timeout=600, check=False)
