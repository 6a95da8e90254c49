"""Kernels of Triton with reductions, scans, orders and matrix products, and their results by PyTorch.

Run with SIMTBED_TRITON=1; the names of kernels may be arguments.
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
import sys
from typing import Any

import torch

import triton
import triton.language as tl
from tests.triton.feature_table import DEVICE, feature, main, random, require


# ------------------------------------------------------------------ reductions and scans
@triton.jit
def _maximum(a, b):
    return tl.maximum(a, b)


@triton.jit
def _reductions(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    K: tl.constexpr = M if AXIS == 1 else N
    i = tl.arange(0, K)
    tl.store(out_ptr + i, tl.sum(x, AXIS))
    tl.store(out_ptr + K + i, tl.max(x, AXIS))
    tl.store(out_ptr + 2 * K + i, tl.argmin(x, AXIS).to(tl.float32))
    tl.store(out_ptr + 3 * K + i, tl.reduce(x, AXIS, _maximum))
    tl.store(out_ptr + 4 * K + i, tl.xor_sum(x.to(tl.int32), AXIS).to(tl.float32))


@feature
def reductions() -> None:
    x = (random(32, 64) * 50).round()
    x = x + torch.arange(64, device=DEVICE) / 128 + torch.arange(32, device=DEVICE)[:, None] / 8192
    for axis, count in ((0, 64), (1, 32)):
        out = torch.empty(5, count, device=DEVICE)
        _reductions[(1,)](x, out, M=32, N=64, AXIS=axis)
        require(out[0], x.sum(axis), 1e-4)
        require(out[1], x.amax(axis))
        require(out[2], x.argmin(axis).float())
        require(out[3], x.amax(axis))
        numbers = x.int()
        total = numbers.select(axis, 0).clone()
        for number in range(1, numbers.shape[axis]):
            total ^= numbers.select(axis, number)
        require(out[4], total.float())


@triton.jit
def _scans(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, tl.cumsum(x, AXIS, reverse=REVERSE))
    tl.store(out_ptr + M * N + offsets, tl.associative_scan(x, AXIS, _maximum, reverse=REVERSE))


@feature
def scans() -> None:
    x = random(16, 64, dtype=torch.int32)
    for axis in (0, 1):
        for reverse in (False, True):
            out = torch.empty(2, 16, 64, dtype=torch.int32, device=DEVICE)
            _scans[(1,)](x, out, M=16, N=64, AXIS=axis, REVERSE=reverse)
            own = x.flip(axis) if reverse else x
            expected = own.cumsum(axis), own.cummax(axis).values
            for row, result in zip(out, expected, strict=True):
                require(row, result.flip(axis) if reverse else result)


@triton.jit
def _orders(x_ptr, out_ptr, count_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.sort(x))
    tl.store(out_ptr + N + i, tl.flip(x))
    tl.store(out_ptr + 2 * N + i, tl.gather(x, (i * 7) % N, 0))
    a, b = tl.split(tl.reshape(x, (N // 2, 2)))
    tl.store(out_ptr + 3 * N + i, tl.interleave(b, a))
    tl.store(out_ptr + 4 * N + i, tl.reshape(tl.trans(tl.reshape(x, (8, N // 8))), (N,)))
    tl.store(count_ptr + tl.arange(0, 32), tl.histogram(x & 31, 32))


@feature
def orders() -> None:
    x, count = random(128, dtype=torch.int32), torch.empty(32, dtype=torch.int32, device=DEVICE)
    out = torch.empty(5, 128, dtype=torch.int32, device=DEVICE)
    _orders[(1,)](x, out, count, N=128)
    pairs = x.reshape(64, 2).flip(1).reshape(128)
    gathered = x[(torch.arange(128, device=DEVICE) * 7) % 128]
    for row, result in zip(
        out, (x.sort().values, x.flip(0), gathered, pairs, x.reshape(8, 16).T.reshape(128)), strict=True
    ):
        require(row, result)
    require(count, torch.bincount(x & 31, minlength=32))


@triton.jit
def _softmax(out_ptr, x_ptr, stride, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + i, mask=i < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * stride + i, e / tl.sum(e, 0), mask=i < n)


@feature
def softmax() -> None:
    x = random(5, 781)
    for warps in (1, 4, 8):
        out = torch.empty_like(x)
        _softmax[(5,)](out, x, 781, 781, BLOCK=1024, num_warps=warps)
        require(out, torch.softmax(x, 1), 1e-5)


# ------------------------------------------------------------------ tensor cores
@triton.jit
def _matmul(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    am,
    ak,
    bk,
    bn,
    cm,
    cn,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    PRECISION: tl.constexpr,
):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a_ptrs = a_ptr + rm[:, None] * am + rk[None, :] * ak
    b_ptrs = b_ptr + rk[:, None] * bk + rn[None, :] * bn
    total = tl.zeros((BM, BN), dtype=tl.int32 if a_ptr.dtype.element_ty == tl.int8 else tl.float32)
    for k in range(tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=rk[None, :] < K - k * BK, other=0)
        b = tl.load(b_ptrs, mask=rk[:, None] < K - k * BK, other=0)
        total = tl.dot(a, b, total, input_precision=PRECISION)
        a_ptrs += BK * ak
        b_ptrs += BK * bk
    tl.store(
        c_ptr + rm[:, None] * cm + rn[None, :] * cn,
        total.to(c_ptr.dtype.element_ty),
        mask=(rm[:, None] < M) & (rn[None, :] < N),
    )


def product(a: Any, b: Any, out: Any, stages: int = 1, precision: str = "tf32", size: int = 32) -> Any:
    (m, k), n = a.shape, b.shape[1]
    strides = (*a.stride(), *b.stride(), *out.stride())
    grid = triton.cdiv(m, size), triton.cdiv(n, size)
    return _matmul[grid](a, b, out, m, n, k, *strides, BM=size, BN=size, BK=32, PRECISION=precision, num_stages=stages)


@feature
def matmul() -> None:
    m, n, k = 64, 96, 128
    for dtype in (torch.float16, torch.bfloat16, torch.int8):
        a, b = random(m, k, dtype=dtype), random(k, n, dtype=dtype)
        out = torch.empty(m, n, dtype=torch.float32 if dtype.is_floating_point else torch.int32, device=DEVICE)
        for stages in (1, 3):
            product(a, b, out, stages)
            require(out, a.double() @ b.double(), 1e-4)
        product(a, b.T.contiguous().T, out, 2)
        require(out, a.double() @ b.double(), 1e-4)


@feature
def matmul_f32() -> None:
    a, b, out = random(64, 64), random(64, 64), torch.empty(64, 64, device=DEVICE)
    for precision, tolerance in (("tf32", 0.05), ("tf32x3", 1e-4), ("ieee", 1e-4)):
        product(a, b, out, 1, precision)
        require(out, a.double() @ b.double(), tolerance)


@feature
def matmul_pipelined() -> None:
    a, b, out = (
        random(128, 256, dtype=torch.float16),
        random(256, 128, dtype=torch.float16),
        torch.empty(128, 128, device=DEVICE),
    )
    product(a, b, out, 4, size=64)
    require(out, a.double() @ b.double(), 1e-4)


@triton.jit(noinline=True)
def _error_function(x):
    return tl.math.erf(x)


@triton.jit
def _scalars(x_ptr, out_ptr):
    at = tl.program_id(0)
    tl.store(out_ptr + at, _error_function(tl.load(x_ptr + at)))


@feature
def functions() -> None:
    for dtype, tolerance in ((torch.float32, 1e-6), (torch.float64, 1e-14)):
        x = random(32, dtype=torch.float32).to(dtype)
        out = torch.empty_like(x)
        assert _scalars[(32,)](x, out).n_regs >= 8
        require(out, torch.erf(x), tolerance)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
