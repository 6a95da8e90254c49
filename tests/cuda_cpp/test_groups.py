"""Cooperative groups whose lanes are data, shuffles of a variable width, memory functions, and pairs of halves."""

import numpy as np
import numpy.typing as npt
import simtbed as st

from tests.texts import texts

TEXTS = texts("cuda_cpp/groups.cu")

TEXT = TEXTS["groups"]
SOURCE = st.cuda_source(TEXT)


def test_a_group_without_a_type_is_the_block_or_lanes_of_a_warp() -> None:
    result = st.launch(SOURCE.totals, grid=1, block=64, args=(st.zeros(5, "i32"),), check="all")
    assert result.out.tolist() == [64, *(sum(range(n, n + 16)) for n in (0, 16, 32, 48))]


def bits(lanes: list[int]) -> int:
    return sum(1 << lane for lane in lanes)


def test_partitions_scans_and_reductions() -> None:
    x = np.random.default_rng(1).integers(0, 4, 32).astype(np.int32)
    result = st.launch(SOURCE.partitions, grid=1, block=32, args=(st.zeros(256, "u32"), x), check="all")
    for lane, row in enumerate(result.out.reshape(32, 8).tolist()):
        label = [one for one in range(32) if x[one] == x[lane]]
        half = [one for one in range(32) if (x[one] > 1) == (x[lane] > 1)]
        rank = label.index(lane)
        first = rank // 2 * 2
        assert row == [
            bits(label), bits(half), rank, sum(label[: rank + 1]), sum(half), lane,
            bits([n for n, one in enumerate(half) if one % 3 == 0]), bits(label[first : first + 2]),
        ]  # fmt: skip


def test_a_shuffle_of_a_variable_width() -> None:
    for width in (2, 4, 8, 16, 32):
        out: npt.NDArray[np.int32] = st.launch(
            SOURCE.shuffles, grid=1, block=32, args=(st.zeros(128, "i32"), width)
        ).out
        for lane, row in enumerate(out.reshape(32, 4).tolist()):
            first = lane // width * width
            ends = [first + 3 % width, lane - 3, lane + 3, lane ^ 9]
            inside = [True, lane - 3 >= first, lane + 3 < first + width, (lane ^ 9) < first + width]
            assert row == [end if holds else lane for end, holds in zip(ends, inside, strict=True)], (width, lane)


def test_atomics_of_either_sign_on_one_array() -> None:
    result = st.launch(SOURCE.atomics, grid=1, block=64, args=(np.array([0, 0, 0, -100], np.int32),))
    assert result.x.view(np.uint32).tolist() == [64 % 18, 138 - 64, 0x80000000 + 63, 23]


def test_memory_functions_pairs_and_placed_objects() -> None:
    args = np.ones((32, 4), np.float32), np.full((32, 2), 3, np.float16), st.zeros(128, "u8"), st.zeros(32, "i32")
    result = st.launch(SOURCE.copies, grid=1, block=32, args=args, check="all")
    assert result.x.tolist() == [[2, 1, 1, 1]] * 32 and result.pairs.tolist() == [[0, 5]] * 32
    assert (result.raw == 7).all() and result.out.tolist() == [2 * n for n in reversed(range(32))]


def test_copies_of_groups() -> None:
    x = np.arange(0x1020304, 0x1020304 + 64, dtype=np.int32)
    for n in (4, 2, 1):  # copies of 16, 8 and 4 bytes
        result = st.launch(SOURCE.copies_of_groups, grid=1, block=64, args=(x, st.zeros(64, "i32"), n), check="all")
        assert result.out[:40].tolist() == x[n : n + 40][::-1].tolist()
        assert result.out[40] == int.from_bytes(x.tobytes()[1:5], "little", signed=True)


def test_the_words_of_a_double() -> None:
    text = TEXTS["the words of a double"]
    for value in (-1.1, 3e300, 5e-324):
        args = (np.array([value, 0]), st.zeros(2, "i32"))
        result = st.launch(st.cuda_source(text).k, grid=1, block=1, args=args)
        assert result.x[1] == value and result.out.tolist() == np.array([value]).view(np.int32)[::-1].tolist()


def test_casts_with_a_rounding() -> None:
    modes = {"rn": np.rint, "rd": np.floor, "ru": np.ceil, "rz": np.trunc}
    types = {"int": "int", "uint": "unsigned", "ll": "long long", "ull": "unsigned long long"}
    casts = [(f, t, mode) for f in ("float", "double") for t in types for mode in modes]
    lines = [
        f"o[{n}] = (double)__{f}2{t}_{mode}(({f})x[0]) + (double)__{t}2{f}_rn(1);"
        for n, (f, t, mode) in enumerate(casts)
    ]
    source = st.cuda_source("__global__ void k(const double *x, double *o) {" + "\n".join(lines) + "}")
    for value in (0.5, 1.5, 2.75, 1000001.25):
        out = st.launch(source["k"], grid=1, block=1, args=(np.array([value]), st.zeros(len(casts), "f64"))).o
        assert out.tolist() == [modes[mode](value) + 1 for _, _, mode in casts]


def test_functions_of_pairs_of_halves() -> None:
    x = np.array([[1.5, -2], [1, 5]], np.float16)
    args = {"x": x, "pairs": st.zeros((6, 2), "f16"), "out": st.zeros(4, "f32"), "n": 3}
    result = st.launch(SOURCE.halves, grid=1, block=1, args=args, check="all")
    assert result.pairs.tolist() == [[3, -12], [1.5, 5], [1, 0], [-2, 1.5], [1.5, 1], [1.5, 2]]
    assert result.out.tolist() == [0, 3.5, 3.75, 2]
