"""Kernels of bodies in CUDA C++, as the passes see them: inlined and unrolled, with sites."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import simtbed as st
from simtbed.ir import nodes as ir
from simtbed.ir.walk import statements
from simtbed.runtime.engine import Request
from simtbed.runtime.request import prepare_request

HEAD = "__global__ void k{}(int *x, int *count, float *f, int *out, int n) {{ int t = threadIdx.x; "


def requests_of(bodies: Sequence[str], before: str = "") -> list[Request]:
    """Return the launches of bodies on 2 blocks of 64 threads, from one text."""
    texts = (f"\n{HEAD.format(number)}\n{body}\n}}" for number, body in enumerate(bodies))
    source = st.cuda_source(before + "".join(texts))
    arrays = (np.zeros(64, np.int32), np.zeros(64, np.int32), np.zeros(64, np.float32), np.zeros(64, np.int32))
    return [prepare_request(source[f"k{n}"], grid=2, block=64, args=(*arrays, 4)) for n in range(len(bodies))]


def kernels_of(bodies: Sequence[str], before: str = "") -> list[ir.Function]:
    """Return the prepared kernels of bodies."""
    return [request.prepared.program.kernel for request in requests_of(bodies, before)]


def lines_of(kernel: ir.Function, positions: Collection[tuple[str, int]]) -> set[int]:
    """Return the lines of positions, counted from that of the kernel's head."""
    return {line - kernel.span.line for _, line in positions}


def first_loop(kernel: ir.Function) -> ir.While | ir.For:
    """Return the first loop of a kernel."""
    return next(s for s in statements(kernel.body) if isinstance(s, ir.While | ir.For))
