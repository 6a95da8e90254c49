"""How a command's answer and its report leave it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from simtbed import SimtbedError
from simtbed.kernels import Agreement
from simtbed.kernels.files import Outputs, printable

from .. import tables
from ..launchers import Runner

if TYPE_CHECKING:  # commands on files have neither targets nor, mostly, counters: what knows them is imported late
    from ..targets.target import Target


def reports(targets: Mapping[str, Path | None], inputs: Iterable[Path], device: str = "") -> Outputs:
    """The files of reports, by their options, none of which is an input or the device's file: see Outputs. Raises
    SimtbedError where --output, which takes text, names a file of a kind that has an option of its own."""
    output = targets.get("--output")
    own = "" if output is None else f"--{output.suffix.lower().removeprefix('.')}"
    if own != "--output" and own in targets:
        raise SimtbedError(f"--output {output}: takes the report as text; {own} {output} writes such a file")
    return Outputs(targets, [*inputs, *([Path(device)] if device.endswith(".toml") else [])])


def report_on(target: Target | None, output: BinaryIO | None, text: str) -> None:
    """Give a report out: to a file, or to stdout; or to stderr where stdout is the program's own.
    target: None of a run that was kept."""
    from ..targets.target import Shipped

    if output is not None:
        write_lines(output, text)
    else:
        print(text, file=sys.stdout if target is None or isinstance(target, Shipped) else sys.stderr)


def write_lines(output: BinaryIO, text: str) -> None:
    """Write lines as UTF-8; what is no character, as in names of files that are not UTF-8, is escaped."""
    output.write(f"{text}\n".encode(errors="backslashreplace"))


def tell(outputs: Outputs, text: str) -> None:
    """Print the report beside an answer: on stdout when the answer goes to a file; else on stderr, where it may be
    lost, for the answer is whole."""
    if not outputs.take_stdout:
        print(text)
        return
    with suppress(OSError):
        print(text, file=sys.stderr)


def warn(text: str) -> None:
    """One line on stderr, where it may be lost."""
    with suppress(OSError):
        print(f"simtbed: warning: {printable(text)}", file=sys.stderr)


def require_report_options(engine: str, counting: bool, check: bool, json: bool) -> None:
    """Raises SimtbedError for options of the report that do not go together."""
    if counting and engine == "cuda":
        raise SimtbedError("--counters needs an emulator, jit or numpy: the cuda engine does not count")
    if json and not (check or counting):
        raise SimtbedError("--json is about reports: ask for one, such as --check or --counters, too")


def require_cluster_options(cluster: str | None, counting: bool, json: bool, gpus: int) -> None:
    """Raises SimtbedError for options that do not go with workers that launch for themselves."""
    if cluster and (counting or json or gpus > 1):
        raise SimtbedError("--dask goes without --counters, --json and --gpus: workers launch for themselves")


def report(runner: Runner, agreement: Agreement | None, json: bool, beside: Mapping[str, Any] | None = None) -> str:
    """The agreement and the counters, as far as they were asked for. beside: what JSON holds besides."""
    if json:
        content: dict[str, Any] = {"launches": runner.launches, **(beside or {})}
        if agreement is not None:
            content["agreement"] = {"agrees": agreement.agrees, **asdict(agreement)}
        if runner.counters is not None:
            content |= {"counters": runner.counters.totals(), "derived": runner.counters.derived()}
        return tables.as_json(content)
    parts = []
    if agreement is not None:
        a = agreement
        word = "agree" if a.agrees else f"DISAGREE ({a.differing:,} differ)"
        parts.append(
            f"{a.compared:,} values and the oracle {word}: worst {a.worst:.2g} {a.unit}, tolerance {a.tolerance:.0e}"
        )
    if runner.counters is not None:
        from ..profile import counter_tables

        parts.append(f"\n{counter_tables.totals(runner.counters)}\n\n{counter_tables.derived(runner.counters)}")
    return "\n".join(parts)
