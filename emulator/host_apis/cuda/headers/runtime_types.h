// Types and constants of the CUDA runtime. `functions.h` declares its functions.
#pragma once
#define SIMTBED_PLACE const char *simtbed_file = __builtin_FILE(), int simtbed_line = __builtin_LINE()
#define __DRIVER_TYPES_H__  // the samples' helpers ask for these headers
#define __CUDA_RUNTIME_H__
#define CUDART_CB
#define CUDARTAPI
#define SIMTBED_CODES(X) \
    X(0, Success, "no error") X(1, ErrorInvalidValue, "invalid argument") X(2, ErrorMemoryAllocation, "out of memory") \
    X(3, ErrorInitializationError, "initialization error") X(4, ErrorCudartUnloading, "driver shutting down") \
    X(5, ErrorProfilerDisabled, "profiler disabled while using external profiling tool") X(9, ErrorInvalidConfiguration, "invalid configuration argument") \
    X(12, ErrorInvalidPitchValue, "invalid pitch argument") X(13, ErrorInvalidSymbol, "invalid device symbol") \
    X(17, ErrorInvalidDevicePointer, "invalid device pointer") X(18, ErrorInvalidTexture, "invalid texture reference") \
    X(19, ErrorInvalidTextureBinding, "texture is not bound to a pointer") X(20, ErrorInvalidChannelDescriptor, "invalid channel descriptor") \
    X(21, ErrorInvalidMemcpyDirection, "invalid copy direction for memcpy") \
    X(26, ErrorInvalidFilterSetting, "linear filtering not supported for non-float type") \
    X(27, ErrorInvalidNormSetting, "read as normalized float not supported for 32-bit non float type") \
    X(35, ErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version") \
    X(43, ErrorDuplicateVariableName, "duplicate global variable looked up by string name") \
    X(44, ErrorDuplicateTextureName, "duplicate texture looked up by string name") \
    X(45, ErrorDuplicateSurfaceName, "duplicate surface looked up by string name") \
    X(46, ErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable") \
    X(49, ErrorIncompatibleDriverContext, "incompatible driver context") X(52, ErrorMissingConfiguration, "__global__ function call is not configured") \
    X(65, ErrorLaunchMaxDepthExceeded, "launch would exceed maximum depth of nested launches") \
    X(66, ErrorLaunchFileScopedTex, "launch failed because kernel uses unsupported, file-scoped textures (texture objects are supported)") \
    X(67, ErrorLaunchFileScopedSurf, "launch failed because kernel uses unsupported, file-scoped surfaces (surface objects are supported)") \
    X(68, ErrorSyncDepthExceeded, "cudaDeviceSynchronize failed because caller's grid depth exceeds cudaLimitDevRuntimeSyncDepth") \
    X(98, ErrorInvalidDeviceFunction, "invalid device function") X(127, ErrorStartupFailure, "startup failure in cuda runtime") X(100, ErrorNoDevice, "no CUDA-capable device is detected") \
    X(101, ErrorInvalidDevice, "invalid device ordinal") X(200, ErrorInvalidKernelImage, "device kernel image is invalid") \
    X(205, ErrorMapBufferObjectFailed, "mapping of buffer object failed") X(206, ErrorUnmapBufferObjectFailed, "unmapping of buffer object failed") \
    X(208, ErrorAlreadyMapped, "resource already mapped") \
    X(209, ErrorNoKernelImageForDevice, "no kernel image is available for execution on the device") \
    X(214, ErrorECCUncorrectable, "uncorrectable ECC error encountered") X(215, ErrorUnsupportedLimit, "limit is not supported on this architecture") \
    X(216, ErrorDeviceAlreadyInUse, "exclusive-thread device already in use by a different thread") \
    X(217, ErrorPeerAccessUnsupported, "peer access is not supported between these two devices") \
    X(302, ErrorSharedObjectSymbolNotFound, "shared object symbol not found") X(303, ErrorSharedObjectInitFailed, "shared object initialization failed") \
    X(304, ErrorOperatingSystem, "OS call failed or operation not supported on this OS") \
    X(400, ErrorInvalidResourceHandle, "invalid resource handle") X(500, ErrorSymbolNotFound, "named symbol not found") X(600, ErrorNotReady, "device not ready") \
    X(700, ErrorIllegalAddress, "an illegal memory access was encountered") X(701, ErrorLaunchOutOfResources, "too many resources requested for launch") \
    X(702, ErrorLaunchTimeout, "the launch timed out and was terminated") X(708, ErrorSetOnActiveProcess, "cannot set while device is active in this process") \
    X(704, ErrorPeerAccessAlreadyEnabled, "peer access is already enabled") X(705, ErrorPeerAccessNotEnabled, "peer access has not been enabled") \
    X(900, ErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing") \
    X(710, ErrorAssert, "device-side assert triggered") X(711, ErrorTooManyPeers, "peer access resources exhausted") X(712, ErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped") \
    X(713, ErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region") X(719, ErrorLaunchFailure, "unspecified launch failure") \
    X(16, ErrorInvalidHostPointer, "invalid host pointer") X(22, ErrorAddressOfConstant, "invalid address of constant") X(6, ErrorProfilerNotInitialized, "profiler not initialized") \
    X(7, ErrorProfilerAlreadyStarted, "profiler already started") X(8, ErrorProfilerAlreadyStopped, "profiler already stopped") X(23, ErrorTextureFetchFailed, "fetch from texture failed") \
    X(24, ErrorTextureNotBound, "texture is not bound") X(25, ErrorSynchronizationError, "incorrect use of __syncthreads()") X(28, ErrorMixedDeviceExecution, "mixed device execution") \
    X(31, ErrorNotYetImplemented, "feature not yet implemented") X(32, ErrorMemoryValueTooLarge, "memory size or pointer value too large") X(37, ErrorInvalidSurface, "invalid surface reference") \
    X(53, ErrorPriorLaunchFailure, "unspecified launch failure in prior launch") X(69, ErrorLaunchPendingCountExceeded, "launch would exceed the limit of pending launches") \
    X(207, ErrorArrayIsMapped, "array is mapped") X(210, ErrorAlreadyAcquired, "resource already acquired") X(211, ErrorNotMapped, "resource not mapped") \
    X(212, ErrorNotMappedAsArray, "resource not mapped as array") X(213, ErrorNotMappedAsPointer, "resource not mapped as pointer") X(218, ErrorInvalidPtx, "a PTX JIT compilation failed") \
    X(219, ErrorInvalidGraphicsContext, "invalid OpenGL or DirectX context") X(220, ErrorNvlinkUncorrectable, "uncorrectable NVLink error detected during the execution") \
    X(221, ErrorJitCompilerNotFound, "PTX JIT compiler library not found") X(300, ErrorInvalidSource, "device kernel image is invalid") X(301, ErrorFileNotFound, "file not found") \
    X(401, ErrorIllegalState, "the operation cannot be performed in the present state") \
    X(703, ErrorLaunchIncompatibleTexturing, "launch uses incompatible texturing mode") X(709, ErrorContextIsDestroyed, "context is destroyed") X(714, ErrorHardwareStackError, "hardware stack error") \
    X(715, ErrorIllegalInstruction, "an illegal instruction was encountered") X(716, ErrorMisalignedAddress, "misaligned address") \
    X(717, ErrorInvalidAddressSpace, "operation not supported on global/shared address space") X(718, ErrorInvalidPc, "invalid program counter") X(10000, ErrorApiFailureBase, "api failure base") \
    X(802, ErrorSystemNotReady, "system not yet initialized") X(901, ErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture") \
    X(720, ErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch") X(800, ErrorNotPermitted, "operation not permitted") X(910, ErrorGraphExecUpdateFailure, "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update") \
    X(801, ErrorNotSupported, "operation not supported") X(912, ErrorInvalidClusterSize, "cluster misconfiguration") X(999, ErrorUnknown, "unknown error")
#define SIMTBED_CODE(NUMBER, NAME, TEXT) cuda##NAME = NUMBER,
enum cudaError { SIMTBED_CODES(SIMTBED_CODE) };
typedef enum cudaError cudaError_t;
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };
enum cudaSharedMemConfig { cudaSharedMemBankSizeDefault, cudaSharedMemBankSizeFourByte, cudaSharedMemBankSizeEightByte };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout = 9, cudaFuncAttributeNonPortableClusterSizeAllowed = 14 };
enum cudaSharedCarveout { cudaSharedmemCarveoutDefault = -1, cudaSharedmemCarveoutMaxL1 = 0, cudaSharedmemCarveoutMaxShared = 100 };
enum cudaLimit { cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize, cudaLimitDevRuntimeSyncDepth, cudaLimitDevRuntimePendingLaunchCount, cudaLimitMaxL2FetchGranularity, cudaLimitPersistingL2CacheSize };
enum cudaMemLocationType { cudaMemLocationTypeInvalid, cudaMemLocationTypeDevice, cudaMemLocationTypeHost };
struct cudaMemLocation { cudaMemLocationType type; int id; };
enum cudaComputeMode { cudaComputeModeDefault, cudaComputeModeExclusive, cudaComputeModeProhibited, cudaComputeModeExclusiveProcess };
enum cudaMemoryAdvise { cudaMemAdviseSetReadMostly = 1, cudaMemAdviseUnsetReadMostly, cudaMemAdviseSetPreferredLocation, cudaMemAdviseUnsetPreferredLocation, cudaMemAdviseSetAccessedBy, cudaMemAdviseUnsetAccessedBy };
enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1, cudaDevAttrMaxBlockDimX, cudaDevAttrMaxBlockDimY, cudaDevAttrMaxBlockDimZ, cudaDevAttrMaxGridDimX,
    cudaDevAttrMaxGridDimY, cudaDevAttrMaxGridDimZ, cudaDevAttrMaxSharedMemoryPerBlock, cudaDevAttrTotalConstantMemory, cudaDevAttrWarpSize,
    cudaDevAttrMaxPitch, cudaDevAttrMaxRegistersPerBlock, cudaDevAttrClockRate, cudaDevAttrTextureAlignment, cudaDevAttrGpuOverlap,
    cudaDevAttrMultiProcessorCount, cudaDevAttrKernelExecTimeout, cudaDevAttrIntegrated, cudaDevAttrCanMapHostMemory, cudaDevAttrComputeMode,
    cudaDevAttrConcurrentKernels = 31, cudaDevAttrEccEnabled, cudaDevAttrPciBusId, cudaDevAttrPciDeviceId, cudaDevAttrTccDriver,
    cudaDevAttrMemoryClockRate, cudaDevAttrGlobalMemoryBusWidth, cudaDevAttrL2CacheSize, cudaDevAttrMaxThreadsPerMultiProcessor,
    cudaDevAttrAsyncEngineCount, cudaDevAttrUnifiedAddressing, cudaDevAttrComputeCapabilityMajor = 75, cudaDevAttrComputeCapabilityMinor,
    cudaDevAttrStreamPrioritiesSupported = 78, cudaDevAttrGlobalL1CacheSupported, cudaDevAttrLocalL1CacheSupported,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor, cudaDevAttrMaxRegistersPerMultiprocessor, cudaDevAttrManagedMemory,
    cudaDevAttrIsMultiGpuBoard, cudaDevAttrHostNativeAtomicSupported = 86, cudaDevAttrPageableMemoryAccess = 88,
    cudaDevAttrConcurrentManagedAccess, cudaDevAttrComputePreemptionSupported, cudaDevAttrCooperativeLaunch = 95,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97, cudaDevAttrMaxBlocksPerMultiprocessor = 106, cudaDevAttrMaxPersistingL2CacheSize = 108,
    cudaDevAttrReservedSharedMemoryPerBlock = 111, cudaDevAttrMemoryPoolsSupported = 115, cudaDevAttrSurfaceAlignment = 30,
    cudaDevAttrPciDomainId = 50, cudaDevAttrTexturePitchAlignment, cudaDevAttrMultiGpuBoardGroupID = 85, cudaDevAttrSingleToDoublePrecisionPerfRatio = 87,
    cudaDevAttrCanUseHostPointerForRegisteredMem = 91, cudaDevAttrCooperativeMultiDeviceLaunch = 96, cudaDevAttrHostRegisterSupported = 99,
    cudaDevAttrPageableMemoryAccessUsesHostPageTables, cudaDevAttrDirectManagedMemAccessFromHost, cudaDevAttrMaxAccessPolicyWindowSize = 109, cudaDevAttrClusterLaunch = 120
};
struct cudaDeviceProp {
    char name[256]; size_t totalGlobalMem, sharedMemPerBlock; int regsPerBlock, warpSize; size_t memPitch;
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate; size_t totalConstMem; int major, minor;
    size_t textureAlignment, texturePitchAlignment; int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory,
    computeMode, concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount, unifiedAddressing,
    memoryClockRate, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported,
    globalL1CacheSupported, localL1CacheSupported; size_t sharedMemPerMultiprocessor; int regsPerMultiprocessor, managedMemory,
    isMultiGpuBoard, hostNativeAtomicSupported, singleToDoublePrecisionPerfRatio, pageableMemoryAccess, concurrentManagedAccess,
    cooperativeLaunch, cooperativeMultiDeviceLaunch; size_t sharedMemPerBlockOptin; int maxBlocksPerMultiProcessor; size_t reservedSharedMemPerBlock,
    surfaceAlignment; int multiGpuBoardGroupID, computePreemptionSupported, canUseHostPointerForRegisteredMem, accessPolicyMaxWindowSize,
    directManagedMemAccessFromHost, pageableMemoryAccessUsesHostPageTables, hostRegisterSupported, memoryPoolsSupported, clusterLaunch;
};
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;
typedef struct cudaArray *cudaArray_t;
typedef const struct cudaArray *cudaArray_const_t;
typedef void (*cudaHostFn_t)(void *);
typedef void (*cudaStreamCallback_t)(cudaStream_t, cudaError_t, void *);
struct cudaPos { size_t x, y, z; };
struct cudaPitchedPtr { void *ptr; size_t pitch, xsize, ysize; };
struct cudaMemcpy3DParms {
    cudaArray_t srcArray; cudaPos srcPos; cudaPitchedPtr srcPtr; cudaArray_t dstArray; cudaPos dstPos; cudaPitchedPtr dstPtr;
    cudaExtent extent; cudaMemcpyKind kind;
};
enum cudaChannelFormatKind { cudaChannelFormatKindSigned, cudaChannelFormatKindUnsigned, cudaChannelFormatKindFloat, cudaChannelFormatKindNone };
enum cudaResourceType { cudaResourceTypeArray, cudaResourceTypeMipmappedArray, cudaResourceTypeLinear, cudaResourceTypePitch2D };
struct cudaResourceDesc {
    cudaResourceType resType;
    union {
        struct { cudaArray_t array; } array;
        struct { void *devPtr; cudaChannelFormatDesc desc; size_t sizeInBytes; } linear;
        struct { void *devPtr; cudaChannelFormatDesc desc; size_t width, height, pitchInBytes; } pitch2D;
    } res;
};
struct cudaTextureDesc {
    cudaTextureAddressMode addressMode[3]; cudaTextureFilterMode filterMode; cudaTextureReadMode readMode; int sRGB; float borderColor[4];
    int normalizedCoords; unsigned maxAnisotropy; cudaTextureFilterMode mipmapFilterMode; float mipmapLevelBias, minMipmapLevelClamp,
    maxMipmapLevelClamp; int disableTrilinearOptimization, seamlessCubemap;
};
struct cudaKernelNodeParams { void *func; dim3 gridDim, blockDim; unsigned sharedMemBytes; void **kernelParams, **extra; };
struct cudaHostNodeParams { cudaHostFn_t fn; void *userData; };
struct cudaMemsetParams { void *dst; size_t pitch; unsigned value, elementSize; size_t width, height; };
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive, cudaStreamCaptureStatusInvalidated };
enum cudaMemPoolAttr {
    cudaMemPoolReuseFollowEventDependencies = 1, cudaMemPoolReuseAllowOpportunistic, cudaMemPoolReuseAllowInternalDependencies,
    cudaMemPoolAttrReleaseThreshold
};
enum cudaMemAllocationType { cudaMemAllocationTypeInvalid, cudaMemAllocationTypePinned };
enum cudaMemAllocationHandleType { cudaMemHandleTypeNone, cudaMemHandleTypePosixFileDescriptor };
enum cudaMemAccessFlags { cudaMemAccessFlagsProtNone, cudaMemAccessFlagsProtRead, cudaMemAccessFlagsProtReadWrite = 3 };
struct cudaMemPoolProps { cudaMemAllocationType allocType; cudaMemAllocationHandleType handleTypes; cudaMemLocation location; }; struct cudaMemAccessDesc { cudaMemLocation location; cudaMemAccessFlags flags; };
struct cudaMemAllocNodeParams { cudaMemPoolProps poolProps; const cudaMemAccessDesc *accessDescs; size_t accessDescCount, bytesize; void *dptr; };
enum cudaGraphExecUpdateResult { cudaGraphExecUpdateSuccess, cudaGraphExecUpdateError, cudaGraphExecUpdateErrorTopologyChanged };
struct cudaGraphExecUpdateResultInfo { cudaGraphExecUpdateResult result; cudaGraphNode_t errorNode, errorFromNode; };
enum cudaAccessProperty { cudaAccessPropertyNormal, cudaAccessPropertyStreaming, cudaAccessPropertyPersisting };
struct cudaAccessPolicyWindow { void *base_ptr; size_t num_bytes; float hitRatio; cudaAccessProperty hitProp, missProp; }; enum cudaLaunchAttributeID {
    cudaLaunchAttributeIgnore, cudaLaunchAttributeAccessPolicyWindow, cudaLaunchAttributeCooperative, cudaLaunchAttributeSynchronizationPolicy,
    cudaLaunchAttributeClusterDimension, cudaLaunchAttributeProgrammaticStreamSerialization = 6, cudaLaunchAttributePriority = 8
};
union cudaLaunchAttributeValue { cudaAccessPolicyWindow accessPolicyWindow; int cooperative, programmaticStreamSerializationAllowed, priority; struct { unsigned x, y, z; } clusterDim; };
struct cudaLaunchAttribute { cudaLaunchAttributeID id; cudaLaunchAttributeValue val; }; typedef cudaLaunchAttributeID cudaStreamAttrID; typedef cudaLaunchAttributeValue cudaStreamAttrValue;
#define cudaStreamAttributeAccessPolicyWindow cudaLaunchAttributeAccessPolicyWindow
struct cudaLaunchConfig_t { dim3 gridDim, blockDim; size_t dynamicSmemBytes; cudaStream_t stream; cudaLaunchAttribute *attrs; unsigned numAttrs; };
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };
struct cudaPointerAttributes { cudaMemoryType type; int device; void *devicePointer, *hostPointer; };
struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes; int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA,
    maxDynamicSharedSizeBytes, preferredShmemCarveout;
};
#define cudaArrayDefault 0
#define cudaArrayLayered 1
#define cudaArraySurfaceLoadStore 2
#define cudaArrayTextureGather 8
#define cudaMemAttachSingle 4
#define cudaPeerAccessDefault 0
#define cudaHostAllocDefault 0
#define cudaHostAllocPortable 1
#define cudaHostAllocMapped 2
#define cudaHostAllocWriteCombined 4
#define cudaHostRegisterDefault 0
#define cudaHostRegisterPortable 1
#define cudaHostRegisterMapped 2
enum { cudaHostRegisterIoMemory = 4, cudaHostRegisterReadOnly = 8, cudaEventInterprocess = 4, cudaDeviceLmemResizeToMax = 16, cudaGraphInstantiateFlagAutoFreeOnLaunch = 1 };
#define cudaMemAttachGlobal 1
#define cudaMemAttachHost 2
#define cudaStreamDefault 0
#define cudaStreamNonBlocking 1
#define cudaStreamLegacy ((cudaStream_t)1)
#define cudaStreamPerThread ((cudaStream_t)2)
#define cudaEventDefault 0
#define cudaEventBlockingSync 1
#define cudaEventDisableTiming 2
#define cudaDeviceScheduleAuto 0
#define cudaDeviceScheduleSpin 1
#define cudaDeviceScheduleYield 2
#define cudaDeviceScheduleBlockingSync 4
#define cudaDeviceBlockingSync 4
#define cudaDeviceMapHost 8
#define cudaOccupancyDefault 0
#define cudaCpuDeviceId (-1)
#define cudaInvalidDeviceId (-2)
#define SIMTBED_TEXT(NUMBER, NAME, TEXT) case cuda##NAME: return TEXT;
static inline const char *cudaGetErrorString(cudaError_t code) {
    switch (code) { SIMTBED_CODES(SIMTBED_TEXT) }
    return "unrecognized error code";
}
#define SIMTBED_NAME(NUMBER, NAME, TEXT) case cuda##NAME: return "cuda" #NAME;
static inline const char *cudaGetErrorName(cudaError_t code) {
    switch (code) { SIMTBED_CODES(SIMTBED_NAME) }
    return "unrecognized error code";
}

// ------------------------------------------------------------------ of the code that clang generates for launches
extern "C" {
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = 0, SIMTBED_PLACE);
cudaError_t cudaLaunchKernel(const void *stub, dim3 grid, dim3 block, void **arguments, size_t shared = 0, cudaStream_t stream = 0);
cudaError_t cudaLaunchCooperativeKernel(
    const void *stub, dim3 grid, dim3 block, void **arguments, size_t shared = 0, cudaStream_t stream = 0, SIMTBED_PLACE);
int cudaConfigureCall(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = 0);
void __assert_fail(const char *text, const char *file, unsigned line, const char *function) noexcept;
}
static inline void __simtbed_assert(bool holds, const char *text, SIMTBED_PLACE) {
    if (!holds) __assert_fail(text, simtbed_file, simtbed_line, "");
}

// ------------------------------------------------------------------ functions of CUDA that host code calls too
#define SIMTBED_EXTREMES(R, A, B) \
    static inline R max(A a, B b) { return (R)a < (R)b ? (R)b : (R)a; } \
    static inline R min(A a, B b) { return (R)b < (R)a ? (R)b : (R)a; }
SIMTBED_EXTREMES(int, int, int) SIMTBED_EXTREMES(unsigned, unsigned, unsigned) SIMTBED_EXTREMES(unsigned, int, unsigned)
SIMTBED_EXTREMES(unsigned, unsigned, int) SIMTBED_EXTREMES(long, long, long) SIMTBED_EXTREMES(unsigned long, unsigned long, unsigned long)
SIMTBED_EXTREMES(long long, long long, long long) SIMTBED_EXTREMES(unsigned long long, unsigned long long, unsigned long long)
SIMTBED_EXTREMES(float, float, float) SIMTBED_EXTREMES(double, double, double) SIMTBED_EXTREMES(double, float, double)
SIMTBED_EXTREMES(double, double, float)
#define SIMTBED_CONVERSION(R, NAME, T) static inline R NAME(T x) { return (R)x; }
SIMTBED_CONVERSION(float, __half2float, __half) SIMTBED_CONVERSION(float, __bfloat162float, __nv_bfloat16)
SIMTBED_CONVERSION(__half, __float2half_rn, float) SIMTBED_CONVERSION(__half, __double2half, double)
SIMTBED_CONVERSION(__nv_bfloat16, __float2bfloat16_rn, float) SIMTBED_CONVERSION(__nv_bfloat16, __double2bfloat16, double)
