"""What a run of tests did with kernels, as plain values that pytest-xdist carries from its workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Tally:
    """launches: how many, by engine. not_run: tests that no engine could run here, with the reason. remarks: what the
    summary says besides. pins: numbers of known findings that were found. budgets: the figures measured, by test and
    name. answers: of launches, by test and engine, where they are recorded. runs: launches as `Run.json` has them, where
    they are reported. incomplete: tests that failed, and files that could not be read. skipped: reasons, by test or file.
    deselected: whether options left tests out. left_out: tests that something else left out. ended: tests that came to
    their end, passed or not. over: what budgets said of the test that runs now.
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

    def plain(self) -> dict[str, Any]:
        """Its fields."""
        return {**asdict(self), "launches": dict(self.launches)}

    def add(self, other: Mapping[str, Any]) -> None:
        """Add the fields of another one."""
        self.launches.update(other["launches"])
        for name in ("not_run", "remarks", "pins", "runs", "incomplete", "left_out", "ended"):
            getattr(self, name).extend(other[name])
        self.skipped.update(other["skipped"])
        for test, budgets in other["budgets"].items():
            self.budgets.setdefault(test, {}).update(budgets)
        for test, engines in other["answers"].items():
            for engine, lines in engines.items():
                self.answers.setdefault(test, {}).setdefault(engine, []).extend(lines)
        self.deselected |= other["deselected"]
