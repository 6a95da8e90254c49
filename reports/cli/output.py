"""How a command's answer and its report leave it."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from simtbed import SimtbedError
from simtbed.kernels import Agreement

from .. import tables
from ..launchers import Runner


def require_folder(path: Path | None) -> None:
    """Raises SimtbedError where a file cannot be written because its folder is not there: before the work, not after it."""
    if path is not None and not path.parent.is_dir():
        raise SimtbedError(f"{path}: there is no folder {path.parent}")


def report_stream(target: Path | None) -> TextIO:
    """Where the report goes: stdout when the answer goes to a file, stderr otherwise."""
    return sys.stderr if target is None else sys.stdout


def require_report_options(engine: str, counting: bool, check: bool, json: bool) -> None:
    """Raises SimtbedError for options of the report that do not go together."""
    if counting and engine == "cuda":
        raise SimtbedError("--counters needs an emulator, jit or numpy: the cuda engine does not count")
    if json and not (check or counting):
        raise SimtbedError("--json is about reports: ask for --check or --counters too")


def print_report(runner: Runner, agreement: Agreement | None, json: bool, to: TextIO) -> None:
    """The agreement and the counters, as far as they were asked for."""
    if json:
        content: dict[str, Any] = {"launches": runner.launches}
        if agreement is not None:
            content["agreement"] = {"agrees": agreement.agrees, **asdict(agreement)}
        if runner.counters is not None:
            content |= {"counters": runner.counters.totals(), "derived": runner.counters.derived()}
        print(tables.as_json(content), file=to)
        return
    if agreement is not None:
        a = agreement
        word = "agree" if a.agrees else f"DISAGREE ({a.differing:,} differ)"
        print(
            f"{a.compared:,} values and the oracle {word}: worst {a.worst:.2g} {a.unit}, tolerance {a.tolerance:.0e}",
            file=to,
        )
    if runner.counters is not None:
        print(f"\n{tables.totals(runner.counters)}\n\n{tables.derived(runner.counters)}", file=to)
