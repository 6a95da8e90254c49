// moved, for blocks of 32 threads

extern "C" __global__ void __launch_bounds__(32)
moved(
    float* __restrict__ cells_at_x,
    float* __restrict__ cells_at_y,
    float* __restrict__ cells_mass,
    const int* __restrict__ cells_number,
    float* __restrict__ out_at_x,
    float* __restrict__ out_at_y,
    float* __restrict__ out_mass,
    int* __restrict__ out_number,
    const double* __restrict__ flat_wide,
    const signed char* __restrict__ flat_flag,
    const short* __restrict__ flat_half
) {
    int i = int(threadIdx.x) & 31;
    cells_mass[2 + i * 4] *= 2.0f;
    int index_1 = 31 - i;
    float cell_at_y = cells_at_y[1 + index_1 * 4];
    float value_1 = cells_mass[2 + index_1 * 4];
    int value_2 = cells_number[3 + index_1 * 4];
    out_at_x[i * 4] = cells_at_x[index_1 * 4];
    out_at_y[1 + i * 4] = cell_at_y;
    out_mass[2 + i * 4] = value_1;
    out_number[3 + i * 4] = value_2;
    out_at_x[i * 4] = cell_at_y;
    out_number[3 + i * 4] += (int)flat_half[5 + i * 8];
    int index_2 = i & 7;
    float value_3 = cells_at_y[5 + index_2 * 4];
    cells_at_x[i * 4] = cells_at_x[4 + index_2 * 4];
    cells_at_y[1 + i * 4] = value_3;
}
