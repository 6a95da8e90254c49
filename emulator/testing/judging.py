"""Findings of the phases and tries of a test, and the reports that they fail: also skips and expected failures."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from ..errors import SimtbedError
from ..escaping import terminal
from ..runtime.result import FaultError
from .tally import reason_of


@dataclass
class TestFindings:
    """Findings of a test as texts. earlier: of earlier tries. current: of this try.

    phase: of a phase whose report is due: the missed findings, and the findings that its launches raised or returned;
    None during a phase, when subtests are reported.
    """

    __test__ = False  # not a class of tests

    earlier: list[str] = field(default_factory=list)
    current: list[str] = field(default_factory=list)
    phase: tuple[Sequence[str], str] | None = None

    def begin_try(self) -> None:
        self.earlier = list(dict.fromkeys([*self.earlier, *self.current]))
        self.current, self.phase = [], None

    def end_phase(self, missed: Sequence[str], raised: str) -> None:
        self.current += missed
        self.phase = missed, raised

    def fail(self, item: pytest.Item, report: pytest.TestReport, error: BaseException | None) -> str:
        """Fail the report of a phase with findings; return them. error: of the phase.

        Findings that launches raised fail a skipped test, and an expected failure without `raises=FaultError`. Findings
        of earlier tries fail the phase that decides the outcome of this try.
        """
        if self.phase is None:
            return ""
        (missed, raised), self.phase = self.phase, None
        texts = [text for text in missed if text != str(error)]
        if raised and not report.passed and not _expects(item, error):
            if report.skipped:
                texts.append(raised)
            if report.skipped or isinstance(error, FaultError):
                self.current.append(raised)
        if report.when == "call" or (report.when == "setup" and not report.passed):
            texts += [f"in an earlier try: {text}" for text in self.earlier]
        text = "\n\n".join(texts)
        if text:
            _fail(report, text)
        return text


def _expects(item: pytest.Item, error: BaseException | None) -> bool:
    """Return whether a mark xfail names the class of the error, or a base class among those of this package."""
    named: list[object] = []
    for mark in item.iter_markers("xfail"):
        raises = mark.kwargs.get("raises")
        named += raises if isinstance(raises, tuple) else [raises]
    return any(isinstance(one, type) and issubclass(one, SimtbedError) and isinstance(error, one) for one in named)


def _fail(report: pytest.TestReport, text: str) -> None:
    """Fail a report with a text, or add the text to a failed one."""
    if report.failed:
        report.sections.append(("simtbed found", terminal(text)))
        return
    if report.skipped:
        expected = hasattr(report, "wasxfail")
        reason = report.wasxfail if expected else reason_of(report)
        because = f": {reason}" if reason else ""
        text += f"\n\na finding fails {'an expected failure' if expected else 'a skipped test'} too{because}"
    report.outcome, report.longrepr = "failed", terminal(text)
    if hasattr(report, "wasxfail"):
        del report.wasxfail
