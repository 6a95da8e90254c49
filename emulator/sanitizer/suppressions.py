"""Suppression of findings by comments in the kernel: `# simtbed: allow race - reason`, with `//` in CUDA C++.

The comment is on the line of one of the two accesses, or by itself on the line before. A suppressed finding is
listed as a remark with the reason. So is a comment that suppresses nothing.
"""

import re
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .. import source_text
from ..errors import Diagnostic
from ..ir import nodes as ir
from ..ir.walk import statements
from ..span import Span
from .checkers import SUPPRESSIBLE, is_remark

_COMMENT = re.compile(r"(?:#|//)\s*simtbed:\s*allow\b\s*(?P<kind>[\w ]*?)\s*(?:-\s*(?P<reason>\S.*))?$")
ALLOWED, UNUSED = "allowed", "unused suppression"


@dataclass(frozen=True)
class _Comment:
    """A suppression comment. line: of the source line it refers to."""

    kind: str
    reason: str
    span: Span
    line: int


_COMMENTS: weakref.WeakKeyDictionary[ir.Function, dict[tuple[str, int], _Comment]] = weakref.WeakKeyDictionary()


def sort_findings(
    findings: Sequence[Diagnostic], kernel: ir.Function, checks: frozenset[str]
) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Return the faults and the remarks of a launch. kernel: the prepared one.

    Remarks are benign findings, suppressed ones, and comments that suppress nothing.
    """
    if not findings and not checks:
        return [], []
    if kernel not in _COMMENTS:
        _COMMENTS[kernel] = {(c.span.file, c.line): c for c in _comments(kernel)}
    comments, used = _COMMENTS[kernel], set()
    faults, remarks = [], []
    for finding in findings:
        comment = next((c for place in _lines(finding) if (c := comments.get(place)) and _covers(c, finding)), None)
        if comment is not None:
            used.add(comment)
            silenced = replace(finding, kind=ALLOWED, message=f"allowed, as {comment.reason}: {finding.message}")
            remarks.append(silenced)
        elif is_remark(finding.kind, checks):
            remarks.append(finding)
        else:
            faults.append(finding)
    remarks += [_unused(c) for c in comments.values() if c not in used and _is_requested(c, checks)]
    return faults, remarks


def _lines(finding: Diagnostic) -> Iterator[tuple[str, int]]:
    for span in (finding.span, finding.related):
        if span is not None:
            yield from ((span.file, line) for line in range(span.line, span.end_line + 1))


def _covers(comment: _Comment, finding: Diagnostic) -> bool:
    checker = SUPPRESSIBLE.get(comment.kind)
    return bool(comment.reason) and checker is not None and finding.kind in checker.kinds


def _is_requested(comment: _Comment, checks: frozenset[str]) -> bool:
    """Return whether the checker of a comment was requested; for an unknown kind, the race detector."""
    return SUPPRESSIBLE.get(comment.kind, SUPPRESSIBLE["race"]).name in checks


def _comments(kernel: ir.Function) -> Iterator[_Comment]:
    """Yield the comments on the lines of a kernel and of the device functions it calls."""
    lines = {(s.span.file, n) for s in statements(kernel.body) for n in range(s.span.line, s.span.end_line + 1)}
    for file, line in sorted(lines):
        for at in (line, line - 1):
            text = source_text.line(file, at)
            match = _COMMENT.search(text)
            if match and (at == line or text.lstrip().startswith(("#", "//"))):
                span = Span(file, at, match.start() + 1, at, len(text) + 1)
                yield _Comment(match["kind"], match["reason"] or "", span, line)


def _unused(comment: _Comment) -> Diagnostic:
    if comment.kind not in SUPPRESSIBLE:
        message = f"nothing is called {comment.kind!r} here; what may be allowed is {', '.join(SUPPRESSIBLE)}"
    elif not comment.reason:
        message = f"a reason is missing: # simtbed: allow {comment.kind} - why it does no harm"
    else:
        message = f"nothing to allow: no {comment.kind} was found on this line"
    return Diagnostic(UNUSED, message, comment.span)
