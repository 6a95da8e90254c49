"""Facts of values: rounded results, indices known at run time, varying conditions, slow paths, intervals, required capabilities."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from simtbed.ir import nodes as ir
from simtbed.ir.walk import statements
from simtbed.passes.budget import trips
from simtbed.passes.capabilities import needed
from simtbed.passes.decisions import atoms
from simtbed.passes.intervals import _OPERATIONS, Term, evaluated, wraps
from simtbed.passes.rounded_arrays import rounded_arrays
from simtbed.passes.run_time_indices import arrays_indexed_at_run_time
from simtbed.passes.sites import number
from simtbed.passes.slow_paths import slow_path_ops, slow_path_predicates
from simtbed.passes.varying_control import Group, varying_control
from simtbed.runtime.engine import Request

from tests.passes.bodies import kernels_of, lines_of, requests_of
from tests.table_checks import check_each

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
    ("t / 32 == 1", (True, True, True)),
    ("!(t < 32)", (False, True, True)),
    ("n > 2 && t < 32", (False, True, True)),
    ("n > 2 || t < 5", (True, True, True)),
    ("threadIdx.y == 0", (False, False, False)),
    ("blockIdx.x == 0", (False, False, True)),
    ("blockIdx.y == 0", (False, False, False)),
    ("blockDim.x == 3", (False, False, False)),
    ("atomicAdd(count, 1) > 2", (True, True, True)),
    ("__any_sync(~0u, x[t])", (False, True, True)),
    ("__shfl_sync(~0u, x[t], 0)", (True, True, True)),
    ("__syncthreads_or(x[t])", (False, False, True)),
    ("s[0] > 2", (False, False, True)),
    ("a[0] > 2", (True, True, True)),
)  # fmt: skip
ARRAYS = "__shared__ int s[64]; s[t] = 1; int a[2]; a[0] = x[t]; a[n] = 1; __syncthreads();"


@pytest.mark.slow
def test_conditions_that_vary() -> None:
    branches = kernels_of([f"{ARRAYS}\n\nif ({row[0]}) out[t] = 1;" for row in CONDITIONS])
    loops = kernels_of([f"{ARRAYS}\n\nwhile (true)\n{{ out[t] = 1;\nif ({row[0]}) break; }}" for row in CONDITIONS])

    def check(row: tuple[tuple[str, tuple[bool, ...]], ir.Function, ir.Function]) -> None:
        (_, expected), branch, loop = row
        for group, varies in zip(GROUPS, expected, strict=True):
            found = varying_control(branch, group, (2, 1, 1), (64, 1, 1))
            assert lines_of(branch, found.conditions) == ({3} if varies else set()), group
            assert lines_of(branch, found.branches) == {3}
            found = varying_control(loop, group, (2, 1, 1), (64, 1, 1))
            assert lines_of(loop, found.conditions) == ({3, 5} if varies else set()), group

    check_each(zip(CONDITIONS, branches, loops, strict=True), check, lambda row: row[0][0])


EARLY = """__device__ int early(int v) {
    if (v > 3) return 1;
    v = v + 1;
    return v; }
"""


def test_calls_and_exits_that_vary() -> None:
    (kernel,) = kernels_of(["if (x[t])\nout[t] = early(t);\nfor (int i = 0; i < t; i++) out[i] = 1;"], EARLY)
    found = varying_control(kernel, "block", (2, 1, 1), (64, 1, 1))
    assert lines_of(kernel, found.conditions) == {-4, 1, 3}
    assert lines_of(kernel, found.calls) == {-4, -3, -2}
    found = varying_control(kernel, "block", (2, 1, 1), (1, 1, 1))
    assert (found.conditions, found.calls) == (frozenset(), frozenset())


ROUNDED: tuple[tuple[str, dict[str, str | None]], ...] = (
    # body, and the bounds in units of the last place, None without a bound
    ("f[t] = f[t] + 1;", {}),
    ("for (int i = 0; i < n; i++) out[i] = 1;", {}),
    ("f[t] = E;", {"f": "ulp"}),
    ("f[t] = E; out[t] = 2;", {"f": "ulp"}),
    ("f[t] = 2 * E;", {"f": None}),
    ("out[t] = E > n;", {"out": None}),
    ("if (E > n) out[t] = 1;", {"out": None}),
    ("out[(int)E] = 1;", {"out": None}),
    ("atomicAdd(f, E);", {"f": None}),
    ("f[t] = E; out[t] = f[t] > 0;", {"f": "ulp", "out": None}),
    ("f[t] = n ? E : 2.0f;", {"f": "ulp"}),
)  # fmt: skip


def test_rounded_arrays() -> None:
    def check(row: tuple[tuple[str, dict[str, str | None]], ir.Function]) -> None:
        found = rounded_arrays(row[1])
        assert {name: one.bound and one.bound.name for name, one in found.items()} == row[0][1]

    check_each(
        zip(ROUNDED, kernels_of([row[0].replace("E", "expf((float)x[t])") for row in ROUNDED]), strict=True),
        check,
        lambda row: row[0][0],
    )


INDICES = (
    ("a[0] = 1; out[t] = a[2];", False),
    ("for (int i = 0; i < 4; i++) a[i] = i; out[t] = a[2];", False),
    ("int k = 0; k = 1; out[t] = a[k];", False),
    ("int k = 0; for (int i = 0; i < 4; i++) k = 1; out[t] = a[k];", False),
    ("for (int i = 0; i < 4; i += n) a[i] = 1;", True),
    ("out[t] = a[n];", True),
    ("out[t] = a[t % 4];", True),
    ("a[x[0]] = 1;", True),
    ("for (int i = 0; i < n; i++) a[i] = i;", True),
    ("for (int i = 0; i < 4; i++) { int k = i + n; a[k] = i; }", True),
    ("int k = 0; if (n > 2) k = 1; out[t] = a[k];", True),
    ("int k = 0; if (n > 2) k = 1; else k = 2; out[t] = a[k];", True),
    ("int k = 0; for (int i = 0; i < n; i++) k = 1; out[t] = a[k];", True),
    ("int k = atomicAdd(count, 1); out[t] = a[k];", True),
    ("int k = 0; if (n > 2) { k = 1; out[t] = a[1]; }", False),
)  # fmt: skip


def test_local_arrays_indexed_at_run_time() -> None:
    def check(row: tuple[tuple[str, bool], ir.Function]) -> None:
        assert arrays_indexed_at_run_time(row[1]) == ({"a"} if row[0][1] else set())

    *kernels, shared = kernels_of([*(f"int a[4]; {row[0]}" for row in INDICES), "__shared__ int a[64]; a[t] = 1;"])
    check_each(zip(INDICES, kernels, strict=True), check, lambda row: row[0][0])
    assert arrays_indexed_at_run_time(shared) == frozenset()


DIVISIONS: tuple[tuple[str, list[str]], ...] = (
    # an expression, and its divisions and roots with the number of their conditions
    ("f[t] / f[0]", ["fdiv"]),
    ("1.0f / f[0]", ["fdiv"]),
    ("sqrtf(f[t])", ["sqrt"]),
    ("f[t] * f[0]", []),
    ("x[t] / n", []),
    ("(long long)x[t] / n", ["div"]),
    ("(unsigned long long)x[t] % (unsigned long long)n", ["mod"]),
    ("(long long)x[t] / 3", []),
    ("(double)x[t] / f[0]", ["fdiv"]),
    ("sqrtf(f[t] / f[1])", ["fdiv", "sqrt"]),
)  # fmt: skip


def test_slow_paths() -> None:
    def check(row: tuple[tuple[str, list[str]], ir.Function]) -> None:
        stmts = list(statements(row[1].body))
        assert [op.name for stmt in stmts for op in slow_path_ops(stmt)] == row[0][1]
        assert [len(slow_path_predicates(s)) for s in stmts] == [len(slow_path_ops(s)) for s in stmts]

    kernels = kernels_of([f"f[t] = {row[0]};" for row in DIVISIONS])
    check_each(zip(DIVISIONS, kernels, strict=True), check, lambda row: row[0][0])


ATOMICS = (
    # body, kind of the site, whether lanes could combine their operations
    ("atomicAdd(count, 1);", "global_reduction", True),
    ("atomicMax(count, t);", "global_reduction", True),
    ("atomicExch(count, t);", "global_atomic", False),
    ("out[t] = atomicAdd(count, 1);", "global_atomic", True),
    ("out[t] = atomicMax(count, 1);", "global_atomic", False),
    ("f[t] = atomicAdd(f, 1.0f);", "global_atomic", False),
    ("atomicCAS(count, 0, 1);", "global_atomic", False),
    ("__shared__ int s; atomicAdd(&s, 1);", "shared_atomic", True),
    ("__shared__ int s; atomicCAS(&s, 0, 1);", "shared_atomic", False),
)  # fmt: skip


def test_sites_of_atomic_operations() -> None:
    def check(row: tuple[tuple[str, str, bool], ir.Function]) -> None:
        _, sites = number(ir.Program(row[1], ()))
        (site,) = (s for s in sites if "atomic" in s.kind or "reduction" in s.kind)
        assert (site.kind, site.combines) == row[0][1:]

    check_each(zip(ATOMICS, kernels_of([row[0] for row in ATOMICS]), strict=True), check, lambda row: row[0][0])


def test_parents_of_sites() -> None:
    (kernel,) = kernels_of(["if (n > 2) { while (x[0]) out[t] = 1; } out[0] = 2;"])
    _, sites = number(ir.Program(kernel, ()))
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


def test_intervals_of_terms() -> None:
    def check(row: tuple[list[Term], tuple[int, int]]) -> None:
        assert evaluated(row[0], lambda leaf: (3, 4) if leaf == "n" else None)[-1] == row[1]

    check_each(CYCLES, check)


def test_counters_that_wrap() -> None:
    """Single values are exact; of intervals the answer is that of their worst values."""
    byte, step = (-128, 127), range(-60, 61)
    for start, stop, by in itertools.product(range(-128, 128, 17), range(-128, 128, 19), step):
        numbers = range(start, stop, by or 1)
        expected = bool(numbers) and not -128 <= numbers[-1] + by <= 127
        assert wraps((start, start), (stop, stop), (by, by), byte) == expected
        if expected and abs(by) > 1:
            assert wraps((start - 1, start), (stop, stop + 1), (by, by), byte)
    assert not wraps((0, 5), (6, 100), (2, 28), byte) and wraps((0, 5), (6, 100), (2, 29), byte)
    assert not wraps((-5, 0), (-100, -6), (-29, -2), byte) and wraps((-5, 0), (-100, -6), (-30, -2), byte)
    assert not wraps((0, 100), (0, 100), (1, 1), byte)
    assert not wraps((100, 110), (90, 95), (50, 60), byte) and not wraps((-110, -100), (-95, -90), (-60, -50), byte)
    assert wraps((0, 10), (-90, -60), (-40, -39), byte) and wraps((-10, 0), (60, 90), (38, 39), byte)


def test_trips() -> None:
    for start, stop, step in itertools.product(range(-3, 4), range(-3, 9), (-3, -2, -1, 1, 2, 3)):
        assert trips(start, stop, step) == len(range(start, stop, step))


CAPABILITIES: tuple[tuple[str, list[Any]], ...] = (
    ("out[t] = x[t];", []),
    ("out[t] = __dp4a(x[t], x[0], 3);", [("st.dp4a", (6, 1))]),
    ("out[t] = __match_any_sync(~0u, t);", [("st.match_any", (7, 0))]),
    ("out[t] = __reduce_add_sync(~0u, t);", [("st.reduce_add", (8, 0))]),
    ("atomicAdd((double *)f, 1.0);", [("st.atomic_add on f64", (6, 0))]),
)  # fmt: skip


def test_capabilities() -> None:
    def check(row: tuple[tuple[str, list[Any]], Request]) -> None:
        found, line = needed(row[1].program), row[1].program.kernel.span.line + 1
        assert [(one.word, one.capability) for one in found] == row[0][1]
        assert all(one.place.endswith(f":{line}") for one in found)

    requests = requests_of([row[0] for row in CAPABILITIES])
    check_each(zip(CAPABILITIES, requests, strict=True), check, lambda row: row[0][0])


CONDITIONS_OF_ATOMS = (
    ("n > 1", 0),
    ("n > 1 && t < 5", 2),
    ("!(n > 1 && (t < 5 || t == 7))", 3),
)


def test_atomic_conditions() -> None:
    def check(row: tuple[tuple[str, int], ir.Function]) -> None:
        values = [s.value for s in statements(row[1].body) if isinstance(s, ir.Let) and isinstance(s.value, ir.Op)]
        assert max(len(atoms(value)) for value in values) == row[0][1]

    kernels = kernels_of([f"bool c = {row[0]}; out[t] = c;" for row in CONDITIONS_OF_ATOMS])
    check_each(zip(CONDITIONS_OF_ATOMS, kernels, strict=True), check, lambda row: row[0][0])
