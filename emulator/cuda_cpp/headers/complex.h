// Complex numbers of CuPy, PyCUDA and Thrust.
#pragma once
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
    SIMTBED_INTRINSIC simtbed_complex &operator*=(const simtbed_complex &b) {
        T product = re * b.re - im * b.im;
        im = re * b.im + im * b.re;
        re = product;
        return *this;
    }
};
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
    SIMTBED_INLINE simtbed_complex<T> conj(const simtbed_complex<T> &z) { return simtbed_complex<T>(z.re, -z.im); }
SIMTBED_COMPLEX(float) SIMTBED_COMPLEX(double)
namespace thrust { template <class T> using complex = simtbed_complex<T>; }
namespace pycuda { template <class T> using complex = simtbed_complex<T>; }
namespace std { template <class T> using complex = simtbed_complex<T>; }
using thrust::complex;
