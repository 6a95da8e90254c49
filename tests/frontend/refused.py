"""Kernels outside the language; the golden texts have their messages."""

# ruff: noqa
# mypy: ignore-errors
import math

import numpy as np
import simtbed as st
from simtbed import Const, Global, Shared, f32, f64, float4, i32, i64, u8, u32


def plain_function(x):
    return x


@st.kernel
def types_do_not_mix(x: Global[f32], n: i32, wide: i64, d: f64):
    a = x[0] + n
    b = n + wide
    c = n / 2
    e = x[0] // 2.0
    f = d * x[0]
    g = n and n > 2
    h = not n
    i = True + n
    x[0] = n
    x[1] = d


@st.kernel
def literals_must_fit(x: Global[u8], n: i32):
    x[0] = 256
    x[1] = -1
    m = n + 1.5
    k = n << 2.0
    s = u8(-3)
    t = i32(0.5)
    big = n * 5000000000


@st.kernel
def conditions_are_bools(x: Global[i32], n: i32):
    if n:
        x[0] = 1
    while n - 1:
        x[0] = 2
    y = 1 if n else 2
    assert n
    z = st.ballot(n)


@st.kernel
def names_are_defined(x: Global[i32], n: i32):
    if n > 0:
        a = 1
    x[0] = a
    for i in range(n):
        b = i
    x[1] = b
    x[2] = i
    x[3] = nowhere
    x[4] = math.pi_squared


@st.kernel
def variables_keep_their_type(x: Global[f32], n: i32):
    total = 0
    total = total + n
    total = x[0]
    n = x[1]
    x = n


@st.kernel
def python_that_is_not_here(x: Global[i32], n: i32):
    a = [1, 2]
    b = {1: 2}
    c = [i for i in range(3)]
    d = lambda y: y
    e = 2**n
    f = n is None
    g = n in range(2)
    h = f"{n}"
    (i := n)
    with n:
        pass
    try:
        pass
    finally:
        pass
    del n
    import os

    raise ValueError
    x[0:2] = 1
    for j in [1, 2]:
        pass
    for k in range(n):
        pass
    else:
        pass
    n
    x[0] == 1


@st.kernel
def calls_that_are_not_here(x: Global[f32], n: i32):
    a = plain_function(n)
    b = int(n)
    c = math.gcd(n, 2)
    d = np.sqrt(x[0])
    e = types_do_not_mix(x, n)
    f = st.shuffle(n)
    g = st.shuffle_up(n, 1, width=5)
    h = st.fma(n, n, n)
    i = st.popcount(x[0])
    j = st.nothing(n)
    k = abs(u32(n))
    m = st.bitcast(f64, n)
    o = min(n)
    p = n(3)


@st.kernel
def arrays_have_rules(x: Global[f32], n: i32, v: Global[float4]):
    s = st.shared(f32, n)
    t = st.shared(f32)
    u = st.shared(f32, 0)
    r = st.registers(f32, 4)
    r[n] = 1.0
    r[4] = 1.0
    for k in range(4):
        r[k] = 1.0
    a = x[-1]
    b = x[1.5]
    c = x[f32(n)]
    d = x[0, 1]
    w = v[0]
    e = w.q
    v[0].x = 1.0
    g = w + w
    h = w[n]
    i = st.shared(f32, 64 / 32)
    table = st.constant(f32, (1.0, 2.0))
    table[0] = 3.0
    r = st.shared(f32, 4)
    st.shared(f32, 4)
    q = x


@st.kernel
def atomics_have_rules(x: Global[f32], b: Global[u8], d: Global[f64]):
    own = st.local(i32, 4)
    st.atomic_max(x, 0, 1.0)
    st.atomic_add(b, 0, u8(1))
    st.atomic_add(own, 0, 1)
    st.compare_swap(x, 0, 1.0, 2.0)
    st.atomic_add(d, 0, f32(1))


@st.kernel
def loops_have_rules(x: Global[i32], n: i32):
    for i in range(0, n, 0):
        pass
    for i in range(0, n, n):
        pass
    for i in range(n):
        i = 3
    for k in st.unroll(range(n)):
        pass
    for k in st.unroll(range(4)):
        if k == n:
            break
    for a, b in range(3):
        pass
    count = 50
    for count in range(3):
        pass
    for j in range(3):
        pass
    j = 7
    while n > 0:
        n -= 1
        continue
        x[0] = 1


@st.device
def no_result_annotation(x: i32):
    return x


@st.device
def misses_a_return(x: i32) -> i32:
    if x > 0:
        return 1


@st.device
def calls_itself(x: i32) -> i32:
    return calls_itself(x)


@st.device
def returns_another_type(x: i32) -> f32:
    return x


@st.device
def takes_shared(row: Shared[f32], K: Const) -> f32:
    return row[K]


@st.kernel
def device_functions_have_rules(x: Global[f32], n: i32) -> i32:
    a = no_result_annotation(n)
    b = misses_a_return(n)
    c = calls_itself(n)
    d = returns_another_type(n)
    e = takes_shared(x, 1)
    f = takes_shared(n, 1)
    row = st.shared(f32, 4)
    g = takes_shared(row, n)
    h = takes_shared(row)
    return 3


@st.kernel
def parameters_need_types(a, b: int, c: Global[int], d: np.float32, e: Shared[f32], f: Global[f32, 2], *rest):
    pass


@st.kernel
def unicode_columns(x: Global[f32], n: i32):
    größe = n + 1
    x[größe] = "π" + größe


@st.kernel
def one_mistake_is_reported_once(x: Global[f32], n: i32):
    bad = x[0] + n
    worse = bad + 1
    x[0] = worse * bad


@st.kernel
def an_index_of_registers_is_known(x: Global[f32], n: i32):
    r = st.registers(f32, 4)
    for k in st.unroll(range(2)):
        twice = k
        twice = k + 1
        r[twice] = 1.0
        if n > 0:
            within = k + 1
            r[within] = 1.0
        r[within] = 1.0
        other = k + n
        r[other] = 1.0


@st.kernel
def unrolled_index_out_of_range(x: Global[f32]):
    r = st.registers(f32, 4)
    for k in st.unroll(range(5)):
        r[k] = x[k]


@st.device
def has_dynamic_shared(n: i32) -> f32:
    inner = st.dynamic_shared(f32, n)
    return inner[0]


@st.kernel
def dynamic_shared_has_rules(x: Global[i32], n: i32, m: i32):
    m = m + 1
    a = st.dynamic_shared(f32, m)
    b = st.dynamic_shared(f32, x[0])
    c = st.dynamic_shared(f32, 0)
    d = st.dynamic_shared(f32, st.thread.x)
    rest = st.dynamic_shared(i32)
    after = st.dynamic_shared(i32, n)
    e = has_dynamic_shared(n)


@st.kernel
def cooperation_has_rules(x: Global[i32], u: Global[u32], v: Global[float4], n: i32):
    st.atomic_inc(x, 0, 3)
    st.atomic_add(x, 0, 1, order="seq_cst")
    st.atomic_add(x, 0, 1, scope="grid")
    st.atomic_sub(v, 0, v[1])
    st.atomic_add(v, 0, v[1], order="release")
    a = st.reduce_and(n)
    b = st.reduce_add(1.0)
    c = st.match_all(True)
    st.nanosleep(n)


@st.kernel
def only_like_arrays_change_places(x: Global[f32], n: i32):
    a = st.shared(f32, 64)
    b = st.shared(f32, 32)
    c = st.shared(i32, 64)
    d = st.local(f32, 64)
    a, b = b, a
    a, c = c, a
    x, d = d, x


@st.kernel
def asynchronous_copies_have_rules(x: Global[f32], b: Global[u8], n: i32):
    tile = st.shared(f32, 64)
    small = st.shared(u8, 64)
    st.async_copy(x, 0, tile, 0)
    st.async_copy(small, 0, b, 0)
    st.async_copy(tile, 0, b, 0)
    st.async_wait(n)
    st.async_wait(9)
