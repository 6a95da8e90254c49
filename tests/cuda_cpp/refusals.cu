//// unknown PTX
__global__ void k(int *p) { asm("madeup.s32 %0, 1;" : "=r"(p[0])); // here
 }

//// allocations in kernels
__global__ void n(int *p) { int *q = new int[4]; // here
 p[0] = q[0]; }

//// function pointers that are not known
__global__ void k(int *p, int (*f)(int)) {
 p[0] = f(1); // here
 }

//// addresses of variables in global memory
__global__ void k(float **p) { __shared__ float x;
 p[0] = &x; // here
 }

//// recursion other than tail calls
__device__ int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }
__global__ void k(int *p) {
 p[0] = f(p[1]); // here
 }

//// a large struct by value
struct S { int v[3000]; };
__global__ void k(S s, int *p) { // here
 p[0] = s.v[p[1]]; }

//// stores to constant memory
__constant__ int c[4];
__global__ void k(int *p) { ((int *)c)[0] = p[0]; // here
 }

//// functions without a body
__device__ int unknown(int);
__global__ void k(int *p) { p[0] = unknown(1); // here
 }

//// textures that are chosen at run time
__global__ void k(float *p, cudaTextureObject_t *t) {
 p[0] = tex1Dfetch<float>(t[0], 1); // here
 }

//// cube maps and gathers of textures
__global__ void k(float4 *p, cudaTextureObject_t t) {
 p[0] = tex2Dgather<float4>(t, 1, 1); // here
 }

//// launches of kernels
__global__ void c(int *p) { }
__global__ void k(int *p) { c<<<1, 1>>>(p); // here
 }

//// reads of unassigned variables
__global__ void k(float *p) { float sum; sum += p[0]; // here
 p[1] = sum; }

//// irreducible jumps
__global__ void k(int *p) { // here
 int i = 0; if (p[0]) goto b; a: p[1] = i; b: i++; if (i < p[2]) goto a;
 p[3] = i; if (i < p[4]) goto b; }
