"""Elements of `empty` arrays that no thread writes: poison for the host, a remark of the check, a failure of `verify`."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import DeviceArray, Global, f32, i32
from simtbed.language.types import SCALARS, VECTORS
from simtbed.reports.cli.verify import verdict
from simtbed.reports.targets.verifier import Verifier
from simtbed.runtime.observing import observing
from simtbed.runtime.registry import EngineName
from simtbed.testing import Disagreement, verify
from simtbed.testing.comparing import Comparison

from tests.table_checks import check_each, each_row

EMULATORS: tuple[EngineName, ...] = ("numpy", "jit")
engines = pytest.mark.parametrize("engine", EMULATORS)
INTEGER = np.uint64(0xCDCDCDCDCDCDCDCD)


@dataclass(frozen=True)
class Point:
    x: f32
    n: i32


@st.kernel
def first(out: Global[i32], n: i32) -> None:
    """out[i] = i, for i < n."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        out[i] = i


@st.kernel
def first_points(out: Global[Point], n: i32) -> None:
    if st.thread.x < n:
        out[st.thread.x].x = 1.5  # type: ignore[misc]
        if st.thread.x > 0:
            out[st.thread.x].n = 7  # type: ignore[misc]


@st.kernel
def corner(out: Global[f32], m: Global[st.c64], pairs: Global[st.float2]) -> None:
    """The first three rows of a column."""
    if st.lane < 3:
        out[st.lane, 1] = 1.0
        m[st.lane, 1] = st.c64(f32(1), f32(0))
        pairs[st.lane, 1] = st.float2(f32(1), f32(0))


@st.kernel
def poisonous(out: Global[st.u8]) -> None:
    """Write the byte of the poison."""
    out[st.lane] = st.u8(205)


@st.kernel
def doubled(x: Global[i32], out: Global[i32]) -> None:
    out[st.lane] = 2 * x[st.lane]


@st.kernel
def beyond(out: Global[i32], n: i32) -> None:
    assert st.lane < n
    out[st.lane] = 1


@st.kernel
def several(
    b: Global[bool], i: Global[st.i8], d: Global[st.f64], h: Global[st.bf16], c: Global[st.c64], v: Global[st.int2]
) -> None:
    """Store to the even elements."""
    if st.lane % 2 == 0:
        b[st.lane] = False
        i[st.lane] = st.i8(1)
        d[st.lane] = 1.0
        h[st.lane] = st.bf16(1)
        c[st.lane] = st.c64(f32(1), f32(0))
        v[st.lane] = st.int2(1, 2)


def storing(type: str, value: str) -> Any:
    """Return a kernel that stores to the even elements."""
    text = f"def k(out: st.Global[st.{type}]) -> None:\n    if st.lane % 2 == 0:\n        out[st.lane] = {value}\n"
    return st.kernel(source=text.replace("st.bool", "bool"))


def remarks(kernel: Any, args: dict[str, Any], engine: EngineName = "numpy", **how: Any) -> list[str]:
    result = st.launch(kernel, grid=1, block=32, args=args, engine=engine, check="all", counters=False, **how)
    assert {remark.kind for remark in result.remarks} <= {"unwritten"}
    return [remark.message for remark in result.remarks]


@each_row([*SCALARS, *VECTORS])
def test_poison_is_nan_or_a_repeated_byte(name: str) -> None:
    type: Any = {**SCALARS, **VECTORS}[name]
    array = st.DeviceArray(st.empty(3, name)).numpy()
    scalar = type.element if name in VECTORS else type
    words = array.reshape(-1).view(scalar.dtype)
    if scalar.kind == "float":
        assert np.isnan(words.astype(float)).all()
    elif scalar.kind == "bool":
        assert words.all()
    else:
        assert set(words.view(np.uint8).tolist()) == {0xCD}


@engines
def test_the_host_gets_poison(engine: EngineName) -> None:
    types = {"b": "bool", "i": "i8", "d": "f64", "h": "bf16", "c": "c64", "v": "int2"}
    args = {name: st.empty(32, type) for name, type in types.items()}
    result = st.launch(several, grid=1, block=32, args=args, engine=engine, counters=False)
    for name, out in result.buffers.items():
        expected = st.DeviceArray(st.empty(32, types[name])).numpy()
        assert out[1::2].tobytes() == expected[1::2].tobytes()
        assert out[0].tobytes() != expected[0].tobytes() and (out[::2] == out[0]).all()


@engines
def test_structs_are_poison_by_field(engine: EngineName) -> None:
    out = st.launch(first_points, grid=1, block=32, args=[st.empty(4, Point), 3], engine=engine, counters=False).out
    assert out["x"][:3].tolist() == [1.5] * 3 and np.isnan(out["x"][3])
    assert out["n"].tolist() == [-842150451, 7, 7, -842150451]
    assert remarks(first_points, {"out": st.empty(4, Point), "n": 3}, engine) == [
        "2 of 4 elements of out were never written, first out[0]"
    ]
    zeroed = st.launch(first_points, grid=1, block=32, args=[st.zeros(4, Point), 3], engine=engine, counters=False)
    assert zeroed.out["n"].tolist() == [0, 7, 7, 0]


@engines
def test_a_device_array_holds_poison_until_a_launch_writes(engine: EngineName) -> None:
    out = DeviceArray(st.empty(6, i32))
    assert (out.numpy() == -842150451).all()
    for n in (2, 4):  # another launch may write the rest: no remark
        assert remarks(first, {"out": out, "n": n}, engine) == []
        assert out.numpy().tolist() == [*range(n), *[-842150451] * (6 - n)]


@engines
def test_remarks_of_the_check_are_exact(engine: EngineName) -> None:
    def check(row: tuple[Any, int, list[str]]) -> None:
        array, n, expected = row
        assert remarks(first, {"out": array, "n": n}, engine) == expected

    check_each(
        [
            (st.empty(64, i32), 32, ["32 of 64 elements of out were never written, first out[32]"]),
            (st.empty(32, i32), 31, ["1 of 32 elements of out was never written, first out[31]"]),
            (st.empty(3, i32), 0, ["3 of 3 elements of out were never written, first out[0]"]),
            (st.empty(32, i32), 32, []),
            (st.empty(0, i32), 0, []),
            (st.zeros(64, i32), 32, []),
            (st.full(64, 5, i32), 32, []),
            (np.zeros(64, np.int32), 32, []),
        ],
        check,
    )
    shapes = {"out": st.empty((4, 2), f32), "m": st.zeros((4, 2), "c64"), "pairs": st.empty((3, 2), "float2")}
    assert remarks(corner, shapes, engine) == [
        "5 of 8 elements of out were never written, first out[0, 0]",
        "3 of 6 elements of pairs were never written, first pairs[0, 0]",
    ]
    assert remarks(poisonous, {"out": st.empty(32, "u8")}, engine) == []
    assert remarks(first, {"out": st.empty(40, i32), "n": 20}, engine, schedule=1)[0].startswith("20 of 40")


def test_a_fault_that_ends_threads_is_the_only_finding() -> None:
    result = st.launch(
        beyond, grid=1, block=32, args=[st.empty(32, i32), 9], check="all", faults="return", engine="numpy"
    )
    assert [fault.kind for fault in result.faults] == ["assertion"] and result.remarks == []


def test_a_plain_launch_makes_no_remark() -> None:
    result = st.launch(first, grid=1, block=32, args=[st.empty(64, i32), 32], counters=False)
    assert result.remarks == [] and result.out[32] == -842150451


def test_an_array_of_a_sequence_is_an_ordinary_array() -> None:
    partial = st.launch(first, grid=1, block=32, args=[st.empty(32, i32), 16], counters=False).out
    assert remarks(doubled, {"x": partial, "out": st.empty(32, i32)}) == []


def failure(kernel: Any, engines: tuple[EngineName, ...] = ("numpy",), **args: Any) -> str:
    with pytest.raises(Disagreement) as caught:
        verify(kernel, grid=1, block=32, args=args, engines=engines, counters=False)
    return str(caught.value)


def test_verify_fails_for_unwritten_elements() -> None:
    def fails(row: tuple[Any, Any, str]) -> None:
        kernel, args, expected = row
        assert expected in failure(kernel, **args)

    half = "32 of 64 elements of out were never written, first out[32]"
    check_each(
        [
            (first, {"out": st.empty(64, i32), "n": 32}, half),
            (
                first_points,
                {"out": st.empty(4, Point), "n": 4},
                "field n of 1 of 4 elements of out was never written, first out[0].n\n",
            ),
            (storing("bool", "False"), {"out": st.empty(32, "bool")}, "16 of 32 elements"),
            (storing("bool", "True"), {"out": st.empty(32, "bool")}, "16 of 32 elements"),
            (storing("bf16", "st.bf16(1)"), {"out": st.empty(32, "bf16")}, "these elements hold nan"),
        ],
        fails,
    )
    message = failure(first, ("numpy", "jit"), out=st.empty(64, i32), n=32)
    assert half in message and "give st.zeros(shape, type)" in message


def test_verify_accepts_complete_and_zeroed_outputs() -> None:
    how: dict[str, Any] = {"grid": 1, "block": 32, "engines": ("numpy",), "counters": False}
    verify(first, args={"out": st.zeros(64, i32), "n": 32}, **how)
    verify(first, args={"out": st.empty(0, i32), "n": 0}, **how)
    assert (verify(poisonous, args={"out": st.empty(32, "u8")}, **how).out == 205).all()
    verify(storing("bool", "st.lane < 40"), args={"out": np.zeros(32, bool)}, **how)


def test_the_verify_command_reports_unwritten_elements() -> None:
    """Of outputs; a device array may be written by several launches."""
    launches: list[st.Launch] = []
    on_device = DeviceArray(st.empty(64, i32))
    with observing(Verifier(launches.append, ("numpy",), Comparison())):
        for out in (st.empty(64, i32), st.zeros(64, i32), on_device):
            st.launch(first, grid=1, block=32, args={"out": out, "n": 32}, counters=False)
    assert [[finding.message for finding in one.disagreements] for one in launches] == [
        ["32 of 64 elements of out were never written, first out[32]"], [], []
    ]  # fmt: skip
    assert verdict(launches[0].disagreements) == "UNWRITTEN" and verdict(()) == "agrees"
    assert on_device.numpy()[31:33].tolist() == [31, -842150451]
