"""Findings of the launches of a target, merged by place, as text and as JSON rows."""

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from simtbed import Diagnostic, Launch
from simtbed.errors import HOST_REMARKS, render
from simtbed.profiler.run import merge_findings
from simtbed.sanitizer.suppressions import ALLOWED, UNUSED

from ..profile.annotate import short


def findings(
    launches: Iterable[Launch], host_findings: Iterable[Diagnostic] = ()
) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Return faults and remarks, one per place. host_findings: of host code, with its remarks.

    A suppression comment is unused only if it is unused in every launch.
    """
    launches = list(launches)
    faults: list[Diagnostic] = [fault for launch in launches for fault in launch.faults]
    of_host: list[Diagnostic] = []
    for finding in host_findings:
        (of_host if finding.kind in HOST_REMARKS else faults).append(finding)
    remarks = merge_findings(_without_calls(remark) for launch in launches for remark in launch.remarks) + of_host
    used = {(d.span.file, d.span.line) for d in remarks if d.kind != UNUSED}
    used |= {(d.related.file, d.related.line) for d in remarks if d.related}
    remarks = [d for d in remarks if d.kind != UNUSED or (d.span.file, d.span.line) not in used]
    return merge_findings(faults), remarks


def _without_calls(remark: Diagnostic) -> Diagnostic:
    """Drop the calls of a suppressed finding: a suppression is independent of the caller."""
    if remark.kind != ALLOWED:
        return remark
    related = remark.related and replace(remark.related, calls=())
    return replace(remark, span=replace(remark.span, calls=()), related=related)


def as_text(diagnostics: Iterable[Diagnostic]) -> str:
    """Return each finding with its count; suppressed findings take one line."""
    return "\n".join(_suppressed(d) if d.kind == ALLOWED else f"{render(d)}\n      {_count(d)}" for d in diagnostics)


def _suppressed(diagnostic: Diagnostic) -> str:
    return f"{diagnostic.span.place}: {diagnostic.message}, {_count(diagnostic)}"


def _count(diagnostic: Diagnostic) -> str:
    return f"{diagnostic.count:,} time{'' if diagnostic.count == 1 else 's'}"


def as_row(diagnostic: Diagnostic) -> dict[str, Any]:
    """Return the JSON row of a finding."""
    d, related = diagnostic, diagnostic.related and {
        "file": short(diagnostic.related.file), "line": diagnostic.related.line,
    }  # fmt: skip
    return {
        "kind": d.kind, "message": d.message, "file": short(d.span.file), "line": d.span.line,
        "column": d.span.column, "related": related or None, "notes": list(d.notes), "count": d.count,
        "remedy": [{**asdict(insertion), "file": short(insertion.file)} for insertion in d.remedy],
    }  # fmt: skip
