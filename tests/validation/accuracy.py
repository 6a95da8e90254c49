"""Accuracy of counters and times in README.md and docs/, derived from the records.

`python -m tests.validation.accuracy --write` updates the sentences of CLAIMS. `--measure --write` first compares the emulator with
all recorded counters (some minutes) and writes `records/accuracy.toml`.
"""

import argparse
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import tomli_w
from simtbed import devices
from simtbed.kernels import FAMILIES
from simtbed.reports.hardware.cases import find
from simtbed.reports.hardware.compare import Cell, Comparison, compare
from simtbed.reports.hardware.figures import FIGURES
from simtbed.reports.hardware.record import Record
from simtbed.reports.hardware.recording import RecordingLauncher
from simtbed.testing.conformance import FEATURES

from tests.validation.cases import CASES, EXAMPLES
from tests.validation.recorded import KERNEL_CASES, RECORDS, ROOT, load_record

ACCURACY, BATCHES = RECORDS / "accuracy.toml", RECORDS / "batches.toml"
COMPARISONS = {
    "shipped_h200": ("h200", CASES),
    "validation_h200": ("kernels/h200", (KERNEL_CASES,)),
    "validation_h100": ("kernels/h100", (KERNEL_CASES,)),
}
"""By name in ACCURACY: the record and the functions of its cases."""

CLAIMS = {
    "README.md": (
        "equal in {answers.data_sets} runs of {answers.variants} variants, {answers.features} feature kernels, "
        "{answers.examples} examples and {answers.validation} validation kernels on an H200",
        "on {validation_h200.kernels} kernels, {validation_h200.memory_equal} of {validation_h200.memory} memory counters are "
        "equal, and {validation_h200.warp_instructions} of {validation_h200.kernels} instruction counts are within 5 %",
        "On {source_h200.kernels} kernels, {source_h200.memory_equal} of {source_h200.memory} memory counters of the source equal "
        "Nsight Compute's; of the instruction counts, {source_h200.warp_instructions} are within 5 %.",
        "on {times.H200.launches} launches of {times.H200.kernels} held-out kernels, the mean error is "
        "{times.H200.mean_percent} % on an H200 and {times.H100.mean_percent} % on an H100",
    ),
    "docs/evidence.md": (
        "{answers.data_sets} runs of {answers.variants} variants, {answers.features} feature kernels, "
        "{answers.examples} example kernels, {answers.validation} validation kernels",
    ),
    "docs/counters.md": (
        "| metrics of {shipped_h200.kernels} shipped and feature kernels, compiled view, H200 |",
        "| memory counters | {shipped_h200.memory_equal} of {shipped_h200.memory} |\n"
        "| warp instructions, within 5 % | {shipped_h200.warp_instructions} of {shipped_h200.kernels} |\n"
        "| threads per instruction, within 2 points | {shipped_h200.threads} of {shipped_h200.kernels} |",
        "| requests, sectors, wavefronts, bank conflicts | {source_h200.memory_equal} of {source_h200.memory} | "
        "{validation_h200.memory_equal} of {validation_h200.memory} |\n"
        "| warp instructions, within 5 % | {source_h200.warp_instructions} of {source_h200.kernels} | "
        "{validation_h200.warp_instructions} of {validation_h200.kernels} |\n"
        "| threads per instruction, within 2 points | {source_h200.threads} of {source_h200.kernels} | "
        "{validation_h200.threads} of {validation_h200.kernels} |\n| registers",
        "\n| memory counters | {validation_h200.memory_equal} of {validation_h200.memory} | "
        "{validation_h100.memory_equal} of {validation_h100.memory} |\n"
        "| warp instructions, within 5 % | {validation_h200.warp_instructions} of {validation_h200.kernels} | "
        "{validation_h100.warp_instructions} of {validation_h100.kernels} |\n"
        "| threads per instruction, within 2 points | {validation_h200.threads} of {validation_h200.kernels} | "
        "{validation_h100.threads} of {validation_h100.kernels} |",
    ),
    "docs/compiled.md": (
        "Of {validation_h200.kernels} validation kernels on an H200, {validation_h200.addresses} have the recorded executions by warps "
        "and by lanes at every address, and {validation_h200.addresses_beyond_bsync} at every address but those of BSYNC.",
    ),
    "docs/whatif.md": (
        "| H200, {times.H200.launches} launches of {times.H200.kernels} held-out kernels (batch 8) | {times.H200.mean_percent} % | "
        "{times.H200.median_percent} % | {times.H200.p90_percent} % | {times.H200.worst_percent} % |",
        "| H100, the same launches | {times.H100.mean_percent} % | {times.H100.median_percent} % | {times.H100.p90_percent} % | "
        "{times.H100.worst_percent} % |",
    ),
}
"""Sentences with values, by page."""
_FIELD = re.compile(r"\{([\w.]+)\}")


# ------------------------------------------------------------------ values
def batches() -> dict[str, dict[str, Any]]:
    """Return the held-out batches of the validation kernels, by number."""
    result: dict[str, dict[str, Any]] = tomllib.loads(BATCHES.read_text(encoding="utf-8"))["batch"]
    return result


def sample() -> list[dict[str, Any]]:
    """Return the groups of the other validation kernels, each with its reason."""
    result: list[dict[str, Any]] = tomllib.loads(BATCHES.read_text(encoding="utf-8"))["sample"]
    return result


def summary(comparison: Comparison) -> dict[str, int]:
    """Return the numbers of kernels, of memory counters, and of those within their tolerances; for executed SASS, also those of
    kernels with the recorded executions at every address, and at every address but those of BSYNC."""
    memory = [cell for cell in comparison.cells if cell.figure.name.startswith(("global_", "shared_"))]

    def matching(name: str) -> int:
        return sum(cell.within_tolerance for cell in comparison.cells if cell.figure.name == name)

    executions = comparison.executions.values()
    at_addresses = {
        "addresses": sum(not one.differing for one in executions),
        "addresses_beyond_bsync": sum(not one.beyond_bsync for one in executions),
    }
    return {
        "kernels": sum(cell.figure.name == "warp_instructions" for cell in comparison.cells),
        "memory_equal": sum(cell.within_tolerance for cell in memory),
        "memory": len(memory),
        "warp_instructions": matching("warp_instructions"),
        "threads": matching("warp_execution_efficiency"),
        **(at_addresses if executions else {}),
    }


@cache
def compared(name: str) -> Comparison:
    """Return a comparison of COMPARISONS, computed once a process."""
    record, cases = COMPARISONS[name]
    return compare(load_record(record), cases)


def source_view(name: str) -> Comparison:
    """Return a comparison of COMPARISONS with the counters of the source, without the compiler."""
    record, cases = load_record(COMPARISONS[name][0]), COMPARISONS[name][1]
    cells: list[Cell] = []
    for case in find(cases):
        launcher = RecordingLauncher("jit", devices.find(record.device))
        case.run(launcher)
        recorded = {profiled.source: profiled for profiled in record.counters.get(case.name, ())}
        for launched in launcher.kernels:
            if (profiled := recorded.get(launched.digest)) is None:
                continue
            emulated = {**launched.counters.totals(), **launched.counters.derived()}
            cells += [
                Cell(case.name, figure, emulated[figure.name], profiled.figures[figure.name])
                for figure in FIGURES
                if figure.name in emulated and figure.goal != "shown"
            ]
    return Comparison(record, tuple(cells), (), (), (), {}, {})


def measure() -> dict[str, dict[str, int]]:
    """Return the summary of each comparison, and of the source view."""
    compiled = {name: summary(compared(name)) for name in COMPARISONS}
    return compiled | {"source_h200": summary(source_view("validation_h200"))}


def _answers(record: Record, kernels: Record) -> dict[str, int]:
    """Return the numbers of recorded answers, by kind of case."""
    variants = [f"{family.name} {variant}" for family in FAMILIES.values() for variant in family.variants]
    features = {feature.name for feature in FEATURES}
    data_sets = [case for case in record.answers if " ".join(case.split(" ")[:2]) in variants and case.count(" ") == 2]
    return {
        "data_sets": len(data_sets),
        "variants": len({" ".join(case.split(" ")[:2]) for case in data_sets}),
        "features": len(features & record.answers.keys()),
        "examples": len({f"example {name}" for name in EXAMPLES} & record.answers.keys()),
        "validation": len(kernels.answers),
    }


def values() -> dict[str, Any]:
    """Return the values of the claims: stored comparisons, recorded answers, times of the last held-out batch."""
    return {
        **tomllib.loads(ACCURACY.read_text(encoding="utf-8")),
        "answers": _answers(load_record("h200"), load_record("kernels/h200")),
        "times": batches()["8"]["times"],
    }


# ------------------------------------------------------------------ pages
def _value(name: str, table: Mapping[str, Any]) -> str:
    value: Any = table
    for key in name.split("."):
        value = value[key]
    return f"{value:,}"


def rewritten(page: str, text: str, table: Mapping[str, Any]) -> str:
    """Return the text of a page with current values. Raises ValueError for a sentence of CLAIMS that the page does not have once."""
    for claim in CLAIMS[page]:
        pattern = _FIELD.sub("@@", claim)
        pattern = re.escape(pattern).replace("@@", r"[\d.,]*\d")
        current = _FIELD.sub(lambda field: _value(field[1], table), claim)
        text, count = re.subn(pattern, lambda _, current=current: current, text)  # type: ignore[misc]
        if count != 1:
            raise ValueError(f"{page} has the sentence {count} times: {claim}")
    return text


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.validation.accuracy", description=__doc__)
    parser.add_argument("--measure", action="store_true", help="compare the emulator with the recorded counters first")
    parser.add_argument("--write", action="store_true", help="update the pages")
    options = parser.parse_args()
    if options.measure:
        ACCURACY.write_text(tomli_w.dumps(measure()), encoding="utf-8")
    table = values()
    for page in CLAIMS:
        path = Path(ROOT, page)
        text = path.read_text(encoding="utf-8")
        current = rewritten(page, text, table)
        if options.write:
            path.write_text(current, encoding="utf-8")
        print(f"{page}: {'current' if text == current else 'written' if options.write else 'not current'}")


if __name__ == "__main__":
    main()
