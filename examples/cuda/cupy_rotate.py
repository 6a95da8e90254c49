import cupy as cp

source = """extern "C" __global__ void rotate(float *x) {
    float mine = x[threadIdx.x];
    x[(threadIdx.x + 1) % 256] = mine;
}"""
x = cp.arange(256, dtype=cp.float32)
cp.RawKernel(source, "rotate")((1,), (256,), (x,))
print(x[30:34])
