"""CUDA C++ that is refused: the text, of which the line with `// here` is named, and a part of the message."""

from __future__ import annotations

REFUSALS: dict[str, tuple[str, str]] = {
    "goto": (
        "__global__ void k(int *p) { if (p[0]) goto end; // here\n p[1] = 1; end: return; }",
        "goto is not supported",
    ),
    "inline PTX": ('__global__ void k(int *p) { asm("bar.sync 0;"); // here\n }', "inline PTX is not supported"),
    "new": (
        "__global__ void k(int **p) { }\n__global__ void n(int *p) { int *q = new int[4]; // here\n p[0] = q[0]; }",
        "new is not supported",
    ),
    "virtual functions": (
        "struct A { int n; __device__ virtual int f() { return n; } };\n"
        "__global__ void k(int *p) { A a; // here\n a.n = 1; p[0] = a.f(); }",
        "virtual functions",
    ),
    "second base classes": (
        "struct A { int n; };\nstruct B { int m; };\nstruct C : A, B {};\n"
        "__global__ void k(int *p) { C c; // here\n c.n = 1; p[0] = c.n; }",
        "second base class",
    ),
    "unions": (
        "union U { int i; float f; };\n__global__ void k(float *p) { U u; // here\n u.i = 1; p[0] = u.f; }",
        "unions are not supported",
    ),
    "bit fields": (
        "struct S { int a : 3; };\n__global__ void k(int *p) { S s; // here\n s.a = 1; p[0] = s.a; }",
        "a bit field",
    ),
    "function pointers": (
        "__device__ int f(int x) { return x; }\n__global__ void k(int *p) { int (*g)(int) = f; // here\n p[0] = g(1); }",
        "function pointers are not supported",
    ),
    "pointers to pointers": ("__global__ void k(float **p) { // here\n p[0][1] = 2; }", "a pointer to pointers"),
    "arrays of pointers": (
        "__global__ void k(float *a, float *b) { float *p[2] = {a, b}; // here\n p[threadIdx.x & 1][0] = 1; }",
        "an array of pointers",
    ),
    "pointers in structs": (
        "struct S { float *p; };\n__global__ void k(float *a) { S s;\n s.p = a; // here\n s.p[0] = 1; }",
        "not supported",
    ),
    "recursion": (
        "__device__ int f(int n) { return n < 2 ? n : f(n - 1); // here\n}\n__global__ void k(int *p) { p[0] = f(5); }",
        "recursion is not supported",
    ),
    "static variables": ("__global__ void k(int *p) { static int n; // here\n p[0] = n++; }", "a static variable"),
    "a pointer as a number": (
        "__global__ void k(float *p) { p[0] = (unsigned long long)p % 16; // here\n }",
        "a pointer as a number",
    ),
    "a number as a pointer": (
        "__global__ void k(float *p, long long n) { *(float *)n = p[0]; // here\n }",
        "a number as a pointer",
    ),
    "widths of shuffles at run time": (
        "__global__ void k(int *p, int w) { p[0] = __shfl_sync(0xffffffff, p[1], 0, w); // here\n }",
        "the width of a shuffle must be a constant",
    ),
    "stores to constant memory": (
        "__constant__ int c[4];\n__global__ void k(int *p) { ((int *)c)[0] = p[0]; // here\n }",
        "kernels only read it",
    ),
    "unknown functions": (
        "__device__ int unknown(int);\n__global__ void k(int *p) { p[0] = unknown(1); // here\n }",
        "unknown is not supported in kernels",
    ),
    "textures": (
        "__global__ void k(float *p, cudaTextureObject_t t) { // here\n p[0] = 1; }",
        "unknown type name 'cudaTextureObject_t'",
    ),
    "launches of kernels": (
        "__global__ void c(int *p) { }\n__global__ void k(int *p) { c<<<1, 1>>>(p); // here\n }",
        "launches of kernels in kernels are not supported",
    ),
    "comparisons of pointers into different memory": (
        "__global__ void k(float *a, float *b) { if (a < b) a[0] = 1; // here\n }",
        "different memory",
    ),
    "reads of unassigned variables": (
        "__global__ void k(float *p) { float sum; sum += p[0]; // here\n p[1] = sum; }",
        "sum is read before it is assigned",
    ),
    "range-based for": (
        "__global__ void k(int *p) { int a[3] = {1, 2, 3};\n for (int x : a) p[0] += x; // here\n }",
        "range-based for is not supported",
    ),
    "copies of changing variables in lambdas": (
        "__global__ void k(int *p) { int n = 1;\n auto f = [=]() { return n; }; // here\n n = 2; p[0] = f(); }",
        "a lambda with a copy of n",
    ),
    "addresses of registers in assigned pointers": (
        "__global__ void k(int *p) { int a = 1, b = 2; int *q = &a; // here\n if (p[0]) q = &b; p[1] = *q; }",
        "points to a variable in registers",
    ),
}
