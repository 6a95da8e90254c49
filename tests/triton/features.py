"""Kernels of Triton on elements, with their results by PyTorch. Run with SIMTBED_TRITON=1; the names of kernels may be arguments."""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
import sys

import torch

import triton
import triton.language as tl
from tests.triton.feature_table import DEVICE, feature, main, random, require
from triton.language.extra import libdevice
from triton.tools.tensor_descriptor import TensorDescriptor


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
    floats = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
    for dtype in (*floats, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8):
        for n in (1000, 1003):
            x, y = random(n, dtype=dtype), random(n, dtype=dtype) // 2
            out = torch.empty_like(x)
            _add[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)
            require(out, x + y)


@feature
def views() -> None:
    whole = random(2032)
    for n, first in ((1000, 150), (1008, 160)):  # the second with vectors
        x, y = whole[100 : 100 + n], whole[1::2][:n].contiguous()
        out = torch.zeros(1200, device=0)
        _add[(4,)](x, y, out[first : first + n], n, BLOCK=256)
        require(out[first : first + n], x + y)
        assert not out[:first].any() and not out[first + n :].any()
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
    above = x.abs() + 1
    expected = {
        "exp": x.exp(), "exp2": x.exp2(), "log": above.log(), "log2": above.log2(), "sin": x.sin(), "cos": x.cos(), "sqrt": x.abs().sqrt(),
        "sqrt_rn": x.abs().sqrt(), "rsqrt": above.rsqrt(), "sigmoid": x.sigmoid(), "erf": x.erf(), "floor": x.floor(), "ceil": x.ceil(),
        "abs": x.abs(), "neg": -x, "tanh": x.tanh(), "pow": x.abs() ** 1.5, "log1p": x.abs().log1p(), "rint": x.round(),
        "isnan": x.isnan().float(), "div_rn": 1 / above,
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
    for blocks in (1, 2) if torch.cuda.get_device_capability()[0] == 9 else (1,):
        _descriptor[(2, 2)](x, out, 48, 64, BM=32, BN=32, num_ctas=blocks)
        require(out, x * 2)


@triton.jit
def _boxes(a, b, out, K, BLOCK: tl.constexpr):
    row, column = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, 32):
        total = tl.dot(a.load([row, k]), b.load([k, column]), total)
    out.store([row, column], total.to(tl.float16))


@feature
def tensor_descriptors() -> None:
    """Arguments, which are tensor maps on sm_90. The last boxes end beyond the tensors."""
    a, b = random(104, 72).half(), random(72, 80).half()
    out = torch.zeros(104, 80, device=DEVICE, dtype=torch.float16)
    boxes = ((a, [64, 32]), (b, [32, 64]), (out, [64, 64]))
    described = [TensorDescriptor.from_tensor(tensor, box) for tensor, box in boxes]
    _boxes[(2, 2)](*described, 72, BLOCK=64)
    require(out, (a.float() @ b.float()).half(), 1e-3)


@triton.jit
def _reduced_boxes(x_ptr, described, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    minima = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [BM, BN])
    rows, columns = tl.arange(0, BM)[:, None], tl.arange(0, BN)[None, :]
    x = tl.load(x_ptr + tl.program_id(0) * BM * BN + rows * BN + columns)
    described.atomic_add([0, 0], x)
    minima.atomic_min([0, 0], x)


@feature
def reductions_of_descriptors() -> None:
    """Blocks reduce the same boxes, which end beyond the tensors; with a descriptor of the host and one of the kernel."""
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device=DEVICE))
    halves = [(random(3, 16, 32) * 4).round().half()] * (torch.cuda.get_device_capability()[0] == 9)
    for x in ((random(3, 16, 32) * 100).int(), *halves):
        sums, least = torch.ones(12, 24, device=DEVICE, dtype=x.dtype), torch.full_like(x[0, :12, :24], 50)
        _reduced_boxes[(3,)](x, TensorDescriptor.from_tensor(sums, [16, 32]), least, 12, 24, BM=16, BN=32)
        require(sums, 1 + x.sum(0)[:12, :24].to(x.dtype))
        require(least, x.amin(0)[:12, :24].clamp(max=50))


@triton.jit
def _permute(x_ptr, out_ptr, index_ptr, M: tl.constexpr, N: tl.constexpr):
    i = tl.load(index_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    some, mask = tl.reshape(tl.trans(x_ptr + i), (M * N,)), tl.sort(tl.arange(0, M * N)) >= 0
    tl.store(tl.reshape(tl.trans(out_ptr + i), (M * N,)), tl.load(some, mask=mask), mask=mask)


@feature
def permuted_pointers() -> None:
    """Shared memory has the addresses when the layout of a tensor of pointers changes."""
    x, out = random(256), torch.zeros(256, device=DEVICE)
    _permute[(1,)](x, out, torch.argsort(random(257)[1:]).int(), M=8, N=32)
    require(out, x)


@triton.jit
def _policies(x_ptr, out_ptr, count_ptr, n, BLOCK: tl.constexpr):
    while tl.atomic_add(count_ptr, 0, sem="relaxed") == 0:
        pass
    for k in tl.range(0, 4, num_stages=3):
        i = k * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n, eviction_policy="evict_last")
        y = tl.load(x_ptr + i, mask=i < n, eviction_policy="evict_first", cache_modifier=".cg")
        tl.store(out_ptr + i, x + y, mask=i < n, eviction_policy="evict_first")


class _Wrapper:
    """A pointer argument that is no tensor."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor, self.dtype = tensor, tensor.dtype

    def data_ptr(self) -> int:
        return int(self.tensor.data_ptr())


@feature
def policies_and_wrapped_pointers() -> None:
    x, out = random(1000), torch.empty(1000, device=DEVICE)
    _policies[(1,)](_Wrapper(x), _Wrapper(out), torch.ones(1, dtype=torch.int32, device=DEVICE), 1000, BLOCK=256)
    require(out, x * 2)


@feature
def devices() -> None:
    """Default devices, generators and functions of `torch.cuda` that public programs use."""
    with torch.device("cuda"):
        assert torch.ones(2).is_cuda
    torch.set_default_device("cuda")
    assert torch.ones(2).is_cuda
    torch.set_default_device(None)
    assert not torch.ones(2).is_cuda
    own = torch.Generator(device="cuda").manual_seed(3)
    assert torch.randn(2, device="cuda", generator=own).is_cuda
    torch.manual_seed(5)
    assert torch.cuda.default_generators[0].get_state().view(torch.int64).tolist() == [5, 0]
    torch.cuda.nvtx.range_push("nothing")
    assert torch.empty(3, pin_memory=True).pin_memory().device.type == "cpu"
    functions = [value for value in vars(torch.cuda).values() if callable(value)]
    assert len({id(own) for own in functions if own.__module__.startswith("simtbed")}) > 40


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
