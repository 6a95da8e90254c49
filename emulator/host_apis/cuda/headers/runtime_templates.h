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

// ------------------------------------------------------------------ structures by value
SIMTBED_TYPED(cudaFuncGetAttributes, (a, (const void *)k, SIMTBED_HERE), cudaFuncAttributes *a, T *k)
SIMTBED_TYPED(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, (n, (const void *)k, t, s, f, SIMTBED_HERE), int *n, T *k, int t, size_t s, unsigned f)
template <class T> static inline cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int *g, int *b, T *k, size_t s = 0, int m = 0, unsigned = 0) {
    return cudaOccupancyMaxPotentialBlockSize(g, b, k, s, m);
}
SIMTBED_TYPED(cudaMallocAsync, ((void **)p, n, s, SIMTBED_HERE), T **p, size_t n, cudaMemPool_t pool, cudaStream_t s)
SIMTBED_TYPED(cudaMallocFromPoolAsync, ((void **)p, n, q, s, SIMTBED_HERE), T **p, size_t n, cudaMemPool_t q, cudaStream_t s)
#define SIMTBED_CALL(NAME, OTHER, ARGUMENTS, ...) \
    static inline cudaError_t NAME(__VA_ARGS__, SIMTBED_PLACE) { return OTHER ARGUMENTS; }
SIMTBED_CALL(cudaMalloc3D, simtbedMalloc3D, (p, &e, SIMTBED_HERE), cudaPitchedPtr *p, cudaExtent e)
SIMTBED_CALL(cudaMalloc3DArray, simtbedMalloc3DArray, (a, d, &e, f, SIMTBED_HERE), cudaArray_t *a, const cudaChannelFormatDesc *d, cudaExtent e, unsigned f = 0)
SIMTBED_CALL(cudaMemset3D, simtbedMemset3D, (&p, v, &e, SIMTBED_HERE), cudaPitchedPtr p, int v, cudaExtent e)
SIMTBED_CALL(cudaMemset3DAsync, simtbedMemset3D, (&p, v, &e, SIMTBED_HERE), cudaPitchedPtr p, int v, cudaExtent e, cudaStream_t s = 0)
SIMTBED_CALL(cudaCreateTextureObject, simtbedCreateTexture, (t, r, d, SIMTBED_HERE), cudaTextureObject_t *t, const cudaResourceDesc *r, const cudaTextureDesc *d, const void *view)
SIMTBED_CALL(cudaGraphInstantiate, cudaGraphInstantiate, (x, g, 0, SIMTBED_HERE), cudaGraphExec_t *x, cudaGraph_t g, cudaGraphNode_t *n, char *text, size_t size)
static inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t x, cudaGraph_t g, cudaGraphNode_t *n, cudaGraphExecUpdateResult *r, SIMTBED_PLACE) {
    cudaGraphExecUpdateResultInfo info = {};
    const cudaError_t code = cudaGraphExecUpdate(x, g, &info, SIMTBED_HERE);
    if (n) *n = info.errorNode;
    return *r = info.result, code;
}
static inline int simtbed_device(cudaMemLocation l) { return l.type == cudaMemLocationTypeDevice ? l.id : cudaCpuDeviceId; }
SIMTBED_CALL(cudaMemPrefetchAsync, cudaMemPrefetchAsync, (p, n, simtbed_device(l), s, SIMTBED_HERE), const void *p, size_t n, cudaMemLocation l, unsigned f, cudaStream_t s = 0)
SIMTBED_CALL(cudaMemAdvise, cudaMemAdvise, (p, n, a, simtbed_device(l), SIMTBED_HERE), const void *p, size_t n, cudaMemoryAdvise a, cudaMemLocation l)
// settings without an effect on an emulator
static inline cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaStreamAttrID, const cudaStreamAttrValue *) { return cudaSuccess; }
static inline cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }

// ------------------------------------------------------------------ launches with attributes
struct simtbed_config {
    const cudaLaunchConfig_t *config; const char *file; int line;
    simtbed_config(const cudaLaunchConfig_t *config, SIMTBED_PLACE) : config(config), file(simtbed_file), line(simtbed_line) {}
};
struct simtbed_attributes {
    int cooperative = 0;
    bool has_cluster = false;
    unsigned x = 1, y = 1, z = 1;
    simtbed_attributes(const cudaLaunchConfig_t &c) {
        for (unsigned i = 0; i < c.numAttrs; i++) {
            const auto &value = c.attrs[i].val;
            if (c.attrs[i].id == cudaLaunchAttributeCooperative) cooperative = value.cooperative;
            if (c.attrs[i].id == cudaLaunchAttributeClusterDimension) has_cluster = true, x = value.clusterDim.x, y = value.clusterDim.y, z = value.clusterDim.z;
        }
    }
    unsigned blocks(dim3 g) const { return !has_cluster ? 0 : x && y && z && g.x % x + g.y % y + g.z % z == 0 ? x * y * z : -1; }
};
static inline cudaError_t cudaLaunchKernelExC(simtbed_config own, const void *k, void **a) {
    const cudaLaunchConfig_t &c = *own.config;
    const simtbed_attributes with(c);
    return simtbedLaunch(k, c.gridDim.x, c.gridDim.y, c.gridDim.z, c.blockDim.x, c.blockDim.y, c.blockDim.z, with.x, with.y, with.z, c.dynamicSmemBytes, a,
        with.cooperative, c.stream, own.file, own.line);
}
#define SIMTBED_CLUSTERS(NAME, LARGEST) \
    template <class T> static inline cudaError_t NAME(int *n, T *k, const cudaLaunchConfig_t *c, SIMTBED_PLACE) { \
        return simtbedClusters(n, (const void *)k, simtbed_attributes(*c).blocks(c->gridDim), LARGEST, c->blockDim.x * c->blockDim.y * c->blockDim.z, c->dynamicSmemBytes, SIMTBED_HERE); \
    }
SIMTBED_CLUSTERS(cudaOccupancyMaxActiveClusters, 0)
SIMTBED_CLUSTERS(cudaOccupancyMaxPotentialClusterSize, 1)
template <class... P, class... A> static inline cudaError_t cudaLaunchKernelEx(simtbed_config own, void (*k)(P...), A &&...a) {
    return [&](P... values) {
        void *places[] = {(void *)&values..., 0};
        return cudaLaunchKernelExC(own, (const void *)k, places);
    }((A &&)a...);
}
static inline cudaExtent make_cudaExtent(size_t w, size_t h, size_t d) { return {w, h, d}; }
static inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
static inline cudaPitchedPtr make_cudaPitchedPtr(void *p, size_t pitch, size_t w, size_t h) { return {p, pitch, w, h}; }
static inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) { return {x, y, z, w, f}; }
template <class T> static inline cudaChannelFormatDesc cudaCreateChannelDesc() {
    typedef typename simtbed_texel<T>::lane lane;
    const int bits = 8 * sizeof(lane), lanes = sizeof(T) / sizeof(lane);
    return {bits, lanes > 1 ? bits : 0, lanes > 2 ? bits : 0, lanes > 3 ? bits : 0,
        lane(0.5f) > 0 ? cudaChannelFormatKindFloat : lane(-1) < 0 ? cudaChannelFormatKindSigned : cudaChannelFormatKindUnsigned};
}

// ------------------------------------------------------------------ texture references, themselves or their address
#define SIMTBED_REFERENCE template <class T, int D, cudaTextureReadMode M> static inline cudaError_t
template <class T, int D, cudaTextureReadMode M> static inline const texture<T, D, M> *simtbed_address(const texture<T, D, M> &t) { return &t; }
template <class T, int D, cudaTextureReadMode M> static inline const texture<T, D, M> *simtbed_address(const texture<T, D, M> *t) { return t; }
static inline const cudaChannelFormatDesc &simtbed_format(const cudaChannelFormatDesc &format) { return format; }
static inline const cudaChannelFormatDesc &simtbed_format(const cudaChannelFormatDesc *format) { return *format; }
SIMTBED_REFERENCE simtbed_bind(const texture<T, D, M> *t, const cudaResourceDesc &resource, SIMTBED_PLACE) {
    cudaTextureDesc description = {};
    for (int i = 0; i < 3; i++) description.addressMode[i] = t->addressMode[i];
    description.filterMode = t->filterMode, description.readMode = M, description.normalizedCoords = t->normalized;
    return simtbedBindTexture(t, &resource, &description, SIMTBED_HERE);
}
template <class R, class F> static inline cudaError_t cudaBindTexture(size_t *offset, const R &t, const void *p, const F &format, size_t size = UINT_MAX, SIMTBED_PLACE) {
    cudaResourceDesc resource = {cudaResourceTypeLinear};
    if (offset) *offset = 0;
    resource.res.linear = {(void *)p, simtbed_format(format), size};
    return simtbed_bind(simtbed_address(t), resource, SIMTBED_HERE);
}
SIMTBED_REFERENCE cudaBindTexture(size_t *offset, const texture<T, D, M> &t, const void *p, size_t size = UINT_MAX, SIMTBED_PLACE) {
    return cudaBindTexture(offset, t, p, cudaCreateChannelDesc<T>(), size, SIMTBED_HERE);
}
template <class R, class F> static inline cudaError_t cudaBindTexture2D(size_t *offset, const R &t, const void *p, const F &format, size_t w, size_t h, size_t pitch, SIMTBED_PLACE) {
    cudaResourceDesc resource = {cudaResourceTypePitch2D};
    if (offset) *offset = 0;
    resource.res.pitch2D = {(void *)p, simtbed_format(format), w, h, pitch};
    return simtbed_bind(simtbed_address(t), resource, SIMTBED_HERE);
}
SIMTBED_REFERENCE cudaBindTexture2D(size_t *offset, const texture<T, D, M> &t, const void *p, size_t w, size_t h, size_t pitch, SIMTBED_PLACE) {
    return cudaBindTexture2D(offset, t, p, cudaCreateChannelDesc<T>(), w, h, pitch, SIMTBED_HERE);
}
template <class R> static inline cudaError_t cudaBindTextureToArray(const R &t, cudaArray_const_t array, SIMTBED_PLACE) {
    cudaResourceDesc resource = {cudaResourceTypeArray};
    resource.res.array = {(cudaArray_t)array};
    return simtbed_bind(simtbed_address(t), resource, SIMTBED_HERE);
}
template <class R, class F> static inline cudaError_t cudaBindTextureToArray(const R &t, cudaArray_const_t array, const F &, SIMTBED_PLACE) {
    return cudaBindTextureToArray(t, array, SIMTBED_HERE);
}
template <class R> static inline cudaError_t cudaUnbindTexture(const R &t, SIMTBED_PLACE) { return simtbedBindTexture(simtbed_address(t), 0, 0, SIMTBED_HERE); }
