"""Budgets: metrics of launches, compared with the baselines of a project."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from ..documents import joined, require_each, text_of, toml_of
from ..errors import Diagnostic, SimtbedError
from ..escaping import printable
from ..profiler.profile import Profile
from ..runtime.engine import Request, Resources
from ..runtime.result import Result, details_of
from ..span import Span
from .compiling import architecture, built_for
from .figures import COMPILED, Figures, changed_lines, compared, explained, figures, improvement
from .tally import Tally
from .written import write

FILE = Path(".simtbed", "budgets.toml")
"""The file of baselines, relative to pytest's root folder."""
KIND = "budget"
"""Kind of the finding for a kernel whose metrics differ from its baseline."""


class OverBudget(AssertionError):
    """A launch whose metrics differ from its baseline, or that has no baseline. `findings` holds the differences as data."""

    def __init__(self, text: str, *findings: Diagnostic) -> None:
        super().__init__(text)
        self.findings = findings


@dataclass
class Baselines:
    """The baselines of a project. metrics: by test and name."""

    path: Path
    metrics: dict[str, dict[str, Figures]] = field(default_factory=dict)

    @staticmethod
    def from_root(root: Path) -> Baselines:
        """Read the baselines below a root folder. Raises SimtbedError, one line, if the file is invalid."""
        return Baselines.read(root / FILE)

    @staticmethod
    def read(path: Path) -> Baselines:
        """Read a file of baselines; empty if it does not exist. Raises SimtbedError, one line."""
        if not path.exists():
            return Baselines(path)
        try:
            metrics = toml_of(text_of(path))
            _check(metrics)
        except ValueError as error:
            raise SimtbedError(f"{printable(path)}: {error}") from None
        return Baselines(path, metrics)

    def unused(self, used: Mapping[str, Mapping[str, Any]], has_run: Callable[[str], bool]) -> list[tuple[str, str]]:
        """Return test and name of the unused baselines of tests that ran, or that were selected."""
        return [
            (test, name)
            for test, budgets in self.metrics.items()
            for name in budgets
            if name not in used.get(test, {}) and has_run(test)
        ]

    def merged(self, measured: Mapping[str, Mapping[str, Figures]], left: Sequence[tuple[str, str]]) -> str:
        """Return the text of the file with the measured metrics in place of the present ones, without the unused baselines."""
        tests = sorted({*self.metrics, *measured})
        new_metrics = {
            test: {name: self._reduced(baseline) for name, baseline in budgets.items() if baseline}
            for test, budgets in measured.items()
        }
        merged = {test: {**self.metrics.get(test, {}), **new_metrics.get(test, {})} for test in tests}
        remaining = {
            test: {name: baseline for name, baseline in sorted(budgets.items()) if (test, name) not in left}
            for test, budgets in merged.items()
        }
        return "\n".join(
            _section(test, name, baseline) for test, budgets in remaining.items() for name, baseline in budgets.items()
        )

    def _reduced(self, baseline: Figures) -> Figures:
        """Return a baseline without lines if the file has baselines and none of them has lines."""
        if not self.metrics or any(
            "lines" in baseline for budgets in self.metrics.values() for baseline in budgets.values()
        ):
            return baseline
        return {key: value for key, value in baseline.items() if key != "lines"}

    def write(self, measured: Mapping[str, Mapping[str, Figures]], left: Sequence[tuple[str, str]]) -> None:
        """Write that text to the file, atomically."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write(self.path, self.merged(measured, left))


def _section(test: str, name: str, baseline: Figures) -> str:
    """Return a baseline as TOML, with a row for each line of the kernel, for readable diffs."""
    if "lines" not in baseline:
        return tomli_w.dumps({test: {name: baseline}})
    rows = (", ".join(tomli_w.dumps({key: value}).strip() for key, value in line.items()) for line in baseline["lines"])
    lines = "".join(f"    {{ {row} }},\n" for row in rows)
    rest = {key: value for key, value in baseline.items() if key not in ("figures", "lines")}
    text = tomli_w.dumps({test: {name: {**rest, "figures": baseline["figures"]}}})
    head, figures, table = text.partition("\n\n[")
    return f"{head}\nlines = [\n{lines}]{figures}{table}"


def _check(metrics: dict[str, Any]) -> None:
    """Raise ValueError, one line with the key, if a file of baselines does not contain what one must."""
    from .schemas import Baseline  # late: most runs read no baselines

    for test, budgets in metrics.items():
        require_each(budgets, Baseline, printable(test))
        if not budgets:
            raise ValueError(f"{printable(test)}: expected at least one baseline")
        for name, baseline in budgets.items():
            keys = {*baseline, *(f"figures.{metric}" for metric in baseline["figures"])}
            compiler_keys = ("compiler", *(f"figures.{metric}" for metric in COMPILED))
            missing = [key for key in compiler_keys if key not in keys]
            if 0 < len(missing) < len(compiler_keys):
                place = joined(printable(test), name)
                raise ValueError(f"{place}: missing key {missing[0]}, next to other values of a compiler")


# ------------------------------------------------------------------ one budget
def check_limits(soft: float, hard: float) -> None:
    """Raise SimtbedError for invalid limits in percent: the hard limit must not be below the soft one."""
    if not (0 <= soft < float("inf") and 0 <= hard < float("inf")):
        raise SimtbedError(f"limits are percents from 0 on, not soft {soft} and hard {hard}")
    if hard and soft > hard:
        raise SimtbedError(f"the soft limit of {soft} % is beyond the hard limit of {hard} %")


@dataclass(frozen=True)
class Verdict:
    """Comparison of launches with their baseline.

    over: whether a limit is exceeded. place: the most likely changed line of the kernel; None if there is none. lines: the
    report. improvement: a text if counts decreased, and none increased.
    """

    over: bool
    place: Span | None
    lines: list[str]
    improvement: str

    def outcome(self, option: str) -> str:
        """Return a text on the budget. option: accepts the change."""
        return f"{self.improvement or 'is over its budget'}: accept with {option}"


def judged(before: Figures, now: Figures, profile: Profile, soft: float, hard: float) -> Verdict | None:
    """Compare metrics with a baseline; None if nothing differs. soft, hard: limits in percent, as in `budget`."""
    changed_metrics = [change for change in compared(before, now) if change.percent > soft]
    same_device = before["device"] == now["device"]
    if same_device and not changed_metrics:
        return None
    changed = changed_lines(before, profile)
    place = next((line.span for line in changed if line.span), None)
    over = not same_device or max(change.percent for change in changed_metrics) > hard
    return Verdict(
        over,
        place,
        explained(before, now, changed, changed_metrics),
        improvement(changed_metrics) if same_device else "",
    )


def compiled(requests: Iterable[Request]) -> dict[str, Any]:
    """Return the maximum of each metric reported by nvcc for the kernels, on the devices of their launches.

    Raises UnavailableError if there is no nvcc.
    """
    built = [built_for(request, architecture(request.device)) for request in requests]
    fields = {name: max(getattr(one.resources, name) for one in built) for name in COMPILED if name in _RESOURCES}
    return {"compiler": built[0].compiler, **fields}


_RESOURCES = {one.name for one in fields(Resources)}


@dataclass(frozen=True)
class Budget:
    """The expectation of one test under one name. Fields as in the fixture `budget`. Raises SimtbedError for invalid limits."""

    baselines: Baselines
    tally: Tally
    test: str
    name: str
    soft: float = 0.0
    hard: float = 0.0
    compiled: bool = False
    update: bool = False

    def __post_init__(self) -> None:
        check_limits(self.soft, self.hard)

    def expect(self, result: Result) -> None:
        """Raise OverBudget if the launch differs from its baseline, with the changed lines of the kernel.

        A launch on a GPU has no counters: the summary reports it.
        """
        __tracebackhide__ = True  # pytest shows the test
        details = details_of(result)
        if not details.request.counters:
            raise self._missed(f"{self.name} of {self.test}: nothing was counted: the launch says counters=False")
        if details.counts is None:
            self._measured().setdefault(self.name, {})
            self._remark("not compared: a GPU counts nothing")
            return
        profile, request = details.profile(), details.request
        repeated = self.update and self.name in self._measured()
        blocks = [(int(np.prod(request.block)), details.shared_bytes)]
        now = figures(profile, blocks, compiled([request]) if self.compiled else None)
        before = self._before(now)
        verdict = judged(before, now, profile, self.soft, self.hard) if before is not None else None
        if verdict is None:
            return
        kernel = request.program.kernel
        place = verdict.place or kernel.span
        head = f"{self.name} of {self.test}: {kernel.name}, {place.place}"
        text = "\n  ".join([head, *verdict.lines])
        if not verdict.over:
            self._remark(f"within its hard limit of {self.hard} %\n{text}")
            return
        outcome = verdict.outcome("--simtbed-update")
        if repeated:
            outcome = f'an earlier launch of the test has this budget: give this one another name, such as budget("{self.name} 2")'
        finding = Diagnostic(KIND, f"{self.name} of {self.test} {outcome}", place, tuple(verdict.lines))
        raise self._missed(f"{text}\n  {outcome}", finding)

    def _before(self, now: Figures) -> Figures | None:
        """Return the baseline to compare with; None if this run writes it."""
        measured = self._measured()
        if self.update:
            before: Figures = measured.get(self.name) or now
            measured[self.name] = before
            return before
        measured[self.name] = {}
        baseline = self.baselines.metrics.get(self.test, {}).get(self.name)
        if baseline is None:
            raise self._missed(
                f"{self.name} of {self.test} has no baseline in {FILE.as_posix()}: pytest --simtbed-update writes it"
            )
        return baseline

    def _missed(self, text: str, *findings: Diagnostic) -> OverBudget:
        """Return the error and record it: a test that catches it, or loses it with a thread, fails too."""
        self.tally.over.append(text)
        return OverBudget(text, *findings)

    def _measured(self) -> dict[str, Any]:
        """Return the used budgets of the test by name, empty unless they are to be written."""
        return self.tally.budgets.setdefault(self.test, {})

    def _remark(self, text: str) -> None:
        self.tally.remarks.append(f"budget {self.name} of {self.test}: {text}")
