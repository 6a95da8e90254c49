// Numbers of 8 bits: conversions round to the nearest even number, as those of sm_89 and later.
#pragma once
typedef unsigned char __nv_fp8_storage_t; typedef unsigned short __nv_fp8x2_storage_t; typedef unsigned int __nv_fp8x4_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
#define SIMTBED_MEMBER __host__ SIMTBED_INTRINSIC
struct __half2_raw { unsigned short x, y; SIMTBED_MEMBER operator half2() const { return __builtin_bit_cast(half2, *this); } };
SIMTBED_BOTH __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t saturation, __nv_fp8_interpretation_t form) {
    const int fraction = form == __NV_E4M3 ? 3 : 2, lowest = form == __NV_E4M3 ? -6 : -14, shift = 23 - fraction;
    const unsigned bits = __builtin_bit_cast(unsigned, x), magnitude = bits & 0x7fffffffu, largest = form == __NV_E4M3 ? 0x7e : 0x7b;
    if (magnitude > 0x7f800000u) return 0x7f;
    unsigned result = ((magnitude + (magnitude >> shift & 1) + (1u << (shift - 1)) - 1) >> shift) - ((lowest + 126u) << fraction);
    if (magnitude < (lowest + 127u) << 23) result = (unsigned)rintf(fabsf(x) * (float)(1 << (fraction - lowest)));
    if (result > largest) result = saturation == __NV_SATFINITE ? largest : largest + 1;
    return (__nv_fp8_storage_t)(result | (bits >> 24 & 0x80));
}
SIMTBED_BOTH __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t saturation, __nv_fp8_interpretation_t form) {
    const float y = (float)x;  // with an odd last bit where it is not exact, so that one rounding follows
    unsigned bits = __builtin_bit_cast(unsigned, y);
    if (!(bits & 1) && (y < x || y > x)) bits += fabsf(y) < fabs(x) ? 1 : -1;
    return __nv_cvt_float_to_fp8(__builtin_bit_cast(float, bits), saturation, form);
}
SIMTBED_BOTH __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t form) {
    if (form == __NV_E5M2) return {(unsigned short)(x << 8)};
    const __half scaled = __builtin_bit_cast(__half, (unsigned short)((x & 0x7f) << 7)) * (__half)256.0f;
    const unsigned short magnitude = (x & 0x7f) == 0x7f ? 0x7fff : __builtin_bit_cast(unsigned short, scaled);
    return {(unsigned short)(magnitude | (x & 0x80) << 8)};
}
SIMTBED_BOTH __nv_bfloat16_raw __nv_cvt_e8m0_to_bf16raw(__nv_fp8_storage_t x) {
    return {(unsigned short)(x == 255 ? 0x7fff : x ? x << 7 : 0x40)};
}
template <class T> SIMTBED_BOTH unsigned simtbed_to_fp8(T v, __nv_saturation_t saturation, __nv_fp8_interpretation_t form) {
    if constexpr (__is_same(T, float4))
        return simtbed_to_fp8(make_float2(v.x, v.y), saturation, form) | simtbed_to_fp8(make_float2(v.z, v.w), saturation, form) << 16;
    else if constexpr (__is_class(T)) return simtbed_to_fp8(v.x, saturation, form) | simtbed_to_fp8(v.y, saturation, form) << 8;
    else if constexpr (__is_integral(T) || __is_same(T, double)) return __nv_cvt_double_to_fp8((double)v, saturation, form);
    else return __nv_cvt_float_to_fp8((float)v, saturation, form);
}
template <class T> SIMTBED_BOTH T simtbed_from_fp8(unsigned x, __nv_fp8_interpretation_t form) {
    if constexpr (__is_same(T, float4)) {
        const float2 a = simtbed_from_fp8<float2>(x, form), b = simtbed_from_fp8<float2>(x >> 16, form);
        return {a.x, a.y, b.x, b.y};
    } else if constexpr (__is_class(T)) return {simtbed_from_fp8<decltype(T::x)>(x, form), simtbed_from_fp8<decltype(T::x)>(x >> 8, form)};
    else return (T)(float)(__half)__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)x, form);
}
SIMTBED_BOTH __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t form) {
    return __builtin_bit_cast(__half2_raw, simtbed_from_fp8<half2>(x, form));
}
#define SIMTBED_TO_FP8(NAME, TO, T) SIMTBED_BOTH __nv_##TO##_storage_t __nv_cvt_##NAME##_to_##TO( \
    T x, __nv_saturation_t saturation, __nv_fp8_interpretation_t form) { return (__nv_##TO##_storage_t)simtbed_to_fp8(x, saturation, form); }
SIMTBED_TO_FP8(float2, fp8x2, float2) SIMTBED_TO_FP8(double2, fp8x2, double2) SIMTBED_TO_FP8(halfraw2, fp8x2, half2)
SIMTBED_TO_FP8(halfraw, fp8, __half) SIMTBED_TO_FP8(bfloat16raw, fp8, __nv_bfloat16)
#define SIMTBED_FP8(WIDTH, E, FORM) struct __nv_##WIDTH##_##E { \
    __nv_##WIDTH##_storage_t __x; \
    __nv_##WIDTH##_##E() = default; \
    template <class T> SIMTBED_MEMBER explicit __nv_##WIDTH##_##E(T v) : __x((__nv_##WIDTH##_storage_t)simtbed_to_fp8(v, __NV_SATFINITE, FORM)) {} \
    template <class T> SIMTBED_MEMBER __nv_##WIDTH##_##E(T a, T b) : __x(simtbed_to_fp8(a, __NV_SATFINITE, FORM) | simtbed_to_fp8(b, __NV_SATFINITE, FORM) << 16) {} \
    template <class T> SIMTBED_MEMBER explicit operator T() const { return simtbed_from_fp8<T>(__x, FORM); } \
};
#define SIMTBED_FP8_WIDTHS(E, FORM) SIMTBED_FP8(fp8, E, FORM) SIMTBED_FP8(fp8x2, E, FORM) SIMTBED_FP8(fp8x4, E, FORM)
SIMTBED_FP8_WIDTHS(e4m3, __NV_E4M3) SIMTBED_FP8_WIDTHS(e5m2, __NV_E5M2)
