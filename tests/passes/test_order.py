"""Results that depend on the order of threads, loops that wait for other threads, and kernels that claim work from a counter."""

from simtbed.ir import nodes as ir
from simtbed.passes.barriers import changed_arrays, order_matters
from simtbed.passes.thread_order import order_dependent_arrays
from simtbed.passes.waiting import may_stall, sees_others, waits
from simtbed.passes.work_queues import uses_dynamic_work

from tests.passes.bodies import first_loop, kernel_of
from tests.table_checks import each_row

ADD = "st.atomic_add(count, 0, 1)"
TAKE = "st.compare_swap(count, 0, 0, 1)"

ORDERS: tuple[tuple[str, set[str], bool], ...] = (
    # body, arrays whose contents depend on the order, whether the order of warps must be fixed
    ("out[t] = x[t]", set(), False),
    (f"{ADD}; st.atomic_add(count, 0, 2)", set(), False),
    ("st.atomic_max(count, 0, t); st.atomic_max(count, 0, 5)", set(), False),
    (f"{ADD}; st.atomic_max(count, 0, 5)", {"count"}, True),
    (f"{ADD}; st.atomic_max(x, 0, 5)", set(), False),
    ("st.atomic_add(f, 0, 1.0)", {"f"}, True),
    ("st.atomic_exchange(count, 0, t)", {"count"}, True),
    ("st.atomic_inc(u, 0, 7)", {"u"}, True),
    ("st.atomic_dec(u, 0, 7)", {"u"}, True),
    ("st.compare_swap(count, 0, 0, t)", {"count"}, True),
    (f"out[t] = {ADD}", {"out"}, True),
    ("out[t] = st.volatile_load(x, 0)", {"out"}, True),
    ("st.volatile_store(out, 0, 1)", set(), True),
    ("if x[t] > 0:\n print(t)", set(), True),
    (f"if {ADD} == 3:\n out[0] = 1", {"out"}, True),
    (f"k = {ADD}\nif k == 3:\n out[0] = 1\nx[t] = 1", {"out"}, True),
    (f"k = {ADD}\nfor i in range(k):\n out[i] = 1", {"out"}, True),
    (f"k = {ADD}\nwhile k > 0:\n k -= 1; out[0] = 1", {"out"}, True),
    (f"for i in range(n):\n if {ADD} > 3:\n  break\n out[t] = 1\nx[t] = 1", {"count", "out"}, True),
    (f"for i in range(n):\n if {ADD} > 3:\n  return\nx[t] = 1", {"count", "x"}, True),
    (f"x[{ADD}] = 1; out[t] = x[t]", {"x", "out"}, True),
    (f"a = st.local(st.i32, 4); a[n] = {ADD}; out[t] = a[1]", {"a", "out"}, True),
    (f"old = {ADD}; old = 3; x[t] = 1", set(), True),
)  # fmt: skip


@each_row(ORDERS, lambda row: row[0])
def test_thread_order(row: tuple[str, set[str], bool]) -> None:
    kernel = kernel_of(row[0])
    assert set(order_dependent_arrays(kernel)) == row[1]
    assert order_matters(kernel) == row[2]


def test_the_cause_is_the_first_access() -> None:
    kernel = kernel_of(
        "st.atomic_exchange(count, 0, 1)\nout[t] = st.atomic_add(x, 0, 1)\nst.atomic_exchange(out, 0, 2)"
    )
    causes = order_dependent_arrays(kernel)
    assert {name: span.line - kernel.span.line - 1 for name, span in causes.items()} == {"count": 1, "out": 2}


def test_changed_arrays_are_in_the_order_of_the_parameters() -> None:
    assert changed_arrays(kernel_of(f"out[t] = x[t]; {ADD}")) == ("count", "out")


UNTIL = "done = False\nwhile not done:\n"
LOOPS = (
    # body, whether the loop waits, whether it may stall, whether it observes other threads
    (f"while {TAKE} != 0:\n pass", True, False, True),
    ("while st.atomic_exchange(count, 0, 1) != 0:\n pass", True, False, True),
    ("while st.volatile_load(count, 0) == 0:\n pass", True, False, True),
    ("while x[0] == 0:\n pass", True, False, False),
    ("while st.atomic_add(count, 0, 0) < 5:\n pass", True, False, True),
    ("while st.atomic_or(count, 0, 0) < 5:\n pass", True, False, True),
    ("while st.atomic_and(count, 0, 0) < 5:\n pass", False, False, True),
    (f"while {ADD} < 5:\n pass", False, False, True),
    ("while st.atomic_add(count, 0, n) < 5:\n pass", False, False, True),
    ("a = n\nwhile a > 0:\n a -= 1", False, False, False),
    ("a = n\nwhile a > 0:\n b = a; a = b - 1", False, False, False),
    ("while x[0] == 0:\n out[t] = 1", False, False, False),
    ("for i in range(n):\n out[i] = 1", False, False, False),
    (f"for i in range(n):\n {TAKE}", False, False, True),
    (f"{UNTIL} if {TAKE} == 0:\n  out[0] += 1; st.atomic_exchange(count, 0, 0); done = True", False, True, True),
    (f"{UNTIL} if st.volatile_load(count, 0) > 0:\n  out[0] += 1; done = True", False, True, True),
    (f"{UNTIL} if x[0] > 0:\n  out[0] += 1; done = True", False, False, False),
    (f"{UNTIL} out[t] = 1\n if {TAKE} == 0:\n  out[0] += 1; done = True", False, False, True),
    (f"{UNTIL} st.sync()\n if {TAKE} == 0:\n  out[0] += 1; done = True", False, False, True),
)  # fmt: skip


@each_row(LOOPS, lambda row: row[0])
def test_loops_that_wait(row: tuple[str, bool, bool, bool]) -> None:
    loop = first_loop(kernel_of(row[0]))
    assert (waits(loop), bool(may_stall(loop)), sees_others(loop)) == row[1:]


def test_sites_of_progress() -> None:
    loop = first_loop(kernel_of(f"{UNTIL} if {TAKE} == 0:\n  out[0] = 1; done = True"))
    assert isinstance(loop, ir.While)
    (choice,) = (stmt for stmt in loop.body if isinstance(stmt, ir.If))
    sites = {stmt.site for stmt in choice.then if isinstance(stmt, ir.Store)}
    assert len(sites) == 1 and may_stall(loop) == sites


CLAIM = f"while True:\n i = {ADD}\n"
QUEUES = (
    # body, whether it claims work from a counter
    (f"{CLAIM} if i >= n:\n  break\n out[i] = 1", True),
    (f"{CLAIM} if i >= n:\n  return\n out[i] = 1", True),
    (f"while {ADD} < n:\n out[t] = 1", True),
    ("while st.atomic_sub(count, 0, 1) > 0:\n out[t] = 1", True),
    ("while st.atomic_inc(u, 0, 100) < 9:\n out[t] = 1", True),
    ("while st.atomic_max(count, 0, t) < n:\n out[t] = 1", False),
    (f"i = {ADD}\nif i < n:\n out[i] = 1", False),
    (f"i = {ADD}\nfor j in range(n):\n out[j] = i", False),
    (f"s = st.shared(st.i32, 1)\nwhile True:\n if t == 0:\n  s[0] = {ADD}\n st.sync()\n if s[0] >= n:\n  break", True),
    ("c = st.shared(st.i32, 1)\nwhile True:\n i = st.atomic_add(c, 0, 1)\n if i >= n:\n  break", False),
    (f"while True:\n i = 0\n if st.lane == 0:\n  i = {ADD}\n i = st.shuffle(i, 0)\n if i >= n:\n  break", True),
    (f"while True:\n i = 0\n if {ADD} > n:\n  i = 1\n if i > 0:\n  break", True),
    (f"while True:\n i = 0\n if {ADD} > n:\n  if t > 0:\n   i = 1\n if i > 0:\n  break", True),
    (f"while True:\n i = 0; {ADD}\n if n > 0:\n  i = 1\n if i > 0:\n  break", False),
    (f"while True:\n j = n; i = j; {ADD}\n if i > 3:\n  break", False),
    (f"s = st.shared(st.i32, 1)\nwhile True:\n s[0] = x[t]; {ADD}\n if s[0] > n:\n  break", False),
    (f"while True:\n x[t] = {ADD}\n if x[t] >= n:\n  break", False),
)  # fmt: skip


@each_row(QUEUES, lambda row: row[0])
def test_work_queues(row: tuple[str, bool]) -> None:
    assert uses_dynamic_work(kernel_of(row[0])) == row[1]
