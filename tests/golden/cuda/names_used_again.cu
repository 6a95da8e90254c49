// names_used_again, for blocks of 32 threads

extern "C" __global__ void __launch_bounds__(32)
names_used_again(int* __restrict__ out, int n) {
    const int lane = int(threadIdx.x) & 31;
    int total = 0;
    for (int i = 0; i < lane; ++i) {
        total += i;
    }
    for (long long i_1 = 0LL; i_1 < 4LL; ++i_1) {
        total += (int)i_1;
    }
    for (int n_1 = 0; n_1 < 5; ++n_1) {
        total += lane;
    }
    out[lane] = total + 7;
}
