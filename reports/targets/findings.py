"""What checked launches of a target found, merge_findings over all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from simtbed import Diagnostic, Launch
from simtbed.errors import render
from simtbed.profiler.run import merge_findings
from simtbed.sanitizer.suppressions import ALLOWED, UNUSED

from ..profile.annotate import short


def findings(launches: Iterable[Launch]) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Faults, and remarks, one a place. A comment that allowed something in one launch may allow nothing in another."""
    launches = list(launches)
    remarks = merge_findings(_without_calls(remark) for one in launches for remark in one.remarks)
    useful = {(d.span.file, d.span.line) for d in remarks if d.kind != UNUSED}
    useful |= {(d.related.file, d.related.line) for d in remarks if d.related}
    kept = [d for d in remarks if d.kind != UNUSED or (d.span.file, d.span.line) not in useful]
    return merge_findings(fault for one in launches for fault in one.faults), kept


def _without_calls(remark: Diagnostic) -> Diagnostic:
    """What a comment allows it allows wherever its line is called from."""
    if remark.kind != ALLOWED:
        return remark
    related = remark.related and replace(remark.related, calls=())
    return replace(remark, span=replace(remark.span, calls=()), related=related)


def as_text(found: Iterable[Diagnostic]) -> str:
    """Each finding with how often it was made; of what a comment allows, a line."""
    return "\n".join(_allowed(d) if d.kind == ALLOWED else f"{render(d)}\n      {_times(d)}" for d in found)


def _allowed(found: Diagnostic) -> str:
    return f"{found.span.place}: {found.message}, {_times(found)}"


def _times(found: Diagnostic) -> str:
    return f"{found.count:,} time{'' if found.count == 1 else 's'}"


def as_row(found: Diagnostic) -> dict[str, Any]:
    """A finding for JSON."""
    related = found.related and {"file": short(found.related.file), "line": found.related.line}
    return {
        "kind": found.kind, "message": found.message, "file": short(found.span.file), "line": found.span.line,
        "column": found.span.column, "related": related or None, "notes": list(found.notes), "count": found.count,
    }  # fmt: skip
