"""Planted regressions: each must be over its budget, and the difference must name the kernel's line that costs more."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import simtbed as st
from simtbed.testing.budgets import Verdict, compiled, judged
from simtbed.testing.figures import Figures, figures
from simtbed.testing.source_text import kernel_from_source

from tests.compilers import needs_nvcc
from tests.table_checks import check_each

HEAD = "import simtbed as st\nfrom simtbed import Global, f32, f64, i32\n\n\n@st.kernel\n"
N = 4096
BLOCKS = {"saxpy": 64, "tile": 64, "total": 64, "polynomial": 64, "wide": 1024}
"""Threads of a block; with 1,024 threads each one has 64 registers."""
KERNELS = {
    "saxpy": """def saxpy(x: Global[f32], y: Global[f32]):
    i = st.block.x * st.block_dim.x + st.thread.x
    y[i] = 2.0 * x[i]
""",
    "tile": """def tile(x: Global[f32], y: Global[f32]):
    t = st.thread.x
    s = st.shared(f32, 64, 33)
    for k in range(32):
        s[t, k] = x[k * 64 + t]
    st.sync()
    for k in range(32):
        y[k * 64 + t] = s[t, k]
""",
    "total": """def total(x: Global[f32], y: Global[f32]):
    t = st.thread.x
    s = st.shared(f32, 64)
    s[t] = x[st.block.x * 64 + t]
    st.sync()
    for k in st.unroll(range(6)):
        if t < (32 >> k):
            s[t] = s[t] + s[t + (32 >> k)]
        st.sync()
    if t == 0:
        y[st.block.x] = s[0]
""",
    "polynomial": """def polynomial(x: Global[f32], y: Global[f32]):
    i = st.block.x * st.block_dim.x + st.thread.x
    v = x[i]
    r = v
    for k in st.unroll(range(8)):
        r = r * v + 1.0
    y[i] = r
""",
    "wide": """def wide(x: Global[f32], y: Global[f32]):
    i = st.block.x * st.block_dim.x + st.thread.x
    kept = st.registers(f32, 32)
    s = f32(1)
    for k in st.unroll(range(32)):
        kept[k] = x[(i + k) % 4096]
        s = s * kept[k] + 1.0
    for k in st.unroll(range(32)):
        s = s * s + kept[k]
    y[i] = s
""",
}


class Planted(NamedTuple):
    """A planted regression. old, new: the edit. line: start of the changed line's text; of a removed line, the old text."""

    kernel: str
    old: str
    new: str
    line: str


STRIDES = [
    Planted("saxpy", "x[i]", f"x[i * {n} % 4096]", f"y[i] = 2.0 * x[i * {n}")
    for n in (2, 3, 4, 5, 6, 7, 8, 16, 31, 32, 64)
]
STORED = [Planted("saxpy", "y[i] =", f"y[i * {n} % 4096] =", f"y[i * {n}") for n in (3, 5, 7, 9, 11, 13, 15, 31, 33)]
OFFSETS = [
    Planted("saxpy", "x[i]", f"x[(i + {n}) % 4096]", f"y[i] = 2.0 * x[(i + {n})")
    for n in (1, 2, 3, 5, 7, 9, 17, 33, 63, 100, 1001)
]
PADDING = [Planted("tile", "64, 33", f"64, {n}", "s[t, k] =") for n in (32, 34, 36, 38, 40, 42, 44, 46, 48, 64)]
BARRIERS = [
    Planted("total", "st.unroll(range(6)):\n", "st.unroll(range(6)):\n        st.sync()\n", "st.sync()"),
    Planted("total", "    if t == 0:", "    st.sync()\n    if t == 0:", "st.sync()"),
    Planted("saxpy", "    y[i]", "    st.sync()\n    y[i]", "st.sync()"),
    Planted(
        "tile", "    for k in range(32):\n        y", "    st.sync()\n    for k in range(32):\n        y", "st.sync()"
    ),
    Planted("tile", "        s[t, k] =", "        st.sync()\n        s[t, k] =", "st.sync()"),
    Planted("polynomial", "    y[i]", "    st.sync()\n    y[i]", "st.sync()"),
    Planted("total", "    st.sync()\n    for", "    for", "st.sync()"),
    Planted("total", "        st.sync()\n", "", "st.sync()"),
    Planted("tile", "    st.sync()\n", "", "st.sync()"),
]
WIDER = [
    Planted(
        "total", "= s[t] + s[t + (32 >> k)]", "= st.f32(st.f64(s[t]) + st.f64(s[t + (32 >> k)]))", "s[t] = st.f32("
    ),
    Planted("tile", "= x[k * 64 + t]", "= st.f32(st.f64(x[k * 64 + t]))", "s[t, k] = st.f32("),
    Planted("saxpy", "2.0 * x[i]", "st.f32(st.f64(2.0) * st.f64(x[i]))", "y[i] = st.f32("),
    Planted(
        "polynomial",
        "        r = r * v + 1.0",
        "        r = st.f32(st.f64(r) * st.f64(v) + st.f64(1.0))",
        "r = st.f32(",
    ),
]
ROLLED = [
    Planted("polynomial", "st.unroll(range(8))", "range(8)", "for k in range(8)"),
    Planted("total", "st.unroll(range(6))", "range(6)", "for k in range(6)"),
]
DIVERGENT = [
    Planted("saxpy", "    y[i] =", f"    if i % {n} == 0:\n        y[i] = 0.0\n    y[i] =", f"if i % {n}")
    for n in (2, 3, 4, 5, 6, 7, 8, 16, 31)
] + [
    Planted(
        "polynomial",
        "        r = r",
        f"        if i % {n} == 1:\n            r = r + 1.0\n        r = r",
        f"if i % {n}",
    )
    for n in (2, 3, 4, 5, 6, 7, 8, 16, 31)
]
TRIPS = [Planted("polynomial", "range(8)", f"range({n})", "r = r * v") for n in (9, 10, 11, 12, 16, 24)] + [
    Planted("tile", "for k in range(32):\n        y", f"for k in range({n}):\n        y", f"for k in range({n}")
    for n in (24, 28, 31)
]
REPEATED = [
    Planted("saxpy", "2.0 * x[i]", f"2.0 * x[i] + x[(i + {n}) % 4096]", "y[i] = 2.0 * x[i] +")
    for n in (0, 1, 8, 32, 64)
] + [
    Planted("polynomial", "    y[i] = r", "    y[i] = r" + f" + st.sqrt(v) * {n}.0" * n, "y[i] = r + st.sqrt")
    for n in (1, 2, 3, 4)
]
CONFLICTS = [
    Planted("total", "s[t] = x[", f"s[t * {n} % 64] = x[", f"s[t * {n}")
    for n in (2, 4, 8, 16, 32, 6, 10, 12, 14, 18, 20, 24)
]
SPILLS = [Planted("wide", "32)", f"{n})", f"kept = st.registers(f32, {n})") for n in (64, 72, 80, 96)]
"""More values than the registers of a thread."""
ALL = [
    *SPILLS, *STRIDES, *STORED, *OFFSETS, *PADDING, *BARRIERS, *WIDER, *ROLLED, *DIVERGENT, *TRIPS, *REPEATED, *CONFLICTS
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@cache
def _launched(name: str, text: str, folder: Path) -> st.Result:
    kernel = kernel_from_source(HEAD + text, folder, name)
    args = {"x": np.arange(N, dtype=np.float32), "y": st.zeros(N, st.f32)}
    block = BLOCKS[name]
    return st.launch(kernel, grid=1 if name == "tile" else N // block, block=block, args=args, faults="return")


def _costs(name: str, text: str, folder: Path) -> tuple[st.Profile, Figures]:
    result = _launched(name, text, folder)
    profile = result.profile()
    kernels = compiled([result.request]) if name == "wide" else None
    return profile, figures(profile, [(BLOCKS[name], result.shared_bytes)], kernels)


def _judged(name: str, text: str, edited: str, folder: Path) -> Verdict | None:
    """Return the verdict of a budget of the kernel after an edit."""
    _, before = _costs(name, text, folder)
    profile, now = _costs(name, edited, folder)
    return judged(before, now, profile, soft=0, hard=0)


def test_there_are_a_hundred() -> None:
    assert len(set(ALL)) == len(ALL) >= 100


def check_planted(planted: Planted, folder: Path) -> None:
    """The edited kernel is over its budget, and the report names the changed line."""
    text, times = KERNELS[planted.kernel], -1 if planted in SPILLS else 1
    assert planted.old in text
    verdict = _judged(planted.kernel, text, text.replace(planted.old, planted.new, times), folder)
    assert verdict is not None and verdict.over
    named = [line.partition(": ")[2] for line in verdict.lines if ".py:" in line or line.startswith("gone: line")]
    assert any(line.startswith(planted.line) or f": {planted.line}" in line for line in named), verdict.lines
    if planted in SPILLS:
        assert any(line.startswith("spill_stores: 0 in the baseline, now ") for line in verdict.lines)


def test_planted_regressions_are_found_and_named(folder: Path) -> None:
    check_each([planted for planted in ALL if planted not in SPILLS], lambda planted: check_planted(planted, folder))


@needs_nvcc
def test_planted_spills_are_found_and_named(folder: Path) -> None:
    check_each(SPILLS, lambda planted: check_planted(planted, folder))


def check_unchanged(name: str, folder: Path) -> None:
    """A comment below the kernel does not change its costs."""
    assert _judged(name, KERNELS[name], "\n".join([KERNELS[name], "# an edit below", ""]), folder) is None


def test_unchanged_kernels_keep_to_their_budgets(folder: Path) -> None:
    check_each([name for name in KERNELS if name != "wide"], lambda name: check_unchanged(name, folder))


@needs_nvcc
def test_an_unchanged_compiled_kernel_keeps_to_its_budget(folder: Path) -> None:
    check_unchanged("wide", folder)
