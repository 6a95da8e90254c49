// Types and constants of the CUDA runtime. `functions.h` declares its functions.
#pragma once
#define SIMTBED_PLACE const char *simtbed_file = __builtin_FILE(), int simtbed_line = __builtin_LINE()
#define CUDART_CB
#define CUDARTAPI
#define SIMTBED_CODES(X) \
    X(0, Success, "no error") X(1, ErrorInvalidValue, "invalid argument") X(2, ErrorMemoryAllocation, "out of memory") \
    X(3, ErrorInitializationError, "initialization error") X(9, ErrorInvalidConfiguration, "invalid configuration argument") \
    X(12, ErrorInvalidPitchValue, "invalid pitch argument") X(13, ErrorInvalidSymbol, "invalid device symbol") \
    X(17, ErrorInvalidDevicePointer, "invalid device pointer") X(21, ErrorInvalidMemcpyDirection, "invalid copy direction for memcpy") \
    X(98, ErrorInvalidDeviceFunction, "invalid device function") X(100, ErrorNoDevice, "no CUDA-capable device is detected") \
    X(101, ErrorInvalidDevice, "invalid device ordinal") X(209, ErrorNoKernelImageForDevice, "no kernel image is available for execution on the device") \
    X(217, ErrorPeerAccessUnsupported, "peer access is not supported between these two devices") \
    X(400, ErrorInvalidResourceHandle, "invalid resource handle") X(600, ErrorNotReady, "device not ready") \
    X(700, ErrorIllegalAddress, "an illegal memory access was encountered") X(701, ErrorLaunchOutOfResources, "too many resources requested for launch") \
    X(704, ErrorPeerAccessAlreadyEnabled, "peer access is already enabled") X(705, ErrorPeerAccessNotEnabled, "peer access has not been enabled") \
    X(710, ErrorAssert, "device-side assert triggered") X(712, ErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped") \
    X(713, ErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region") X(719, ErrorLaunchFailure, "unspecified launch failure") \
    X(720, ErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch") X(801, ErrorNotSupported, "operation not supported") X(999, ErrorUnknown, "unknown error")
#define SIMTBED_CODE(NUMBER, NAME, TEXT) cuda##NAME = NUMBER,
enum cudaError { SIMTBED_CODES(SIMTBED_CODE) };
typedef enum cudaError cudaError_t;
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
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
cudaError_t cudaLaunchKernel(const void *stub, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream);
int cudaConfigureCall(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = 0);
void __assert_fail(const char *text, const char *file, unsigned line, const char *function) noexcept;
}
static inline void __simtbed_assert(bool holds, const char *text, SIMTBED_PLACE) {
    if (!holds) __assert_fail(text, simtbed_file, simtbed_line, "");
}
