"""A family small enough to work out by hand: sums of blocks, right, wrong, and out of bounds."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import simtbed as st
from simtbed import Const, Global, f32, i32
from simtbed.kernels.family import Agreement, Family, Launcher, Variant

BLOCK = 64
Numbers = npt.NDArray[np.float32]


@st.kernel
def tree(x: Global[f32], out: Global[f32], n: i32, REACH: Const) -> None:
    """out[b] = the sum of block b's slice of x. Right where REACH is 32."""
    partial = st.shared(f32, 64)
    t = st.thread.x
    i = st.block.x * 64 + t
    partial[t] = x[i] if i < n else f32(0)
    st.sync()
    width = i32(REACH)
    while width > 0:
        if t < width:
            partial[t] += partial[t + width]
        st.sync()
        width //= 2
    if t == 0:
        out[st.block.x] = partial[0]


REACHES = {"tree": 32, "half-tree": 16, "over-the-end": 64}


def solve(problem: Numbers, variant: str, launcher: Launcher) -> Numbers:
    blocks = -(-len(problem) // BLOCK)
    args: dict[str, Any] = {"x": problem, "out": st.empty(blocks, "f32"), "n": len(problem), "REACH": REACHES[variant]}
    sums: Numbers = launcher.launch(tree, grid=blocks, block=BLOCK, args=args).out
    return sums


def oracle(problem: Numbers) -> Numbers:
    return np.array([part.sum() for part in np.split(problem, range(BLOCK, len(problem), BLOCK))], np.float32)


def compare(answer: Numbers, expected: Numbers) -> Agreement:
    distance = np.abs(answer - expected)
    return Agreement(len(answer), int((distance > 1e-3).sum()), float(distance.max()), 1e-3, "units")


def example() -> Numbers:
    return np.arange(200, dtype=np.float32)


def read(path: Path) -> Numbers:
    return np.array(path.read_text(encoding="utf-8").split(), np.float32)


SUMS: Family[Numbers] = Family(
    name="sums",
    title="Sums of blocks",
    papers=("none",),
    variants={
        name: Variant(name, f"{__name__}:tree", f"reaches {reach} lanes", "none") for name, reach in REACHES.items()
    },
    example=example,
    read=read,
    solve=solve,
    oracle=oracle,
    compare=compare,
)
