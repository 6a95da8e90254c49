"""Statistics of a test run, as plain values that pytest-xdist transfers from its workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


@dataclass
class Tally:
    """Launches, findings and omitted tests of one run of pytest.

    launches: number, by engine. not_run: tests that no engine could run here, with the reason. remarks: further lines of the
    summary. pins: numbers of the known findings found. budgets: the measured metrics, by test and
    name. answers: results of launches, by test and engine, if recorded. runs: launches as in `Run.json`, if reported.
    incomplete: failed tests, and unreadable files. skipped: reasons, by test or file.
    deselected: whether options deselected tests. left_out: tests deselected otherwise. ended: finished
    tests, passed or not. over: exceeded budgets of the current test. findings: the last ones, by test or file.
    """

    launches: Counter[str] = field(default_factory=Counter)
    not_run: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    pins: list[int] = field(default_factory=list)
    budgets: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    runs: list[str] = field(default_factory=list)
    incomplete: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    deselected: bool = False
    left_out: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    over: list[str] = field(default_factory=list)
    findings: dict[str, str] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Return its fields."""
        return {**asdict(self), "launches": dict(self.launches)}

    def add(self, other: Mapping[str, Any]) -> None:
        """Add the fields of another tally."""
        self.launches.update(other["launches"])
        for name in ("not_run", "remarks", "pins", "runs", "incomplete", "left_out", "ended"):
            getattr(self, name).extend(other[name])
        self.skipped.update(other["skipped"])
        self.findings.update(other["findings"])
        for test, budgets in other["budgets"].items():
            self.budgets.setdefault(test, {}).update(budgets)
        for test, engines in other["answers"].items():
            for engine, lines in engines.items():
                self.answers.setdefault(test, {}).setdefault(engine, []).extend(lines)
        self.deselected |= other["deselected"]


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the reason of a skip."""
    return str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr).removeprefix("Skipped: ")
