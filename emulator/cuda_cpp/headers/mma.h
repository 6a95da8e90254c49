// nvcuda::wmma: fragments, and the PTX instructions `wmma` (`llvmir.ptx_wmma`). The layout of A and B is that of their loads: the registers of
// a fragment do not depend on it.
#pragma once
namespace nvcuda { namespace wmma {
enum layout_t { mem_row_major, mem_col_major };
struct row_major; struct col_major; struct matrix_a; struct matrix_b; struct accumulator;
namespace precision { struct tf32; }
template <class T> struct __simtbed_storage { typedef T type; };
template <> struct __simtbed_storage<precision::tf32> { typedef float type; };
// Word: a register. count: elements.
template <class T, class Word, int count> struct __simtbed_fragment {
    typedef T element_type; typedef typename __simtbed_storage<T>::type storage_element_type;
    enum { num_elements = count, num_storage_elements = count };
    storage_element_type x[count];
    SIMTBED_INTRINSIC Word *words() { return reinterpret_cast<Word *>(x); }
    SIMTBED_INTRINSIC const Word *words() const { return reinterpret_cast<const Word *>(x); }
};
template <class Use, int m, int n, int k, class T, class Layout = void> class fragment;

#define SIMTBED_NAMES1(N) "%[" #N "0]"
#define SIMTBED_NAMES2(N) SIMTBED_NAMES1(N) ", %[" #N "1]"
#define SIMTBED_NAMES4(N) SIMTBED_NAMES2(N) ", %[" #N "2], %[" #N "3]"
#define SIMTBED_NAMES8(N) SIMTBED_NAMES4(N) ", %[" #N "4], %[" #N "5], %[" #N "6], %[" #N "7]"
#define SIMTBED_WORDS1(N, C, F) [N##0] C(F.words()[0])
#define SIMTBED_WORDS2(N, C, F) SIMTBED_WORDS1(N, C, F), [N##1] C(F.words()[1])
#define SIMTBED_WORDS4(N, C, F) SIMTBED_WORDS2(N, C, F), [N##2] C(F.words()[2]), [N##3] C(F.words()[3])
#define SIMTBED_WORDS8(N, C, F) SIMTBED_WORDS4(N, C, F), [N##4] C(F.words()[4]), [N##5] C(F.words()[5]), [N##6] C(F.words()[6]), [N##7] C(F.words()[7])
#define SIMTBED_SHAPE(M, N, K) "m" #M "n" #N "k" #K

#define SIMTBED_LOAD(USE, LETTER, LAYOUT, M, N, K, T, TYPE, C, COUNT) \
    SIMTBED_INLINE void load_matrix_sync(fragment<USE, M, N, K, T, LAYOUT##_major> &f, const typename __simtbed_storage<T>::type *p, unsigned step) { \
        asm volatile("wmma.load." LETTER ".sync.aligned." #LAYOUT "." SIMTBED_SHAPE(M, N, K) "." TYPE " {" SIMTBED_NAMES##COUNT(d) "}, [%[p]], %[s];" \
            : SIMTBED_WORDS##COUNT(d, "=" C, f) : [p] "l"(p), [s] "r"(step) : "memory"); }
#define SIMTBED_OPERAND(USE, LETTER, M, N, K, T, TYPE, WORD, C, COUNT) \
    template <class Layout> class fragment<USE, M, N, K, T, Layout> \
        : public __simtbed_fragment<T, WORD, COUNT * sizeof(WORD) / sizeof(typename __simtbed_storage<T>::type)> {}; \
    SIMTBED_LOAD(USE, LETTER, row, M, N, K, T, TYPE, C, COUNT) SIMTBED_LOAD(USE, LETTER, col, M, N, K, T, TYPE, C, COUNT)
#define SIMTBED_MOVE_SUMS(LAYOUT, M, N, K, TYPE, C, COUNT) \
    asm volatile("wmma.load.c.sync.aligned." LAYOUT "." SIMTBED_SHAPE(M, N, K) "." TYPE " {" SIMTBED_NAMES##COUNT(d) "}, [%[p]], %[s];" \
        : SIMTBED_WORDS##COUNT(d, "=" C, f) : [p] "l"(p), [s] "r"(step) : "memory")
#define SIMTBED_STORE_SUMS(LAYOUT, M, N, K, TYPE, C, COUNT) \
    asm volatile("wmma.store.d.sync.aligned." LAYOUT "." SIMTBED_SHAPE(M, N, K) "." TYPE " [%[p]], {" SIMTBED_NAMES##COUNT(d) "}, %[s];" \
        : : SIMTBED_WORDS##COUNT(d, C, f), [p] "l"(p), [s] "r"(step) : "memory")
#define SIMTBED_SUMS(M, N, K, T, TYPE, WORD, C, COUNT) \
    template <> class fragment<accumulator, M, N, K, T, void> : public __simtbed_fragment<T, WORD, COUNT * sizeof(WORD) / sizeof(T)> {}; \
    SIMTBED_INLINE void load_matrix_sync(fragment<accumulator, M, N, K, T> &f, const T *p, unsigned step, layout_t layout) { \
        if (layout == mem_row_major) SIMTBED_MOVE_SUMS("row", M, N, K, TYPE, C, COUNT); else SIMTBED_MOVE_SUMS("col", M, N, K, TYPE, C, COUNT); } \
    SIMTBED_INLINE void store_matrix_sync(T *p, const fragment<accumulator, M, N, K, T> &f, unsigned step, layout_t layout) { \
        if (layout == mem_row_major) SIMTBED_STORE_SUMS("row", M, N, K, TYPE, C, COUNT); else SIMTBED_STORE_SUMS("col", M, N, K, TYPE, C, COUNT); }
#define SIMTBED_PRODUCT(M, N, K, T, A_WORDS, B_WORDS, C, TOTAL, TYPES, SUM, SUMS) \
    template <class A, class B> SIMTBED_INLINE void mma_sync(fragment<accumulator, M, N, K, TOTAL> &d, const fragment<matrix_a, M, N, K, T, A> &a, \
                                                             const fragment<matrix_b, M, N, K, T, B> &b, const fragment<accumulator, M, N, K, TOTAL> &c) { \
        asm volatile("wmma.mma.sync.aligned.row.col." SIMTBED_SHAPE(M, N, K) "." TYPES " {" SIMTBED_NAMES##SUMS(d) "}, {" SIMTBED_NAMES##A_WORDS(a) "}, {" \
            SIMTBED_NAMES##B_WORDS(b) "}, {" SIMTBED_NAMES##SUMS(c) "};" \
            : SIMTBED_WORDS##SUMS(d, "=" SUM, d) : SIMTBED_WORDS##A_WORDS(a, C, a), SIMTBED_WORDS##B_WORDS(b, C, b), SIMTBED_WORDS##SUMS(c, SUM, c)); }
#define SIMTBED_OPERANDS(M, N, K, T, TYPE, WORD, C, A_WORDS, B_WORDS) \
    SIMTBED_OPERAND(matrix_a, "a", M, N, K, T, TYPE, WORD, C, A_WORDS) SIMTBED_OPERAND(matrix_b, "b", M, N, K, T, TYPE, WORD, C, B_WORDS)
#define SIMTBED_BYTES(M, N, T, TYPE, A_WORDS, B_WORDS) \
    SIMTBED_OPERANDS(M, N, 16, T, TYPE, unsigned, "r", A_WORDS, B_WORDS) \
    SIMTBED_PRODUCT(M, N, 16, T, A_WORDS, B_WORDS, "r", int, "s32." TYPE "." TYPE ".s32", "r", 8)
#define SIMTBED_WMMA(M, N, A_HALVES, B_HALVES, A_BYTES, B_BYTES) \
    SIMTBED_SUMS(M, N, 16, float, "f32", float, "f", 8) SIMTBED_SUMS(M, N, 16, __half, "f16", unsigned, "r", 4) \
    SIMTBED_SUMS(M, N, 16, int, "s32", int, "r", 8) \
    SIMTBED_OPERANDS(M, N, 16, __half, "f16", unsigned, "r", 8, 8) \
    SIMTBED_PRODUCT(M, N, 16, __half, 8, 8, "r", float, "f32.f32", "f", 8) SIMTBED_PRODUCT(M, N, 16, __half, 8, 8, "r", __half, "f16.f16", "r", 4) \
    SIMTBED_OPERANDS(M, N, 16, __nv_bfloat16, "bf16", unsigned, "r", A_HALVES, B_HALVES) \
    SIMTBED_PRODUCT(M, N, 16, __nv_bfloat16, A_HALVES, B_HALVES, "r", float, "f32.bf16.bf16.f32", "f", 8) \
    SIMTBED_BYTES(M, N, signed char, "s8", A_BYTES, B_BYTES) SIMTBED_BYTES(M, N, unsigned char, "u8", A_BYTES, B_BYTES)
SIMTBED_WMMA(16, 16, 4, 4, 2, 2) SIMTBED_WMMA(32, 8, 8, 2, 4, 1) SIMTBED_WMMA(8, 32, 2, 8, 1, 4)
SIMTBED_OPERANDS(16, 16, 8, precision::tf32, "tf32", float, "f", 4, 4) SIMTBED_SUMS(16, 16, 8, float, "f32", float, "f", 8)
SIMTBED_PRODUCT(16, 16, 8, precision::tf32, 4, 4, "f", float, "f32.tf32.tf32.f32", "f", 8)
SIMTBED_OPERANDS(8, 8, 4, double, "f64", double, "d", 1, 1) SIMTBED_SUMS(8, 8, 4, double, "f64", double, "d", 2)
SIMTBED_PRODUCT(8, 8, 4, double, 1, 1, "d", double, "f64.f64.f64.f64", "d", 2)

template <class Fragment, class T> SIMTBED_INLINE void fill_fragment(Fragment &f, const T &value) {
#pragma unroll
    for (int i = 0; i < Fragment::num_elements; i++) f.x[i] = (typename Fragment::storage_element_type)value;
}
SIMTBED_INLINE float __float_to_tf32(float x) {
    float y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
}}
