//// moves
__global__ void k(const unsigned *x, unsigned *loaded, unsigned *stored, unsigned *turned) {
    __shared__ alignas(16) unsigned short tile[COUNT][8][8], back[8 * COUNT][8];
    int lane = threadIdx.x;
    for (int i = lane; i < 32 * COUNT; i += 32)
        *(unsigned *)&tile[i / 32][i / 4 % 8][i % 4 * 2] = x[i];
    __syncwarp();
    unsigned r[4] = {0, 0, 0, 0};
    unsigned from, to = __cvta_generic_to_shared(back[lane % (8 * COUNT)]);
    asm("{ .reg .u64 a; cvta.to.shared.u64 a, %1; cvt.u32.u64 %0, a; }" : "=r"(from) : "l"((void *)&tile[lane / 8 % COUNT][lane % 8]));
    asm volatile("ldmatrix.sync.aligned.m8n8.xCOUNT TRANS .shared.b16 {NAMES}, [%4];"
        : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]) : "r"(from));
    asm volatile("stmatrix.sync.aligned.xCOUNT TRANS .m8n8.shared.b16 [%4], {NAMES};"
        :: "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(to));
    __syncwarp();
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned[lane]) : "r"(r[0]));
    for (int i = 0; i < COUNT; i++) {
        loaded[COUNT * lane + i] = r[i];
        stored[32 * i + lane] = ((unsigned *)back)[32 * i + lane];
    }
}

//// pipeline of a thread
#include <cuda/pipeline>
__global__ void k(const float4 *x, float4 *out) {
    __shared__ float4 tile[2][32];
    const auto size = cuda::aligned_size_t<alignof(float4)>(sizeof(float4));
    auto pipe = cuda::make_pipeline();
    for (int i = 0; i < 2; i++) {
        pipe.producer_acquire();
        cuda::memcpy_async(&tile[i][threadIdx.x], &x[32 * i + threadIdx.x], size, pipe);
        pipe.producer_commit();
    }
    cuda::pipeline_consumer_wait_prior<PRIOR>(pipe);
    __syncthreads();
    out[threadIdx.x] = tile[0][31 - threadIdx.x];
    out[32 + threadIdx.x] = tile[1][threadIdx.x];
    pipe.consumer_release();
}

//// addresses from the start of shared memory
__global__ void k(const unsigned *x, unsigned *out) {
    extern __shared__ __align__(16) unsigned tile[];
    unsigned first = __cvta_generic_to_shared(tile), d;
    unsigned to = (first + 16 * threadIdx.x) ^ 16;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16; cp.async.commit_group; cp.async.wait_group 0;"
        :: "r"(to), "l"(x + 4 * threadIdx.x));
    __syncthreads();
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(d) : "r"(first + 16 * threadIdx.x));
    out[threadIdx.x] = d;
}

//// wmma
#include <mma.h>
using namespace nvcuda;
typedef MEMORY T; typedef SUM S;
constexpr int SIZES;
template <class LA, class LB>
__device__ void multiply(const T *a, int step_a, const T *b, int step_b, const S *c, S *d, int step_c, wmma::layout_t layout) {
    wmma::fragment<wmma::matrix_a, M, N, K, OPERAND, LA> x;
    wmma::fragment<wmma::matrix_b, M, N, K, OPERAND, LB> y;
    wmma::fragment<wmma::accumulator, M, N, K, SUM> z;
    wmma::load_matrix_sync(x, a, step_a);
    wmma::load_matrix_sync(y, b, step_b);
    wmma::load_matrix_sync(z, c, step_c, layout);
    wmma::mma_sync(z, x, y, z);
    wmma::store_matrix_sync(d, z, step_c, layout);
}
__device__ void all(const T *ar, const T *ac, const T *br, const T *bc, const S *cr, const S *cc, S *d) {
    multiply<wmma::row_major, wmma::col_major>(ar, K, bc, K, cr, d, N, wmma::mem_row_major);
    multiply<wmma::col_major, wmma::row_major>(ac, M, br, N, cc, d + M * N, M, wmma::mem_col_major);
}
__global__ void in_global(const T *ar, const T *ac, const T *br, const T *bc, const S *cr, const S *cc, S *d) {
    all(ar, ac, br, bc, cr, cc, d);
}
__global__ void in_shared(const T *ar, const T *ac, const T *br, const T *bc, const S *cr, const S *cc, S *d) {
    __shared__ alignas(32) T a0[M * K], a1[M * K], b0[K * N], b1[K * N];
    __shared__ alignas(32) S c0[M * N], c1[M * N], d0[2 * M * N];
    for (int i = threadIdx.x; i < M * K; i += 32) a0[i] = ar[i], a1[i] = ac[i];
    for (int i = threadIdx.x; i < K * N; i += 32) b0[i] = br[i], b1[i] = bc[i];
    for (int i = threadIdx.x; i < M * N; i += 32) c0[i] = cr[i], c1[i] = cc[i];
    __syncwarp();
    all(a0, a1, b0, b1, c0, c1, d0);
    __syncwarp();
    for (int i = threadIdx.x; i < 2 * M * N; i += 32) d[i] = d0[i];
}

//// wmma tiled
#include <mma.h>
using namespace nvcuda;
__global__ void product(const half *a, const half *b, float *c, int k, int n) {
    __shared__ alignas(32) half x[16][24], y[16][24];
    int row = 16 * blockIdx.y, column = 16 * blockIdx.x;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> total;
    wmma::fill_fragment(total, 0);
    for (int start = 0; start < k; start += 16) {
        for (int i = threadIdx.x; i < 256; i += 32) {
            x[i / 16][i % 16] = a[(row + i / 16) * k + start + i % 16];
            y[i / 16][i % 16] = b[(start + i / 16) * n + column + i % 16];
        }
        __syncwarp();
        wmma::load_matrix_sync(left, &x[0][0], 24);
        wmma::load_matrix_sync(right, &y[0][0], 24);
        wmma::mma_sync(total, left, right, total);
        __syncwarp();
    }
    for (int i = 0; i < total.num_elements; i++) total.x[i] = 2 * total.x[i] + 1;
    wmma::store_matrix_sync(c + row * n + column, total, n, wmma::mem_row_major);
}

//// wgmma head
__device__ unsigned long long described(const void *tile, unsigned leading, unsigned stride, unsigned long long mode) {
    unsigned long long bits = (__cvta_generic_to_shared(tile) & 0x3FFFF) >> 4;
    return bits | (unsigned long long)(leading >> 4) << 16 | (unsigned long long)(stride >> 4) << 32 | mode << 62;
}

//// wgmma tiled
__global__ void product(const unsigned short *a, const unsigned short *b, float *c, int k) {
    extern __shared__ __align__(1024) unsigned char memory[];
    unsigned short *rows = (unsigned short *)memory, *columns = (unsigned short *)(memory + 8192);
    float d[32];
    #pragma unroll
    for (int n = 0; n < 32; ++n) d[n] = 0.0f;
    for (int start = 0; start < k; start += 64) {
        for (int i = threadIdx.x; i < 64 * 8; i += 128) {
            int row = i / 8, to = row * 8 + ((i % 8) ^ (row % 8));
            ((uint4 *)rows)[to] = *(const uint4 *)(a + row * k + start + i % 8 * 8);
            ((uint4 *)columns)[to] = *(const uint4 *)(b + row * k + start + i % 8 * 8);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        #pragma unroll
        for (int step = 0; step < 4; ++step)
            asm volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0; "
                "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 REGISTERS, %32, %33, p, 1, 1, 0, 0; }"
                : OUTPUTS
                : "l"(described(rows, 16, 1024, 1) + 2 * step), "l"(described(columns, 16, 1024, 1) + 2 * step),
                  "r"(start + step > 0));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        __syncthreads();
    }
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    #pragma unroll
    for (int n = 0; n < 32; ++n) c[(row + n / 2 % 2 * 8) * 64 + column + n / 4 * 8 + n % 2] = d[n];
}

//// wgmma in registers
__global__ void product(const unsigned *a, const unsigned short *b, float *c) {
    __shared__ __align__(128) unsigned short columns[64 * 16];
    float d[32];
    for (int i = threadIdx.x; i < 64 * 16; i += 128) {
        int n = i / 16, k = i % 16;
        columns[n / 8 * 128 + k / 8 * 64 + n % 8 * 8 + k % 8] = b[i];
    }
    for (int n = 0; n < 32; ++n) d[n] = 7.0f;
    __syncthreads();
    const unsigned *own = a + threadIdx.x * 4;
    asm volatile("wgmma.fence.sync.aligned;");
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 REGISTERS, {%32, %33, %34, %35}, %36, 0, -1, 1, 0;"
        : OUTPUTS : "r"(own[0]), "r"(own[1]), "r"(own[2]), "r"(own[3]), "l"(described(columns, 128, 256, 0)));
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;");
    for (int n = 0; n < 32; ++n) c[threadIdx.x * 32 + n] = d[n];
}
