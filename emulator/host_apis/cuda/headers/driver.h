// Functions of the driver by those of the runtime. The device has one context. A CUfunction is the host's symbol of a kernel.
enum CUresult {
    CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_OUT_OF_MEMORY = 2, CUDA_ERROR_NOT_INITIALIZED = 3, CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101, CUDA_ERROR_INVALID_CONTEXT = 201, CUDA_ERROR_INVALID_HANDLE = 400, CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600, CUDA_ERROR_ILLEGAL_ADDRESS = 700, CUDA_ERROR_LAUNCH_FAILED = 719, CUDA_ERROR_UNKNOWN = 999,
};
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef const void *CUfunction, *cudaFunction_t;
typedef cudaStream_t CUstream;
typedef cudaEvent_t CUevent;
enum { CU_CTX_SCHED_AUTO = 0, CU_CTX_MAP_HOST = 8, CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1, CU_EVENT_DEFAULT = 0, CU_MEM_ATTACH_GLOBAL = 1 };
#define SIMTBED_DRIVER(NAME, CALL, ...) static inline CUresult NAME(__VA_ARGS__, SIMTBED_PLACE) { return (CUresult)(CALL); }
static inline CUresult cuCtxSynchronize(SIMTBED_PLACE) { return (CUresult)cudaDeviceSynchronize(SIMTBED_HERE); }
SIMTBED_DRIVER(cuInit, flags ? 1 : 0, unsigned flags)
SIMTBED_DRIVER(cuDriverGetVersion, cudaDriverGetVersion(v, SIMTBED_HERE), int *v)
SIMTBED_DRIVER(cuDeviceGetCount, cudaGetDeviceCount(n, SIMTBED_HERE), int *n)
SIMTBED_DRIVER(cuDeviceGet, (*d = n, n ? 101 : 0), CUdevice *d, int n)
SIMTBED_DRIVER(cuDeviceGetAttribute, cudaDeviceGetAttribute(v, (cudaDeviceAttr)a, d, SIMTBED_HERE), int *v, CUdevice_attribute a, CUdevice d)
static inline CUresult cuDeviceTotalMem(size_t *total, CUdevice d, SIMTBED_PLACE) {
    size_t free;
    return (CUresult)(d ? 101 : cudaMemGetInfo(&free, total, SIMTBED_HERE));
}
SIMTBED_DRIVER(cuCtxCreate, (*c = (CUcontext)1, d ? 101 : 0), CUcontext *c, unsigned flags, CUdevice d)
SIMTBED_DRIVER(cuDevicePrimaryCtxRetain, (*c = (CUcontext)1, d ? 101 : 0), CUcontext *c, CUdevice d)
SIMTBED_DRIVER(cuDevicePrimaryCtxRelease, d ? 101 : 0, CUdevice d)
SIMTBED_DRIVER(cuCtxDestroy, c ? 0 : 201, CUcontext c)
SIMTBED_DRIVER(cuCtxSetCurrent, 0, CUcontext c)
SIMTBED_DRIVER(cuCtxPushCurrent, c ? 0 : 201, CUcontext c)
SIMTBED_DRIVER(cuCtxPopCurrent, (*c = (CUcontext)1, 0), CUcontext *c)
SIMTBED_DRIVER(cuCtxGetCurrent, (*c = (CUcontext)1, 0), CUcontext *c)
SIMTBED_DRIVER(cuCtxGetDevice, (*d = 0), CUdevice *d)
SIMTBED_DRIVER(cuMemGetInfo, cudaMemGetInfo(f, t, SIMTBED_HERE), size_t *f, size_t *t)
SIMTBED_DRIVER(cuMemAlloc, cudaMalloc((void **)p, n, SIMTBED_HERE), CUdeviceptr *p, size_t n)
SIMTBED_DRIVER(cuMemAllocManaged, cudaMallocManaged((void **)p, n, f, SIMTBED_HERE), CUdeviceptr *p, size_t n, unsigned f)
SIMTBED_DRIVER(cuMemAllocHost, cudaMallocHost(p, n, 0, SIMTBED_HERE), void **p, size_t n)
SIMTBED_DRIVER(cuMemFree, cudaFree((void *)p, SIMTBED_HERE), CUdeviceptr p)
SIMTBED_DRIVER(cuMemFreeHost, cudaFreeHost(p, SIMTBED_HERE), void *p)
SIMTBED_DRIVER(cuMemcpyHtoD, cudaMemcpy((void *)p, h, n, cudaMemcpyHostToDevice, SIMTBED_HERE), CUdeviceptr p, const void *h, size_t n)
SIMTBED_DRIVER(cuMemcpyDtoH, cudaMemcpy(h, (void *)p, n, cudaMemcpyDeviceToHost, SIMTBED_HERE), void *h, CUdeviceptr p, size_t n)
SIMTBED_DRIVER(cuMemcpyDtoD, cudaMemcpy((void *)p, (void *)q, n, cudaMemcpyDeviceToDevice, SIMTBED_HERE), CUdeviceptr p, CUdeviceptr q, size_t n)
SIMTBED_DRIVER(cuMemcpyHtoDAsync, cudaMemcpyAsync((void *)p, h, n, cudaMemcpyHostToDevice, s, SIMTBED_HERE), CUdeviceptr p, const void *h, size_t n, CUstream s)
SIMTBED_DRIVER(cuMemcpyDtoHAsync, cudaMemcpyAsync(h, (void *)p, n, cudaMemcpyDeviceToHost, s, SIMTBED_HERE), void *h, CUdeviceptr p, size_t n, CUstream s)
SIMTBED_DRIVER(cuMemsetD8, cudaMemset((void *)p, v, n, SIMTBED_HERE), CUdeviceptr p, unsigned char v, size_t n)
SIMTBED_DRIVER(cuMemcpy, cudaMemcpy((void *)p, (void *)q, n, cudaMemcpyDefault, SIMTBED_HERE), CUdeviceptr p, CUdeviceptr q, size_t n)
SIMTBED_DRIVER(cuMemHostAlloc, cudaHostAlloc(p, n, f, SIMTBED_HERE), void **p, size_t n, unsigned f)
SIMTBED_DRIVER(cuStreamWaitEvent, cudaStreamWaitEvent(s, e, f, SIMTBED_HERE), CUstream s, CUevent e, unsigned f)
SIMTBED_DRIVER(cuStreamCreate, cudaStreamCreateWithFlags(s, f, SIMTBED_HERE), CUstream *s, unsigned f)
SIMTBED_DRIVER(cuStreamSynchronize, cudaStreamSynchronize(s, SIMTBED_HERE), CUstream s)
SIMTBED_DRIVER(cuStreamDestroy, cudaStreamDestroy(s, SIMTBED_HERE), CUstream s)
SIMTBED_DRIVER(cuEventCreate, cudaEventCreateWithFlags(e, f, SIMTBED_HERE), CUevent *e, unsigned f)
SIMTBED_DRIVER(cuEventRecord, cudaEventRecord(e, s, SIMTBED_HERE), CUevent e, CUstream s)
SIMTBED_DRIVER(cuEventSynchronize, cudaEventSynchronize(e, SIMTBED_HERE), CUevent e)
SIMTBED_DRIVER(cuEventElapsedTime, cudaEventElapsedTime(t, a, b, SIMTBED_HERE), float *t, CUevent a, CUevent b)
SIMTBED_DRIVER(cuEventDestroy, cudaEventDestroy(e, SIMTBED_HERE), CUevent e)
SIMTBED_DRIVER(cuGetErrorString, (*t = cudaGetErrorString((cudaError_t)e), 0), CUresult e, const char **t)
enum CUfunction_attribute {
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
    CU_FUNC_ATTRIBUTE_NUM_REGS, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14
};
SIMTBED_DRIVER(cuFuncSetAttribute, cudaFuncSetAttribute(k, (cudaFuncAttribute)a, v, SIMTBED_HERE), CUfunction k, CUfunction_attribute a, int v)
SIMTBED_DRIVER(cuLaunchKernel, x ? 1 : simtbedLaunch(k, gx, gy, gz, bx, by, bz, 1, 1, 1, n, a, 0, s, SIMTBED_HERE), CUfunction k, unsigned gx, unsigned gy,
    unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned n, CUstream s, void **a, void **x)
template <class T> static inline cudaError_t cudaGetFuncBySymbol(cudaFunction_t *f, T *k) { return *f = (const void *)k, cudaSuccess; }
static inline CUresult cuDeviceGetName(char *text, int size, CUdevice d, SIMTBED_PLACE) {
    cudaDeviceProp p;
    const int code = cudaGetDeviceProperties(&p, d, SIMTBED_HERE);
    if (!code) snprintf(text, size, "%s", p.name);
    return (CUresult)code;
}
// ------------------------------------------------------------------ tensor maps
typedef uint32_t cuuint32_t; typedef uint64_t cuuint64_t;
enum CUtensorMapDataType {
    CU_TENSOR_MAP_DATA_TYPE_UINT8, CU_TENSOR_MAP_DATA_TYPE_UINT16, CU_TENSOR_MAP_DATA_TYPE_UINT32, CU_TENSOR_MAP_DATA_TYPE_INT32,
    CU_TENSOR_MAP_DATA_TYPE_UINT64, CU_TENSOR_MAP_DATA_TYPE_INT64, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT64, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ,
    CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ,
};
enum CUtensorMapInterleave { CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_INTERLEAVE_16B, CU_TENSOR_MAP_INTERLEAVE_32B };
enum CUtensorMapSwizzle {
    CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_128B,
    CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B,
};
enum CUtensorMapL2promotion {
    CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_64B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
};
enum CUtensorMapFloatOOBfill { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA };
#define SIMTBED_ENCODED CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *sizes, \
    const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, \
    CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill
typedef CUresult (*PFN_cuTensorMapEncodeTiled_v12000)(SIMTBED_ENCODED);
typedef PFN_cuTensorMapEncodeTiled_v12000 PFN_cuTensorMapEncodeTiled;
static inline CUresult cuTensorMapEncodeTiled(SIMTBED_ENCODED, SIMTBED_PLACE) {
    const int modes[6] = {type, (int)rank, interleave, swizzle, promotion, fill};
    const void *layout[4] = {sizes, strides, box, steps};
    return (CUresult)simtbedEncodeTensorMap(map, modes, address, layout, SIMTBED_HERE);
}
static inline CUresult simtbed_encode_tiled(SIMTBED_ENCODED) {
    return cuTensorMapEncodeTiled(map, type, rank, address, sizes, strides, box, steps, interleave, swizzle, promotion, fill, "cuTensorMapEncodeTiled", 0);
}
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess, cudaDriverEntryPointSymbolNotFound, cudaDriverEntryPointVersionNotSufficent };
enum { cudaEnableDefault = 0, cudaEnableLegacyStream = 1, cudaEnablePerThreadDefaultStream = 2 };
// The one function that programs take so: others have no entry point.
static inline cudaError_t cudaGetDriverEntryPoint(const char *name, void **f, unsigned long long, cudaDriverEntryPointQueryResult *status = 0) {
    const bool known = !strcmp(name, "cuTensorMapEncodeTiled");
    *f = known ? (void *)simtbed_encode_tiled : 0;
    if (status) *status = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return known || status ? cudaSuccess : cudaErrorSymbolNotFound;
}
static inline cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **f, unsigned, unsigned long long flags, cudaDriverEntryPointQueryResult *status = 0) {
    return cudaGetDriverEntryPoint(name, f, flags, status);
}
