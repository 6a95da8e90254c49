// cuda::pipeline of one thread: groups of asynchronous copies.
#pragma once
namespace cuda {
enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread };
template <size_t alignment> struct aligned_size_t {
    size_t value;
    SIMTBED_INTRINSIC explicit constexpr aligned_size_t(size_t size) : value(size) {}
    SIMTBED_INTRINSIC constexpr operator size_t() const { return value; }
};
template <thread_scope scope> class pipeline;
template <> class pipeline<thread_scope_thread> {
public:
    SIMTBED_INTRINSIC void producer_acquire() {}
    SIMTBED_INTRINSIC void producer_commit() { __pipeline_commit(); }
    SIMTBED_INTRINSIC void consumer_release() {}
};
SIMTBED_INLINE pipeline<thread_scope_thread> make_pipeline() { return {}; }
template <unsigned char prior> SIMTBED_INLINE void pipeline_consumer_wait_prior(pipeline<thread_scope_thread> &) { __pipeline_wait_prior(prior); }
template <class T, class Size> SIMTBED_INLINE void memcpy_async(T *to, const T *from, Size size, pipeline<thread_scope_thread> &) {
    __pipeline_memcpy_async(to, from, size);
}
}
