"""Output of commands: answers, reports and warnings on files, stdout and stderr."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from simtbed import SimtbedError
from simtbed.escaping import printable, terminal
from simtbed.kernels import Agreement
from simtbed.kernels.files import Outputs

from .. import tables
from ..launchers import Runner
from ..printing import print_message, print_text
from ..selection import find_device, is_device_file

STDERR = 2


class ReportFiles(Outputs):
    """The output files of a report. Entering it prints the sources of the devices' values to stderr.

    devices: names of devices, and TOML files, which are inputs.
    """

    def __init__(self, targets: Mapping[str, Path | None], inputs: Iterable[Path], devices: Iterable[str]) -> None:
        self.device_files = [name for name in devices if is_device_file(name)]
        super().__init__(targets, [*inputs, *map(Path, self.device_files)])

    def __enter__(self) -> ReportFiles:
        super().__enter__()
        for name in self.device_files:
            find_device(name)
        return self


def report_files(
    targets: Mapping[str, Path | None], inputs: Iterable[Path], devices: Iterable[str] = ()
) -> ReportFiles:
    """Return the output files of a report, keyed by option.

    No output may be an input or the TOML file of a device; see Outputs. Raises SimtbedError if --output, which
    receives text, has the suffix of another option, such as .json.
    """
    output = targets.get("--output")
    option = "" if output is None else f"--{output.suffix.lower().removeprefix('.')}"
    if option != "--output" and option in targets:
        raise SimtbedError(f"--output {output}: takes the report as text; {option} {output} writes such a file")
    return ReportFiles(targets, inputs, devices)


def write_report(outputs: Outputs, text: str) -> None:
    """Write a report to the file of --output, else to stdout, or to stderr if another output is stdout."""
    if (output := outputs.get("--output")) is not None:
        write_lines(output, text)
    else:
        print_text(text, stderr=outputs.take_stdout)


def program_output(outputs: Outputs) -> int | None:
    """Return the file descriptor of a program's stdout: stderr if a report or an output is written to stdout, else its own."""
    return STDERR if outputs.take_stdout or outputs.get("--output") is None else None


def write_lines(output: BinaryIO, text: str) -> None:
    """Write lines as UTF-8, escaped as for a terminal; a Document as it is, with escaped surrogates."""
    output.write(f"{terminal(text)}\n".encode(errors="backslashreplace"))


def print_report(outputs: Outputs, text: str) -> None:
    """Print a report to stdout if the answer is in a file, else to stderr.

    An error of stderr is ignored: the answer is complete.
    """
    (print_message if outputs.take_stdout else print_text)(text)


def warn(text: str) -> None:
    """Print one line to stderr; ignore an error of stderr."""
    print_message(f"simtbed: warning: {printable(text)}")


def require_report_options(engine: str, counting: bool, check: bool, json: bool) -> None:
    """Raise SimtbedError for options of the report that exclude each other."""
    require_counting_engine(engine, counting)
    if json and not (check or counting):
        raise SimtbedError("--json formats a report: add --check or --counters")


def require_counting_engine(engine: str, counting: bool) -> None:
    """Raise SimtbedError for counters on an engine that does not count."""
    if counting and engine == "cuda":
        raise SimtbedError("--counters needs an emulator, jit or numpy: the cuda engine does not count")


def require_cluster_options(cluster: str | None, counting: bool, json: bool, gpus: int) -> None:
    """Raise SimtbedError for options that need launches in this process."""
    if cluster and (counting or json or gpus > 1):
        raise SimtbedError("--dask excludes --counters, --json and --gpus: workers launch in their own processes")


def report(runner: Runner, agreement: Agreement | None, json: bool, more: Mapping[str, Any] | None = None) -> str:
    """Return the report on the agreement and the counters, each if present. more: further entries of the JSON report."""
    if json:
        content: dict[str, Any] = {"launches": runner.launches, **(more or {})}
        if agreement is not None:
            content["agreement"] = {"agrees": agreement.agrees, **asdict(agreement)}
        if runner.counters is not None:
            content |= {"counters": runner.counters.totals(), "derived": runner.counters.derived()}
        return tables.as_json(content)
    paragraphs = []
    if agreement is not None:
        a = agreement
        result = "agree" if a.agrees else f"DISAGREE ({a.differing:,} differ)"
        paragraphs.append(
            f"{a.compared:,} values and the oracle {result}: worst {a.worst:.2g} {a.unit}, tolerance {a.tolerance:.0e}"
        )
    if runner.counters is not None:
        from ..profile import counter_tables

        paragraphs.append(f"\n{counter_tables.totals(runner.counters)}\n\n{counter_tables.derived(runner.counters)}")
    return "\n".join(paragraphs)
