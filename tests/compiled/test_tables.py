"""Loads from coefficient tables implement no source access."""

from __future__ import annotations

from dataclasses import replace

import pytest
from simtbed.compiled.coefficient_tables import coefficient_loads, table_traffic
from simtbed.compiled.instruction_counts import InstructionCount
from simtbed.compiled.kernel import compiled_kernel
from simtbed.engines.cuda.sass import Instruction
from simtbed.reports.hardware.cases import find
from simtbed.reports.hardware.recording import RecordingLauncher

from tests.compilers import needs_sass
from tests.validation.recorded import KERNEL_CASES

SINE = [
    "LDC.64 R32, c[0x4][RZ]",
    "IMAD.SHL.U32 R4, R28, 0x40, RZ",
    "LOP3.LUT R4, R4, 0x40, RZ, 0xc0, !PT",
    "IADD3 R32, P0, R4, R32, RZ",
    "LDG.E.128.CONSTANT R8, desc[UR10][R32.64]",
    "LDG.E.128.CONSTANT R12, desc[UR10][R32.64+0x10]",
]
"""How the coefficients of a sine or a cosine are found."""


def listed(*texts: str) -> list[Instruction]:
    return [Instruction(16 * n, text) for n, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("texts", "result"),
    [
        (SINE, {4, 5}),
        (["LDC.64 R4, c[0x0][0x210]", "IMAD.WIDE R4, R2, 0x4, R4", "LDG.E R6, desc[UR6][R4.64]"], set()),
        ([*SINE, "LDG.E R9, desc[UR6][R8.64]"], {4, 5}),  # a loaded address
        (["LDC.64 R4, c[0x4][RZ]", "LDC.64 R4, c[0x0][0x210]", "LDG.E R6, desc[UR6][R4.64]"], set()),
    ],
    ids=["table", "argument", "chased", "written again"],
)
def test_which_loads_are_from_tables(texts: list[str], result: set[int]) -> None:
    assert coefficient_loads(listed(*texts)) == result


def test_lanes_need_one_of_two_rows() -> None:
    load = InstructionCount(listed(*SINE)[4], (9,), 0, (), 10.0, 320.0, 10.0, 10.0, table=True)
    alone = replace(load, threads=10.0)
    plain = replace(load, table=False)
    assert table_traffic([load, plain])[9,] == pytest.approx((10.0, 20.0), rel=1e-6)
    assert table_traffic([alone])[9,] == (10.0, 10.0)


@needs_sass
def test_a_table_is_not_taken_for_the_array_of_another_line() -> None:
    """The sectors equal an H200's, except for warps whose lanes need the same row."""
    (case,) = [case for case in find([KERNEL_CASES]) if case.name == "validation lomb_periodogram"]
    launcher = RecordingLauncher("jit")
    case.run(launcher)
    memory = compiled_kernel(launcher.kernels[0], "sm_90").memory
    assert memory.counters["global_load_requests"] == 96448
    assert memory.counters["global_load_sectors"] == pytest.approx(193526, rel=0.01)
    assert any("coefficients" in each.what for each in memory.differences)
