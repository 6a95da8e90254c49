"""Wrong arguments: every public entry point refuses them with one sentence that names what is wrong."""

import math
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
import simtbed as st
from hypothesis import strategies
from simtbed import Const, Global, LaunchError, SimtbedError, devices, f32, float4
from simtbed.language import types
from simtbed.machine.device import Device, Rates
from simtbed.testing.conformance import cases

SCALARS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64")


@st.kernel
def every(  # noqa: PLR0913 - a kernel
    x: Global[f32],
    v: Global[float4],
    out: Global[f32],
    flag: bool,
    n_i8: st.i8,
    n_u8: st.u8,
    n_i16: st.i16,
    n_u16: st.u16,
    n_i32: st.i32,
    n_u32: st.u32,
    n_i64: st.i64,
    n_u64: st.u64,
    n_f32: st.f32,
    n_f64: st.f64,
    K: Const,
) -> None:
    """A parameter of each kind."""
    if flag:
        out[0] = x[0] + v[0].x + n_f32 + f32(n_i32) + f32(n_f64)
        out[1] = f32(n_i8) + f32(n_u8) + f32(n_i16) + f32(n_u16) + f32(n_u32) + f32(n_i64) + f32(n_u64)


@st.kernel
def real(y: Global[st.Real], out: Global[st.Real]) -> None:
    out[0] = y[0]


RIGHT: dict[str, Any] = {
    "x": np.ones(4, np.float32), "v": np.ones((2, 4), np.float32), "out": st.zeros(2, "f32"), "flag": True, "K": (1, 2.0),
    **{f"n_{type}": 3 for type in SCALARS},
}  # fmt: skip
NOT_A_NUMBER: list[Any] = [
    None, "1", b"1", [1], (1,), {}, {1}, object(), int, print, 1j, np.array("1"), np.array([1]), np.datetime64(1, "s"), np.str_("1"), ...,
]  # fmt: skip
NOT_WHOLE: list[Any] = [*NOT_A_NUMBER, 1.0, 1.5, math.nan, math.inf, np.float32(1), True, np.True_]
HUGE = [1 << 63, 10**5000, -(10**5000)]


def _wrong_arguments() -> Iterable[tuple[str, Any]]:
    arrays = [
        *(w for w in NOT_A_NUMBER if not isinstance(w, np.ndarray)), 1, 1.5, True, np.float32(1), np.array(1, np.float32),
        np.ones(4), np.ones(4, np.int32), np.ones(4, ">f4"), np.ones(4, object), np.ones(4, bool), np.ones(4, np.float16),
        np.ones(4, complex), np.array(["a"]), np.ones(0, np.float64), np.ma.ones(4, np.float32), np.ones(4, "f4,f4"),
        st.empty(4, "i32"), st.zeros(4, "float2"), st.DeviceArray(np.ones(4)), memoryview(b"abcd"), range(4),
    ]  # fmt: skip
    yield from (("x", one) for one in arrays)
    vectors = [np.ones(8, np.float32), np.ones((2, 3), np.float32), np.ones((4, 4)), st.empty(4, "f32"), None, [], 1]
    yield from (("v", one) for one in vectors)
    yield from (("flag", one) for one in [*NOT_A_NUMBER, 0, 1, 1.0, np.int8(1)])
    for type in SCALARS:
        bad = [*NOT_A_NUMBER, True, np.True_]
        if type[0] == "f":
            bad += [10**400, -(10**400), np.longdouble(2)]
        else:
            low, high = (
                np.iinfo(np.dtype(types.SCALARS[type].dtype)).min,
                np.iinfo(np.dtype(types.SCALARS[type].dtype)).max,
            )
            bad += [1.0, math.nan, math.inf, np.float64(1), int(low) - 1, int(high) + 1, *HUGE[1:]]
        yield from ((f"n_{type}", one) for one in bad)
    yield from (("n_f32", one) for one in [1e300, -1e300, np.float64(1e39), 10**39])
    deep: Any = ()
    for _ in range(5000):
        deep = (deep,)
    consts: list[Any] = [None, b"1", [1], {}, {1}, object(), np.ones(3), (1, [2]), (None,), deep, (1, b"a")]
    consts += [(0,) * 100_000, 1 << 64, 10**5000]
    yield from (("K", one) for one in consts)


SIZES: list[Any] = [w for w in NOT_WHOLE if w not in ([1], (1,))]  # one number in a tuple is a size
SIZES += [0, -1, *HUGE, (), [], (1, 2, 3, 4), (0,), "111", range(0)]
SIZES += [(1, size) for size in (0, -1, 1.0, "2", None, True, (1,))]
LAUNCHING: dict[str, list[Any]] = {
    "grid": [*SIZES, 1 << 31, (1 << 31, 1), (1, 65536), (1, 70000, 1), (1, 1, 65536), (1, 1 << 40)],
    "block": [*SIZES, 1025, (1, 1025), (1, 1, 65), (1, 1, 128), (32, 33), (16, 16, 5), 1 << 31],
    "args": [None, 1, "x", [], [("x", 1)], {1: 2}, object()],
    "engine": [None, 1, "", "opencl", [], {}, b"jit", object()],
    "device": [None, 1, "", "B300", "h2000", b"H200", [], object(), Device, devices],
    "shared": [*NOT_WHOLE, -1, 232_449, *HUGE],
    "counters": [None, 0, 1, "yes", [], np.ones(2), object()],
    "detail": [None, 0, 1, "yes", []],
    "step_limit": [*(w for w in NOT_WHOLE if w is not None), 0, -1, (1 << 32) + 1, *HUGE],
    "types": [1, "f32", [], {"Index": "f32"}, {1: 2}, {"Real": "f16"}, {"Real": None}, {"Real": []}, {"Real": "i32"}],
    "check": [None, 1, True, "everything", "races,", ["races", 3], [None], 1.5, "race", [[]]],
    "schedule": [*(w for w in NOT_WHOLE if w is not None), -1, *HUGE],
    "faults": [None, 1, True, "ignore", [], {}],
}  # fmt: skip
LAUNCHING["check"].remove("races,")  # an empty word is none


def launch(**how: Any) -> Any:
    return st.launch(every, **{"grid": 1, "block": 1, "args": RIGHT, "engine": "jit", **how})


def launch_together(**how: Any) -> Any:
    alone: dict[str, Any] = {name: how.pop(name) for name in ("args", "grid") if name in how}
    own: dict[str, Any] = {"grid": 1, "args": RIGHT, **alone}
    return list(st.launch_concurrent([(every, own)], **{"block": 1, "engine": "jit", **how}))


ENTRIES: dict[str, Callable[..., Any]] = {
    "jit": launch, "numpy": partial(launch, engine="numpy"), "cuda": partial(launch, engine="cuda"), "together": launch_together,
}  # fmt: skip


def refused(call: Callable[[], Any], name: str, most: int = 1) -> str:
    """The sentences, one to `most`, with which a call is refused, one a line; they name what is wrong."""
    with pytest.raises(SimtbedError) as caught:
        call()
    message = str(caught.value)
    lines = message.split("\n")
    assert len(lines) <= most, lines
    assert name in message
    assert all(10 < len(line) < 700 for line in lines), lines
    return message


def each_refused(values: Iterable[Any], call: Callable[[Any], Any], name: str) -> None:
    for value in values:
        refused(partial(call, value), name)


ARGUMENTS = list(_wrong_arguments())
CALLS = [(name, value) for name, values in LAUNCHING.items() for value in values]


def test_the_tables_are_long() -> None:
    assert len(ARGUMENTS) + len(CALLS) > 400


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("name", sorted({name for name, _ in ARGUMENTS}))
def test_wrong_arguments_of_a_kernel(entry: str, name: str) -> None:
    values = [value for one, value in ARGUMENTS if one == name]
    each_refused(values, lambda value: ENTRIES[entry](args={**RIGHT, name: value}), name)


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("name", [name for name in LAUNCHING if name not in ("engine", "faults")])
def test_wrong_arguments_of_a_launch(entry: str, name: str) -> None:
    word = {"types": "Real"}.get(name, name)
    each_refused(LAUNCHING[name], lambda value: ENTRIES[entry](**{name: value}), word)


def test_wrong_engines_and_failures() -> None:
    each_refused(LAUNCHING["engine"], lambda engine: launch(engine=engine), "no engine is called")
    each_refused(LAUNCHING["engine"], lambda engine: launch_together(engine=engine), "no engine is called")
    each_refused(LAUNCHING["faults"], lambda faults: launch(faults=faults), "faults")


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"grid": (1, 70000, 1)}, "grid[1] is 70,000: the H200 takes at most 65,535"),
        ({"grid": 1 << 31}, "grid is 2,147,483,648: the H200 takes at most 2,147,483,647"),
        ({"block": (1, 1, 128)}, "block[2] is 128: the H200 takes at most 64"),
        ({"block": (32, 64)}, "block is 2,048 threads: the H200 takes at most 1,024"),
        ({"grid": 1.0}, "grid is one to three positive integers, not 1.0"),
        ({"grid": 65536, "device": "m2090"}, "grid is 65,536: the M2090 takes at most 65,535"),
        ({"shared": -1}, "shared is -1: it is at least 0"),
        ({"args": {**RIGHT, "n_f32": 1e300}}, "n_f32 is f32, which holds up to 3.4028235e+38: 1e+300 does not fit"),
        ({"args": {**RIGHT, "n_u8": 256}}, "n_u8 is u8, which holds 0 to 255: 256 does not fit"),
        ({"args": {**RIGHT, "x": [1.0]}}, "x is a NumPy array, np.array(x, np.float32) makes one; not [1.0]"),
    ],
)
def test_the_sentences(how: dict[str, Any], sentence: str) -> None:
    assert refused(lambda: launch(**how), "") == sentence


def test_a_refused_array_and_its_dimensions_are_one_error() -> None:
    sentence, place, *quoted = refused(lambda: launch(args={**RIGHT, "x": np.ones((0, 0, 0))}), "", 5).split("\n")
    assert sentence == "x is Global[f32], the array given is float64; convert it: .astype(np.float32)"
    assert place.endswith("x has 3 dimensions: x[0] is a row of it, not an element")
    assert quoted[-1].strip() == "write x[i, j, k], or give the kernel x.ravel()"


def test_arrays_that_share_memory() -> None:
    both = np.ones(8, np.float32)

    @st.kernel
    def copy(x: Global[f32], out: Global[f32], y: Global[f32]) -> None:
        out[0] = x[0] + y[0]

    how: Any = {"grid": 1, "block": 1}
    refused(lambda: st.launch(copy, args={"x": both, "out": both[4:], "y": both[:1]}, **how), "out")
    assert st.launch(copy, args={"x": both, "out": both[:0:-1].copy(), "y": both}, **how).out[0] == 2  # both are read


@pytest.mark.parametrize("name", ["h200", "H200", "V100"])
def test_devices_by_name(name: str) -> None:
    assert launch(device=name).request.device == devices.find(name)


def test_a_device_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('like = "V100"\nname = "mine"\n')
    assert launch(device=str(tmp_path / "mine.toml")).request.device.name == "mine"


# ------------------------------------------------------------------ the edges of what is right
def test_the_largest_and_smallest_numbers_are_taken() -> None:
    for type in SCALARS:
        dtype = np.dtype(types.SCALARS[type].dtype)
        if type[0] == "f":
            edges: list[Any] = [math.inf, -math.inf, math.nan, float(np.finfo(dtype).max), 7, np.float16(1)]
        else:
            edges = [int(np.iinfo(dtype).min), int(np.iinfo(dtype).max), np.int8(3), np.uint64(3)]
        for edge in edges:
            launch(args={**RIGHT, f"n_{type}": edge})
    launch(args={**RIGHT, "flag": np.True_})


def test_the_largest_launches_are_taken() -> None:
    for block in (1024, (1, 1024), (16, 1, 64), [32, 32], np.int64(64)):
        launch(block=block)
    launch(block=1, shared=232_448)
    launch(grid=(1, 1, 7), check=["races", "bounds"], types={"Real": f32}, schedule=0, step_limit=1, counters=np.True_)


# ------------------------------------------------------------------ random calls
@strategies.composite
def calls(draw: strategies.DrawFn) -> tuple[dict[str, Any], list[str]]:
    """Arguments of a launch, and those of them that are wrong."""
    how: dict[str, Any] = {"args": dict(RIGHT)}
    wrong = draw(strategies.lists(strategies.sampled_from(CALLS), max_size=2))
    inner = draw(strategies.lists(strategies.sampled_from(ARGUMENTS), max_size=2))
    how["args"].update(inner)
    how.update(wrong)
    if draw(strategies.booleans()):
        how.setdefault("grid", draw(strategies.sampled_from([1, (2,), (1, 2), (1, 1, 2), np.int16(2)])))
    return how, [name for name, _ in (*wrong, *inner)]


@pytest.mark.slow
@hypothesis.given(calls())
@hypothesis.settings(max_examples=40, deadline=None)
def test_random_calls(call: tuple[dict[str, Any], list[str]]) -> None:
    how, wrong = call
    if wrong:
        refused(lambda: launch(**how), "", most=len(set(wrong)))
    else:
        launch(**how)


# ------------------------------------------------------------------ other entry points
@pytest.mark.parametrize("make", [st.empty, st.zeros])
def test_wrong_new_arrays(make: Callable[..., Any]) -> None:
    sizes = [w for w in NOT_WHOLE if not isinstance(w, tuple | list)]  # one number in a tuple or a list is a size
    sizes += [-1, *HUGE, (), [], (1, 2, 3, 4, 5, 6), [1] * 6, (1, -1), [1, -1], (1.0,), [1.0], (None,), [None], [[1]]]
    each_refused(sizes, lambda shape: make(shape, "f32"), "shape")
    types: list[Any] = [None, "", "float", int, float, np.float32(1), 1, [], Global, object()]
    types += [np.generic, np.number, np.floating, np.character, np.void, np.object_, np.dtype(">f4"), np.dtype("f4,f4")]
    each_refused(types, lambda type: make(1, type), "is not a type")
    refused(lambda: launch(args={**RIGHT, "out": make(1 << 60, "f32")}), "memory")


def test_wrong_device_arrays() -> None:
    contents: list[Any] = [None, 1, "x", [1.0], {}, f32, np.array(1.0), np.array(["a"])]
    contents += [np.ones(3, object), np.ones(3, ">i4")]
    each_refused(contents, st.DeviceArray, "contents")


def test_wrong_gpus() -> None:
    each_refused([*NOT_WHOLE, -1, *HUGE], lambda number: st.on_gpu(number).__enter__(), "number")
    each_refused([*NOT_WHOLE, -1, *HUGE], lambda number: list(st.map_over_gpus([1], print, number)), "gpus")


def test_wrong_functions() -> None:
    functions: list[Any] = [1, "x", print, len, int, object(), every, st.f32, [], b"x"]
    each_refused(functions, st.kernel, "@st.kernel")
    each_refused(functions, st.device, "@st.device")
    kernels = [None, 1, print, "every", every.function, object()]
    each_refused(kernels, lambda kernel: st.launch(kernel, grid=1, block=1, args={}), "is not a kernel")


def test_wrong_launches_together() -> None:
    launches: list[Any] = [None, 1, [1], [(every,)], [(every, None)], ["ab"], [(every, {}, {})]]
    each_refused(launches, lambda given: list(st.launch_concurrent(given)), "launches")


def test_wrong_engines_of_the_suite() -> None:
    each_refused(["", "opencl"], cases, "no engine is called")


def test_wrong_questions_to_a_result() -> None:
    result = launch()
    names: list[Any] = ["x", "", 1, None, [], ()]
    each_refused(names, result.__getitem__, "the kernel does not write")
    each_refused(names, result.counters.total, "no counter is called")
    texts: list[Any] = [None, 1, [], "no such line"]
    each_refused(texts, result.counters.at, "line")
    refused(lambda: launch(counters=False).counters, "counters")


# ------------------------------------------------------------------ devices
ODD: list[Any] = [None, -1, "x", 1.5, math.nan, math.inf, True, 1 << 60, object()]
ODD += [[], {}, (), (1,), (-1, 0), ("a", "b", "c")]
FITTING: dict[str, list[Any]] = {
    **{name: ["x"] for name in ("name", "dated", "source")},
    **{name: [True] for name in ("shared_load_merges", "loads_cached")},
}


@pytest.mark.parametrize("name", [f.name for f in fields(Device)])
def test_a_device_is_refused_where_it_is_made(name: str) -> None:
    fits: list[Any] = FITTING.get(name, [1.5] if name == "bandwidth" else [(), (1,)])
    odd = [value for value in ODD if not any(type(value) is type(one) and value == one for one in fits)]
    each_refused(odd, lambda value: replace(devices.H200, **{name: value}), name)


@pytest.mark.parametrize("name", [f.name for f in fields(Rates)])
def test_rates_are_refused_where_they_are_made(name: str) -> None:
    each_refused(ODD, lambda value: replace(devices.H200.rates, **{name: value}), name)


@pytest.mark.parametrize(
    "value", ["1e400", "nan", "-1", '"x"', "[]", "{}", "1e99", "0", "2024-01-01", "[[1]]", "true", "1073741824"]
)
def test_a_device_file_is_refused(value: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    names = ("sms", "banks", "bank_width", "sector", "threads_per_block", "warps_per_sm", "compute_capability", "rates")
    for name in names:
        if (name, value) in {("sms", "1073741824"), ("warps_per_sm", "1073741824"), ("rates", "{}")}:
            continue  # large, and no mistake; an empty table changes nothing
        path.write_text(f'like = "H200"\n{name} = {value}\n')
        refused(lambda: devices.load(path), name)


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"like = 3", b"[" * 5000, b"\xff", b"like = 'like.toml'", b"x." * 3000 + b"y=1"]
)
def test_a_file_that_is_no_device_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(data)
    refused(lambda: devices.load(path), "mine.toml")


def test_a_path_that_is_none() -> None:
    for path in [None, 1, b"x", [], object()]:
        with pytest.raises(LaunchError, match="path"):
            devices.load(path)  # type: ignore[arg-type]
    with pytest.raises(LaunchError):
        devices.load("a\0b.toml")
