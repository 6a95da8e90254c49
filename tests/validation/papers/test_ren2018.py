"""The claims of Ren 2018's Tables 2 and 4, on rules and counters."""

from __future__ import annotations

import pytest
from simtbed.kernels.pairhmm import FAMILY, REN
from simtbed.reports.papers.ren2018 import profiled as ren2018

ROWS = pytest.mark.parametrize("printed", ren2018.PAPER, ids=lambda printed: printed.variant)


def test_every_variant_of_the_paper_has_a_row() -> None:
    assert {p.variant for p in ren2018.PAPER} == {v.name for v in FAMILY.variants.values() if v.paper == REN}


@ROWS
def test_its_registers_and_shared_memory_give_its_occupancy(printed: ren2018.Printed) -> None:
    assert ren2018.by_rule(printed) == pytest.approx(printed.occupancy, abs=0.051)  # it prints one decimal


@pytest.mark.parametrize("printed", [p for p in ren2018.PAPER if p.table == 2], ids=lambda printed: printed.variant)
def test_memory_bounds_and_shared_bytes_of_the_paper(printed: ren2018.Printed) -> None:
    result = ren2018.counted(printed)
    assert result.shared_bytes == printed.shared
    assert result.request.block == (printed.block, 1, 1)
    assert (ren2018.bound(result.counters, ren2018.K40) == "global memory") == (printed.limitation == "memory")


def test_warps_without_shared_rows_fill_more_of_the_gpu() -> None:
    """The paper's reason why `intratask-warps` beats `intratask-warp`."""
    shared = {
        p.variant: ren2018.counted(p).shared_bytes / p.block
        for p in ren2018.PAPER
        if p.variant.startswith("intratask-warp")
    }
    assert shared["intratask-warp"] > 8 * shared["intratask-warps"]
