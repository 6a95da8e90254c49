// Textures and surfaces: a fetch returns four components (`llvmir.texture_calls`).
struct __align__(64) CUtensorMap_st { unsigned long long opaque[16]; };
typedef CUtensorMap_st CUtensorMap;
enum cudaTextureReadMode { cudaReadModeElementType = 0, cudaReadModeNormalizedFloat = 1 };
enum cudaTextureFilterMode { cudaFilterModePoint = 0, cudaFilterModeLinear = 1 };
enum cudaTextureAddressMode { cudaAddressModeWrap = 0, cudaAddressModeClamp = 1, cudaAddressModeMirror = 2, cudaAddressModeBorder = 3 };
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero = 0, cudaBoundaryModeClamp = 1, cudaBoundaryModeTrap = 2 };
#define cudaTextureType1D 0x01
#define cudaTextureType2D 0x02
#define cudaTextureType3D 0x03
#define cudaTextureType1DLayered 0xF1
#define cudaTextureType2DLayered 0xF2
#define cudaSurfaceType1D 0x01
#define cudaSurfaceType2D 0x02
#define cudaSurfaceType3D 0x03
#define cudaSurfaceType1DLayered 0xF1
#define cudaSurfaceType2DLayered 0xF2
struct cudaChannelFormatDesc { int x, y, z, w, f; };
struct textureReference {
    int normalized = 0;
    cudaTextureFilterMode filterMode = cudaFilterModePoint;
    cudaTextureAddressMode addressMode[3] = {cudaAddressModeClamp, cudaAddressModeClamp, cudaAddressModeClamp};
    cudaChannelFormatDesc channelDesc = {};
};
typedef unsigned long long cudaTextureObject_t; typedef cudaTextureObject_t CUtexObject;
typedef unsigned long long cudaSurfaceObject_t; typedef cudaSurfaceObject_t CUsurfObject;
struct cudaExtent { size_t width, height, depth; };
template <class T, int D = cudaTextureType1D, cudaTextureReadMode M = cudaReadModeElementType>
struct __attribute__((device_builtin_texture_type)) texture : textureReference {};
template <class T, int D = cudaSurfaceType1D> struct __attribute__((device_builtin_surface_type)) surface { int channelDesc; };
template <int D> struct __attribute__((device_builtin_surface_type)) surface<void, D> { int channelDesc; };

template <class R> struct simtbed_fetch;
#define SIMTBED_FETCHES(T, NAME) \
    typedef T simtbed_##NAME##x4 __attribute__((ext_vector_type(4))); \
    template <> struct simtbed_fetch<simtbed_##NAME##x4> { \
        template <class H> SIMTBED_EFFECT static simtbed_##NAME##x4 index(H, int) __asm__("simtbed.fetch.index." NAME##_WORD); \
        template <class H> SIMTBED_EFFECT static simtbed_##NAME##x4 d1(H, float) __asm__("simtbed.fetch.1d." NAME##_WORD); \
        template <class H> SIMTBED_EFFECT static simtbed_##NAME##x4 d2(H, float, float) __asm__("simtbed.fetch.2d." NAME##_WORD); \
        template <class H> SIMTBED_EFFECT static simtbed_##NAME##x4 d3(H, float, float, float) __asm__("simtbed.fetch.3d." NAME##_WORD); \
        template <class H> SIMTBED_EFFECT static simtbed_##NAME##x4 layer1(H, float, int) __asm__("simtbed.fetch.1dlayered." NAME##_WORD); \
        template <class H> SIMTBED_EFFECT static simtbed_##NAME##x4 layer2(H, float, float, int) __asm__("simtbed.fetch.2dlayered." NAME##_WORD); \
    };
#define f32_WORD "f32"
#define i32_WORD "i32"
#define u32_WORD "u32"
SIMTBED_FETCHES(float, f32) SIMTBED_FETCHES(int, i32) SIMTBED_FETCHES(unsigned int, u32)

template <class T> struct simtbed_texel;
#define SIMTBED_TEXEL(T, R, LANE, ...) \
    template <> struct simtbed_texel<T> { \
        typedef simtbed_##R##x4 raw; typedef LANE lane; \
        SIMTBED_INLINE T of(raw v) { return {__VA_ARGS__}; } \
    };
#define SIMTBED_TEXELS(T, NAME, R) \
    SIMTBED_TEXEL(T, R, T, (T)v.x) SIMTBED_TEXEL(NAME##1, R, T, (T)v.x) SIMTBED_TEXEL(NAME##2, R, T, (T)v.x, (T)v.y) \
    SIMTBED_TEXEL(NAME##4, R, T, (T)v.x, (T)v.y, (T)v.z, (T)v.w)
SIMTBED_TEXELS(signed char, char, i32) SIMTBED_TEXELS(unsigned char, uchar, u32) SIMTBED_TEXELS(short, short, i32)
SIMTBED_TEXELS(unsigned short, ushort, u32) SIMTBED_TEXELS(int, int, i32) SIMTBED_TEXELS(unsigned int, uint, u32)
SIMTBED_TEXELS(float, float, f32) SIMTBED_TEXEL(char, i32, signed char, (char)v.x)
template <class T, int M> struct simtbed_read { typedef T type; };
template <class T> struct simtbed_read<T, cudaReadModeNormalizedFloat> {
    template <int N, class X = void> struct of { typedef float type; };
    template <class X> struct of<2, X> { typedef float2 type; };
    template <class X> struct of<4, X> { typedef float4 type; };
    typedef typename of<sizeof(T) / sizeof(typename simtbed_texel<T>::lane)>::type type;
};

// Of a texture object with the type as an argument of the template or behind a pointer, and of a texture reference. Textures have one
// level: functions with a level of detail or gradients fetch from it.
#define SIMTBED_TEXTURE(NAME, FETCH, D, LEVELS, CALL, ...) \
    template <class T> SIMTBED_INLINE T NAME(cudaTextureObject_t t, __VA_ARGS__ LEVELS) { \
        return simtbed_texel<T>::of(simtbed_fetch<typename simtbed_texel<T>::raw>::FETCH CALL); } \
    template <class T> SIMTBED_INLINE void NAME(T *result, cudaTextureObject_t t, __VA_ARGS__ LEVELS) { \
        *result = simtbed_texel<T>::of(simtbed_fetch<typename simtbed_texel<T>::raw>::FETCH CALL); } \
    template <class T, cudaTextureReadMode M> SIMTBED_INLINE typename simtbed_read<T, M>::type NAME(texture<T, D, M> t, __VA_ARGS__ LEVELS) { \
        typedef simtbed_texel<typename simtbed_read<T, M>::type> texel; \
        return texel::of(simtbed_fetch<typename texel::raw>::FETCH CALL); }
#define SIMTBED_LEVEL , float
#define SIMTBED_GRADIENT(T) , T, T
SIMTBED_TEXTURE(tex1Dfetch, index, cudaTextureType1D, , (t, x), int x)
SIMTBED_TEXTURE(tex1D, d1, cudaTextureType1D, , (t, x), float x)
SIMTBED_TEXTURE(tex2D, d2, cudaTextureType2D, , (t, x, y), float x, float y)
SIMTBED_TEXTURE(tex3D, d3, cudaTextureType3D, , (t, x, y, z), float x, float y, float z)
SIMTBED_TEXTURE(tex1DLayered, layer1, cudaTextureType1DLayered, , (t, x, layer), float x, int layer)
SIMTBED_TEXTURE(tex2DLayered, layer2, cudaTextureType2DLayered, , (t, x, y, layer), float x, float y, int layer)
SIMTBED_TEXTURE(tex1DLod, d1, cudaTextureType1D, SIMTBED_LEVEL, (t, x), float x)
SIMTBED_TEXTURE(tex2DLod, d2, cudaTextureType2D, SIMTBED_LEVEL, (t, x, y), float x, float y)
SIMTBED_TEXTURE(tex3DLod, d3, cudaTextureType3D, SIMTBED_LEVEL, (t, x, y, z), float x, float y, float z)
SIMTBED_TEXTURE(tex2DGrad, d2, cudaTextureType2D, SIMTBED_GRADIENT(float2), (t, x, y), float x, float y)

#define SIMTBED_SURFACE(T, NAME) \
    template <class H> SIMTBED_EFFECT T __simtbed_surface_read(H, int x, int y, int z, int dimensions, int mode, int lanes, int lane, T *) \
        __asm__("simtbed.surface.read." NAME); \
    template <class H> SIMTBED_EFFECT void __simtbed_surface_write(H, int x, int y, int z, int dimensions, int mode, int lanes, int lane, T value) \
        __asm__("simtbed.surface.write." NAME);
SIMTBED_SURFACE(signed char, "i8") SIMTBED_SURFACE(unsigned char, "u8") SIMTBED_SURFACE(short, "i16") SIMTBED_SURFACE(unsigned short, "u16")
SIMTBED_SURFACE(int, "i32") SIMTBED_SURFACE(unsigned int, "u32") SIMTBED_SURFACE(float, "f32")
template <class T, class H> SIMTBED_INLINE T __simtbed_surface_texel(H s, int x, int y, int z, int dimensions, int mode) {
    typedef typename simtbed_texel<T>::lane lane;
    constexpr int lanes = sizeof(T) / sizeof(lane);
    struct own { lane at[lanes]; } v;
    v.at[0] = __simtbed_surface_read(s, x, y, z, dimensions, mode, lanes, 0, (lane *)0);
    if constexpr (lanes > 1) v.at[1] = __simtbed_surface_read(s, x, y, z, dimensions, mode, lanes, 1, (lane *)0);
    if constexpr (lanes > 2) v.at[2] = __simtbed_surface_read(s, x, y, z, dimensions, mode, lanes, 2, (lane *)0);
    if constexpr (lanes > 2) v.at[3] = __simtbed_surface_read(s, x, y, z, dimensions, mode, lanes, 3, (lane *)0);
    return __builtin_bit_cast(T, v);
}
template <class T, class H> SIMTBED_INLINE void __simtbed_surface_store(T value, H s, int x, int y, int z, int dimensions, int mode) {
    typedef typename simtbed_texel<T>::lane lane;
    constexpr int lanes = sizeof(T) / sizeof(lane);
    struct own { lane at[lanes]; } v = __builtin_bit_cast(own, value);
    __simtbed_surface_write(s, x, y, z, dimensions, mode, lanes, 0, v.at[0]);
    if constexpr (lanes > 1) __simtbed_surface_write(s, x, y, z, dimensions, mode, lanes, 1, v.at[1]);
    if constexpr (lanes > 2) __simtbed_surface_write(s, x, y, z, dimensions, mode, lanes, 2, v.at[2]);
    if constexpr (lanes > 2) __simtbed_surface_write(s, x, y, z, dimensions, mode, lanes, 3, v.at[3]);
}
#define SIMTBED_SURFACES(DIMENSIONS, WORD, COORDINATES, ...) \
    template <class T, class H> SIMTBED_INLINE T surf##DIMENSIONS##read(H s, __VA_ARGS__, int mode = cudaBoundaryModeTrap) { \
        return __simtbed_surface_texel<T>(s, SIMTBED_PLACE COORDINATES, WORD, mode); } \
    template <class T, class H> SIMTBED_INLINE void surf##DIMENSIONS##read(T *to, H s, __VA_ARGS__, int mode = cudaBoundaryModeTrap) { \
        *to = __simtbed_surface_texel<T>(s, SIMTBED_PLACE COORDINATES, WORD, mode); } \
    template <class T, class H> SIMTBED_INLINE void surf##DIMENSIONS##write(T value, H s, __VA_ARGS__, int mode = cudaBoundaryModeTrap) { \
        __simtbed_surface_store(value, s, SIMTBED_PLACE COORDINATES, WORD, mode); }
#define SIMTBED_PLACE(X, Y, Z) X, Y, Z
SIMTBED_SURFACES(1D, 1, (x, 0, 0), int x)
SIMTBED_SURFACES(2D, 2, (x, y, 0), int x, int y)
SIMTBED_SURFACES(3D, 3, (x, y, z), int x, int y, int z)
SIMTBED_SURFACES(1DLayered, 11, (x, 0, layer), int x, int layer)
SIMTBED_SURFACES(2DLayered, 12, (x, y, layer), int x, int y, int layer)
