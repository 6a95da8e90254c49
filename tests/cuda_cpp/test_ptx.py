"""Inline PTX in CUDA C++: each row of the table that has no other test, with the answer of Python."""

import numpy as np
import pytest
import simtbed as st

from tests.table_checks import each_row
from tests.texts import texts

A, B, C = 0x89ABCDEF, 0x12345678, 0x0F1E2D3C
F, G = 1.5, -2.25
MASK = 0xFFFFFFFF
LANE = 3


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


_LIMITED = "{ .reg .pred p; .reg .u32 l; mov.u32 l, %%laneid;"
_ADDED = "@p add.u32 %0, %0, 100; }"
ROWS: list[tuple[str, int]] = [
    ("add.u32 %0, %1, %2;", A + B & MASK),
    ("sub.s32 %0, %2, %1;", B - A & MASK),
    ("mul.lo.u32 %0, %1, %2;", A * B & MASK),
    ("mul.hi.u32 %0, %1, %2;", A * B >> 32),
    ("mul.hi.s32 %0, %1, %2;", signed(A) * B >> 32 & MASK),
    ("mad.lo.s32 %0, %1, %2, %3;", A * B + C & MASK),
    ("mad.hi.u32 %0, %1, %2, %3;", (A * B >> 32) + C & MASK),
    ("{ .reg .u64 t; mul.wide.u32 t, %1, %2; cvt.u32.u64 %0, t; }", A * B & MASK),
    ("{ .reg .u64 t; .reg .u32 a, b; mul.wide.u32 t, %1, %2; mov.b64 {a, b}, t; mov.b32 %0, b; }", A * B >> 32),
    ("{ .reg .u64 t; mov.b64 t, {%1, %2}; shr.u64 t, t, 16; cvt.u32.u64 %0, t; }", (B << 32 | A) >> 16 & MASK),
    ("min.s32 %0, %1, %2;", A),
    ("max.u32 %0, %1, %2;", A),
    ("and.b32 %0, %1, %2;", A & B),
    ("not.b32 %0, %1;", ~A & MASK),
    ("shl.b32 %0, %1, 36;", 0),
    ("shr.s32 %0, %1, 40;", MASK),
    ("shr.u32 %0, %1, 4;", A >> 4),
    ("lop3.b32 %0, %1, %2, %3, 0xE8;", A & B | A & C | B & C),
    ("lop3.b32 %0, %1, %2, %3, 0x96;", A ^ B ^ C),
    ("bfe.u32 %0, %1, 4, 8;", A >> 4 & 255),
    ("bfe.s32 %0, %1, 24, 8;", A >> 24 | 0xFFFFFF00),
    ("bfi.b32 %0, %1, %2, 8, 12;", B & ~0xFFF00 | (A & 0xFFF) << 8),
    ("prmt.b32 %0, %1, %2, 0x5410;", A & 0xFFFF | (B & 0xFFFF) << 16),
    ("shf.l.wrap.b32 %0, %1, %2, 8;", (B << 8 | A >> 24) & MASK),
    ("shf.r.clamp.b32 %0, %1, %2, 40;", B),
    ("popc.b32 %0, %1;", bin(A).count("1")),
    ("clz.b32 %0, %2;", 3),
    ("brev.b32 %0, %1;", int(f"{A:032b}"[::-1], 2)),
    ("bfind.u32 %0, %2;", 28),
    ("{ .reg .u32 t; add.cc.u32 t, %1, %1; addc.u32 %0, %2, 0; }", B + 1),
    ("{ .reg .u32 t; sub.cc.u32 t, %2, %1; subc.u32 %0, %3, 0; }", C - 1),
    ("{ .reg .u32 t; mad.lo.cc.u32 t, %1, %2, %3; madc.hi.u32 %0, %1, %2, 0; }", (A * B + C) >> 32),
    ("{ .reg .pred p; setp.lt.u32 p, %1, %2; selp.b32 %0, 1, 2, p; }", 2),
    ("{ .reg .pred p; setp.lt.s32 p, %1, %2; selp.b32 %0, 1, 2, p; }", 1),
    ("{ .reg .pred p; setp.ge.s32 p, %1, %2; mov.u32 %0, 5; @p mov.u32 %0, 6; @!p add.u32 %0, %0, 10; }", 15),
    ("mov.u32 %0, %%laneid;", LANE),
    ("mov.u32 %0, %laneid;", LANE),
    ("vmin.s32.s32.s32.min %0, %1, %2, %3;", A),
    ("vadd.u32.s32.s32.sat.min %0, %1, %2, %3;", 0),
    ("vadd.s32.u32.u32.sat %0, %1, %2;", 0x7FFFFFFF),
    ("vsub.s32.s32.s32 %0, %1.h0, %2.b1;", (0xCDEF - 0x10000 - 0x56) & MASK),
    ("vabsdiff.u32.u32.u32.add %0, %2.b3, %1.b0, %3;", 0xEF - 0x12 + C),
    ("vadd.u32.s32.s32.sat %0.b2, %2, %2, %3;", 0x0FFF2D3C),
    ("vsub.u32.u32.u32 %0.h1, %2, 1, %3;", 0x56772D3C),
    ("vmad.u32.u32.u32 %0, %1.b0, %2.b3, %3;", 0xEF * 0x12 + C),
    ("set.ge.u32.s32 %0, %2, %1;", MASK),
    ("slct.u32.s32 %0, %2, %3, %1;", C),
    ("mov.u32 %0, %%tid.x;", LANE),
    ("mov.u32 %0, %%lanemask_lt;", (1 << LANE) - 1),
    ("activemask.b32 %0;", MASK),
    ("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }", MASK),
    ("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, 0xffffffff;", A),
    ("redux.sync.add.u32 %0, %2, 0xffffffff;", 32 * B & MASK),
    ("cvt.s32.s8 %0, %1;", 0xFFFFFFEF),
    ("cvt.u32.u8 %0, %1;", 0xEF),
    ("cvt.sat.u8.u32 %0, %2;", 255),
    ("{ .reg .f32 a; add.rz.f32 a, 0f3F800000, 0f33C00000; mov.b32 %0, a; }", 0x3F800000),
    ("{ .reg .f32 a; mul.rp.f32 a, 0f3F800001, 0f3F800001; mov.b32 %0, a; }", 0x3F800003),
    ("{ .reg .f32 a; mul.rm.f32 a, 0f3F800001, 0fBF800001; mov.b32 %0, a; }", 0xBF800003),
    ("{ .reg .f32 a; fma.rm.f32 a, 0f3F800000, 0f3F800000, 0fA1800000; mov.b32 %0, a; }", 0x3F7FFFFF),
    ("{ .reg .f32 a; fma.rz.f32 a, 0fBF800000, 0f3F800000, 0f21800000; mov.b32 %0, a; }", 0xBF7FFFFF),
    ("cvt.rz.f16x2.f32 %0, 0f3F801800, 0fC7C35000;", 0x3C00FBFF),
    ("{ .reg .b32 t; mov.b32 t, 0x7E003C00; set.nan.f16x2.f16x2 %0, t, t; }", 0x3C000000),
    ("atom.global.gpu.acq_rel.or.b32 %0, [%4], 0;", A),
    ("{ .reg .u16 a, b; ld.global.v2.b8 {a, b}, [%4]; cvt.u32.u8 %0, b; }", A >> 8 & 255),
    ("ld.global.ca.u32 %0, [%4];", A),
    ("ld.global.nc.L1::no_allocate.b32 %0, [%4+4];", B),
    ("{ .reg .u32 a, b; ld.global.v2.u32 {a, b}, [%4]; add.u32 %0, a, b; }", A + B & MASK),
    ("{ .reg .u64 t; cvta.to.global.u64 t, %4; ld.volatile.global.u32 %0, [t+8]; }", C),
    ("ld.acquire.gpu.global.u32 %0, [%4];", A),
    ("ld.relaxed.gpu.u32 %0, [%4];", A),
    ("ld.global.gpu.relaxed.u32 %0, [%4];", A),
    (
        "{ .reg .b64 p; createpolicy.fractional.L2::evict_last.b64 p, 1.0; "
        "ld.global.L1::evict_last.L2::cache_hint.b32 %0, [%4], p; }",
        A,
    ),
    ("{ .reg .pred p; isspacep.global p, %4; selp.b32 %0, 1, 0, p; }", 1),
    # The limits in C end at lane 17 for lane 3.
    (f"{_LIMITED} shfl.sync.down.b32 %0|p, l, 2, %3, 0xffffffff; {_ADDED}", LANE + 2 + 100),
    (f"{_LIMITED} shfl.sync.down.b32 %0|p, l, 26, %3, 0xffffffff; {_ADDED}", LANE),
    (f"{_LIMITED} shfl.sync.up.b32 %0|p, l, 1, 0x1c03, 0xffffffff; {_ADDED}", LANE),
    (f"{_LIMITED} shfl.sync.up.b32 %0|p, l, 3, 0, 0xffffffff; {_ADDED}", 100),
    (f"{_LIMITED} shfl.sync.idx.b32 %0|p, l, 9, 0x181f, 0xffffffff; {_ADDED}", 1 + 100),
    (f"{_LIMITED} shfl.sync.bfly.b32 %0|p, l, 31, %3, 0xffffffff; {_ADDED}", LANE),
    (f"{_LIMITED} setp.lt.u32 p, l, 4; vote.ballot.sync.b32 %0, p, 0xffffffff; }}", 15),
    (f"{_LIMITED} elect.sync l|p, 0xffffff00; mov.u32 %0, l; {_ADDED}", 8),
    (f"{_LIMITED} elect.sync _|p, 0xfffffff8; mov.u32 %0, 1; {_ADDED}", 101),
    ("atom.or.relaxed.gpu.b32 %0, [%4], 0;", A),
    (f"{_LIMITED} setp.eq.u32 p, l, 3; mov.u32 %0, 1; @!p exit; }}", 1),
    ("griddepcontrol.wait; membar.gl; fence.acq_rel.gpu; prefetch.global.L2 [%4]; mov.u32 %0, 7;", 7),
]
HALVES: list[tuple[str, list[float]]] = [
    ("add.f16x2 %0, %1, %2;", [F + G, G + 0.5]),
    ("fma.rn.f16x2 %0, %1, %2, %2;", [F * G + G, G * 0.5 + 0.5]),
    ("max.f16x2 %0, %1, %2;", [F, 0.5]),
    ("{ .reg .b16 a, b; mov.b32 {a, b}, %1; add.f16 a, a, b; mov.b32 %0, {a, b}; }", [F + G, G]),
    ("{ .reg .f32 a; cvt.f32.f16 a, %3; cvt.rn.f16x2.f32 %0, a, a; }", [F, F]),
]


def _unsigned(assembly: str) -> int:
    text = f"""
    __global__ void k(const unsigned *x, unsigned *out) {{
        unsigned d = 0;
        asm volatile("{assembly}" : "=r"(d) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "l"(x));
        out[threadIdx.x] = d;
    }}"""
    x = np.array([A, B, C, 0], np.uint32)
    result = st.launch(st.cuda_source(text)["k"], grid=1, block=32, args=(x, st.zeros(32, st.u32)), check="all")
    return int(result.out[LANE])


@pytest.mark.slow
@each_row(ROWS)
def test_integers_bits_predicates_warps_and_loads(row: tuple[str, int]) -> None:
    assembly, expected = row
    assert _unsigned(assembly) == expected


@pytest.mark.slow
@each_row(HALVES)
def test_halves(row: tuple[str, list[float]]) -> None:
    assembly, expected = row
    text = f"""
    __global__ void k(const unsigned *x, unsigned *out) {{
        asm("{assembly}" : "=r"(out[0]) : "r"(x[0]), "r"(x[1]), "h"((unsigned short)x[0]));
    }}"""
    x = np.array([F, G, G, 0.5], np.float16).view(np.uint32)
    out = st.launch(st.cuda_source(text)["k"], grid=1, block=1, args=(x, st.zeros(1, st.u32))).out
    assert out.view(np.float16).tolist() == expected


def test_atomics_stores_and_asynchronous_copies() -> None:
    text = texts("cuda_cpp/texts.cu")["atomics stores and asynchronous copies"]
    x = np.arange(100, 132, dtype=np.uint32)
    result = st.launch(st.cuda_source(text)["k"], grid=1, block=32, args=(x, st.zeros(66, st.u32)), check="all")
    assert result.out[:2].tolist() == [32, 31] and result.out[2::2].tolist() == x.tolist()
    assert sorted(result.out[3::2].tolist()) == list(range(32))


def test_atomics_of_vectors() -> None:
    kernel = st.cuda_source(texts("cuda_cpp/texts.cu")["atomics of vectors"])["k"]
    args = np.arange(6, dtype=np.float32), np.zeros(3, np.uint32), np.zeros(1, np.float32)
    result = st.launch(kernel, grid=1, block=1, args=args, check="all")
    assert result.x.tolist() == [1, 2, 4, 5, 4.5, 5.5] and result.old.tolist() == [6]
    assert result.halves.tolist() == [0x3C003C00, 0x40003C00, 0x3F803F80]


@pytest.mark.parametrize("form", ["min.noftz.v2.f16x2", "max.noftz.v2.bf16x2"])
def test_other_atomics_of_vectors_are_refused(form: str) -> None:
    text = f"""__global__ void k(unsigned *x) {{
        asm volatile("red.global.{form} [%0], {{%1, %1}};" :: "l"(x), "r"(0) : "memory");
    }}"""
    with pytest.raises(st.CompileError, match=f"an atomic {form[:3]} of vectors in inline assembly is not supported"):
        st.launch(st.cuda_source(text)["k"], grid=1, block=1, args=(np.zeros(2, np.uint32),))


@pytest.mark.parametrize(
    "assembly", ["bra L;", "ld.global.u32 %0, [q];", "add.u32 %0, %1;", "mbarrier.inval.shared.b64 [q];"]
)
def test_other_texts_are_refused_by_name(assembly: str) -> None:
    with pytest.raises(st.CompileError, match="inline assembly"):
        _unsigned(assembly)
