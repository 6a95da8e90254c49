"""Formats of findings: SARIF, GitHub annotations and step summary, GitLab code quality, JUnit."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from simtbed import Diagnostic, __version__, escaping
from simtbed.errors import render
from simtbed.sanitizer.suppressions import ALLOWED
from simtbed.span import Span

MAX_ANNOTATIONS = 10
"""Errors, and also warnings, that GitHub shows per step."""
MAX_RESULTS = 25_000
"""Findings that GitHub reads of a SARIF run."""
MAX_SUMMARY = 1 << 20
"""Bytes of the summary of a step; GitHub discards a longer one."""
MAX_COMMENT = 60_000
"""Bytes of a table in a comment; GitHub accepts 65,536 characters."""
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True)
class Finding:
    """A fault or a remark, with a fingerprint that does not depend on line numbers."""

    diagnostic: Diagnostic
    fault: bool
    fingerprint: str

    @property
    def level(self) -> str:
        return "error" if self.fault else "warning"


def fingerprinted(faults: Sequence[Diagnostic], remarks: Sequence[Diagnostic]) -> list[Finding]:
    """Return the findings with fingerprints: a hash of kind, file, the text of both lines and the index among equal ones.

    Suppressed findings are omitted: services would show them as warnings.
    """
    count: Counter[tuple[str, ...]] = Counter()
    rows = []
    for number, d in enumerate((*faults, *(remark for remark in remarks if remark.kind != ALLOWED))):
        places = [text for span in (d.span, d.related) if span for text in (_file(span), span.source.strip())]
        key = (d.kind, *places)
        digest = hashlib.sha256("\0".join((*key, str(count[key]))).encode(errors="surrogatepass")).hexdigest()[:32]
        count[key] += 1
        rows.append(Finding(d, number < len(faults), digest))
    return rows


def _file(span: Span) -> str:
    """Return the path with slashes: relative to the repository if inside it, else absolute; a name as <stdin> as it is."""
    if span.file.startswith("<") or (escaping.WINDOWS_PATH.match(span.file) and not os.path.isabs(span.file)):
        return span.file  # the run may have been saved on Windows
    path, root = Path(os.path.abspath(span.file)), _repository()
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def _repository() -> Path:
    """Return the closest folder with a Git repository around the current folder, else the current folder."""
    current = Path.cwd()
    return next((folder for folder in (current, *current.parents) if (folder / ".git").exists()), current)


# ------------------------------------------------------------------ SARIF
def sarif(findings: Sequence[Finding]) -> escaping.Document:
    """Return SARIF 2.1.0, within the limits of GitHub."""
    kinds = sorted({finding.diagnostic.kind for finding in findings})
    driver = {"name": "simtbed", "version": __version__, "rules": [_rule(kind) for kind in kinds]}
    results = [_result(finding, kinds) for finding in findings[:MAX_RESULTS]]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return escaping.json_text(json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1))


def _rule(kind: str) -> dict[str, Any]:
    text = f"A finding of the simtbed emulator of kind {kind}."
    return {
        "id": _identifier(kind),
        "shortDescription": {"text": kind},
        "fullDescription": {"text": text},
        "help": {"text": text},
    }


def _identifier(kind: str) -> str:
    return kind.replace(" ", "-")


def _result(finding: Finding, kinds: list[str]) -> dict[str, Any]:
    diagnostic = finding.diagnostic
    related = diagnostic.related
    return {
        "ruleId": _identifier(diagnostic.kind),
        "ruleIndex": kinds.index(diagnostic.kind),
        "level": finding.level,
        "message": {"text": "\n".join(map(escaping.printable, (diagnostic.message, *diagnostic.notes)))},
        "locations": [_location(diagnostic.span)],
        **({"relatedLocations": [{**_location(related), "message": {"text": "the other place"}}]} if related else {}),
        "partialFingerprints": {"primaryLocationLineHash": finding.fingerprint},
        "occurrenceCount": max(diagnostic.count, 1),
    }


def _location(span: Span) -> dict[str, Any]:
    line, column = max(span.line, 1), max(span.column, 1)
    last = max(span.end_line, line)
    end = max(span.end_column, 1 if last > line else column)
    region = {"startLine": line, "startColumn": column, "endLine": last, "endColumn": end}
    return {"physicalLocation": {"artifactLocation": {"uri": escaping.uri_reference(_file(span))}, "region": region}}


# ------------------------------------------------------------------ GitHub and GitLab
def github(findings: Sequence[Finding]) -> escaping.Document:
    """Return an annotation for each fault and each remark, up to the limit of GitHub, and the number of further ones."""
    lines = []
    for level, kind in (("error", "findings"), ("warning", "remarks")):
        rows = [finding for finding in findings if finding.level == level]
        lines += [_annotation(finding) for finding in rows[:MAX_ANNOTATIONS]]
        if len(rows) > MAX_ANNOTATIONS:
            lines.append(f"and {len(rows) - MAX_ANNOTATIONS} more {kind}, above the limit of GitHub")
    return escaping.Document("\n".join(lines))


def _annotation(finding: Finding) -> str:
    diagnostic, span = finding.diagnostic, finding.diagnostic.span
    values = (
        ("file", _file(span)),
        ("line", span.line),
        ("endLine", span.end_line),
        ("col", span.column),
        ("title", diagnostic.kind),
    )
    properties = ",".join(f"{name}={escaping.annotation_property(value)}" for name, value in values)
    return f"::{finding.level} {properties}::{escaping.annotation(render(diagnostic))}"


def summary(findings: Sequence[Finding]) -> str:
    """Return a Markdown table within the size limit of GitHub."""
    diagnostics = [(finding.level, finding.diagnostic) for finding in findings]
    rows = [[level, d.span.place, d.message, str(d.count)] for level, d in diagnostics]
    return markdown_table(["", "place", "finding", "count"], rows, align="lllr", limit=MAX_SUMMARY) + "\n"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], align: str, limit: int) -> str:
    """Return a Markdown table of at most `limit` bytes; omitted rows are counted below it.

    align: l or r for each column.
    """
    sides = "|".join("--:" if side == "r" else "---" for side in align)
    lines = [f"| {' | '.join(map(escaping.markdown, head))} |", f"|{sides}|"]
    free = limit - 200 - sum(len(line.encode()) + 1 for line in lines)
    for number, row in enumerate(rows):
        line = f"| {' | '.join(map(escaping.markdown, row))} |"
        free -= len(line.encode()) + 1
        if free < 0:
            lines.append(f"\n{len(rows) - number:,} rows omitted.")
            break
        lines.append(line)
    return "\n".join(lines)


def gitlab(findings: Sequence[Finding]) -> escaping.Document:
    """Return a code quality report of GitLab."""
    rows = [
        {
            "description": escaping.printable(finding.diagnostic.message),
            "check_name": _identifier(finding.diagnostic.kind),
            "fingerprint": finding.fingerprint,
            "severity": "major" if finding.fault else "info",
            "location": {
                "path": escaping.printable(_file(finding.diagnostic.span)),
                "lines": {"begin": max(finding.diagnostic.span.line, 1)},
            },
        }
        for finding in findings
    ]
    return escaping.json_text(json.dumps(rows, indent=1))


# ------------------------------------------------------------------ JUnit
def junit(findings: Sequence[Finding]) -> escaping.Document:
    """Return a failed test case for each fault, or one passed test case if there are no faults."""
    faults = [finding.diagnostic for finding in findings if finding.fault]
    suite = ElementTree.Element(
        "testsuite", name="simtbed check", tests=str(len(faults) or 1), failures=str(len(faults))
    )
    for fault in faults:
        case = ElementTree.SubElement(
            suite, "testcase", name=escaping.printable(fault.kind), classname=fault.span.place
        )
        failure = ElementTree.SubElement(case, "failure", message=escaping.printable(fault.message))
        failure.text = escaping.terminal(render(fault))
    if not faults:
        ElementTree.SubElement(suite, "testcase", name="no finding", classname="simtbed check")
    return escaping.xml_text(ElementTree.tostring(suite, encoding="unicode"))


FORMATS = {"sarif": sarif, "github": github, "gitlab": gitlab, "junit": junit}
