// step_of_either_sign, for blocks of 32 threads

#include <cassert>

extern "C" __global__ void __launch_bounds__(32)
step_of_either_sign(int* __restrict__ out) {
    const int lane = int(threadIdx.x) & 31;
    int total = 0;
    int step = 8 - lane;
    if (step == 0) {
        total = -1;
    } else {
        assert(step != 0 && "a range's step is not 0");
        for (int i = lane; step > 0 ? i < 40 - lane : step < 0 && i > 40 - lane; i += step) {
            if (i == 1000) continue;
            total += i;
        }
    }
    out[lane] = total;
}
