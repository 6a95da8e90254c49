"""Races with one cause: pairs of accesses that one missing synchronisation leaves unordered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import Diagnostic

MAX_PAIRS = 6
"""Pairs that a finding lists."""


def merge_races(findings: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return the findings with races of one cause merged, at the place of the first.

    Races have one cause if the remedy of one includes that of the other, or if they are of one array and have the same advice.
    """
    groups: dict[Any, list[Diagnostic]] = {}
    remedies = [(finding.kind, frozenset(finding.remedy)) for finding in findings if finding.remedy]
    for number, finding in enumerate(findings):
        key: Any = number
        if finding.remedy:
            own = frozenset(finding.remedy)
            wider = [remedy for kind, remedy in remedies if kind == finding.kind and remedy >= own]
            key = finding.kind, max(wider, key=len)
        elif finding.array:
            key = finding.kind, finding.array, finding.notes[-1]
        groups.setdefault(key, []).append(finding)
    return [_merged(group) for group in groups.values()]


def _merged(group: Sequence[Diagnostic]) -> Diagnostic:
    """Return one finding: the first with the largest remedy, with the lines of the other pairs."""
    main = max(group, key=lambda finding: len(finding.remedy))
    pairs = list(dict.fromkeys(_pair(finding) for finding in group if finding is not main))
    pairs = [pair for pair in pairs if pair != _pair(main)]
    notes = main.notes
    if pairs:
        more = f", and {len(pairs) - MAX_PAIRS} more pairs" if len(pairs) > MAX_PAIRS else ""
        notes = (*notes, f"the same cause: {', '.join(pairs[:MAX_PAIRS])}{more}")
    return replace(main, notes=notes, count=sum(finding.count for finding in group))


def _pair(finding: Diagnostic) -> str:
    """Return the array and the lines of the two accesses."""
    lines = sorted({span.line for span in (finding.span, finding.related) if span is not None})
    return f"{finding.array} in line{'s' * (len(lines) > 1)} {' and '.join(map(str, lines))}"
