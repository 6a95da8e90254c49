"""Counters of loops near the limits of their types: the numbers of Python's `range` on every engine, and the printed program."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import simtbed as st
from simtbed import DeviceArray, Global, Kernel, i32, i64, u8, u32, u64
from simtbed.engines.cuda.printer import cuda_source
from simtbed.passes.intervals import Term, evaluated, wraps
from simtbed.runtime.request import prepare_request

from tests.table_checks import check_each

MOST = 5
"""Iterations of each loop before its break."""


@st.kernel
def narrow(out: Global[u64], starts: Global[i32], stops: Global[i32], step: i32) -> None:
    start, stop = starts[st.lane], stops[st.lane]
    seen, total = 0, u64(0)
    for i in range(start, stop, step):
        if seen == MOST:
            break
        seen += 1
        if i % 3 == 1:
            continue
        total = total * 31 + u64(i)
    seen = 0
    for k in range(u32(start), u32(stop), -5):
        if seen == MOST:
            break
        seen += 1
        if k % 3 == 1:
            continue
        total = total * 31 + u64(k)
    out[st.lane] = total


@st.kernel
def wide(out: Global[u64], starts: Global[i64], stops: Global[i64], step: u64) -> None:
    start, stop = starts[st.lane], stops[st.lane]
    seen, total = 0, u64(0)
    for i in range(u64(start), u64(stop), step):
        if seen == MOST:
            break
        seen += 1
        if i % 3 == 1:
            continue
        total = total * 31 + i
    seen = 0
    for k in range(start, stop, -5):
        if seen == MOST:
            break
        seen += 1
        if k % 3 == 1:
            continue
        total = total * 31 + u64(k)
    out[st.lane] = total


def python_total(ranges: list[range]) -> int:
    total = 0
    for numbers in ranges:
        for number in numbers[:MOST]:
            if number % 3 != 1:
                total = (total * 31 + number) % (1 << 64)
    return total


def near_a_limit(draw: random.Random, bits: int) -> list[int]:
    """Return a number for each lane, most of them near the limits of a signed type or near 0."""
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    bases = (low, -1, 0, high, draw.randint(low, high))
    return [min(max(draw.choice(bases) + draw.randint(-20, 20), low), high) for _ in range(32)]


def test_the_iterations_are_those_of_python() -> None:
    draw = random.Random(20)

    def check(row: tuple[Kernel, int, int]) -> None:
        kernel, bits, step = row
        starts, stops = near_a_limit(draw, bits), near_a_limit(draw, bits)
        plain = [range(a, b, step) for a, b in zip(starts, stops, strict=True)]
        unsigned = [range(a % (1 << bits), b % (1 << bits), -5) for a, b in zip(starts, stops, strict=True)]
        if kernel is wide:
            plain = [range(a % (1 << bits), b % (1 << bits), step) for a, b in zip(starts, stops, strict=True)]
            unsigned = [range(a, b, -5) for a, b in zip(starts, stops, strict=True)]
        expected = [python_total([*pair]) for pair in zip(plain, unsigned, strict=True)]
        bounds = {"starts": np.array(starts, f"i{bits // 8}"), "stops": np.array(stops, f"i{bits // 8}")}
        args = {"out": st.zeros(32, u64), **bounds, "step": step}
        results = [
            st.launch(kernel, grid=1, block=32, args=args, engine=engine, check="all" if engine == "numpy" else ()).out
            for engine in ("numpy", "jit", "python")
        ]
        assert [result.tolist() for result in results] == [expected] * 3

    steps = (2, 7, -3, (1 << 31) - 1, 1 - (1 << 31), -(1 << 31))
    longer = (2, 9, 1 << 63, (1 << 64) - 1)
    check_each([*((narrow, 32, step) for step in steps), *((wide, 64, step) for step in longer)], check)


# ------------------------------------------------------------------ loops of a launch
@st.kernel
def grid_stride(out: Global[i32], begin: i32, n: i32) -> None:
    seen = 0
    for i in range(begin + st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        seen += min(i, 1)
    st.atomic_add(out, 0, seen)


@st.kernel
def halves(out: Global[i32], n: i32) -> None:
    rest = n
    while rest > 1:
        for k in range(0, 2 * rest, 3):
            out[0] = k
        rest //= 2


@st.device
def rows(first: i32, ends: Global[i32], row: i32, out: Global[i32]) -> None:
    for k in range(first, min(ends[row], len(out)), 32):
        out[k] = row


@st.kernel
def rows_by_function(out: Global[i32], ends: Global[i32]) -> None:
    rows(st.lane, ends, st.block.x, out)


@st.kernel
def loaded(out: Global[i32], ends: Global[i32], write: i32) -> None:
    if write > 0:
        out[0] = 0
    for k in range(st.lane, ends[st.block.x], 32):
        out[k] = 0


@st.kernel
def written(out: Global[i32], ends: Global[i32]) -> None:
    ends[st.lane] = 3
    for k in range(st.lane, ends[0], 32):
        out[k] = 0


@st.kernel
def bytes_loaded(out: Global[i32], ends: Global[u8]) -> None:
    for k in range(u32(st.lane), u32(ends[0]), 32):
        out[k] = 0


@st.kernel
def down(out: Global[u32], n: u32) -> None:
    total = u32(0)
    for i in range(n, 0, -2):
        total += i
    out[0] = total


@st.kernel
def swapped(out: Global[i32], ends: Global[i32]) -> None:
    low, high = ends[0], ends[1]
    if high < low:
        low, high = high, low
    for k in range(low, high, 32):
        out[k] = 0


TOP = (1 << 31) - 1
SMALL, NEAR = np.array([5, 9], np.int32), np.array([5, TOP - 9], np.int32)


def source(kernel: Kernel, grid: int = 4, **args: Any) -> str:
    out = {"out": st.zeros(64, {down: u32, narrow: u64}.get(kernel, i32))}
    request = prepare_request(kernel, grid=grid, block=32, args={**out, **args})
    return cuda_source(request.program, request.block).text


def rewritten() -> DeviceArray:
    """Return an array that a launch may have changed, on any engine."""
    array = DeviceArray(np.full(32, 9, np.int32))
    source(written, ends=array)
    return array


def test_only_loops_that_may_wrap_are_printed_with_a_limit() -> None:
    def check(row: tuple[Any, ...]) -> None:
        kernel, args, limited = row
        text = source(kernel, **args)
        assert (" ? k" in text or " ? i" in text) == limited, text

    check_each(
        (
            (grid_stride, {"begin": 0, "n": 1000}, False),
            (grid_stride, {"begin": 0, "n": TOP - 127}, False),
            (grid_stride, {"begin": 0, "n": TOP - 126}, True),
            (grid_stride, {"begin": 0, "n": TOP - 126, "grid": 1}, False),
            (halves, {"n": 1000}, False),
            (rows_by_function, {"ends": NEAR}, False),
            (loaded, {"ends": SMALL, "write": 0}, False),
            (loaded, {"ends": NEAR, "write": 0}, True),
            (loaded, {"ends": DeviceArray(SMALL), "write": 0}, False),
            (loaded, {"ends": DeviceArray(NEAR), "write": 0}, True),
            (loaded, {"ends": rewritten(), "write": 0}, True),
            (loaded, {"ends": st.zeros(2, i32), "write": 0}, False),
            (loaded, {"ends": st.empty(2, i32), "write": 0}, True),
            (loaded, {"ends": st.full(2, TOP, i32), "write": 0}, True),
            (written, {"ends": SMALL}, True),
            (bytes_loaded, {"ends": np.full(2, 255, np.uint8)}, False),
            (down, {"n": 6}, False),
            (down, {"n": 5}, True),
            (swapped, {"ends": SMALL}, False),
            (swapped, {"ends": NEAR}, True),
        ),
        check,
    )


def test_loops_with_a_limit_as_they_are_printed(golden: Callable[[str, str], None]) -> None:
    texts = (
        source(grid_stride, begin=TOP - 999, n=TOP),
        source(down, n=5),
        source(narrow, starts=NEAR, stops=NEAR, step=TOP),
    )
    golden("cuda/counter_limits.cu", "\n".join(texts))


# ------------------------------------------------------------------ intervals
def test_intervals_of_cycles_end_at_0_or_the_type_limit() -> None:
    ends = (-100, 100)
    two, start = Term("type", 2, 2), Term("leaf", *ends, name="n")
    halved = (two, start, Term("join", *ends, (1, 3)), Term("floordiv", *ends, (2, 0)))
    doubled = (*halved[:3], Term("add", *ends, (2, 0)))
    assert evaluated(halved, lambda name: (40, 40))[2] == (0, 40)
    assert evaluated(doubled, lambda name: (40, 40))[2] == ends
    assert evaluated(halved, lambda name: None)[2] == ends


def test_wraps() -> None:
    signed, unsigned = (-8, 7), (0, 15)

    def check(row: tuple[Any, ...]) -> None:
        *bounds, type, expected = row
        start, stop, step = ((b, b) if isinstance(b, int) else b for b in bounds)
        assert wraps(start, stop, step, type) == expected

    check_each(
        (
            (0, 7, 3, signed, True),
            (1, 7, 3, signed, False),
            ((0, 1), 7, 3, signed, True),
            ((0, 1), 5, 3, signed, False),
            (7, (-8, 7), 3, signed, False),
            (5, 0, -2, unsigned, True),
            (6, 0, -2, unsigned, False),
            ((0, 15), 1, -2, unsigned, False),
            ((0, 15), 0, (-1, 1), unsigned, False),
            ((0, 15), 0, (-2, 1), unsigned, True),
        ),
        check,
    )
