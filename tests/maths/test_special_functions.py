"""Approximate instructions, to the bit of an H200: special values, checksums recorded on a GPU, and nvcc's code of the fast functions.

`python -m tests.maths.test_special_functions` compares all 2^32 arguments of each instruction.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simtbed.ir.maths import Computed
from simtbed.ir.ops import TABLE

from tests.sass.programs import run
from tests.table_checks import check_each, each_row

Values = Any
INPUTS = [
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000, 0x7F7FFFFF,
    0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FA12345, 0x3F800000, 0xBF800000,
]  # fmt: skip
SPECIAL = {
    "mufu_rcp": """7f800000 ff800000 7f800000 ff800000 7f800000 ff800000 7e800000 fe800000 00000000
    80000000 00000000 80000000 7fffffff 7fffffff 7fffffff 7fffffff 3f800000 bf800000""",
    "mufu_rsq": """7f800000 ff800000 7f800000 ff800000 7f800000 ff800000 5f000000 7fffffff 1f800000
    7fffffff 00000000 7fffffff 7fffffff 7fffffff 7fffffff 7fffffff 3f800000 7fffffff""",
    "mufu_sqrt": """00000000 80000000 00000000 80000000 00000000 80000000 20000000 7fffffff 5f7fffff
    7fffffff 7f800000 7fffffff 7fffffff 7fffffff 7fffffff 7fffffff 3f800000 7fffffff""",
    "mufu_ex2": """3f800000 3f800000 3f800000 3f800000 3f800000 3f800000 3f800000 3f800000 7f800000
    00000000 7f800000 00000000 7fffffff 7fffffff 7fffffff 7fffffff 40000000 3f000000""",
    "mufu_lg2": """ff800000 ff800000 ff800000 ff800000 ff800000 ff800000 c2fbffff 7fffffff 42ffffff
    7fffffff 7f800000 7fffffff 7fffffff 7fffffff 7fffffff 7fffffff 00000000 7fffffff""",
    "mufu_sin": """00000000 80000000 00000000 80000000 00000000 80000000 00000000 80000000 00000000
    80000000 7fffffff 7fffffff 7fffffff 7fffffff 7fffffff 7fffffff 00000000 80000000""",
    "mufu_cos": """3f800000 3f800000 3f800000 3f800000 3f800000 3f800000 3f800000 3f800000 3f800000
    3f800000 7fffffff 7fffffff 7fffffff 7fffffff 7fffffff 7fffffff 3f800000 3f800000""",
    "mufu_tanh": """00000000 80000000 00000001 80000001 007fffff 807fffff 00800000 80800000 3f800000
    bf800000 3f800000 bf800000 7fffffff 7fffffff 7fffffff 7fffffff 3f42f848 bf42f848""",
    "mufu_rcp64h": """7ff00000 fff00000 7ff00000 fff00000 7f600000 ff600000 7f600000 ff600000 00600000
    80600000 00600000 80600000 00200000 80200000 005ffffe 003de022 40600000 c0600000""",
    "mufu_rsq64h": """7ff00000 fff00000 7ff00000 fff00000 5fa6a09e 7fffffff 5fa6a09e 7fffffff 2026a09e
    7fffffff 2026a09e 7fffffff 2006a09e 7fffffff 2026a09d 2015dd08 4026a09e 7fffffff""",
}
"""Results of INPUTS by instruction, hexadecimal."""
CHECKSUMS = Path(__file__).with_suffix(".npz")
"""By function of the library: a checksum of each 2^25 arguments, the sums of an H200's checksums of 2^17."""
CHUNK, CHUNKS = 1 << 17, 256
NUMBERS = np.arange(CHUNK, dtype=np.uint64)
WEIGHTS = (NUMBERS * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0xD1B54A32D192ED03)) | np.uint64(1)


def results(name: str, bits: Values) -> Values:
    """Return the results of a function for bit patterns, uint32; of a 64H function, for upper words."""
    with np.errstate(all="ignore"):
        if name.endswith("64h"):
            words = Computed(name)((bits.astype(np.uint64) << np.uint64(32)).view(np.float64))
            return (words.view(np.uint64) >> np.uint64(32)).astype(np.uint32)
        return Computed(name)(bits.view(np.float32)).view(np.uint32)


def checksum(name: str, group: int) -> int:
    total = np.uint64(0)
    for chunk in range(group * CHUNKS, (group + 1) * CHUNKS):
        values = results(name, NUMBERS.astype(np.uint32) + np.uint32(chunk * CHUNK))
        total += (WEIGHTS * values.astype(np.uint64)).sum(dtype=np.uint64)
    return int(total)


def differing(groups: Callable[[int], Iterable[int]]) -> list[str]:
    """Return functions and groups of arguments with other results than an H200's. groups: of the n-th function."""
    with np.load(CHECKSUMS) as recorded, np.errstate(over="ignore"):
        return [
            f"{name} {group}"
            for n, name in enumerate(recorded.files)
            for group in groups(n)
            if checksum(name, group) != recorded[name][group]
        ]


@each_row(SPECIAL)
def test_special_values(name: str) -> None:
    expected = [int(digits, 16) for digits in SPECIAL[name].split()]
    assert results(name, np.array(INPUTS, np.uint32)).tolist() == expected


@pytest.mark.slow
def test_checksums() -> None:
    """One group of arguments a function, another one each."""
    assert differing(lambda n: [31 + 3 * n]) == []


# ------------------------------------------------------------------ fast functions
_SMALLEST = "1.175494350822287508e-38"
_EX2 = "FSETP.GEU.AND P0, PT, R0, -126.0, PT ; @!P0 FMUL R0, R0, 0.5 ; MUFU.EX2 R7, R0 ; @!P0 FMUL R7, R7, R7"
_LG2 = (
    f"FSETP.GEU.AND P0, PT, |R0|, {_SMALLEST}, PT ; @!P0 FMUL R0, R0, 16777216.0 ; MUFU.LG2 R7, R0 ;"
    "@!P0 FADD R7, R7, -24.0"
)
_ROOT = "FSETP.GEU.AND P0, PT, |R0|, {}, PT ; @!P0 FMUL R0, R0, 16777216.0 ; MUFU.{} R7, R0 ; @!P0 FMUL R7, R7, {}"
_PERIODS = "FMUL.RZ R0, R0, 0.15915493667125701904"
_DIVIDE = (
    f"FSETP.GEU.AND P1, PT, |R1|, {_SMALLEST}, PT ; @!P1 FMUL R1, R1, 16777216.0 ; @!P1 FMUL R0, R0, 16777216.0 ;"
    "MUFU.RCP R7, R1 ; FMUL R7, R7, R0"
)
_FULL = "FSETP.GT.AND P0, PT, |R1|, 8.50705917302346158658e+37, PT ; @P0 FMUL R1, R1, 0.25 ; @P0 FMUL R0, R0, 0.25"
SASS = {
    "fast_exp2": _EX2,
    "fast_exp": f"FMUL R0, R0, 1.4426950216293334961 ; {_EX2}",
    "fast_exp10": f"FMUL R0, R0, 3.3219280242919921875 ; {_EX2}",
    "fast_log2": _LG2,
    "fast_log": f"{_LG2} ; FMUL R7, R7, 0.69314718246459960938",
    "fast_log10": f"{_LG2} ; FMUL R7, R7, 0.30103000998497009277",
    "fast_pow": f"{_LG2} ; FMUL R0, R1, R7 ; {_EX2}",
    "fast_rcp": f"FSETP.GEU.AND P1, PT, |R0|, {_SMALLEST}, PT ; FSETP.GT.AND P0, PT, |R0|, 8.50705917302346158658e+37, PT ;"
    "MOV R8, 0x4b800000 ; FSEL R8, R8, 1.0, !P1 ; FSEL R7, R8, 0.25, !P0 ; FMUL R0, R0, R7 ; MUFU.RCP R0, R0 ; FMUL R7, R7, R0",
    "fast_rsqrt": _ROOT.format(_SMALLEST, "RSQ", "4096.0"),
    "fast_sqrt": _ROOT.format(_SMALLEST, "SQRT", "0.000244140625"),
    "fast_sin": f"{_PERIODS} ; MUFU.SIN R7, R0",
    "fast_cos": f"{_PERIODS} ; MUFU.COS R7, R0",
    "fast_tan": f"{_PERIODS} ; MUFU.COS R1, R0 ; MUFU.SIN R0, R0 ; {_DIVIDE}",
    "fast_tanh": "MUFU.TANH R7, R0",
    "fast_exp2_ftz": "MUFU.EX2 R7, R0",
    "fast_log2_ftz": "MUFU.LG2 R7, R0",
    "fast_rcp_ftz": "MUFU.RCP R7, R0",
    "fast_rsqrt_ftz": "MUFU.RSQ R7, R0",
    "fast_sqrt_ftz": "MUFU.SQRT R7, R0",
    "fast_divide": _DIVIDE,
    "fast_divide_ftz": "MUFU.RCP R7, R1 ; FMUL.FTZ R7, R0, R7",
    "full_divide": f"{_FULL} ; {_DIVIDE}",
}
"""The instructions of sm_90 that nvcc 13.0 makes of each row: operands in R0 and R1, the result in R7."""
ACCESS = (
    "S2R R4, SR_TID.X", "ULDC.64 UR4, c[0x0][0x208]", "IMAD.MOV.U32 R5, RZ, RZ, 0x4", "IMAD.WIDE R2, R4, R5, c[0x0][0x210]",
    "LDG.E R0, desc[UR4][R2.64]", "IMAD.WIDE R2, R4, R5, c[0x0][0x218]", "LDG.E R1, desc[UR4][R2.64]",
    "IMAD.WIDE R2, R4, R5, c[0x0][0x220]",
)  # fmt: skip


def operands(count: int) -> tuple[Values, Values]:
    """Return pairs of f32 numbers: special values with each other, then numbers of every exponent and usual ones."""
    generator = np.random.default_rng(61)
    special = np.array(INPUTS, np.uint32).view(np.float32)
    pairs = np.array(np.meshgrid(special, special)).reshape(2, -1)
    bits = generator.integers(0, 1 << 32, (2, count), np.uint32).view(np.float32)
    usual = generator.normal(0, 8, (2, count)).astype(np.float32)
    x, y = np.concatenate([pairs, bits, usual], axis=1)
    return np.ascontiguousarray(x), np.ascontiguousarray(y)


@pytest.mark.slow
def test_fast_functions_are_nvccs_code() -> None:
    x, y = operands(350)
    assert x.size % 512 == 0

    def check(name: str) -> None:
        row = TABLE[name]
        arrays = {"x": x, "y": y, "z": np.zeros_like(x)}
        code = (*ACCESS, *(line.strip() for line in SASS[name].split(";")), "STG.E desc[UR4][R2.64], R7", "EXIT")
        _, memory = run(*code, arrays=arrays, block=x.size)
        with np.errstate(all="ignore"):
            expected = row.meaning(*(x, y)[: row.operands])
        assert row.policy_for(row.types[0]).agree(memory.array("z"), expected).all()

    assert {name for name, row in TABLE.items() if row.llvm.startswith(("$fast_", "$mufu_", "$full_"))} == SASS.keys()
    check_each(SASS, check)


if __name__ == "__main__":
    raise SystemExit("\n".join(differing(lambda n: range(128))) or None)
