// OpenMP without threads: its pragmas have no effect.
#pragma once
#include <time.h>
static inline int omp_get_thread_num(void) { return 0; }
static inline int omp_get_num_threads(void) { return 1; }
static inline int omp_get_max_threads(void) { return 1; }
static inline int omp_get_num_procs(void) { return 1; }
static inline void omp_set_num_threads(int count) { (void)count; }
static inline int omp_in_parallel(void) { return 0; }
typedef int omp_lock_t;
#define omp_init_lock(lock) (*(lock) = 0)
#define omp_destroy_lock(lock)
#define omp_set_lock(lock) (*(lock) = 1)
#define omp_unset_lock(lock) (*(lock) = 0)
#define omp_set_dynamic(dynamic)
static inline double omp_get_wtime(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}
