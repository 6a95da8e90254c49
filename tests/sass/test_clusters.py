"""Clusters of blocks: barriers, shared memory of other blocks, special registers and constants."""

from typing import Any

import numpy as np
import pytest
from simtbed.sass.counts import WINDOW
from simtbed.sass.state import ExecutionError

from tests.sass.programs import executions, run
from tests.table_checks import check_each

HEAD = (
    "S2R R0, SR_TID.X", "S2R R1, SR_CTAID.X", "LDC.64 R2, c[0x0][0x210]", "S2R R4, SR_CgaCtaId", "S2R R7, SR_SWINHI",
    "IMAD R8, R1, 0x20, R0", "IMAD.WIDE.U32 R2, R8, 0x4, R2", "SHF.L.U32 R9, R0, 0x2, RZ",
)  # fmt: skip
"""R0: the thread. R4: the rank. R2: the address of a word of the thread. R7: upper word of generic addresses of shared memory. R9: the
offset of a word of the thread."""
SYNC = ("UCGABAR_ARV", "UCGABAR_WAIT")
OWN = ("LEA R5, R4, R9, 0x18", "STS [R5], R8")
"""R5: the shared address of the thread's word, which has the number of the thread in the grid."""
NEXT = ("IADD3 R6, R4, 0x1, RZ", "LOP3.LUT R6, R6, 0x3, RZ, 0xc0, !PT", "PRMT R6, R6, 0x654, R9")
"""R6: the address of the thread's word in the block with the next rank of four."""
STORE = ("STG.E desc[UR4][R2.64], R8", "EXIT")
EIGHT = np.arange(8 * 32)


def words(*texts: str, grid: tuple[int, int] = (8, 4), **options: Any) -> list[int]:
    """Return R8 of each thread after a program."""
    _, memory = run(*HEAD, *texts, *STORE, arrays={"out": np.zeros(grid[0] * 32, np.uint32)}, grid=grid, **options)
    return memory.array("out").tolist()  # type: ignore[no-any-return]


def of_next(values: Any) -> list[int]:
    """Return the values of the block with the next rank."""
    return np.roll(np.reshape(values, (2, 4, 32)), -1, axis=1).reshape(-1).tolist()


def test_memory_of_other_blocks() -> None:
    """Loads, stores and atomics by generic addresses; an arrival by a shared address; a bulk copy to the own block; addresses of
    several memories."""
    barrier = (
        "UMOV UR4, 0x1", "UIADD3 UR4, -UR4, 0x100000, URZ", "USHF.L.U32 UR5, UR4, 0xb, URZ", "USHF.L.U32 UR4, UR4, 0x1, URZ",
        "S2UR UR6, SR_CgaCtaId", "ULEA UR6, UR6, URZ, 0x18", "SYNCS.EXCH.64 URZ, [UR6], UR4",
    )  # fmt: skip
    arrive = (
        "ISETP.EQ.AND P0, PT, R0, RZ, PT",
        "@P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R6], RZ",
        "SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR6], RZ",
        "SEL R8, R8, RZ, P1",
    )
    cases: list[tuple[tuple[str, ...], list[int]]] = [
        ((*OWN, *NEXT, *SYNC, "LD.E R8, desc[UR4][R6.64]"), of_next(EIGHT)),
        ((*OWN, *NEXT, *SYNC, "ST.E [R6], R4", *SYNC, "LDS R8, [R5]"), [(b + 3) % 4 for b in range(8) for _ in range(32)]),
        ((*OWN, *NEXT, *SYNC, "ATOM.E.ADD.STRONG.GPU PT, R8, desc[UR4][R6.64], R0"), of_next(EIGHT)),
        ((*OWN, *NEXT, *SYNC, "ATOM.E.ADD.STRONG.GPU PT, RZ, desc[UR4][R6.64], R0", *SYNC, "LDS R8, [R5]"),
         (EIGHT + EIGHT % 32).tolist()),
        ((*OWN, *NEXT, *SYNC, "MOV R12, R8", "ATOM.E.CAS.STRONG.GPU PT, R8, [R6], RZ, R12", "LD.E R8, [R6]"),
         [EIGHT[0 + 128 * (b // 4) + 32 * ((b + 1) % 4) + t] or 96 for b in range(8) for t in range(32)]),
        ((*barrier, *NEXT, *SYNC, *arrive), EIGHT.tolist()),
        (("STG.E desc[UR4][R2.64], R8", *barrier, *SYNC, "UIADD3 UR10, UR6, 0x40, URZ", "UIADD3 UR11, UR6, URZ, URZ", "UMOV UR12, 0x8",
          "ULDC.64 UR8, c[0x0][0x210]", "UBLKCP.S.G [UR10], [UR8], UR12", "LEA R5, R4, R9, 0x18", "LDS R8, [R5+0x40]"),
         (EIGHT % 32).tolist()),
        (("STG.E desc[UR4][R2.64], R8", *OWN, *NEXT, *SYNC, "LOP3.LUT R10, R0, 0x1, RZ, 0xc0, !PT", "ISETP.EQ.AND P0, PT, R10, RZ, PT",
          "SEL R6, R6, R2, P0", "SEL R7, R7, R3, P0", "LD.E R6, [R6]", "MOV R8, R6"),
         np.where(EIGHT % 2 == 0, of_next(EIGHT), EIGHT).tolist()),
    ]  # fmt: skip
    check_each(cases, lambda case: _equal(words(*case[0]), case[1]))


def _equal(actual: list[int], expected: list[int]) -> None:
    assert actual == expected


def test_atomics_that_are_not_done() -> None:
    """A predicate states where an atomic operation is done: of floats in global memory, of others not in the own block. QSPC states the
    block: own or another one."""
    place = (*OWN, *NEXT, "PRMT R16, R4, 0x654, R9", "MOV R17, R7", "MOV R10, RZ", "MOV R11, RZ", *SYNC)
    bits = ("SEL R8, RZ, 0x1, P0", "@P1 IADD3 R8, R8, 0x2, RZ", "@P2 IADD3 R8, R8, 0x4, RZ")
    cases = [
        (f"ATOM.E.ADD.{form}.STRONG.GPU P0, RZ, desc[UR4][R{at}.64], R10", at, expected)
        for form, expected_bits in (("F32.FTZ.RN", (5, 3, 0)), ("F64.RN", (5, 3, 0)), ("F16x2.RN", (4, 3, 0)), ("64", (4, 3, 0)))
        for at, expected in zip((6, 16, 2), expected_bits, strict=True)
    ]  # fmt: skip
    aligned = ("SHF.L.U32 R9, R9, 0x1, RZ", "IMAD.WIDE.U32 R2, R8, 0x4, R2")

    def check(case: tuple[str, int, int]) -> None:
        text, at, expected = case
        tests = [f"QSPC.E.{form} P{n}, RZ, [R{at}]" for n, form in ((1, "S"), (2, "D"))]
        texts = (*HEAD, *aligned, *place, text, *tests, *bits, *STORE)
        _, memory = run(*texts, arrays={"out": np.zeros(512, np.uint32)}, grid=(8, 4))
        assert memory.array("out")[::2].tolist() == [expected] * 256

    check_each(cases, check)
    operand = (
        "MOV R10, 0x1",
        "MOV R11, RZ",
        "SHF.L.U32 R9, R9, 0x1, RZ",
        "LEA R5, R4, R9, 0x18",
        "STS.64 [R5], R8",
        *NEXT,
        *SYNC,
    )
    add = ("ATOM.E.ADD.64.STRONG.GPU P0, RZ, desc[UR4][R6.64], R10", *SYNC, "LDS R8, [R5]")
    assert words(*operand, *add) == (EIGHT + 1).tolist()


def test_loads_and_stores_of_the_own_block_are_counted() -> None:
    """Requests, wavefronts and conflicts of generic accesses: of lanes that access the own block; of atomics, all."""
    third = ("IMAD.HI.U32 R6, R0, 0x55555556, RZ", "IMAD R6, R6, -0x3, R0", "PRMT R6, R6, 0x654, R9")
    for place, text, expected in (
        (NEXT, "LD.E R8, [R6]", [0, 0, 0]),
        (NEXT, "ST.E [R6], R8", [0, 0, 0]),
        (third, "LD.E R8, [R6]", [6, 6, 0]),
        (third, "ST.E [R6], R8", [6, 6, 0]),
        (NEXT, "ATOM.E.ADD.STRONG.GPU PT, RZ, desc[UR4][R6.64], R0", [8, 8, 0]),
    ):
        texts = (*HEAD, *place, text, *STORE)
        counts, _ = run(*texts, arrays={"out": np.zeros(256, np.uint32)}, grid=(8, 4))
        assert counts.traffic[texts.index(text)].tolist() == [0] * WINDOW + expected, text


def test_a_wait_is_one_execution() -> None:
    """Warps that exited are not awaited: the second one of each block."""
    texts = ("S2R R0, SR_TID.X", "ISETP.GE.U32.AND P0, PT, R0, 0x20, PT", "@P0 EXIT", *SYNC, *SYNC, "EXIT")
    for grid, warps in (((4, 2), 4), ((1, 1), 1)):
        result = executions(*texts, grid=grid, block=64)
        assert all(result[at] == (warps, 32 * warps) for at in ("0x30", "0x40", "0x50", "0x60", "0x70"))


def test_barriers_order_blocks() -> None:
    """The words move by one block three times."""
    moved = (*SYNC, "LD.E R8, [R6]", *SYNC, "STS [R5], R8")
    assert words(*OWN, *NEXT, *moved, *moved, *moved) == of_next(np.array(of_next(of_next(EIGHT))))


def test_blocks_that_return_are_not_awaited() -> None:
    assert words(
        "ISETP.NE.AND P0, PT, R4, 0x2, PT", "@!P0 EXIT", *SYNC, "MOV R8, 0x7"
    ) == [7 * (b % 4 != 2) for b in range(8) for _ in range(32)]  # fmt: skip


def test_a_barrier_that_not_all_reach_ends_the_execution() -> None:
    texts = ("S2R R0, SR_TID.X", "ISETP.GE.U32.AND P0, PT, R0, 0x20, PT", "@P0 BRA 0x50", *SYNC, "BAR.SYNC 0x0", "EXIT")
    with pytest.raises(ExecutionError, match="warps of a cluster wait at different barriers"):
        run(*texts, grid=(2, 2), block=64)


@pytest.mark.parametrize(
    ("text", "message"),
    [("LD.E R8, [R6]", "0x4000000 .*, the rank 4 is of no block of a cluster of 4: LD.E"),
     ("SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R6], RZ", "0x4000000 .*, the rank 4 is of no block of a cluster of 4: SYNCS"),
     ("ST.E [R6+0x100000], R8", "0x4100000 .*, the rank 4 is of no block"),
     ("LDS R8, [R5+0x100000]", "0x100000 is outside of its memory: LDS"),
     ("LDG.E R8, desc[UR4][R6.64]", "0x104000000 is outside of its memory: LDG")],
)  # fmt: skip
def test_ranks_of_no_block_end_the_execution(text: str, message: str) -> None:
    with pytest.raises(ExecutionError, match=f"the address {message}"):
        words("MOV R5, RZ", "MOV R6, 0x4000000", text)


def test_registers_and_constants_of_clusters() -> None:
    """Rank, size, extents, number of the cluster and clusters of the grid; all ones without clusters."""
    constants = ("0x140", "0x144", "0x148", "0x14c", "0x15c", "0x160", "0x164", "0x188")
    read = "".join(f"LDC R8, c[0x0][{one}];IMAD R10, R10, 0xa, R8;" for one in constants).split(";")[:-1]
    result = ("MOV R10, RZ", *read, "MOV R8, R10")
    number = (
        "I2FP.F32.U32 R8, R1", "LDC R10, c[0x0][0x150]", "FMUL R8, R8, R10", "F2I.U32.TRUNC.NTZ R8, R8", "IMAD R8, R8, 0xa, R4",
        "S2R R10, SR_CgaSize", "IMAD R8, R8, 0xa, R10",
    )  # fmt: skip
    assert words(*result) == [14112114] * 256 and words(*result, grid=(2, 1)) == [1112111] * 64
    assert words(*number, grid=(9, 3))[::32] == [100 * (b // 3) + 10 * (b % 3) + 3 for b in range(9)]
