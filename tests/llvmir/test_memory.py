"""Pointers and memory: several memories, views, several sizes in local memory, dynamic shared memory, addresses, refusals."""

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.printer import cuda_source
from simtbed.errors import CompileError
from simtbed.frontend.launchable import ProgramKernel
from simtbed.ir.names import address, component, offset
from simtbed.language.types import BF16, F16, F32, F64, I32, I64, U32
from simtbed.llvmir.parameters import (
    ArrayParameter,
    ConstantParameter,
    Parameter,
    ScalarParameter,
    StructParameter,
    UnusedPointer,
)

from tests.compilers import needs_nvcc
from tests.llvmir.programs import ENGINES, run, translated
from tests.table_checks import each_row
from tests.texts import texts

TEXTS = texts("llvmir/memory.ll")

HEAD = TEXTS["memory head"]
X, Y, OUT = ArrayParameter("x", I32, 4), ArrayParameter("y", I32, 4), ArrayParameter("out", I32, 4)
THREADS = np.arange(32)


def _text(parameters: str, body: str) -> str:
    return HEAD % parameters + body + "\n  ret void\n}\n"


def _each_engine(text: str, parameters: list[Parameter], arguments: dict[str, Any], **options: Any) -> list[Any]:
    translation = translated(text, parameters)
    return [run(translation, arguments, engine, **options) for engine in (*ENGINES, "python")]


def test_pointer_into_one_of_two_arrays() -> None:
    """A loop exchanges two pointers; the store writes into the array that the last iteration selects."""
    text = _text("ptr %x, ptr %y, i32 %n", TEXTS["pointer into one of two arrays"])
    parameters: list[Parameter] = [X, Y, ScalarParameter("n", I32)]
    for n in (3, 4):
        arguments: dict[str, Any] = {"x": THREADS.astype(np.int32), "y": 100 + THREADS.astype(np.int32)}
        arguments["n"] = np.int32(n)
        selected, other = ("x", "y") if n % 2 else ("y", "x")
        for result in _each_engine(text, parameters, arguments):
            assert np.array_equal(result[selected], arguments[selected] + n)
            assert result[other][0] == arguments[other][0] + 32


def test_items_of_a_structure_are_parameters() -> None:
    text = _text("{ i32, float } %pair, ptr %out", TEXTS["items of a structure are parameters"])
    parameters: list[Parameter] = [StructParameter((ScalarParameter("n", I32), ScalarParameter("f", F32))), OUT]
    assert {source.parameter for source in translated(text, parameters).scalars.values()} == {2, 3}
    arguments = {"n": np.int32(3), "f": np.float32(4.0), "out": np.zeros(32, np.int32)}
    for result in _each_engine(text, parameters, arguments):
        assert (result["out"] == 7).all()


def test_fields_of_records_are_views() -> None:
    """Records of an i32 and an f64: two views with the layout of the records."""
    text = _text("ptr %x, ptr %out", TEXTS["fields of records are views"])
    records = np.zeros(32, np.dtype([("a", np.int32), ("b", np.float64)], align=True))
    records["a"], records["b"] = THREADS, THREADS / 4
    bytes_ = records.view(np.uint8)
    view = component("x", "f64")
    arguments = {"x": bytes_.view(np.int32), view: bytes_.view(np.float64), "out": np.zeros(32)}
    for result in _each_engine(text, [ArrayParameter("x", None, 16), ArrayParameter("out", F64, 8)], arguments):
        assert np.array_equal(result["out"], THREADS * 1.25)


def test_local_memory_with_several_sizes() -> None:
    """A double stored over two i32: its halves are those of the hardware."""
    text = _text("ptr %x, ptr %out", TEXTS["local memory with several sizes"])
    x = np.random.default_rng(2).normal(size=32)
    expected = x.view(np.int32).reshape(32, 2)[THREADS, THREADS & 1]
    for result in _each_engine(text, [ArrayParameter("x", F64, 8), OUT], {"x": x, "out": np.zeros(32, np.int32)}):
        assert np.array_equal(result["out"], expected)


def test_shared_memory_with_several_sizes() -> None:
    """Doubles and words in one shared array; each lane reads a half of another lane's double."""
    text = _text("ptr %x, ptr %out", TEXTS["shared memory with several sizes"])
    x = np.random.default_rng(3).normal(size=32)
    arguments = {"x": x, "out": np.zeros(32, np.int32)}
    parameters: list[Parameter] = [ArrayParameter("x", F64, 8), OUT]
    for result in _each_engine(text, parameters, arguments, check="races"):
        assert np.array_equal(result["out"], x[::2].copy().view(np.int32))
    wrong: Any = ProgramKernel(translated(text.replace("call void @llvm.nvvm.barrier0()", "", 1), parameters).program)
    for engine in ("numpy", "jit"):
        racing = st.launch(wrong, grid=1, block=32, args=arguments, engine=engine, check="races", faults="return")
        assert [fault.kind for fault in racing.faults] == ["race"]


def test_copies_of_records() -> None:
    """A memcpy of 12 bytes with the alignment of an i32, through local memory."""
    text = _text("ptr %x, ptr %out", TEXTS["copies of records"])
    x = np.arange(96, dtype=np.int32)
    for result in _each_engine(text, [X, OUT], {"x": x, "out": np.zeros(96, np.int32)}):
        assert np.array_equal(result["out"], x)


def test_shared_and_constant_memory_and_collectives() -> None:
    text = _text("ptr %x, ptr %out", TEXTS["shared and constant memory and collectives"])
    x = (THREADS * 5 % 32).astype(np.int32)
    mirrored = x[::-1]
    below = np.append(mirrored[1:], mirrored[31])
    lanes = np.array(sum(1 << int(lane) for lane in np.flatnonzero(x > 15))).astype(np.uint32).view(np.int32)
    expected = below + lanes + 31 + (THREADS & 3) + 1
    for result in _each_engine(text, [X, OUT], {"x": x, "out": np.zeros(32, np.int32)}):
        assert np.array_equal(result["out"], expected.astype(np.int32))


def test_dynamic_shared_arrays_are_one_memory() -> None:
    text = _text("ptr %out", TEXTS["dynamic shared arrays are one memory"])
    arguments = {"out": np.zeros(32, np.float32)}
    for result in _each_engine(text, [ArrayParameter("out", F32, 4)], arguments, shared=130):
        assert np.array_equal(result["out"], 31 - THREADS + 130)


def test_a_negative_constant_without_its_high_bits() -> None:
    """LLVM clears bits of -1 that the shift discards."""
    text = _text(
        "ptr %x, ptr %out",
        f"""
  %i = zext i32 %t to i64
  %before = add i64 %i, {(1 << 62) - 1}
  %offset = shl i64 %before, 2
  %from = getelementptr i8, ptr %x, i64 %offset
  %has = icmp sgt i32 %t, 0
  br i1 %has, label %read, label %done
read:
  %v = load i32, ptr %from
  %to = getelementptr i32, ptr %out, i64 %i
  store i32 %v, ptr %to
  br label %done
done:""",
    )
    x = (THREADS * 3).astype(np.int32)
    for result in _each_engine(text, [X, OUT], {"x": x, "out": np.zeros(32, np.int32)}, check="bounds"):
        assert result["out"].tolist() == [0, *x[:-1].tolist()]


@pytest.mark.parametrize("before", [8, 6])
def test_vectors_behind_elements_before_the_first(before: int) -> None:
    """The elements before an array's first are no whole number of vectors: an access at a multiple of 16 bytes is right, another a
    finding."""
    text = _text(
        "ptr %x, ptr %out",
        """
  %from = getelementptr [16 x i8], ptr %x, i32 %t
  %v = load <4 x i32>, ptr %from, align 16
  %to = getelementptr [16 x i8], ptr %out, i32 %t
  store <4 x i32> %v, ptr %to, align 16""",
    )
    translation = translated(text, [ArrayParameter("x", I32, 4, offset=True), OUT], pointers="arrays")
    arguments = {"x": np.arange(136, dtype=np.int32), offset("x"): np.int64(before), "out": np.zeros(128, np.int32)}
    for engine in ENGINES:
        if before % 4:
            with pytest.raises(st.FaultError, match="misaligned"):
                run(translation, arguments, engine)
        else:
            assert run(translation, arguments, engine)["out"].tolist() == list(range(before, before + 128))


def test_addresses_and_parameters() -> None:
    text = _text("ptr %none, ptr %x, i32 %u, i64 %size, ptr %out", TEXTS["addresses and parameters"])
    parameters: list[Parameter] = [UnusedPointer(), X, ScalarParameter("u", U32), ConstantParameter(40, I64), OUT]
    arguments = {address("x"): np.int64(4096), "u": np.uint32(1 << 31), "out": np.zeros(32, np.int32)}
    for result in _each_engine(text, parameters, arguments):
        assert (result["out"] == 4096 + 40 + 1 + 8).all()


def test_bits_of_a_vector_and_addresses_in_shared_memory() -> None:
    """Each thread reads its element by the address that its neighbour stored."""
    head = HEAD.replace("@first =", "@first8 = addrspace(3) global [256 x i8] undef\n@first =")
    text = head % "ptr %x, ptr %out"
    text += TEXTS["bits of a vector of i1 and addresses in shared memory"] + "\n  ret void\n}\n"
    translation = translated(text, [X, OUT], pointers="arrays")
    x = (THREADS * 37).astype(np.int32)
    arguments = {"x": x.view(np.int8), address("x"): np.int64(1 << 20), "out": np.zeros(128, np.int8)}
    own = x[THREADS ^ 1]
    expected = (own & 1) | (own >> 8 & 1) << 1 | (own >> 4 & 1) << 2
    for engine in (*ENGINES, "python"):
        assert np.array_equal(run(translation, arguments, engine)["out"].view(np.int32), expected)


def test_printf() -> None:
    text = _text("ptr %out", TEXTS["printf"]).replace(
        "@table =", '@format = constant [13 x i8] c"t %d of %g%%\\0A\\00"\n@table ='
    )
    kernel: Any = ProgramKernel(translated(text, [OUT]).program)
    result = st.launch(kernel, grid=1, block=1, args={"out": np.zeros(1, np.int32)}, engine="numpy")
    assert [line.rpartition(": ")[2] for line in result.printed] == ["t 0 of 2.5%"]


def test_threads_that_returned_wait_at_no_barrier() -> None:
    """Two empty blocks jump to the block that returns; the code behind the barrier is in the block between them."""
    text = _text("ptr %out", TEXTS["threads that returned wait at no barrier"])
    for result in _each_engine(text, [OUT], {"out": np.full(32, -1, np.int32)}):
        assert np.array_equal(result["out"], np.where((THREADS < 20) & (THREADS != 7), THREADS, -1))


@needs_nvcc
@pytest.mark.slow
def test_extremes_of_halves() -> None:
    """CUDA text has a loop of compare-and-swaps."""
    for name, type in (("half", F16), ("bfloat", BF16)):
        body = f"  %v = load {name}, ptr %x\n  %old = atomicrmw fmin ptr %out, {name} %v monotonic"
        parameters: list[Parameter] = [ArrayParameter("x", type, 2), ArrayParameter("out", type, 2)]
        arguments = {"x": np.full(1, -2.5, type.dtype), "out": np.ones(1, type.dtype)}
        text = _text("ptr %x, ptr %out", body)
        assert {float(result["out"][0]) for result in _each_engine(text, parameters, arguments)} == {-2.5}
        source = cuda_source(translated(text, parameters).program, (32, 1, 1)).text
        assert nvcc.build(source, "kernel", "sm_90").resources.registers > 0


REFUSALS = {
    "store ptr %x, ptr %x": "a pointer in global memory is not supported",
    "%v = load i33, ptr %x": "integers of 33 bits are not supported",
    "%v = va_arg ptr %x, i32": "the instruction va_arg is not supported",
    "%v = call i32 @unknown(i32 1)": "the function unknown is not supported",
    "%v = call float @__nv_j0f(float 1.0)": "the function __nv_j0f is not supported",
    '%v = call i32 asm "mov.u32 $0, %smid;", "=r"()': "the inline assembly 'mov.u32 $0, %smid' is not supported",
    "%v = inttoptr i64 %n to ptr\n  %w = load i32, ptr %v": "a computed number as an address is not supported",
    "call void @llvm.memcpy.p0.p0.i64(ptr %x, ptr %x, i64 %n, i1 false)": "a copy of a computed size",
    "%v = alloca i32, i64 %n": "local memory of a computed size is not supported",
    "%f = bitcast i64 %n to i64\n  %v = call i32 %f(i32 1)": "a call through a pointer is not supported",
    "%v = atomicrmw nand ptr %x, i32 1 monotonic": "the atomic operation nand is not supported",
    "%v = atomicrmw umax ptr %x, i32 1 monotonic\n  %w = atomicrmw max ptr %x, i32 1 monotonic": "atomic operations on u32 and i32 in x",
    "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 1)": "barriers with other numbers than 0 are not supported",
    "store i32 1, ptr addrspace(3) @first\n  store i64 1, ptr addrspace(3) getelementptr (i8, ptr addrspace(3) @first, i64 4)":
        "a misaligned access to shared",
    "%v = call double @__nv_double2float_rz(double 1.0)": "does not round to the nearest",
}  # fmt: skip


@each_row(REFUSALS.items())
def test_refusals_name_the_construct(row: tuple[str, str]) -> None:
    body, message = row
    with pytest.raises(CompileError) as error:
        translated(_text("ptr %x, i64 %n", f"  {body}"), [X, ScalarParameter("n", I64)])
    (diagnostic,) = error.value.diagnostics
    assert message in diagnostic.message
