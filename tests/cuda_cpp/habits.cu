//// doublify of a matrix of 4 x 4
__global__ void doublify(float *a)
{
  int idx = threadIdx.x + threadIdx.y*4;
  a[idx] *= 2;
}

//// grid-stride saxpy with restrict pointers
extern "C" __global__ void saxpy(const float* __restrict__ x, float* __restrict__ y, float a, size_t n)
{
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        y[i] = a * x[i] + y[i];
}

//// tiled product with bounds
#define TILE 8
__global__ void matmul(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE + 1];
    const int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    float acc = 0.0f;
    for (int t = 0; t < (K + TILE - 1) / TILE; ++t) {
        int k = t * TILE + threadIdx.x, l = t * TILE + threadIdx.y;
        As[threadIdx.y][threadIdx.x] = row < M && k < K ? A[row * K + k] : 0.0f;
        Bs[threadIdx.y][threadIdx.x] = (l < K && col < N) ? B[l * N + col] : 0.f;
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < TILE; ++i) acc += As[threadIdx.y][i] * Bs[i][threadIdx.x];
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = acc;
}

//// reduction in dynamic shared memory with a volatile tail
template <unsigned int BLOCK> __device__ void tail(volatile int *s, unsigned int t) {
    if (BLOCK >= 64) { s[t] += s[t + 32]; __syncwarp(); }
    s[t] += s[t + 16]; __syncwarp();
    s[t] += s[t + 8]; __syncwarp();
    s[t] += s[t + 4]; __syncwarp();
    s[t] += s[t + 2]; __syncwarp();
    s[t] += s[t + 1];
}
template <unsigned int BLOCK> __global__ void reduce(const int *in, int *out, unsigned int n) {
    extern __shared__ int sdata[];
    unsigned int tid = threadIdx.x, i = blockIdx.x * (BLOCK * 2) + tid, step = BLOCK * 2 * gridDim.x;
    int sum = 0;
    while (i < n) { sum += in[i]; if (i + BLOCK < n) sum += in[i + BLOCK]; i += step; }
    sdata[tid] = sum;
    __syncthreads();
    if (BLOCK >= 128) { if (tid < 64) sdata[tid] += sdata[tid + 64]; __syncthreads(); }
    if (tid < 32) {
        int value = sdata[tid] + sdata[tid + 32];
        for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_down_sync(0xffffffff, value, offset);
        if (tid == 0) out[blockIdx.x] = value;
    }
}

//// histogram with shared and global atomics
__global__ void histogram(const unsigned char *data, unsigned int *bins, int n)
{
    __shared__ unsigned int local[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[data[i]], 1);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) if (local[i]) atomicAdd(bins + i, local[i]);
}

//// stencil with constant coefficients and a halo
#define RADIUS 3
__constant__ float coefficient[RADIUS + 1] = {0.5f, 0.2f, -0.1f, 1.0f / 64};
__global__ void stencil(const float *in, float *out, int n)
{
    __shared__ float line[64 + 2 * RADIUS];
    int g = blockIdx.x * blockDim.x + threadIdx.x, l = threadIdx.x + RADIUS;
    line[l] = g < n ? in[g] : 0;
    if (threadIdx.x < RADIUS) {
        line[l - RADIUS] = g >= RADIUS ? in[g - RADIUS] : 0;
        line[l + blockDim.x] = g + blockDim.x < n ? in[g + blockDim.x] : 0;
    }
    __syncthreads();
    if (g >= n) return;
    float sum = coefficient[0] * line[l];
    for (int r = 1; r <= RADIUS; r++) sum += coefficient[r] * (line[l - r] + line[l + r]);
    out[g] = sum;
}

//// structs, references, methods and operators
struct Vec { float x, y, z;
    __device__ Vec operator+(const Vec &o) const { return Vec{x + o.x, y + o.y, z + o.z}; }
    __device__ Vec &operator*=(float s) { x *= s; y *= s; z *= s; return *this; }
    __device__ float dot(const Vec &o) const { return x * o.x + y * o.y + z * o.z; }
};
struct Body { Vec position, velocity; };
__device__ void advance(Body &body, const float dt) {
    Vec step = body.velocity;
    step *= dt;
    body.position = body.position + step;
}
__global__ void move(Body *bodies, float *energy, float dt, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    advance(bodies[i], dt);
    const Body &b = bodies[i];
    energy[i] = 0.5f * b.velocity.dot(b.velocity);
}

//// a struct of several sizes, and one by value
struct Item { double weight; int count; unsigned char tag; };
struct Options { int n; float scale; };
__global__ void weigh(const Item *items, double *out, Options options)
{
    int i = threadIdx.x;
    if (i < options.n && items[i].tag == 1) out[i] = items[i].weight * items[i].count * options.scale;
    else if (i < options.n) out[i] = -1;
}

//// switch with fall-through, do-while, comma, conditional increments
__global__ void steps(const int *x, int *out)
{
    int v = x[threadIdx.x], r = 0, k = 0;
    switch (v & 7) {
        case 0: r = 1; break;
        case 1: r += 10;
        case 2: case 3: r += 100; break;
        case 4: { int w = v * 2; r = w; } break;
        case 5: if (v > 20) break; r = 7; break;
        default: r = -1;
    }
    do { r += k++; } while (k < (v & 3));
    int n = 0;
    for (int i = 0, j = 10; i < j; ++i, j--) n += i * j;
    while (n-- > 100) { if (n % 7 == 0) continue; r ^= n; if (r > 4000) break; }
    out[threadIdx.x] = r > 0 && ++k > 2 ? r + k : r - k;
}

//// ping-pong of pointers and pointer increments
__global__ void smooth(float *a, float *b, int n, int rounds)
{
    float *src = a, *dst = b;
    int i = threadIdx.x;
    for (int r = 0; r < rounds; r++) {
        const float *p = src + i;
        float sum = *p;
        if (i > 0) sum += *(p - 1);
        if (i + 1 < n) { ++p; sum += *p; }
        dst[i] = sum;
        __syncthreads();
        float *t = src; src = dst; dst = t;
    }
}

//// float4 loads, sorted registers, bit casts
__device__ inline void order(float &a, float &b) { if (a > b) { float t = a; a = b; b = t; } }
__global__ void sort4(const float4 *in, float *out, unsigned int *bits)
{
    int i = threadIdx.x;
    float4 v = in[i];
    float r[4] = {v.x, v.y, v.z, v.w};
    for (int k = 0; k < 3; ++k)
        for (int j = 0; j < 3 - k; ++j) order(r[j], r[j + 1]);
    for (int j = 0; j < 4; ++j) out[4 * i + j] = r[j];
    float sum = r[0] + r[3];
    bits[i] = *(unsigned int *)&sum ^ __float_as_uint(r[1]);
}

//// lambdas, templates of functors, std::min, auto
#include <algorithm>
struct Square { __device__ float operator()(float x) const { return x * x; } };
template <class F> __device__ float apply(F f, float x, int times) { for (int i = 0; i < times; ++i) x = f(x); return x; }
template <typename T, class Op> __global__ void map(const T *x, T *y, int n, Op op)
{
    auto i = blockIdx.x * blockDim.x + threadIdx.x;
    auto clamp = [&](T v) { return std::min(v, T(n)); };
    if (i < n) y[i] = clamp(apply(op, x[i], 2)) + apply([=](float v) { return v + 1; }, 0.f, 3);
}

//// warp votes, matches, scans and integer arithmetic
__global__ void warp(const int *x, unsigned int *ballots, int *scan, long long *wide)
{
    const unsigned int full = 0xffffffffu;
    int lane = threadIdx.x & (warpSize - 1), v = x[threadIdx.x];
    unsigned int odd = __ballot_sync(full, v & 1);
    int sum = v;
    #pragma unroll
    for (int d = 1; d < 32; d <<= 1) { int up = __shfl_up_sync(full, sum, d); if (lane >= d) sum += up; }
    scan[threadIdx.x] = sum;
    if (lane == 0) ballots[threadIdx.x / 32] = odd;
    short s = (short)(v * 1000);
    wide[threadIdx.x] = (long long)v * v * v - (s >> 2) + (v % 5) + __popc(odd >> lane) + (unsigned char)(v - 3);
}

//// cooperative groups of tiles
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void sums(const float *x, float *out)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
    __shared__ float s[64];
    s[block.thread_rank()] = x[blockIdx.x * blockDim.x + threadIdx.x];
    block.sync();
    float v = s[63 - block.thread_rank()];
    for (int i = tile.size() / 2; i > 0; i /= 2) v += tile.shfl_down(v, i);
    if (tile.thread_rank() == 0) out[blockIdx.x * 4 + tile.meta_group_rank()] = v;
}

//// a sum of all blocks behind a barrier of the grid
#include <cooperative_groups.h>
__device__ int total;
__global__ void fraction(const int *x, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&total, x[i]);
    cooperative_groups::this_grid().sync();
    out[i] = (float)x[i] / total;
}

//// an early return of a device function, a null pointer, an array of one parameter twice
__device__ int find(const int *keys, int n, int key) {
    for (int i = 0; i < n; ++i) if (keys[i] == key) return i;
    return -1;
}
__global__ void lookup(const int *keys, const int *queries, int *out, const float *weights, int n)
{
    int at = find(keys, n, queries[threadIdx.x]);
    if (weights != nullptr && at >= 0) at += (int)weights[at];
    out[threadIdx.x] = at;
}

//// complex numbers of CuPy
#include <cupy/complex.cuh>
extern "C" __global__ void rotate(const complex<float> *z, complex<float> *out, float c, float s)
{
    complex<float> w(c, s);
    int i = threadIdx.x;
    out[i] = z[i] * w + complex<float>(1.0f);
}

//// a random generator in registers, macros, shifts and masks
#define ROTL(x, r) (((x) << (r)) | ((x) >> (32 - (r))))
#define ROUND(v0, v1, v2, v3) do { v0 += v1; v1 = ROTL(v1, 5) ^ v0; v2 += v3; v3 = ROTL(v3, 8) ^ v2; } while (0)
__global__ void mix(const unsigned int *seed, unsigned long long *out)
{
    unsigned int s[4] = {seed[threadIdx.x], 0x736f6d65u, 0x646f7261u, 'x'};
    for (int i = 0; i < 4; i++) ROUND(s[0], s[1], s[2], s[3]);
    out[threadIdx.x] = ((unsigned long long)s[0] << 32 | s[1]) ^ ((unsigned long long)s[3] * s[2]);
}

//// sums, counts and flags in one dynamic shared array
extern __shared__ __align__(16) unsigned char memory[];
__global__ void moments(const float *x, double *sums, int *counts, int n)
{
    double *sum = (double *)memory;
    int *count = (int *)(sum + blockDim.x);
    char *flag = (char *)(count + blockDim.x);
    int t = threadIdx.x;
    sum[t] = t < n ? x[t] : 0.0;
    count[t] = t < n;
    flag[t] = t & 1;
    __syncthreads();
    int other = blockDim.x - 1 - t;
    sums[t] = sum[t] + sum[other] + flag[other];
    counts[t] = count[other];
    __syncthreads();
    if (t == 0) atomicAdd(&count[0], 5);
    __syncthreads();
    if (t == 1) counts[blockDim.x] = count[0];
}

//// vector loads of a float pointer, bytes as words, and a struct in constant memory
struct Limits { short low; unsigned char shift; double scale; };
__constant__ Limits limits = {3, 2, 0.5};
__global__ void mixed(const float *x, const unsigned char *bytes, float *out, unsigned int *words, int n)
{
    __shared__ float tile[4 * 32];
    int i = threadIdx.x;
    float4 v = reinterpret_cast<const float4 *>(x)[i];
    *reinterpret_cast<float4 *>(&tile[4 * i]) = v;
    __syncthreads();
    float2 pair = *(float2 *)(tile + 2 * (63 - i));
    out[i] = (pair.x - pair.y) * limits.scale + limits.low;
    unsigned int word = *(const unsigned int *)(bytes + 4 * i);
    words[i] = __byte_perm(word, 0, 0x0123) >> limits.shift;
    unsigned int local[2] = {word, ~word};
    const unsigned char *piece = (const unsigned char *)local;
    if (n > 0) words[i] += piece[(i + n) % 8];
}

//// vectors and structs of vectors by value, and variables as other types
struct Light { float4 colour; short2 at; };
__global__ void shade(float4 scale, uchar4 tint, Light light, unsigned int *out, float *sums)
{
    int i = threadIdx.x;
    unsigned int word = 0x01020304u * i;
    uchar4 c = *(uchar4 *)&word;
    c.x += tint.x; c.w += tint.w;
    out[i] = *reinterpret_cast<unsigned int *>(&c);
    float2 pair = make_float2(i * scale.x, light.colour.w + light.at.y);
    unsigned long long both = *(unsigned long long *)&pair;
    scale.y += __uint_as_float((unsigned int)(both >> 32));
    sums[i] = scale.y + pair.x;
}

//// classes with bases, in registers and in memory
template <class T> class Mean {
protected:
    T sum; int n;
public:
    __device__ void add(T x) { sum += x; n += 1; }
    __device__ T value() const { return sum / n; }
};
template <class T> struct Scaled : public Mean<T> {
    T factor;
    __device__ Scaled(T f) { factor = f; this->sum = 0; this->n = 0; }
    __device__ T result() { this->add(1); return this->value() * factor; }
};
template <class T> __device__ void twice(Mean<T> &mean, T x) { mean.add(x); mean.add(x); }
struct Key { int key; };
struct Entry : Key { int value; };
__global__ void means(const float *x, float *out, Entry *entries, int *values)
{
    Scaled<float> mean(2.0f);
    twice(mean, x[threadIdx.x]);
    mean.add(x[threadIdx.x]);
    out[threadIdx.x] = mean.result();
    Key *key = &entries[threadIdx.x];
    entries[threadIdx.x].value = key->key;
    key->key = 7;
    values[threadIdx.x] = entries[threadIdx.x].value * 10 + entries[threadIdx.x].key;
}

//// parameters of templates that are declared as arrays
template <typename T, int M> __device__ void fill(T (&row)[M], const T column[M], T tile[M][M])
{
    tile[threadIdx.x / M][threadIdx.x % M] = column[threadIdx.x / M] * row[threadIdx.x % M];
}
__global__ void outer(const float *x, float *out)
{
    __shared__ float tile[8][8], row[8];
    if (threadIdx.x < 8) row[threadIdx.x] = x[8 + threadIdx.x];
    __syncthreads();
    fill<float, 8>(row, x, tile);
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x % 8][threadIdx.x / 8];
}

//// coalesced groups, tiles of tiles
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void positive(const int *x, int *out, int *count, int *ranks)
{
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto tile = cg::tiled_partition<8>(warp);
    ranks[block.thread_rank()] = tile.meta_group_rank() * 100 + tile.meta_group_size() * 10 + tile.thread_rank();
    int v = x[block.thread_rank()];
    if (v > 0) {
        cg::coalesced_group active = cg::coalesced_threads();
        int at = 0;
        if (active.thread_rank() == 0) at = atomicAdd(count, active.size());
        out[active.shfl(at, 0) + active.thread_rank()] = v;
    }
}

//// products of 24 bits, positive differences
__global__ void arithmetic(const int *a, const int *b, int *product, unsigned int *positive, float *difference)
{
    int i = threadIdx.x;
    product[i] = __mul24(a[i], b[i]);
    positive[i] = __umul24(a[i], b[i]);
    difference[i] = fdimf(a[i] ? (float)a[i] : __int_as_float(0x7fc00000), (float)b[i]);
}

//// quotients, absolute values and exponentials of complex numbers
#include <pycuda-complex.hpp>
#include <cuComplex.h>
typedef pycuda::complex<double> number;
__global__ void numbers(const number *a, const number *b, number *out, double *size, const cuDoubleComplex *c)
{
    int i = threadIdx.x;
    number z = a[i];
    z /= b[i];
    out[i] = exp(z) + 2.0 * conj(z);
    cuDoubleComplex w = cuCmul(c[i], make_cuDoubleComplex(0, 1));
    size[i] = abs(z) + arg(z) + cuCreal(cuCdiv(w, c[i])) + cuCimag(cuCdiv(w, c[i]));
}

//// in-class initialisers
struct Acc { float sum = 10.f; float best = -3.f; };
__global__ void k(const int *x, int *out) { Acc a; a.sum += 1; a.best = fmaxf(a.best, -5.f); out[0] = a.sum; out[1] = a.best; }

//// constructors and destructors of variables and members
__device__ int live;
struct Guard { __device__ Guard() { live += 1; } __device__ ~Guard() { live -= 1; } };
struct Two { Guard a, b; };
__global__ void k(const int *x, int *out) { { Guard g; out[0] = live; { Two t; out[1] = live; } } out[2] = live; }

//// an average of ints
__global__ void k(const int *x, int *out) {
    out[0] = __hadd(x[0], x[1]); out[1] = __rhadd(x[0], x[1]); out[2] = __uhadd(4000000000u, 4000000002u) == 4000000001u;
}

//// tables of letters
__constant__ char first[5] = "ACGT"; __device__ const char second[] = "CGTA";
__global__ void k(const int *x, int *out) {
    const char third[] = "GTAC";
    for (int i = 0; i < 4; ++i) out[i] = first[i] * 1000000 + second[i] * 10000 + third[i] * 100 + "TACG"[i] - 'A';
}

//// goto, and a switch that falls through
__global__ void k(const int *x, int *out) {
    int n = 0;
    switch (x[0]) { case 1: n += 1; case 2: n += 10; break; default: n = 100; }
    out[0] = n;
    if (x[1]) goto end;
    out[0] = -1;
end:
    out[1] = n + 1;
}

//// virtual functions, second base classes, bit fields, unions
struct A { int n; __device__ virtual int f() { return n; } };
struct B { int m; }; struct C { int o; }; struct D : B, C { int p; };
struct Bits { unsigned low : 3, high : 5; };
union U { int i; float f; unsigned char bytes[4]; };
__global__ void k(const int *x, int *out) {
    A a; a.n = x[0]; out[0] = a.f();
    D d; d.m = 1; d.o = 2; d.p = 3; C &c = d; c.o += 10; out[1] = d.m + d.o + d.p;
    Bits b; b.low = x[0]; b.high = 21; out[2] = b.low * 100 + b.high;
    U u; u.f = 1.0f; out[3] = u.i; out[4] = u.bytes[3];
}

//// function pointers, static variables, lambdas with copies, range-based for
__device__ int twice(int x) { return 2 * x; }
template <class F> __device__ int apply(F f, int x) { return f(x); }
__global__ void k(const int *x, int *out) {
    static int calls;
    int (*f)(int) = twice;
    out[0] = apply(f, x[0]);
    int n = 1; auto copy = [=](int a) { return a + n; }; n = 5;
    out[1] = apply(copy, x[0]) + calls++;
    int a[3] = {1, 2, 3}, sum = 0;
    for (int item : a) sum += item;
    out[2] = sum;
}

//// pointers in arrays, in structs, to variables, null on one path
struct View { const int *data; int size; };
struct Node { int value; Node *next; };
__global__ void k(const int *x, int *out) {
    int own[2] = {5, 6};
    const int *rows[2] = {x, own};
    out[0] = rows[x[0]][1];
    View view = {x + 1, 2};
    out[1] = view.data[view.size - 1];
    int a = 1, b = 2; int *q = &a; if (x[0]) q = &b; *q += 10;
    out[2] = a * 100 + b;
    const int *maybe = x[0] > 5 ? x : nullptr;
    out[3] = maybe == nullptr ? -1 : *maybe;
    Node last = {3, nullptr}, first = {4, &last};
    int sum = 0;
    for (Node *node = &first; node; node = node->next) sum = 10 * sum + node->value;
    out[4] = sum;
}

//// loops whose counter wraps
__global__ void k(const int *x, int *out) {
    int steps = 0, shorts = 0;
    for (unsigned i = x[0]; i < 4294967295u; i += 1u << 30) { steps++; if (steps > 9) break; }
    for (short i = 32766; i > 0; i++) shorts++;
    unsigned char byte = 250; for (int i = 0; i < 10; ++i) byte++;
    out[0] = steps; out[1] = shorts; out[2] = byte;
}

//// addresses as numbers
__global__ void k(const int *x, int *out) {
    out[0] = (unsigned long long)x % 16; out[1] = (unsigned long long)(x + 1) % 16; out[2] = &x[3] - x; out[3] = out > x;
    const int *aligned = (const int *)(((unsigned long long)(x + 1) + 7) & ~7ull);
    out[4] = *aligned;
}

//// structs as vectors, and vectors as structs
struct Pair { short x, y; int t; };
__global__ void k(const int *x, int *out) {
    Pair pair; *(int2 *)&pair = *(const int2 *)x;
    out[0] = pair.y; out[1] = pair.t;
    int4 four; *(long2 *)&four = *(const long2 *)x; out[2] = four.w;
    double bits; ((int *)&bits)[0] = 0; ((int *)&bits)[1] = 0x40000000; out[3] = bits;
}

//// scopes of atomics with their default
__global__ void k(const int *x, int *out) {
    out[0] = 5;
    __nv_atomic_fetch_add(out, 2, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
    out[1] = __nv_atomic_load_n(out, __NV_ATOMIC_RELAXED);
}

//// recursion by tail calls
__device__ int gcd(int a, int b) { return b ? gcd(b, a % b) : a; }
__device__ int factorial(int n) { return n <= 1 ? 1 : n * factorial(n - 1); }
__device__ int find(const int *x, int low, int high, int v) {
    if (low >= high) return -1;
    int middle = (low + high) / 2;
    if (x[middle] == v) return middle;
    if (x[middle] < v) return find(x, middle + 1, high, v);
    return find(x, low, middle, v);
}
__device__ bool odd(int n);
__device__ bool even(int n) { return n == 0 ? true : odd(n - 1); }
__device__ bool odd(int n) { return n == 0 ? false : even(n - 1); }
__global__ void k(const int *x, int *out) {
    out[0] = gcd(x[4], x[6]); out[1] = factorial(x[1]); out[2] = find(x, 0, 8, x[5]); out[3] = even(x[1]); out[4] = odd(x[1]);
}
//// inverse error functions and norms
__global__ void functions(const double *p, double *out) {
    const int i = threadIdx.x, n = blockDim.x;
    double whole;
    out[i] = normcdfinv(p[i]);
    out[n + i] = norm3d(p[i], 1.0, 2.0);
    out[2 * n + i] = rnorm4d(p[i], 1.0, 2.0, 3.0);
    out[4 * n + i] = modf(1000 * p[i], &whole);
    out[3 * n + i] = whole;
    out[5 * n + i] = ilogb(p[i]);
}
//// functions and shuffles of halves
__global__ void halves(const half *x, float *out) {
    const int i = threadIdx.x;
    half2 pair = __halves2half2(x[i], x[i]);
    out[i] = __half2float(hexp(x[i])), out[32 + i] = h2sqrt(pair).y, out[64 + i] = hrcp(x[i]), out[96 + i] = hlog2(x[i]);
    out[128 + i] = hfloor((half)4.0f * x[i]), out[160 + i] = hceil(x[i]);
    out[192 + i] = __shfl_xor_sync(0xffffffffu, pair, 1).x, out[224 + i] = __half2ushort_rn((half)4.0f * x[i]);
}
//// directed rounding
__global__ void directed(double *out, float a, float b, double x, long long n) {
    out[0] = __fadd_rd(a, b), out[1] = __fadd_ru(a, b), out[2] = __fadd_rz(-a, -b), out[3] = __fdiv_ru(a, 3.0f);
    out[4] = __fsqrt_rd(2.0f * a), out[5] = __double2float_ru(x), out[6] = __ll2float_ru(n), out[7] = __ll2double_rd(n);
    out[8] = __ll2double_ru(n), out[9] = __dadd_ru(x, 1e-30), out[10] = __dmul_rd(x, x), out[11] = __uint2float_rz(0xffffffffu);
}
