"""Facts of values: rounded results, indices known at run time, varying conditions, intervals, required capabilities."""

import itertools
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import CompileError, Global, i32
from simtbed.ir import nodes as ir
from simtbed.ir.limits import MOST_OF_COMPILERS, MOST_STATEMENTS
from simtbed.passes.budget import check_calls, trips
from simtbed.passes.capabilities import needed
from simtbed.passes.intervals import _OPERATIONS, Term, evaluated, wraps
from simtbed.passes.rounded_arrays import rounded_arrays
from simtbed.passes.run_time_indices import arrays_indexed_at_run_time
from simtbed.passes.sites import number
from simtbed.passes.varying_control import Group, varying_control
from simtbed.runtime.request import prepare_request

from tests.passes.bodies import kernel_of, lines_of, request_of
from tests.table_checks import check_each, each_row

GROUPS: tuple[Group, ...] = ("warp", "block", "grid")
CONDITIONS = (
    # a condition, and whether threads of a warp, a block, the grid may differ
    ("n > 2", (False, False, False)),
    ("x[0] > 2", (False, False, False)),
    ("x[t] > 2", (True, True, True)),
    ("t < 32", (False, True, True)),
    ("t >= 32", (False, True, True)),
    ("t < 33", (True, True, True)),
    ("t > 32", (True, True, True)),
    ("32 < t", (True, True, True)),
    ("t // 32 == 1", (True, True, True)),
    ("not (t < 32)", (False, True, True)),
    ("n > 2 and t < 32", (False, True, True)),
    ("n > 2 or t < 5", (True, True, True)),
    ("st.thread.y == 0", (False, False, False)),
    ("st.block.x == 0", (False, False, True)),
    ("st.block.y == 0", (False, False, False)),
    ("st.block_dim.x == 3", (False, False, False)),
    ("st.atomic_add(count, 0, 1) > 2", (True, True, True)),
    ("st.any(x[t] > 0)", (False, True, True)),
    ("st.shuffle(x[t], 0) > 0", (True, True, True)),
    ("st.sync_or(x[t] > 0)", (False, False, True)),
    ("s[0] > 2", (False, False, True)),
    ("a[0] > 2", (True, True, True)),
)  # fmt: skip
MEMORY = "s = st.shared(st.i32, 64); s[t] = 1; a = st.local(st.i32, 2); a[0] = x[t]; a[n] = 1; st.sync()"


@pytest.mark.slow
@each_row(CONDITIONS, lambda row: row[0])
def test_conditions_that_vary(row: tuple[str, tuple[bool, ...]]) -> None:
    branch = kernel_of(f"{MEMORY}\nif {row[0]}:\n out[t] = 1")
    loop = kernel_of(f"{MEMORY}\nwhile True:\n out[t] = 1\n if {row[0]}:\n  break")
    for group, varies in zip(GROUPS, row[1], strict=True):
        varying = varying_control(branch, group, (2, 1, 1), (64, 1, 1))
        assert lines_of(branch, varying.conditions) == ({2} if varies else set()), group
        assert lines_of(branch, varying.branches) == {2}
        varying = varying_control(loop, group, (2, 1, 1), (64, 1, 1))
        assert lines_of(loop, varying.conditions) == ({2, 4} if varies else set()), group


@st.device
def early(v: i32) -> i32:
    if v > 3:
        return 1
    w = v + 1
    return w


@st.kernel
def calling(x: Global[i32], out: Global[i32]) -> None:
    t = st.thread.x
    if x[t] > 0:
        out[t] = early(t)
    for i in range(t):
        out[i] = 1


def test_calls_and_exits_that_vary() -> None:
    arguments = np.zeros(64, np.int32), np.zeros(64, np.int32)
    kernel = prepare_request(calling, grid=2, block=64, args=arguments).prepared.program.kernel
    varying = varying_control(kernel, "block", (2, 1, 1), (64, 1, 1))
    assert lines_of(kernel, varying.conditions) == {-8, 1, 3}
    assert lines_of(kernel, varying.calls) == {-8, -7, -6, -5}
    varying = varying_control(kernel, "block", (2, 1, 1), (1, 1, 1))
    assert (varying.conditions, varying.calls) == (frozenset(), frozenset())


ROUNDED: tuple[tuple[str, dict[str, str | None]], ...] = (
    # body, and the bounds in units of the last place, None without a bound
    ("f[t] = f[t] + 1.0", {}),
    ("for i in range(n):\n out[i] = 1", {}),
    ("f[t] = E", {"f": "ulp"}),
    ("f[t] = E; out[t] = 2", {"f": "ulp"}),
    ("f[t] = 2.0 * E", {"f": None}),
    ("out[t] = 1 if E > 2.0 else 0", {"out": None}),
    ("if E > 2.0:\n out[t] = 1", {"out": None}),
    ("out[i32(E)] = 1", {"out": None}),
    ("st.atomic_add(f, 0, E)", {"f": None}),
    ("f[t] = E; out[t] = i32(f[t] > 0.0)", {"f": "ulp", "out": None}),
    ("f[t] = E if n > 0 else 2.0", {"f": "ulp"}),
)  # fmt: skip


@each_row(ROUNDED, lambda row: row[0])
def test_rounded_arrays(row: tuple[str, dict[str, str | None]]) -> None:
    rounded = rounded_arrays(kernel_of(row[0].replace("E", "st.exp(st.f32(x[t]))").replace("i32(", "st.i32(")))
    assert {name: one.bound and one.bound.name for name, one in rounded.items()} == row[1]


INDICES = (
    # body, whether an index of the local array is known at run time only
    ("a[0] = 1; out[t] = a[2]", False),
    ("for i in range(4):\n a[i] = i\nout[t] = a[2]", False),
    ("k = 0; k = 1; out[t] = a[k]", False),
    ("k = 0\nfor i in range(4):\n k = 1\nout[t] = a[k]", False),
    ("for i in range(0, 4, n):\n a[i] = 1", True),
    ("out[t] = a[n]", True),
    ("out[t] = a[t % 4]", True),
    ("a[x[0]] = 1", True),
    ("for i in range(n):\n a[i] = i", True),
    ("for i in range(4):\n k = i + n; a[k] = i", True),
    ("k = 0\nif n > 2:\n k = 1\nout[t] = a[k]", True),
    ("k = 0\nif n > 2:\n k = 1\nelse:\n k = 2\nout[t] = a[k]", True),
    ("k = 0\nfor i in range(n):\n k = 1\nout[t] = a[k]", True),
    ("k = st.atomic_add(count, 0, 1); out[t] = a[k]", True),
    ("k = 0\nif n > 2:\n k = 1; out[t] = a[1]", False),
)  # fmt: skip


def test_local_arrays_indexed_at_run_time() -> None:
    def check(row: tuple[str, bool]) -> None:
        arrays = arrays_indexed_at_run_time(kernel_of(f"a = st.local(st.i32, 4)\n{row[0]}"))
        assert arrays == ({"a"} if row[1] else set())

    check_each(INDICES, check, lambda row: row[0])
    assert arrays_indexed_at_run_time(kernel_of("a = st.shared(st.i32, 64); a[t] = 1")) == frozenset()


ATOMICS = (
    # body, kind of the site, whether lanes could combine their operations
    ("st.atomic_add(count, 0, 1)", "global_reduction", True),
    ("st.atomic_max(count, 0, t)", "global_reduction", True),
    ("st.atomic_exchange(count, 0, t)", "global_atomic", False),
    ("out[t] = st.atomic_add(count, 0, 1)", "global_atomic", True),
    ("out[t] = st.atomic_max(count, 0, 1)", "global_atomic", False),
    ("f[t] = st.atomic_add(f, 0, 1.0)", "global_atomic", False),
    ("st.compare_swap(count, 0, 0, 1)", "global_atomic", False),
    ("s = st.shared(st.i32, 1); st.atomic_add(s, 0, 1)", "shared_atomic", True),
    ("s = st.shared(st.i32, 1); st.compare_swap(s, 0, 0, 1)", "shared_atomic", False),
)  # fmt: skip


@each_row(ATOMICS, lambda row: row[0])
def test_sites_of_atomic_operations(row: tuple[str, str, bool]) -> None:
    _, sites = number(ir.Program(kernel_of(row[0]), ()))
    (site,) = (s for s in sites if "atomic" in s.kind or "reduction" in s.kind)
    assert (site.kind, site.combines) == row[1:]


def test_parents_of_sites() -> None:
    _, sites = number(ir.Program(kernel_of("if n > 2:\n while x[0] > 0:\n  out[t] = 1\nout[0] = 2"), ()))
    branches = [at for at, site in enumerate(sites) if site.action == "branch"]
    parents = [site.parent for site in sites if site.kind == "global_store"]
    assert parents == [branches[1], None] and sites[branches[1]].parent == branches[0]


# ------------------------------------------------------------------ intervals
MEANINGS: dict[str, Any] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "neg": lambda a: -a, "min": min, "max": max,
    "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "and": lambda a, b: a & b, "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b, "cast": lambda a: a, "div": lambda a, b: int(a / b), "rem": lambda a, b: a - b * int(a / b),
}  # fmt: skip
EXACT = {"add", "sub", "mul", "neg", "min", "max", "cast"}
SMALL = (-10000, 10000)


@pytest.mark.parametrize("name", sorted(_OPERATIONS))
def test_intervals_contain_all_results(name: str) -> None:
    """The interval of small operands has every result; of operations without conditions it has no other end."""
    draw = random.Random(name)
    for _ in range(200):
        count = 1 if name in ("neg", "cast") else 2
        ends = [sorted(draw.choices(range(-5, 9), k=2)) for _ in range(count)]
        terms = [Term("type", low, high) for low, high in ends]
        (low, high) = evaluated([*terms, Term(name, *SMALL, tuple(range(count)))], lambda leaf: None)[-1]
        values = itertools.product(*(range(a, b + 1) for a, b in ends))
        defined = [v for v in values if not (name in ("floordiv", "mod", "div", "rem") and v[1] == 0)]
        defined = [v for v in defined if not (name in ("shl", "shr") and v[1] < 0)]
        results = [MEANINGS[name](*v) for v in defined]
        assert all(low <= result <= high for result in results), ends
        if name in EXACT:
            assert (low, high) == (min(results), max(results)), ends


CYCLES = (
    # terms, and the interval of the last one
    ([Term("leaf", 0, 255, name="n"), Term("type", 1, 1), Term("add", 0, 255, (0, 1))], (4, 5)),
    ([Term("leaf", 0, 3, name="n"), Term("type", 1, 1), Term("add", 0, 3, (0, 1))], (0, 3)),
    ([Term("leaf", 0, 9, name="other")], (0, 9)),
    ([Term("type", 0, 0), Term("type", 1, 1), Term("join", -99, 99, (0, 3)), Term("add", -99, 99, (2, 1))], (-99, 99)),
    ([Term("type", 0, 0), Term("type", 1, 1), Term("join", -99, 99, (0, 3)), Term("sub", -99, 99, (2, 1))], (-99, 99)),
    ([Term("type", 2, 5), Term("type", -3, 3), Term("join", -99, 99, (0, 1))], (-3, 5)),
    ([Term("type", 0, 0), Term("type", 1, 1), Term("join", -(2**40), 2**40, (0, 3)), Term("add", -(2**40), 2**40, (2, 1))],
     (-(2**40), 2**40)),
    ([Term("type", 0, 5), Term("type", -9, 9), Term("and", -99, 99, (0, 1))], (0, 5)),
    ([Term("join", -9, 9, (0,))], (-9, 9)),
)  # fmt: skip


@each_row(CYCLES)
def test_intervals_of_terms(row: tuple[list[Term], tuple[int, int]]) -> None:
    assert evaluated(row[0], lambda leaf: (3, 4) if leaf == "n" else None)[-1] == row[1]


def test_counters_that_wrap() -> None:
    """Single values are exact; of intervals the answer is that of their worst values."""
    byte, step = (-128, 127), range(-60, 61)
    for start, stop, increment in itertools.product(range(-128, 128, 17), range(-128, 128, 19), step):
        numbers = range(start, stop, increment or 1)
        expected = bool(numbers) and not -128 <= numbers[-1] + increment <= 127
        assert wraps((start, start), (stop, stop), (increment, increment), byte) == expected
        if expected and abs(increment) > 1:
            assert wraps((start - 1, start), (stop, stop + 1), (increment, increment), byte)
    assert not wraps((0, 5), (6, 100), (2, 28), byte) and wraps((0, 5), (6, 100), (2, 29), byte)
    assert not wraps((-5, 0), (-100, -6), (-29, -2), byte) and wraps((-5, 0), (-100, -6), (-30, -2), byte)
    assert not wraps((0, 100), (0, 100), (1, 1), byte)
    assert not wraps((100, 110), (90, 95), (50, 60), byte) and not wraps((-110, -100), (-95, -90), (-60, -50), byte)
    assert wraps((0, 10), (-90, -60), (-40, -39), byte) and wraps((-10, 0), (60, 90), (38, 39), byte)


def test_a_kernel_without_calls_may_have_more_statements() -> None:
    """Another compiler has inlined and unrolled it."""
    kernel = kernel_of("x[t] = n")
    long = replace(kernel, body=kernel.body[-1:] * (MOST_STATEMENTS + 1))
    check_calls(ir.Program(long, ()))
    with pytest.raises(CompileError, match=f"has at least {MOST_STATEMENTS + 1:,} statements up to here"):
        check_calls(ir.Program(long, (replace(kernel, name="f"),)))
    with pytest.raises(CompileError, match=f"at most {MOST_OF_COMPILERS:,} are compiled"):
        check_calls(ir.Program(replace(kernel, body=kernel.body[-1:] * (MOST_OF_COMPILERS + 1)), ()))


def test_trips() -> None:
    for start, stop, step in itertools.product(range(-3, 4), range(-3, 9), (-3, -2, -1, 1, 2, 3)):
        assert trips(start, stop, step) == len(range(start, stop, step))


CAPABILITIES: tuple[tuple[str, list[Any]], ...] = (
    ("out[t] = x[t]", []),
    ("out[t] = st.dp4a(x[t], x[0], 3)", [("st.dp4a", (6, 1))]),
    ("u[t] = st.match_any(t)", [("st.match_any", (7, 0))]),
    ("out[t] = st.reduce_add(t)", [("st.reduce_add", (8, 0))]),
    ("st.atomic_add(d, 0, 1.0)", [("st.atomic_add on f64", (6, 0))]),
)  # fmt: skip


@each_row(CAPABILITIES, lambda row: row[0])
def test_capabilities(row: tuple[str, list[Any]]) -> None:
    program = request_of(row[0]).program
    requirements, line = needed(program), program.kernel.span.line + 2
    assert [(one.word, one.capability) for one in requirements] == row[1]
    assert all(one.place.endswith(f":{line}") for one in requirements)
