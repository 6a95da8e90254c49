// smoothed, for blocks of 4 x 4 threads

static __device__ __forceinline__ float row_sum(const float* row, int row_shape0, int row_offset) {
    float total = 0.0f;
    for (int j = 0; j < row_shape0; ++j) {
        total += row[row_offset + j];
    }
    return total;
}

static __device__ __forceinline__ float row_sum_2(const float* row, int row_shape0, int row_stride0, int row_offset) {
    float total = 0.0f;
    for (int j = 0; j < row_shape0; ++j) {
        total += row[row_offset + j * row_stride0];
    }
    return total;
}

extern "C" __global__ void __launch_bounds__(16)
smoothed(
    const float* __restrict__ x,
    int x_shape0,
    int x_shape1,
    float* __restrict__ grid,
    int grid_shape1,
    int grid_shape2,
    int grid_shape3,
    float* __restrict__ out,
    int out_shape1
) {
    __shared__ float tile[16];
    int i = int(threadIdx.y);
    int j = int(threadIdx.x);
    tile[i * 4 + j] = x[i * x_shape1 + j];
    __syncthreads();
    int x_offset_1 = i * x_shape1;
    atomicAdd(&out[i * out_shape1 + j], tile[j * 4 + i]);
    float x_1 = x[x_offset_1 + j];
    float x_2 = x[x_shape1 + j];
    float row_sum_1 = row_sum(x, x_shape1, x_offset_1);
    float row_sum_3 = row_sum_2(x, x_shape0, x_shape1, j);
    grid[i * (grid_shape1 * (grid_shape2 * grid_shape3)) + j * (grid_shape2 * grid_shape3) + 1] = x_1 + x_2 + row_sum_1
        + row_sum_3 + x[i * x_shape1 + j];
    out[j * out_shape1 + i] += (float)(x_shape0 * x_shape1 + x_shape0 + max(min(-1 + x_shape0, x_shape0) - 1, 0));
}
