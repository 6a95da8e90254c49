"""Findings as the services that show them read them: SARIF, GitHub's annotations and table, GitLab's code quality, JUnit."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from simtbed import Diagnostic, __version__
from simtbed.errors import render
from simtbed.sanitizer.suppressions import ALLOWED
from simtbed.span import Span

ANNOTATIONS = 10
"""Errors of a step that GitHub shows, and warnings."""
RESULTS = 25_000
"""Findings that GitHub takes of a SARIF run."""
SUMMARY = 1 << 20
"""Bytes of a step's summary; GitHub drops a longer one whole."""
COMMENT = 60_000
"""Bytes of a table in a comment or a summary; GitHub takes 65,536 characters of a comment."""
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True)
class Finding:
    """A fault or a remark, and what tells it from all others, whatever is edited elsewhere."""

    found: Diagnostic
    fault: bool
    fingerprint: str

    @property
    def level(self) -> str:
        return "error" if self.fault else "warning"


def named(faults: Sequence[Diagnostic], remarks: Sequence[Diagnostic]) -> list[Finding]:
    """Findings with their fingerprints: of the kind, the file, the text of both lines, and the number among equal ones.
    What a comment in the kernel allows is none: services would show it as a warning."""
    seen: Counter[tuple[str, ...]] = Counter()
    rows = []
    for number, one in enumerate((*faults, *(remark for remark in remarks if remark.kind != ALLOWED))):
        places = [text for span in (one.span, one.related) if span for text in (_file(span), span.source.strip())]
        key = (one.kind, *places)
        digest = hashlib.sha256("\0".join((*key, str(seen[key]))).encode()).hexdigest()[:32]
        seen[key] += 1
        rows.append(Finding(one, number < len(faults), digest))
    return rows


def _file(span: Span) -> str:
    """With slashes, from the current folder where it lies below."""
    return Path(span.name).as_posix()


# ------------------------------------------------------------------ SARIF
def sarif(found: Sequence[Finding]) -> str:
    """SARIF 2.1.0, as GitHub takes it."""
    kinds = sorted({one.found.kind for one in found})
    driver = {"name": "simtbed", "version": __version__, "rules": [_rule(kind) for kind in kinds]}
    results = [_result(one, kinds) for one in found[:RESULTS]]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _rule(kind: str) -> dict[str, Any]:
    text = f"A finding of simtbed's emulator of kind {kind}."
    return {
        "id": _identifier(kind),
        "shortDescription": {"text": kind},
        "fullDescription": {"text": text},
        "help": {"text": text},
    }


def _identifier(kind: str) -> str:
    return kind.replace(" ", "-")


def _result(one: Finding, kinds: list[str]) -> dict[str, Any]:
    found = one.found
    related = found.related
    return {
        "ruleId": _identifier(found.kind),
        "ruleIndex": kinds.index(found.kind),
        "level": one.level,
        "message": {"text": "\n".join((found.message, *found.notes))},
        "locations": [_location(found.span)],
        **({"relatedLocations": [{**_location(related), "message": {"text": "the other place"}}]} if related else {}),
        "partialFingerprints": {"primaryLocationLineHash": one.fingerprint},
        "occurrenceCount": found.count,
    }


def _location(span: Span) -> dict[str, Any]:
    region = {
        "startLine": max(span.line, 1),
        "startColumn": max(span.column, 1),
        "endLine": max(span.end_line, 1),
        "endColumn": max(span.end_column, 1),
    }
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(span)}, "region": region}}


def _uri(span: Span) -> str:
    path = Path(span.name)
    return path.as_uri() if path.is_absolute() else path.as_posix()


# ------------------------------------------------------------------ GitHub and GitLab
def github(found: Sequence[Finding]) -> str:
    """An annotation for each fault and each remark, as many of both as GitHub shows; the rest in a line."""
    lines = []
    for level, what in (("error", "findings"), ("warning", "remarks")):
        several = [one for one in found if one.level == level]
        lines += [_annotation(one) for one in several[:ANNOTATIONS]]
        if len(several) > ANNOTATIONS:
            lines.append(f"and {len(several) - ANNOTATIONS} more {what}, which GitHub would not show")
    return "\n".join(lines)


def _annotation(one: Finding) -> str:
    found, span = one.found, one.found.span
    values = (
        ("file", _file(span)),
        ("line", span.line),
        ("endLine", span.end_line),
        ("col", span.column),
        ("title", found.kind),
    )
    properties = ",".join(f"{name}={_escaped(str(value), ':,')}" for name, value in values)
    return f"::{one.level} {properties}::{_escaped(render(found))}"


def _escaped(text: str, more: str = "") -> str:
    """As GitHub's workflow commands have it."""
    for letter in "%\r\n" + more:
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text


def summary(found: Sequence[Finding]) -> str:
    """A table in Markdown that is not longer than GitHub takes."""
    rows = [[one.level, one.found.span.place, one.found.message, str(one.found.count)] for one in found]
    return markdown_table(["", "place", "finding", "times"], rows, align="lllr", most=SUMMARY) + "\n"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], align: str, most: int) -> str:
    """A table in Markdown of not more than so many bytes; what does not fit is counted below it. align: l or r for each
    column."""
    sides = "|".join("--:" if side == "r" else "---" for side in align)
    lines = [f"| {' | '.join(head)} |", f"|{sides}|"]
    room = most - 200 - sum(len(line.encode()) + 1 for line in lines)
    for number, row in enumerate(rows):
        line = f"| {' | '.join(map(markdown_text, row))} |"
        room -= len(line.encode()) + 1
        if room < 0:
            lines.append(f"\n{len(rows) - number:,} more rows do not fit.")
            break
        lines.append(line)
    return "\n".join(lines)


def markdown_text(text: str) -> str:
    """As a cell of a table shows it, letter for letter."""
    return re.sub(r"([\\`*_\[\]<>|~])", r"\\\1", " ".join(text.split()))


def gitlab(found: Sequence[Finding]) -> str:
    """GitLab's code quality report."""
    rows = [
        {
            "description": one.found.message,
            "check_name": _identifier(one.found.kind),
            "fingerprint": one.fingerprint,
            "severity": "major" if one.fault else "info",
            "location": {"path": _file(one.found.span), "lines": {"begin": one.found.span.line}},
        }
        for one in found
    ]
    return json.dumps(rows, indent=1)


# ------------------------------------------------------------------ JUnit
def junit(found: Sequence[Finding]) -> str:
    """A test case for each fault, which fails; one that passes where there is none."""
    faults = [one.found for one in found if one.fault]
    suite = ElementTree.Element(
        "testsuite", name="simtbed check", tests=str(len(faults) or 1), failures=str(len(faults))
    )
    for one in faults:
        case = ElementTree.SubElement(suite, "testcase", name=one.kind, classname=one.span.place)
        failure = ElementTree.SubElement(case, "failure", message=_plain(one.message))
        failure.text = _plain(render(one))
    if not faults:
        ElementTree.SubElement(suite, "testcase", name="no finding", classname="simtbed check")
    return ElementTree.tostring(suite, encoding="unicode")


def _plain(text: str) -> str:
    """Without what XML has no letter for."""
    return "".join(letter for letter in text if letter in "\t\n" or letter >= " ")


FORMATS = {"sarif": sarif, "github": github, "gitlab": gitlab, "junit": junit}
