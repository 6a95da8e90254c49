// The host API of cuRAND: XORWOW.
#ifndef CURAND_H_
#define CURAND_H_  // the samples' helpers ask for it
#include <curand_kernel.h>
#include <vector>
typedef enum {
    CURAND_STATUS_SUCCESS, CURAND_STATUS_VERSION_MISMATCH = 100, CURAND_STATUS_NOT_INITIALIZED, CURAND_STATUS_ALLOCATION_FAILED, CURAND_STATUS_TYPE_ERROR,
    CURAND_STATUS_OUT_OF_RANGE, CURAND_STATUS_LENGTH_NOT_MULTIPLE, CURAND_STATUS_DOUBLE_PRECISION_REQUIRED, CURAND_STATUS_LAUNCH_FAILURE = 201,
    CURAND_STATUS_PREEXISTING_FAILURE, CURAND_STATUS_INITIALIZATION_FAILED, CURAND_STATUS_ARCH_MISMATCH, CURAND_STATUS_INTERNAL_ERROR = 999
} curandStatus_t;
typedef enum { CURAND_RNG_PSEUDO_DEFAULT = 100, CURAND_RNG_PSEUDO_XORWOW } curandRngType_t;
typedef curandRngType_t curandRngType;
typedef curandStatus_t curandStatus;
// Element n of a sequence is element n / 4096 of its part n % 4096.
typedef struct simtbed_generator {
    unsigned long long seed, offset; bool on_host; std::vector<curandStateXORWOW_t> parts;
    unsigned next() {
        if (parts.empty()) {
            curandStateXORWOW_t state;
            curand_init(seed, 0, 0, &state);
            for (int i = 0; i < 4096; i++, skipahead_sequence(1, &state)) parts.push_back(state);
            for (unsigned long long i = 0; i < offset; i++) curand(&parts[i % 4096]);
        }
        return curand(&parts[offset++ % 4096]);
    }
} *curandGenerator_t;
static inline curandStatus_t curandCreateGenerator(curandGenerator_t *g, curandRngType_t) { return *g = new simtbed_generator(), CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandCreateGeneratorHost(curandGenerator_t *g, curandRngType_t) { return *g = new simtbed_generator{0, 0, true}, CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandDestroyGenerator(curandGenerator_t g) { return delete g, CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandSetStream(curandGenerator_t, cudaStream_t) { return CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t g, unsigned long long seed) { return g->seed = seed, g->parts.clear(), CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandSetGeneratorOffset(curandGenerator_t g, unsigned long long offset) { return g->offset = offset, g->parts.clear(), CURAND_STATUS_SUCCESS; }
static inline curandStatus_t curandGenerateSeeds(curandGenerator_t) { return CURAND_STATUS_SUCCESS; }
#define SIMTBED_GENERATE(NAME, T, STEP, BODY, ...) \
    static inline curandStatus_t curandGenerate##NAME(curandGenerator_t g, T *p, size_t n, ##__VA_ARGS__, SIMTBED_PLACE) { \
        if (n % STEP) return CURAND_STATUS_LENGTH_NOT_MULTIPLE; \
        if (!g->on_host && simtbedAccess(p, n * sizeof(T), 1, simtbed_file, simtbed_line)) return CURAND_STATUS_LAUNCH_FAILURE; \
        for (size_t i = 0; i < n; i += STEP) { BODY; } \
        return CURAND_STATUS_SUCCESS; \
    }
SIMTBED_GENERATE(, unsigned, 1, p[i] = g->next())
SIMTBED_GENERATE(Uniform, float, 1, p[i] = simtbed_uniform(g->next()))
SIMTBED_GENERATE(UniformDouble, double, 1, const unsigned x = g->next(); p[i] = simtbed_uniform_double(x, g->next()))
SIMTBED_GENERATE(Normal, float, 2, const unsigned x = g->next(); const float2 both = simtbed_normals(x, g->next());
    p[i] = mean + deviation * both.x; p[i + 1] = mean + deviation * both.y, float mean, float deviation)
SIMTBED_GENERATE(NormalDouble, double, 2, const unsigned a = g->next(); const unsigned b = g->next(); const unsigned c = g->next();
    const double2 both = simtbed_normals_double(a, b, c, g->next()); p[i] = mean + deviation * both.x; p[i + 1] = mean + deviation * both.y, double mean, double deviation)
#endif
