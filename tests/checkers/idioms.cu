//// add of doubles
__device__ double add(double *to, double v) {
    unsigned long long *p = (unsigned long long *)to, old = *p, assumed;
    do { assumed = old; old = atomicCAS(p, assumed, __double_as_longlong(v + __longlong_as_double(assumed))); } while (assumed != old);
    return __longlong_as_double(old);
}

//// maximum with early exits
__device__ float most(float *to, float v) {
    if (*to >= v) return *to;
    int *p = (int *)to, old = *p, assumed;
    do { assumed = old; if (__int_as_float(assumed) >= v) break; old = atomicCAS(p, assumed, __float_as_int(v)); } while (assumed != old);
    return __int_as_float(old);
}

//// add to a byte
__device__ void add(int *word, int place, int v) {
    int old = *word, assumed;
    do { assumed = old; int sum = (assumed >> 8 * place & 255) + v; old = atomicCAS(word, assumed,
         (assumed & ~(255 << 8 * place)) | (sum & 255) << 8 * place); } while (assumed != old);
}
