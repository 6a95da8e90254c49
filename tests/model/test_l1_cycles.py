"""L1 cycles of loads, compared with Nsight Compute on an H100 for random patterns and for two distant lines."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simtbed.machine.device import H100
from simtbed.model.access_lines import Total
from simtbed.model.launches import observe
from simtbed.reports.hardware import patterns
from simtbed.runtime.request import prepare_request

FOLDER = Path(__file__).parent
REPETITIONS = 2
"""Accesses per load."""


def rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def cycles(kernel: Any, args: Mapping[str, Any]) -> float:
    """Return the cycles of one load."""
    request = prepare_request(kernel, grid=1, block=32, args={**args, "turns": REPETITIONS}, device=H100)
    totals = observe(request, source_only=True).lines.totals
    loads = totals[totals[:, Total.ACCESSES] == REPETITIONS]
    assert len(loads) == patterns.STEPS
    return float(loads[:, Total.CYCLES].sum() / loads[:, Total.ACCESSES].sum())


@pytest.mark.parametrize("size", patterns.WIDTHS)
def test_loads_take_the_cycles_that_were_measured(size: int) -> None:
    """Nsight's cycles include a tenth for the launch; registers of 8 and 16 bytes take 2 and 4 cycles."""
    kernel, _ = patterns.WIDTHS[size]
    measured = [row for row in rows("h100_l1_loads.csv") if row["kernel"] == kernel.__name__]
    assert len(measured) == patterns.PATTERNS_PER_WIDTH
    for row, lanes in zip(measured, patterns.random_patterns(size), strict=True):
        result = cycles(kernel, patterns.from_l1(size, lanes))
        assert abs(max(result, size / 4) - float(row["cycles"])) <= 0.2 + 0.02 * result, row
        assert result >= max(float(row["wavefronts"]), float(row["tags"])) - 0.15, row


def test_tag_banks_of_distant_lines() -> None:
    """Two words in different banks take more than one cycle if both lines are in one tag bank. The array's base was
    0x1e000000 on the
    GPU, and is 2 MiB here."""
    first = 0x1E000000 // 4 - (1 << 19)
    x, out = np.zeros(first + (1 << 27) + (1 << 12), np.float32), np.zeros(32, np.float32)
    for row in rows("h100_l1_lines_apart.csv"):
        at = np.full(32, -1, np.int32)
        at[:2] = first, first + ((1 << int(row["power"])) + int(row["further"])) * 32 + 1
        result = cycles(patterns.words_from_l1, {"x": x, "at": at, "out": out, "LINE": 32})
        assert result == pytest.approx(float(row["tags"]), abs=0.01), row
