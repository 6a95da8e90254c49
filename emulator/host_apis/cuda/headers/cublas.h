// cuBLAS by the host, over the memory of the device and in double precision. Matrices are column-major.
#ifndef SIMTBED_CUBLAS_H
#define SIMTBED_CUBLAS_H
#define CUBLAS_API_H_  // the samples' helpers ask for it
#include <complex>
#include <vector>
#include "cuComplex.h"
#define SIMTBED_STATUSES(X) \
    X(0, SUCCESS) X(1, NOT_INITIALIZED) X(3, ALLOC_FAILED) X(7, INVALID_VALUE) X(8, ARCH_MISMATCH) X(11, MAPPING_ERROR) X(13, EXECUTION_FAILED) \
    X(14, INTERNAL_ERROR) X(15, NOT_SUPPORTED) X(16, LICENSE_ERROR)
#define SIMTBED_STATUS(NUMBER, NAME) CUBLAS_STATUS_##NAME = NUMBER,
typedef enum { SIMTBED_STATUSES(SIMTBED_STATUS) } cublasStatus_t;
#define SIMTBED_STATUS_NAME(NUMBER, NAME) case NUMBER: return "CUBLAS_STATUS_" #NAME;
static inline const char *cublasGetStatusName(cublasStatus_t status) {
    switch (status) { SIMTBED_STATUSES(SIMTBED_STATUS_NAME) }
    return "unknown status";
}
static inline const char *cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }
typedef cublasStatus_t cublasStatus;
typedef enum { CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C, CUBLAS_OP_HERMITAN = 2 } cublasOperation_t;
typedef enum { CUBLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_DEVICE } cublasPointerMode_t;
typedef enum { CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER, CUBLAS_FILL_MODE_FULL } cublasFillMode_t;
typedef enum { CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT } cublasSideMode_t;
typedef enum { CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT } cublasDiagType_t;
typedef enum { CUBLAS_ATOMICS_NOT_ALLOWED, CUBLAS_ATOMICS_ALLOWED } cublasAtomicsMode_t;
typedef enum {
    CUBLAS_DEFAULT_MATH, CUBLAS_TENSOR_OP_MATH, CUBLAS_PEDANTIC_MATH, CUBLAS_TF32_TENSOR_OP_MATH, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
} cublasMath_t;
typedef enum { CUBLAS_GEMM_DFALT = -1, CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_ALGO0 = 0, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99, CUBLAS_GEMM_DFALT_TENSOR_OP = 99 } cublasGemmAlgo_t;
typedef enum {
    CUBLAS_COMPUTE_16F = 64, CUBLAS_COMPUTE_16F_PEDANTIC, CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_PEDANTIC, CUBLAS_COMPUTE_64F,
    CUBLAS_COMPUTE_64F_PEDANTIC, CUBLAS_COMPUTE_32I = 72, CUBLAS_COMPUTE_32I_PEDANTIC, CUBLAS_COMPUTE_32F_FAST_16F = 74,
    CUBLAS_COMPUTE_32F_FAST_16BF, CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;
typedef enum {
    CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_8I, CUDA_C_32F, CUDA_C_64F, CUDA_R_8U = 8, CUDA_R_32I = 10, CUDA_R_16BF = 14
} cudaDataType;
typedef cudaDataType cudaDataType_t;
typedef struct cublasContext { cudaStream_t stream; cublasPointerMode_t pointers; cublasMath_t math; cublasAtomicsMode_t atomics; } *cublasHandle_t;

// ------------------------------------------------------------------ elements by their type
#define SIMTBED_ELEMENTS(X) \
    X(CUDA_R_32F, float) X(CUDA_R_64F, double) X(CUDA_R_16F, __half) X(CUDA_R_16BF, __nv_bfloat16) X(CUDA_R_8I, signed char) X(CUDA_R_8U, unsigned char) X(CUDA_R_32I, int)
template <class T> struct simtbed_blas;
#define SIMTBED_BLAS(CODE, T) template <> struct simtbed_blas<T> { static constexpr cudaDataType code = CODE; typedef double wide; };
SIMTBED_ELEMENTS(SIMTBED_BLAS)
template <> struct simtbed_blas<cuComplex> { static constexpr cudaDataType code = CUDA_C_32F; typedef std::complex<double> wide; };
template <> struct simtbed_blas<cuDoubleComplex> { static constexpr cudaDataType code = CUDA_C_64F; typedef std::complex<double> wide; };
static inline size_t simtbed_size(cudaDataType type) {
#define SIMTBED_SIZE(CODE, T) case CODE: return sizeof(T);
    switch (type) { SIMTBED_ELEMENTS(SIMTBED_SIZE) SIMTBED_SIZE(CUDA_C_32F, cuComplex) SIMTBED_SIZE(CUDA_C_64F, cuDoubleComplex) }
    return 0;
}
template <class W> static inline W simtbed_load(const void *p, cudaDataType type, size_t i) {
#define SIMTBED_LOAD(CODE, T) case CODE: return (W)(double)((const T *)p)[i];
    if constexpr (!std::is_same_v<W, double>) {
        if (type == CUDA_C_32F) return W(((const float *)p)[2 * i], ((const float *)p)[2 * i + 1]);
        if (type == CUDA_C_64F) return W(((const double *)p)[2 * i], ((const double *)p)[2 * i + 1]);
    }
    switch (type) { SIMTBED_ELEMENTS(SIMTBED_LOAD) default: return W(); }
}
static inline void simtbed_save(void *p, cudaDataType type, size_t i, std::complex<double> value) {
    if (type == CUDA_C_32F) ((cuComplex *)p)[i] = {(float)value.real(), (float)value.imag()};
    if (type == CUDA_C_64F) ((cuDoubleComplex *)p)[i] = {value.real(), value.imag()};
#define SIMTBED_SAVE(CODE, T) case CODE: ((T *)p)[i] = (T)value.real(); break;
    switch (type) { SIMTBED_ELEMENTS(SIMTBED_SAVE) default: break; }
}
static inline double simtbed_conj(double value) { return value; }
static inline std::complex<double> simtbed_conj(std::complex<double> value) { return std::conj(value); }
static inline double simtbed_length(double value) { return std::abs(value); }
static inline double simtbed_length(std::complex<double> value) { return std::abs(value.real()) + std::abs(value.imag()); }

// ------------------------------------------------------------------ the handle, copies
#define SIMTBED_BLAS_CALL(NAME, ...) static inline cublasStatus_t cublas##NAME(__VA_ARGS__, SIMTBED_PLACE)
#define SIMTBED_OF_HANDLE(NAME, TYPE, MEMBER) \
    static inline cublasStatus_t cublasSet##NAME(cublasHandle_t h, TYPE value) { return h ? (h->MEMBER = value, CUBLAS_STATUS_SUCCESS) : CUBLAS_STATUS_NOT_INITIALIZED; } \
    static inline cublasStatus_t cublasGet##NAME(cublasHandle_t h, TYPE *value) { return h ? (*value = h->MEMBER, CUBLAS_STATUS_SUCCESS) : CUBLAS_STATUS_NOT_INITIALIZED; }
SIMTBED_OF_HANDLE(Stream, cudaStream_t, stream) SIMTBED_OF_HANDLE(PointerMode, cublasPointerMode_t, pointers)
SIMTBED_OF_HANDLE(MathMode, cublasMath_t, math) SIMTBED_OF_HANDLE(AtomicsMode, cublasAtomicsMode_t, atomics)
static inline cublasStatus_t cublasCreate(cublasHandle_t *handle) { return *handle = new cublasContext(), CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasDestroy(cublasHandle_t handle) { return delete handle, CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasGetVersion(cublasHandle_t, int *version) { return *version = 130000, CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *, size_t) { return CUBLAS_STATUS_SUCCESS; }
#define SIMTBED_MOVE(SIDE, KIND) \
    SIMTBED_BLAS_CALL(SIDE##Matrix, int rows, int columns, int size, const void *a, int lda, void *b, int ldb) { \
        const size_t width = (size_t)rows * size; \
        return cudaMemcpy2D(b, (size_t)ldb * size, a, (size_t)lda * size, width, columns, KIND, SIMTBED_HERE) ? CUBLAS_STATUS_MAPPING_ERROR : CUBLAS_STATUS_SUCCESS; \
    } \
    SIMTBED_BLAS_CALL(SIDE##Vector, int n, int size, const void *x, int incx, void *y, int incy) { \
        return cublas##SIDE##Matrix(1, n, size, x, incx, y, incy, SIMTBED_HERE); \
    }
SIMTBED_MOVE(Set, cudaMemcpyHostToDevice) SIMTBED_MOVE(Get, cudaMemcpyDeviceToHost)

// ------------------------------------------------------------------ vectors
#define SIMTBED_ALL(...) for (cudaError_t code : {__VA_ARGS__}) if (code) return CUBLAS_STATUS_EXECUTION_FAILED;
#define SIMTBED_ACCESS(P, BYTES, WRITES) simtbedAccess(P, BYTES, WRITES, SIMTBED_HERE)
// A vector of n elements, of which those of a negative distance begin at the end.
template <class T> struct simtbed_vector {
    typedef typename simtbed_blas<T>::wide W;
    void *p; long long n, step;
    simtbed_vector(const T *p, long long n, long long step) : p((void *)p), n(n), step(step) {}
    size_t at(long long i) const { return step < 0 ? (i - n + 1) * step : i * step; }
    size_t bytes() const { return n > 0 ? ((n - 1) * std::abs(step) + 1) * sizeof(T) : 0; }
    W operator[](long long i) const { return simtbed_load<W>(p, simtbed_blas<T>::code, at(i)); }
    void set(long long i, std::complex<double> value) const { simtbed_save(p, simtbed_blas<T>::code, at(i), value); }
};
#define SIMTBED_LEVEL_1(NAME, T, ...) \
    SIMTBED_BLAS_CALL(NAME, cublasHandle_t h, int n, __VA_ARGS__) { \
        typedef simtbed_blas<T>::wide W; \
        if (!h) return CUBLAS_STATUS_NOT_INITIALIZED; \
        const simtbed_vector<T> X(x, n, incx);
#define SIMTBED_LEVEL_1_OF_2(NAME, T, ...) \
    SIMTBED_LEVEL_1(NAME, T, __VA_ARGS__) \
        const simtbed_vector<T> Y(y, n, incy); \
        SIMTBED_ALL(SIMTBED_ACCESS(x, X.bytes(), 0), SIMTBED_ACCESS(y, Y.bytes(), 1))
// A vector whose distance is not positive has no elements.
#define SIMTBED_POSITIVE(WRITES) if (incx < 1) n = 0; SIMTBED_ALL(SIMTBED_ACCESS(x, n ? X.bytes() : 0, WRITES))
#define SIMTBED_END return CUBLAS_STATUS_SUCCESS; }
#define SIMTBED_EACH for (int i = 0; i < n; i++)
#define SIMTBED_VECTORS(S, T) \
    SIMTBED_LEVEL_1_OF_2(S##axpy, T, const T *a, const T *x, int incx, T *y, int incy) \
        const W scale = simtbed_vector<T>(a, 1, 1)[0]; SIMTBED_EACH Y.set(i, scale * X[i] + Y[i]); SIMTBED_END \
    SIMTBED_LEVEL_1_OF_2(S##copy, T, const T *x, int incx, T *y, int incy) SIMTBED_EACH Y.set(i, X[i]); SIMTBED_END \
    SIMTBED_LEVEL_1_OF_2(S##swap, T, T *x, int incx, T *y, int incy) \
        SIMTBED_ALL(SIMTBED_ACCESS(x, X.bytes(), 1)) SIMTBED_EACH { const W old = X[i]; X.set(i, Y[i]); Y.set(i, old); } SIMTBED_END
#define SIMTBED_SCALE(NAME, T, R) \
    SIMTBED_LEVEL_1(NAME, T, const R *a, T *x, int incx) \
        const W scale = simtbed_vector<R>(a, 1, 1)[0]; SIMTBED_POSITIVE(1) SIMTBED_EACH X.set(i, scale * X[i]); SIMTBED_END
#define SIMTBED_RESULT(R, VALUE) \
        if (h->pointers) SIMTBED_ALL(SIMTBED_ACCESS(result, sizeof *result, 1)) simtbed_vector<R>(result, 1, 1).set(0, VALUE); SIMTBED_END
#define SIMTBED_DOT(NAME, T, VALUE) \
    SIMTBED_LEVEL_1(NAME, T, const T *x, int incx, const T *y, int incy, T *result) \
        const simtbed_vector<T> Y(y, n, incy); SIMTBED_ALL(SIMTBED_ACCESS(x, X.bytes(), 0), SIMTBED_ACCESS(y, Y.bytes(), 0)) \
        W sum = 0; SIMTBED_EACH sum += VALUE * Y[i]; SIMTBED_RESULT(T, sum)
#define SIMTBED_NORM(NAME, T, R, VALUE, RESULT) \
    SIMTBED_LEVEL_1(NAME, T, const T *x, int incx, R *result) \
        SIMTBED_POSITIVE(0) W sum = 0; SIMTBED_EACH sum += VALUE; SIMTBED_RESULT(R, RESULT)
#define SIMTBED_EXTREME(NAME, T, LESS) \
    SIMTBED_LEVEL_1(NAME, T, const T *x, int incx, int *result) \
        SIMTBED_POSITIVE(0) int best = 0; \
        SIMTBED_EACH if (simtbed_length(X[i]) LESS simtbed_length(X[best])) best = i; SIMTBED_RESULT(int, n > 0 ? best + 1 : 0)
#define SIMTBED_REDUCTIONS(S, I, T, R) \
    SIMTBED_NORM(S##nrm2, T, R, X[i] * simtbed_conj(X[i]), std::sqrt(sum)) SIMTBED_NORM(S##asum, T, R, simtbed_length(X[i]), sum) \
    SIMTBED_EXTREME(I##amax, T, >) SIMTBED_EXTREME(I##amin, T, <)
SIMTBED_VECTORS(S, float) SIMTBED_VECTORS(D, double) SIMTBED_VECTORS(C, cuComplex) SIMTBED_VECTORS(Z, cuDoubleComplex)
SIMTBED_SCALE(Sscal, float, float) SIMTBED_SCALE(Dscal, double, double) SIMTBED_SCALE(Cscal, cuComplex, cuComplex)
SIMTBED_SCALE(Zscal, cuDoubleComplex, cuDoubleComplex) SIMTBED_SCALE(Csscal, cuComplex, float) SIMTBED_SCALE(Zdscal, cuDoubleComplex, double)
SIMTBED_REDUCTIONS(S, Is, float, float) SIMTBED_REDUCTIONS(D, Id, double, double)
SIMTBED_REDUCTIONS(Sc, Ic, cuComplex, float) SIMTBED_REDUCTIONS(Dz, Iz, cuDoubleComplex, double)
SIMTBED_DOT(Sdot, float, X[i]) SIMTBED_DOT(Ddot, double, X[i]) SIMTBED_DOT(Cdotu, cuComplex, X[i]) SIMTBED_DOT(Zdotu, cuDoubleComplex, X[i])
SIMTBED_DOT(Cdotc, cuComplex, simtbed_conj(X[i])) SIMTBED_DOT(Zdotc, cuDoubleComplex, simtbed_conj(X[i]))

// ------------------------------------------------------------------ matrices
// A matrix op(p) of rows * columns. type: of its elements.
struct simtbed_matrix {
    void *p; cudaDataType type; cublasOperation_t op; long long rows, columns, ld;
    simtbed_matrix(const void *p, cudaDataType type, cublasOperation_t op, long long rows, long long columns, long long ld)
        : p((void *)p), type(type), op(op), rows(rows), columns(columns), ld(ld) {}
    size_t bytes() const {
        const long long m = op ? columns : rows, n = op ? rows : columns;
        return m > 0 && n > 0 ? ((n - 1) * ld + m) * simtbed_size(type) : 0;
    }
    bool is_valid() const { return rows >= 0 && columns >= 0 && ld >= (op ? columns : rows) && simtbed_size(type); }
    template <class W> W get(long long i, long long j) const {
        const W value = simtbed_load<W>(p, type, op ? j + i * ld : i + j * ld);
        return op == CUBLAS_OP_C ? simtbed_conj(value) : value;
    }
    void set(long long i, long long j, std::complex<double> value) const { simtbed_save(p, type, i + j * ld, value); }
    template <class W> std::vector<W> values() const {  // by rows
        std::vector<W> values(rows * columns);
        for (long long i = 0; i < rows; i++) for (long long j = 0; j < columns; j++) values[i * columns + j] = get<W>(i, j);
        return values;
    }
};
// c = alpha * a * b + beta * c
template <class W> static cublasStatus_t simtbed_multiply(
    cublasHandle_t h, const simtbed_matrix &a, const simtbed_matrix &b, const simtbed_matrix &c, W alpha, W beta, SIMTBED_PLACE) {
    if (!h) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!a.is_valid() || !b.is_valid() || !c.is_valid()) return CUBLAS_STATUS_INVALID_VALUE;
    SIMTBED_ALL(SIMTBED_ACCESS(a.p, a.bytes(), 0), SIMTBED_ACCESS(b.p, b.bytes(), 0), SIMTBED_ACCESS(c.p, c.bytes(), 1))
    const std::vector<W> x = a.values<W>(), y = b.values<W>();
    std::vector<W> row;
    for (long long i = 0; i < c.rows; i++) {
        row.assign(c.columns, W());
        for (long long l = 0; l < a.columns; l++) for (long long j = 0; j < c.columns; j++) row[j] += x[i * a.columns + l] * y[l * c.columns + j];
        for (long long j = 0; j < c.columns; j++) c.set(i, j, alpha * row[j] + (beta == W() ? W() : beta * c.get<W>(i, j)));
    }
    return CUBLAS_STATUS_SUCCESS;
}
#define SIMTBED_EACH_MATRIX(CALL) \
    for (int i = 0; i < count; i++) if (const cublasStatus_t status = CALL) return status; \
    return CUBLAS_STATUS_SUCCESS;
#define SIMTBED_GEMM_SHAPE cublasHandle_t h, cublasOperation_t opa, cublasOperation_t opb, int m, int n, int k
#define SIMTBED_GEMMS(S, T) \
    SIMTBED_BLAS_CALL(S##gemm, SIMTBED_GEMM_SHAPE, const T *alpha, const T *a, int lda, const T *b, int ldb, const T *beta, T *c, int ldc) { \
        const cudaDataType t = simtbed_blas<T>::code; \
        return simtbed_multiply(h, {a, t, opa, m, k, lda}, {b, t, opb, k, n, ldb}, {c, t, CUBLAS_OP_N, m, n, ldc}, \
            simtbed_vector<T>(alpha, 1, 1)[0], simtbed_vector<T>(beta, 1, 1)[0], SIMTBED_HERE); \
    } \
    SIMTBED_BLAS_CALL(S##gemmStridedBatched, SIMTBED_GEMM_SHAPE, const T *alpha, const T *a, int lda, long long sa, const T *b, int ldb, long long sb, \
        const T *beta, T *c, int ldc, long long sc, int count) { \
        SIMTBED_EACH_MATRIX(cublas##S##gemm(h, opa, opb, m, n, k, alpha, a + i * sa, lda, b + i * sb, ldb, beta, c + i * sc, ldc, SIMTBED_HERE)) \
    } \
    SIMTBED_BLAS_CALL(S##gemmBatched, SIMTBED_GEMM_SHAPE, const T *alpha, const T *const *a, int lda, const T *const *b, int ldb, \
        const T *beta, T *const *c, int ldc, int count) { \
        SIMTBED_ALL(SIMTBED_ACCESS(a, count * sizeof *a, 0), SIMTBED_ACCESS(b, count * sizeof *b, 0), SIMTBED_ACCESS(c, count * sizeof *c, 0)) \
        SIMTBED_EACH_MATRIX(cublas##S##gemm(h, opa, opb, m, n, k, alpha, a[i], lda, b[i], ldb, beta, c[i], ldc, SIMTBED_HERE)) \
    }
#define SIMTBED_MATRICES(S, T) \
    SIMTBED_BLAS_CALL(S##gemv, cublasHandle_t h, cublasOperation_t op, int m, int n, const T *alpha, const T *a, int lda, const T *x, int incx, const T *beta, T *y, int incy) { \
        typedef simtbed_blas<T>::wide W; \
        const simtbed_matrix A(a, simtbed_blas<T>::code, op, op ? n : m, op ? m : n, lda); \
        const simtbed_vector<T> X(x, A.columns, incx), Y(y, A.rows, incy); \
        if (!A.is_valid()) return CUBLAS_STATUS_INVALID_VALUE; \
        SIMTBED_ALL(SIMTBED_ACCESS(x, X.bytes(), 0), SIMTBED_ACCESS(y, Y.bytes(), 1), SIMTBED_ACCESS(a, A.bytes(), 0)) \
        const W p = simtbed_vector<T>(alpha, 1, 1)[0], q = simtbed_vector<T>(beta, 1, 1)[0]; \
        for (int i = 0; i < A.rows; i++) { \
            W sum = 0; \
            for (int j = 0; j < A.columns; j++) sum += A.get<W>(i, j) * X[j]; \
            Y.set(i, p * sum + (q == W() ? W() : q * Y[i])); \
        } \
        return CUBLAS_STATUS_SUCCESS; \
    } \
    SIMTBED_BLAS_CALL(S##geam, cublasHandle_t h, cublasOperation_t opa, cublasOperation_t opb, int m, int n, const T *alpha, const T *a, int lda, const T *beta, \
        const T *b, int ldb, T *c, int ldc) { \
        typedef simtbed_blas<T>::wide W; \
        const cudaDataType t = simtbed_blas<T>::code; \
        const simtbed_matrix A(a, t, opa, m, n, lda), B(b, t, opb, m, n, ldb), C(c, t, CUBLAS_OP_N, m, n, ldc); \
        const W p = simtbed_vector<T>(alpha, 1, 1)[0], q = simtbed_vector<T>(beta, 1, 1)[0]; \
        SIMTBED_ALL(SIMTBED_ACCESS(a, p == W() ? 0 : A.bytes(), 0), SIMTBED_ACCESS(b, q == W() ? 0 : B.bytes(), 0), SIMTBED_ACCESS(c, C.bytes(), 1)) \
        std::vector<W> sum((size_t)m * n); \
        for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) \
            sum[(size_t)i * n + j] = (p == W() ? W() : p * A.get<W>(i, j)) + (q == W() ? W() : q * B.get<W>(i, j)); \
        for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) C.set(i, j, sum[(size_t)i * n + j]); \
        return CUBLAS_STATUS_SUCCESS; \
    }
SIMTBED_GEMMS(S, float) SIMTBED_GEMMS(D, double) SIMTBED_GEMMS(C, cuComplex) SIMTBED_GEMMS(Z, cuDoubleComplex) SIMTBED_GEMMS(H, __half)
SIMTBED_MATRICES(S, float) SIMTBED_MATRICES(D, double) SIMTBED_MATRICES(C, cuComplex) SIMTBED_MATRICES(Z, cuDoubleComplex)
// The type of alpha and beta. compute: a cublasComputeType_t, or the cudaDataType of earlier versions. c: type of the result.
static inline cudaDataType simtbed_scale(int compute, cudaDataType c) {
    const bool is_complex = c == CUDA_C_32F || c == CUDA_C_64F;
    switch (compute) {
        case CUBLAS_COMPUTE_16F: case CUBLAS_COMPUTE_16F_PEDANTIC: case CUDA_R_16F: return CUDA_R_16F;
        case CUBLAS_COMPUTE_64F: case CUBLAS_COMPUTE_64F_PEDANTIC: case CUDA_R_64F: return is_complex ? CUDA_C_64F : CUDA_R_64F;
        case CUBLAS_COMPUTE_32I: case CUBLAS_COMPUTE_32I_PEDANTIC: case CUDA_R_32I: return c == CUDA_R_32I ? CUDA_R_32I : CUDA_R_32F;
        default: return is_complex ? CUDA_C_32F : CUDA_R_32F;
    }
}
SIMTBED_BLAS_CALL(GemmStridedBatchedEx, SIMTBED_GEMM_SHAPE, const void *alpha, const void *a, cudaDataType ta, int lda, long long sa, const void *b,
    cudaDataType tb, int ldb, long long sb, const void *beta, void *c, cudaDataType tc, int ldc, long long sc, int count, int compute, cublasGemmAlgo_t algorithm) {
    const cudaDataType s = simtbed_scale(compute, tc);
    typedef std::complex<double> W;
    const W p = simtbed_load<W>(alpha, s, 0), q = simtbed_load<W>(beta, s, 0);
    for (int i = 0; i < count; i++) {
        const simtbed_matrix A((const char *)a + i * sa * simtbed_size(ta), ta, opa, m, k, lda), B((const char *)b + i * sb * simtbed_size(tb), tb, opb, k, n, ldb);
        const simtbed_matrix C((char *)c + i * sc * simtbed_size(tc), tc, CUBLAS_OP_N, m, n, ldc);
        const bool is_complex = tc == CUDA_C_32F || tc == CUDA_C_64F;
        const cublasStatus_t status = is_complex ? simtbed_multiply(h, A, B, C, p, q, SIMTBED_HERE) : simtbed_multiply(h, A, B, C, p.real(), q.real(), SIMTBED_HERE);
        if (status) return status;
    }
    return CUBLAS_STATUS_SUCCESS;
}
SIMTBED_BLAS_CALL(GemmEx, SIMTBED_GEMM_SHAPE, const void *alpha, const void *a, cudaDataType ta, int lda, const void *b, cudaDataType tb, int ldb,
    const void *beta, void *c, cudaDataType tc, int ldc, int compute, cublasGemmAlgo_t algorithm) {
    return cublasGemmStridedBatchedEx(h, opa, opb, m, n, k, alpha, a, ta, lda, 0, b, tb, ldb, 0, beta, c, tc, ldc, 0, 1, compute, algorithm, SIMTBED_HERE);
}
SIMTBED_BLAS_CALL(SgemmEx, SIMTBED_GEMM_SHAPE, const float *alpha, const void *a, cudaDataType ta, int lda, const void *b, cudaDataType tb, int ldb,
    const float *beta, void *c, cudaDataType tc, int ldc) {
    return cublasGemmEx(h, opa, opb, m, n, k, alpha, a, ta, lda, b, tb, ldb, beta, c, tc, ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT, SIMTBED_HERE);
}
SIMTBED_BLAS_CALL(DotEx, cublasHandle_t h, int n, const void *x, cudaDataType tx, int incx, const void *y, cudaDataType ty, int incy, void *result, cudaDataType tr,
    cudaDataType compute) {  // a matrix of one row, whose columns have the distance of the elements
    if (incx < 1 || incy < 1 || tr == CUDA_C_32F || tr == CUDA_C_64F) return CUBLAS_STATUS_NOT_SUPPORTED;
    const simtbed_matrix X(x, tx, CUBLAS_OP_N, 1, n, incx), Y(y, ty, CUBLAS_OP_N, 1, n, incy);
    SIMTBED_ALL(SIMTBED_ACCESS(x, X.bytes(), 0), SIMTBED_ACCESS(y, Y.bytes(), 0), h->pointers ? SIMTBED_ACCESS(result, simtbed_size(tr), 1) : cudaSuccess)
    double sum = 0;
    SIMTBED_EACH sum += X.get<double>(0, i) * Y.get<double>(0, i);
    simtbed_save(result, tr, 0, sum);
    SIMTBED_END
#endif
