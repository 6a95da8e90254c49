"""A report as text: Markdown, one HTML file, JSON; and the index of several."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import Any

import jinja2

from .. import tables
from .charts import chart
from .paper import Cell, Column, Report, Shown, Source, Table, Verdict

PRECISION = 4
"""Digits of a figure that is no whole number."""
ABSENT = {
    Source.emulator: "nothing to count",
    Source.model: "no prediction",
    Source.gpu: "not measured",
    Source.cpu: "not measured",
}
"""What is said of a source that an item has no figures of."""


def cell(value: Cell) -> str:
    """A figure as it is read."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or (value.is_integer() and abs(value) >= 10**PRECISION):
        return f"{int(value):,}"
    return f"{value:,.{PRECISION}g}" if 1e-4 <= abs(value) < 10**PRECISION or not value else _large(value)


def _large(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1 else f"{value:.{PRECISION - 1}g}"


def heading(column: Column) -> str:
    """A column's name with its source."""
    return f"{column.source}: {column.name}" if column.source else column.name


def absent(shown: Shown) -> str:
    """What an item has no figures of: "time model: no prediction; GPU: not measured"."""
    return "; ".join(f"{source}: {what}" for source, what in ABSENT.items() if source not in shown.sources)


def parameters(report: Report) -> str:
    """The parameters with their values."""
    return ", ".join(f"{name.replace('_', ' ')} {cell(value)}" for name, value in report.setting.values.items())


def anchor(name: str) -> str:
    """An item's name as an anchor: fig-8."""
    return re.sub(r"\W+", "-", name.lower()).strip("-")


# ------------------------------------------------------------------ Markdown
def markdown(report: Report) -> str:
    """The report as Markdown. Its plots are left out: their points stand in tables."""
    paper, counts = report.paper, report.counts()
    parts = [
        f"# {paper.title}",
        f"{paper.citation}",
        f"Made by `simtbed report {paper.name}`. The emulator counts by the rules of the paper's {paper.device}. "
        f"Size: {report.setting.size}. Parameters: {parameters(report) or 'none'}.",
        f"{_counted(counts)}.",
        _markdown_rows(
            ["item", "what", "verdict"],
            [[f"[{item.name}](#{anchor(item.name)})", item.caption, shown.verdict] for item, shown in report.shown],
        ),
    ]
    for item, shown in report.shown:
        parts += [f"## {item.name}", f"{item.caption}.", f"**{shown.verdict.capitalize()}**: {shown.why}"]
        if shown.claims:
            claims = [[claim.text, _told(claim.holds), claim.found] for claim in shown.claims]
            parts.append(_markdown_rows(["the paper says", "holds", "found here"], claims))
        parts += [_markdown_table(table) for table in shown.tables]
        parts += [text for text in (shown.note, absent(shown) and f"Not here: {absent(shown)}.") if text]
    return "\n\n".join(parts) + "\n"


def _counted(counts: dict[Verdict, int]) -> str:
    return f"Of {sum(counts.values())} tables and figures: " + ", ".join(
        f"{count} {verdict}" for verdict, count in counts.items()
    )


def _told(holds: bool | None) -> str:
    return "cannot be told" if holds is None else "yes" if holds else "no"


def _markdown_table(table: Table) -> str:
    columns = table.columns
    rows = [[cell(row.get(column)) for column in columns] for row in table.rows]
    return f"{table.title}:\n\n{_markdown_rows([heading(column) for column in columns], rows)}"


def _markdown_rows(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(text.replace('|', '/') for text in line)} |" for line in lines)


# ------------------------------------------------------------------ HTML
def html(report: Report) -> str:
    """The report as one file that needs no network."""
    return _rendered("report.html", report=report, counted=_counted(report.counts()), parameters=parameters(report))


def html_index(reports: Sequence[Report]) -> str:
    """The page that leads to NAME.html of each report."""
    return _rendered("index.html", reports=reports, verdicts=list(Verdict), counted=_counted(_sum(reports)))


def _rendered(template: str, **given: Any) -> str:
    loader = jinja2.FunctionLoader(lambda name: files(__package__).joinpath(name).read_text(encoding="utf-8"))
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"cell": cell, "chart": chart, "heading": heading, "absent": absent, "anchor": anchor}
    environment.filters["told"] = _told
    style = [
        files("simtbed.profiler.html").joinpath("page.css").read_text(encoding="utf-8"),
        files(__package__).joinpath("report.css").read_text(encoding="utf-8"),
    ]
    return environment.get_template(template).render(style="\n".join(style), **given)


# ------------------------------------------------------------------ JSON, and indices
def json(report: Report) -> str:
    """Everything that the report shows."""
    paper, setting = report.paper, report.setting
    return tables.as_json(
        {
            "paper": paper.name,
            "title": paper.title,
            "device": paper.device,
            "size": setting.size,
            "parameters": dict(setting.values),
            "verdicts": report.counts(),
            "items": [
                {
                    "name": item.name,
                    "caption": item.caption,
                    "verdict": shown.verdict,
                    "why": shown.why,
                    "note": shown.note,
                    "claims": [asdict(claim) for claim in shown.claims],
                    "tables": [
                        {"title": table.title, "rows": [_named(row) for row in table.rows]} for table in shown.tables
                    ],
                    "charts": [asdict(one) for one in shown.charts],
                }
                for item, shown in report.shown
            ],
        }
    )


def _named(row: Any) -> dict[str, Cell]:
    return {heading(column): value for column, value in row.items()}


def _sum(reports: Sequence[Report]) -> dict[Verdict, int]:
    return {verdict: sum(report.counts()[verdict] for report in reports) for verdict in Verdict}


def markdown_index(reports: Sequence[Report]) -> str:
    """How many items of each paper have each verdict."""
    rows = [
        [f"[{report.paper.name}]({report.paper.name}.md)", report.paper.title, *map(str, report.counts().values())]
        for report in reports
    ]
    rows.append(["all", "", *map(str, _sum(reports).values())])
    return (
        "# The papers\n\nEvery table and figure of the papers whose algorithms ship, beside what the emulator counts, the "
        "time model predicts and machines have measured. `simtbed report PAPER` makes each page anew.\n\n"
        f"{_counted(_sum(reports))}.\n\n{_markdown_rows(['paper', 'title', *Verdict], rows)}\n"
    )


def json_index(reports: Sequence[Report]) -> str:
    """How many items of each paper have each verdict."""
    return tables.as_json({"papers": {report.paper.name: report.counts() for report in reports}})
