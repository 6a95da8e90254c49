"""Cooperative groups whose lanes are data, shuffles of a variable width, memory functions, and pairs of halves."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import simtbed as st

TEXT = """
#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;
__device__ int total(cg::thread_group group, int *tile, int value) {
    int rank = group.thread_rank();
    for (int i = group.size() / 2; i > 0; i /= 2) {
        tile[rank] = value;
        group.sync();
        if (rank < i) value += tile[rank + i];
        group.sync();
    }
    return value;
}
__global__ void totals(int *out) {
    __shared__ int tile[64];
    cg::thread_block block = cg::this_thread_block();
    int value = total(block, tile, 1);
    if (block.thread_rank() == 0) out[0] = value;
    block.sync();
    cg::thread_group tile16 = cg::tiled_partition(block, 16);
    value = total(tile16, tile + threadIdx.x / 16 * 16, threadIdx.x);
    if (tile16.thread_rank() == 0) out[1 + threadIdx.x / 16] = value;
}
__global__ void partitions(unsigned *out, const int *x) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto label = cg::labeled_partition(warp, x[threadIdx.x]);
    auto half = cg::binary_partition(warp, x[threadIdx.x] > 1);
    unsigned *own = out + 8 * threadIdx.x;
    own[0] = label.lanes;
    own[1] = half.lanes;
    own[2] = label.thread_rank();
    own[3] = cg::inclusive_scan(label, (int)threadIdx.x);
    own[4] = cg::reduce(half, (int)threadIdx.x, cg::plus<int>());
    own[5] = cg::exclusive_scan(warp, 1);
    own[6] = half.ballot(threadIdx.x % 3 == 0);
    own[7] = cg::tiled_partition(label, 2).lanes;
}
__global__ void shuffles(int *out, int width) {
    int value = threadIdx.x, *own = out + 4 * value;
    own[0] = __shfl_sync(-1u, value, 3, width);
    own[1] = __shfl_up_sync(-1u, value, 3, width);
    own[2] = __shfl_down_sync(-1u, value, 3, width);
    own[3] = __shfl_xor_sync(-1u, value, 9, width);
}
__global__ void atomics(int *x) {
    atomicInc((unsigned *)&x[0], 17);
    atomicDec((unsigned *)&x[1], 137);
    atomicMax((unsigned *)&x[2], threadIdx.x + 0x80000000u);
    atomicMax(&x[3], (int)threadIdx.x - 40);
}
struct Twice { int value; __device__ Twice(int x) : value(x * 2) {} };
__global__ void copies(float4 *x, half2 *pairs, unsigned char *raw, int *out) {
    float4 own;
    memcpy(&own, &x[threadIdx.x], sizeof own);
    own.x += 1;
    memcpy(&x[threadIdx.x], &own, sizeof own);
    pairs[threadIdx.x] = pairs[threadIdx.x] * pairs[threadIdx.x] + __halves2half2(1, 2);
    pairs[threadIdx.x] -= __hsub2(pairs[threadIdx.x], __halves2half2(0, 5));
    memset(raw + 4 * threadIdx.x, 7, 4);
    __shared__ char memory[32 * sizeof(Twice)];
    new (memory + threadIdx.x * sizeof(Twice)) Twice(threadIdx.x);
    __syncthreads();
    out[threadIdx.x] = ((Twice *)memory)[31 - threadIdx.x].value;
}
template <class A, class B> __device__ typename std::common_type<A, B>::type sum(A a, B b) { return a + b; }
__global__ void copies_of_groups(const int *x, int *out, int n) {
    __shared__ __align__(16) int tile[64];
    cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, tile, x + n, sizeof(int) * 40);
    cg::memcpy_async(block, (char *)(tile + 40), (const char *)x + 1, 7);
    cg::wait_prior<1>(block);
    out[threadIdx.x] = threadIdx.x < 40 ? tile[39 - threadIdx.x] : 0;
    cg::wait(block);
    if (threadIdx.x == 40) out[40] = tile[40];
}
__global__ void halves(const half2 *x, half2 *pairs, float *out, int n) {
    half2 a = x[0], b = x[1];
    pairs[0] = __hfma2(a, b, a);
    half2 zero(0.f, 0.f);
    pairs[1] = __hmax2(a, b) + zero;
    pairs[2] = __hgt2(a, b);
    pairs[3] = __lowhigh2highlow(a);
    pairs[4] = __lows2half2(a, b);
    pairs[5] = __habs2(-a);
    out[0] = __hbgt2(a, b);
    out[1] = sum(1, 2.5f);
    out[2] = __low2float(__hfma2(__float2bfloat162_rn(1.5f), __floats2bfloat162_rn(1.5f, 2), __float2bfloat162_rn(1.5f)));
    float value;
    if (n > 2) value = __half2int_rn(a.x);
    if (n > 2) out[3] = value;
}"""
SOURCE = st.cuda_source(TEXT)


def test_a_group_without_a_type_is_the_block_or_lanes_of_a_warp() -> None:
    result = st.launch(SOURCE.totals, grid=1, block=64, args=(st.zeros(5, "i32"),), check="all")
    assert result.out.tolist() == [64, *(sum(range(n, n + 16)) for n in (0, 16, 32, 48))]


def bits(lanes: list[int]) -> int:
    return sum(1 << lane for lane in lanes)


def test_partitions_scans_and_reductions() -> None:
    x = np.random.default_rng(1).integers(0, 4, 32).astype(np.int32)
    result = st.launch(SOURCE.partitions, grid=1, block=32, args=(st.zeros(256, "u32"), x), check="all")
    for lane, row in enumerate(result.out.reshape(32, 8).tolist()):
        label = [one for one in range(32) if x[one] == x[lane]]
        half = [one for one in range(32) if (x[one] > 1) == (x[lane] > 1)]
        rank = label.index(lane)
        first = rank // 2 * 2
        assert row == [
            bits(label), bits(half), rank, sum(label[: rank + 1]), sum(half), lane,
            bits([n for n, one in enumerate(half) if one % 3 == 0]), bits(label[first : first + 2]),
        ]  # fmt: skip


def test_a_shuffle_of_a_variable_width() -> None:
    for width in (2, 4, 8, 16, 32):
        out: npt.NDArray[np.int32] = st.launch(
            SOURCE.shuffles, grid=1, block=32, args=(st.zeros(128, "i32"), width)
        ).out
        for lane, row in enumerate(out.reshape(32, 4).tolist()):
            first = lane // width * width
            ends = [first + 3 % width, lane - 3, lane + 3, lane ^ 9]
            inside = [True, lane - 3 >= first, lane + 3 < first + width, (lane ^ 9) < first + width]
            assert row == [end if holds else lane for end, holds in zip(ends, inside, strict=True)], (width, lane)


def test_atomics_of_either_sign_on_one_array() -> None:
    result = st.launch(SOURCE.atomics, grid=1, block=64, args=(np.array([0, 0, 0, -100], np.int32),))
    assert result.x.view(np.uint32).tolist() == [64 % 18, 138 - 64, 0x80000000 + 63, 23]


def test_memory_functions_pairs_and_placed_objects() -> None:
    args = np.ones((32, 4), np.float32), np.full((32, 2), 3, np.float16), st.zeros(128, "u8"), st.zeros(32, "i32")
    result = st.launch(SOURCE.copies, grid=1, block=32, args=args, check="all")
    assert result.x.tolist() == [[2, 1, 1, 1]] * 32 and result.pairs.tolist() == [[0, 5]] * 32
    assert (result.raw == 7).all() and result.out.tolist() == [2 * n for n in reversed(range(32))]


def test_copies_of_groups() -> None:
    x = np.arange(0x1020304, 0x1020304 + 64, dtype=np.int32)
    for n in (4, 2, 1):  # copies of 16, 8 and 4 bytes
        result = st.launch(SOURCE.copies_of_groups, grid=1, block=64, args=(x, st.zeros(64, "i32"), n), check="all")
        assert result.out[:40].tolist() == x[n : n + 40][::-1].tolist()
        assert result.out[40] == int.from_bytes(x.tobytes()[1:5], "little", signed=True)


def test_the_words_of_a_double() -> None:
    text = """__global__ void k(double *x, int *out) {
        out[0] = __double2hiint(x[0]); out[1] = __double2loint(x[0]); x[1] = __hiloint2double(out[0], out[1]);
    }"""
    for value in (-1.1, 3e300, 5e-324):
        args = (np.array([value, 0]), st.zeros(2, "i32"))
        result = st.launch(st.cuda_source(text).k, grid=1, block=1, args=args)
        assert result.x[1] == value and result.out.tolist() == np.array([value]).view(np.int32)[::-1].tolist()


def test_casts_with_a_rounding() -> None:
    modes = {"rn": np.rint, "rd": np.floor, "ru": np.ceil, "rz": np.trunc}
    types = {"int": "int", "uint": "unsigned", "ll": "long long", "ull": "unsigned long long"}
    casts = [(f, t, mode) for f in ("float", "double") for t in types for mode in modes]
    lines = [
        f"o[{n}] = (double)__{f}2{t}_{mode}(({f})x[0]) + (double)__{t}2{f}_rn(1);"
        for n, (f, t, mode) in enumerate(casts)
    ]
    source = st.cuda_source("__global__ void k(const double *x, double *o) {" + "\n".join(lines) + "}")
    for value in (0.5, 1.5, 2.75, 1000001.25):
        out = st.launch(source["k"], grid=1, block=1, args=(np.array([value]), st.zeros(len(casts), "f64"))).o
        assert out.tolist() == [modes[mode](value) + 1 for _, _, mode in casts]


def test_functions_of_pairs_of_halves() -> None:
    x = np.array([[1.5, -2], [1, 5]], np.float16)
    args = {"x": x, "pairs": st.zeros((6, 2), "f16"), "out": st.zeros(4, "f32"), "n": 3}
    result = st.launch(SOURCE.halves, grid=1, block=1, args=args, check="all")
    assert result.pairs.tolist() == [[3, -12], [1.5, 5], [1, 0], [-2, 1.5], [1.5, 1], [1.5, 2]]
    assert result.out.tolist() == [0, 3.5, 3.75, 2]
