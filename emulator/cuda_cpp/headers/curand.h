// cuRAND: XORWOW and Philox4x32-10 in kernels. `curand_skips` has the matrices of 2^67 steps and their powers.
#ifndef SIMTBED_CURAND_H
#define SIMTBED_CURAND_H
#define SIMTBED_HD __host__ __device__ inline
typedef struct curandStateXORWOW { unsigned d, v[5]; int has_normal, has_normal_double; float normal; double normal_double; } curandStateXORWOW_t, curandState_t, curandState;
typedef struct curandStatePhilox4_32_10 {
    uint4 ctr, output; uint2 key; unsigned used; int has_normal, has_normal_double; float normal; double normal_double;
} curandStatePhilox4_32_10_t;
SIMTBED_HD unsigned curand(curandStateXORWOW_t *s) {
    const unsigned t = s->v[0] ^ (s->v[0] >> 2);
    for (int i = 0; i < 4; i++) s->v[i] = s->v[i + 1];
    s->v[4] = (s->v[4] ^ (s->v[4] << 4)) ^ (t ^ (t << 1));
    return s->v[4] + (s->d += 362437);
}
SIMTBED_HD void skipahead(unsigned long long n, curandStateXORWOW_t *s) { while (n--) curand(s); }
SIMTBED_HD void skipahead_sequence(unsigned long long n, curandStateXORWOW_t *s) {
    for (int power = 0; n; power < SIMTBED_SKIPS - 1 ? n >>= 1, power++ : n--) {
        if (power < SIMTBED_SKIPS - 1 && !(n & 1)) continue;
        unsigned next[5] = {};
        for (int bit = 0; bit < 160; bit++)
            if (s->v[bit / 32] >> bit % 32 & 1)
                for (int i = 0; i < 5; i++) next[i] ^= simtbed_skips[(power * 160 + bit) * 5 + i];
        for (int i = 0; i < 5; i++) s->v[i] = next[i];
    }
}
SIMTBED_HD void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset, curandStateXORWOW_t *s) {
    const unsigned low = 1099087573u * ((unsigned)seed ^ 0xaad26b49u), high = 2591861531u * ((unsigned)(seed >> 32) ^ 0xf7dcefddu);
    *s = {6615241u + high + low, {123456789u + low, 362436069u ^ low, 521288629u + high, 88675123u ^ high, 5783321u + low}, 0, 0, 0, 0};
    skipahead_sequence(sequence, s);
    skipahead(offset, s);
}
SIMTBED_HD uint4 curand_Philox4x32_10(uint4 c, uint2 k) {
    for (int round = 0; round < 10; round++) {
        const unsigned long long a = 0xD2511F53ull * c.x, b = 0xCD9E8D57ull * c.z;
        c = {(unsigned)(b >> 32) ^ c.y ^ k.x, (unsigned)b, (unsigned)(a >> 32) ^ c.w ^ k.y, (unsigned)a};
        k.x += 0x9E3779B9u, k.y += 0xBB67AE85u;
    }
    return c;
}
SIMTBED_HD void simtbed_add(curandStatePhilox4_32_10_t *s, unsigned long long low, unsigned long long high) {
    const unsigned long long first = (s->ctr.x | (unsigned long long)s->ctr.y << 32) + low;
    const unsigned long long second = (s->ctr.z | (unsigned long long)s->ctr.w << 32) + high + (first < low);
    s->ctr = {(unsigned)first, (unsigned)(first >> 32), (unsigned)second, (unsigned)(second >> 32)};
    s->output = curand_Philox4x32_10(s->ctr, s->key);
}
SIMTBED_HD void skipahead(unsigned long long n, curandStatePhilox4_32_10_t *s) {
    const unsigned used = s->used + (n & 3);
    s->used = used & 3;
    simtbed_add(s, n / 4 + used / 4, 0);
}
SIMTBED_HD void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10_t *s) { simtbed_add(s, 0, n); }
SIMTBED_HD void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset, curandStatePhilox4_32_10_t *s) {
    *s = {{0, 0, 0, 0}, {0, 0, 0, 0}, {(unsigned)seed, (unsigned)(seed >> 32)}, 0, 0, 0, 0, 0};
    skipahead_sequence(sequence, s);
    skipahead(offset, s);
}
SIMTBED_HD unsigned curand(curandStatePhilox4_32_10_t *s) {
    const unsigned at = s->used++, value = at == 0 ? s->output.x : at == 1 ? s->output.y : at == 2 ? s->output.z : s->output.w;
    if (s->used == 4) s->used = 0, simtbed_add(s, 1, 0);
    return value;
}
SIMTBED_HD uint4 curand4(curandStatePhilox4_32_10_t *s) {
    const unsigned x = curand(s), y = curand(s), z = curand(s), w = curand(s);
    return {x, y, z, w};
}
SIMTBED_HD float simtbed_uniform(unsigned x) { return x * 2.3283064e-10f + (2.3283064e-10f / 2.0f); }
SIMTBED_HD double simtbed_uniform_double(unsigned x, unsigned y) {
    return (x ^ (unsigned long long)y << 21) * 1.1102230246251565e-16 + (1.1102230246251565e-16 / 2.0);
}
SIMTBED_HD float2 simtbed_normals(unsigned x, unsigned y) {
    const float angle = y * (2.3283064e-10f * 6.2831855f) + (2.3283064e-10f * 6.2831855f / 2.0f), length = sqrtf(-2.0f * logf(simtbed_uniform(x)));
    return {length * sinf(angle), length * cosf(angle)};
}
SIMTBED_HD double2 simtbed_normals_double(unsigned x0, unsigned x1, unsigned y0, unsigned y1) {
    const double angle = 3.141592653589793 * (2 * simtbed_uniform_double(y0, y1)), length = sqrt(-2.0 * log(simtbed_uniform_double(x0, x1)));
    return {length * sin(angle), length * cos(angle)};
}
template <class S> SIMTBED_HD float curand_uniform(S *s) { return simtbed_uniform(curand(s)); }
template <class S> SIMTBED_HD double curand_uniform_double(S *s) {
    const unsigned x = curand(s), y = curand(s);
    return simtbed_uniform_double(x, y);
}
template <class S> SIMTBED_HD float2 curand_normal2(S *s) {
    const unsigned x = curand(s), y = curand(s);
    return simtbed_normals(x, y);
}
template <class S> SIMTBED_HD double2 curand_normal2_double(S *s) {
    const unsigned x0 = curand(s), x1 = curand(s), y0 = curand(s), y1 = curand(s);
    return simtbed_normals_double(x0, x1, y0, y1);
}
#define SIMTBED_NORMAL(NAME, T, STATE) \
    template <class S> SIMTBED_HD T curand_##NAME(S *s) { \
        if (s->has_##NAME) return s->has_##NAME = 0, s->NAME; \
        const STATE; \
        s->has_##NAME = 1, s->NAME = both.y; \
        return both.x; \
    }
SIMTBED_NORMAL(normal, float, float2 both = curand_normal2(s)) SIMTBED_NORMAL(normal_double, double, double2 both = curand_normal2_double(s))
template <class S> SIMTBED_HD float curand_log_normal(S *s, float mean, float deviation) { return expf(mean + deviation * curand_normal(s)); }
template <class S> SIMTBED_HD double curand_log_normal_double(S *s, double mean, double deviation) { return exp(mean + deviation * curand_normal_double(s)); }
SIMTBED_HD float4 curand_uniform4(curandStatePhilox4_32_10_t *s) {
    const uint4 x = curand4(s);
    return {simtbed_uniform(x.x), simtbed_uniform(x.y), simtbed_uniform(x.z), simtbed_uniform(x.w)};
}
SIMTBED_HD float4 curand_normal4(curandStatePhilox4_32_10_t *s) {
    const float2 a = curand_normal2(s), b = curand_normal2(s);
    return {a.x, a.y, b.x, b.y};
}
SIMTBED_HD double2 curand_uniform2_double(curandStatePhilox4_32_10_t *s) {
    const double x = curand_uniform_double(s), y = curand_uniform_double(s);
    return {x, y};
}
#endif
