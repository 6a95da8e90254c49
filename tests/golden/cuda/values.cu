// printed, for blocks of 32 threads

struct ordered_result {
    int item0;
    int item1;
};

struct grown_result {
    float item0;
    float item1;
    float item2;
    float item3;
    int item4;
};

static __device__ __forceinline__ ordered_result ordered(int a, int b) {
    if (a < b) return ordered_result{a, b};
    return ordered_result{b, a};
}

static __device__ __forceinline__ grown_result grown(
    float box_low_x,
    float box_low_y,
    float box_high_x,
    float box_high_y,
    int box_tag,
    float by
) {
    return grown_result{box_low_x - by, box_low_y - by, box_high_x + by, box_high_y + by, box_tag + 1};
}

static __device__ __forceinline__ float area(
    float box_low_x,
    float box_low_y,
    float box_high_x,
    float box_high_y,
    int box_tag
) {
    return (box_high_x - box_low_x) * (box_high_y - box_low_y);
}

extern "C" __global__ void __launch_bounds__(32)
printed(
    const int* __restrict__ x,
    float* __restrict__ out,
    float box_low_x,
    float box_low_y,
    float box_high_x,
    float box_high_y,
    int box_tag,
    int pair_0,
    float pair_1
) {
    const int lane = int(threadIdx.x) & 31;
    ordered_result ordered_1 = ordered(x[lane], pair_0);
    int low = ordered_1.item0;
    int high = ordered_1.item1;
    int value_1 = low;
    low = high;
    high = value_1;
    int best_0 = low;
    float best_1 = 0.5f;
    for (int i = 0; i < 4; ++i) {
        if (x[i] > best_0) {
            best_0 = x[i];
            best_1 *= 2.0f;
        }
    }
    grown_result grown_1 = grown(box_low_x, box_low_y, box_high_x, box_high_y, box_tag, pair_1);
    float larger_low_x = grown_1.item0;
    float larger_low_y = grown_1.item1;
    float choice_1, choice_2;
    if (high > 3) {
        choice_1 = larger_low_x;
        choice_2 = larger_low_y;
    } else {
        choice_1 = box_low_x;
        choice_2 = box_low_y;
    }
    float chosen_y = choice_2;
    out[lane] = area(larger_low_x, larger_low_y, grown_1.item2, grown_1.item3, grown_1.item4) + choice_1 + best_1
        + (float)high;
}
