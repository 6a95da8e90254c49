"""Texts of whole CUDA C++ programs, and their run under a command."""

import subprocess
import sys
from pathlib import Path

from tests.texts import texts

TEXTS = texts("host_apis/programs.cu")

CHECKED = r"""
#include <cstdio>
#include <cstdlib>
#define CHECK(call) do { cudaError_t e = call; if (e != cudaSuccess) { \
    printf("%d: %s, %s\n", __LINE__, cudaGetErrorName(e), cudaGetErrorString(e)); return 1; } } while (0)
"""

VECTOR_ADD = TEXTS["vector add"]

MANY_FUNCTIONS = TEXTS["many functions"]


ARRAYS_AND_GRAPHS = CHECKED + TEXTS["arrays and graphs"]

POINTERS = (
    CHECKED
    + r"""
struct Node { int value; Node *next; };
struct Pool { Node *nodes; int used; Node *heads[4]; };
__device__ Node *first;
__constant__ float *weights[2];
__global__ void sum(Node *head, int *out) { for (Node *p = head; p; p = p->next) atomicAdd(out, p->value); }
__global__ void reverse(Node **head) {
    Node *last = nullptr, *p = *head;
    while (p) { Node *next = p->next; p->next = last; last = p; p = next; }
    *head = last;
}
__global__ void push(Pool *pool) {
    Node *own = pool->nodes + atomicAdd(&pool->used, 1);
    own->value = threadIdx.x;
    unsigned long long *head = (unsigned long long *)&pool->heads[threadIdx.x % 4], old = *(volatile unsigned long long *)head, seen;
    do { seen = old; own->next = (Node *)seen; old = atomicCAS(head, seen, (unsigned long long)own); } while (old != seen);
}
__global__ void count(Pool *pool, int *out) {
    int sum = 0;
    for (int h = 0; h < 4; h++) for (Node *p = pool->heads[h]; p; p = p->next) sum += p->value;
    *out = sum;
}
__global__ void constant(float *out) { out[0] = weights[0][1] + weights[1][2]; }
__global__ void set(Node *node) { first = node; }
__global__ void get(int *out) { *out = first->value; }
__global__ void local(float **rows, float *out) {
    float *own[2];
    for (int i = 0; i < 2; i++) own[i] = rows[i ^ (threadIdx.x & 1)];
    out[threadIdx.x] = own[0][0] - own[1][0];
}
__global__ void shared(float **rows, float *out) {
    __shared__ float *tile[2];
    if (threadIdx.x < 2) tile[threadIdx.x] = rows[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x & 1][2];
}
__global__ void vector(float4 **rows, float4 *out) { out[0] = rows[0][1]; }
template <class T> T *device(const T *values, int count) {
    T *p; if (cudaMalloc(&p, count * sizeof(T)) || cudaMemcpy(p, values, count * sizeof(T), cudaMemcpyHostToDevice)) exit(9);
    return p;
}
template <class T> T host(const T *p, int at = 0) { T v; if (cudaMemcpy(&v, p + at, sizeof v, cudaMemcpyDeviceToHost)) exit(8); return v; }
int main() {
    int zero = 0, *out = device(&zero, 1);
    Node *head = nullptr;
    for (int i = 1; i <= 10; i++) { Node n{i, head}; head = device(&n, 1); }
    Node **holder = device(&head, 1);
    reverse<<<1, 1>>>(holder); head = host(holder); if (host(head).value != 1) return 2;
    sum<<<1, 1>>>(head, out); printf("list %d\n", host(out));
    Pool h{}; CHECK(cudaMalloc(&h.nodes, 64 * sizeof(Node))); Pool *pool = device(&h, 1);
    push<<<1, 64>>>(pool); count<<<1, 1>>>(pool, out); printf("stack %d\n", host(out));
    float v[8] = {1, 2, 3, 4}, w[8] = {10, 2, 3, 4, 10, 2, 3, 4}, *rows[] = {device(v, 8), device(w, 8)}, **table = device(rows, 2);
    float *c = device(v, 8);
    CHECK(cudaMemcpyToSymbol(weights, rows, 16)); constant<<<1, 1>>>(c); printf("constant %g\n", host(c));
    set<<<1, 1>>>(head); get<<<1, 1>>>(out); printf("variable %d\n", host(out));
    local<<<1, 2>>>(table, c); printf("local %g %g\n", host(c), host(c, 1));
    shared<<<1, 4>>>(table, c); printf("shared %g\n", host(c, 3));
    vector<<<1, 1>>>((float4 **)table + 1, (float4 *)c); printf("vector %g %g\n", host(c), host(c, 3));
    CHECK(cudaGetLastError());
    return 0;
}
"""
)


def run(
    folder: Path, text: str, *arguments: str, command: str = "check", options: tuple[str, ...] = (), input: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a program under a command of simtbed, in a folder. options: of the command. input: on stdin."""
    (folder / "program.cu").write_text(text)
    words = [sys.executable, "-m", "simtbed", command, *options, "program.cu", *arguments]
    return subprocess.run(words, cwd=folder, input=input, capture_output=True, text=True, timeout=600, check=False)
