"""Lines of launch records: what is written is read again, and other content is refused."""

import json
import sys
import typing
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import IntEnum
from functools import reduce
from pathlib import Path, PurePosixPath
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
import simtbed as st
from hypothesis import given
from ml_dtypes import bfloat16
from simtbed import Const, Global, f32, i32
from simtbed.ir import nodes
from simtbed.ir.nodes import HostCall, HostFunction, Op, Program
from simtbed.language.types import F32
from simtbed.machine.device import H200
from simtbed.model.outputs import Reference
from simtbed.model.sweeps import Axes, RepeatableLaunch, plan
from simtbed.own_code import CubinCode, OwnArgument, Ptx, PtxText
from simtbed.profiler.launch import Launch
from simtbed.reports.whatif.planner import Planned
from simtbed.runtime import plain_data
from simtbed.runtime.common_memory import copies_of
from simtbed.runtime.engine import Request
from simtbed.runtime.observing import observing
from simtbed.runtime.plain_data import Decoder, Encoder
from simtbed.runtime.prepared import prepare
from simtbed.runtime.recording import Recorder, plain_value
from simtbed.runtime.request import prepare_request
from simtbed.runtime.specialisation import Specialisation
from simtbed.runtime.tolerance import Tolerance
from simtbed.sanitizer import checkers
from simtbed.span import Span
from simtbed.testing.conformance.feature import FEATURES
from simtbed.testing.source_text import kernel_from_source
from simtbed.testing.strategies import Generated, kernels

from tests.table_checks import check_each


@st.kernel
def scale(x: Global[f32], out: Global[f32], n: i32, N: Const = 4) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        s = f32(0)
        for k in range(N):
            s += x[i] * f32(k)
        out[i] = s


@pytest.fixture(scope="module")
def launches() -> list[st.Launch]:
    recorded: list[st.Launch] = []
    with observing(
        Recorder(recorded.append, "numpy", check=frozenset({"races"}), detail=True, compiled=True, keep="arguments")
    ):
        for _ in range(2):
            st.launch(
                scale, grid=2, block=64, args={"x": np.ones(128, np.float32), "out": st.empty(128, f32), "n": 100}
            )
    return recorded


def again(*values: Any) -> list[Any]:
    encoder = Encoder()
    lines = [line.encode() for value in values for line in encoder.lines(value)]
    return list(Decoder().values(lines, Any))


def leaves(value: Any) -> Iterator[Any]:
    """Yield the numbers and texts in a value, in the order of fields."""
    if isinstance(value, np.ndarray | np.generic):
        yield value.dtype, value.shape, value.tobytes()
    elif isinstance(value, HostFunction):
        yield None  # not recorded
    elif is_dataclass(value) and not isinstance(value, type):
        yield type(value)
        for member in fields(value):
            yield from leaves(getattr(value, member.name))
    elif isinstance(value, dict):
        yield from leaves([*value.items()])
    elif isinstance(value, tuple | list):
        for item in value:
            yield from leaves(item)
    else:
        yield getattr(value, "program", value) if not isinstance(value, frozenset) else sorted(value)


def test_a_launch_is_read_again(launches: list[st.Launch]) -> None:
    first, second = again(*launches)
    for read, written in zip((first, second), launches, strict=True):
        assert isinstance(read.request.program, Program)
        assert list(leaves(read.request.program)) == list(leaves(written.request.program))
        bare = [replace(launch, request=None) for launch in (read, written)]
        assert list(leaves(bare[0])) == list(leaves(bare[1]))
        assert read.request.arguments["x"].tolist() == [1.0] * 128
    assert first.kernel is second.kernel and first.device is second.device
    assert first.request.specialisation is second.request.specialisation


def test_values_are_read_again() -> None:
    struct = np.zeros(3, np.dtype([("a", np.int8), ("b", np.float32, (2,))], align=True))
    values = [
        np.arange(6, dtype=np.int64).reshape(2, 3)[:, ::2], np.array(3, ">i4"), struct, np.ones(2, bfloat16), np.float32(0.1),
        np.dtype(np.complex64),
    ]  # fmt: skip
    for read, written in zip(again(*values), values, strict=True):
        assert type(read) is type(written) and [*leaves(read)] == [*leaves(written)]
    plain = [None, True, -(1 << 70), 0.1, float("inf"), "\udc80\n", (1, [2, {}], {"a": (), 3: frozenset({"b"})})]
    assert again(*plain) == plain
    assert again(F32)[0] is F32 and again((H200, H200))[0][0] == H200


def test_own_code_is_read_again_without_functions(launches: list[st.Launch]) -> None:
    program = launches[0].request.program
    argument = OwnArgument(4, ((0, "n"),), terms=(("n", 2),))
    cubin = CubinCode(
        kernel="k", arguments=(argument,), constants=(("table", b"\0a"),), cubin=b"\x7fELF", architecture="sm_90"
    )
    ptx = PtxText(kernel="k", arguments=(argument,), text=lambda arch: Ptx(arch, Path()))
    written = [Specialisation.of_program(program, frozenset(), own) for own in (cubin, ptx, None)]
    assert [read.own_code for read in again(*written)] == [cubin, None, None]


def test_arrays_share_memory_after_reading() -> None:
    memory = np.arange(10, dtype=np.float32)
    arrays = copies_of({"a": memory[:8], "b": memory[2:].view(np.int32), "c": memory[:0]}, {"a", "b"})
    (read,) = again(arrays)
    assert [*leaves(read)] == [*leaves(arrays)] and read["a"].ctypes.data + 8 == read["b"].ctypes.data
    read["a"][2] = -1
    assert read["b"].view(np.float32)[0] == -1
    launch = RepeatableLaunch(
        scale,
        (1, 1, 1),
        (8, 1, 1),
        {**copies_of({"x": memory[:8], "out": memory[2:]}, {"x"}), "n": 8},
        overlapping=True,
    )
    (task,) = again(plan(launch, Axes(), [H200])[0])
    assert np.shares_memory(task.request.arguments["x"], task.request.arguments["out"])


class Level(IntEnum):
    HIGH = 3


class Metres(float):
    """A float of another class."""


@dataclass(frozen=True)
class Settings:
    level: Level
    extra: Any


def test_constants_are_recorded_as_plain_values() -> None:
    constants = {
        3: Level.HIGH, 2.5: Metres(2.5), "a": np.str_("a"), (3, None): Settings(Level.HIGH, None), "(1+2j)": 1 + 2j,
        (3, "PurePosixPath('a')"): Settings(Level.HIGH, PurePosixPath("a")), 7: np.array(7), True: np.bool_(True),
    }  # fmt: skip
    for expected, constant in constants.items():
        plain = plain_value(constant)
        assert again(plain) == [expected] and type(plain) is type(expected)


def test_every_class_of_a_plan_is_read_again(launches: list[st.Launch]) -> None:
    reference = Reference(launches[0].request, "refused")
    read, same = again((reference, reference), Tolerance(ulp=3))
    assert read[0] is read[1] and read[0].refused == "refused" and read[0].request.grid == launches[0].grid
    assert same == Tolerance(ulp=3)


def _classes(hint: Any, classes: set[type]) -> set[type]:
    """Return the dataclasses and named tuples in the fields of a class, and in those of their fields."""
    for one in (hint, *get_args(hint)):
        if isinstance(one, type) and one not in classes and (is_dataclass(one) or hasattr(one, "_fields")):
            classes.add(one)
            for field_hint in get_type_hints(one).values():
                _classes(field_hint, classes)
        elif one is not hint:
            _classes(one, classes)
    return classes


def test_every_class_of_a_launch_may_be_in_a_line() -> None:
    inside = set().union(*(_classes(cls, set()) for cls in (Launch, Request, Planned, Axes)))
    assert {"Span", "Site", "Device", "SweepTask"} <= {cls.__name__ for cls in inside}
    assert {
        cls
        for cls in inside
        if plain_data._class(f"{cls.__module__}.{cls.__name__}".removeprefix("simtbed.")) is not cls
    } == set()


def check_program(program: Program | HostCall) -> set[Any]:
    """Compare a program with the one that is read from its lines. Return the leaves of its nodes."""
    (read,) = again(program)
    assert list(leaves(read)) == list(leaves(program))
    return set(leaves(program))


@st.kernel
def printing(out: Global[i32]) -> None:
    print("thread", st.thread.x)
    out[st.thread.x] = 0


def test_device_functions_with_several_results_are_read_again() -> None:
    names = {"tuples_of_device_functions", "complex_numbers_of_device_functions", "structs"}
    chosen = [one for one in FEATURES if one.name in names]
    assert len(chosen) == len(names)
    check_each(chosen, lambda one: check_program(one.launch(prepare_request).program), lambda one: one.name)


@pytest.mark.slow
def test_every_node_is_read_again() -> None:
    """The features contain the nodes before and after the passes. Only the debugger's programs have calls of Python, and only
    CUDA C++ has textures."""
    kinds = check_program(HostCall("breakpoint()", Span("a.py", 1, 1, 1, 2), site=3))
    requests = {one.name: one.launch(prepare_request) for one in FEATURES}
    requests["printing"] = prepare_request(printing, grid=1, block=32, args={"out": st.empty(32, i32)})
    fetching = st.cuda_source("__global__ void k(cudaTextureObject_t t, float *out) { *out = tex1D<float>(t, 0.5f); }")[
        "k"
    ]
    texture = st.Texture(np.ones(4, np.float32))
    requests["fetching"] = prepare_request(fetching, grid=1, block=1, args={"t": texture, "out": st.empty(1, st.f32)})

    def check(name: str) -> None:
        program = requests[name].program
        for prepared in (program, prepare(program, checkers.parse("all")).program):
            kinds.update(check_program(prepared))

    check_each(requests, check)
    assert {*get_args(nodes.Expr), *get_args(nodes.Effect), *get_args(nodes.Stmt)} <= kinds


@pytest.mark.slow
@given(case=kernels())
def test_random_kernels_are_read_again(case: Generated, tmp_path_factory: pytest.TempPathFactory) -> None:
    kernel = kernel_from_source(case.source, tmp_path_factory.mktemp("generated"))
    request = prepare_request(kernel, grid=case.grid, block=case.block, args=case.arguments())
    check_program(request.program)


def test_deep_expressions_are_written(launches: list[st.Launch]) -> None:
    program = launches[0].request.program
    span = program.kernel.span
    deep = reduce(lambda value, _: Op("neg", (value,), F32, span), range(5000), Op("neg", (), F32, span))
    (read,) = again(deep)
    for _ in range(5000):
        (read,) = read.args
    assert read.args == ()


def line(**members: Any) -> bytes:
    return json.dumps({"name": None, "objects": [], "value": None, **members}).encode()


def test_other_content_is_refused() -> None:
    span = ["span.Span", "a.py", 1, 1, 1, 1, ["tuple"]]
    array = ["ndarray", '"<f4"', ["tuple", 1], "AACAPw=="]
    valid = line(objects=[span, array], value=2.5)
    contents = {
        "pickle": b"\x80\x04\x95",
        "empty": b"",
        "no member": b"{}",
        "no object": b"null",
        "deep": b"[" * 100_000,
        "wrong type of value": line(value="text"),
        "class of another package": line(objects=[["subprocess.Popen", "ls"]]),
        "class of an imported package": line(objects=[["runtime.plain_data.json.JSONDecodeError", "a", "b", 1]]),
        "class of another module of ours": line(objects=[["testing.tally.Tally"]]),
        "missing module": line(objects=[["runtime.missing.Name"]]),
        "name of an imported class": line(objects=[["runtime.plain_data.Device", *[1] * 35]]),
        "function": line(objects=[["runtime.plain_data.check", 1]]),
        "class without fields": line(objects=[["errors.SimtbedError", "a"]]),
        "too few fields": line(objects=[span[:-1]]),
        "field of another type": line(objects=[["span.Span", "a.py", "1", 1, 1, 1, ["tuple"]]]),
        "item of another type": line(objects=[[*span[:-1], ["tuple", 1]]]),
        "missing row": line(objects=[[*span[:-1], ["tuple", ["object", 7]]]]),
        "missing name": line(value=["shared", "1.1"]),
        "unknown container": line(value=["set", 1]),
        "unhashable key": line(value=["dict", ["list"], 1]),
        "Python objects": line(objects=[["ndarray", '"|O"', ["tuple", 1], "AAAAAAAAAAA="]]),
        "short array": line(objects=[[*array[:2], ["tuple", 9], array[3]]]),
        "no base64": line(objects=[[*array[:3], "%"]]),
        "no program": line(objects=[["Specialisation", 1, ["frozenset"], None]]),
        "unknown type": line(objects=[["Scalar", "f128"]]),
    }

    def check(content: bytes) -> None:
        with pytest.raises(ValueError, match=r"^line 2 is not a record of a launch: "):
            list(Decoder().values([valid, content], float))

    check_each(contents, lambda name: check(contents[name]))
    assert list(Decoder().values([valid], float)) == [2.5]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type aliases are new in Python 3.12")
def test_a_type_alias_has_the_check_of_its_type() -> None:
    """NumPy's NDArray is one from NumPy 2.5 on."""
    alias: Any = vars(typing)["TypeAliasType"]("Numbers", list[int])
    check = plain_data.check(alias)
    assert check([1]) and not check(["a"]) and not check(1)
