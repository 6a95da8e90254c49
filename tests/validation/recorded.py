"""Records of GPUs, below `tests/validation/records`: counters and answers of cases, times of launches."""

from functools import cache
from pathlib import Path
from typing import Any

from simtbed.reports.hardware import errors, record
from simtbed.reports.hardware.record import Record

ROOT = Path(__file__).parents[2]
RECORDS = Path(__file__).parent / "records"
KERNEL_CASES = "tests.validation.kernels:cases"
"""The validation kernels as a value of `--cases`."""


@cache
def load_record(name: str) -> Record:
    """Return the record of a GPU: "h200" (variants, features, examples), "kernels/h200" or "kernels/h100" (validation kernels)."""
    return record.load(RECORDS / f"{name}.json")


@cache
def load_times(name: str) -> dict[str, Any]:
    """Return the record of times: "h200", "h100", "scattered_h200" or "scattered_h100"."""
    return errors.load(RECORDS / "times" / f"{name}.json")
