"""Findings with one cause: pairs of accesses that one missing synchronisation leaves unordered, and what follows an endless loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import Diagnostic
from ...ir import nodes as ir
from ...ir.effects import is_ordered, performed
from ...ir.walk import statements
from ...span import Span

MAX_PAIRS = 6
"""Pairs that a finding lists."""


def merge_races(findings: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return the findings with races of one cause merged, at the place of the first.

    Races have one cause if the remedy of one includes that of the other, if they are of one array and have the same advice, or if
    they are of one pair of lines, whichever accesses of the lines they are; within one line also of one array.
    """
    groups: dict[Any, list[Diagnostic]] = {}
    remedies = [(finding.kind, frozenset(finding.remedy)) for finding in findings if finding.remedy]
    of_lines: dict[Any, Any] = {}
    for number, finding in enumerate(findings):
        key: Any = number
        if finding.remedy:
            own = frozenset(finding.remedy)
            wider = [remedy for kind, remedy in remedies if kind == finding.kind and remedy >= own]
            key = finding.kind, max(wider, key=len)
        elif finding.array:
            key = finding.kind, finding.array, finding.notes[-1]
        if finding.array:
            lines = _lines(finding)
            key = of_lines.setdefault((finding.kind, lines, finding.array * (len(lines) == 1)), key)
        groups.setdefault(key, []).append(finding)
    return [_merged(group) for group in groups.values()]


def list_consequences(findings: Sequence[Diagnostic], kernel: ir.Function) -> list[Diagnostic]:
    """Return the findings with those after an endless loop listed under it, or with the loop under the race of a plain read in it.

    The emulator ends the lanes of such a loop, so later threads find elements that these lanes have not written, or not read. Races
    before the loop are independent of it. findings: in the order of their execution.
    """
    number = next((n for n, finding in enumerate(findings) if finding.kind == "step limit"), None)
    if number is None:
        return list(findings)
    loops = [
        stmt for stmt in statements(kernel.body) if isinstance(stmt, ir.While) and stmt.span == findings[number].span
    ]
    inside = (performed(stmt) for loop in loops for stmt in statements((*loop.setup, *loop.body)))
    polls = {node.span for node in inside if isinstance(node, ir.Load) and not is_ordered(node)}
    cause = next((one for one in findings if one.kind == "race" and polls & {one.span, one.related}), findings[number])
    around = (stmt for stmt in statements(kernel.body) if isinstance(stmt, ir.While | ir.For) and stmt not in loops)
    nested = any(stmt in loops for outer in around for stmt in statements((outer,)))
    after = [one for one in findings[number:] if one.kind in ("race", "bounds", "uninitialised")]
    after = [one for one in after if nested or not _precedes(one, findings[number].span)]
    after = [one for one in (*after, findings[number]) if one is not cause]
    listed = tuple(f"a consequence: {one.message} ({one.span.place})" for one in after[:MAX_PAIRS])
    return [replace(one, notes=(*one.notes, *listed)) if one is cause else one for one in findings if one not in after]


def _precedes(finding: Diagnostic, loop: Span) -> bool:
    """Return whether both accesses of a race are before a loop in the source."""
    spans = [span for span in (finding.span, finding.related) if span is not None]
    before = all(span.file == loop.file and span.line < loop.line and not span.calls for span in spans)
    return finding.kind == "race" and before


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
    lines = sorted({line for _, line in _lines(finding)})
    return f"{finding.array} in line{'s' * (len(lines) > 1)} {' and '.join(map(str, lines))}"


def _lines(finding: Diagnostic) -> frozenset[tuple[str, int]]:
    return frozenset((span.file, span.line) for span in (finding.span, finding.related) if span is not None)
