"""Kernels with the C++ that a compiler accepts: constructors, destructors, unions, jumps, pointers in memory, loops that wrap."""

from __future__ import annotations

import numpy as np
import simtbed as st

from tests.cuda_cpp.habits import add
from tests.cuda_cpp.habits_classes import HABITS

__all__ = ["HABITS"]


def add_single_thread(name: str, text: str, expected: list[int], inputs: list[int] | None = None) -> None:
    """Add a kernel `k(const int *x, int *out)` of one thread."""
    x = np.array(inputs or [0], np.int32)
    add(
        name, text, grid=1, block=1, args=lambda rng: {"x": x, "out": st.empty(len(expected), "i32")},
        expected=lambda g: {"out": expected}, kernel="k",
    )  # fmt: skip


add_single_thread(
    "in-class initialisers",
    """
    struct Acc { float sum = 10.f; float best = -3.f; };
    __global__ void k(const int *x, int *out) { Acc a; a.sum += 1; a.best = fmaxf(a.best, -5.f); out[0] = a.sum; out[1] = a.best; }
    """,
    [11, -3],
)
add_single_thread(
    "constructors and destructors of variables and members",
    """
    __device__ int live;
    struct Guard { __device__ Guard() { live += 1; } __device__ ~Guard() { live -= 1; } };
    struct Two { Guard a, b; };
    __global__ void k(const int *x, int *out) { { Guard g; out[0] = live; { Two t; out[1] = live; } } out[2] = live; }
    """,
    [1, 3, 0],
)
add_single_thread(
    "an average of ints",
    """
    __global__ void k(const int *x, int *out) {
        out[0] = __hadd(x[0], x[1]); out[1] = __rhadd(x[0], x[1]); out[2] = __uhadd(4000000000u, 4000000002u) == 4000000001u;
    }
    """,
    [-3, -2, 1],
    [-7, 2],
)
add_single_thread(
    "tables of letters",
    """
    __constant__ char first[5] = "ACGT"; __device__ const char second[] = "CGTA";
    __global__ void k(const int *x, int *out) {
        const char third[] = "GTAC";
        for (int i = 0; i < 4; ++i) out[i] = first[i] * 1000000 + second[i] * 10000 + third[i] * 100 + "TACG"[i] - 'A';
    }
    """,
    [a * 1000000 + b * 10000 + c * 100 + d - 65 for a, b, c, d in zip(b"ACGT", b"CGTA", b"GTAC", b"TACG", strict=True)],
)
add_single_thread(
    "goto, and a switch that falls through",
    """
    __global__ void k(const int *x, int *out) {
        int n = 0;
        switch (x[0]) { case 1: n += 1; case 2: n += 10; break; default: n = 100; }
        out[0] = n;
        if (x[1]) goto end;
        out[0] = -1;
    end:
        out[1] = n + 1;
    }
    """,
    [11, 12],
    [1, 1],
)
add_single_thread(
    "virtual functions, second base classes, bit fields, unions",
    """
    struct A { int n; __device__ virtual int f() { return n; } };
    struct B { int m; }; struct C { int o; }; struct D : B, C { int p; };
    struct Bits { unsigned low : 3, high : 5; };
    union U { int i; float f; unsigned char bytes[4]; };
    __global__ void k(const int *x, int *out) {
        A a; a.n = x[0]; out[0] = a.f();
        D d; d.m = 1; d.o = 2; d.p = 3; C &c = d; c.o += 10; out[1] = d.m + d.o + d.p;
        Bits b; b.low = x[0]; b.high = 21; out[2] = b.low * 100 + b.high;
        U u; u.f = 1.0f; out[3] = u.i; out[4] = u.bytes[3];
    }
    """,
    [9, 16, 121, 0x3F800000, 0x3F],
    [9],
)
add_single_thread(
    "function pointers, static variables, lambdas with copies, range-based for",
    """
    __device__ int twice(int x) { return 2 * x; }
    template <class F> __device__ int apply(F f, int x) { return f(x); }
    __global__ void k(const int *x, int *out) {
        static int calls;
        int (*f)(int) = twice;
        out[0] = apply(f, x[0]);
        int n = 1; auto copy = [=](int a) { return a + n; }; n = 5;
        out[1] = apply(copy, x[0]) + calls++;
        int a[3] = {1, 2, 3}, sum = 0;
        for (int item : a) sum += item;
        out[2] = sum;
    }
    """,
    [14, 8, 6],
    [7],
)
add_single_thread(
    "pointers in arrays, in structs, to variables, null on one path",
    """
    struct View { const int *data; int size; };
    struct Node { int value; Node *next; };
    __global__ void k(const int *x, int *out) {
        int own[2] = {5, 6};
        const int *rows[2] = {x, own};
        out[0] = rows[x[0]][1];
        View view = {x + 1, 2};
        out[1] = view.data[view.size - 1];
        int a = 1, b = 2; int *q = &a; if (x[0]) q = &b; *q += 10;
        out[2] = a * 100 + b;
        const int *maybe = x[0] > 5 ? x : nullptr;
        out[3] = maybe == nullptr ? -1 : *maybe;
        Node last = {3, nullptr}, first = {4, &last};
        int sum = 0;
        for (Node *node = &first; node; node = node->next) sum = 10 * sum + node->value;
        out[4] = sum;
    }
    """,
    [6, 9, 112, -1, 43],
    [1, 8, 9],
)
add_single_thread(
    "loops whose counter wraps",
    """
    __global__ void k(const int *x, int *out) {
        int steps = 0, shorts = 0;
        for (unsigned i = x[0]; i < 4294967295u; i += 1u << 30) { steps++; if (steps > 9) break; }
        for (short i = 32766; i > 0; i++) shorts++;
        unsigned char byte = 250; for (int i = 0; i < 10; ++i) byte++;
        out[0] = steps; out[1] = shorts; out[2] = byte;
    }
    """,
    [10, 2, 4],
)
add_single_thread(
    "addresses as numbers",
    """
    __global__ void k(const int *x, int *out) {
        out[0] = (unsigned long long)x % 16; out[1] = (unsigned long long)(x + 1) % 16; out[2] = &x[3] - x; out[3] = out > x;
        const int *aligned = (const int *)(((unsigned long long)(x + 1) + 7) & ~7ull);
        out[4] = *aligned;
    }
    """,
    [0, 4, 3, 1, 7],
    [1, 5, 7],
)
add_single_thread(
    "structs as vectors, and vectors as structs",
    """
    struct Pair { short x, y; int t; };
    __global__ void k(const int *x, int *out) {
        Pair pair; *(int2 *)&pair = *(const int2 *)x;
        out[0] = pair.y; out[1] = pair.t;
        int4 four; *(long2 *)&four = *(const long2 *)x; out[2] = four.w;
        double bits; ((int *)&bits)[0] = 0; ((int *)&bits)[1] = 0x40000000; out[3] = bits;
    }
    """,
    [3, 5, 7, 2],
    [3 << 16, 5, 6, 7],
)
add_single_thread(
    "scopes of atomics with their default",
    """
    __global__ void k(const int *x, int *out) {
        out[0] = 5;
        __nv_atomic_fetch_add(out, 2, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
        out[1] = __nv_atomic_load_n(out, __NV_ATOMIC_RELAXED);
    }
    """,
    [7, 7],
)

add_single_thread(
    "recursion by tail calls",
    """
    __device__ int gcd(int a, int b) { return b ? gcd(b, a % b) : a; }
    __device__ int factorial(int n) { return n <= 1 ? 1 : n * factorial(n - 1); }
    __device__ int find(const int *x, int low, int high, int v) {
        if (low >= high) return -1;
        int middle = (low + high) / 2;
        if (x[middle] == v) return middle;
        if (x[middle] < v) return find(x, middle + 1, high, v);
        return find(x, low, middle, v);
    }
    __device__ bool odd(int n);
    __device__ bool even(int n) { return n == 0 ? true : odd(n - 1); }
    __device__ bool odd(int n) { return n == 0 ? false : even(n - 1); }
    __global__ void k(const int *x, int *out) {
        out[0] = gcd(x[4], x[6]); out[1] = factorial(x[1]); out[2] = find(x, 0, 8, x[5]); out[3] = even(x[1]); out[4] = odd(x[1]);
    }
    """,
    [6, 120, 5, 0, 1],
    [1, 5, 7, 9, 12, 15, 18, 20],
)
