"""Matrix multiply-accumulates of a warpgroup: an H200's results in every engine, layouts in shared memory, refusals and faults."""

from __future__ import annotations

import numpy as np
import pytest
import simtbed as st
from simtbed.ir.matrices import GROUP_INSTRUCTIONS
from simtbed.runtime.registry import EngineName

from tests.language import wgmma_cases
from tests.language.wgmma_cases import Case, Layout
from tests.recorded_fragments import RECORD
from tests.table_checks import check_each

EMULATORS: tuple[EngineName, ...] = ("numpy", "jit", "python")


@pytest.mark.parametrize("engine", EMULATORS)
def test_recorded_fragments(engine: EngineName) -> None:
    """Four recorded fragments are the blocks on the diagonal of a product of 64 x 32."""
    numbers = range(0, 24, 4 if engine != "python" else 12)

    def check(case: tuple[str, int]) -> None:
        type, first = case
        a, b, c = (RECORD[f"{type}_{name}"][first : first + 4] for name in "ABC")
        form = Case(
            GROUP_INSTRUCTIONS[f"m64n32k{a.shape[-1]}.f32.{type}.{type}"],
            Layout(False, 128, 16, 1024),
            Layout(False, 0, 128, 256),
        )
        sums = np.zeros((4, 16, 4, 8), np.uint32)
        sums[range(4), :, range(4)] = c
        d = wgmma_cases.run(form, a.reshape(64, -1), b.reshape(32, -1), sums.reshape(64, 32), engine)
        recorded = RECORD.get(f"{type}_D_wgmma", RECORD[f"{type}_D_mma"])[first : first + 4]
        assert np.array_equal(d.reshape(4, 16, 4, 8)[range(4), :, range(4)], recorded)

    check_each([(type, first) for type in ("f16", "bf16", "tf32", "e4m3", "e5m2") for first in numbers], check)


def _check(case: tuple[Case, EngineName]) -> None:
    form, engine = case
    a, b, c = wgmma_cases.operands(form.row, 4)
    actual, expected = wgmma_cases.run(form, a, b, c, engine), wgmma_cases.expected(form, a, b, c)
    assert np.array_equal(actual, expected), f"{form.name}: {(actual != expected).sum()} of {expected.size} differ"


def test_forms() -> None:
    check_each([(form, "jit") for form in wgmma_cases.cases()[::12]], _check)
