"""Kernels of Triton with one mistake each. The comment in a line states the kind of the finding and the text of its columns."""

# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"
import sys

import torch

import triton
import triton.language as tl


@triton.jit
def missing_mask(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)  # bounds: tl.load(x_ptr + i)
    tl.store(out_ptr + i, x, mask=i < n)


@triton.jit
def wrong_stride(x_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n)
    at = out_ptr + row * (stride + 1) + i
    tl.store(at, x, mask=i < n)  # bounds: tl.store(at, x, mask=i < n)


@triton.jit
def lost_update(x_ptr, out_ptr, n):
    x = tl.load(x_ptr + tl.program_id(0))
    tl.store(out_ptr, tl.load(out_ptr) + x)  # race: tl.load(out_ptr)


@triton.jit
def neighbour(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i + 1, mask=i < n)
    tl.store(x_ptr + i, x, mask=i < n)  # race: tl.store(x_ptr + i, x, mask=i < n)


@triton.jit
def twice(x_ptr, i):
    return tl.load(x_ptr + i) * 2  # uninitialised: tl.load(x_ptr + i)


@triton.jit
def unwritten_memory(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, twice(x_ptr, i), mask=i < n)


def main(name: str) -> None:
    x, out = torch.rand(1000, device="cuda"), torch.zeros(1000, device="cuda")
    total = torch.zeros(1, device="cuda")
    if name == "missing_mask":
        missing_mask[(4,)](torch.rand(1001, device="cuda").half(), out, 1000, BLOCK=512)
    elif name == "wrong_stride":
        wrong_stride[(10,)](x, out, 100, 100, BLOCK=128)
    elif name == "lost_update":
        lost_update[(4,)](x, total, 4)
    elif name == "neighbour":
        neighbour[(1,)](x, 999, BLOCK=1024)
    elif name == "unwritten_memory":
        unwritten_memory[(1,)](torch.empty(256, device="cuda"), out, 256, BLOCK=256)


if __name__ == "__main__":
    main(sys.argv[1])
