"""Copies of boxes of tensors: types, ranks, swizzles and borders against NumPy; refusals, findings and printed instructions."""

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import TensorMap, f16, f32, i32
from simtbed.engines.cuda import nvcc
from simtbed.runtime.registry import EngineName

from tests.compilers import needs_nvcc
from tests.table_checks import check_each

_TEXT = """
def copied(x: st.TensorMap[st.{type}], y: st.TensorMap[st.{type}], out: st.Global[st.{type}], {parameters}):
    barriers = st.shared(st.u64, 1)
    buffer = st.shared(st.{type}, {count})
    t = st.thread.x
    if t == 0:
        st.mbarrier_init(barriers, 0, 1)
        st.fence_async()
    st.sync()
    if t == 0:
        st.mbarrier_arrive_expect_tx(barriers, 0, {bytes})
        st.tensor_copy(buffer, 0, x, ({coordinates}), barriers, 0)
    while not st.mbarrier_try_wait_parity(barriers, 0, 0):
        pass
    for i in range(t, {count}, 32):
        out[i] = buffer[i]
    if t == 0:
        st.tensor_store(y, ({moved}), buffer, 0)
        st.bulk_commit()
        st.bulk_wait()
"""
SHAPES: dict[int, Any] = {1: (90,), 2: (20, 64), 3: (5, 6, 64), 4: (3, 2, 3, 64), 5: (2, 3, 2, 2, 64)}
BOXES: dict[int, Any] = {1: (64,), 2: (16, 16), 3: (3, 4, 16), 4: (2, 2, 2, 16), 5: (2, 2, 1, 2, 16)}
STARTS: dict[int, Any] = {0: (-1, 0, 1, 1, 0), -16: (0, -1, 0, -1, 0), 16: (1, 0, 4, 12, 0), 48: (0, 1, 3, 2, 0)}
"""Coordinates of the copy by that of the last axis, for five axes."""
NEXT = 16
"""Elements along the last axis from the box that is read to the box that is written."""
_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class Case:
    """A copy of a box to shared memory, and from it to a box that begins later along each axis: by one element, by NEXT along the last."""

    def __init__(self, type: str, rank: int, swizzle: Any = 0, last: int = 0, fill: Any = "zero") -> None:
        self.name = f"{type} {rank}d swizzle {swizzle} from {last} {fill}"
        dtype = np.dtype({"f16": "f2", "f32": "f4", "f64": "f8", "u8": "u1", "i8": "i1", "i64": "i8"}[type])
        self.box = (*BOXES[rank][:-1], 64 if rank == 1 or dtype.itemsize < 4 else 16)
        if swizzle:
            self.box = (*self.box[:-1], swizzle // dtype.itemsize)
        wide = np.arange(np.prod(SHAPES[rank])).reshape(SHAPES[rank]) % 251 + 1
        self.x = wide.astype(dtype)[..., : 60 if rank > 1 else None]  # with gaps
        self.start = tuple([*STARTS[last][:5], last][6 - rank :]) if rank > 1 else (last,)
        self.swizzle, self.fill, self.kernel = swizzle, fill, self._kernel(type)

    def _kernel(self, type: str) -> st.Kernel:
        names = [f"c{n}" for n in range(len(self.box))]
        count = int(np.prod(self.box))
        return st.kernel(
            source=_TEXT.format(
                type=type,
                parameters=", ".join(f"{own}: st.i32" for own in names),
                coordinates=", ".join(names),
                moved=", ".join(f"{own} + {NEXT if own == names[-1] else 1}" for own in names),
                count=count,
                bytes=count * self.x.itemsize,
            )
        )

    def launch(self, engine: EngineName, **options: Any) -> Any:
        target = np.zeros(SHAPES[self.x.ndim], self.x.dtype)[..., : self.x.shape[-1]]
        maps: Any = {"box": self.box, "swizzle": self.swizzle, "fill": self.fill}
        args: dict[str, Any] = {"x": st.tensor_map(self.x, **maps), "y": st.tensor_map(target, **maps)}
        args |= {"out": np.zeros(int(np.prod(self.box)), self.x.dtype)}
        args |= {f"c{n}": own for n, own in enumerate(self.start)}
        return st.launch(self.kernel, grid=1, block=32, args=args, engine=engine, **options)

    def bits(self, result: Any) -> tuple[Any, Any]:
        """Return the bits of shared memory after the copy, and those of the target."""
        kind = _BITS[self.x.itemsize]
        return np.asarray(result.out).view(kind), np.ascontiguousarray(result.y).view(kind)

    def expected(self) -> tuple[Any, Any]:
        kind = _BITS[self.x.itemsize]
        source, target = np.ascontiguousarray(self.x).view(kind), np.zeros(self.x.shape, kind)
        box = np.full(self.box, {"zero": 0, "nan": 0x7FF7 if kind is np.uint16 else 0x7FF77FF7}[self.fill], kind)
        for at in product(*map(range, self.box)):
            place = tuple(c + n for c, n in zip(self.start, at, strict=True))
            if all(0 <= c < size for c, size in zip(place, source.shape, strict=True)):
                box[at] = source[place]
            place = *(c + 1 for c in place[:-1]), place[-1] + NEXT
            if all(0 <= c < size for c, size in zip(place, source.shape, strict=True)):
                target[place] = box[at]
        units = box.reshape(-1, 16 // self.x.itemsize)
        number = np.arange(len(units))
        shared = np.empty_like(units)
        shared[number ^ (number >> 3 & max(0, self.swizzle // 16 - 1))] = units
        return shared.ravel(), target


CASES = [
    Case("f32", 1), Case("f32", 1, 0, -16), Case("u8", 1, 0, 48), Case("f16", 2, 32, -16), Case("f16", 2, 64, 16),
    Case("f16", 2, 128, 48, "nan"), Case("f32", 2, 128), Case("f32", 2, 0, 48, "nan"), Case("u8", 2, 32, 48),
    Case("u8", 3, 0, 16), Case("f32", 3, 64, -16), Case("i8", 4, 128, -16), Case("f64", 4), Case("i64", 5, 128, 48),
    Case("f32", 5, 32, 16), Case("f16", 5, 64, -16),
]  # fmt: skip


def _check(case: Case, engine: EngineName, **options: Any) -> None:
    for actual, expected in zip(case.bits(case.launch(engine, **options)), case.expected(), strict=True):
        np.testing.assert_array_equal(actual, expected, case.name)


@pytest.mark.slow
def test_boxes_are_those_of_numpy() -> None:
    check_each(CASES, lambda case: _check(case, "jit", check="all"))
    for engine in ("numpy", "python"):
        check_each(CASES[::3], partial(_check, engine=engine))


@st.kernel
def _mistaken(x: TensorMap[f32], y: TensorMap[f32], out: st.Global[f32], mistake: i32) -> None:
    barriers = st.shared(st.u64, 1)
    buffer = st.shared(f32, 4, 32)
    t = st.thread.x
    if t == 0:
        st.mbarrier_init(barriers, 0, 1)
        st.fence_async()
    st.sync()
    if t == 0:
        st.mbarrier_arrive_expect_tx(barriers, 0, 256)
        st.tensor_copy(buffer, (0, 1 if mistake == 2 else 0), x, (0, 0), barriers, 0)
    if mistake != 3:
        while not st.mbarrier_try_wait_parity(barriers, 0, 0):
            pass
    out[t] = buffer[0, t]
    if mistake == 4:
        buffer[0, t] = 1.0
    st.sync()
    if t == 0:
        st.tensor_store(y, (0, 0), buffer, (0, 0))
        st.bulk_commit()
        if mistake != 5:
            st.bulk_wait_read()
    st.sync()
    buffer[0, t] = 2.0
    st.bulk_wait()


def _run(mistake: int, x: Any = None, **options: Any) -> Any:
    tensor = st.tensor_map(np.zeros((2, 32), np.float32), box=(2, 32)) if x is None else x
    args = {"x": tensor, "y": st.tensor_map(st.zeros((2, 32), f32), box=(2, 32)), "out": np.zeros(32, np.float32)}
    return st.launch(_mistaken, grid=1, block=32, args={**args, "mistake": mistake}, **options)


@pytest.mark.slow
def test_findings() -> None:
    """A place that is not aligned, a read before the copy, a store without a fence, and a buffer filled before the copy has read it."""
    assert not _run(0, check="all", faults="return").faults
    (fault,) = _run(2, faults="return").faults
    assert "misaligned access: 128 bytes from byte 4 of buffer" in fault.message
    for mistake in (3, 4, 5):
        faults = _run(mistake, check="races", faults="return").faults
        assert {fault.kind for fault in faults} == {"race"}, mistake


@st.kernel
def _moved(x: TensorMap[f16], row: i32, column: i32) -> None:
    buffer = st.shared(f16, 64)
    st.tensor_store(x, (row, column), buffer, 0)


def test_a_box_counts_no_branches() -> None:
    """The loops in place of a copy have no instructions."""
    x = st.tensor_map(np.zeros((4, 64), np.float16), box=(1, 64))
    for engine in ("jit", "numpy"):
        totals = st.launch(
            _moved, grid=1, block=1, args={"x": x, "row": 0, "column": 0}, engine=engine
        ).counters.totals()
        assert (totals["branches"], totals["warp_instructions"]) == (0, 0)


@pytest.mark.slow
def test_coordinates_that_the_hardware_does_not_take() -> None:
    def check(row: tuple[int, int, str]) -> None:
        x = st.tensor_map(np.zeros((4, 64), np.float16), box=(1, 64))
        args = {"x": x, "row": row[0], "column": row[1]}
        faults = st.launch(_moved, grid=1, block=1, args=args, faults="return").faults
        assert [fault.message for fault in faults] == [row[2]] * bool(row[2])

    before = "a box of x that is written begins at coordinate -{}"
    check_each(
        [
            (0, 8, ""),
            (3, 64, ""),
            (0, 3, "misaligned access: 16 bytes from byte 6 of x, not a multiple of 16"),
            (-1, 0, before.format(1)),
            (0, -8, before.format(8)),
        ],
        check,
    )


@st.kernel
def _unmapped(x: TensorMap[f32]) -> None:
    buffer = st.shared(f32, 32)
    buffer[0] = x[0]  # type: ignore[index]


@st.kernel
def _short(x: TensorMap[f32]) -> None:
    buffer = st.shared(f32, 32)
    st.tensor_store(x, 0, buffer, 0)


@st.kernel
def _other_type(x: TensorMap[f32]) -> None:
    buffer = st.shared(i32, 32)
    st.tensor_store(x, (0, 0), buffer, 0)


@st.kernel
def _sized(x: TensorMap[f32]) -> None:
    buffer = st.shared(f32, x.size)  # type: ignore[attr-defined]
    buffer[0] = 0


@st.device
def _stored(x: TensorMap[f32], buffer: st.Shared[f32]) -> None:
    st.tensor_store(x, (0, 0), buffer, 0)


@st.kernel
def _passed(x: TensorMap[f32]) -> None:
    buffer = st.shared(f32, 32)
    _stored(x, buffer)


@st.kernel
def _plain(x: st.Global[f32]) -> None:
    x[0, 0] = 1.0


@st.kernel
def _shape(x: TensorMap[f32], out: st.Global[i32]) -> None:
    constant = st.shared(i32, x.shape[0])
    out[0], out[1], out[2] = x.shape[0], x.shape[1], len(constant)


def test_the_shape_of_a_tensor() -> None:
    x = st.tensor_map(np.zeros((2, 32), np.float32), box=(1, 32))
    assert list(st.launch(_shape, grid=1, block=1, args={"x": x, "out": st.empty(3, i32)}).out) == [2, 32, 2]


def test_refusals_of_kernels() -> None:
    x = st.tensor_map(np.zeros((2, 32), np.float32), box=(1, 32))
    for kernel, argument, message in (
        (_unmapped, x, "a tensor map"),
        (_sized, x, r"a tensor map has no size in a kernel(.|\n)*write x\.shape, or copy a box of it"),
        (_passed, x, "x is a tensor map: its boxes are copied in the kernel itself"),
        (_short, x, "x has 2 axes, 1 coordinates given"),
        (_other_type, x, "tensor_store copies f32, as of x, in shared memory; buffer is shared i32"),
        (_plain, x, "x is no tensor map: give the array"),
        (_short, x.array, r"x is a tensor map: give st\.tensor_map\(array, box=\.\.\.\)"),
    ):
        with pytest.raises(st.CompileError, match=message):
            st.launch(kernel, grid=1, block=1, args={"x": argument})
    wrong = st.tensor_map(np.zeros((2, 32), np.int32), box=(1, 32))
    with pytest.raises(st.LaunchError, match=r"x is no st\.TensorMap\[st\.i32\]"):
        _run(0, wrong)
    line = st.tensor_map(np.zeros(32, np.float32), box=(32,))
    with pytest.raises(st.LaunchError, match=r"st\.tensor_store needs compute capability 9\.0"):
        st.launch(_short, grid=1, block=1, args={"x": line}, device=st.devices.A100)


def test_rules_of_the_hardware() -> None:
    wide = np.zeros((4, 6, 64), np.float32)
    for array, options, message in (
        (wide[:, :, :10], {"box": (1, 1, 10)}, "a row of the box is a multiple of 16 bytes, not 40"),
        (wide, {"box": (1, 1, 64), "swizzle": 128}, "a row of the box is the 128 bytes of the swizzle, not 256"),
        (wide, {"box": (1, 257, 4)}, "256"),
        (wide, {"box": (1, 4)}, "a box of as many, not 3 and 2"),
        (wide, {"box": (1, 1, 4), "swizzle": 16}, "swizzle is 0, 32, 64 or 128, not 16"),
        (
            np.zeros((4, 30), np.float16),
            {"box": (1, 8)},
            "the stride of dimension 1 is a positive multiple of 16 bytes",
        ),
        (wide.T, {"box": (4, 1, 1)}, "not adjacent|multiple of 16 bytes"),
        (np.zeros((1,) * 5 + (4,), np.float32), {"box": (1,) * 6}, "1 to 5 dimensions"),
        (np.zeros(16, np.int32), {"box": (16,), "fill": "nan"}, 'fill="nan" is of floats'),
        (np.zeros(16, np.complex64), {"box": (16,)}, "elements of complex64"),
        (np.zeros((0, 16), np.int32), {"box": (1, 16)}, r"the size of dimension 1 is 1 \.\.\. 2\^31 - 1, not 0"),
    ):
        with pytest.raises(st.LaunchError, match=message):
            st.tensor_map(array, **options)


@pytest.mark.slow
def test_tensor_maps_of_arrays_of_the_device() -> None:
    x = st.DeviceArray(np.arange(64, dtype=np.float32).reshape(2, 32))
    result = _run(0, st.tensor_map(x, box=(2, 32)))
    np.testing.assert_array_equal(result.y[1], np.arange(32, 64, dtype=np.float32))


@needs_nvcc
@pytest.mark.slow
def test_printed_instructions_compile() -> None:
    def check(case: Case) -> None:
        source = case.launch("jit").source
        assert "const __grid_constant__ CUtensorMap x" in source
        assert f"cp.async.bulk.tensor.{len(case.box)}d.shared::cluster.global" in source
        assert nvcc.build(source, "copied", "sm_90").resources.registers > 0

    check_each([Case("f32", 1), Case("f16", 2, 64), Case("f32", 5, 32)], check)
