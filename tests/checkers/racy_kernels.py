"""Racy kernels, each with the number of its findings and the statements of their remedies.

A kernel is a paragraph of TEXTS: a line with its name, the threads of its block and the number of its findings; a line with "->" for
each remedy; its body. A remedy is written "statement place: line", with the text of the line that it precedes or of the header of its
loop. A kernel without one has a race that no barrier orders. Bodies have the thread t and, of a block of vectors, the shared array p.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import simtbed as st
from simtbed import Global, Kernel, Result, Shared, f32, i32  # noqa: F401 - of the texts
from simtbed.errors import Insertion
from simtbed.runtime.registry import EngineName

from tests.checkers.insertion import with_insertions


@dataclass(frozen=True)
class Racy:
    """A kernel, its findings, its remedies, and how it is launched."""

    name: str
    text: str
    kernel: Kernel
    findings: int
    remedies: Sequence[str]
    block: int
    args: Mapping[str, Any]

    def launch(self, engine: EngineName = "numpy") -> Result:
        return st.launch(
            self.kernel, grid=1, block=self.block, args=self.args, check="all", faults="return", engine=engine
        )

    def corrected(self, insertions: Iterable[Insertion]) -> Racy:
        """Return the kernel with statements inserted."""
        return replace(self, kernel=st.kernel(source=with_insertions(self.text, list(insertions))))


VECTORS = {"x": np.arange(1, 129, dtype=np.float32), "out": st.empty(128, "f32")}
MATRICES = {name: np.ones(1024, np.float32) for name in ("x", "y", "out")}


DEVICE_FUNCTIONS = """
@st.device
def put(cells: Shared[f32], t: i32, v: f32) -> None:
    cells[t] = v

@st.device
def get(cells: Shared[f32], t: i32) -> f32:
    return cells[63 - t]

@st.device
def both(cells: Shared[f32], t: i32, v: f32) -> f32:
    cells[t] = v
    w = v * f32(2)
    return cells[63 - t] + w
"""
TEXTS = """
tree: 128 threads, 1 findings
-> st.sync() end of loop: while w > 0:
p[t] = x[t]
st.sync()
w = 64
while w > 0:
    if t < w:
        p[t] += p[t + w]
    w //= 2
if t == 0:
    out[0] = p[0]

tree_without_a_barrier: 128 threads, 2 findings
-> st.sync() before: while w > 0:
-> st.sync() end of loop: while w > 0:
p[t] = x[t]
w = 64
while w > 0:
    if t < w:
        p[t] += p[t + w]
    w //= 2
if t == 0:
    out[0] = p[0]

scan_in_one_statement: 128 threads, 1 findings
p[t] = x[t]
st.sync()
d = 1
while d < 128:
    if t >= d:
        p[t] += p[t - d]
    st.sync()
    d *= 2
out[t] = p[t]

scan_in_two_statements: 128 threads, 1 findings
-> st.sync() before: p[t] += v
-> st.sync() end of loop: for k in range(7):
p[t] = x[t]
st.sync()
for k in range(7):
    v = f32(0)
    if t >= (1 << k):
        v = p[t - (1 << k)]
    p[t] += v
out[t] = p[t]

tiles_overwritten: 256 threads, 1 findings
-> st.sync() end of loop: for k in range(2):
for k in range(2):
    ta[r, c] = x[r * 32 + k * 16 + c]
    tb[r, c] = y[(k * 16 + r) * 32 + c]
    st.sync()
    for j in range(16):
        s += ta[r, j] * tb[j, c]
out[r * 32 + c] = s

tiles_read_early: 256 threads, 1 findings
-> st.sync() before: for j in range(16):
for k in range(2):
    ta[r, c] = x[r * 32 + k * 16 + c]
    tb[r, c] = y[(k * 16 + r) * 32 + c]
    for j in range(16):
        s += ta[r, j] * tb[j, c]
    st.sync()
out[r * 32 + c] = s

tiles_without_a_barrier: 256 threads, 1 findings
-> st.sync() before: for j in st.unroll(range(16)):
-> st.sync() end of loop: for k in range(2):
for k in range(2):
    ta[r, c] = x[r * 32 + k * 16 + c]
    tb[r, c] = y[(k * 16 + r) * 32 + c]
    for j in st.unroll(range(16)):
        s += ta[r, j] * tb[j, c]
out[r * 32 + c] = s

in_a_branch: 64 threads, 1 findings
p[t] = 0
st.sync()
if t < 40:
    p[t] = x[t]
    out[t] = p[39 - t]

in_two_branches: 64 threads, 1 findings
p[t] = 0
st.sync()
if t < 32:
    p[t] = x[t]
else:
    out[t] = p[t - 32]

after_inner_loops: 64 threads, 1 findings
-> st.sync() end of loop: for a in range(2):
for a in range(2):
    for b in range(t, 64, 64):
        p[b] = x[b] + f32(a)
    st.sync()
    for b in range(64):
        s += p[b]
out[t] = s

loop_with_continue: 64 threads, 1 findings
-> st.sync() start of loop: for a in range(4):
for a in range(4):
    p[t] = x[t] + f32(a)
    st.sync()
    s += p[63 - t]
    if a == 1:
        continue
    s += f32(1)
out[t] = s

threads_that_continue: 64 threads, 1 findings
for a in range(4):
    p[t] = x[t] + f32(a)
    st.sync()
    s += p[63 - t]
    if t == 1:
        continue
    s += f32(1)
out[t] = s

loop_by_thread: 64 threads, 1 findings
p[t] = x[t]
st.sync()
k = 0
while k < t:
    p[t] = p[63 - t] + f32(1)
    k += 1
out[t] = f32(k)

two_device_functions: 64 threads, 1 findings
-> st.sync() before: s += get(p, t)
-> st.sync() end of loop: for k in range(3):
for k in range(3):
    put(p, t, x[t] + f32(k))
    s += get(p, t)
out[t] = s

inside_a_device_function: 64 threads, 1 findings
-> st.sync() before: return cells[63 - t] + w
out[t] = both(p, t, x[t])

device_function_in_a_branch: 64 threads, 1 findings
p[t] = 0
st.sync()
if t < 50:
    out[t] = both(p, t, x[t])

three_arrays: 64 threads, 1 findings
-> st.sync() before: a = p[63 - t]
q = st.shared(f32, 64)
r = st.shared(f32, 64)
p[t] = x[t]
q[t] = x[t]
r[t] = x[t]
a = p[63 - t]
b = q[63 - t]
c = r[(t + 1) % 64] + r[(t + 33) % 64]
out[t] = a + b + c

condition_of_a_loop: 64 threads, 1 findings
-> st.sync() end of loop: while p[0] > 0:
if t == 0:
    p[0] = 3
st.sync()
n = 0
while p[0] > 0:
    st.sync()
    if t == 0:
        p[0] -= 1
    n += 1
out[t] = f32(n)

statements_of_several_lines: 64 threads, 1 findings
-> st.sync() before: out[t] = (
p[
    t
] = x[t]
out[t] = (
    p[63 - t]
    + p[(t + 1) % 64]
)

after_returns: 64 threads, 1 findings
-> st.sync() before: out[t] = p[49 - t]
if t >= 50:
    return
p[t] = x[t]
out[t] = p[49 - t]

leader_of_a_warp: 64 threads, 1 findings
-> st.syncwarp() before: out[t] = p[st.warp]
-> st.syncwarp() end of loop: for k in range(3):
for k in range(3):
    if st.lane == 0:
        p[st.warp] = x[t] + f32(k)
    out[t] = p[st.warp]

last_warp_in_single_statements: 64 threads, 3 findings
-> st.syncwarp() before: p[t] += p[t + 16]
-> st.syncwarp() before: p[t] += p[t + 8]
p[t] = x[t]
st.sync()
if t < 32:
    p[t] += p[t + 32]
    p[t] += p[t + 16]
    p[t] += p[t + 8]
if t == 0:
    out[0] = p[0]

loop_with_break: 64 threads, 1 findings
-> st.sync() end of loop: while True:
p[t] = x[t]
st.sync()
n = 0
while True:
    v = p[(t + 40) % 64]
    st.sync()
    p[t] = v + f32(1)
    n += 1
    if n == 4:
        break
out[t] = p[t]

stencil_in_place: 64 threads, 2 findings
-> st.sync() before: for _ in range(4):
-> st.sync() before: p[t + 1] = v
-> st.sync() end of loop: for _ in range(4):
p[t + 1] = x[t]
if t == 0:
    p[0] = 0
    p[65] = 0
for _ in range(4):
    v = p[t] + p[t + 1] + p[t + 2]
    p[t + 1] = v
out[t] = p[t + 1]

broadcast: 64 threads, 1 findings
-> st.sync() end of loop: for k in range(4):
for k in range(4):
    if t == 0:
        p[0] = x[k]
    st.sync()
    s += p[0]
out[t] = s

bitonic_sort: 64 threads, 1 findings
-> st.sync() end of loop: while j > 0:
p[t] = x[63 - t]
st.sync()
k = 2
while k <= 64:
    j = k // 2
    while j > 0:
        partner = t ^ j
        if partner > t:
            a = p[t]
            b = p[partner]
            if (a > b) == ((t & k) == 0):
                p[t] = b
                p[partner] = a
        j //= 2
    k *= 2
out[t] = p[t]

histogram: 64 threads, 2 findings
-> st.sync() before: st.atomic_add(p, t % 8, x[t])
-> st.sync() before: if t < 8:  # result
if t < 8:
    p[t] = 0
st.atomic_add(p, t % 8, x[t])
if t < 8:  # result
    out[t] = p[t]

in_a_branch_of_lanes: 64 threads, 1 findings
if st.lane < 16:
    p[t] = x[t]
    out[t] = p[t ^ 1]

in_a_branch_of_a_warp: 64 threads, 1 findings
-> st.syncwarp() before: out[t] = p[95 - t]
if t >= 32:
    p[t] = x[t]
    out[t] = p[95 - t]
"""
VECTOR_MEMORY = "p = st.shared(f32, 128)"
TILES = "ta = st.shared(f32, 16, 16)\ntb = st.shared(f32, 16, 16)\nc = t % 16\nr = t // 16"
"""Statements before the bodies."""


def _kernels() -> Iterator[Racy]:
    for paragraph in TEXTS.strip().split("\n\n"):
        header, *lines = paragraph.splitlines()
        name, block, findings = re.findall(r"\w+(?=: | threads| findings)", header)
        args, memory = (MATRICES, TILES) if block == "256" else (VECTORS, VECTOR_MEMORY)
        body = "\n".join(["t = st.thread.x", "s = f32(0)", memory, *(one for one in lines if one[:2] != "->")])
        parameters = ", ".join(f"{array}: Global[f32]" for array in args)
        text = f"{DEVICE_FUNCTIONS}def {name}({parameters}) -> None:\n{textwrap.indent(body, '    ')}\n"
        remedies = [one.removeprefix("-> ") for one in lines if one[:2] == "->"]
        yield Racy(name, text, st.kernel(source=text), int(findings), remedies, int(block), args)


RACY = {kernel.name: kernel for kernel in _kernels()}
