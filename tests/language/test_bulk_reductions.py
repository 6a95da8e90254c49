"""Bulk reductions: operations and types against NumPy, of sections and of boxes; refusals, races, counters and printed instructions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, f32, i32
from simtbed.engines.cuda import nvcc
from simtbed.ir.updates import reduced_types
from simtbed.language.types import SCALARS
from simtbed.runtime.registry import EngineName

from tests.compilers import needs_nvcc
from tests.table_checks import check_each

_SECTION = """
def reduced(x: st.Global[st.{type}], out: st.Global[st.{type}]):
    buffer = st.shared(st.{type}, 64)
    for i in range(st.lane, 64, 32):
        buffer[i] = x[64 * st.block.x + i]
    st.fence_async()
    st.sync()
    if st.lane == 0:
        st.bulk_store(out, 16, buffer, 16, 32 * {size}, reduce="{op}")
        st.bulk_commit()
        st.bulk_wait()
"""
_BOX = """
def reduced(x: st.Global[st.{type}], out: st.TensorMap[st.{type}]):
    buffer = st.shared(st.{type}, 2, {row})
    for i in range(st.lane, 2 * {row}, 32):
        buffer[i // {row}, i % {row}] = x[2 * {row} * st.block.x + i]
    st.fence_async()
    st.sync()
    if st.lane == 0:
        st.tensor_store(out, (1, {first}), buffer, (0, 0), reduce="{op}")
        st.bulk_commit()
        st.bulk_wait()
"""
_COMBINED: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "inc": lambda a, b: np.where(a >= b, a.dtype.type(0), a + a.dtype.type(1)),
    "dec": lambda a, b: np.where((a == 0) | (a > b), b, a - a.dtype.type(1)),
}  # fmt: skip
BLOCKS = 3
_SPECIAL = (np.nan, 0.0, -0.0, np.inf, -np.inf, 1.0, 2.0**-149, -(2.0**-24), 2.0**-127, 2.0**-14)


class Case:
    """Reductions at the same elements: of BLOCKS blocks, or of one if their order matters. boxes: of two rows of 64 bytes with a swizzle,
    which end beyond the tensor along both axes; else a section of 32 elements. special: zeros, NaN, infinities and subnormal numbers."""

    def __init__(self, op: Any, type: str, boxes: bool, special: bool = False) -> None:
        self.name, self.op, self.boxes = f"{op} {type} {'box' if boxes else 'section'}{' special' * special}", op, boxes
        self.dtype, size, self.special = SCALARS[type].dtype, SCALARS[type].size, special
        self.blocks = 1 if op in ("inc", "dec") or (op == "add" and SCALARS[type].is_float) else BLOCKS
        self.row, self.first = 64 // size, 16 // size
        self.shape = (2, self.row) if boxes else (64,)
        self.x = self._values(self.blocks * int(np.prod(self.shape)), 3)
        self.out = self._values(2 * self.row if boxes else 64, 5)
        text = _BOX if boxes else _SECTION
        self.kernel = st.kernel(source=text.format(type=type, size=size, op=op, row=self.row, first=self.first))

    def _values(self, count: int, seed: int) -> Any:
        if self.special:
            return np.random.default_rng(seed).choice(_SPECIAL, count).astype(self.dtype)
        bits = np.random.default_rng(seed).integers(0, 1 << 63, count, np.uint64) * np.uint64(2)
        if self.dtype.kind in "iu":
            bits = bits >> np.uint64(60) if self.op in ("inc", "dec") else bits
            return bits.astype(f"u{self.dtype.itemsize}").view(self.dtype)
        return (bits.astype(np.float64) / 2.0**61 - 4.0).astype(self.dtype)

    def launch(self, engine: EngineName, **options: Any) -> Any:
        out: Any = np.copy(self.out)
        if self.boxes:
            out = st.tensor_map(out.reshape(2, self.row), box=(2, self.row), swizzle=64)
        return st.launch(
            self.kernel, grid=self.blocks, block=32, args={"x": self.x, "out": out}, engine=engine, **options
        )

    def bits(self, result: Any) -> Any:
        return self.bits_of(np.ascontiguousarray(result.out)).ravel()

    def bits_of(self, values: Any) -> Any:
        return values.view(f"u{self.dtype.itemsize}")

    def expected(self) -> Any:
        """Return the bits of the reductions in the order of the blocks."""
        out, combined = np.copy(self.out), _COMBINED[self.op]
        for own in self.x.reshape(self.blocks, *self.shape):
            if self.boxes:
                units = own.reshape(-1, 16 // self.dtype.itemsize)
                number = np.arange(len(units))
                box = units[number ^ (number >> 3 & 3)].reshape(self.shape)
                target = out.reshape(2, self.row)
                target[1, self.first :] = combined(target[1, self.first :], box[0, : -self.first])
            else:
                out[16:48] = combined(out[16:48], own[16:48])
        return self.bits_of(out)


ENGINES: tuple[EngineName, ...] = ("jit", "numpy", "python")
OPERATIONS: Any = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
CASES = [
    Case(op, str(type), boxes) for boxes in (False, True) for op in OPERATIONS for type in reduced_types(op, boxes)
]

SPECIAL = [
    Case(op, str(type), False, True)
    for op in ("add", "min", "max")
    for type in reduced_types(op, False)
    if type.is_float
]


def _check(case: Case, engine: EngineName, **options: Any) -> None:
    np.testing.assert_array_equal(case.bits(case.launch(engine, **options)), case.expected(), case.name)


@pytest.mark.slow
def test_operations_and_types() -> None:
    check_each(CASES, lambda case: _check(case, "jit", check="all"))
    check_each(CASES, lambda case: _check(case, "numpy"))
    check_each(CASES[::3], lambda case: _check(case, "python"))


@pytest.mark.slow
def test_special_values() -> None:
    """The engines agree: an extreme is that of `min` or `max`."""

    def check(case: Case) -> None:
        first, *others = (np.asarray(case.launch(engine).out) for engine in ENGINES)
        for own in others:
            np.testing.assert_array_equal(np.isnan(own), np.isnan(first))
            np.testing.assert_array_equal(case.bits_of(own)[~np.isnan(own)], case.bits_of(first)[~np.isnan(first)])

    check_each(SPECIAL, check)


@needs_nvcc
@pytest.mark.slow
def test_printed_instructions_compile() -> None:
    def check(case: Case) -> None:
        source = case.launch("jit").source
        assert f"cp.reduce.async.bulk.{'tensor.2d.' * case.boxes}global.shared::cta." in source
        assert nvcc.build(source, "reduced", "sm_90").resources.registers > 0

    check_each([*CASES[: len(CASES) // 2 + 1], CASES[-1]], check)


def test_types_without_an_operation() -> None:
    for op, type, boxes, message in (
        ("add", "i64", False, r"PTX has no bulk reduction add of i64(.|\n)*use i32, u32, u64, f32, f64, f16, bf16"),
        ("add", "f64", True, r"PTX has no bulk reduction add of f64 in boxes(.|\n)*use i32, u32, u64, f32, f16, bf16$"),
        ("min", "f32", True, "PTX has no bulk reduction min of f32"),
        ("inc", "i32", False, "PTX has no bulk reduction inc of i32(.|\n)*use u32"),
        ("xor", "u16", True, "PTX has no bulk reduction xor of u16"),
        ("sub", "f32", False, 'a reduction is not known(.|\n)*write one of "add", "min"'),
    ):
        with pytest.raises(st.CompileError, match=message):
            Case(op, type, boxes).launch("jit")


@st.kernel
def _shared_sum(out: st.Global[f32], mistake: Const) -> None:
    buffer = st.shared(f32, 32)
    buffer[st.lane] = 1.0
    if mistake != 4:
        st.fence_async()
    st.sync()
    if st.lane == 0:
        if mistake == 1 and st.block.x == 1:
            st.bulk_store(out, 0, buffer, 0, 128)
        else:
            st.bulk_store(out, 0, buffer, 0, 128, reduce="add")
        st.bulk_commit()
        st.bulk_wait()
    if mistake == 2 and st.block.x == 1:
        out[st.lane] = 5.0
    if mistake == 3 and st.block.x == 1:
        buffer[st.lane] = out[st.lane]


def test_races_of_reductions() -> None:
    """Reductions of two blocks do not race, nor with atomic operations; a copy, a store and a load do. So does a read without a fence."""
    for engine in ("jit", "numpy"):
        args = {"out": np.zeros(32, np.float32)}
        result = st.launch(_shared_sum, grid=4, block=32, args={**args, "mistake": 0}, engine=engine, check="races")
        np.testing.assert_array_equal(result.out, np.full(32, 4, np.float32))
        for mistake in (1, 2, 3, 4):
            launched: dict[str, Any] = {
                "args": {**args, "mistake": mistake},
                "engine": engine,
                "check": "races",
                "faults": "return",
            }
            faults = st.launch(_shared_sum, grid=2, block=32, **launched).faults
            assert {fault.kind for fault in faults} == {"race"}, mistake


@st.kernel
def _counted(out: st.Global[i32], tensor: st.TensorMap[i32], REDUCES: Const) -> None:
    buffer = st.shared(i32, 32)
    buffer[st.lane] = 1
    st.fence_async()
    if REDUCES:
        st.bulk_store(out, 0, buffer, 0, 128, reduce="add")
        st.tensor_store(tensor, 0, buffer, 0, reduce="max")
    else:
        st.bulk_store(out, 0, buffer, 0, 128)
        st.tensor_store(tensor, 0, buffer, 0)
    st.bulk_commit()
    st.bulk_wait()


def test_counters_are_those_of_copies() -> None:
    for engine in ("jit", "numpy"):
        counted = []
        for reduces in (False, True):
            tensor = st.tensor_map(np.zeros(32, np.int32), box=(32,))
            args = {"out": np.zeros(32, np.int32), "tensor": tensor, "REDUCES": reduces}
            counted.append(st.launch(_counted, grid=1, block=32, args=args, engine=engine).counters.totals())
        assert counted[0] == counted[1]
        assert counted[0]["branches"] == 0
