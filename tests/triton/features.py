"""Kernels of Triton with their results by PyTorch and NumPy. Run with SIMTBED_TRITON=1; the names of kernels may be arguments."""

# mypy: allow-untyped-defs
from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

import torch

import triton
import triton.language as tl
from triton.language.extra import libdevice

DEVICE = triton.runtime.driver.active.get_active_torch_device()
FEATURES: dict[str, Callable[[], None]] = {}


def feature(function: Callable[[], None]) -> Callable[[], None]:
    FEATURES[function.__name__] = function
    return function


def random(*shape: int, dtype: Any = torch.float32) -> Any:
    generator = torch.Generator().manual_seed(sum(shape))
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(DEVICE).to(dtype)
    return torch.randint(-100 if dtype.is_signed else 0, 100, shape, generator=generator).to(DEVICE).to(dtype)


def require(actual: Any, expected: Any, tolerance: float = 0.0) -> None:
    """Raise AssertionError unless two tensors are equal within a relative and an absolute tolerance."""
    torch.testing.assert_close(
        actual, expected.to(actual.device, actual.dtype), rtol=tolerance, atol=tolerance, equal_nan=True
    )


# ------------------------------------------------------------------ elements
@triton.jit
def _add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask, other=1)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@feature
def add() -> None:
    for dtype in (
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.float64,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.uint8,
    ):
        for n in (1000, 1003):
            x, y = random(n, dtype=dtype), random(n, dtype=dtype) // 2
            out = torch.empty_like(x)
            _add[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)
            require(out, x + y)


@feature
def views() -> None:
    whole = random(2000)
    x, y = whole[100:1100], whole[1::2][:1000].contiguous()
    out = torch.zeros(1200, device=DEVICE)
    _add[(4,)](x, y, out[150:1150], 1000, BLOCK=256)
    require(out[150:1150], x + y)
    assert not out[:150].any() and not out[1150:].any()
    _add[(4,)](x, x, x, 1000, BLOCK=256)  # in place
    require(x, 2 * (x / 2))


@triton.jit
def _unary(x_ptr, out_ptr, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=1.0)
    if OP == "exp":
        y = tl.exp(x)
    elif OP == "exp2":
        y = tl.exp2(x)
    elif OP == "log":
        y = tl.log(tl.abs(x) + 1)
    elif OP == "log2":
        y = tl.log2(tl.abs(x) + 1)
    elif OP == "sin":
        y = tl.sin(x)
    elif OP == "cos":
        y = tl.cos(x)
    elif OP == "sqrt":
        y = tl.sqrt(tl.abs(x))
    elif OP == "sqrt_rn":
        y = tl.sqrt_rn(tl.abs(x))
    elif OP == "rsqrt":
        y = tl.rsqrt(tl.abs(x) + 1)
    elif OP == "sigmoid":
        y = tl.sigmoid(x)
    elif OP == "erf":
        y = tl.erf(x)
    elif OP == "floor":
        y = tl.floor(x)
    elif OP == "ceil":
        y = tl.ceil(x)
    elif OP == "abs":
        y = tl.abs(x)
    elif OP == "neg":
        y = -x
    elif OP == "tanh":
        y = libdevice.tanh(x)
    elif OP == "pow":
        y = libdevice.pow(tl.abs(x), 1.5)
    elif OP == "log1p":
        y = libdevice.log1p(tl.abs(x))
    elif OP == "rint":
        y = libdevice.rint(x)
    elif OP == "isnan":
        y = libdevice.isnan(x).to(tl.float32)
    elif OP == "div_rn":
        y = tl.div_rn(1.0, tl.abs(x) + 1)
    tl.store(out_ptr + offsets, y, mask=offsets < n)


@feature
def unary() -> None:
    x = random(500) * 3
    one = x.abs() + 1
    expected = {
        "exp": x.exp(), "exp2": x.exp2(), "log": one.log(), "log2": one.log2(), "sin": x.sin(), "cos": x.cos(), "sqrt": x.abs().sqrt(),
        "sqrt_rn": x.abs().sqrt(), "rsqrt": one.rsqrt(), "sigmoid": x.sigmoid(), "erf": x.erf(), "floor": x.floor(), "ceil": x.ceil(),
        "abs": x.abs(), "neg": -x, "tanh": x.tanh(), "pow": x.abs() ** 1.5, "log1p": x.abs().log1p(), "rint": x.round(),
        "isnan": x.isnan().float(), "div_rn": 1 / one,
    }  # fmt: skip
    for name, result in expected.items():
        out = torch.empty_like(x)
        try:
            _unary[(1,)](x, out, 500, OP=name, BLOCK=512)
        except Exception as error:
            raise AssertionError(f"{name}: {error}") from error
        require(out, result, 1e-5)


@triton.jit
def _integers(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    y = tl.where(y == 0, 7, y)
    tl.store(out_ptr + i, x // y)
    tl.store(out_ptr + BLOCK + i, x % y)
    tl.store(out_ptr + 2 * BLOCK + i, (x & y) | (x ^ 5))
    tl.store(out_ptr + 3 * BLOCK + i, (x << 3) + (x >> 1))
    tl.store(out_ptr + 4 * BLOCK + i, tl.minimum(x, y) - tl.maximum(x, y) * 3)
    tl.store(out_ptr + 5 * BLOCK + i, tl.umulhi(x.to(tl.uint32), y.to(tl.uint32)).to(tl.int32))
    tl.store(out_ptr + 6 * BLOCK + i, tl.clamp(x.to(tl.float32), -5.0, 9.0).to(tl.int32))


@feature
def integers() -> None:
    x, y = random(128, dtype=torch.int32), random(128, 1, dtype=torch.int32)[:, 0].contiguous()
    out = torch.empty(7, 128, dtype=torch.int32, device=DEVICE)
    _integers[(1,)](x, y, out, BLOCK=128)
    y = torch.where(y == 0, 7, y)
    high = (
        (x.long() & 0xFFFFFFFF) * (y.long() & 0xFFFFFFFF)
    ) >> 32  # of up to 64 bits: only small numbers are compared
    expected = (
        torch.div(x, y, rounding_mode="trunc"), torch.fmod(x, y), (x & y) | (x ^ 5), (x << 3) + (x >> 1),
        torch.minimum(x, y) - torch.maximum(x, y) * 3,
    )  # fmt: skip
    for row, result in zip(out, expected, strict=False):
        require(row, result)
    small = (x >= 0) & (y >= 0)
    require(out[5][small], high[small])
    require(out[6], x.clamp(-5, 9))


@triton.jit
def _cast(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i).to(out_ptr.dtype.element_ty))


@feature
def casts() -> None:
    small = torch.float8_e5m2
    types = (torch.float64, torch.float32, torch.float16, torch.bfloat16, small, torch.int32, torch.int8)
    for source in types:
        for target in types:
            if small in (source, target) and not {source, target} <= {
                small,
                torch.float32,
                torch.float16,
                torch.bfloat16,
            }:
                continue  # Triton refuses them
            x = (random(256) * 10).to(source)
            out = torch.empty(256, device=DEVICE).to(target)
            try:
                _cast[(1,)](x, out, BLOCK=256)
            except Exception as error:
                raise AssertionError(f"{source} to {target}: {error}") from error
            expected = x.to(torch.float64).trunc() if not target.is_floating_point else x
            require(out.to(torch.float64), expected.to(target).to(torch.float64))


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


# ------------------------------------------------------------------ atomics, locks, loops
@triton.jit
def _atomics(x_ptr, out_ptr, count_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.atomic_add(out_ptr + i % 4, x, mask=i < n)
    tl.atomic_max(out_ptr + 4, tl.max(tl.where(i < n, x, -10000), 0))
    tl.atomic_min(out_ptr + 5, tl.min(tl.where(i < n, x, 10000), 0))
    tl.atomic_and(out_ptr + 6 + i * 0, x | 3, mask=i < n)
    tl.atomic_or(out_ptr + 7 + i * 0, x & 12, mask=i < n)
    tl.atomic_xor(out_ptr + 8 + i * 0, x, mask=i < n)
    tl.atomic_add(count_ptr, 1)


@feature
def atomics() -> None:
    x = random(500, dtype=torch.int32)
    out, count = (
        torch.tensor([0, 0, 0, 0, -1000, 1000, -1, 0, 0], dtype=torch.int32).cuda(),
        torch.zeros(1, dtype=torch.int32, device=DEVICE),
    )
    _atomics[(4,)](x, out, count, 500, BLOCK=128)
    sums = [x[k::4].sum() for k in range(4)]
    bits_and, bits_or, bits_xor = -1, 0, 0
    for number in x.tolist():
        bits_and, bits_or, bits_xor = bits_and & (number | 3), bits_or | (number & 12), bits_xor ^ number
    require(out, torch.tensor([*sums, x.max(), x.min(), bits_and, bits_or, bits_xor]))
    assert count.item() == 4


@triton.jit
def _float_atomics(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.atomic_add(out_ptr + i % 2, x)
    tl.atomic_max(out_ptr + 2, tl.max(x, 0))
    tl.atomic_min(out_ptr + 3 + i * 0, x)


@feature
def float_atomics() -> None:
    for dtype in (torch.float32, torch.float16):
        x = (random(128) * 8).round().to(dtype)
        out = torch.zeros(4, dtype=dtype, device=DEVICE)
        if dtype is torch.float16:
            _half_atomic[(1,)](x, out, BLOCK=128)
            require(out[:2], torch.stack([x[0::2].sum(), x[1::2].sum()]))
        else:
            _float_atomics[(1,)](x, out, BLOCK=128)
            require(out, torch.stack([x[0::2].sum(), x[1::2].sum(), x.max().clamp(min=0), x.min().clamp(max=0)]))


@triton.jit
def _half_atomic(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + i % 2, tl.load(x_ptr + i))


@triton.jit
def _locked(lock_ptr, total_ptr, x_ptr):
    x = tl.load(x_ptr + tl.program_id(0))
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(total_ptr, tl.load(total_ptr) + x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@feature
def lock() -> None:
    x = random(8).round()
    state, total = torch.zeros(1, dtype=torch.int32, device=DEVICE), torch.zeros(1, device=DEVICE)
    _locked[(8,)](state, total, x, num_warps=1)
    require(total[0], x.sum())


@triton.jit
def _loops(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        if start % 2 == 0:
            total += tl.load(x_ptr + start + i, mask=start + i < n, other=0.0)
    for k in tl.static_range(3):
        total += k
    steps = 0
    while steps * steps < n:
        steps += 1
    tl.store(out_ptr + i, total + steps)


@feature
def loops() -> None:
    x, out = random(1000), torch.empty(64, device=DEVICE)
    _loops[(1,)](x, out, 1000, BLOCK=64)
    require(out, torch.nn.functional.pad(x, (0, 24)).reshape(16, 64).sum(0) + 3 + 32, 1e-5)


@triton.jit
def _random(out_ptr, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.rand(seed, i))
    tl.store(out_ptr + 1024 + i, tl.randn(seed, i))
    tl.store(out_ptr + 2048 + i, (tl.randint(seed, i) % 7).to(tl.float32))


@feature
def random_numbers() -> None:
    out = torch.empty(3, 1024, device=DEVICE)
    _random[(4,)](out, 42, BLOCK=256)
    assert out[0].min() >= 0 and out[0].max() < 1 and abs(out[0].mean() - 0.5) < 0.05
    assert abs(out[1].mean()) < 0.1 and abs(out[1].std() - 1) < 0.1


@triton.jit
def _layer_norm(x_ptr, w_ptr, b_ptr, out_ptr, mean_ptr, n, eps, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0).to(tl.float32)
    mean = tl.sum(x, 0) / n
    centred = tl.where(i < n, x - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / n + eps)
    w, b = tl.load(w_ptr + i, mask=i < n), tl.load(b_ptr + i, mask=i < n)
    tl.store(mean_ptr + row, mean)
    tl.store(out_ptr + row * n + i, centred * scale * w + b, mask=i < n)


@feature
def layer_norm() -> None:
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float16, 1e-2)):
        x, w, b = random(6, 300, dtype=dtype), random(300, dtype=dtype), random(1, 300, dtype=dtype)[0]
        out, mean = torch.empty_like(x), torch.empty(6, device=DEVICE)
        _layer_norm[(6,)](x, w, b, out, mean, 300, 1e-5, BLOCK=512)
        require(out, torch.nn.functional.layer_norm(x.float(), (300,), w.float(), b.float(), 1e-5), tolerance)
        require(mean, x.float().mean(1), 1e-5)


@triton.jit
def _pair(a_ptr, b, tail: tl.constexpr):
    return tl.load(a_ptr) + b, tail


@triton.jit(do_not_specialize=["n"])
def _arguments(pair, scale: tl.float32, flag, n, out_ptr, nothing):
    value, tail = _pair(pair[0], pair[1], 3)
    if flag:
        value = value * scale
    if nothing is None:
        value += n
    tl.store(out_ptr, value + tail)


@feature
def arguments() -> None:
    out = torch.empty(1, device=DEVICE)
    _arguments[(1,)]((torch.full((1,), 2.0, device=DEVICE), 5), 0.5, True, 1, out, None)
    require(out, torch.tensor([2.0 * 0.5 + 5 * 0.5 + 1 + 3]))


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128}, num_warps=2)], key=["n"])
@triton.jit
def _tuned(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


@feature
def autotune() -> None:
    x = random(300)
    out = torch.empty_like(x)
    _tuned[lambda meta: (triton.cdiv(300, meta["BLOCK"]),)](x, out, 300)
    require(out, x * 2)


@triton.jit
def _prints(x_ptr):
    i = tl.arange(0, 4)
    x = tl.load(x_ptr + i)
    tl.device_print("x:", x)
    tl.device_assert(x < 10, "x is too large")


@feature
def prints() -> None:
    _prints[(1,)](torch.arange(4, device=DEVICE), num_warps=1, debug=True)


@triton.jit
def _descriptor(x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BM, BN])
    target = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [BM, BN])
    at = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    target.store(at, source.load(at) * 2)


@feature
def descriptors() -> None:
    x = random(48, 64)
    out = torch.empty_like(x)
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device=DEVICE))
    _descriptor[(2, 2)](x, out, 48, 64, BM=32, BN=32)
    require(out, x * 2)


def main(names: list[str]) -> int:
    """Run the features with these names, or all; return the number of failures."""
    failures = 0
    for name, function in FEATURES.items():
        if names and name not in names:
            continue
        try:
            function()
            print(f"equal: {name}", flush=True)
        except Exception as error:
            failures += 1
            print(f"failed: {name}: {type(error).__name__}: {str(error).strip()[:600]}", flush=True)
            if names:
                traceback.print_exc()
    return failures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
