"""Kernels of bodies in the kernel language, as the passes see them: inlined and unrolled, with sites.

The language is read without a compiler that rewrites it: the nodes of a kernel are those that its body states.
"""

from collections.abc import Collection

import simtbed as st
from simtbed.ir import nodes as ir
from simtbed.ir.walk import statements
from simtbed.runtime.engine import Request
from simtbed.runtime.request import prepare_request

ARRAYS = {"x": st.i32, "count": st.i32, "u": st.u32, "f": st.f32, "d": st.f64, "out": st.i32}
HEAD = f"def k({', '.join(f'{name}: st.Global[st.{item}]' for name, item in ARRAYS.items())}, n: st.i32) -> None:"


def request_of(body: str) -> Request:
    """Return the launch of a body on 2 blocks of 64 threads. Its variable t is the thread."""
    lines = ["t = st.thread.x", *body.splitlines()]
    source = "\n".join([HEAD, *(f"    {line}" for line in lines)])
    args = {name: st.zeros(64, item) for name, item in ARRAYS.items()}
    return prepare_request(st.kernel(source=source), grid=2, block=64, args={**args, "n": 4})


def kernel_of(body: str) -> ir.Function:
    """Return the prepared kernel of a body."""
    return request_of(body).prepared.program.kernel


def lines_of(kernel: ir.Function, positions: Collection[tuple[str, int]]) -> set[int]:
    """Return the lines of positions in the body of a kernel, counted from 1."""
    return {line - kernel.span.line - 1 for _, line in positions}


def first_loop(kernel: ir.Function) -> ir.While | ir.For:
    """Return the first loop of a kernel."""
    return next(s for s in statements(kernel.body) if isinstance(s, ir.While | ir.For))
