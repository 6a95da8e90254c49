//// vector add
#include <iostream>
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

//// many functions
#include <cstdio>
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

//// arrays and graphs
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

//// ends of programs
#include <cstdio>
#include <cstdlib>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
__global__ void k(int *x) { x[threadIdx.x] = threadIdx.x; }
__global__ void endless(int *x) { while (atomicAdd(x, 0) == 0) { } }
static int deep(int n) { volatile char c[4096]; c[0] = n; return deep(n + 1) + c[0]; }
static void leave(void *) { exit(5); }
static void launch() { int *d; cudaMalloc(&d, 128); k<<<1, 32>>>(d); cudaDeviceSynchronize(); cudaFree(d); }
int main(int argc, char **argv) {
    const char *what = argv[1];
#define WHEN(WORD) if (!strcmp(what, WORD))
    launch();
    printf("started\n");
    WHEN("crash") { fflush(stdout); *(volatile int *)8 = 1; }
    WHEN("abort") abort();
    WHEN("throw") throw std::runtime_error("thrown");
    WHEN("divide") { volatile int zero = argc - 2; return argc / zero; }
    WHEN("deep") return deep(0);
    WHEN("loop") { alarm(2); for (;;) { } }
    WHEN("limit") { rlimit l{1, 2}; setrlimit(RLIMIT_CPU, &l); for (volatile long i = 0;; i++) { } }
    WHEN("kill") { fflush(stdout); kill(getpid(), SIGKILL); }
    WHEN("terminate") { fflush(stdout); raise(SIGTERM); for (;;) { } }
    WHEN("handler") { signal(SIGUSR1, [](int) { _exit(6); }); raise(SIGUSR1); }
    WHEN("kernel") {
        int *d; cudaMalloc(&d, 4); cudaMemset(d, 0, 4); endless<<<1, 1>>>(d);
        return cudaDeviceSynchronize() == 702 ? 7 : 0;
    }
    WHEN("fork") { int s = 0; fflush(stdout); if (!fork()) { launch(); exit(4); } wait(&s); return WEXITSTATUS(s); }
    WHEN("exec") { fflush(stdout); execl("/bin/sh", "sh", "-c", "echo other; exit 8", (char *)0); }
    WHEN("system") return WEXITSTATUS(system("exit 9"));
    WHEN("quick") { fflush(stdout); _exit(10); }
    WHEN("callback") cudaLaunchHostFunc(0, leave, 0);
    WHEN("thread") { std::thread a(launch), b(launch); a.join(); b.join(); return 11; }
    WHEN("leaving thread") { std::thread a([] { exit(12); }); a.join(); }
    WHEN("many") { for (int i = 0; i < 20000; i++) { void *p; cudaMalloc(&p, 16); cudaFree(p); } return 13; }
    WHEN("kept") { for (int i = 0; i < 20000; i++) { void *p; cudaMalloc(&p, 1); } return 14; }
    WHEN("stdin") { char line[9]; return fgets(line, 9, stdin) ? line[0] : 15; }
    WHEN("end") { atexit([] { printf("after the end\n"); launch(); }); return 16; }
    WHEN("closed") { fclose(stdout); close(1); launch(); return 17; }
    WHEN("large") { void *p; return cudaMalloc(&p, (size_t)1 << 60) == 2 ? 18 : 0; }
    return 0;
}

//// mistakes
__global__ void k(int *x) { if (x) *x = 1; }
int main() { int h[9], *d, *e; cudaMalloc(&d, 32); cudaMalloc(&e, 4);
cudaMemcpy(d, h, 36, cudaMemcpyHostToDevice);
cudaMemset(d + 4, 0, 20);
cudaFree(d + 1);
cudaFree(e);
cudaMemcpy(h, e, 4, cudaMemcpyDeviceToHost);
cudaFree(e);
k<<<1, 2000>>>(d);
k<<<1, 1>>>(h);
int code = cudaDeviceSynchronize(); if (code != 700 || cudaGetLastError() != 700 || cudaPeekAtLastError() != 700) return 9;
h[0] = 5; if (cudaMemset(d, 0, 4) != 700 || cudaMemcpy(h, d, 4, cudaMemcpyDeviceToHost) != 700 || h[0] != 5) return 8; }

//// sticky
__global__ void add(int *x) { x[threadIdx.x] += 1; }
__global__ void check(int *x) { assert(x[0] == 9); }
int main(int argc, char **argv) {
int *d, h = 7; cudaMalloc(&d, 4 * 32); cudaMemset(d, 0, 128);
if (argc > 1) check<<<1, 32>>>(d); else add<<<1, 64>>>(d);
int expected = argc > 1 ? 710 : 700;
if (cudaDeviceSynchronize() != expected || cudaGetLastError() != expected || cudaMalloc(&d, 4) != expected) return 3;
add<<<1, 1>>>(d);
if (cudaGetLastError() != expected || cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost) != expected || h != 7) return 4;
cudaEvent_t event; if (cudaEventCreate(&event) != expected || cudaFree(d) != expected) return 5;
}
//// streams
__global__ void add(int *a, int v) { a[threadIdx.x] += v; }
int main() { int *d, *e, h[32]; cudaMalloc(&d, 128); cudaMalloc(&e, 128); cudaMemset(e, 0, 8);
cudaStream_t s, t; cudaStreamCreate(&s); cudaStreamCreate(&t); cudaEvent_t event; cudaEventCreate(&event);
cudaMemcpyAsync(d, h, 128, cudaMemcpyHostToDevice, s);
cudaMemsetAsync(d, 0, 64, t);
cudaDeviceSynchronize(); add<<<1, 32, 0, s>>>(d, 1);
cudaEventRecord(event, s); cudaStreamWaitEvent(t, event, 0); add<<<1, 32, 0, t>>>(d, 1);
add<<<1, 16, 0, s>>>(d, 1);
cudaStreamSynchronize(s); cudaEventRecord(event, t); cudaEventSynchronize(event); add<<<1, 32, 0, s>>>(d, 1);
add<<<1, 32>>>(d, 1);
add<<<1, 32, 0, t>>>(d, 1);
cudaMemcpyAsync(h, d, 128, cudaMemcpyDeviceToHost, s);
cudaMemcpy(h, d, 128, cudaMemcpyDeviceToHost); cudaMemcpyAsync(d, h, 128, cudaMemcpyHostToDevice, s);
cudaMemcpy(h, e, 128, cudaMemcpyDeviceToHost); cudaFree(d); cudaFree(e); }

//// library templates
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cuda/atomic>
#include <cuda/std/array>
#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/transform.h>
__global__ void blocks(int *x, int *counter) {
    using Scan = cub::BlockScan<int, 64>;
    using Warp = cub::WarpReduce<int>;
    __shared__ union { typename Scan::TempStorage scan; typename Warp::TempStorage warps[2]; } shared;
    cuda::std::array<int, 2> values{x[threadIdx.x], 0};
    Scan(shared.scan).ExclusiveSum(values[0], values[1]);
    __syncthreads();
    int sum = Warp(shared.warps[threadIdx.x / 32]).Sum(values[1], 20);
    x[threadIdx.x] = threadIdx.x % 32 ? values[1] : sum;
    cuda::atomic_ref<int, cuda::thread_scope_device>(*counter).fetch_add(1, cuda::memory_order_relaxed);
}
int main() {
    thrust::device_vector<int> x(64), counter(1);
    for (int i = 0; i < 64; i++) x[i] = -i;
    thrust::transform(x.begin(), x.end(), x.begin(), thrust::negate<int>());
    blocks<<<1, 64>>>(thrust::raw_pointer_cast(x.data()), thrust::raw_pointer_cast(counter.data()));
    printf("%d %d %d %d\n", (int)x[0], (int)x[5], (int)x[63], (int)counter[0]);
}

//// unions packs and members of one name
template <int N> struct leaf { int value; };
struct row : leaf<0>, leaf<1> { union { int *unused; long number; }; };
template <class... T> __global__ void k(int *x, T... rest) { *x = (rest + ...); }
__global__ void m(int *x, row r) { *x += 10 * r.leaf<0>::value + r.leaf<1>::value + r.number; }
int main() {
    int *d, h;
    cudaMalloc(&d, 4);
    k<<<1, 1>>>(d, 1, 2);
    row r;
    r.leaf<0>::value = 2; r.leaf<1>::value = 3; r.number = 4;
    m<<<1, 1>>>(d, r);
    cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost);
    cudaFree(d);
    return h;
}
//// cublas
#include <cublas_v2.h>
#include <complex>
int main() {
    cublasHandle_t h;
    float A[6] = {1, 2, 3, 4, 5, 6}, B[6] = {1, 0, 2, 1, 1, 1}, C[4] = {1, 1, 1, 1}, one = 1, two = 2, r, *a, *b, *c;
    int i;
    cublasCreate(&h); cudaMalloc(&a, 24); cudaMalloc(&b, 24); cudaMalloc(&c, 16);
    cublasSetMatrix(2, 3, 4, A, 2, a, 2); cublasSetVector(6, 4, B, 1, b, 1); cublasSetVector(4, 4, C, 1, c, 1);
    cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 3, &two, a, 2, b, 3, &one, c, 2);
    cudaMemcpy(C, c, 16, cudaMemcpyDeviceToHost); printf("gemm %g %g %g %g\n", C[0], C[1], C[2], C[3]);
    cublasSdot(h, 6, a, 1, b, 1, &r); printf("dot %g\n", r); cublasSnrm2(h, 3, a, 2, &r); printf("nrm2 %.4f\n", r);
    cublasSasum(h, 6, a, 1, &r); printf("asum %g\n", r); cublasIsamax(h, 6, a, 1, &i); printf("amax %d\n", i);
    cublasSaxpy(h, 6, &two, a, -1, b, 1); cublasSscal(h, 6, &two, b, 1);
    cublasGetVector(6, 4, b, 1, B, 1); printf("axpy %g %g\n", B[0], B[5]);
    cublasSgemv(h, CUBLAS_OP_T, 2, 3, &one, a, 2, c, 1, &two, b, 1); cublasGetVector(3, 4, b, 1, B, 1); printf("gemv %g %g\n", B[0], B[2]);
    cuDoubleComplex Z[2] = {{1, 2}, {3, -1}}, d, *z; cudaMalloc(&z, 32); cublasSetVector(2, 16, Z, 1, z, 1);
    cublasZdotc(h, 2, z, 1, z, 1, &d); printf("dotc %g %g\n", d.x, d.y);
    printf("%s\n", cublasGetStatusString(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 3, &two, a, 2, b, 3, &one, c, 1)));
    return cublasSdot(h, 7, a, 1, b, 1, &r);
}
//// constants
__constant__ const float t[2] = {1, 2};
__device__ const int u[2] = {3, 4};
static constexpr __device__ int w[2] = {5, 6};
__device__ constexpr float z = 7;
__global__ void k(float *x) { x[0] = t[threadIdx.x + 1] + u[threadIdx.x + 1] + w[threadIdx.x] + z; }
int main() { float *d, h; cudaMalloc(&d, 4); k<<<1, 1>>>(d); cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost); cudaFree(d); return (int)h; }
//// texture references
texture<float, 1, cudaReadModeElementType> line;
static texture<float, 2> plane;
__global__ void read(float *out) { out[threadIdx.x] = tex1Dfetch(line, threadIdx.x) + tex2D(plane, threadIdx.x + 0.5f, 1.5f); }
int main() {
    float h[8] = {1, 2, 3, 4, 5, 6, 7, 8}, r[4], *d, *out;
    cudaArray_t array; cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CHECK(cudaMalloc(&d, 32)); CHECK(cudaMalloc(&out, 16)); CHECK(cudaMemcpy(d, h, 32, cudaMemcpyHostToDevice));
    CHECK(cudaMallocArray(&array, &format, 4, 2)); CHECK(cudaMemcpyToArray(array, 0, 0, h, 32, cudaMemcpyHostToDevice));
    CHECK(cudaBindTexture(NULL, &line, d, &format, 32)); plane.filterMode = cudaFilterModeLinear; CHECK(cudaBindTextureToArray(plane, array, format));
    read<<<1, 4>>>(out); CHECK(cudaMemcpy(r, out, 16, cudaMemcpyDeviceToHost)); printf("textures %g %g\n", r[0], r[3]);
    CHECK(cudaUnbindTexture(&line)); CHECK(cudaBindTexture(0, line, d + 4)); CHECK(cudaBindTexture2D(0, plane, d, 2, 2, 8));
    read<<<1, 2>>>(out); CHECK(cudaMemcpy(r, out, 16, cudaMemcpyDeviceToHost)); printf("textures %g %g\n", r[0], r[1]);
    CHECK(cudaUnbindTexture(plane)); CHECK(cudaFreeArray(array)); CHECK(cudaFree(d)); CHECK(cudaFree(out));
    return 0;
}
//// curand
#include <curand.h>
#include <curand_kernel.h>
__global__ void init(curandState *s) { curand_init(1234, threadIdx.x, 0, s + threadIdx.x); }
__global__ void draw(curandState *s, float *out) {
    curandState own = s[threadIdx.x];
    out[threadIdx.x] = curand_uniform(&own);
    if (!threadIdx.x) { const float a = curand_normal(&own), b = curand_normal(&own); out[32] = a * a + b * b; }
    s[threadIdx.x] = own;
}
__global__ void philox(unsigned *out) {
    curandStatePhilox4_32_10_t s; curand_init(0, 0, 0, &s); out[0] = curand(&s); curand4(&s); out[1] = curand(&s);
    curandStatePhilox4_32_10_t t; curand_init(0, 0, 5, &t); out[2] = curand(&t);
}
int main() {
    curandState *s; float *d, h[33]; unsigned *u, v[3];
    CHECK(cudaMalloc(&s, 32 * sizeof *s)); CHECK(cudaMalloc(&d, sizeof h)); CHECK(cudaMalloc(&u, sizeof v));
    init<<<1, 32>>>(s); draw<<<1, 32>>>(s, d); CHECK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost)); printf("xorwow %.6f %.6f %.6f\n", h[0], h[1], h[5]);
    philox<<<1, 1>>>(u); CHECK(cudaMemcpy(v, u, sizeof v, cudaMemcpyDeviceToHost)); printf("philox %08x %d\n", v[0], v[1] == v[2]);
    curandGenerator_t g; curandCreateGenerator(&g, CURAND_RNG_PSEUDO_DEFAULT); curandSetPseudoRandomGeneratorSeed(g, 1234);
    if (curandGenerateUniform(g, d, 33)) return 1; CHECK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost)); printf("host %.6f %.6f %.6f\n", h[0], h[1], h[5]);
    if (curandGenerateNormal(g, d, 33, 0, 1) != CURAND_STATUS_LENGTH_NOT_MULTIPLE) return 2;
    curandDestroyGenerator(g); CHECK(cudaFree(s)); CHECK(cudaFree(d)); CHECK(cudaFree(u));
    return 0;
}
//// memory and updates of graphs
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void add(int *x, int n) { *x += n; }
template <int N> __global__ void wide(int *x) {
    __shared__ cg::block_tile_memory<128> scratch;
    auto tile = cg::tiled_partition<N>(cg::this_thread_block(scratch));
    tile.sync(); x[threadIdx.x] = tile.thread_rank();
}
int main(int count, char **) {
    int *x; cudaGraph_t graph, other; cudaGraphExec_t executable; cudaGraphNode_t nodes[4]; cudaMemAllocNodeParams memory = {};
    cudaStream_t stream; CHECK(cudaStreamCreate(&stream));
    memory.bytesize = 4; CHECK(cudaGraphCreate(&graph, 0)); CHECK(cudaGraphAddMemAllocNode(nodes, graph, NULL, 0, &memory));
    int value = 5, n = 2, result = 0; void *arguments[] = {&memory.dptr, &n};
    cudaKernelNodeParams launch = {(void *)add, dim3(1), dim3(1), 0, arguments, NULL};
    CHECK(cudaGraphAddMemcpyNode1D(nodes + 1, graph, nodes, 1, memory.dptr, &value, 4, cudaMemcpyHostToDevice));
    CHECK(cudaGraphAddKernelNode(nodes + 2, graph, nodes + 1, 1, &launch));
    CHECK(cudaGraphAddMemcpyNode1D(nodes + 3, graph, nodes + 2, 1, &result, memory.dptr, 4, cudaMemcpyDeviceToHost));
    CHECK(cudaGraphAddMemFreeNode(nodes, graph, nodes + 3, 1, memory.dptr));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 2; i++) { CHECK(cudaGraphLaunch(executable, stream)); CHECK(cudaFree(memory.dptr)); }
    printf("graph %d", result); CHECK(cudaGraphExecDestroy(executable)); CHECK(cudaMallocManaged(&x, 512)); *x = 0;
    for (int step = 1; step < 4; step++) {
        cudaGraphExecUpdateResult update = cudaGraphExecUpdateSuccess; cudaGraphExecUpdateResultInfo info;
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)); add<<<1, 1, 0, stream>>>(x, step);
        if (step == 3) add<<<1, 1, 0, stream>>>(x, step);
        CHECK(cudaStreamEndCapture(stream, &other));
        if (step == 1) CHECK(cudaGraphInstantiate(&executable, other, 0)); else if (step == 2) CHECK(cudaGraphExecUpdate(executable, other, NULL, &update));
        else if (cudaGraphExecUpdate(executable, other, &info) != cudaErrorGraphExecUpdateFailure || info.result != cudaGraphExecUpdateErrorTopologyChanged) return 4;
        CHECK(cudaGraphLaunch(executable, stream)); CHECK(cudaStreamSynchronize(stream));
    }
    cudaGetLastError(); printf(" updated %d\n", *x); fflush(stdout);
    cudaStream_t side; cudaEvent_t event; CHECK(cudaStreamCreate(&side)); CHECK(cudaEventCreate(&event));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)); CHECK(cudaEventRecord(event, stream)); CHECK(cudaStreamWaitEvent(side, event));
    CHECK(cudaMemsetAsync(x, 0, 4, side)); CHECK(cudaEventRecord(event, side)); CHECK(cudaStreamWaitEvent(stream, event));
    add<<<1, 1, 0, stream>>>(x, 1); CHECK(cudaMemcpyAsync(&result, x, 4, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamEndCapture(stream, &other)); CHECK(cudaGraphInstantiate(&executable, other, 0));
    for (int i = 0; i < 2; i++) CHECK(cudaGraphLaunch(executable, stream)); CHECK(cudaDeviceSynchronize());
    if (count > 1) wide<64><<<1, 128>>>(x); else wide<32><<<1, 128>>>(x);
    CHECK(cudaDeviceSynchronize()); return x[127] != 31;
}

//// runtime in C
#include <cuda_runtime.h>
int copied(int value) {
    int *pointer, result = 0;
    struct cudaDeviceProp own; enum cudaMemcpyKind kind = cudaMemcpyHostToDevice; cudaError_t code;
    if (cudaSetDevice(0) || cudaGetDeviceProperties(&own, 0) || cudaMalloc((void **)&pointer, sizeof value)) return 1;
    code = cudaMemcpy(pointer, &value, sizeof value, kind);
    cudaMemcpy(&result, pointer, sizeof value, cudaMemcpyDeviceToHost), cudaFree(pointer);
    return own.warpSize == 32 && !strcmp(cudaGetErrorString(code), "no error") ? result : 2;
}

//// functions of both sides
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <algorithm>
__global__ void k(float *x) { double s, c; sincospi(-7.25, &s, &c); x[0] = sinpif(1.5f) + cospif(-2.0f) + cospi(0.5) + (s - c); }
int main() {
    float *d, h; cudaMalloc(&d, 4); k<<<1, 1>>>(d); cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost); cudaFree(d);
    half2 p = __floats2half2_rn(1, 2); long v[4] = {3, 1, 2, 0}; std::rotate(v, v + 2, v + 4); std::stable_sort(v, v + 4);
    return (int)(h + rsqrtf(1) - sinpi(1.5) + __half2float(__float2half(1.5f)) * 2 + __bfloat162float(__float2bfloat16(4)) + __high2float(p) + v[3]);
}

//// tensor maps
#include <cstdio>
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>
#include <vector>
__device__ uint32_t at(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__global__ void moved(const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap out, float *raw, int x, int y) {
    __shared__ alignas(1024) float tile[16][32];
    __shared__ uint64_t bar;
    int t = threadIdx.x;
    if (t == 0) {
        asm volatile("prefetch.tensormap [%0];" :: "l"(&in) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(&bar)), "r"(1));
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (t == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(&bar)), "r"(2048) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
            :: "r"(at(tile)), "l"(reinterpret_cast<uint64_t>(&in)), "r"(x), "r"(y), "r"(at(&bar)) : "memory");
    }
    asm volatile("{ .reg .pred complete; waitLoop_%=: mbarrier.try_wait.parity.shared.b64 complete, [%0], %1; "
        "@!complete bra.uni waitLoop_%=; }" :: "r"(at(&bar)), "r"(0) : "memory");
    for (int i = 0; i < 16; i++) { raw[32 * i + t] = tile[i][t]; tile[i][t] += 1; }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
            :: "l"(&out), "r"(x + 4), "r"(y + 1), "r"(at(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}
static CUtensorMap map_of(float *p, int width, int height, CUresult &code) {
    void *f = nullptr; cudaDriverEntryPointQueryResult found;
    cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &f, cudaEnableDefault, &found);
    CUtensorMap map{};
    cuuint64_t sizes[2] = {(cuuint64_t)width, (cuuint64_t)height}, strides[1] = {(cuuint64_t)width * 4};
    cuuint32_t box[2] = {32, 16}, steps[2] = {1, 1};
    code = ((PFN_cuTensorMapEncodeTiled)f)(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, p, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
        CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return map;
}
int main() {
    const int width = 64, height = 20, n = width * height;
    std::vector<float> x(n), y(n);
    for (int i = 0; i < n; i++) x[i] = i + 1;
    float *in, *out, *raw;
    cudaMalloc(&in, n * 4); cudaMalloc(&out, n * 4 + 64); cudaMalloc(&raw, 2048);
    cudaMemcpy(in, x.data(), n * 4, cudaMemcpyHostToDevice);
    cudaMemset(out, 0, n * 4 + 64);
    CUresult a, b, c;
    CUtensorMap first = map_of(in, width, height, a), second = map_of(out + 16, width, height, b);
    map_of(in, 63, height, c);
    moved<<<1, 32>>>(first, second, raw, -4, 8);
    cudaMemcpy(y.data(), out + 16, n * 4, cudaMemcpyDeviceToHost);
    printf("maps %d %d %d, %g %g %g\n", a, b, c, y[9 * 64], y[9 * 64 + 4], y[19 * 64 + 28]);
    cudaFree(in); cudaFree(out); cudaFree(raw);
    return 0;
}

//// pools attributes and updates
#include <omp.h>
#include <nvtx3/nvToolsExt.h>
#include <cuda_texture_types.h>
__global__ void add(int *x, int n) { if (threadIdx.x < n) x[threadIdx.x] += n; }
std::string text(int x) { std::stringstream own; own << x; return own.str(); }
int main() {
    cudaMemPool_t pool; cudaMemPoolProps own = {}; own.location.type = cudaMemLocationTypeDevice; int *d, *m, h[32] = {}, all = 32; cudaStream_t s;
    nvtxRangePush("all"); CHECK(cudaStreamCreate(&s)); CHECK(cudaMemPoolCreate(&pool, &own)); CHECK(cudaMallocAsync(&d, 128, pool, s));
    if (cudaMemPoolDestroy(0) != cudaErrorInvalidValue) return 2; CHECK(cudaMallocManaged(&m, 128)); CHECK(cudaMemPrefetchAsync(m, 128, own.location, 0, s)); CHECK(cudaMemsetAsync(d, 0, 128, s));
    cudaLaunchConfig_t shape = {}; cudaLaunchAttribute attribute; shape.gridDim = 1; shape.blockDim = 32; shape.stream = s;
    shape.attrs = &attribute; shape.numAttrs = 1; attribute.id = cudaLaunchAttributeCooperative; attribute.val.cooperative = 1;
    CHECK(cudaLaunchKernelEx(&shape, add, d, all)); attribute.id = cudaLaunchAttributeClusterDimension; attribute.val.clusterDim.x = attribute.val.clusterDim.y = 2; attribute.val.clusterDim.z = 1;
    if (cudaLaunchKernelEx(&shape, add, d, 32) != cudaErrorInvalidClusterSize) return 3;
    cudaGetLastError(); CHECK(cudaMemcpyAsync(h, d, 128, cudaMemcpyDeviceToHost, s));
    double wide = atof("1.00390625000001");  // above a half of the last bit
    __nv_bfloat16 rounded[] = {(__nv_bfloat16)(float)wide, (__nv_bfloat16)wide}; omp_lock_t lock; omp_init_lock(&lock);
    printf("%s %s %g %g %d\n", text(h[0]).c_str(), text(h[1]).c_str(), (float)rounded[0], (float)rounded[1], __hgt((__half)2.0f, (__half)1.0f));
    CHECK(cudaFreeAsync(d, s)); CHECK(cudaFree(m)); CHECK(cudaMemPoolDestroy(pool)); nvtxRangePop(); }

//// numbers of eight bits
#include <cooperative_groups.h>
#include <cuComplex.h>
#include <cuda_fp8.h>
template <int E, class F> __global__ void convert(const float *x, unsigned *out) {
    unsigned short own, i = blockIdx.x * blockDim.x + threadIdx.x;
    if (E == 4) asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(own) : "f"(0.0f), "f"(x[i]));
    else asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(own) : "f"(0.0f), "f"(x[i]));
    out[i] = F(x[i]).__x | own << 8 | F((double)x[i]).__x << 16;
}
template <int E, class F, class F4> int differences(const float *x, unsigned *out) {
    convert<E, F><<<64, 256>>>(x, out);
    int count = cudaDeviceSynchronize();
    for (int i = 0; i < 16384; i++) {
        const float value = (float)(F &)i, other = ((float4)F4(make_float4(0, 0, value, 0))).z;
        count += (out[i] != F(x[i]).__x * 0x10101u) + (value - value == 0 && (F(value).__x != i % 256 || other != value));
    }
    return count;
}
struct Particle { double x; float mass; int id; };
__global__ void particles(float *out) {
    auto warp = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
    Particle own = warp.shfl_down(Particle{0.5 * threadIdx.x, 2.0f * threadIdx.x, (int)threadIdx.x}, 1);
    out[threadIdx.x] = own.x + own.mass + own.id + cuCabsf(cuCdivf(make_cuComplex(6, 8), make_cuComplex(2, 0)));
}
int main() {
    float *x; unsigned *out;
    CHECK(cudaMallocManaged(&x, 65536)); CHECK(cudaMallocManaged(&out, 65536));
    for (unsigned i = 0; i < 16384; i++) ((unsigned *)x)[i] = i << 18 | (i % 3 ? i * 2654435761u >> 14 : 0);
    printf("differences %d %d\n", differences<4, __nv_fp8_e4m3, __nv_fp8x4_e4m3>(x, out), differences<5, __nv_fp8_e5m2, __nv_fp8x4_e5m2>(x, out));
    particles<<<1, 32>>>(x); CHECK(cudaDeviceSynchronize());
    printf("particle %g %g\n", x[3], cuCabs(cuCdiv(make_cuDoubleComplex(6, 8), make_cuDoubleComplex(2, 0))));
}

//// barriers of libcu++
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>
__global__ void swapped(int *x) {
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ int copy[64];
    if (threadIdx.x == 0) init(&barrier, blockDim.x); __syncthreads();
    cuda::memcpy_async(copy + threadIdx.x, x + threadIdx.x, sizeof(int), barrier);
    barrier.wait(barrier.arrive());
    x[threadIdx.x] = copy[63 - threadIdx.x];
}
__global__ void staged(const int *x, int *out) {
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    __shared__ alignas(16) int copy[2][64];
    auto block = cooperative_groups::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    for (int i = 0; i < 2; i++) {
        pipe.producer_acquire();
        cuda::memcpy_async(block, copy[i], x + 64 * i, sizeof(int) * 64, pipe);
        pipe.producer_commit();
    }
    for (int i = 0; i < 2; i++, pipe.consumer_release()) {
        pipe.consumer_wait();
        out[64 * i + threadIdx.x] = copy[i][63 - threadIdx.x];
    }
}
int main() {
    int *x, *out; cudaMallocManaged(&x, 512); cudaMallocManaged(&out, 512);
    for (int i = 0; i < 128; i++) x[i] = i;
    swapped<<<1, 64>>>(x); staged<<<1, 64>>>(x, out);
    printf("%d %d %d %d\n", cudaDeviceSynchronize(), x[5], out[5], out[69]);
}

//// checked calls
#include <cstdio>
#include <cstdlib>
#define CHECK(call) do { cudaError_t e = call; if (e != cudaSuccess) { \
    printf("%d: %s, %s\n", __LINE__, cudaGetErrorName(e), cudaGetErrorString(e)); return 1; } } while (0)

//// pointers
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

//// unit
extern __device__ int counter;
static __device__ int own = 2;
__device__ int twice(int x);
__global__ void first(int *x) { x[0] = twice(counter) + own; counter++; }
int in_other_unit(int *d);
int main() {
int *d, h = 0, c = 0; cudaMalloc(&d, 4); first<<<1, 1>>>(d); c = in_other_unit(d);
cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost); cudaFree(d); return 10 * c + h; }

//// other unit
__device__ int counter = 5;
static __device__ int scale = 2;
__device__ int twice(int x) { return scale * x; }
__global__ void first(int *x);
__global__ void second(int *x, int n) { x[n] += twice(counter); counter += 1; }
int in_other_unit(int *d) {
second<<<1, 1>>>(d, 0); first<<<1, 1>>>(d); second<<<1, 1>>>(d, N);
int c; cudaMemcpyFromSymbol(&c, counter, 4); return c; }

//// limits
#include <cstdio>
__global__ void k(int *out) { extern __shared__ int s[]; s[threadIdx.x] = 1; if (out) out[0] = s[0]; }
__global__ void own(int *out) { __shared__ int t[256]; extern __shared__ int s[]; s[threadIdx.x] = t[255 - threadIdx.x] = 1; if (out) out[0] = s[0] + t[0]; }
__global__ void __cluster_dims__(16) sixteen(int *out) { if (out) out[0] = 1; }
template <class T> int launched(T *kernel, int blocks, int threads, int shared) { kernel<<<blocks, threads, shared>>>(0); return cudaGetLastError(); }
int main() {
    const cudaFuncAttribute most = cudaFuncAttributeMaxDynamicSharedMemorySize, any = cudaFuncAttributeNonPortableClusterSizeAllowed;
    printf("%d", launched(k, 1, 256, 60000)); printf(" %d", launched(own, 1, 256, 49152));
    printf(" %d", cudaFuncSetAttribute(k, most, 60000)); printf(" %d", launched(k, 1, 256, 60000));
    printf(" %d", cudaFuncSetAttribute(own, most, 232448)); printf(" %d", cudaGetLastError());
    printf(" | %d", launched(sixteen, 32, 32, 0)); cudaFuncSetAttribute(sixteen, any, 1);
    printf(" %d", launched(sixteen, 32, 32, 0)); printf(" %d |", launched(sixteen, 30, 32, 0));
    cudaLaunchConfig_t c = {}; cudaLaunchAttribute a; c.gridDim = 720; c.blockDim = 1024; c.dynamicSmemBytes = 40000;
    c.attrs = &a; c.numAttrs = 1; a.id = cudaLaunchAttributeClusterDimension; a.val.clusterDim.x = 8; a.val.clusterDim.y = a.val.clusterDim.z = 1;
    int n = -1, code = cudaOccupancyMaxActiveClusters(&n, k, &c); printf(" %d %d", code, n);
    code = cudaOccupancyMaxPotentialClusterSize(&n, k, &c); printf(" %d %d", code, n);
    a.val.clusterDim.x = 16; printf(" %d", cudaOccupancyMaxActiveClusters(&n, k, &c));
    c.numAttrs = 0; code = cudaOccupancyMaxActiveClusters(&n, k, &c); printf(" %d %d", code, n);
    code = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, own, 1024, 0); printf(" | %d %d", code, n);
    code = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, own, 128, 49152); printf(" %d %d", code, n);
    void *all[] = {&n}; printf(" %d\n", cudaLaunchCooperativeKernel(k, dim3(1000), dim3(1024), all, 4096)); cudaGetLastError();
    launched(k, 1, 2048, 0); k<<<1, 32, 70000>>>(0);
}

//// clusters
#include <cooperative_groups.h>
__global__ void histogram(int *bins, int each, const int *input, int n) {
    extern __shared__ int own[];
    auto cluster = cooperative_groups::this_cluster();
    for (int i = threadIdx.x; i < each; i += blockDim.x) own[i] = 0;
    cluster.sync();
    for (int i = cooperative_groups::this_grid().thread_rank(); i < n; i += blockDim.x * gridDim.x)
        atomicAdd(cluster.map_shared_rank(own, input[i] / each) + input[i] % each, 1);
    cluster.sync();
    for (int i = threadIdx.x; i < each; i += blockDim.x) atomicAdd(&bins[cluster.block_rank() * each + i], own[i]);
}
__global__ void __cluster_dims__(2, 1, 1) ranks(int *out) { if (threadIdx.x == 0) out[blockIdx.x] = 10 * __clusterSizeInBlocks() + __clusterRelativeBlockRank(); }
int main() {
    const int n = 4096, bins = 64; static int x[n], expected[bins], h[bins]; int *d, *b, wrong = 0;
    for (int i = 0; i < n; i++) expected[x[i] = i * 7919 % bins]++;
    CHECK(cudaMalloc(&d, sizeof x)); CHECK(cudaMalloc(&b, sizeof h)); CHECK(cudaMemcpy(d, x, sizeof x, cudaMemcpyHostToDevice)); CHECK(cudaMemset(b, 0, sizeof h));
    cudaLaunchConfig_t shape = {}; cudaLaunchAttribute attribute; shape.gridDim = 8; shape.blockDim = 64; shape.dynamicSmemBytes = bins / 4 * sizeof(int);
    shape.attrs = &attribute; shape.numAttrs = 1; attribute.id = cudaLaunchAttributeClusterDimension; attribute.val.clusterDim.x = 4; attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    CHECK(cudaLaunchKernelEx(&shape, histogram, b, bins / 4, (const int *)d, n)); CHECK(cudaMemcpy(h, b, sizeof h, cudaMemcpyDeviceToHost));
    for (int i = 0; i < bins; i++) wrong += h[i] != expected[i];
    shape.gridDim = 6; int code = cudaLaunchKernelEx(&shape, histogram, b, bins / 4, (const int *)d, n); cudaGetLastError();
    shape.gridDim = 64; attribute.val.clusterDim.x = 32; int larger = cudaLaunchKernelEx(&shape, histogram, b, bins / 4, (const int *)d, n); cudaGetLastError();
    ranks<<<4, 32>>>(b); CHECK(cudaMemcpy(h, b, sizeof h, cudaMemcpyDeviceToHost));
    printf("wrong %d, errors %d %d, ranks %d %d %d %d\n", wrong, code, larger, h[0], h[1], h[2], h[3]);
    cudaFree(d); cudaFree(b);
}
