"""CUDA C++ kernels as their users write them, each with a launch and its answer in NumPy."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import simtbed as st

from tests.texts import texts

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Habit:
    """text: with one kernel, or `kernel` of several. args: in the order of the parameters. expected: the arrays that the kernel writes."""

    text: str
    grid: Any
    block: Any
    args: Callable[[np.random.Generator], Arrays]
    expected: Callable[[Arrays], Arrays]
    kernel: str = ""
    shared: int = 0
    rtol: float = 0.0
    instances: tuple[str, ...] = ()
    cooperative: bool = False


def f32(*shape: int) -> Callable[[np.random.Generator], Any]:
    return lambda rng: rng.random(shape, np.float32)


TEXTS = texts("cuda_cpp/habits.cu")
HABITS: dict[str, Habit] = {}


def add(name: str, **fields: Any) -> None:
    HABITS[name] = Habit(TEXTS[name], **fields)


add(
    "doublify of a matrix of 4 x 4",
    grid=1, block=(4, 4), args=lambda rng: {"a": rng.random((4, 4), np.float32)}, expected=lambda g: {"a": g["a"] * 2},
)  # fmt: skip
add(
    "grid-stride saxpy with restrict pointers",
    grid=3, block=64, args=lambda rng: {"x": f32(1000)(rng), "y": f32(1000)(rng), "a": 2.5, "n": 1000},
    expected=lambda g: {"y": np.float32(2.5) * g["x"] + g["y"]},
)  # fmt: skip
add(
    "tiled product with bounds",
    grid=(3, 2), block=(8, 8),
    args=lambda rng: {"A": f32(13, 11)(rng), "B": f32(11, 19)(rng), "C": st.empty((13, 19), "f32"), "M": 13, "N": 19, "K": 11},
    expected=lambda g: {"C": g["A"].astype(np.float64) @ g["B"]}, rtol=1e-5,
)  # fmt: skip
add(
    "reduction in dynamic shared memory with a volatile tail",
    grid=3, block=128, shared=512, kernel="reduce<128>", instances=("reduce<128>",),
    args=lambda rng: {"in": rng.integers(0, 100, 1000).astype(np.int32), "out": st.empty(3, "i32"), "n": 1000},
    expected=lambda g: {"out": np.array([sum(int(g["in"][j]) for j in range(1000) if j % 768 // 256 == b) for b in range(3)])},
)  # fmt: skip
add(
    "histogram with shared and global atomics",
    grid=2, block=64, args=lambda rng: {"data": rng.integers(0, 256, 1000).astype(np.uint8), "bins": np.zeros(256, np.uint32), "n": 1000},
    expected=lambda g: {"bins": np.bincount(g["data"], minlength=256)},
)  # fmt: skip
add(
    "stencil with constant coefficients and a halo",
    grid=3, block=64, args=lambda rng: {"in": f32(150)(rng), "out": st.empty(150, "f32"), "n": 150},
    expected=lambda g: {"out": np.convolve(g["in"], [1 / 64, -0.1, 0.2, 0.5, 0.2, -0.1, 1 / 64], "same")}, rtol=1e-5,
)  # fmt: skip
add(
    "structs, references, methods and operators",
    grid=1, block=64, args=lambda rng: {"bodies": f32(50, 6)(rng), "energy": st.empty(50, "f32"), "dt": 0.5, "n": 50},
    expected=lambda g: {
        "bodies": np.hstack([g["bodies"][:, :3] + g["bodies"][:, 3:] * np.float32(0.5), g["bodies"][:, 3:]]),
        "energy": 0.5 * (g["bodies"][:, 3:] ** 2).sum(1),
    }, rtol=1e-6,
)  # fmt: skip
add(
    "a struct of several sizes, and one by value",
    grid=1, block=32,
    args=lambda rng: {
        "items": np.array([(i / 4, i, i % 2) for i in range(20)], np.dtype([("weight", "f8"), ("count", "i4"), ("tag", "u1")], align=True)),
        "out": st.empty(20, "f64"), "options": (20, 2.0),
    },
    expected=lambda g: {"out": np.where(g["items"]["tag"] == 1, g["items"]["weight"] * g["items"]["count"] * 2.0, -1)},
)  # fmt: skip
add(
    "switch with fall-through, do-while, comma, conditional increments",
    grid=1, block=64, args=lambda rng: {"x": np.arange(64, dtype=np.int32), "out": st.empty(64, "i32")},
    expected=lambda g: {"out": [_steps(int(v)) for v in g["x"]]},
)  # fmt: skip


def _steps(v: int) -> int:
    r = {0: 1, 1: 110, 2: 100, 3: 100, 4: v * 2, 5: 0 if v > 20 else 7}.get(v & 7, -1)
    k = 0
    while True:
        r += k
        k += 1
        if not k < (v & 3):
            break
    n = sum(i * (10 - i) for i in range(5))
    while True:
        above = n > 100
        n -= 1
        if not above:
            break
        if n % 7 == 0:
            continue
        r ^= n
        if r > 4000:
            break
    if r > 0:
        k += 1
        return r + k if k > 2 else r - k
    return r - k


add(
    "ping-pong of pointers and pointer increments",
    grid=1, block=64, args=lambda rng: {"a": np.arange(64, dtype=np.float32), "b": np.zeros(64, np.float32), "n": 64, "rounds": 3},
    expected=lambda g: _smooth(g["a"]),
)  # fmt: skip


def _smooth(a: Any) -> Arrays:
    rows = [a]
    for _ in range(3):
        rows.append(np.convolve(rows[-1], [1, 1, 1], "same").astype(np.float32))
    return {"a": rows[2], "b": rows[3]}


add(
    "float4 loads, sorted registers, bit casts",
    grid=1, block=32, args=lambda rng: {"in": f32(32, 4)(rng), "out": st.empty(128, "f32"), "bits": st.empty(32, "u32")},
    expected=lambda g: {
        "out": np.sort(g["in"], 1).ravel(),
        "bits": (lambda s: (s[:, 0] + s[:, 3]).view(np.uint32) ^ s[:, 1].copy().view(np.uint32))(np.sort(g["in"], 1)),
    },
)  # fmt: skip
add(
    "lambdas, templates of functors, std::min, auto",
    grid=2, block=32, kernel="map<float, Square>", instances=("map<float, Square>",),
    args=lambda rng: {"x": np.arange(50, dtype=np.float32), "y": st.empty(50, "f32"), "n": 50, "op": ()},
    expected=lambda g: {"y": np.minimum(g["x"] ** 4, 50) + 3},
)  # fmt: skip
add(
    "warp votes, matches, scans and integer arithmetic",
    grid=1, block=64, args=lambda rng: {
        "x": rng.integers(-50, 50, 64).astype(np.int32), "ballots": st.empty(2, "u32"), "scan": st.empty(64, "i32"),
        "wide": st.empty(64, "i64"),
    },
    expected=lambda g: {
        "ballots": [sum(int(v & 1) << k for k, v in enumerate(row)) for row in g["x"].reshape(2, 32)],
        "scan": g["x"].reshape(2, 32).cumsum(1).ravel(),
        "wide": [_wide(g["x"], t) for t in range(64)],
    },
)  # fmt: skip


def _wide(x: Any, t: int) -> int:
    v, row = int(x[t]), x[t // 32 * 32 : t // 32 * 32 + 32]
    odd = sum(int(one & 1) << k for k, one in enumerate(row))
    remainder = abs(v) % 5 * (-1 if v < 0 else 1)
    return int(
        v**3 - (int(np.int32(v * 1000).astype(np.int16)) >> 2) + remainder + (odd >> t % 32).bit_count() + (v - 3) % 256
    )


add(
    "cooperative groups of tiles",
    grid=2, block=64, args=lambda rng: {"x": f32(128)(rng), "out": st.empty(8, "f32")},
    expected=lambda g: {"out": g["x"].reshape(2, 64)[:, ::-1].reshape(8, 16).sum(1)}, rtol=1e-6,
)  # fmt: skip
add(
    "a sum of all blocks behind a barrier of the grid",
    grid=2, block=32, cooperative=True, args=lambda rng: {"x": np.arange(1, 65, dtype=np.int32), "out": st.empty(64, "f32")},
    expected=lambda g: {"out": g["x"].astype(np.float32) / np.float32(g["x"].sum()), "total": [g["x"].sum()]},
)  # fmt: skip
add(
    "an early return of a device function, a null pointer, an array of one parameter twice",
    grid=1, block=32, args=lambda rng: (
        lambda k: {"keys": k, "queries": k, "out": st.empty(32, "i32"), "weights": None, "n": 16}
    )(rng.permutation(32).astype(np.int32)),
    expected=lambda g: {"out": np.where(np.arange(32) < 16, np.arange(32), -1)},
)  # fmt: skip
add(
    "complex numbers of CuPy",
    grid=1, block=32, args=lambda rng: {
        "z": (f32(32)(rng) + 1j * f32(32)(rng)).astype(np.complex64), "out": np.zeros(32, np.complex64), "c": 0.6, "s": 0.8,
    },
    expected=lambda g: {"out": g["z"] * np.complex64(0.6 + 0.8j) + 1}, rtol=1e-6,
)  # fmt: skip
add(
    "a random generator in registers, macros, shifts and masks",
    grid=1, block=32, args=lambda rng: {"seed": rng.integers(0, 1 << 32, 32).astype(np.uint32), "out": st.empty(32, "u64")},
    expected=lambda g: {"out": [_mix(int(v)) for v in g["seed"]]},
)  # fmt: skip


def _mix(seed: int) -> int:
    mask = 0xFFFFFFFF
    a, b, c, d = seed, 0x736F6D65, 0x646F7261, ord("x")
    for _ in range(4):
        a = (a + b) & mask
        b = ((b << 5 | b >> 27) & mask) ^ a
        c = (c + d) & mask
        d = ((d << 8 | d >> 24) & mask) ^ c
    return (a << 32 | b) ^ (d * c)


add(
    "sums, counts and flags in one dynamic shared array",
    grid=1, block=40, shared=40 * 13,
    args=lambda rng: {"x": f32(40)(rng), "sums": st.empty(40, "f64"), "counts": st.empty(41, "i32"), "n": 30},
    expected=lambda g: _moments(g["x"].astype(np.float64), g["n"]),
)  # fmt: skip


def _moments(x: Any, n: int) -> Arrays:
    inside = np.arange(40) < n
    values = np.where(inside, x, 0.0)
    counts = np.append(inside[::-1], 6)
    return {"sums": values + values[::-1] + (np.arange(40)[::-1] & 1), "counts": counts}


add(
    "vector loads of a float pointer, bytes as words, and a struct in constant memory",
    grid=1, block=32,
    args=lambda rng: {
        "x": f32(131)(rng), "bytes": rng.integers(0, 256, 128, np.uint8), "out": st.empty(32, "f32"),
        "words": st.empty(32, "u32"), "n": 3,
    },
    expected=lambda g: _mixed(g["x"][:128], g["bytes"]),
)  # fmt: skip


def _mixed(x: Any, data: Any) -> Arrays:
    pairs = x.reshape(64, 2)[63 - np.arange(32)]
    words = data.view(np.uint32)
    local = np.stack([words, ~words], axis=1).view(np.uint8)
    added = local[np.arange(32), (np.arange(32) + 3) % 8]
    scaled = (pairs[:, 0] - pairs[:, 1]).astype(np.float64) * 0.5 + 3
    return {"out": scaled.astype(np.float32), "words": (words.byteswap() >> 2) + added}


add(
    "vectors and structs of vectors by value, and variables as other types",
    grid=1, block=32,
    args=lambda rng: {
        "scale": (0.5, 2.0, 0.0, 0.0), "tint": np.array([1, 0, 0, 2], np.uint8),
        "light": ((0.0, 0.0, 0.0, 1.5), (7, -3)), "out": st.empty(32, "u32"), "sums": st.empty(32, "f32"),
    },
    expected=lambda g: _shaded(np.arange(32, dtype=np.uint32)),
)  # fmt: skip


def _shaded(i: Any) -> Arrays:
    colours = (i * np.uint32(0x01020304)).view(np.uint8).reshape(32, 4) + np.array([1, 0, 0, 2], np.uint8)
    return {"out": colours.reshape(-1).view(np.uint32), "sums": (2.0 - 1.5 + 0.5 * i).astype(np.float32)}


add(
    "classes with bases, in registers and in memory",
    grid=1, block=32, args=lambda rng: {
        "x": np.arange(32, dtype=np.float32), "out": st.empty(32, "f32"),
        "entries": np.array([(i, -1) for i in range(32)], [("key", "i4"), ("value", "i4")]),
        "values": st.empty(32, "i32"),
    },
    expected=lambda g: {"out": (3 * g["x"] + 1) / 4 * 2, "values": 10 * np.arange(32) + 7},
)  # fmt: skip
add(
    "parameters of templates that are declared as arrays",
    grid=1, block=64, args=lambda rng: {"x": f32(16)(rng), "out": st.empty((8, 8), "f32")},
    expected=lambda g: {"out": np.outer(g["x"][8:], g["x"][:8])},
)  # fmt: skip
add(
    "coalesced groups, tiles of tiles",
    grid=1, block=64, args=lambda rng: {
        "x": rng.integers(-9, 9, 64).astype(np.int32), "out": np.zeros(64, np.int32), "count": np.zeros(1, np.int32),
        "ranks": st.empty(64, "i32"),
    },
    expected=lambda g: {
        "count": [(g["x"] > 0).sum()], "ranks": [t % 32 // 8 * 100 + 40 + t % 8 for t in range(64)],
        "out": np.pad(g["x"][g["x"] > 0], (0, (g["x"] <= 0).sum())),
    },
)  # fmt: skip
add(
    "products of 24 bits, positive differences",
    grid=1, block=32, args=lambda rng: {
        "a": (rng.integers(-(1 << 31), 1 << 31, 32) * (np.arange(32) > 0)).astype(np.int32),
        "b": rng.integers(-(1 << 31), 1 << 31, 32).astype(np.int32),
        "product": st.empty(32, "i32"), "positive": st.empty(32, "u32"), "difference": st.empty(32, "f32"),
    },
    expected=lambda g: {
        "product": [_low(_signed(int(x)) * _signed(int(y)), "i4") for x, y in zip(g["a"], g["b"], strict=True)],
        "positive": [(int(x) & 0xFFFFFF) * (int(y) & 0xFFFFFF) & 0xFFFFFFFF for x, y in zip(g["a"], g["b"], strict=True)],
        "difference": np.where(g["a"] == 0, np.nan, np.maximum(g["a"].astype("f4") - g["b"].astype("f4"), 0)),
    },
)  # fmt: skip


def _signed(x: int) -> int:
    low = x & 0xFFFFFF
    return low - (1 << 24) if low >> 23 else low


def _low(x: int, type: str) -> int:
    return int(np.array(x & 0xFFFFFFFF, np.uint32).view(type))


add(
    "quotients, absolute values and exponentials of complex numbers",
    grid=1, block=16, args=lambda rng: {
        "a": rng.random(16) + 1j * rng.random(16), "b": rng.random(16) + 1j * rng.random(16), "out": np.zeros(16, complex),
        "size": st.empty(16, "f64"), "c": 1 + rng.random(16) + 1j * rng.random(16),
    },
    expected=lambda g: (lambda z: {"out": np.exp(z) + 2 * z.conj(), "size": abs(z) + np.angle(z) + 1})(g["a"] / g["b"]),
    rtol=1e-12,
)  # fmt: skip


def add_single_thread(name: str, expected: list[int], x: list[int] | None = None) -> None:
    """Add a kernel `k(const int *x, int *out)` of one thread."""
    args = {"x": np.array(x or [0], np.int32), "out": st.empty(len(expected), "i32")}
    add(name, grid=1, block=1, kernel="k", args=lambda rng: args, expected=lambda g: {"out": expected})


add_single_thread("in-class initialisers", [11, -3])
add_single_thread("constructors and destructors of variables and members", [1, 3, 0])
add_single_thread("an average of ints", [-3, -2, 1], [-7, 2])
add_single_thread(
    "tables of letters",
    [a * 1000000 + b * 10000 + c * 100 + d - 65 for a, b, c, d in zip(b"ACGT", b"CGTA", b"GTAC", b"TACG", strict=True)],
)
add_single_thread("goto, and a switch that falls through", [11, 12], [1, 1])
add_single_thread("virtual functions, second base classes, bit fields, unions", [9, 16, 121, 0x3F800000, 0x3F], [9])
add_single_thread("function pointers, static variables, lambdas with copies, range-based for", [14, 8, 6], [7])
add_single_thread("pointers in arrays, in structs, to variables, null on one path", [6, 9, 112, -1, 43], [1, 8, 9])
add_single_thread("recursion by tail calls", [6, 120, 5, 0, 1], [1, 5, 7, 9, 12, 15, 18, 20])
add_single_thread("loops whose counter wraps", [10, 2, 4])
add_single_thread("addresses as numbers", [0, 4, 3, 1, 7], [1, 5, 7])
add_single_thread("structs as vectors, and vectors as structs", [3, 5, 7, 2], [3 << 16, 5, 6, 7])
add_single_thread("scopes of atomics with their default", [7, 7])
add(
    "inverse error functions and norms",
    grid=1, block=64,
    args=lambda rng: {"p": np.concatenate([rng.random(60), [1e-300, 1e-12, 0.5, 1 - 1e-12]]), "out": st.empty((6, 64), "f64")},
    expected=lambda g: {"out": _inverses(g["p"])}, rtol=1e-12,
)  # fmt: skip
add(
    "functions and shuffles of halves",
    grid=1, block=32, args=lambda rng: {"x": (rng.random(32) + 0.5).astype(np.float16), "out": st.empty((8, 32), "f32")},
    expected=lambda g: {"out": _halves(g["x"])},
)  # fmt: skip


DIRECTED = """0x1p+0 0x1.000002p+0 -0x1p+0 0x1.555556p-2 0x1.6a09e6p+0 0x1.99999ap-4 0x1.000002p+53 0x1p+53 0x1.0000000000001p+53
0x1.999999999999bp-4 0x1.47ae147ae147bp-7 0x1.fffffep+31"""
add(
    "directed rounding",
    grid=1, block=1, args=lambda rng: {"out": st.empty(12, "f64"), "a": 1.0, "b": np.float32(1e-10), "x": 0.1, "n": 2**53 + 1},
    expected=lambda g: {"out": np.array([float.fromhex(word) for word in DIRECTED.split()])},
)  # fmt: skip


def _inverses(p: Any) -> Any:
    quantile = np.array([NormalDist().inv_cdf(own) for own in p])
    norms = (
        np.sqrt(p * p + 5),
        1 / np.sqrt(p * p + 14),
        np.trunc(1000 * p),
        1000 * p - np.trunc(1000 * p),
        np.floor(np.log2(p)),
    )
    return np.stack([quantile, *norms])


def _halves(x: Any) -> Any:
    f = x.astype(np.float32)
    rows = np.stack([np.exp(f), np.sqrt(f), 1 / f, np.log2(f), np.floor(4 * f), np.ceil(f)])
    return np.stack([*rows.astype(np.float16).astype(np.float32), f[np.arange(32) ^ 1], np.rint(4 * f)])
