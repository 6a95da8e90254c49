"""Barriers in shared memory, bulk copies and boxes of tensors: words and phases of barriers, copied bytes, wild addresses."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from simtbed import devices
from simtbed.language.tensor_maps import TensorMapForm
from simtbed.language.types import F32, U32
from simtbed.model.access_lines import Total
from simtbed.model.observed import tracer_of
from simtbed.sass import execution
from simtbed.sass.bulk_copy import encoded
from simtbed.sass.counts import AccessTrace, Counts
from simtbed.sass.state import ExecutionError

from tests.sass.programs import executions, run
from tests.table_checks import check_each

HEAD = (
    "S2R R0, SR_LANEID", "LDC.64 R2, c[0x0][0x210]", "LDC.64 R4, c[0x0][0x218]", "ULDC.64 UR8, c[0x0][0x210]",
    "ISETP.EQ.AND P0, PT, R0, RZ, PT", "MOV R1, 0x50",
)  # fmt: skip
COPY = ("UMOV UR10, 0x40", "UMOV UR11, URZ", "UMOV UR12, 0xffff0002", "SHF.L.U32 R8, R0, 0x3, RZ")
ARRIVE, WAIT = "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [RZ+URZ], RZ", "SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [RZ+URZ], RZ"


def word(count: int, pending: int, bytes: int = 0, parity: int = 0) -> int:
    """Return the word of a barrier of `count` arrivals."""
    return (-count % (1 << 20)) << 1 | (bytes % (1 << 22)) << 21 | (-pending % (1 << 20)) << 43 | parity << 63


def barrier(count: int) -> tuple[str, ...]:
    """Return nvcc's code of a new barrier at the address 0."""
    return (
        f"UMOV UR4, {count:#x}", "UIADD3 UR4, -UR4, 0x100000, URZ", "USHF.L.U32 UR5, UR4, 0xb, URZ",
        "USHF.L.U32 UR4, UR4, 0x1, URZ", "UMOV UR6, URZ", "SYNCS.EXCH.64 URZ, [UR6], UR4",
    )  # fmt: skip


def stored(*texts: str, result: str = "LDS.64 R6, [RZ]") -> list[int]:
    """Return R6 and R7 of each lane after a program, as one number."""
    arrays = {"data": np.arange(64, dtype=np.uint32), "out": np.zeros(64, np.uint32)}
    store = ("IMAD.WIDE.U32 R4, R0, 0x8, R4", "STG.E.64 desc[UR4][R4.64], R6", "EXIT")
    _, memory = run(*HEAD, *texts, result, *store, arrays=arrays)
    return memory.array("out").view(np.uint64).tolist()  # type: ignore[no-any-return]


def test_words() -> None:
    """Arrivals of all lanes, or of lane 0; bytes that are expected and completed; the next phase."""
    arrive, expect, complete = (
        f"@P0 SYNCS.ARRIVE.TRANS64{form} RZ, [RZ+URZ], R1" for form in ("", ".RED.A0TR", ".RED.A0TX")
    )
    cases = [
        ((), word(40, 40), 40),
        ((ARRIVE,), word(40, 8), 40),
        ((ARRIVE,), word(32, 32, parity=1), 32),
        (("@P0 SYNCS.ARRIVE.TRANS64.ART0 RZ, [RZ+URZ], R1",), word(0x52, 2), 0x52),
        ((arrive,), word(1, 0, 0x50), 1),
        ((arrive, complete), word(1, 1, parity=1), 1),
        ((expect, ARRIVE), word(32, 0, 0x50), 32),
        ((complete,), word(1, 1, -0x50), 1),
        (("SYNCS.CCTL.IV [RZ+URZ]", "FENCE.VIEW.ASYNC.S", "WARPGROUP.ARRIVE"), word(3, 3), 3),
    ]

    def check(case: tuple[tuple[str, ...], int, int]) -> None:
        assert stored(*barrier(case[2]), *case[0]) == [case[1]] * 32

    check_each(cases, check)


def test_old_words() -> None:
    """The state before each arrival, in the order of the lanes; the word before an exchange."""
    states = stored(*barrier(20), "SYNCS.ARRIVE.TRANS64.A1T0 R6, [RZ+URZ], RZ", result="NOP")
    assert states == [word(20, 20 - n % 20, parity=n // 20) for n in range(32)]
    exchange = ("SYNCS.EXCH.64 UR10, [UR6], UR4", "MOV R6, UR10", "MOV R7, UR11")
    assert stored(*barrier(9), *exchange, result="NOP") == [word(9, 9)] * 32


@pytest.mark.parametrize("form", ["", ".TRYWAIT"])
def test_phases(form: str) -> None:
    """Bit 0: the phase of parity 0 is complete; bit 1: that of parity 1."""
    check = [f"SYNCS.PHASECHK.TRANS64{form} P{n + 1}, [RZ+URZ], R{8 + n}" for n in range(2)]
    sums = ("MOV R6, 0x1", "SEL R6, R6, RZ, P1", "@P2 IADD3 R6, R6, 0x2, RZ", "MOV R7, RZ")
    for times, expected in ((0, 2), (1, 1), (2, 2)):
        texts = (*barrier(32), *[ARRIVE] * times, "MOV R8, RZ", "MOV R9, 0x80000000", *check, *sums)
        assert stored(*texts, result="NOP") == [expected] * 32


def test_waits_suspend_a_warp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warp 0 waits once, at a lower address than that of warp 1's arrival; in vain, for a time."""
    start = ("S2R R0, SR_TID.X", *barrier(32), "BAR.SYNC 0x0", "ISETP.GE.U32.AND P0, PT, R0, 0x20, PT", "@P0 BRA 0xd0")
    result = executions(*start, WAIT, "@!P1 BRA 0xa0", "EXIT", ARRIVE, "EXIT", block=64)
    assert [result[at] for at in ("0xa0", "0xb0", "0xc0", "0xd0")] == [(1, 32)] * 4
    monkeypatch.setattr(execution, "MAX_RUNS", 1000)
    with pytest.raises(ExecutionError, match="makes no progress"):
        run(*barrier(33), WAIT, "@!P1 BRA 0x60", "EXIT")


def traced(*texts: str, arrays: dict[str, Any]) -> tuple[Counts, list[Any]]:
    """Return the counts of a program, and its traces as it is interpreted and compiled."""
    traces = list[Any]()

    def tracer(accesses: Any, blocks: int) -> AccessTrace:
        traces.append(tracer_of(devices.H200, blocks, 1)(accesses, blocks))
        trace: AccessTrace = traces[-1]
        return trace

    return run(*texts, arrays=arrays, tracer=tracer)[0], traces


def test_events_of_phases() -> None:
    """A wait for the phase before the first one, which has no arrival; two phases, each with an arrival, and a wait for the first one."""
    early = "SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [RZ+URZ], R7"
    texts = (*HEAD, *barrier(1), "MOV R7, 0x80000000", early, "@P0 " + ARRIVE, WAIT, "@P0 " + ARRIVE, "EXIT")
    counts, _ = traced(*texts, arrays={"data": np.zeros(4, np.uint32)})
    events, (_, *places) = counts.phase_events(1), [n for n, one in enumerate(texts) if "SYNCS" in one]
    assert events.instruction.tolist() == places and events.complete
    assert events.phase.tolist() == [0, 1, 1, 2] and events.arrivals.tolist() == [0, 1, 1]


def test_traces_of_bulk_copies() -> None:
    """34 units are nine sectors and more of five lines, in two accesses."""
    texts = (*HEAD, *barrier(1), *COPY[:2], "UMOV UR12, 0x22", "UBLKCP.S.G [UR10], [UR8], UR12", "EXIT")
    counts, traces = traced(*texts, arrays={"data": np.zeros(256, np.uint32)})
    for trace in traces:
        (total,) = trace.totals
        assert total[[Total.ACCESSES, Total.LINES, Total.SECTORS]].tolist() == [2, 5, 17]
    assert counts.phase_events(1).arrivals.tolist() == [1]


def test_bulk_copies() -> None:
    """Two units, by one warp. To shared memory: the bytes complete a phase."""
    load = (*barrier(1), ARRIVE.replace("SYNCS", "@P0 SYNCS"), *COPY, "UIADD3 UR8, UR8, 0x10, URZ")
    copied, off = "UBLKCP.S.G [UR10], [UR8], UR12", "UISETP.NE.AND UP0, UPT, URZ, URZ, UPT"
    assert stored(*load, copied) == [word(1, 1, -0x20, parity=1)] * 32
    assert stored(*load, off, "@UP0 " + copied) == [word(1, 1, parity=1)] * 32
    values = stored(*load, copied, result="LDS.64 R6, [R8+0x40]")
    assert values == [2 * n + 4 | 2 * n + 5 << 32 for n in range(4)] + [0] * 28
    arrays = {"data": np.zeros(4, np.uint32), "out": np.full(64, 99, np.uint32)}
    store = (*COPY, "STS [R8+0x40], R0", "UBLKCP.G.S [UR8], [UR10], UR12", "UTMACMDFLUSH", "EXIT")
    _, memory = run(*HEAD, "ULDC.64 UR8, c[0x0][0x218]", *store, arrays=arrays)
    assert memory.array("out").tolist() == [0, 0, 1, 0, 2, 0, 3, 0] + [99] * 56


@pytest.mark.parametrize(
    ("change", "message"),
    [("UMOV UR10, 0x44", "0x44"), ("UMOV UR10, 0xfffff0", "0xfffff0"), ("UIADD3 UR8, UR8, 0xf0, URZ", "0x7000000f0"),
     ("UIADD3 UR8, UR8, 0x8, URZ", "0x700000008"), ("UMOV UR11, 0x4", "0x4")],
)  # fmt: skip
def test_wild_copies_end_the_execution(change: str, message: str) -> None:
    with pytest.raises(ExecutionError, match=f"the address {message} is outside of its memory.*UBLKCP"):
        stored(*barrier(1), *COPY, change, "UBLKCP.S.G [UR10], [UR8], UR12")


def boxes(*texts: str, form: TensorMapForm, out: Any = None) -> npt.NDArray[Any]:
    """Return the array `out` after a program. UR10: address of the tensor map of `data`, an 8 x 8 matrix. UR12: 0x80 in shared memory."""
    arrays = {
        "data": np.arange(64, dtype=np.uint32),
        "map": np.frombuffer(encoded(form, 0), np.uint8),
        "out": np.zeros(32, np.uint64) if out is None else out,
    }
    head = "ULDC.64 UR10, c[0x0][0x218]", "LDC.64 R4, c[0x0][0x220]", "UMOV UR12, 0x80", "SHF.L.U32 R8, R0, 0x3, RZ"
    _, memory = run(*HEAD, *head, *texts, "EXIT", arrays=arrays)
    return memory.array("data" if out is not None else "out")


def test_boxes_of_tensors() -> None:
    """Two rows of four elements, of which the first is before the tensor; the bytes of both complete a phase."""
    matrix = TensorMapForm(U32, (8, 8), (32,), (4, 2))
    load = (*barrier(1), "UMOV UR13, URZ", "UMOV UR14, 0x4", "UMOV UR15, 0xffffffff", "UTMALDG.2D [UR12], [UR10]")
    store = ("IMAD.WIDE.U32 R4, R0, 0x8, R4", "STG.E.64 desc[UR4][R4.64], R6")
    values = boxes(*load, "LDS.64 R6, [R8+0x80]", *store, form=matrix)
    assert values.tolist() == [0, 0, 4 | 5 << 32, 6 | 7 << 32] + [0] * 28
    assert boxes(*load, "LDS.64 R6, [RZ]", *store, form=matrix).tolist() == [word(1, 1, -0x20)] * 32
    nan = replace(matrix, element=F32, fill="nan")
    assert boxes(*load, "LDS.64 R6, [R8+0x80]", *store, form=nan)[:2].tolist() == [0x7FF77FF77FF77FF7] * 2
    swizzled = TensorMapForm(U32, (8, 8), (32,), (8, 8), swizzle=32)
    values = boxes(
        *load[:-2], "UMOV UR14, URZ", "UMOV UR15, URZ", load[-1], "LDS.64 R6, [R8+0x80]", *store, form=swizzled
    )
    expected = [*(4, 6, 0, 2), *(12, 14, 8, 10), *(20, 22, 16, 18), *(28, 30, 24, 26), *range(32, 64, 2)]
    assert (values & 0xFFFFFFFF).tolist() == expected  # 128 bytes further, the units are not exchanged
    changed = boxes(
        "UMOV UR13, 0x4",
        "UMOV UR14, 0x7",
        "STS.64 [R8+0x80], R0",
        "UTMASTG.2D [UR12], [UR10]",
        form=matrix,
        out=np.zeros(1),
    )
    assert changed[:60].tolist() == [*range(60)] and changed[60:].tolist() == [0, changed[61], 1, changed[63]]


@pytest.mark.parametrize(
    ("change", "message"), [("UMOV UR12, 0x44", "0x44"), ("UMOV UR12, 0xfffff0", "0xfffff0"), ("UMOV UR11, 0x4", "0x4")]
)
def test_wild_boxes_end_the_execution(change: str, message: str) -> None:
    matrix = TensorMapForm(U32, (8, 8), (32,), (4, 2))
    with pytest.raises(ExecutionError, match=f"the address {message}.* is outside of its memory.*UTMALDG"):
        boxes(
            *barrier(1),
            "UMOV UR13, URZ",
            "UMOV UR14, URZ",
            "UMOV UR15, URZ",
            change,
            "UTMALDG.2D [UR12], [UR10]",
            form=matrix,
        )


def test_all_lanes_repeat_a_loop_for_one() -> None:
    """ELECT chooses a lane that has not been chosen; BRA.U.ANY jumps with all lanes."""
    few = ("S2R R0, SR_LANEID", "ISETP.LT.U32.AND P0, PT, R0, 0x3, PT", "@P0 ELECT P2, URZ, PT")
    loop = ("@P2 PLOP3.LUT P0, PT, P2, PT, PT, 0x8, 0x0", "PLOP3.LUT P2, PT, PT, PT, PT, 0x8, 0x0")
    result = executions(*few, *loop, "@P0 BRA.U.ANY 0x20", "EXIT")
    assert list(result.values()) == [(1, 32)] * 2 + [(3, 96)] * 4 + [(1, 32)]
