// Precedes each text of a program: for NVIDIA's CUB, Thrust and libcu++ (CCCL), whose headers are compiled as they are.
#pragma once
#undef __CLANG_RDC__  // no kernel starts another
#define CCCL_DISABLE_FP16_SUPPORT
#define CCCL_DISABLE_BF16_SUPPORT
#define CCCL_DISABLE_PDL
#define NVTX_DISABLE
// Thrust takes the addresses of these functions; a call has the overload with its place.
#define SIMTBED_ADDRESSABLE(NAME, ARGUMENTS, ...) \
    template <class = void> static inline cudaError_t NAME(__VA_ARGS__) { return NAME ARGUMENTS; }
SIMTBED_ADDRESSABLE(cudaMalloc, (p, n, "thrust", 0), void **p, size_t n)
SIMTBED_ADDRESSABLE(cudaMallocHost, (p, n, 0, "thrust", 0), void **p, size_t n)
SIMTBED_ADDRESSABLE(cudaFree, (p, "thrust", 0), void *p)
SIMTBED_ADDRESSABLE(cudaFreeHost, (p, "thrust", 0), void *p)
