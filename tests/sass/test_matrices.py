"""Instructions of the tensor cores: each shape and type against the core's arithmetic, moves of matrices, missing lanes."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from simtbed.ir.matrices import INSTRUCTIONS, Instruction, moved
from simtbed.ir.tensor_cores import multiply_add
from simtbed.language.types import Vector
from simtbed.sass.counts import Counts
from simtbed.sass.execution import Program
from simtbed.sass.operands import UnsupportedInstruction
from simtbed.sass.state import ExecutionError
from simtbed.sass.translation import module_of

from tests.sass.programs import instructions, run
from tests.table_checks import check_each

H200 = (9, 0)
HEAD = ("S2R R0, SR_LANEID", "LDC.64 R2, c[0x0][0x210]", "LDC.64 R4, c[0x0][0x218]", "IMAD.WIDE.U32 R2, R0, 0x4, R2",
        "IMAD.WIDE.U32 R4, R0, 0x4, R4")  # fmt: skip
Words = npt.NDArray[np.uint32]


def results(words: Words, count: int, *texts: str) -> tuple[Words, Counts]:
    """Return R32 ... of a program, u32[count, 32]. words: those of R8 ..., u32[n, 32]."""
    loads = [f"LDG.E R{8 + n}, desc[UR4][R2.64+{128 * n:#x}]" for n in range(len(words))]
    stores = [f"STG.E desc[UR4][R4.64+{128 * n:#x}], R{32 + n}" for n in range(count)]
    arrays = {"data": words.reshape(-1), "out": np.zeros(32 * count, np.uint32)}
    counts, memory = run(*HEAD, *loads, *texts, *stores, "EXIT", arrays=arrays)
    return np.asarray(memory.array("out")).reshape(count, 32), counts


def _pairs(words: Words) -> npt.NDArray[np.uint64]:
    return words[::2].astype(np.uint64) | words[1::2].astype(np.uint64) << np.uint64(32)


def mnemonic(row: Instruction) -> str:
    shape = f"{row.m}{row.n}{row.k}"
    if row.total == "f64":
        return "DMMA.8x8x4"
    if row.total == "s32":
        return f"IMMA.{shape}.{row.a.upper()}.{row.b.upper()}"
    return f"HMMA.{shape}.{row.total.upper()}" + f".{row.a.upper()}" * (row.a != "f16")


@pytest.mark.slow
def test_products() -> None:
    draw = np.random.default_rng(1)

    def check(row: Instruction) -> None:
        wide = row.total == "f64"
        sizes = [(type.lanes if isinstance(type, Vector) else 1) * (1 + wide) for type in row.types]
        words = draw.integers(0, 1 << 32, (sum(sizes), 32), np.uint32)
        if wide:
            values = draw.standard_normal((sum(sizes) // 2, 32))
            words = values.view(np.uint64)[:, None] >> np.array([[[0]], [[32]]], np.uint64).reshape(1, 2, 1)
            words = words.astype(np.uint32).reshape(-1, 32)
        starts = np.cumsum([0, *sizes])
        own = [list(words[a:b]) for a, b in pairwise(starts)]
        columns = [".ROW", ".COL"] if row.total == "s32" else ["", ""]
        operands = [f"R{8 + at}{suffix}" for at, suffix in zip(starts, [*columns, ""], strict=False)]
        d, _ = results(words, sizes[2], f"{mnemonic(row)} R32, {', '.join(operands)}")
        if wide:
            own = [
                [
                    v[0].astype(np.uint64) | v[1].astype(np.uint64) << np.uint64(32)
                    for v in zip(x[::2], x[1::2], strict=True)
                ]
                for x in own
            ]
        expected = multiply_add(row, H200, *own)
        actual = _pairs(d) if wide else d
        assert np.array_equal(actual, np.stack(expected).view(actual.dtype))

    check_each([row for row in INSTRUCTIONS.values() if row.a[0] != "e"], check)


def test_zero_register_as_c() -> None:
    row = INSTRUCTIONS["m16n8k16.f32.f16.f16.f32"]
    words = np.random.default_rng(2).integers(0, 1 << 32, (6, 32), np.uint32)
    d, _ = results(words, 4, "HMMA.16816.F32 R32, R8, R12, RZ")
    zero = [np.zeros(32, np.uint32)] * 4
    assert np.array_equal(d, np.stack(multiply_add(row, H200, list(words[:4]), list(words[4:]), zero)))


@pytest.mark.slow
def test_moves() -> None:
    words = np.random.default_rng(3).integers(0, 1 << 32, (4, 32), np.uint32)
    row = ("SHF.L.U32 R6, R0, 0x4, RZ", "STS.128 [R6], R8")
    for count in (1, 2, 4):
        for form in ("M88", "MT88"):
            suffix = f".16.{form}" + f".{count}" * (count > 1)
            d, counts = results(words, count, *row, f"LDSM{suffix} R32, [R6]")
            expected = moved("load", form == "MT88", list(words))[:count]
            assert np.array_equal(d, expected), suffix
            # one request, a wavefront for each matrix
            assert counts.traffic[len(HEAD) + len(words) + len(row), :3].tolist() == [1, count, 0]
            back, _ = results(words, 4, *row, f"STSM{suffix} [R6], R8", "LDS.128 R32, [R6]")
            stored = moved("store", form == "MT88", list(words[:count]))
            giving = np.arange(32) < 8 * count
            assert np.array_equal(back, np.where(giving, stored, words)), suffix
    d, _ = results(words, 1, "MOVM.16.MT88 R32, R8")
    assert np.array_equal(d, moved("move", True, [words[0]])[:1])


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("@P0 HMMA.16816.F32 R32, R8, R8, R8", ExecutionError, "all lanes of a warp"),
        ("@P0 LDSM.16.M88 R32, [RZ]", ExecutionError, "all lanes of a warp"),
        ("LDSM.16.M88.4 R32, [R0]", ExecutionError, "outside of its memory"),
        ("HMMA.16832.SP.F32 R32, R8, R8, R8", UnsupportedInstruction, "no row"),
    ],
)
def test_errors(text: str, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        results(np.zeros((1, 32), np.uint32), 1, "ISETP.LT.AND P0, PT, R0, 0x5, PT", text)


def test_instructions_are_compiled() -> None:
    for text in (
        "HMMA.16816.F32 R32, R8, R12, R16", "DMMA.8x8x4 R32, R8, R10, R12", "IMMA.16816.S8.S8 R32, R8.ROW, R12.COL, R16",
        "LDSM.16.MT88.4 R32, [R0]", "STSM.16.M88.4 [R0], R8", "MOVM.16.MT88 R32, R8", "HGMMA.64x64x16.F32 R24, gdesc[UR8].tnspB, R24",
        "HGMMA.64x64x16.F32 R24, R4, gdesc[UR8], R24, !UPT, gsb0", "IGMMA.64x64x32.S8.S8 R24, gdesc[UR8], R24",
    ):  # fmt: skip
        starts, _ = json.loads(module_of(Program.from_listing(instructions(text, "EXIT")).steps)[0])
        assert starts == [0], text
