"""Compile errors: all errors of a kernel in one report, each with file, line, caret, hint."""

import numpy as np
import pytest
import simtbed as st
from simtbed import CompileError, Const, Global, HostCallError, LaunchError, Real, f32, float4, i32, launch, u8
from simtbed.frontend import python_kernel


@st.kernel
def scaled(x: Global[f32], out: Global[f32], n: i32, K: Const) -> None:
    if st.lane < n:
        out[st.lane] = x[st.lane] * K


GOOD = {"x": np.ones(32, np.float32), "out": st.empty(32, "f32"), "n": 32, "K": 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.ones(32)}, r"x is Global\[f32\], the array given is float64; convert it: .astype\(np.float32\)"),
        ({"x": np.ones((1, 1, 1, 1, 4, 8), np.float32)}, r"x has 6 dimensions, a kernel takes 1 to 5; reshape it"),
        ({"x": np.ones((), np.float32)}, r"x has 0 dimensions, a kernel takes 1 to 5; reshape it"),
        ({"x": np.ones(32, np.float32)[::-1]}, r"x runs backwards, its strides are .*; give np.ascontiguousarray\(x\)"),
        (
            {"x": np.ones(32, np.dtype("f4, u1"))["f0"]},
            r"the elements of x are not aligned to 4 bytes; give x.copy\(\)",
        ),
        ({"out": st.empty(32, "i32")}, r"out is Global\[f32\], not i32"),
        ({"n": 2**31}, r"n is i32, which holds -2,147,483,648 to 2,147,483,647: 2147483648 does not fit"),
        ({"n": 1.5}, r"n is i32: a whole number is expected, not 1.5"),
        ({"n": np.ones(3)}, r"n is i32: a whole number is expected"),
        ({"m": 3}, r"scaled has no parameter m; it has x, out, n, K"),
    ],
)
def test_arguments_are_checked(change: dict[str, object], message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        launch(scaled, grid=1, block=32, args=GOOD | change)


@pytest.mark.parametrize(
    ("launching", "message"),
    [
        ({"block": 2048}, "block is 2,048: the H200 takes at most 1,024"),
        ({"block": 0}, "block is 0: it is at least 1"),
        ({"grid": (1, 2, 3, 4)}, "grid is one to three positive integers"),
        ({"types": {"Real": "i32"}}, "Real is f32 or f64, not i32"),
        ({"types": {"Index": "i32"}}, "types is .*, not .*Index"),
        ({"shared": 1 << 20}, "shared is 1,048,576: a block of the H200 takes at most 232,448"),
        ({"engine": "opencl"}, "no engine is called opencl"),
    ],
)
def test_launches_are_checked(launching: dict[str, object], message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        launch(scaled, **({"grid": 1, "block": 32, "args": GOOD} | launching))  # type: ignore[arg-type]


def test_missing_arguments_are_named() -> None:
    with pytest.raises(LaunchError, match="scaled needs out, n"):
        launch(scaled, grid=1, block=32, args={"x": GOOD["x"], "K": 1})


def test_a_misspelt_argument_is_named_with_the_missing_one() -> None:
    with pytest.raises(LaunchError, match=r"^scaled needs out, and has no parameter ou$"):
        launch(scaled, grid=1, block=32, args={**{k: v for k, v in GOOD.items() if k != "out"}, "ou": GOOD["out"]})


def test_an_array_that_the_kernel_does_not_write_is_no_attribute() -> None:
    result = launch(scaled, grid=1, block=32, args=GOOD)
    with pytest.raises(AttributeError, match=r"^a result has no outt: the kernel does not write outt; it writes out$"):
        _ = result.outt
    assert not hasattr(result, "_anything")


def test_errors_of_parameters_do_not_hide_words_of_the_body() -> None:
    def untyped(x, n: int, out: st.Global[st.f32], K: st.Const) -> None:  # type: ignore[no-untyped-def]
        i = st.threadIdx.x + undefined  # type: ignore[name-defined] # noqa: F821
        out[i, 0] = x[i] * K

    with pytest.raises(CompileError) as caught:
        launch(st.kernel(untyped), grid=1, block=32, args={})
    assert [d.message for d in caught.value.diagnostics] == [
        "x needs a type", "int is not a type of the language", "threadIdx is a word of CUDA C++", "undefined is not defined",
    ]  # fmt: skip


class Settings:
    SCALE = 2.5


@st.kernel
def of_a_class(x: st.Global[st.f32]) -> None:
    x[0] = x[0] * Settings.SCALE


def test_a_constant_of_a_class_is_refused_with_what_to_write() -> None:
    with pytest.raises(CompileError, match=r"write a constant of the module: SCALE = Settings\.SCALE"):
        launch(of_a_class, grid=1, block=32, args={"x": np.ones(1, np.float32)})


def test_arguments_in_the_order_of_the_parameters() -> None:
    by_name = launch(scaled, grid=1, block=32, args=GOOD)
    for args in ((*GOOD.values(),), [*GOOD.values()]):
        assert (launch(scaled, grid=1, block=32, args=args).out == by_name.out).all()
    on_device = st.DeviceArray(np.zeros(32, np.float32))
    launch(scaled, grid=1, block=32, args=(GOOD["x"], on_device, 32, 2))
    assert (on_device.numpy() == by_name.out).all()
    with pytest.raises(LaunchError, match="scaled needs n, K: args are 2"):
        launch(scaled, grid=1, block=32, args=(GOOD["x"], GOOD["out"]))
    with pytest.raises(LaunchError, match="scaled takes x, out, n, K: args are 5"):
        launch(scaled, grid=1, block=32, args=(*GOOD.values(), 3))
    with pytest.raises(
        LaunchError, match="args is a mapping of parameters' names to values, or a tuple of these, not 3"
    ):
        launch(scaled, grid=1, block=32, args=3)  # type: ignore[arg-type]


@st.kernel
def real_kernel(x: Global[Real], y: Global[Real], out: Global[Real]) -> None:
    out[st.lane] = x[st.lane] + y[st.lane]


def test_real_must_agree() -> None:
    args = {"x": np.ones(32, np.float32), "y": np.ones(32), "out": st.empty(32, "f32")}
    with pytest.raises(LaunchError, match="real_kernel: Real is f32, but y is f64"):
        launch(real_kernel, grid=1, block=32, args=args)
    args["y"] = np.ones(32, np.int32)
    with pytest.raises(LaunchError, match=r"y is Global\[Real\], f32 or f64, not i32"):
        launch(real_kernel, grid=1, block=32, args=args)


def test_words_refuse_the_host() -> None:
    for use in (
        st.sync,
        lambda: st.shuffle_up(1, 1),
        lambda: st.thread.x,
        lambda: f32(1),
        lambda: float4(1, 2, 3, 4),
        lambda: int(st.lane),
    ):
        with pytest.raises(HostCallError, match="belongs to the kernel language"):
            use()
    with pytest.raises(HostCallError, match=r"f32\(\) belongs .*an argument of a launch is a plain number"):
        f32(0.9)
    with pytest.raises(HostCallError, match=r"use simtbed\.launch"):
        scaled(1)


FACTOR = 3


@st.kernel
def uses_a_global(out: Global[i32]) -> None:
    out[st.lane] = FACTOR


def test_a_changed_global_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert launch(uses_a_global, grid=1, block=32, args={"out": st.empty(32, "i32")}).out[0] == 3
    monkeypatch.setitem(globals(), "FACTOR", 4)
    assert launch(uses_a_global, grid=1, block=32, args={"out": st.empty(32, "i32")}).out[0] == 4


def test_arguments_are_not_modified() -> None:
    arguments = np.zeros(32, np.int32)
    result = launch(uses_a_global, grid=1, block=32, args={"out": arguments})
    assert arguments.sum() == 0 and result.out.sum() == 96


def test_a_kernel_without_a_file_says_so() -> None:
    space: dict[str, object] = {"st": st, "Global": Global, "u8": u8}
    exec("@st.kernel\ndef k(x: Global[u8]) -> None:\n    x[0] = 1\n", space)
    with pytest.raises(CompileError, match=r"give its text: k = st\.kernel\(source=text\)"):
        launch(space["k"], grid=1, block=32, args={"x": st.empty(1, "u8")})  # type: ignore[arg-type]


@st.kernel
def of_any_size(out: Global[f32], SIZE: Const) -> None:
    tile = st.shared(f32, SIZE)
    tile[st.thread.x] = 1.0
    out[st.thread.x] = tile[st.thread.x]


def test_a_refused_launch_does_not_spoil_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a kernel without a digest, whose names are checked through its programs."""
    monkeypatch.setattr(python_kernel, "digest", lambda kernel: None)

    def ones(size: int) -> float:
        result = launch(of_any_size, grid=1, block=32, args={"out": st.empty(32, f32), "SIZE": size})
        return float(result.out.sum())

    with pytest.raises(CompileError, match="at least one element"):
        ones(-1)
    assert ones(32) == 32
