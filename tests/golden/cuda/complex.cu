// printed, for blocks of 32 threads

extern "C" __global__ void __launch_bounds__(32)
printed(const float2* __restrict__ x, float2* __restrict__ out, float* __restrict__ lengths) {
    const int lane = int(threadIdx.x) & 31;
    float2 total = make_float2(0.0f, 0.0f);
    for (int i = 0; i < 4; ++i) {
        float2 z = x[i];
        float2 choice_1;
        if (hypotf(z.x, z.y) > 2.0f) {
            float2 x_1 = x[i + 4];
            bool wide_1 = fabsf(x_1.x) >= fabsf(x_1.y);
            float large_1 = wide_1 ? x_1.x : x_1.y;
            float small_1 = wide_1 ? x_1.y : x_1.x;
            float ratio_1 = small_1 / large_1;
            float scale_1 = large_1 + small_1 * ratio_1;
            choice_1 = make_float2(((wide_1 ? z.x : z.y) + (wide_1 ? z.y : z.x) * ratio_1) / scale_1,
                (wide_1 ? z.y - (wide_1 ? z.x : z.y) * ratio_1 : z.y * ratio_1 - z.x) / scale_1);
        } else {
            float2 complex_1 = make_float2(z.x, -z.y);
            choice_1 = make_float2(1.0f * complex_1.x - -2.0f * complex_1.y, 1.0f * complex_1.y + -2.0f * complex_1.x);
        }
        total = make_float2(total.x + choice_1.x, total.y + choice_1.y);
    }
    float2 choice_2;
    if (total.x != 0.0f || total.y != 1.0f) {
        choice_2 = total;
    } else {
        choice_2 = make_float2(-total.x, -total.y);
    }
    out[lane] = choice_2;
    lengths[lane] = hypotf(total.x, total.y);
}
