// Functions of the runtime for typed pointers, variables and kernels.
#define SIMTBED_HERE simtbed_file, simtbed_line
#define SIMTBED_TYPED(NAME, ARGUMENTS, ...) \
    template <class T> static inline cudaError_t NAME(__VA_ARGS__, SIMTBED_PLACE) { return NAME ARGUMENTS; }
SIMTBED_TYPED(cudaMalloc, ((void **)p, n, SIMTBED_HERE), T **p, size_t n)
SIMTBED_TYPED(cudaMallocAsync, ((void **)p, n, s, SIMTBED_HERE), T **p, size_t n, cudaStream_t s)
SIMTBED_TYPED(cudaMallocManaged, ((void **)p, n, f, SIMTBED_HERE), T **p, size_t n, unsigned f = 1)
SIMTBED_TYPED(cudaMallocHost, ((void **)p, n, f, SIMTBED_HERE), T **p, size_t n, unsigned f = 0)
SIMTBED_TYPED(cudaHostAlloc, ((void **)p, n, f, SIMTBED_HERE), T **p, size_t n, unsigned f)
SIMTBED_TYPED(cudaMallocPitch, ((void **)p, q, w, h, SIMTBED_HERE), T **p, size_t *q, size_t w, size_t h)
SIMTBED_TYPED(cudaHostGetDevicePointer, ((void **)p, h, f, SIMTBED_HERE), T **p, void *h, unsigned f)
SIMTBED_TYPED(cudaMemcpyToSymbol, ((const void *)&v, p, n, o, k, SIMTBED_HERE), const T &v, const void *p, size_t n, size_t o = 0, cudaMemcpyKind k = cudaMemcpyHostToDevice)
SIMTBED_TYPED(cudaMemcpyFromSymbol, (p, (const void *)&v, n, o, k, SIMTBED_HERE), void *p, const T &v, size_t n, size_t o = 0, cudaMemcpyKind k = cudaMemcpyDeviceToHost)
SIMTBED_TYPED(cudaMemcpyToSymbolAsync, ((const void *)&v, p, n, o, k, s, SIMTBED_HERE), const T &v, const void *p, size_t n, size_t o, cudaMemcpyKind k, cudaStream_t s = 0)
SIMTBED_TYPED(cudaMemcpyFromSymbolAsync, (p, (const void *)&v, n, o, k, s, SIMTBED_HERE), void *p, const T &v, size_t n, size_t o, cudaMemcpyKind k, cudaStream_t s = 0)
SIMTBED_TYPED(cudaGetSymbolAddress, (p, (const void *)&v, SIMTBED_HERE), void **p, const T &v)
SIMTBED_TYPED(cudaGetSymbolSize, (n, (const void *)&v, SIMTBED_HERE), size_t *n, const T &v)
SIMTBED_TYPED(cudaFuncSetAttribute, ((const void *)k, a, v, SIMTBED_HERE), T *k, cudaFuncAttribute a, int v)
SIMTBED_TYPED(cudaFuncSetCacheConfig, ((const void *)k, c, SIMTBED_HERE), T *k, cudaFuncCache c)
SIMTBED_TYPED(cudaFuncSetSharedMemConfig, ((const void *)k, c, SIMTBED_HERE), T *k, cudaSharedMemConfig c)
SIMTBED_TYPED(cudaOccupancyMaxActiveBlocksPerMultiprocessor, (n, (const void *)k, t, s, SIMTBED_HERE), int *n, T *k, int t, size_t s)
SIMTBED_TYPED(cudaOccupancyMaxPotentialBlockSize, (g, b, (const void *)k, s, m, SIMTBED_HERE), int *g, int *b, T *k, size_t s = 0, int m = 0)
SIMTBED_TYPED(cudaLaunchCooperativeKernel, ((const void *)k, g, b, a, s, t, SIMTBED_HERE), T *k, dim3 g, dim3 b, void **a, size_t s = 0, cudaStream_t t = 0)
template <class T> static inline cudaError_t cudaLaunchKernel(T *k, dim3 g, dim3 b, void **a, size_t s = 0, cudaStream_t t = 0) {
    return cudaLaunchKernel((const void *)k, g, b, a, s, t);
}
