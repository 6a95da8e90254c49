// Functions of the runtime for typed pointers.
template <class T> static inline cudaError_t cudaMalloc(T **pointer, size_t size, SIMTBED_PLACE) {
    return cudaMalloc((void **)pointer, size, simtbed_file, simtbed_line);
}
template <class T> static inline cudaError_t cudaMallocManaged(T **pointer, size_t size, unsigned flags = 1, SIMTBED_PLACE) {
    return cudaMallocManaged((void **)pointer, size, flags, simtbed_file, simtbed_line);
}
template <class T> static inline cudaError_t cudaMallocHost(T **pointer, size_t size, unsigned flags = 0, SIMTBED_PLACE) {
    return cudaMallocHost((void **)pointer, size, flags, simtbed_file, simtbed_line);
}
