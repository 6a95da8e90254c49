// Complex numbers of CuPy, PyCUDA and Thrust.
#ifndef SIMTBED_COMPLEX_H  // the file has several names
#define SIMTBED_COMPLEX_H
template <class T> struct alignas(2 * sizeof(T)) simtbed_complex {
    typedef T value_type;
    T re, im;
    simtbed_complex() = default;
    SIMTBED_INTRINSIC simtbed_complex(T re, T im = T()) : re(re), im(im) {}
    template <class U> SIMTBED_INTRINSIC simtbed_complex(const simtbed_complex<U> &z) : re(z.re), im(z.im) {}
    SIMTBED_INTRINSIC T real() const { return re; }
    SIMTBED_INTRINSIC T imag() const { return im; }
    SIMTBED_INTRINSIC void real(T value) { re = value; }
    SIMTBED_INTRINSIC void imag(T value) { im = value; }
    SIMTBED_INTRINSIC simtbed_complex &operator+=(const simtbed_complex &b) { re += b.re; im += b.im; return *this; }
    SIMTBED_INTRINSIC simtbed_complex &operator-=(const simtbed_complex &b) { re -= b.re; im -= b.im; return *this; }
    SIMTBED_INTRINSIC simtbed_complex &operator/=(const simtbed_complex &b) { return *this = *this / b; }
    SIMTBED_INTRINSIC simtbed_complex &operator*=(const simtbed_complex &b) {
        T product = re * b.re - im * b.im;
        im = re * b.im + im * b.re;
        re = product;
        return *this;
    }
};
template <class Z, class T> SIMTBED_BOTH Z simtbed_quotient(T u, T v, T x, T y) {  // of u + iv and x + iy
    T scale = 1 / (fabs(x) + fabs(y));
    x *= scale, y *= scale, u *= scale, v *= scale;
    T factor = 1 / (x * x + y * y);
    return Z{(u * x + v * y) * factor, (v * x - u * y) * factor};
}
#define SIMTBED_COMPLEX(T) \
    SIMTBED_INLINE simtbed_complex<T> operator+(const simtbed_complex<T> &a, const simtbed_complex<T> &b) { return simtbed_complex<T>(a.re + b.re, a.im + b.im); } \
    SIMTBED_INLINE simtbed_complex<T> operator-(const simtbed_complex<T> &a, const simtbed_complex<T> &b) { return simtbed_complex<T>(a.re - b.re, a.im - b.im); } \
    SIMTBED_INLINE simtbed_complex<T> operator-(const simtbed_complex<T> &a) { return simtbed_complex<T>(-a.re, -a.im); } \
    SIMTBED_INLINE simtbed_complex<T> operator*(const simtbed_complex<T> &a, const simtbed_complex<T> &b) { \
        return simtbed_complex<T>(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re); } \
    SIMTBED_INLINE bool operator==(const simtbed_complex<T> &a, const simtbed_complex<T> &b) { return a.re == b.re && a.im == b.im; } \
    SIMTBED_INLINE bool operator!=(const simtbed_complex<T> &a, const simtbed_complex<T> &b) { return !(a == b); } \
    SIMTBED_INLINE T real(const simtbed_complex<T> &z) { return z.re; } \
    SIMTBED_INLINE T imag(const simtbed_complex<T> &z) { return z.im; } \
    SIMTBED_INLINE T norm(const simtbed_complex<T> &z) { return z.re * z.re + z.im * z.im; } \
    SIMTBED_INLINE simtbed_complex<T> conj(const simtbed_complex<T> &z) { return simtbed_complex<T>(z.re, -z.im); } \
    SIMTBED_INLINE simtbed_complex<T> operator/(const simtbed_complex<T> &a, const simtbed_complex<T> &b) { return simtbed_quotient<simtbed_complex<T>>(a.re, a.im, b.re, b.im); } \
    SIMTBED_INLINE T abs(const simtbed_complex<T> &z) { return hypot(z.re, z.im); } \
    SIMTBED_INLINE T arg(const simtbed_complex<T> &z) { return atan2(z.im, z.re); } \
    SIMTBED_INLINE simtbed_complex<T> polar(const T &r, const T &phi = T()) { return simtbed_complex<T>(r * cos(phi), r * sin(phi)); } \
    SIMTBED_INLINE simtbed_complex<T> exp(const simtbed_complex<T> &z) { return polar(exp(z.re), z.im); } \
    SIMTBED_INLINE simtbed_complex<T> conj(T x) { return simtbed_complex<T>(x); } \
    SIMTBED_INLINE T real(T x) { return x; } \
    SIMTBED_INLINE T imag(T x) { return 0; } \
    SIMTBED_INLINE T norm(T x) { return x * x; }
SIMTBED_COMPLEX(float) SIMTBED_COMPLEX(double)
#define SIMTBED_COMPLEX_NAMES \
    template <class T> using complex = simtbed_complex<T>; \
    using ::real; using ::imag; using ::norm; using ::conj; using ::abs; using ::arg; using ::exp; using ::polar;
#if !defined(SIMTBED_PROGRAM) || !__has_include(<thrust/version.h>)
namespace thrust { SIMTBED_COMPLEX_NAMES }
#endif
namespace pycuda { SIMTBED_COMPLEX_NAMES }
#ifndef SIMTBED_PROGRAM  // it has those of C++
namespace std { SIMTBED_COMPLEX_NAMES }
using thrust::complex;
#endif

// Complex numbers of cuComplex.h.
#define SIMTBED_CU_COMPLEX(T, NAME, F) \
    typedef T##2 cu##NAME; \
    SIMTBED_BOTH cu##NAME make_cu##NAME(T x, T y) { return {x, y}; } \
    SIMTBED_BOTH T cuCreal##F(cu##NAME z) { return z.x; } \
    SIMTBED_BOTH T cuCimag##F(cu##NAME z) { return z.y; } \
    SIMTBED_BOTH cu##NAME cuConj##F(cu##NAME z) { return {z.x, -z.y}; } \
    SIMTBED_BOTH cu##NAME cuCadd##F(cu##NAME a, cu##NAME b) { return {a.x + b.x, a.y + b.y}; } \
    SIMTBED_BOTH cu##NAME cuCsub##F(cu##NAME a, cu##NAME b) { return {a.x - b.x, a.y - b.y}; } \
    SIMTBED_BOTH cu##NAME cuCmul##F(cu##NAME a, cu##NAME b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; } \
    SIMTBED_BOTH cu##NAME cuCdiv##F(cu##NAME a, cu##NAME b) { return simtbed_quotient<cu##NAME>(a.x, a.y, b.x, b.y); } \
    SIMTBED_BOTH T cuCabs##F(cu##NAME z) { return hypot##F(z.x, z.y); } \
    SIMTBED_BOTH cu##NAME cuCfma##F(cu##NAME a, cu##NAME b, cu##NAME c) { return cuCadd##F(cuCmul##F(a, b), c); }
SIMTBED_CU_COMPLEX(float, FloatComplex, f) SIMTBED_CU_COMPLEX(double, DoubleComplex, )
typedef cuFloatComplex cuComplex;
typedef cuComplex cufftComplex; typedef float cufftReal;
typedef cuDoubleComplex cufftDoubleComplex; typedef double cufftDoubleReal;
SIMTBED_BOTH cuComplex make_cuComplex(float x, float y) { return {x, y}; }
SIMTBED_BOTH cuDoubleComplex cuComplexFloatToDouble(cuComplex z) { return {z.x, z.y}; }
SIMTBED_BOTH cuComplex cuComplexDoubleToFloat(cuDoubleComplex z) { return {(float)z.x, (float)z.y}; }
#endif
