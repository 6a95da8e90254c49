"""Barriers in shared memory and bulk copies: words and phases of barriers, copied bytes, wild addresses."""

from __future__ import annotations

import numpy as np
import pytest
from simtbed.sass import execution
from simtbed.sass.operands import UnsupportedInstruction
from simtbed.sass.state import ExecutionError

from tests.sass.programs import executions, run
from tests.table_checks import check_each

HEAD = ("S2R R0, SR_LANEID", "LDC.64 R2, c[0x0][0x210]", "LDC.64 R4, c[0x0][0x218]", "ULDC.64 UR8, c[0x0][0x210]")
FIRST = "ISETP.EQ.AND P0, PT, R0, RZ, PT"


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
    _, memory = run(
        *HEAD, *texts, result, "IMAD.WIDE.U32 R4, R0, 0x8, R4", "STG.E.64 desc[UR4][R4.64], R6", "EXIT", arrays=arrays
    )
    return memory.array("out").view(np.uint64).tolist()  # type: ignore[no-any-return]


def test_words() -> None:
    """Arrivals of all lanes, or of one; bytes that are expected and completed; the next phase."""
    at = "[RZ+URZ]"
    cases = [
        ((), 40, word(40, 40)),
        ((f"SYNCS.ARRIVE.TRANS64.A1T0 RZ, {at}, RZ",), 40, word(40, 8)),
        ((f"SYNCS.ARRIVE.TRANS64.A1T0 RZ, {at}, RZ",), 32, word(32, 32, parity=1)),
        ((f"SYNCS.ARRIVE.TRANS64.A1T0 RZ, {at}, RZ",), 16, word(16, 16)),
        ((FIRST, "MOV R1, 0x5", f"@P0 SYNCS.ARRIVE.TRANS64.ART0 RZ, {at}, R1"), 7, word(7, 2)),
        ((FIRST, "MOV R1, 0x50", f"@P0 SYNCS.ARRIVE.TRANS64 RZ, {at}, R1"), 1, word(1, 0, 0x50)),
        ((FIRST, "MOV R1, 0x50", f"@P0 SYNCS.ARRIVE.TRANS64.RED.A0TR RZ, {at}, R1"), 1, word(1, 1, 0x50)),
        ((FIRST, "MOV R1, 0x50", f"@P0 SYNCS.ARRIVE.TRANS64 RZ, {at}, R1", "MOV R1, 0x10",
          f"@P0 SYNCS.ARRIVE.TRANS64.RED.A0TX RZ, {at}, R1"), 1, word(1, 0, 0x40)),
        ((FIRST, "MOV R1, 0x50", f"@P0 SYNCS.ARRIVE.TRANS64 RZ, {at}, R1",
          f"@P0 SYNCS.ARRIVE.TRANS64.RED.A0TX RZ, {at}, R1"), 1, word(1, 1, parity=1)),
        ((FIRST, "MOV R1, 0x50", f"@P0 SYNCS.ARRIVE.TRANS64.RED.A0TX RZ, {at}, R1"), 1, word(1, 1, -0x50)),
        (("SYNCS.CCTL.IV [RZ+URZ]", "FENCE.VIEW.ASYNC.S"), 3, word(3, 3)),
    ]  # fmt: skip
    check_each(cases, lambda case: _equal(stored(*barrier(case[1]), *case[0]), [case[2]] * 32))


def _equal(actual: list[int], expected: list[int]) -> None:
    assert actual == expected


def test_states_are_those_before_each_arrival() -> None:
    arrive = "SYNCS.ARRIVE.TRANS64.A1T0 R6, [RZ+URZ], RZ"
    expected = [word(20, 20 - n % 20, parity=n // 20) for n in range(32)]
    assert stored(*barrier(20), arrive, result="NOP") == expected


def test_exchange_returns_the_old_word() -> None:
    back = ("UMOV UR6, URZ", "SYNCS.EXCH.64 UR10, [UR6], UR4", "MOV R6, UR10", "MOV R7, UR11")
    assert stored(*barrier(9), "UMOV UR4, URZ", *back, result="NOP") == [word(9, 9) & ~0] * 32


@pytest.mark.parametrize("form", ["", ".TRYWAIT"])
def test_phases(form: str) -> None:
    """Bit 0: the phase of parity 0 is complete; bit 1: that of parity 1."""
    check = [
        text
        for n, register in enumerate(("RZ", "R1"))
        for text in (
            f"SYNCS.PHASECHK.TRANS64{form} P{n + 1}, [RZ+URZ], {register}",
            f"SEL R{6 + n}, R{8 + n}, RZ, P{n + 1}",
        )
    ]
    check = ["MOV R1, 0x80000000", "MOV R8, 0x1", "MOV R9, 0x2", *check, "IADD3 R6, R6, R7, RZ", "MOV R7, RZ"]
    arrive = "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [RZ+URZ], RZ"
    for times, expected in ((0, 2), (1, 1), (2, 2)):
        assert stored(*barrier(32), *[arrive] * times, *check, result="NOP") == [expected] * 32


def test_a_warp_waits_for_another_one() -> None:
    """Warp 0 waits at a lower address than that of warp 1's arrival."""
    result = executions(
        "S2R R0, SR_TID.X", *barrier(32), "BAR.SYNC 0x0", "ISETP.GE.U32.AND P0, PT, R0, 0x20, PT", "@P0 BRA 0xd0",
        "SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [RZ+URZ], RZ", "@!P1 BRA 0xa0", "EXIT",
        "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [RZ+URZ], RZ", "EXIT", block=64,
    )  # fmt: skip
    assert result["0xa0"] == result["0xb0"] == result["0xc0"] == result["0xd0"] == (1, 32)


def test_a_phase_that_nobody_completes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lanes are suspended for a time, once for each execution."""
    texts = (
        *barrier(33),
        "SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [RZ+URZ], RZ",
        "MOV R6, 0x1",
        "SEL R6, R6, RZ, P1",
        "MOV R7, RZ",
    )
    assert stored(*texts, result="NOP") == [0] * 32
    monkeypatch.setattr(execution, "MAX_RUNS", 1000)
    with pytest.raises(ExecutionError, match="makes no progress"):
        run(*barrier(33), "SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [RZ+URZ], RZ", "@!P1 BRA 0x60", "EXIT")


COPY = ("UMOV UR10, 0x40", "UMOV UR11, URZ", "UMOV UR12, 0xffff0002")


def test_a_copy_to_shared_memory() -> None:
    """Two units, by one warp; the bytes complete the phase."""
    arrive = (FIRST, "MOV R1, 0x20", "@P0 SYNCS.ARRIVE.TRANS64 RZ, [RZ+URZ], R1")
    copy = (*COPY, "UIADD3 UR8, UR8, 0x10, URZ", "UBLKCP.S.G [UR10], [UR8], UR12")
    assert stored(*barrier(1), *arrive, *copy) == [word(1, 1, parity=1)] * 32
    row = "SHF.L.U32 R1, R0, 0x3, RZ"
    values = stored(*barrier(1), *arrive, *copy, row, result="LDS.64 R6, [R1+0x40]")
    assert values == [2 * n + 4 | 2 * n + 5 << 32 for n in range(4)] + [0] * 28
    skipped = (*copy[:-1], "UISETP.NE.AND UP0, UPT, URZ, URZ, UPT", "@UP0 UBLKCP.S.G [UR10], [UR8], UR12")
    assert stored(*barrier(1), *arrive, *skipped) == [word(1, 0, 0x20)] * 32


def test_a_copy_to_global_memory() -> None:
    texts = (
        "ULDC.64 UR8, c[0x0][0x218]", "SHF.L.U32 R1, R0, 0x2, RZ", "STS [R1+0x20], R0", *COPY, "UIADD3 UR8, UR8, 0x20, URZ",
        "UBLKCP.G.S [UR8], [UR10], UR12", "UTMACMDFLUSH", "DEPBAR.LE SB0, 0x0", "EXIT",
    )  # fmt: skip
    arrays = {"data": np.zeros(4, np.uint32), "out": np.full(32, 99, np.uint32)}
    _, memory = run(*HEAD, *texts, arrays=arrays)
    assert memory.array("out").tolist() == [99] * 8 + list(range(8, 16)) + [99] * 16


@pytest.mark.parametrize(
    ("change", "message"),
    [("UMOV UR10, 0x44", "0x44 is"), ("UMOV UR10, 0xfffff0", "0xfffff0 is"), ("UIADD3 UR8, UR8, 0xf0, URZ", "0x7000000f0 is"),
     ("UIADD3 UR8, UR8, 0x8, URZ", "0x700000008 is"), ("UMOV UR11, 0x4", "0x4 is")],
)  # fmt: skip
def test_wild_copies_end_the_execution(change: str, message: str) -> None:
    with pytest.raises(ExecutionError, match=f"the address {message} outside of its memory.*UBLKCP"):
        stored(*barrier(1), *COPY, change, "UBLKCP.S.G [UR10], [UR8], UR12")


@pytest.mark.parametrize(
    "text", ["UBLKCP.S.G.MULTICAST [UR4], [UR6], UR8", "SYNCS.ARRIVE.TRANS64.RED.A0T1 RZ, [RZ], RZ"]
)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedInstruction, match=r"at 0x0010"):
        run("NOP", text, "EXIT")


def test_all_lanes_repeat_a_loop_for_one() -> None:
    """A copy of each lane: ELECT chooses a lane that has not copied; BRA.U.ANY jumps with all lanes."""
    texts = (
        "S2R R0, SR_LANEID", "ISETP.LT.U32.AND P0, PT, R0, 0x3, PT", "@P0 ELECT P2, URZ, PT",
        "@P2 PLOP3.LUT P0, PT, P2, PT, PT, 0x8, 0x0", "PLOP3.LUT P2, PT, PT, PT, PT, 0x8, 0x0", "@P0 BRA.U.ANY 0x20", "EXIT",
    )  # fmt: skip
    assert list(executions(*texts).values()) == [(1, 32)] * 2 + [(3, 96)] * 4 + [(1, 32)]
