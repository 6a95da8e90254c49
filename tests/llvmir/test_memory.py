"""Pointers and memory: several memories, views, several sizes in local memory, dynamic shared memory, addresses, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.errors import CompileError
from simtbed.frontend.launchable import ProgramKernel
from simtbed.ir.names import address, component
from simtbed.language.types import F32, F64, I32, I64, U32
from simtbed.llvmir.parameters import (
    ArrayParameter,
    ConstantParameter,
    Parameter,
    ScalarParameter,
    StructParameter,
    UnusedPointer,
)

from tests.llvmir.programs import ENGINES, run, translated
from tests.table_checks import check_each

HEAD = """
@first = addrspace(3) global [32 x i32] undef
@dynamic = external addrspace(3) global [0 x float]
@more = external addrspace(3) global [0 x float]
@table = constant [4 x double] [double 1.5, double 2.5, double 3.5, double 4.5]
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier0()
declare {i32, i1} @llvm.nvvm.shfl.sync.down.i32p(i32, i32, i32, i32)
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)
declare i32 @llvm.nvvm.barrier0.popc(i32)
declare double @__nv_frexp(double, ptr)
declare i32 @vprintf(ptr, ptr)
define void @kernel(%s) {
entry:
  %%t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
"""
X, Y, OUT = ArrayParameter("x", I32, 4), ArrayParameter("y", I32, 4), ArrayParameter("out", I32, 4)
THREADS = np.arange(32)


def _text(parameters: str, body: str) -> str:
    return HEAD % parameters + body + "\n  ret void\n}\n"


def _each_engine(text: str, parameters: list[Parameter], arguments: dict[str, Any], **options: Any) -> list[Any]:
    translation = translated(text, parameters)
    return [run(translation, arguments, engine, **options) for engine in (*ENGINES, "python")]


def test_pointer_into_one_of_two_arrays() -> None:
    """A loop exchanges two pointers; the store writes into the array that the last iteration selects."""
    text = _text("ptr %x, ptr %y, i32 %n", """
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %p = phi ptr [ %x, %entry ], [ %q, %loop ]
  %q = phi ptr [ %y, %entry ], [ %p, %loop ]
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %done
done:
  %even = icmp eq i32 %n, 0
  %r = select i1 %even, ptr %q, ptr %p
  %to = getelementptr i32, ptr %r, i32 %t
  %old = load i32, ptr %to
  %new = add i32 %old, %n
  store i32 %new, ptr %to
  %ignored = atomicrmw add ptr %q, i32 1 monotonic""")  # fmt: skip
    parameters: list[Parameter] = [X, Y, ScalarParameter("n", I32)]
    for n in (3, 4):
        arguments: dict[str, Any] = {"x": THREADS.astype(np.int32), "y": 100 + THREADS.astype(np.int32)}
        arguments["n"] = np.int32(n)
        selected, other = ("x", "y") if n % 2 else ("y", "x")
        for result in _each_engine(text, parameters, arguments):
            assert np.array_equal(result[selected], arguments[selected] + n)
            assert result[other][0] == arguments[other][0] + 32


def test_items_of_a_structure_are_parameters() -> None:
    text = _text("{ i32, float } %pair, ptr %out", """
  %n = extractvalue { i32, float } %pair, 0
  %f = extractvalue { i32, float } %pair, 1
  %fi = fptosi float %f to i32
  %sum = add i32 %n, %fi
  %to = getelementptr i32, ptr %out, i32 %t
  store i32 %sum, ptr %to""")  # fmt: skip
    parameters: list[Parameter] = [StructParameter((ScalarParameter("n", I32), ScalarParameter("f", F32))), OUT]
    assert {source.parameter for source in translated(text, parameters).scalars.values()} == {2, 3}
    arguments = {"n": np.int32(3), "f": np.float32(4.0), "out": np.zeros(32, np.int32)}
    for result in _each_engine(text, parameters, arguments):
        assert (result["out"] == 7).all()


def test_fields_of_records_are_views() -> None:
    """Records of an i32 and an f64: two views with the layout of the records."""
    text = _text("ptr %x, ptr %out", """
  %record = getelementptr {i32, double}, ptr %x, i32 %t
  %field = getelementptr {i32, double}, ptr %record, i32 0, i32 1
  %a = load i32, ptr %record
  %b = load double, ptr %field
  %wide = sitofp i32 %a to double
  %sum = fadd double %wide, %b
  %to = getelementptr double, ptr %out, i32 %t
  store double %sum, ptr %to""")  # fmt: skip
    records = np.zeros(32, np.dtype([("a", np.int32), ("b", np.float64)], align=True))
    records["a"], records["b"] = THREADS, THREADS / 4
    bytes_ = records.view(np.uint8)
    view = component("x", "f64")
    arguments = {"x": bytes_.view(np.int32), view: bytes_.view(np.float64), "out": np.zeros(32)}
    for result in _each_engine(text, [ArrayParameter("x", None, 16), ArrayParameter("out", F64, 8)], arguments):
        assert np.array_equal(result["out"], THREADS * 1.25)


def test_local_memory_with_several_sizes() -> None:
    """A double stored over two i32: its halves are those of the hardware."""
    text = _text("ptr %x, ptr %out", """
  %memory = alloca [4 x i32]
  %from = getelementptr double, ptr %x, i32 %t
  %value = load double, ptr %from
  %second = getelementptr i32, ptr %memory, i32 2
  store double %value, ptr %second
  %odd = and i32 %t, 1
  %place = add i32 %odd, 2
  %half = getelementptr i32, ptr %memory, i32 %place
  %word = load i32, ptr %half
  %again = load double, ptr %second
  %same = fcmp oeq double %again, %value
  %result = select i1 %same, i32 %word, i32 -1
  %to = getelementptr i32, ptr %out, i32 %t
  store i32 %result, ptr %to""")  # fmt: skip
    x = np.random.default_rng(2).normal(size=32)
    expected = x.view(np.int32).reshape(32, 2)[THREADS, THREADS & 1]
    for result in _each_engine(text, [ArrayParameter("x", F64, 8), OUT], {"x": x, "out": np.zeros(32, np.int32)}):
        assert np.array_equal(result["out"], expected)


def test_shared_memory_with_several_sizes() -> None:
    """Doubles and words in one shared array; each lane reads a half of another lane's double."""
    text = _text("ptr %x, ptr %out", """
  %from = getelementptr double, ptr %x, i32 %t
  %value = load double, ptr %from
  %even = and i32 %t, 1
  %slot = lshr i32 %t, 1
  %own = getelementptr double, ptr addrspacecast (ptr addrspace(3) @first to ptr), i32 %slot
  %first_lane = icmp eq i32 %even, 0
  br i1 %first_lane, label %write, label %join
write:
  store double %value, ptr %own
  br label %join
join:
  call void @llvm.nvvm.barrier0()
  %word = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @first to ptr), i32 %t
  %old = atomicrmw add ptr %word, i32 1 monotonic
  %to = getelementptr i32, ptr %out, i32 %t
  store i32 %old, ptr %to""")  # fmt: skip
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
    text = _text("ptr %x, ptr %out", """
  %memory = alloca [3 x i32]
  %from = getelementptr [3 x i32], ptr %x, i32 %t
  %to = getelementptr [3 x i32], ptr %out, i32 %t
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %memory, ptr align 4 %from, i64 12, i1 false)
  call void @llvm.memmove.p0.p0.i64(ptr align 8 %to, ptr align 4 %memory, i64 12, i1 false)""")  # fmt: skip
    x = np.arange(96, dtype=np.int32)
    for result in _each_engine(text, [X, OUT], {"x": x, "out": np.zeros(96, np.int32)}):
        assert np.array_equal(result["out"], x)


def test_shared_and_constant_memory_and_collectives() -> None:
    text = _text("ptr %x, ptr %out", """
  %from = getelementptr i32, ptr %x, i32 %t
  %value = load i32, ptr %from
  %own = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @first to ptr), i32 %t
  store i32 %value, ptr %own
  call void @llvm.nvvm.barrier0()
  %mirror = sub i32 31, %t
  %other = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @first to ptr), i32 %mirror
  %a = load i32, ptr %other
  %pair = call {i32, i1} @llvm.nvvm.shfl.sync.down.i32p(i32 -1, i32 %a, i32 1, i32 31)
  %below = extractvalue {i32, i1} %pair, 0
  %big = icmp sgt i32 %value, 15
  %lanes = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %big)
  %count = call i32 @llvm.nvvm.barrier0.popc(i32 %t)
  %index = and i32 %t, 3
  %cell = getelementptr double, ptr @table, i32 %index
  %constant = load double, ptr %cell
  %whole = fptosi double %constant to i32
  %s1 = add i32 %below, %lanes
  %s2 = add i32 %s1, %count
  %s3 = add i32 %s2, %whole
  %to = getelementptr i32, ptr %out, i32 %t
  store i32 %s3, ptr %to""")  # fmt: skip
    x = (THREADS * 5 % 32).astype(np.int32)
    mirrored = x[::-1]
    below = np.append(mirrored[1:], mirrored[31])
    lanes = np.array(sum(1 << int(lane) for lane in np.flatnonzero(x > 15))).astype(np.uint32).view(np.int32)
    expected = below + lanes + 31 + (THREADS & 3) + 1
    for result in _each_engine(text, [X, OUT], {"x": x, "out": np.zeros(32, np.int32)}):
        assert np.array_equal(result["out"], expected.astype(np.int32))


def test_dynamic_shared_arrays_are_one_memory() -> None:
    text = _text("ptr %out", """
  %own = getelementptr float, ptr addrspacecast (ptr addrspace(3) @dynamic to ptr), i32 %t
  %value = sitofp i32 %t to float
  store float %value, ptr %own
  call void @llvm.nvvm.barrier0()
  %mirror = sub i32 31, %t
  %other = getelementptr float, ptr addrspacecast (ptr addrspace(3) @more to ptr), i32 %mirror
  %a = load float, ptr %other
  %bytes = call i32 asm "mov.u32 $0, %dynamic_smem_size;", "=r"()
  %size = sitofp i32 %bytes to float
  %sum = fadd float %a, %size
  %to = getelementptr float, ptr %out, i32 %t
  store float %sum, ptr %to""")  # fmt: skip
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


def test_addresses_and_parameters() -> None:
    text = _text("ptr %none, ptr %x, i32 %u, i64 %size, ptr %out", """
  store i32 1, ptr %none
  %number = ptrtoint ptr %x to i64
  %low = trunc i64 %number to i32
  %wide = zext i32 %u to i64
  %half = trunc i64 %size to i32
  %s1 = add i32 %low, %half
  %null = icmp eq ptr %x, null
  %s2 = select i1 %null, i32 -1, i32 %s1
  %s3 = lshr i32 %u, 31
  %own = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @first to ptr), i32 2
  %second = ptrtoint ptr %own to i64
  %distance = sub i64 %second, ptrtoint (ptr addrspace(3) @first to i64)
  %between = trunc i64 %distance to i32
  %s5 = add i32 %s3, %between
  %s4 = add i32 %s2, %s5
  %to = getelementptr i32, ptr %out, i32 %t
  store i32 %s4, ptr %to""")  # fmt: skip
    parameters: list[Parameter] = [UnusedPointer(), X, ScalarParameter("u", U32), ConstantParameter(40, I64), OUT]
    arguments = {address("x"): np.int64(4096), "u": np.uint32(1 << 31), "out": np.zeros(32, np.int32)}
    for result in _each_engine(text, parameters, arguments):
        assert (result["out"] == 4096 + 40 + 1 + 8).all()


def test_printf() -> None:
    text = _text("ptr %out", """
  %buffer = alloca {i32, double}
  store i32 %t, ptr %buffer
  %second = getelementptr {i32, double}, ptr %buffer, i32 0, i32 1
  store double 2.5, ptr %second
  %printed = call i32 @vprintf(ptr @format, ptr %buffer)
  store i32 0, ptr %out""").replace("@table =", '@format = constant [13 x i8] c"t %d of %g%%\\0A\\00"\n@table =')  # fmt: skip
    kernel: Any = ProgramKernel(translated(text, [OUT]).program)
    result = st.launch(kernel, grid=1, block=1, args={"out": np.zeros(1, np.int32)}, engine="numpy")
    assert [line.rpartition(": ")[2] for line in result.printed] == ["t 0 of 2.5%"]


def test_threads_that_returned_wait_at_no_barrier() -> None:
    """Two empty blocks jump to the block that returns; the code behind the barrier is in the block between them."""
    text = _text("ptr %out", """
  %inside = icmp ult i32 %t, 20
  br i1 %inside, label %next, label %leave
leave:
  br label %end
next:
  %odd = icmp eq i32 %t, 7
  br i1 %odd, label %skip, label %work
skip:
  br label %end
work:
  call void @llvm.nvvm.barrier0()
  %to = getelementptr i32, ptr %out, i32 %t
  store i32 %t, ptr %to
  br label %end
end:""")  # fmt: skip
    for result in _each_engine(text, [OUT], {"out": np.full(32, -1, np.int32)}):
        assert np.array_equal(result["out"], np.where((THREADS < 20) & (THREADS != 7), THREADS, -1))


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


def test_refusals_name_the_construct() -> None:
    def refused(row: tuple[str, str]) -> None:
        body, message = row
        with pytest.raises(CompileError) as error:
            translated(_text("ptr %x, i64 %n", f"  {body}"), [X, ScalarParameter("n", I64)])
        (diagnostic,) = error.value.diagnostics
        assert message in diagnostic.message

    check_each(REFUSALS.items(), refused)
