//// reverse
__global__ void reverse(const float *in, float *out, int n) {
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = in[t];
    __syncthreads();
    int source = n - t;
    out[t] = tile[source];
}

//// shift
template <typename T> __global__ void shift(const T *in, T *out, int n)
{
    __shared__ T tile[64];
    int i = threadIdx.x;
    tile[i] = in[i];
    __syncthreads();
    if (i < n) out[i] = tile[(i + 1) % 64];
}
