"""Data of the installed package that derive from records: `python -m tests.validation.packaged --write`."""

import json
import sys
from typing import Any

from simtbed.kernels import FAMILIES
from simtbed.reports.hardware.record import Record
from simtbed.reports.papers import recorded

from tests.validation.recorded import ROOT, load_record

FILE = ROOT / "reports/papers" / recorded.FILE.name


def content() -> str:
    """Return the text of `reports/papers/recorded.json`."""
    return json.dumps({name: _variants(load_record(name.lower())) for name in ("H200", "H100")}, indent=1) + "\n"


def _variants(record: Record) -> dict[str, Any]:
    """Return the date of the record, and registers, milliseconds and efficiencies of the shipped variants."""
    variants = [f"{family.name} {variant}" for family in FAMILIES.values() for variant in family.variants]
    current = [name for name in variants if name not in record.waiting]
    counted = [name for name in current if name in record.counters]
    return {
        "dated": record.dated,
        "registers": {name: max(kernel.registers for kernel in record.counters[name]) for name in counted},
        "milliseconds": {
            case: entry["milliseconds"]
            for case, entry in record.answers.items()
            if "milliseconds" in entry and " ".join(case.split(" ")[:2]) in current
        },
        "warp_execution_efficiency": {
            f"{case} {kernel.kernel}": round(kernel.figures["warp_execution_efficiency"], 6)
            for case in record.counters
            if " ".join(case.split(" ")[:2]) in current and case not in record.waiting
            for kernel in record.counters[case]
        },
    }


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        FILE.write_text(content(), encoding="utf-8")
    else:
        sys.exit(0 if FILE.read_text(encoding="utf-8") == content() else f"{FILE}: not current: {__doc__}")
