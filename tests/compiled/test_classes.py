"""Classification of opcodes."""

import pytest
from simtbed.compiled.opcode_classes import access_width, is_indexed_constant_load
from simtbed.engines.cuda.sass import Instruction


@pytest.mark.parametrize(
    ("operations", "width"),
    [
        ("LDG.E.U8 LDG.E.S8.STRONG.SYS STS.U8", 1),
        ("LDG.E.U16.CONSTANT LDG.E.S16 STG.E.U16", 2),
        ("LDG.E ATOMG.E.MIN.S32.STRONG.GPU REDG.E.ADD.F32.FTZ.RN.STRONG.GPU REDG.E.ADD.F16x2.RN ATOMS.POPC.INC.32", 4),
        (
            "LDG.E.64 REDG.E.MIN.S64.STRONG.GPU ATOMG.E.ADD.F64.RN.STRONG.GPU REDG.E.ADD.F32x2.FTZ.RN ATOMS.CAST.SPIN.64",
            8,
        ),
        ("LDG.E.128.CONSTANT LDGSTS.E.BYPASS.LTC128B.128 REDG.E.ADD.F32x4.FTZ.RN REDG.E.ADD.BF16x8.RN", 16),
        ("LDG.E.LTC128B.CONSTANT ST.E.STRONG.GPU LDSM.16.M88", 4),
        ("LDSM.16.MT88.2 STSM.16.M88.2", 8),
        ("LDSM.16.M88.4 STSM.16.MT88.4", 16),
    ],
)
def test_the_type_of_an_access_says_how_many_bytes_it_moves(operations: str, width: int) -> None:
    assert {access_width(Instruction(0, f"{operation} R0")) for operation in operations.split()} == {width}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("LDC R23, c[0x3][R16+0x4]", True), ("LDC R1, c[0x0][0x28]", False), ("LDC R10, c[0x0][RZ]", False), ("LDG.E R4, [R2]", False)],
)  # fmt: skip
def test_a_constant_load_by_register_is_indexed(text: str, expected: bool) -> None:
    assert is_indexed_constant_load(Instruction(0, text)) == expected
