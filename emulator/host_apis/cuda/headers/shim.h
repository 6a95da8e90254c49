// The symbols of a program's host code outside of it: a table of functions in the process, and what clang's code for kernels calls.
// `declarations.py` appends the functions of the runtime.
extern "C" void *simtbed_table[];

static thread_local struct {
    dim3 grid, block; size_t shared; cudaStream_t stream; const char *file; int line;
} simtbed_calls[16];
static thread_local unsigned simtbed_depth;
static thread_local const char *simtbed_file_of_launch = "";
static thread_local int simtbed_line_of_launch;

extern "C" {
struct simtbed_binary { int magic, version; const void *content, *unused; };
void **__cudaRegisterFatBinary(const simtbed_binary *binary) { return (void **)binary->content; }
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
void __cudaRegisterFunction(void **unit, const void *stub, char *, const char *symbol, int, void *, void *, void *, void *, int *) {
    simtbedRegisterKernel(unit, stub, symbol);
}
void __cudaRegisterVar(void **unit, void *shadow, char *, const char *symbol, int, size_t size, int, int) {
    simtbedRegisterVariable(unit, shadow, symbol, size);
}
void __cudaRegisterTexture(void **unit, const void *reference, const void **, const char *symbol, int, int, int) {
    simtbedRegisterTexture(unit, reference, symbol);
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream, const char *file, int line) {
    simtbed_calls[simtbed_depth++ % 16] = {grid, block, shared, stream, file, line};
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, cudaStream_t *stream) {
    auto &call = simtbed_calls[--simtbed_depth % 16];
    *grid = call.grid, *block = call.block, *shared = call.shared, *stream = call.stream;
    simtbed_file_of_launch = call.file, simtbed_line_of_launch = call.line;
    return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void *stub, dim3 g, dim3 b, void **arguments, size_t shared, cudaStream_t stream) {
    return simtbedLaunch(stub, g.x, g.y, g.z, b.x, b.y, b.z, 1, 1, 1, shared, arguments, 0, stream, simtbed_file_of_launch, simtbed_line_of_launch);
}
cudaError_t cudaLaunchCooperativeKernel(const void *stub, dim3 g, dim3 b, void **arguments, size_t shared, cudaStream_t stream, const char *file, int line) {
    return simtbedLaunch(stub, g.x, g.y, g.z, b.x, b.y, b.z, 1, 1, 1, shared, arguments, 1, stream, file, line);
}
#define SIMTBED_MATHS(NAME, EXPRESSION) \
    double NAME(double x) noexcept { return EXPRESSION; } \
    float NAME##f(float x) noexcept { return (float)NAME((double)x); }
// of CUDA for the host, and of later C libraries
SIMTBED_MATHS(rsqrt, 1 / sqrt(x)) SIMTBED_MATHS(sinpi, sin(M_PI * fmod(x, 2))) SIMTBED_MATHS(cospi, cos(M_PI * fmod(x, 2)))
// Of zig's library of the compiler, which has no bfloat16: the result is in the low bits of a register of floats.
float __truncsfbf2(float x) noexcept {
    const unsigned bits = __builtin_bit_cast(unsigned, x);
    return __builtin_bit_cast(float, x != x ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float __truncdfbf2(double x) noexcept {  // to float with an odd last bit where it is not exact, so that one rounding follows
    const float y = (float)x;
    unsigned bits = __builtin_bit_cast(unsigned, y);
    if ((double)y != x && !(bits & 1)) bits += ((double)y < x) == (x > 0) ? 1 : -1;
    return __truncsfbf2(__builtin_bit_cast(float, bits));
}
void simtbed_run(int (*program)(int, char **), int count, char **words) {
    on_exit([](int status, void *) { simtbedEnd(status); }, 0);
    exit(program(count, words));
}
}
