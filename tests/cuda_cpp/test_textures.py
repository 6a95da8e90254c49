"""Textures and surfaces: an H200's results, addressing, element types, references, faults, counters and refusals.

h200_textures.npz has fetches on an H200. cases: the texture and the call of each. at: coordinates [x, y, z, points], texels: bytes of
the array, out: bits of the components [channels, points], of the cases one after the other.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import simtbed as st
from simtbed.engines.cuda.printer import cuda_source as printed
from simtbed.runtime.registry import EngineName

from tests.table_checks import check_each, each_row
from tests.texts import texts

TEXTS = texts("cuda_cpp/textures.cu")

EMULATORS: tuple[EngineName, ...] = ("numpy", "jit", "python")
Values = npt.NDArray[Any]

CALLS = (
    "tex1Dfetch<T>(t, (int)x)", "tex1D<T>(t, x)", "tex2D<T>(t, x, y)", "tex3D<T>(t, x, y, z)", "tex1DLayered<T>(t, x, (int)z)",
    "tex2DLayered<T>(t, x, y, (int)z)", "tex2DLod<T>(t, x, y, z)", "tex2DGrad<T>(t, x, y, make_float2(z, 0), make_float2(0, z))",
)  # fmt: skip
RESULTS = {"float4": np.float32, "int4": np.int32, "uint4": np.uint32}
FETCHES = st.cuda_source(
    "".join(
        f"__global__ void fetch{call}{T}(cudaTextureObject_t t, const float *at, int n, {T} *out) {{\n"
        f"    typedef {T} T; int i = threadIdx.x; float x = at[i], y = at[n + i], z = at[2 * n + i]; out[i] = {text}; }}\n"
        for call, text in enumerate(CALLS)
        for T in RESULTS
    )
)


def _recorded() -> Iterator[tuple[dict[str, Any], st.Texture, Values, Values]]:
    """Yield the recorded cases: the case, its texture, the coordinates and the bits of the results."""
    record = np.load(Path(__file__).with_name("h200_textures.npz"))
    texels, at, out = (record[name] for name in ("texels", "at", "out"))
    for case in json.loads(str(record["cases"])):
        dtype, count = np.dtype(case["dtype"]), int(np.prod(case["shape"]))
        array, texels = (
            texels[: count * dtype.itemsize].copy().view(dtype).reshape(case["shape"]),
            texels[count * dtype.itemsize :],
        )
        points, channels = case["points"], case["channels"]
        own, at = at[: 3 * points], at[3 * points :]
        bits, out = out[: channels * points].reshape(channels, points), out[channels * points :]
        how = {name: case[name] for name in ("channels", "layers", "address", "filter", "normalized", "read")}
        yield case, st.Texture(array, **how), own, bits


def _same(case: dict[str, Any], texture: st.Texture, at: Values, bits: Values, engine: EngineName) -> None:
    """Compare the fetches of a case with the record. A NaN has no defined bits."""
    result = texture.form.result
    word = {"f32": "float4", "i32": "int4", "u32": "uint4"}[str(result)]
    args = {"t": texture, "at": at, "n": case["points"], "out": np.zeros((case["points"], 4), RESULTS[word])}
    kernel = FETCHES[f"fetch{case['call']}{word}"]
    out = st.launch(kernel, grid=1, block=case["points"], args=args, engine=engine).out
    channels = case["channels"]
    got, expected_bits = out[:, :channels], bits.T.view(out.dtype)
    both = (got != got) & (expected_bits != expected_bits)
    assert np.array_equal(got.view(np.uint32) * ~both, expected_bits.view(np.uint32) * ~both)
    rest = [0, 0, 0, 1][channels:]
    assert (out[:, channels:] == rest).all()


@pytest.mark.slow
def test_fetches_have_the_bits_of_an_h200() -> None:
    check_each(_recorded(), lambda row: _same(*row, "jit"), lambda row: row[0])


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["numpy", "python"])
def test_every_engine_has_them(engine: EngineName) -> None:
    check_each(list(_recorded())[::6], lambda row: _same(*row, engine), lambda row: row[0])


# -------------------------------------------------------------- addressing
TABLE = np.array([10, 20, 30, 40], np.float32)
ADDRESSING = [  # mode, normalised, filter, coordinates, results
    ("clamp", False, "point", [-1, 0, 3.9, 4, 9], [10, 10, 40, 40, 40]),
    ("border", False, "point", [-1, 0, 3.9, 4, 9], [0, 10, 40, 0, 0]),
    ("wrap", False, "point", [-1, 0, 3.9, 4, 9], [10, 10, 40, 40, 40]),
    ("clamp", True, "point", [-0.25, 0, 0.5, 1, 2], [10, 10, 30, 40, 40]),
    ("border", True, "point", [-0.25, 0, 0.5, 1, 2], [0, 10, 30, 0, 0]),
    ("wrap", True, "point", [-0.25, 0, 0.5, 1, 2.25], [40, 10, 30, 10, 20]),
    ("mirror", True, "point", [-0.125, 0, 1.125, 1.375, 2.25], [10, 10, 40, 30, 20]),
    ("clamp", False, "linear", [0, 0.5, 1, 1.25, 4], [10, 10, 15, 17.5, 40]),
    ("border", False, "linear", [0, 0.5, 1, 1.25, 4], [2.5, 5, 7.5, 8.75, 10]),
    ("wrap", True, "linear", [0, 0.125, 0.25, 1, 1.25], [25, 10, 15, 25, 15]),
    ("mirror", True, "linear", [0, 0.125, 0.25, 1, 1.25], [10, 10, 15, 40, 35]),
    ("clamp", False, "point", [np.nan, np.inf, -np.inf, 1e30, -1e30], [10, 40, 10, 40, 10]),
]
LINE = st.cuda_source(
    "__global__ void k(cudaTextureObject_t t, const float *x, float *out) { out[threadIdx.x] = tex1D<float>(t, x[threadIdx.x]); }"
).k


@pytest.mark.slow
@each_row(ADDRESSING)
def test_coordinates_outside_follow_the_address_mode(row: Any) -> None:
    mode, normalized, filter, at, expected = row
    texture = st.Texture(TABLE, address=mode, normalized=normalized, filter=filter)
    for engine in EMULATORS:
        args = (texture, np.array(at, np.float32), np.zeros(len(at), np.float32))
        assert st.launch(LINE, grid=1, block=len(at), args=args, engine=engine).out.tolist() == expected


def test_each_coordinate_has_its_address_mode() -> None:
    source = st.cuda_source(
        "__global__ void k(cudaTextureObject_t t, float *out) { out[0] = tex2D<float>(t, 3, 0); out[1] = tex2D<float>(t, 0, 3); }"
    )
    texture = st.Texture(np.array([[1, 2], [3, 4]], np.float32), address=("clamp", "border"))
    assert st.launch(source.k, grid=1, block=1, args=(texture, np.zeros(2, np.float32))).out.tolist() == [2, 0]


# -------------------------------------------------------------- references
REFERENCES = st.cuda_source(TEXTS["references"])


def test_references_are_variables_of_the_source() -> None:
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    for engine in EMULATORS:
        target = st.DeviceArray(np.zeros((1, 3), np.float32))
        REFERENCES.variables |= {
            "image": st.Texture(pixels, channels=4, read="normalized"), "table": st.Texture(np.array([5, 6, 7], np.int32)),
            "target": st.Surface(target), "factor": np.array([255], np.float32),
        }  # fmt: skip
        result = st.launch(REFERENCES.k, grid=1, block=3, args=(np.zeros(3, np.float32),), engine=engine)
        assert np.array_equal(result.out, (pixels[1, :, 0] / np.float32(255)) + np.array([0, 6, 14], np.float32))
        assert target.host.tolist() == [[13, 17, 21]]
    plain = st.launch(REFERENCES.plain, grid=1, block=1, args=(np.zeros(1, np.float32),))
    assert plain.request.specialisation.own_code is not None


# -------------------------------------------------------------- surfaces
BOUNDARIES = {"Zero": [0, 1, 4, 0], "Clamp": [1, 1, 4, 4]}
SURFACES = st.cuda_source(
    "".join(
        f"""
__global__ void read{mode}(cudaSurfaceObject_t s, const int *x, float *out) {{
    out[threadIdx.x] = surf1Dread<float>(s, x[threadIdx.x] * 4, cudaBoundaryMode{mode}); }}
__global__ void write{mode}(cudaSurfaceObject_t s, const int *x, int y) {{
    if (threadIdx.x == y) surf1Dwrite(9.0f, s, x[threadIdx.x] * 4, cudaBoundaryMode{mode}); }}
"""
        for mode in (*BOUNDARIES, "Trap")
    )
    + TEXTS["surfaces"],
    instances=[f"move<{T}>" for T in ("signed char", "uchar2", "ushort4", "int2", "float4")],
)


@pytest.mark.slow
def test_boundary_modes_of_surfaces() -> None:
    at = np.array([-1, 0, 3, 4], np.int32)
    for engine in EMULATORS:
        for mode, expected in BOUNDARIES.items():
            surface = st.Surface(np.arange(1, 5, dtype=np.float32))
            args: Any = (surface, at, np.zeros(4, np.float32))
            read = st.launch(SURFACES[f"read{mode}"], grid=1, block=4, args=args, engine=engine)
            assert read.out.tolist() == expected
            write = st.launch(SURFACES[f"write{mode}"], grid=1, block=4, args=(surface, at, 3), engine=engine)
            assert write.s.tolist() == ([1, 2, 3, 4] if mode == "Zero" else [1, 2, 3, 9])
        for kernel, last in (("readTrap", np.zeros(4, np.float32)), ("writeTrap", 3)):
            with pytest.raises(st.FaultError, match=r"out of bounds: s\[.*\], but s has 4 elements"):
                st.launch(SURFACES[kernel], grid=1, block=4, args=(surface, at, last), engine=engine)


@pytest.mark.slow
@each_row([("signed char", 1, "i1"), ("uchar2", 2, "u1"), ("ushort4", 4, "u2"), ("int2", 2, "i4"), ("float4", 4, "f4")])
def test_texels_of_surfaces(row: tuple[str, int, Any]) -> None:
    type, channels, dtype = row
    shape = (2, 3) if channels == 1 else (2, 3, channels)
    values = np.arange(6 * channels).astype(dtype).reshape(shape)
    for engine in EMULATORS:
        args = [st.Surface(array, channels=channels) for array in (values, np.zeros_like(values))]  # type: ignore[arg-type]
        result = st.launch(SURFACES[f"move<{type}>"], grid=1, block=(3, 2), args=args, engine=engine, check="all")
        assert np.array_equal(result.to, values[::-1])


def test_volumes_and_layers_of_surfaces() -> None:
    volume = np.arange(3 * 2 * 4 * 2, dtype=np.int16).reshape(3, 2, 4, 2)
    args = (st.Surface(volume, channels=2), st.Surface(np.zeros((3, 2, 4), np.int32), layers=True))
    assert np.array_equal(st.launch(SURFACES.volume, grid=1, block=4, args=args).layers[2, 1], volume[2, 1, :, 1])


def test_races_of_surfaces_are_found() -> None:
    with pytest.raises(st.FaultError, match="race"):
        st.launch(SURFACES.race, grid=1, block=64, args=(st.Surface(np.zeros(1, np.float32)),), check="all")


# -------------------------------------------------------------- engines, counters
MIXED = st.cuda_source(TEXTS["mixed"])
PLANE = np.ones((3, 4), np.float32)
OUT = np.zeros(64, np.float32)


def _launch(name: str, *args: Any, **how: Any) -> st.Result:
    return st.launch(MIXED[name], grid=1, block=64, args=args, **how)


def test_a_fetch_is_one_instruction() -> None:
    counts = {}
    for filter in ("point", "linear"):
        counters = _launch("fetches", st.Texture(PLANE, filter=filter), OUT).counters
        names = ("texture_loads", "warp_instructions", "global_load_requests", "global_store_requests")
        counts[filter] = [counters.total(name) for name in names]
    assert counts["point"] == counts["linear"]
    assert counts["point"][0] == 2
    assert counts["point"][2:] == [0, 2]


def test_fetches_are_not_printed_and_surfaces_are() -> None:
    fetches, stores = _launch("fetches", st.Texture(PLANE), OUT), _launch("stores", st.Surface(OUT.copy()))
    for result in (fetches, stores):
        assert result.request.specialisation.own_code is None
    with pytest.raises(st.CompileError, match="the fetch from the texture t is not printed as CUDA C"):
        printed(fetches.request.program, fetches.request.block)
    assert "stores(float* __restrict__ s)" in printed(stores.request.program, stores.request.block).text


# -------------------------------------------------------------- refusals
def _texture(array: Any = PLANE, **how: Any) -> Callable[[], object]:
    return lambda: st.Texture(array, **how)


INTEGERS = PLANE.astype(np.int32)
REFUSED: list[tuple[str, Callable[[], object]]] = [
    ("t is a texture or surface: give st.Texture", lambda: _launch("fetches", PLANE, OUT)),
    ("t is a texture or surface: give st.Texture", lambda: _launch("fetches", 3, OUT)),
    ("out is neither a texture nor a surface", lambda: _launch("fetches", st.Texture(PLANE), st.Texture(OUT))),
    ("n is neither a texture nor a surface", lambda: _launch("numbered", st.Texture(OUT), st.Texture(OUT), OUT)),
    ("t is a texture of the kernel", lambda: _launch("fetches", st.Surface(PLANE), OUT)),
    ("s is a surface of the kernel", lambda: _launch("stores", st.Texture(OUT))),
    ("its array has 1", lambda: _launch("fetches", st.Texture(OUT), OUT)),
    ("texture of layers and 1 axes: its array has 2", lambda: _launch("layered", st.Texture(PLANE), OUT)),
    ("returns i32: give floats or read", lambda: _launch("fetches", st.Texture(INTEGERS), OUT)),
    ("accessed as texels of 2 elements of f32", lambda: _launch("wide", st.Surface(OUT))),
    ("a texture that is chosen at run time", lambda: _launch("chosen", st.Texture(OUT), st.Texture(OUT), OUT)),
    ("a texture that is chosen at run time", lambda: _launch("array", np.zeros(1, np.uint64), OUT)),
    ("a computed boundary mode of a surface", lambda: _launch("mode", st.Surface(OUT), 1)),
    ("'tex2Dgather'", lambda: MIXED.gather.signature()),
    ("'texCubemap'", lambda: MIXED.cube.signature()),
    ("give 8-, 16- or 32-bit integers, float16 or float32", _texture(PLANE.astype(np.float64))),
    ("channels is 1, 2 or 4, not 3", _texture(channels=3)),
    ("the last axis of array has the 2 channels", _texture(channels=2)),
    ("array has 1 to 3 axes", _texture(np.zeros((2, 2, 2, 2), np.float32))),
    ("array has 1 to 3 axes", _texture(np.zeros((0, 2), np.float32))),
    ("array is not contiguous", _texture(PLANE[:, ::2])),
    ("array is a NumPy array", _texture([1.0, 2.0])),
    ("address is 'wrap' or 'clamp'", _texture(address="repeat")),
    ("address has 1 modes: give one for each of the 2", _texture(address=("wrap",))),
    ("filter is 'point' or 'linear'", _texture(filter="cubic")),
    ("of i32 returns floats", _texture(INTEGERS, filter="linear")),
    ("is of 8- and 16-bit integers, array has elements of f32", _texture(read="normalized")),
]


@each_row(REFUSED, lambda row: row[0])
def test_refusals_name_the_reason(row: tuple[str, Callable[[], object]]) -> None:
    with pytest.raises(st.SimtbedError) as refused:
        row[1]()
    assert row[0] in str(refused.value)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({}, 'image is a texture or surface: set variables["image"] = st.Texture(array)'),
        ({"image": np.zeros((2, 2, 4), np.uint8)}, "image is a texture or surface"),
        ({"factor": st.Texture(OUT)}, "factor is neither a texture nor a surface"),
    ],
)
def test_references_that_do_not_fit(variables: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(REFERENCES, "variables", type(REFERENCES.variables)(variables))
    with pytest.raises(st.LaunchError) as refused:
        st.launch(REFERENCES.k, grid=1, block=1, args=(np.zeros(1, np.float32),))
    assert message in str(refused.value)
