"""Memory instructions: values, transactions, atomics in the order of lanes, wild addresses."""

import numpy as np
import pytest
from simtbed.cubin_sections import Sections
from simtbed.sass.state import ExecutionError

from tests.sass.programs import run
from tests.table_checks import check_each, each_row

OUT = ("S2R R0, SR_LANEID", "LDC.64 R2, c[0x0][0x210]")


def stored(*texts: str, result: str = "R6", **options: object) -> list[int]:
    """Return what each lane stores of a register after a program. R0 is the lane, R2 the address of an array of 64 words,
    their numbers."""
    arrays = {"data": np.arange(64, dtype=np.uint32), "out": np.zeros(32, np.uint32)}
    _, memory = run(
        *OUT, *texts, "LDC.64 R4, c[0x0][0x218]", "IMAD.WIDE.U32 R4, R0, 0x4, R4", f"STG.E desc[UR4][R4.64], {result}",
        "EXIT", arrays=arrays, **options,  # type: ignore[arg-type]
    )  # fmt: skip
    return memory.array("out").tolist()  # type: ignore[no-any-return]


LANES = list(range(32))
FEW = ("SHF.L.U32 R7, R0, 0x4, RZ", "STS.128 [R7], R0", "ISETP.LT.U32.AND P0, PT, R0, 0x5, PT", "SEL R2, R2, RZ, P0")
"""P0 holds in lanes 0 to 4; the others have a wild address."""


def test_values() -> None:
    cases = [
        (("IMAD.WIDE.U32 R8, R0, 0x4, R2", "LDG.E R6, desc[UR4][R8.64+0x4]"), [n + 1 for n in LANES]),
        (("IMAD.WIDE.U32 R8, R0, 0x8, R2", "LDG.E.64 R6, desc[UR4][R8.64]"), [2 * n for n in LANES]),
        (("LDG.E.U8 R6, desc[UR4][R2.64+0x14]",), [5] * 32),
        (("MOV R7, 0x80ff", "STS [RZ], R7", "LDS.S16 R6, [RZ]"), [0xFFFF80FF] * 32),
        (("MOV R7, 0x80ff", "STS [RZ], R7", "LDS.U8 R6, [RZ+0x1]"), [0x80] * 32),
        (("STS.U8 [R0], R0", "LDS R6, [RZ+0x4]"), [0x07060504] * 32),
        (("LDC R1, c[0x0][0x28]", "STL [R1+-0x8], R0", "LDL R6, [R1+-0x8]"), LANES),
        (("UMOV UR8, 0x4", "ULDC UR9, c[0x3][UR8]", "MOV R6, UR9"), [7] * 32),
        (("SHF.L.U32 R7, R0, 0x2, RZ", "LDC R6, c[0x3][R7]"), [n % 2 * 7 for n in LANES]),
        (("LDC.U8 R6, c[0x3][0x4]",), [7] * 32),
        (("SHF.L.U32 R7, R0, 0x2, RZ", "LDGSTS.E [R7], desc[UR4][R2.64+0x10]", "LDS R6, [R7]"), [4] * 32),
        ((*FEW, "LDGSTS.E.BYPASS.LTC128B.128 [R7], desc[UR4][R2.64+0x10], P0", "LDS R6, [R7+0xc]"), [7] * 5 + [0] * 27),
        ((*FEW, "@!P0 LDGSTS.E.64 [R7], desc[UR4][R2.64], P0", "LDS R6, [R7]"), LANES[:5] + [0] * 27),
    ]
    banks = {3: np.array([0, 7] * 16, np.uint32).tobytes()}
    check_each(cases, lambda case: _equal(stored(*case[0], banks=banks), case[1]))


def _equal(actual: list[int], expected: list[int]) -> None:
    assert actual == expected


@pytest.mark.slow
def test_atomics() -> None:
    """Each lane's old value, in the order of the lanes; then the final value of data[40]."""
    at = "desc[UR4][R2.64+0xa0]"
    cases = [
        ((f"ATOMG.E.ADD.STRONG.GPU PT, R6, {at}, R0",), [40 + n * (n - 1) // 2 for n in LANES]),
        ((f"ATOMG.E.MAX.S32.STRONG.SM PT, R6, {at}, R0",), [40] * 32),
        ((f"ATOMG.E.EXCH.STRONG.GPU PT, R6, {at}, R0",), [40, *LANES[:-1]]),
        (("MOV R7, 0x29", f"ATOMG.E.INC.STRONG.GPU PT, R6, {at}, R7"), [40, 41, *LANES[:30]]),
        (("MOV R7, 0x1", f"ATOMG.E.DEC.STRONG.GPU PT, R6, {at}, R7"), [40, *[1, 0] * 15, 1]),
        (("MOV R8, 0x28", "MOV R9, 0x5", "IADD3 R2, R2, 0xa0, RZ", "ATOMG.E.CAS.STRONG.GPU PT, R6, [R2], R8, R9"),
         [40, *[5] * 31]),
        ((f"REDG.E.ADD.STRONG.GPU {at}, R0", f"LDG.E R6, {at}"), [40 + 496] * 32),
        ((f"REDG.E.XOR.STRONG.GPU {at}, R0", f"LDG.E R6, {at}"), [40] * 32),
        (("MOV R7, 1.0", f"STG.E {at}, RZ", f"REDG.E.ADD.F32.FTZ.RN.STRONG.GPU {at}, R7", f"LDG.E R6, {at}"),
         [0x42000000] * 32),
        (("MOV R7, 0x3c003800", f"STG.E {at}, RZ", f"RED.E.ADD.F16x2.RN.STRONG.GPU {at}, R7", f"LDG.E R6, {at}"),
         [0x50004C00] * 32),
        (("MOV R7, 0x3f803f00", f"STG.E {at}, RZ", f"ATOM.E.ADD.BF16x2.RN.STRONG.GPU P0, R8, {at}, R7", f"@P0 LDG.E R6, {at}"),
         [0x42004180] * 32),
        (("MOV R8, 0x10", "S2R R9, SR_SWINHI", "STS [R8], R0", "QSPC.E.S P1, RZ, [R8]", "QSPC.E.S P2, RZ, [R2]",
          "ATOM.E.ADD.F16x2.RN.STRONG.GPU P0, R6, desc[UR4][R8.64], R7", "SEL R6, R0, RZ, P1", "@P0 MOV R6, RZ", "@P2 MOV R6, RZ"),
         LANES),
        (("MOV R9, 0x3ff00000", "MOV R8, RZ", f"STG.E.64 {at}, RZ", f"RED.E.ADD.F64.RN.STRONG.GPU {at}, R8",
          "LDG.E R6, desc[UR4][R2.64+0xa4]"), [0x40400000] * 32),
        (("ATOMS.ADD R6, [RZ], R0",), [n * (n - 1) // 2 for n in LANES]),
        (("ATOMS.POPC.INC.32 RZ, [RZ+URZ]", "LDS R6, [RZ]"), [32] * 32),
        (("ATOMS.CAST.SPIN R6, [RZ], RZ, R0",), [1, 1, *[0] * 30]),
        (("MOV R9, 0x7", "MOV R10, RZ", "MOV R11, RZ", "ATOMS.CAST.SPIN.64 R8, [RZ], R10, R8", "MOV R6, R9"), [0] * 32),
        (("ATOMS.OR RZ, [RZ], R0", "LDS R6, [RZ]"), [31] * 32),
    ]  # fmt: skip
    check_each(cases, lambda case: _equal(stored(*case[0]), case[1]))


@each_row(
    [
        (("IMAD.WIDE.U32 R8, R0, 0x4, R2", "LDG.E R6, desc[UR4][R8.64]"), [1, 4, 1]),
        (("IMAD.WIDE.U32 R8, R0, 0x8, R2", "LDG.E R6, desc[UR4][R8.64]"), [1, 8, 2]),
        (("ISETP.EQ.AND P0, PT, R0, RZ, PT", "@P0 LDG.E R6, desc[UR4][R2.64]"), [1, 1, 1]),
        (("SHF.L.U32 R7, R0, 0x3, RZ", "LDS R6, [R7]"), [1, 2, 1]),
        (("SHF.L.U32 R7, R0, 0x4, RZ", "LDS.128 R8, [R7]"), [1, 4, 0]),
        (("ATOMS.ADD R6, [RZ], R0",), [1, 32, 31]),
        (("ATOMS.POPC.INC.32 RZ, [RZ+URZ]",), [1, 1, 0]),
        (("ATOMS.CAS R6, [RZ], RZ, R0",), [1, 64, 31]),
        (("ATOMS.CAST.SPIN R6, [RZ], RZ, R0",), [1, 1, 0]),
        (("LDC R1, c[0x0][0x28]", "LDL R6, [R1+-0x8]"), [1, 0, 0]),
    ]
)
def test_transactions_follow_the_rules_of_the_machine(case: tuple[tuple[str, ...], list[int]]) -> None:
    """Requests; sectors or wavefronts; lines or conflicts."""
    counts, _ = run(*OUT, *case[0], "EXIT", arrays={"data": np.zeros(128, np.uint32)})
    assert counts.traffic[len(OUT) + len(case[0]) - 1, :3].tolist() == case[1]


@pytest.mark.parametrize(
    "text",
    ["LDG.E R6, desc[UR4][R2.64+0x100000]", "LDG.E R6, desc[UR4][R2.64+0x2]", "LDS R6, [RZ+0x100000]", "LDL R6, [RZ]",
     "LDC R6, c[0x5][0x0]", "LD.E R6, desc[UR4][RZ.64]"],
)  # fmt: skip
def test_wild_addresses_end_the_execution(text: str) -> None:
    with pytest.raises(ExecutionError):
        run(*OUT, text, "EXIT", arrays={"data": np.zeros(4, np.uint32)})


def test_any_wild_address_is_named() -> None:
    for word in (0xC0000000, 0xFFFFFFFF):
        with pytest.raises(ExecutionError, match=f"the address {word << 32:#x} is outside of its memory"):
            run(
                *OUT,
                "MOV R2, RZ",
                f"MOV R3, {word:#x}",
                "LDG.E R6, desc[UR4][R2.64]",
                "EXIT",
                arrays={"data": np.zeros(4, np.uint32)},
            )


def test_other_files_are_no_cubins() -> None:
    for data in (b"", b"\x7fELF\x01" + bytes(100), b"\x7fELF\x02" + bytes(20)):
        with pytest.raises(ValueError, match="ELF file"):
            Sections.read(data)
