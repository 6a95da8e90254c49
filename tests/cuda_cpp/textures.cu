//// references
texture<uchar4, 2, cudaReadModeNormalizedFloat> image;
texture<int, 1> table;
surface<void, cudaSurfaceType2D> target;
__constant__ float factor[1];
namespace fetch { __device__ int scaled(int fetch) { return fetch * tex1Dfetch(table, fetch); } }
__global__ void k(float *out) {
    int fetch = threadIdx.x;
    float4 texel = tex2D(image, fetch, 1);
    surf2Dwrite<float>(texel.y * factor[0], target, fetch * 4, 0);
    out[fetch] = texel.x + fetch::scaled(fetch);
}
__global__ void plain(float *out) { out[threadIdx.x] = 1; }

//// surfaces
template <class T> __global__ void move(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
    int x = threadIdx.x, y = threadIdx.y; T texel = surf2Dread<T>(from, x * (int)sizeof(T), y);
    surf2Dwrite(texel, to, x * (int)sizeof(T), 1 - y); }
__global__ void volume(cudaSurfaceObject_t s, cudaSurfaceObject_t layers) {
    short2 v; surf3Dread(&v, s, threadIdx.x * 4, 1, 2); surf2DLayeredwrite((int)v.y, layers, threadIdx.x * 4, 1, 2); }
__global__ void race(cudaSurfaceObject_t s) { surf1Dwrite((float)threadIdx.x, s, 0); }

//// mixed
__global__ void fetches(cudaTextureObject_t t, float *out) {
    out[threadIdx.x] = tex2D<float>(t, threadIdx.x * 0.5f, 0.75f); }
__global__ void stores(cudaSurfaceObject_t s) { surf1Dwrite(1.0f, s, threadIdx.x * 4); }
__global__ void chosen(cudaTextureObject_t t, cudaTextureObject_t u, float *out) {
    out[threadIdx.x] = tex1Dfetch<float>(threadIdx.x ? t : u, 1); }
__global__ void mode(cudaSurfaceObject_t s, int mode) { surf1Dwrite(1.0f, s, threadIdx.x * 4, (cudaSurfaceBoundaryMode)mode); }
__global__ void array(cudaTextureObject_t *t, float *out) { out[0] = tex1Dfetch<float>(t[0], 1); }
__global__ void layered(cudaTextureObject_t t, float *out) { out[0] = tex1DLayered<float>(t, 0, 0); }
__global__ void wide(cudaSurfaceObject_t s) { surf1Dwrite(make_float2(1, 2), s, threadIdx.x * 8); }
__global__ void numbered(cudaTextureObject_t t, int n, float *out) { out[0] = tex1Dfetch<float>(t, n); }
__global__ void gather(cudaTextureObject_t t, float4 *out) { out[0] = tex2Dgather<float4>(t, 1, 1, 0); }
__global__ void cube(cudaTextureObject_t t, float *out) { out[0] = texCubemap<float>(t, 1, 1, 0); }
