"""Results that depend on the order of threads, loops that wait for other threads, and kernels that claim work from a counter."""

from __future__ import annotations

from simtbed.ir import nodes as ir
from simtbed.passes.barriers import changed_arrays, order_matters
from simtbed.passes.thread_order import order_dependent_arrays
from simtbed.passes.waiting import may_stall, sees_others, waits
from simtbed.passes.work_queues import uses_dynamic_work

from tests.passes.bodies import first_loop, kernels_of
from tests.table_checks import check_each

ORDERS: tuple[tuple[str, set[str], bool], ...] = (
    # body, arrays whose contents depend on the order, whether the order of warps must be fixed
    ("out[t] = x[t];", set(), False),
    ("atomicAdd(count, 1); atomicAdd(count, 2);", set(), False),
    ("atomicMax(count, t); atomicMax(count, 5);", set(), False),
    ("atomicAdd(count, 1); atomicMax(count, 5);", {"count"}, True),
    ("atomicAdd(count, 1); atomicMax(x, 5);", set(), False),
    ("atomicAdd(f, 1.0f);", {"f"}, True),
    ("atomicExch(count, t);", {"count"}, True),
    ("atomicInc((unsigned *)count, 7);", {"count"}, True),
    ("atomicDec((unsigned *)count, 7);", {"count"}, True),
    ("atomicCAS(count, 0, t);", {"count"}, True),
    ("out[t] = atomicAdd(count, 1);", {"out"}, True),
    ("out[t] = *(volatile int *)x;", {"out"}, True),
    ("*(volatile int *)out = 1;", set(), True),
    ('if (x[t]) printf("%d", t);', set(), True),
    ("if (atomicAdd(count, 1) == 3) out[0] = 1;", {"out"}, True),
    ("if (atomicAdd(count, 1) == 3) out[0] = 1; x[t] = 1;", {"out"}, True),
    ("int k = atomicAdd(count, 1); for (int i = 0; i < k; i++) out[i] = 1;", {"out"}, True),
    ("int k = atomicAdd(count, 1); while (k > 0) { k--; out[0] = 1; }", {"out"}, True),
    ("for (int i = 0; i < n; i++) { if (atomicAdd(count, 1) > 3) break; out[t] = 1; } x[t] = 1;", {"count", "out"}, True),
    ("for (int i = 0; i < n; i++) if (atomicAdd(count, 1) > 3) return; x[t] = 1;", {"count", "x"}, True),
    ("x[atomicAdd(count, 1)] = 1; out[t] = x[t];", {"x", "out"}, True),
    ("int a[4]; a[n] = atomicAdd(count, 1); out[t] = a[1];", {"a", "out"}, True),
    ("int old = atomicAdd(count, 1); old = 3; x[t] = 1;", set(), True),
)  # fmt: skip


def test_thread_order() -> None:
    def check(row: tuple[tuple[str, set[str], bool], ir.Function]) -> None:
        (_, arrays, fixed), kernel = row
        assert set(order_dependent_arrays(kernel)) == arrays
        assert order_matters(kernel) == fixed

    check_each(zip(ORDERS, kernels_of([row[0] for row in ORDERS]), strict=True), check, lambda row: row[0][0])


def test_the_cause_is_the_first_access() -> None:
    (kernel,) = kernels_of(["atomicExch(count, 1);\nout[t] = atomicAdd(x, 1);\natomicExch(out, 2);"])
    causes = order_dependent_arrays(kernel)
    assert {name: span.line - kernel.span.line for name, span in causes.items()} == {"count": 1, "out": 2}


def test_changed_arrays_are_in_the_order_of_the_parameters() -> None:
    (kernel,) = kernels_of(["out[t] = x[t]; atomicAdd(count, 1);"])
    assert changed_arrays(kernel) == ("count", "out")


LOOPS = (
    # body, whether the loop waits, whether it may stall, whether it observes other threads
    ("while (atomicCAS(count, 0, 1)) ;", True, False, True),
    ("while (atomicExch(count, 1)) ;", True, False, True),
    ("while (*(volatile int *)count == 0) ;", True, False, True),
    ("while (x[0] == 0) ;", True, False, False),
    ("while (atomicAdd(count, 0) < 5) ;", True, False, True),
    ("while (atomicOr(count, 0) < 5) ;", True, False, True),
    ("while (atomicAnd(count, 0) < 5) ;", False, False, True),
    ("while (atomicAdd(count, 1) < 5) ;", False, False, True),
    ("while (atomicAdd(count, n) < 5) ;", False, False, True),
    ("while (n > 0) n--;", False, False, False),
    ("int a = n, b; while (a > 0) { b = a; a = b - 1; }", False, False, False),
    ("while (x[0] == 0) out[t] = 1;", False, False, False),
    ("for (int i = 0; i < n; i++) out[i] = 1;", False, False, False),
    ("for (int i = 0; i < n; i++) atomicCAS(count, 0, 1);", False, False, True),
    ("bool done = false; while (!done) if (atomicCAS(count, 0, 1) == 0) { out[0] += 1; atomicExch(count, 0); done = true; }",
     False, True, True),
    ("bool done = false; while (!done) if (*(volatile int *)count) { out[0] += 1; done = true; }", False, True, True),
    ("bool done = false; while (!done) if (x[0]) { out[0] += 1; done = true; }", False, False, False),
    ("bool done = false; while (!done) { out[t] = 1; if (atomicCAS(count, 0, 1) == 0) { out[0] += 1; done = true; } }",
     False, False, True),
    ("bool done = false; while (!done) { __syncthreads(); if (atomicCAS(count, 0, 1) == 0) { out[0] += 1; done = true; } }",
     False, False, True),
)  # fmt: skip


def test_loops_that_wait() -> None:
    def check(row: tuple[tuple[str, bool, bool, bool], ir.Function]) -> None:
        (_, *expected), kernel = row
        loop = first_loop(kernel)
        assert [waits(loop), bool(may_stall(loop)), sees_others(loop)] == expected

    check_each(zip(LOOPS, kernels_of([row[0] for row in LOOPS]), strict=True), check, lambda row: row[0][0])


def test_sites_of_progress() -> None:
    (kernel,) = kernels_of(
        ["bool done = false; while (!done) if (atomicExch(count, 1) == 0) { out[0] = 1; done = true; }"]
    )
    loop = first_loop(kernel)
    assert isinstance(loop, ir.While)
    (choice,) = (stmt for stmt in loop.body if isinstance(stmt, ir.If))
    assert may_stall(loop) == {stmt.site for stmt in choice.then if isinstance(stmt, ir.Store)}


QUEUES = (
    ("while (true) { int i = atomicAdd(count, 1); if (i >= n) break; out[i] = 1; }", True),
    ("while (true) { int i = atomicAdd(count, 1); if (i >= n) return; out[i] = 1; }", True),
    ("while (atomicAdd(count, 1) < n) out[t] = 1;", True),
    ("while (atomicSub(count, 1) > 0) out[t] = 1;", True),
    ("while (atomicInc((unsigned *)count, 100) < 9) out[t] = 1;", True),
    ("while (atomicMax(count, t) < n) out[t] = 1;", False),
    ("int i = atomicAdd(count, 1); if (i < n) out[i] = 1;", False),
    ("int i = atomicAdd(count, 1); for (int j = 0; j < n; j++) out[j] = i;", False),
    ("__shared__ int s; while (true) { if (t == 0) s = atomicAdd(count, 1); __syncthreads(); if (s >= n) break; }", True),
    ("__shared__ int c; while (true) { int i = atomicAdd(&c, 1); if (i >= n) break; }", False),
    ("while (true) { int i = 0; if (t % 32 == 0) i = atomicAdd(count, 1); i = __shfl_sync(~0u, i, 0); if (i >= n) break; }", True),
    ("while (true) { int i = 0; if (atomicAdd(count, 1) > n) i = 1; if (i) break; }", True),
    ("while (true) { int i = 0; if (atomicAdd(count, 1) > n) { if (t) i = 1; } if (i) break; }", True),
    ("while (true) { int i = 0; atomicAdd(count, 1); if (n) i = 1; if (i) break; }", False),
    ("while (true) { int j = n, i = j; atomicAdd(count, 1); if (i > 3) break; }", False),
    ("__shared__ int s; while (true) { s = x[t]; atomicAdd(count, 1); if (s > n) break; }", False),
    ("while (true) { x[t] = atomicAdd(count, 1); if (x[t] >= n) break; }", False),
)  # fmt: skip


def test_work_queues() -> None:
    def check(row: tuple[tuple[str, bool], ir.Function]) -> None:
        assert uses_dynamic_work(row[1]) == row[0][1]

    check_each(zip(QUEUES, kernels_of([row[0] for row in QUEUES]), strict=True), check, lambda row: row[0][0])
