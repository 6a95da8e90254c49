"""Uses of loaded values: proposals of compare-and-swaps, and polls of flags."""

import numpy as np
import simtbed as st
from simtbed import Global, i32
from simtbed.ir import nodes as ir
from simtbed.ir.effects import accesses
from simtbed.passes.load_uses import load_uses
from simtbed.runtime.request import prepare_request

from tests.passes.bodies import kernel_of
from tests.table_checks import each_row

OLD = "old = x[0]\n"
SWAP = "st.compare_swap(x, 0, old, old + 1)"
LOOP = "while True:\n assumed = old\n old = st.compare_swap(x, 0, assumed, V)\n if old == assumed:\n  break\n"
INCREASE = LOOP.replace("V", "assumed + 1")
SWAPS = (
    # body, and for each plain load whether it only proposes the expected value of a compare-and-swap
    (OLD + INCREASE, [True]),
    (f"{OLD}{INCREASE}out[t] = old", [True]),
    (OLD + LOOP.replace("V", "st.bitcast(st.i32, st.bitcast(st.f32, assumed) + 1.0)"), [True]),
    (OLD + LOOP.replace("V", "(assumed & ~255) | ((assumed & 255) + 1 & 255)"), [True]),
    (OLD + INCREASE.replace("old\n", "old\n if assumed >= t:\n  break\n", 1), [True]),
    ("old = st.i32(u[0]); v = old + 1; st.compare_swap(u, 0, st.u32(old), st.u32(v))", [True]),
    ("old = st.i32(st.u8(x[0]))\n" + SWAP, [False]),
    (f"if x[0] >= t:\n return\n{OLD}{INCREASE}", [True, True]),
    (f"out[t] = 1\n{OLD}if old >= 3:\n return\n{SWAP}", [True]),
    (f"for k in range(n):\n old = x[0]\n if old >= 3:\n  break\n {SWAP}", [True]),
    (f"{OLD}if old < 3:\n {SWAP}", [True]),
    (f"{OLD}if {SWAP} == old:\n out[t] = 1", [True]),
    (f"{OLD}out[t] = old\n{INCREASE}", [False]),
    (f"{OLD}if old >= 3:\n return\n{SWAP}\nout[t] = 1", [False]),
    (f"for k in range(n):\n out[k] = 1; old = x[0]\n if old >= 3:\n  break\n {SWAP}", [False]),
    (f"while st.atomic_add(count, 0, 1) < n:\n old = x[0]\n if old >= 3:\n  break\n {SWAP}", [False]),
    (f"old = x[1]\n{SWAP}", [False]),
    (f"old = x[0] + 1\n{SWAP}", [False]),
    (f"{OLD}{SWAP}\nout[t] = old", [False]),
    (f"{OLD}if old == 3:\n out[0] = 1\n{SWAP}", [False]),
    (f"{OLD}v = 0\nif old == 3:\n v = 1\n{SWAP}\nout[t] = v", [False]),
    (f"{OLD}st.compare_swap(out, old, 0, 1)\n{SWAP}", [False]),
    ("while x[0] == 0:\n pass\nst.compare_swap(x, 0, 0, 1)", [False]),
)  # fmt: skip


@each_row(SWAPS, lambda row: row[0])
def test_proposals_of_compare_and_swaps(row: tuple[str, list[bool]]) -> None:
    kernel = kernel_of(row[0])
    loads = [stmt.site for stmt, access in accesses(kernel) if isinstance(access, ir.Load)]
    assert [site in load_uses(kernel).proposals for site in loads] == row[1]


@st.kernel
def volatile_loads(x: Global[i32], flag: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    if st.volatile_load(flag, 0) > 0:  # a poll
        out[t] = 1
    while True:
        value = st.volatile_load(flag, t)  # a poll: its loop waits
        if value > 0:
            break
    out[t] += value
    if st.any(st.volatile_load(flag, 1) > 0):  # a poll
        out[t] = 2
    other = st.volatile_load(x, t ^ 1)  # data
    st.volatile_store(x, t, other)
    index = st.volatile_load(flag, 2)  # data: an index
    out[index] = 1
    for k in range(4):
        out[t] += st.volatile_load(x, k)  # data
    count = 0
    for k in range(st.volatile_load(flag, 3)):  # data: the sum of k
        count += k
    out[t] = count


def test_polls_of_volatile_loads() -> None:
    arguments = tuple(np.zeros(64, np.int32) for _ in range(3))
    kernel = prepare_request(volatile_loads, grid=1, block=64, args=arguments).prepared.program.kernel
    volatile = [s for s, access in accesses(kernel) if isinstance(access, ir.Load) and access.order == "volatile"]
    polls = [stmt.site in load_uses(kernel).polls for stmt in volatile]
    assert polls == [True, True, True, False, False, False, False]
    assert not load_uses(kernel).proposals
