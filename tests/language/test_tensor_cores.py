"""Tensor cores: an H200's results in every engine, mutations of the rule, layouts, refusals and faults."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, Global, f16, i32, u32
from simtbed.frontend.launchable import ProgramKernel
from simtbed.ir import nodes as ir
from simtbed.ir import tensor_cores
from simtbed.ir.matrices import INSTRUCTIONS, Instruction
from simtbed.language.types import I32, U32, Array
from simtbed.runtime.registry import EngineName
from simtbed.span import Span

from tests.recorded_fragments import RECORD, Values, fragments, lanes_of, recorded_rows, result
from tests.table_checks import check_each

H200 = (9, 0)
EMULATORS: tuple[EngineName, ...] = ("numpy", "jit", "python")


def _kernel(row: Instruction) -> ProgramKernel:
    """Return a kernel with one fragment a block: d[i] = mma(a[i], b[i], c[i])."""
    span = Span("mma.py", 1, 1, 1, 2)
    arrays = dict(zip("abcd", (*row.types, row.types[2]), strict=True))
    here = ir.Op(
        "add",
        (
            ir.Op("mul", (ir.Special("block.x", I32, span), ir.Const(32, I32, span)), I32, span),
            ir.Special("lane", I32, span),
        ),
        I32,
        span,
    )
    loaded = [ir.Reg(f"own_{name}", type, span) for name, type in arrays.items()]
    body: list[ir.Stmt] = [
        ir.Let(own, ir.Load(name, here, own.type, span), span) for name, own in zip("abc", loaded, strict=False)
    ]
    mma = ir.Mma(row.name, loaded[0], loaded[1], loaded[2], ir.Const(0xFFFFFFFF, U32, span), row.types[2], span)
    body += [ir.Let(loaded[3], mma, span), ir.Store("d", here, loaded[3], span)]
    params = tuple(ir.Param(name, Array(type, None, "global"), span) for name, type in arrays.items())
    return ProgramKernel(ir.Program(ir.Function("mma", params, tuple(body), None, span), ()))


def _run(row: Instruction, engine: EngineName, a: Values, b: Values, c: Values) -> Values:
    """Return the bits of D [n, m, 8] from those of A [n, m, k], B by its columns [n, 8, k], and C."""
    own = fragments(row, a, b, c)
    args: dict[str, Values] = {name: lanes.reshape(-1, lanes.shape[-1]) for name, lanes in zip("abc", own, strict=True)}
    args = {name: lanes.reshape(-1) if lanes.shape[1] == 1 else lanes for name, lanes in args.items()}
    launched = st.launch(
        _kernel(row), grid=len(a), block=32, args=args | {"d": np.zeros_like(args["c"])}, engine=engine
    )
    return result(row, np.asarray(launched["d"]).reshape(len(a), 32, -1))


@pytest.mark.parametrize("engine", EMULATORS)
def test_recorded_fragments(engine: EngineName) -> None:
    sample = slice(None, None, 6 if engine == "python" else 1)

    def check(recorded: tuple[Instruction, str, str]) -> None:
        row, c, d = recorded
        a, b = (RECORD[f"{row.a}_{name}"][sample, :, : row.k] for name in "AB")
        actual, expected = _run(row, engine, a, b, RECORD[c][sample]), RECORD[d][sample]
        assert np.array_equal(actual, expected), f"{(actual != expected).sum()} of {expected.size} differ"

    check_each(recorded_rows(), check)


def test_each_parameter_of_the_rule_shows() -> None:
    def check(changed: tuple[Instruction, str, str, dict[str, Any]]) -> None:
        row, c, d, change = changed
        a, b = (RECORD[f"{row.a}_{name}"][..., : row.k] for name in "AB")
        own = replace(tensor_cores.rule(row, H200), **change)
        assert not np.array_equal(tensor_cores.product_sums(row, own, a, b, RECORD[c]), RECORD[d])

    changes: list[dict[str, Any]] = [{"fraction": 24}, {"fraction": 26}]
    rows = [(*recorded, change) for recorded in recorded_rows() for change in changes]
    rows += [(*recorded, {"group": recorded[0].k // 2}) for recorded in recorded_rows() if recorded[0].a[0] != "e"]
    rows += [
        (*recorded, {"result": 22})
        for recorded in recorded_rows()
        if recorded[0].total == "f32" and recorded[0].a[0] != "e"
    ]
    rows += [
        (*recorded, change)
        for recorded in recorded_rows()
        if recorded[0].a == "e4m3"
        for change in ({"split": ()}, {"split": (0, 1)})
    ]
    check_each(rows, check)


@pytest.mark.slow
def test_exact_products_in_every_engine() -> None:
    """Integers and f64 are exact here, so that the layouts of all shapes show."""
    draw = np.random.default_rng(5)

    def check(case: tuple[Instruction, EngineName]) -> None:
        row, engine = case
        signed = [type != "u8" for type in (row.a, row.b)]
        a, b = (
            draw.integers(-128 if s else 0, 128 if s else 256, (3, n, row.k))
            for s, n in zip(signed, (row.m, 8), strict=True)
        )
        c = draw.integers(-(1 << 31), 1 << 31, (3, row.m, 8))
        total = np.einsum("imk,ink->imn", a, b) + c
        if row.a == "f64":
            operands, expected = [v.astype(np.float64) for v in (a, b, c)], total.astype(np.float64).view(np.uint64)
        else:
            operands, expected = [a.astype(np.uint8), b.astype(np.uint8), c.astype(np.int32)], total.astype(np.uint32)
        assert np.array_equal(_run(row, engine, *operands), expected)

    exact = [row for row in INSTRUCTIONS.values() if row.total in ("s32", "f64")]
    check_each([(row, engine) for row in exact for engine in EMULATORS], check)


def test_published_rule_of_ampere() -> None:
    """It sums 8 products, and keeps 24 bits below the largest exponent: it loses 4 * 2**-25, and 2**-24 of each of two groups."""
    row = INSTRUCTIONS["m16n8k16.f32.f16.f16.f32"]
    a, b, c = (
        np.zeros((1, *shape), type)
        for shape, type in (((16, 16), np.float16), ((8, 16), np.float16), ((16, 8), np.float32))
    )
    b[0, 0] = 2.0**-12
    b[0, 0, 0] = a[0, :2, 0] = 1
    a[0, 0, 1:5], a[0, 1, 1], a[0, 1, 8] = 2.0**-13, 2.0**-12, 2.0**-12

    def first_column(engine: EngineName, device: st.Device) -> list[float]:
        args = dict(
            zip(
                "abc",
                (lanes_of(v.view(f"u{v.itemsize}"), t, 2) for v, t in zip((a, b, c), row.types, strict=True)),
                strict=True,
            )
        )
        args = {name: own[0] for name, own in args.items()} | {"d": np.zeros((32, 4), np.float32)}
        d = st.launch(_kernel(row), grid=1, block=32, args=args, engine=engine, device=device).d
        return [float(d[0, 0]), float(d[4, 0])]

    for engine in EMULATORS:
        assert first_column(engine, st.devices.A100) == [1, 1], engine
        assert first_column(engine, st.devices.H200) == [1 + 2.0**-23, 1 + 2.0**-23], engine
    assert "published" in tensor_cores.rule(row, (8, 0)).source and "measured" in tensor_cores.rule(row, H200).source


@st.kernel
def _some_lanes(x: Global[u32], out: Global[u32], LANES: Const) -> None:
    d = st.uint2(0, 0)
    if st.thread.x < LANES:
        d = st.mma(st.uint4(x[0], x[1], x[2], x[3]), st.uint2(x[0], x[1]), st.uint2(0, 0), shape="m16n8k16", type="f16")
    out[st.thread.x] = d.x


@st.kernel
def _returned_lanes(x: Global[u32], out: Global[u32]) -> None:
    if st.thread.x == 7:
        return
    out[st.thread.x] = st.move_matrix(x[st.thread.x])


@st.kernel
def _tile_rows(tile_rows: Global[i32], out: Global[u32], COUNT: Const) -> None:
    tile = st.shared(f16, 256)
    for i in range(8):
        tile[8 * st.thread.x + i] = f16(i)
    st.sync()
    if COUNT == 1:
        out[st.thread.x] = st.load_matrix(tile, tile_rows[st.thread.x], count=1)
    else:
        out[st.thread.x] = st.load_matrix(tile, tile_rows[st.thread.x]).w


def _findings(engine: EngineName, kernel: Any, block: int = 32, **args: Any) -> list[str]:
    out = np.zeros(64, np.uint32)
    result = st.launch(kernel, grid=1, block=block, args=args | {"out": out}, engine=engine, faults="return")
    return [f"{fault.span.line} {fault.message}" for fault in result.faults]


def test_missing_lanes_and_rows_are_findings() -> None:
    x = np.zeros(64, np.uint32)
    rows = 8 * np.arange(32, dtype=np.int32)
    shifted, beyond = rows.copy(), rows.copy()
    shifted[9], beyond[20] = 4, 256
    line = _some_lanes.function.__code__.co_firstlineno
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (_some_lanes, {"x": x, "LANES": 20}, f"{line + 4} mma names lanes that are not active here: 20-31"),
        (_some_lanes, {"x": x, "LANES": 32}, ""),
        (_returned_lanes, {"x": x}, "move_matrix names lanes that are not active here: 7"),
        (_tile_rows, {"tile_rows": rows, "COUNT": 4}, ""),
        (_tile_rows, {"tile_rows": shifted, "COUNT": 1}, ""),  # rows of other lanes are not read
        (_tile_rows, {"tile_rows": beyond, "COUNT": 1}, ""),
        (_tile_rows, {"tile_rows": shifted, "COUNT": 4}, "misaligned"),
        (_tile_rows, {"tile_rows": beyond, "COUNT": 4}, "out of bounds"),
    ]

    def check(case: tuple[EngineName, tuple[Any, dict[str, Any], str]]) -> None:
        engine, (kernel, args, expected) = case
        findings = _findings(engine, kernel, **args)
        assert (not findings) if not expected else (len(findings) >= 1 and expected in findings[0]), findings

    check_each([(engine, case) for engine in EMULATORS for case in cases], check)


@pytest.mark.slow
def test_a_partial_warp_is_a_finding() -> None:
    for engine in EMULATORS:
        assert (
            "names lanes that are not active here: 20-31"
            in _findings(engine, _some_lanes, 20, x=np.zeros(64, np.uint32), LANES=32)[0]
        )


@st.kernel
def _wrong_fragment(out: Global[u32]) -> None:
    out[0] = st.mma(st.uint2(0, 0), st.uint2(0, 0), st.uint2(0, 0), shape="m16n8k16", type="f16").x


@st.kernel
def _unknown_shape(out: Global[u32]) -> None:
    out[0] = st.mma(st.uint2(0, 0), st.uint2(0, 0), st.uint2(0, 0), shape="m64n8k16", type="f16").x


def test_refusals() -> None:
    for kernel, message in (
        (_wrong_fragment, "the fragment a of m16n8k16.f16.f16.f16.f16 is uint4, this is uint2"),
        (_unknown_shape, "no mma has shape m64n8k16, operands of f16 and sums in uint2"),
    ):
        with pytest.raises(st.CompileError, match=message):
            st.launch(kernel, grid=1, block=32, args={"out": np.zeros(1, np.uint32)})
    with pytest.raises(st.LaunchError, match=r"st\.mma of m16n8k16.f16.f16.f16.f16 .*8\.0"):
        st.launch(
            _some_lanes,
            grid=1,
            block=32,
            args={"x": np.zeros(64, np.uint32), "out": np.zeros(64, np.uint32), "LANES": 32},
            device=st.devices.V100,
        )


def test_counters() -> None:
    x, out = np.zeros(64, np.uint32), np.zeros(64, np.uint32)
    for engine in ("numpy", "jit"):
        counters = st.launch(
            _some_lanes, grid=3, block=64, args={"x": x, "out": out, "LANES": 64}, engine=engine, faults="return"
        ).counters
        assert (counters.total("mma_f16"), counters.total("warp_instructions.tensor")) == (6, 6)
        args = {"tile_rows": 8 * np.arange(32, dtype=np.int32), "out": out, "COUNT": 4}
        loads = st.launch(_tile_rows, grid=1, block=32, args=args, engine=engine).counters.at(
            "st.load_matrix(tile, tile_rows[st.thread.x]).w"
        )
        assert [loads.total(f"shared_load_{name}") for name in ("requests", "wavefronts", "conflicts")] == [1, 4, 0]
        args["COUNT"] = 1
        loads = st.launch(_tile_rows, grid=1, block=32, args=args, engine=engine).counters.at("count=1")
        assert [loads.total(f"shared_load_{name}") for name in ("requests", "wavefronts", "conflicts")] == [1, 1, 0]
