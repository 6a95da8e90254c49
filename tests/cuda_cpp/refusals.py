"""CUDA C++ that is refused: the text, of which the line with `// here` is named, and a part of the message."""

from __future__ import annotations

REFUSALS: dict[str, tuple[str, str]] = {
    "unknown PTX": (
        '__global__ void k(int *p) { asm("madeup.s32 %0, 1;" : "=r"(p[0])); // here\n }',
        "the inline assembly 'madeup.s32",
    ),
    "allocations in kernels": (
        "__global__ void n(int *p) { int *q = new int[4]; // here\n p[0] = q[0]; }",
        "an allocation of memory in a kernel is not supported",
    ),
    "function pointers that are not known": (
        "__global__ void k(int *p, int (*f)(int)) {\n p[0] = f(1); // here\n }",
        "a call through a pointer is not supported",
    ),
    "addresses of variables in global memory": (
        "__global__ void k(float **p) { __shared__ float x;\n p[0] = &x; // here\n }",
        "an address of a variable in global memory is not supported",
    ),
    "recursion other than tail calls": (
        "__device__ int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"
        "__global__ void k(int *p) {\n p[0] = f(p[1]); // here\n }",
        "recursion is not supported",
    ),
    "a large struct by value": (
        "struct S { int v[3000]; };\n__global__ void k(S s, int *p) { // here\n p[0] = s.v[p[1]]; }",
        "hold 3001 numbers, at most 900 are supported: pass an array by a pointer",
    ),
    "stores to constant memory": (
        "__constant__ int c[4];\n__global__ void k(int *p) { ((int *)c)[0] = p[0]; // here\n }",
        "kernels only read it",
    ),
    "functions without a body": (
        "__device__ int unknown(int);\n__global__ void k(int *p) { p[0] = unknown(1); // here\n }",
        "the function unknown is not supported",
    ),
    "textures that are chosen at run time": (
        "__global__ void k(float *p, cudaTextureObject_t *t) {\n p[0] = tex1Dfetch<float>(t[0], 1); // here\n }",
        "a texture that is chosen at run time",
    ),
    "cube maps and gathers of textures": (
        "__global__ void k(float4 *p, cudaTextureObject_t t) {\n p[0] = tex2Dgather<float4>(t, 1, 1); // here\n }",
        "use of undeclared identifier 'tex2Dgather'",
    ),
    "launches of kernels": (
        "__global__ void c(int *p) { }\n__global__ void k(int *p) { c<<<1, 1>>>(p); // here\n }",
        "launches of kernels in kernels are not supported",
    ),
    "reads of unassigned variables": (
        "__global__ void k(float *p) { float sum; sum += p[0]; // here\n p[1] = sum; }",
        "sum is read before it is assigned",
    ),
    "irreducible jumps": (
        "__global__ void k(int *p) { // here\n int i = 0; if (p[0]) goto b; a: p[1] = i; b: i++; if (i < p[2]) goto a;\n"
        " p[3] = i; if (i < p[4]) goto b; }",
        "irreducible control flow",
    ),
}
