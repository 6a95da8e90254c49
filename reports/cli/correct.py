"""What `simtbed correct` and `simtbed simulate` do. Each returns the exit code."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from simtbed import SimtbedError
from simtbed.kernels.correction import FAMILY
from simtbed.kernels.correction.host import files
from simtbed.kernels.correction.host.generate import genome as random_genome
from simtbed.kernels.correction.host.generate import simulate as simulated
from simtbed.kernels.correction.host.pipeline_files import Summary, Targets, correct_file
from simtbed.kernels.correction.host.problem import Bytes, Parameters
from simtbed.runtime.registry import EngineName

from .. import tables
from ..running import Runner, progress


def correct(
    source: Path, targets: Targets, parameters: Parameters, variant: str, engine: EngineName, truth: Path | None, json: bool
) -> int:  # fmt: skip
    """Correct from file to file; the report goes to stdout when the reads go to a file, to stderr otherwise."""
    if variant not in FAMILY.variants:
        raise SimtbedError(f"correction has no variant {variant!r}; it has {', '.join(FAMILY.variants)}")
    given = [path for path in (targets.output, targets.discarded, targets.log) if path]
    if len({path.resolve() for path in given}) < len(given):
        raise SimtbedError("--output, --discarded and --log are different files")
    for path in given:
        _in_a_folder(path)
    runner = Runner(engine)
    with progress(f"{variant} on {source}"):
        summary = correct_file(source, targets, parameters, variant, runner, truth)
    for warning in summary.warnings:
        print(f"simtbed: warning: {warning}", file=sys.stderr)
    to = sys.stdout if targets.output else sys.stderr
    print(tables.as_json(_content(summary, runner)) if json else _report(summary), file=to)
    return 0


def _content(summary: Summary, runner: Runner) -> dict[str, object]:
    content = asdict(summary)
    if summary.accuracy:
        content["accuracy"]["gain"] = summary.accuracy.gain
    return {**content, "launches": runner.launches, "kernel_milliseconds": runner.milliseconds}


def _report(summary: Summary) -> str:
    rows: list[list[Any]] = [
        ["reads", summary.reads], ["kept as they were", summary.unchanged], ["kept, changed", summary.changed],
        ["kept, trimmed", summary.trimmed], ["kept, shorter than k", summary.short], ["discarded", summary.discarded],
        ["bases changed", summary.edits], ["solid k-mers, both strands", summary.solid],
        ["their part of all k-mers counted", f"{100 * summary.solid_share:.1f} %"],
    ]  # fmt: skip
    text = tables.table(["correction", ""], rows)
    if summary.accuracy is None:
        return text
    a = summary.accuracy
    rows = [
        ["errors corrected", a.corrected], ["errors introduced", a.introduced], ["errors left", a.left],
        ["gain", f"{100 * a.gain:.2f} %"], ["reads without error before", f"{a.right_before:,} of {a.reads:,}"],
        ["reads without error among those kept", f"{a.kept_right:,} of {a.kept:,}"],
        ["reads without error that were discarded", a.discarded_right],
    ]  # fmt: skip
    return f"{text}\n\n{tables.table(['against the truth', ''], rows)}"


# ------------------------------------------------------------------ simulate
def simulate(
    output: Path, truth: Path | None, reference: Path | None, genome: int, coverage: float, length: str,
    error_rate: float, seed: int,
) -> int:  # fmt: skip
    """Reads with errors as FASTQ, the same without as FASTA."""
    span = _range(length)
    if genome < 1 or coverage <= 0 or not 0 <= error_rate <= 0.25:
        raise SimtbedError("--genome and --coverage are positive numbers, --error-rate is 0 to 0.25")
    for path in filter(None, (output, truth)):
        _in_a_folder(path)
    bases = _reference(reference) if reference else random_genome(seed, genome)
    if len(bases) < span[0]:
        raise SimtbedError(f"a reference of {len(bases)} bases has no reads of {span[0]}")
    number = max(round(coverage * len(bases) / (sum(span) / 2)), 1)
    made = simulated(seed, bases, number, span, error_rate)
    qualities = made.quality.tobytes().decode("ascii").split("\n")
    with files.whole_file(output) as file:
        for r, (sequence, quality) in enumerate(zip(made.reads.strings(), qualities, strict=False), 1):
            file.write(f"@read{r}\n{sequence}\n+\n{quality}\n".encode())
    if truth:
        with files.whole_file(truth) as file:
            for r, sequence in enumerate(made.truth.strings(), 1):
                file.write(f">read{r}\n{sequence}\n".encode())
    print(f"{number:,} reads of {len(bases):,} bases, {int((made.reads.text != made.truth.text).sum()):,} errors")
    return 0


def _range(text: str) -> tuple[int, int]:
    """ "36" or "30-50"."""
    first, _, last = text.partition("-")
    if not (first.isdigit() and (last or first).isdigit()) or not 1 <= int(first) <= int(last or first):
        raise SimtbedError(f"--length is a number or a range such as 30-50, not {text!r}")
    return int(first), int(last or first)


def _reference(path: Path) -> Bytes:
    """The sequences of a file, one after the other; letters that are no base are left out."""
    sequences = [record.sequence.upper() for record in files.ReadFile.find(path).records()]
    bases = np.frombuffer("".join(sequences).encode("ascii"), np.uint8)
    return bases[np.isin(bases, np.frombuffer(b"ACGT", np.uint8))]


def _in_a_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise SimtbedError(f"{path}: there is no folder {path.parent}")  # before the work, not after it
