"""Findings with one cause: pairs of accesses that one missing synchronisation leaves unordered, and what follows an endless loop."""

import re
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Any, NamedTuple

from ...errors import Diagnostic
from ...ir import nodes as ir
from ...ir.effects import is_ordered, performed
from ...ir.walk import statements
from ...span import Span

MAX_PAIRS = 6
"""Pairs that a finding lists."""


def merge_races(findings: Sequence[Diagnostic], kernel: ir.Function | None = None) -> list[Diagnostic]:
    """Return the findings with races of one cause merged, at the place of the first. kernel: of the findings.

    Races have one cause if the remedy of one includes that of the other, if they are of one array and have the same advice, if one
    barrier between lines orders them, or if they are of one pair of lines, whichever accesses of the lines they are; within one
    line also of one array.
    """
    groups: dict[Any, list[Diagnostic]] = {}
    barriers = _barriers(kernel) if kernel is not None else frozenset()
    gaps: dict[Any, _Gap] = {}
    remedies = [(finding.kind, frozenset(finding.remedy)) for finding in findings if finding.remedy]
    of_lines: dict[Any, Any] = {}
    for number, finding in enumerate(findings):
        key: Any = number
        if finding.remedy:
            own = frozenset(finding.remedy)
            wider = [remedy for kind, remedy in remedies if kind == finding.kind and remedy >= own]
            key = finding.kind, max(wider, key=len)
        elif finding.array:
            of_array = finding.kind, finding.array, finding.notes[-1]
            key = _key_of_gap(_gap(finding, barriers), gaps, of_array)
        if finding.array:
            lines = _lines(finding)
            key = of_lines.setdefault((finding.kind, lines, finding.array * (len(lines) == 1)), key)
        groups.setdefault(key, []).append(finding)
    return [_merged(group, gaps.get(key)) for key, group in groups.items()]


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


class _Gap(NamedTuple):
    """Lines first ... last of a file between which a barrier orders races. has_barrier: whether one is there, and orders others."""

    file: str
    first: int
    last: int
    has_barrier: bool


def _key_of_gap(gap: _Gap | None, gaps: dict[Any, _Gap], own: Any) -> Any:
    """Return the key of the races that one barrier orders with those of a gap, and shorten theirs; else the own key. gaps: by key."""
    if gap is None:
        return own
    for key, other in gaps.items():
        first, last = max(gap.first, other.first), min(gap.last, other.last)
        if first < last and (gap.file, gap.has_barrier) == (other.file, other.has_barrier):
            gaps[key] = _Gap(gap.file, first, last, gap.has_barrier)
            return key
    # No one barrier orders the races of one array in two gaps.
    gaps[own] = gap._replace(last=gap.first) if own in gaps else gap
    return own


def _barriers(kernel: ir.Function) -> frozenset[tuple[str, int]]:
    """Return the files and lines of the barriers of a kernel."""
    nodes = (s.value if isinstance(s, ir.Let) else s for s in statements(kernel.body))
    spans = (node.span for node in nodes if isinstance(node, ir.Barrier | ir.WarpBarrier))
    return frozenset((span.file, span.line) for span in spans)


def _gap(finding: Diagnostic, barriers: Set[tuple[str, int]]) -> _Gap | None:
    """Return the lines of a race whose remedy has no place; None for others."""
    first, second = finding.related, finding.span
    if (
        first is None
        or first.file != second.file
        or first.calls
        or second.calls
        or not _WIDTH.search(finding.notes[-1])
    ):
        return None
    low, high = sorted((first.line, second.line))
    inside = any(file == first.file and low <= line <= high for file, line in barriers)
    return _Gap(first.file, low, high, inside) if low < high else None


_WIDTH = re.compile(r"^to order them: st\.sync(warp)?\(\) between the two")


def _width(finding: Diagnostic) -> tuple[int, bool]:
    """Return an order of findings by their remedies: a barrier of the block is wider than one of a warp."""
    match = _WIDTH.search(finding.notes[-1])
    return len(finding.remedy), match is not None and not match[1]


def _merged(group: Sequence[Diagnostic], gap: _Gap | None) -> Diagnostic:
    """Return one finding: the first with the widest remedy, with the lines of the other pairs. gap: of the group, if any."""
    main = max(group, key=_width)
    pairs = list(dict.fromkeys(_pair(finding) for finding in group if finding is not main))
    pairs = [pair for pair in pairs if pair != _pair(main)]
    notes = main.notes
    if pairs and gap is not None and gap.first < gap.last and not gap.has_barrier:
        notes = (*notes[:-1], notes[-1].replace("between the two", f"between lines {gap.first} and {gap.last}"))
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
