"""Products of warpgroups: each type against a product of whole numbers; operands in registers, signs, transposes, predicates."""

from typing import Any

import numpy as np
import pytest
from simtbed.ir.matrices import BITS, GROUP_INSTRUCTIONS, GroupInstruction
from simtbed.sass.state import ExecutionError

from tests.sass.programs import run
from tests.table_checks import check_each

E4M3 = np.array([0, 0x38, 0x40, 0x44], np.uint8)
HEAD = (
    "S2R R0, SR_TID.X", "LDC.64 R2, c[0x0][0x210]", "LDC.64 R4, c[0x0][0x218]", "IMAD.WIDE.U32 R2, R0, 0x20, R2",
    "IMAD.WIDE.U32 R4, R0, 0x80, R4", "SHF.L.U32 R1, R0, 0x5, RZ", "LDG.E.128 R8, desc[UR4][R2.64]",
    "LDG.E.128 R12, desc[UR4][R2.64+0x10]", "STS.128 [R1], R8", "STS.128 [R1+0x10], R12", "BAR.SYNC 0x0",
    "LDG.E.128 R8, desc[UR4][R2.64+0x1000]",
)  # fmt: skip
"""Shared memory has 4096 bytes of the data; R8 to R11 have 16 of the rest, 32 a thread."""
THREAD = np.arange(128)
ROW, COLUMN = 16 * (THREAD // 32) + THREAD % 32 // 4, THREAD % 4


def bits(values: Any, type: str) -> Any:
    """Return whole numbers from -3 to 3 in a format, as bytes."""
    if type == "e4m3":
        return (E4M3[abs(values)] | (values < 0) * np.uint8(0x80))[..., None].view(np.uint8)
    if type in ("s8", "u8"):
        return values.astype(np.uint8)[..., None]
    words = values.astype(np.float16 if type in ("f16", "e5m2") else np.float32)[..., None].view(np.uint8)
    return {"e5m2": words[..., 1:], "bf16": words[..., 2:]}.get(type, words)


def described(values: Any, type: str, transposed: bool) -> bytes:
    """Return a matrix [rows, k] in shared memory: the two halves of K, blocks of 8 rows, rows of 16 bytes."""
    encoded = bits(values, type)
    blocks = encoded.reshape(len(values) // 8, 8, 2, -1, encoded.shape[-1])
    return blocks.transpose((2, 0, 3, 1, 4) if transposed else (2, 0, 1, 3, 4)).tobytes()  # type: ignore[no-any-return]


def mnemonic(row: GroupInstruction) -> str:
    instruction, shape = row.part, f"64x{row.n}x{row.part.k}"
    if instruction.total == "s32":
        return f"IGMMA.{shape}.{instruction.a.upper()}.{instruction.b.upper()}"
    if BITS[instruction.a] == 8:
        return f"QGMMA.{shape}.{instruction.total.upper()}.{instruction.a.upper()}.{instruction.b.upper()}"
    return f"HGMMA.{shape}.{instruction.total.upper()}" + f".{instruction.a.upper()}" * (instruction.a != "f16")


def check(row: GroupInstruction, flags: str = "", predicate: str = "", in_registers: bool = False) -> None:
    instruction, draw = row.part, np.random.default_rng(1)
    a, b = (
        draw.integers(-3 * (type != "u8"), 4, (n, instruction.k))
        for type, n in ((instruction.a, 64), (instruction.b, row.n))
    )
    width = 32 // BITS[instruction.a]
    k = width * COLUMN[:, None, None] + np.arange(width) + 4 * width * (np.arange(4)[:, None] // 2)
    own = bits(a[ROW[:, None, None] + 8 * (np.arange(4)[:, None] % 2), k], instruction.a).reshape(128, 16)
    shared = described(a, instruction.a, "tnspA" in flags) + described(b, instruction.b, "tnspB" in flags)
    data = shared + bytes(4096 - len(shared)) + np.concatenate([own, own], 1).tobytes()
    setup = ("UMOV UR8, 0x400000", "UMOV UR9, 0x8", f"UMOV UR10, {row.n << 16 | 0x80:#x}", "UMOV UR11, 0x8")
    value = {"f16": "0x3c003c00", "f32": "0x3f800000", "s32": "0x1"}[instruction.total]
    fill = [f"MOV R{16 + n}, {value}" for n in range(row.registers)]
    product = f"{mnemonic(row)} R16, {'R8, ' * in_registers}gdesc[UR8]{flags}, R16{predicate}, gsb0"
    stores = [f"STG.E desc[UR4][R4.64+{4 * n:#x}], R{16 + n}" for n in range(row.registers)]
    arrays = {"data": np.frombuffer(data, np.uint8), "out": np.zeros((128, 32), np.uint32)}
    _, memory = run(*HEAD, *setup, *fill, "WARPGROUP.ARRIVE", product, *stores, "EXIT", arrays=arrays, block=128)
    sums = a @ b.T * (-1) ** flags.count("neg") + (not predicate)
    words = {"f16": "<f2", "f32": "<f4", "s32": "<i4"}[instruction.total]
    actual = memory.array("out")[:, : row.registers].copy().view(words)
    n = np.arange(actual.shape[1])
    assert np.array_equal(actual, sums[ROW[:, None] + 8 * (n // 2 % 2), 2 * COLUMN[:, None] + n % 2 + 8 * (n // 4)])


@pytest.mark.slow
def test_types() -> None:
    check_each([row for row in GROUP_INSTRUCTIONS.values() if row.n in (8, 24)], check)


def test_operands() -> None:
    half, narrow = GROUP_INSTRUCTIONS["m64n24k16.f32.f16.f16"], GROUP_INSTRUCTIONS["m64n8k32.f32.e4m3.e5m2"]
    cases: list[tuple[GroupInstruction, str, str, bool]] = [
        (half, ".tnspA", "", False), (half, ".negA.tnspA.tnspB", ", !UPT", False),
        (half, ".tnspB", "", True), (half, ".negB", "", True), (half, ".negA.negB", "", False), (narrow, ".negA", ", !UPT", True),
    ]  # fmt: skip
    check_each(cases, lambda case: check(*case))


@pytest.mark.parametrize(
    ("setup", "block", "message"),
    [("NOP", 96, "four warps of a warpgroup"), ("UMOV UR5, 0x20000", 128, "base offset"), ("UMOV UR4, 0x3fff", 128, "outside of")],
)  # fmt: skip
def test_errors(setup: str, block: int, message: str) -> None:
    with pytest.raises(ExecutionError, match=message):
        run(setup, "HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT", "EXIT", block=block)
