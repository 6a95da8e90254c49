"""Launches of arrays that share memory. The elements of two arrays with common bytes are one element for the race checker."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import simtbed as st
from simtbed import Global, i32, i64

from ...runtime.engine import Request
from ...runtime.request import prepare_request

THREADS = 64


@st.kernel
def shifted(x: Global[i32], y: Global[i32]) -> None:
    y[st.thread.x] = x[st.thread.x] + 1


@st.kernel
def widened(x: Global[i32], y: Global[i64]) -> None:
    t = st.thread.x
    x[t] = t
    if t < len(y):
        y[t] += i64(3)


@st.kernel
def counted(x: Global[i32], y: Global[i32]) -> None:
    st.atomic_add(x, 0, 1)
    y[st.thread.x] = 7


@dataclass(frozen=True)
class OverlapCase:
    """A launch. first: elements of the memory before each array. message: of its race; empty for a launch without one."""

    name: str
    kernel: Any
    first: Mapping[str, int]
    message: str = ""

    def request(self) -> Request:
        """Return the launch on copies, with the race checker."""
        memory = np.arange(4 * THREADS, dtype=np.int32)
        x = memory[self.first["x"] :][:THREADS]
        y = memory[self.first["y"] :][:THREADS]
        args = {"x": x, "y": y.view(np.int64) if self.kernel is widened else y}
        request = prepare_request(self.kernel, grid=1, block=THREADS, args=args, in_place=True, check="races")
        return replace(request, in_place=frozenset())


OVERLAPS = (
    OverlapCase("of one element", shifted, {"x": 5, "y": 5}),
    OverlapCase("without common bytes", shifted, {"x": 0, "y": THREADS}),
    OverlapCase("by some elements", shifted, {"x": 0, "y": 2}, "x[32] is read here, and written by another thread as y[30]"),
    OverlapCase("of two types", widened, {"x": 0, "y": 4}, "x[32] is written here, and written by another thread as y[14]"),
    OverlapCase(
        "with an atomic operation", counted, {"x": 5, "y": 0},
        "x[0] is changed by an atomic operation here, and written by another thread as y[5]",
    ),
)  # fmt: skip
