// Mathematical functions in terms of the operations of the IR.
#define SIMTBED_EXTREME(NAME, T, A, B, OTHER) SIMTBED_INLINE T NAME(A a, B b) { return (T)OTHER; }
#define SIMTBED_EXTREMES(NAME) \
    SIMTBED_EXTREME(NAME, double, double, double, f##NAME(a, b)) SIMTBED_EXTREME(NAME, float, float, float, f##NAME##f(a, b)) \
    SIMTBED_EXTREME(NAME, double, float, double, f##NAME((double)a, b)) SIMTBED_EXTREME(NAME, double, double, float, f##NAME(a, (double)b)) \
    SIMTBED_EXTREME(NAME, unsigned int, int, unsigned int, NAME((unsigned int)a, b)) SIMTBED_EXTREME(NAME, unsigned int, unsigned int, int, NAME(a, (unsigned int)b)) \
    SIMTBED_EXTREME(NAME, long, long, long, NAME((long long)a, (long long)b)) \
    SIMTBED_EXTREME(NAME, unsigned long, unsigned long, unsigned long, NAME((unsigned long long)a, (unsigned long long)b))
SIMTBED_EXTREMES(min) SIMTBED_EXTREMES(max)
SIMTBED_INLINE unsigned int umin(unsigned int a, unsigned int b) { return min(a, b); }
SIMTBED_INLINE unsigned int umax(unsigned int a, unsigned int b) { return max(a, b); }
SIMTBED_INLINE float abs(float x) { return fabsf(x); }
SIMTBED_INLINE double abs(double x) { return fabs(x); }
SIMTBED_INLINE long long abs(long long x) { return llabs(x); }
SIMTBED_INLINE long abs(long x) { return (long)llabs(x); }
SIMTBED_INLINE long labs(long x) { return (long)llabs(x); }
SIMTBED_INLINE float pow(float a, int b) { return powf(a, (float)b); }
SIMTBED_INLINE double pow(double a, int b) { return pow(a, (double)b); }
SIMTBED_INLINE double pow(int a, int b) { return pow((double)a, (double)b); }
SIMTBED_INLINE double pow(float a, double b) { return pow((double)a, b); }
SIMTBED_INLINE double pow(double a, float b) { return pow(a, (double)b); }
SIMTBED_INLINE double sqrt(int x) { return sqrt((double)x); }
SIMTBED_INLINE double exp(int x) { return exp((double)x); }
SIMTBED_INLINE double log(int x) { return log((double)x); }
#define SIMTBED_MIXED(NAME) \
    SIMTBED_INLINE double NAME(float a, double b) { return NAME((double)a, b); } SIMTBED_INLINE double NAME(double a, float b) { return NAME(a, (double)b); }
SIMTBED_MIXED(fmin) SIMTBED_MIXED(fmax) SIMTBED_MIXED(fmod) SIMTBED_MIXED(atan2)
#define SIMTBED_NORMS(T, F) \
    SIMTBED_INLINE T rhypot##F(T a, T b) { return 1 / hypot##F(a, b); } SIMTBED_INLINE T norm3d##F(T a, T b, T c) { return hypot##F(hypot##F(a, b), c); } \
    SIMTBED_INLINE T norm4d##F(T a, T b, T c, T d) { return hypot##F(norm3d##F(a, b, c), d); } \
    SIMTBED_INLINE T rnorm3d##F(T a, T b, T c) { return 1 / norm3d##F(a, b, c); } SIMTBED_INLINE T rnorm4d##F(T a, T b, T c, T d) { return 1 / norm4d##F(a, b, c, d); } \
    SIMTBED_INLINE T scalbn##F(T x, int n) { return ldexp##F(x, n); } \
    SIMTBED_INLINE T modf##F(T x, T *whole) { *whole = trunc##F(x); return copysign##F(isinf(x) ? (T)0 : x - *whole, x); } \
    SIMTBED_INLINE int ilogb##F(T x) { int n; frexp##F(x, &n); return n - 1; } SIMTBED_INLINE long long llrint##F(T x) { return (long long)rint##F(x); } \
    SIMTBED_INLINE long long llround##F(T x) { return (long long)round##F(x); } SIMTBED_INLINE T nan##F(const char *) { return (T)__builtin_nan(""); }
SIMTBED_INLINE long lrint(double x) { return (long)rint(x); } SIMTBED_INLINE long lround(double x) { return (long)round(x); }
SIMTBED_INLINE double fdim(double a, double b) { return a <= b ? 0.0 : a - b; }
SIMTBED_INLINE float nearbyintf(float x) { return rintf(x); }
SIMTBED_INLINE double nearbyint(double x) { return rint(x); }
SIMTBED_INLINE long lrintf(float x) { return (long)rintf(x); }
SIMTBED_INLINE long lroundf(float x) { return (long)roundf(x); }
SIMTBED_INLINE float fdimf(float a, float b) { return a <= b ? 0.0f : a - b; }
SIMTBED_INLINE float fdividef(float a, float b) { return a / b; }
SIMTBED_INLINE float __saturatef(float x) { return fminf(fmaxf(x, 0.0f), 1.0f); }
SIMTBED_INLINE float __frcp_rn(float x) { return 1.0f / x; }
SIMTBED_INLINE double __drcp_rn(double x) { return 1.0 / x; }
SIMTBED_INLINE void sincosf(float x, float *s, float *c) { *s = sinf(x); *c = cosf(x); }
SIMTBED_INLINE void sincos(double x, double *s, double *c) { *s = sin(x); *c = cos(x); }
SIMTBED_INLINE int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
SIMTBED_INLINE int __double2loint(double x) { return (int)__double_as_longlong(x); }
SIMTBED_INLINE double __hiloint2double(int high, int low) { return __longlong_as_double((long long)high << 32 | (unsigned int)low); }
SIMTBED_INLINE void __sincosf(float x, float *s, float *c) { *s = __sinf(x); *c = __cosf(x); }
SIMTBED_INLINE float frexpf(float x, int *exponent) { *exponent = __simtbed_frexp_exponent(x); return __simtbed_frexp_fraction(x); }
SIMTBED_INLINE double frexp(double x, int *exponent) { *exponent = __simtbed_frexp_exponent(x); return __simtbed_frexp_fraction(x); }
SIMTBED_NORMS(float, f) SIMTBED_NORMS(double, )
// Halley's iterations from Winitzki's approximation: of third order, in double precision.
SIMTBED_INLINE double erfcinv(double y) {
    const bool upper = y > 1;
    const double z = upper ? 2 - y : y, l = log(z * (2 - z)), h = 4.330746750799873 + l / 2;
    double x = sqrt(fmax(0.0, sqrt(h * h - l / 0.147) - h));
    if (!(z > 0)) return z < 0 || z != z ? __builtin_nan("") : upper ? -__builtin_inf() : __builtin_inf();
    _Pragma("unroll") for (int i = 0; i < 4; i++) {
        const double step = (erfc(x) - z) / (-1.1283791670955126 * exp(-x * x));
        x -= step / (1 + x * step);
    }
    return upper ? -x : x;
}
SIMTBED_INLINE double erfinv(double y) {
    double x = 0.886226925452758 * y;
    if (fabs(y) > 0.5) return copysign(erfcinv(1 - fabs(y)), y);
    _Pragma("unroll") for (int i = 0; i < 4; i++) {
        const double step = (erf(x) - y) / (1.1283791670955126 * exp(-x * x));
        x -= step / (1 + x * step);
    }
    return x;
}
SIMTBED_INLINE double normcdfinv(double p) { return -1.4142135623730951 * erfcinv(2 * p); } SIMTBED_INLINE float erfcinvf(float y) { return (float)erfcinv((double)y); }
SIMTBED_INLINE float erfinvf(float y) { return (float)erfinv((double)y); } SIMTBED_INLINE float normcdfinvf(float p) { return (float)normcdfinv((double)p); }
// Directed rounding: a result rounded to nearest, its error, and the neighbour on the side of the exact value.
#define SIMTBED_NEXT(T, I, FROM, TO) \
    SIMTBED_INLINE T __simtbed_next(T x, bool up) { return x == 0 ? (up ? FROM((I)1) : -FROM((I)1)) : FROM(TO(x) + ((x > 0) == up ? 1 : -1)); } \
    SIMTBED_INLINE T __simtbed_rd(T x, double e) { return e < 0 ? __simtbed_next(x, false) : x; } \
    SIMTBED_INLINE T __simtbed_ru(T x, double e) { return e > 0 ? __simtbed_next(x, true) : x; } \
    SIMTBED_INLINE T __simtbed_rz(T x, double e) { return x > 0 ? __simtbed_rd(x, e) : __simtbed_ru(x, e); }
SIMTBED_NEXT(float, int, __int_as_float, __float_as_int) SIMTBED_NEXT(double, long long, __longlong_as_double, __double_as_longlong)
SIMTBED_INLINE double __simtbed_sum_error(double a, double b, double s) { const double t = s - a; return (a - (s - t)) + (b - t); }
#define SIMTBED_DIRECTED(T, P, F, WAY) \
    SIMTBED_INLINE T __##P##add_##WAY(T a, T b) { const double s = (double)a + b; const T r = (T)s, e = s - r; \
        return __simtbed_##WAY(r, e != 0 ? (double)e : __simtbed_sum_error(a, b, s)); } \
    SIMTBED_INLINE T __##P##sub_##WAY(T a, T b) { return __##P##add_##WAY(a, -b); } \
    SIMTBED_INLINE T __##P##mul_##WAY(T a, T b) { return __simtbed_##WAY(a * b, fma##F(a, b, -(a * b))); } \
    SIMTBED_INLINE T __##P##div_##WAY(T a, T b) { const T q = a / b; return __simtbed_##WAY(q, fma##F(-q, b, a) * copysign##F(1, b)); } \
    SIMTBED_INLINE T __##P##rcp_##WAY(T x) { return __##P##div_##WAY(1, x); } \
    SIMTBED_INLINE T __##P##sqrt_##WAY(T x) { const T s = sqrt##F(x); return __simtbed_##WAY(s, fma##F(-s, s, x)); }
#define SIMTBED_ROUNDED_FROM(T, t, WAY) \
    SIMTBED_INLINE double __##t##2double_##WAY(T x) { \
        const double high = 4294967296.0 * (double)(x / 4294967296), low = (double)(x % 4294967296), s = high + low; \
        return __simtbed_##WAY(s, low - (s - high)); } \
    SIMTBED_INLINE float __##t##2float_##WAY(T x) { const double y = __##t##2double_##WAY(x); return __double2float_##WAY(y); }
#define SIMTBED_WAY(WAY) SIMTBED_DIRECTED(float, f, f, WAY) SIMTBED_DIRECTED(double, d, , WAY) \
    SIMTBED_INLINE float __double2float_##WAY(double x) { const float y = (float)x; return __simtbed_##WAY(y, x - y); } \
    SIMTBED_INLINE float __int2float_##WAY(int x) { return __double2float_##WAY(x); } \
    SIMTBED_INLINE float __uint2float_##WAY(unsigned int x) { return __double2float_##WAY(x); } \
    SIMTBED_ROUNDED_FROM(long long, ll, WAY) SIMTBED_ROUNDED_FROM(unsigned long long, ull, WAY)
SIMTBED_WAY(rd) SIMTBED_WAY(ru) SIMTBED_WAY(rz)
#define SIMTBED_CASTS(F, T, t) \
    SIMTBED_INLINE T __##F##2##t##_rn(F x) { return __##F##2##t##_rz(rint(x)); } \
    SIMTBED_INLINE T __##F##2##t##_rd(F x) { return __##F##2##t##_rz(floor(x)); } \
    SIMTBED_INLINE T __##F##2##t##_ru(F x) { return __##F##2##t##_rz(ceil(x)); } \
    SIMTBED_INLINE F __##t##2##F##_rn(T x) { return (F)x; }
#define SIMTBED_CASTS_OF(F) SIMTBED_CASTS(F, int, int) SIMTBED_CASTS(F, unsigned int, uint) \
    SIMTBED_CASTS(F, long long, ll) SIMTBED_CASTS(F, unsigned long long, ull)
SIMTBED_CASTS_OF(float) SIMTBED_CASTS_OF(double)
SIMTBED_INLINE float __double2float_rn(double x) { return (float)x; }
SIMTBED_INLINE int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
SIMTBED_INLINE int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
SIMTBED_INLINE unsigned int __uhadd(unsigned int a, unsigned int b) { return (unsigned int)(((unsigned long long)a + b) >> 1); }
SIMTBED_INLINE unsigned int __urhadd(unsigned int a, unsigned int b) { return (unsigned int)(((unsigned long long)a + b + 1) >> 1); }
SIMTBED_INLINE unsigned int __sad(int a, int b, unsigned int c) { return (unsigned int)(a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a) + c; }
SIMTBED_INLINE int __mul24(int a, int b) { return (int)((unsigned int)((int)((unsigned int)a << 8) >> 8) * (unsigned int)((int)((unsigned int)b << 8) >> 8)); }
SIMTBED_INLINE unsigned int __umul24(unsigned int a, unsigned int b) { return (a & 0xffffffu) * (b & 0xffffffu); }
SIMTBED_INLINE unsigned int __usad(unsigned int a, unsigned int b, unsigned int c) { return (a > b ? a - b : b - a) + c; }

// ------------------------------------------------------------------ of multiples of pi, by the quarter
SIMTBED_INLINE double __simtbed_sinpi(double x, int quarters) {
    const double q = rint(2 * x), r = 3.141592653589793 * (x - q / 2);
    const int part = ((int)(q - 4 * floor(q / 4)) + quarters) & 3;
    const double value = part & 1 ? cos(r) : sin(r);
    return part & 2 ? -value : value;
}
SIMTBED_INLINE double sinpi(double x) { return __simtbed_sinpi(x, 0); }
SIMTBED_INLINE double cospi(double x) { return __simtbed_sinpi(x, 1); }
SIMTBED_INLINE float sinpif(float x) { return (float)__simtbed_sinpi(x, 0); }
SIMTBED_INLINE float cospif(float x) { return (float)__simtbed_sinpi(x, 1); }
SIMTBED_INLINE void sincospi(double x, double *s, double *c) { *s = sinpi(x); *c = cospi(x); }
SIMTBED_INLINE void sincospif(float x, float *s, float *c) { *s = sinpif(x); *c = cospif(x); }

// ------------------------------------------------------------------ halves
#define SIMTBED_HALF_INTEGER(T, NAME) \
    SIMTBED_BOTH T __half2##NAME##_rn(__half x) { return (T)rintf((float)x); } SIMTBED_BOTH T __half2##NAME##_rz(__half x) { return (T)(float)x; } \
    SIMTBED_BOTH T __bfloat162##NAME##_rn(__nv_bfloat16 x) { return (T)rintf((float)x); } SIMTBED_BOTH T __bfloat162##NAME##_rz(__nv_bfloat16 x) { return (T)(float)x; }
SIMTBED_HALF_INTEGER(int, int) SIMTBED_HALF_INTEGER(unsigned int, uint) SIMTBED_HALF_INTEGER(short, short) SIMTBED_HALF_INTEGER(unsigned short, ushort)
SIMTBED_INLINE __half __hadd_sat(__half a, __half b) { return __hmin(__hmax(a + b, (__half)0.0f), (__half)1.0f); }
// rounded from the functions of float
#define SIMTBED_HALF_MATHS(NAME, EXPR) \
    SIMTBED_INLINE __half h##NAME(__half v) { const float x = v; return (__half)(EXPR); } \
    SIMTBED_INLINE __nv_bfloat16 h##NAME(__nv_bfloat16 v) { const float x = v; return (__nv_bfloat16)(EXPR); } \
    SIMTBED_INLINE half2 h2##NAME(half2 v) { return {h##NAME(v.x), h##NAME(v.y)}; } \
    SIMTBED_INLINE bfloat162 h2##NAME(bfloat162 v) { return {h##NAME(v.x), h##NAME(v.y)}; }
SIMTBED_HALF_MATHS(exp, expf(x)) SIMTBED_HALF_MATHS(exp2, exp2f(x)) SIMTBED_HALF_MATHS(exp10, exp10f(x)) SIMTBED_HALF_MATHS(log, logf(x))
SIMTBED_HALF_MATHS(log2, log2f(x)) SIMTBED_HALF_MATHS(log10, log10f(x)) SIMTBED_HALF_MATHS(sin, sinf(x)) SIMTBED_HALF_MATHS(cos, cosf(x))
SIMTBED_HALF_MATHS(tanh, tanhf(x)) SIMTBED_HALF_MATHS(sqrt, sqrtf(x)) SIMTBED_HALF_MATHS(rsqrt, 1 / sqrtf(x)) SIMTBED_HALF_MATHS(rcp, 1 / x)
SIMTBED_HALF_MATHS(floor, floorf(x)) SIMTBED_HALF_MATHS(ceil, ceilf(x)) SIMTBED_HALF_MATHS(trunc, truncf(x)) SIMTBED_HALF_MATHS(rint, rintf(x))
#define SIMTBED_EACH(T, NAME) \
    SIMTBED_INLINE T NAME##2(T a, T b) { return {NAME(a.x, b.x), NAME(a.y, b.y)}; }
#define SIMTBED_EACH_COMPARED(T, WORD) \
    SIMTBED_INLINE T __h##WORD##2(T a, T b) { return {(decltype(a.x))__h##WORD(a.x, b.x), (decltype(a.x))__h##WORD(a.y, b.y)}; } \
    SIMTBED_INLINE bool __hb##WORD##2(T a, T b) { return __h##WORD(a.x, b.x) && __h##WORD(a.y, b.y); }
#define SIMTBED_PAIR_FUNCTIONS(T) \
    SIMTBED_EACH(T, __hmax) SIMTBED_EACH(T, __hmin) SIMTBED_EACH_COMPARED(T, eq) SIMTBED_EACH_COMPARED(T, ne) \
    SIMTBED_EACH_COMPARED(T, lt) SIMTBED_EACH_COMPARED(T, le) SIMTBED_EACH_COMPARED(T, gt) SIMTBED_EACH_COMPARED(T, ge) \
    SIMTBED_INLINE T __habs2(T v) { return {__habs(v.x), __habs(v.y)}; } \
    SIMTBED_INLINE T __hfma2(T a, T b, T c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
    SIMTBED_INLINE T __lowhigh2highlow(T v) { return {v.y, v.x}; }
SIMTBED_PAIR_FUNCTIONS(half2) SIMTBED_PAIR_FUNCTIONS(bfloat162)
#define SIMTBED_PARTS(T, PAIR) \
    SIMTBED_INLINE T __low2##PAIR(T v) { return {v.x, v.x}; } SIMTBED_INLINE T __high2##PAIR(T v) { return {v.y, v.y}; } \
    SIMTBED_INLINE T __lows2##PAIR(T a, T b) { return {a.x, b.x}; } SIMTBED_INLINE T __highs2##PAIR(T a, T b) { return {a.y, b.y}; }
// A value of a class is exchanged by its words.
#define SIMTBED_EXCHANGE(NAME, L) template <class T> SIMTBED_INTRINSIC T simtbed_##NAME(unsigned int mask, T value, L lane, int width = 32) { \
    if constexpr (!__is_class(T)) return __##NAME##_sync(mask, value, lane, width); \
    else { \
        unsigned int words[(sizeof(T) + 3) / 4] = {}; \
        __builtin_memcpy(words, &value, sizeof(T)); \
        _Pragma("unroll") for (unsigned int &word : words) word = __##NAME##_sync(mask, word, lane, width); \
        __builtin_memcpy(&value, words, sizeof(T)); \
        return value; \
    } } \
SIMTBED_INLINE half2 __##NAME##_sync(unsigned int mask, half2 v, L lane, int width = 32) { return simtbed_##NAME(mask, v, lane, width); } \
SIMTBED_INLINE bfloat162 __##NAME##_sync(unsigned int mask, bfloat162 v, L lane, int width = 32) { return simtbed_##NAME(mask, v, lane, width); }
SIMTBED_EXCHANGE(shfl, int) SIMTBED_EXCHANGE(shfl_xor, int) SIMTBED_EXCHANGE(shfl_up, unsigned int) SIMTBED_EXCHANGE(shfl_down, unsigned int)
SIMTBED_PARTS(half2, half2) SIMTBED_PARTS(bfloat162, bfloat162)

// ------------------------------------------------------------------ two or four integers in a word
// low, high: the limits of an element; x, y: those of a and b at the bit s.
#define SIMTBED_WORD(NAME, BITS, T, EXPR) \
    SIMTBED_INLINE unsigned int NAME(unsigned int a, unsigned int b = 0) { \
        constexpr int low = (T)-1 < 0 ? -(1 << (BITS - 1)) : 0, high = low + (1 << BITS) - 1; \
        unsigned int r = 0; \
        _Pragma("unroll") for (int s = 0; s < 32; s += BITS) { \
            int x = (T)(a >> s), y = (T)(b >> s); \
            r |= ((unsigned int)(EXPR) & ((1u << BITS) - 1)) << s; \
        } \
        return r; }
#define SIMTBED_SIGNED(NAME, EXPR) SIMTBED_WORD(__v##NAME##2, 16, short, EXPR) SIMTBED_WORD(__v##NAME##4, 8, signed char, EXPR)
#define SIMTBED_UNSIGNED(NAME, EXPR) SIMTBED_WORD(__v##NAME##2, 16, unsigned short, EXPR) SIMTBED_WORD(__v##NAME##4, 8, unsigned char, EXPR)
#define SIMTBED_WITHIN(EXPR) min(max(EXPR, low), high)
SIMTBED_SIGNED(abs, x < 0 ? -x : x) SIMTBED_SIGNED(absss, SIMTBED_WITHIN(x < 0 ? -x : x)) SIMTBED_SIGNED(neg, -x)
SIMTBED_SIGNED(negss, SIMTBED_WITHIN(-x)) SIMTBED_SIGNED(add, x + y) SIMTBED_SIGNED(sub, x - y)
SIMTBED_SIGNED(addss, SIMTBED_WITHIN(x + y)) SIMTBED_SIGNED(subss, SIMTBED_WITHIN(x - y)) SIMTBED_SIGNED(avgs, (x + y + (x + y >= 0)) >> 1)
SIMTBED_UNSIGNED(addus, SIMTBED_WITHIN(x + y)) SIMTBED_UNSIGNED(subus, SIMTBED_WITHIN(x - y)) SIMTBED_UNSIGNED(avgu, (x + y + 1) >> 1)
SIMTBED_UNSIGNED(haddu, (x + y) >> 1) SIMTBED_SIGNED(absdiffs, x > y ? x - y : y - x) SIMTBED_UNSIGNED(absdiffu, x > y ? x - y : y - x)
SIMTBED_SIGNED(maxs, max(x, y)) SIMTBED_SIGNED(mins, min(x, y)) SIMTBED_UNSIGNED(maxu, max(x, y)) SIMTBED_UNSIGNED(minu, min(x, y))
#define SIMTBED_TEST(WORD, OP) \
    SIMTBED_SIGNED(set##WORD##s, x OP y) SIMTBED_UNSIGNED(set##WORD##u, x OP y) \
    SIMTBED_SIGNED(cmp##WORD##s, x OP y ? -1 : 0) SIMTBED_UNSIGNED(cmp##WORD##u, x OP y ? -1 : 0)
SIMTBED_TEST(lt, <) SIMTBED_TEST(le, <=) SIMTBED_TEST(gt, >) SIMTBED_TEST(ge, >=)
SIMTBED_UNSIGNED(seteq, x == y) SIMTBED_UNSIGNED(setne, x != y) SIMTBED_UNSIGNED(cmpeq, x == y ? -1 : 0) SIMTBED_UNSIGNED(cmpne, x != y ? -1 : 0)
#define SIMTBED_SUM(S) \
    SIMTBED_INLINE unsigned int __vsad##S##2(unsigned int a, unsigned int b) { a = __vabsdiff##S##2(a, b); return (a & 0xffff) + (a >> 16); } \
    SIMTBED_INLINE unsigned int __vsad##S##4(unsigned int a, unsigned int b) { a = __vabsdiff##S##4(a, b); return (a & 255) + (a >> 8 & 255) + (a >> 16 & 255) + (a >> 24); }
SIMTBED_SUM(s) SIMTBED_SUM(u)

// ------------------------------------------------------------------ of the standard library
#ifndef SIMTBED_PROGRAM  // it has the library itself
namespace std {
using ::size_t; using ::ptrdiff_t; using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t; typedef decltype(nullptr) nullptr_t;
template <class T, T V> struct integral_constant { static constexpr T value = V; };
typedef integral_constant<bool, true> true_type; typedef integral_constant<bool, false> false_type;
template <class A, class B> struct is_same : false_type {};
template <class A> struct is_same<A, A> : true_type {};
template <class A, class B> inline constexpr bool is_same_v = is_same<A, B>::value;
template <class T> struct is_floating_point { static constexpr bool value = is_same_v<T, float> || is_same_v<T, double>; };
template <class T> struct is_integral { static constexpr bool value = __is_arithmetic(T) && !is_floating_point<T>::value; };
template <class T> inline constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T> inline constexpr bool is_integral_v = is_integral<T>::value;
template <bool, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <bool C, class T = void> using enable_if_t = typename enable_if<C, T>::type;
template <bool, class A, class B> struct conditional { typedef A type; };
template <class A, class B> struct conditional<false, A, B> { typedef B type; };
template <bool C, class A, class B> using conditional_t = typename conditional<C, A, B>::type;
template <class T> struct remove_const { typedef __remove_const(T) type; };
template <class T> struct remove_reference { typedef __remove_reference_t(T) type; };
template <class T> struct remove_cv { typedef __remove_cv(T) type; };
template <class T> using remove_reference_t = typename remove_reference<T>::type;
template <class T> using remove_cv_t = typename remove_cv<T>::type;
template <class T> struct decay { typedef remove_cv_t<remove_reference_t<T>> type; };
template <class T> using decay_t = typename decay<T>::type;
template <class... T> struct common_type;
template <class A> struct common_type<A> { typedef decay_t<A> type; };
template <class A, class B> struct common_type<A, B> { typedef decay_t<decltype(true ? A() : B())> type; };
template <class... T> using common_type_t = typename common_type<T...>::type;
template <class T> inline constexpr bool is_signed_v = T(-1) < T(0);
template <class T> inline constexpr bool is_unsigned_v = is_integral_v<T> && T(0) < T(-1);
template <class T> SIMTBED_CONSTANT remove_reference_t<T> &&move(T &&value) { return static_cast<remove_reference_t<T> &&>(value); }
template <class T> SIMTBED_CONSTANT T &&forward(remove_reference_t<T> &value) { return static_cast<T &&>(value); }
template <class T> SIMTBED_INLINE const T &(min)(const T &a, const T &b) { return b < a ? b : a; }
template <class T> SIMTBED_INLINE const T &(max)(const T &a, const T &b) { return a < b ? b : a; }
template <class T> SIMTBED_INLINE void swap(T &a, T &b) { T c = a; a = b; b = c; }
template <class T> struct numeric_limits {
    static_assert(is_integral_v<T>, "std::numeric_limits of this type is not supported");
    SIMTBED_CONSTANT T max() { return is_signed_v<T> ? (T)((1ull << (8 * sizeof(T) - 1)) - 1) : (T)-1; }
    SIMTBED_CONSTANT T min() { return (T)~max(); } SIMTBED_CONSTANT T lowest() { return min(); }
};
#define SIMTBED_LIMITS(T, LEAST, MOST, STEP) \
    template <> struct numeric_limits<T> { \
        SIMTBED_CONSTANT T lowest() { return -MOST; } SIMTBED_CONSTANT T min() { return LEAST; } SIMTBED_CONSTANT T max() { return MOST; } \
        SIMTBED_CONSTANT T infinity() { return (T)__builtin_inf(); } SIMTBED_CONSTANT T epsilon() { return STEP; } };
SIMTBED_LIMITS(float, __FLT_MIN__, __FLT_MAX__, __FLT_EPSILON__) SIMTBED_LIMITS(double, __DBL_MIN__, __DBL_MAX__, __DBL_EPSILON__)
}
#endif
namespace cuda { namespace std { using namespace ::std; } }
