"""Self-contained HTML page of a run: source with counters, explanations, pictures, tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import PurePath
from typing import Any

import jinja2

from ...errors import Diagnostic
from ...escaping import html, html_value
from ..costs import Costs, Place
from ..events import DERIVED, MEANING, METRIC
from ..explain import NO_EXPLANATION, Explanation, cycles, explanations
from ..samples import Table, costliest_row, lanes_by_iterations, nonempty_rows
from ..sums import CONFLICTS, DIVERGENT, INSTRUCTIONS, SECTORS, WAVEFRONTS, Sum
from . import pictures
from .roofline import Point, roofline

HEAT: Mapping[str, Sum] = {
    "instructions": INSTRUCTIONS,
    "divergent": DIVERGENT,
    "sectors": SECTORS,
    "wavefronts": WAVEFRONTS,
    "conflicts": CONFLICTS,
}
"""Columns of counters next to the source."""
MOST_BYTES, MOST_LAUNCHES, MOST_FINDINGS = 2_000_000, 500, 50
"""Limits of one page: bytes of the sections of kernels, rows of launches, findings."""
_SHADES = 6
Context = Any
"""Values of the template."""


@dataclass(frozen=True)
class SourceLine:
    """A line of the source. cells: for each column of HEAT its count and a shade from 0 to `_SHADES`."""

    number: int
    text: str
    anchor: str
    lanes: str
    cells: list[tuple[int, int]]
    notes: list[Explanation]


def frame(text: str) -> str:
    """Return a page as a frame within another one, for notebooks."""
    return f'<iframe srcdoc="{html(text)}" style="border: 0; height: 40rem; width: 100%"></iframe>'


def page(
    target: str,
    profiles: Mapping[str, Costs],
    launches: Sequence[Context] = (),
    occupancies: Mapping[str, Context] = {},
    findings: Mapping[str, Sequence[Diagnostic]] = {},
) -> str:
    """Return the text of the page.

    profiles: at least one, by name. launches: rows of `launches.row`. occupancies, findings: by the names of profiles.

    The page is limited to MOST_BYTES of kernels, MOST_LAUNCHES and MOST_FINDINGS. Beyond that, kernels and launches with
    faults, then the most expensive ones, are shown, and a sentence counts the others.
    """
    whole = sum(list(profiles.values())[1:], next(iter(profiles.values())))
    loader = jinja2.FunctionLoader(lambda name: files(__package__).joinpath(name).read_text(encoding="utf-8"))
    environment = jinja2.Environment(
        loader=loader, autoescape=True, finalize=html_value, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["figure"] = _figure
    shown = _sections(environment.get_template("kernel.html"), profiles, occupancies, findings)
    rows, faults = _worst_launches(launches), [str(fault) for faults in findings.values() for fault in faults]
    classes = [n.split(".")[1] for n, count in whole.totals().items() if n.startswith("warp_instructions.") and count]
    return environment.get_template("page.html").render(
        target=target,
        device=whole.device,
        launches=rows,
        made=len(launches),
        faults=faults[:MOST_FINDINGS],
        kernels=[kernel for kernel, _ in shown],
        sections=[section for _, section in shown],
        left_out=_omitted(len(profiles) - len(shown), len(launches) - len(rows), len(faults[MOST_FINDINGS:])),
        heat=list(HEAT),
        roofline=roofline([Point(k["name"], _intensity(profiles[k["name"]])) for k, _ in shown], classes, whole.device),
        style=files(__package__).joinpath("page.css").read_text(encoding="utf-8"),
        script=files(__package__).joinpath("page.js").read_text(encoding="utf-8"),
    )


# ------------------------------------------------------------------ size limits
def _sections(
    template: jinja2.Template,
    profiles: Mapping[str, Costs],
    occupancies: Mapping[str, Context],
    findings: Mapping[str, Sequence[Diagnostic]],
) -> list[tuple[Context, str]]:
    """Return kernels and their sections, in the order of `profiles` if all fit; else those with findings, then the most
    expensive ones, at least one."""
    names = list(profiles)
    dearest = {name: sum(map(cycles, profile.rows.values())) for name, profile in profiles.items()}
    shown: list[tuple[Context, str]] = []
    budget = MOST_BYTES
    for name in sorted(names, key=lambda name: (not findings.get(name), -dearest[name])):
        kernel = _kernel(names.index(name), name, profiles[name], occupancies.get(name, []))
        section = template.render(kernel=kernel, heat=list(HEAT), no_explanation=NO_EXPLANATION)
        budget -= len(section.encode(errors="backslashreplace"))
        if budget < 0 and shown:
            return shown
        shown.append((kernel, section))
    return sorted(shown, key=lambda section: names.index(section[0]["name"]))


def _worst_launches(rows: Sequence[Context]) -> Sequence[Context]:
    """Return all launches, or those with faults and then those with most instructions."""
    if len(rows) <= MOST_LAUNCHES:
        return rows
    return sorted(rows, key=lambda row: (not row["faults"], -row["instructions"]))[:MOST_LAUNCHES]


def _omitted(kernels: int, launches: int, findings: int) -> str:
    """Return a sentence that counts the omitted items; empty if there are none."""
    counted = ((kernels, "kernel", "s"), (launches, "launch", "es"), (findings, "finding", "s"))
    items = [f"{count:,} {word}{'' if count == 1 else ending}" for count, word, ending in counted if count]
    if not items:
        return ""
    return (
        f"Not on this page, which would be too large for a browser: {', '.join(items)}. "
        "Kernels and launches with faults are listed first, then the most expensive ones. The run saved as JSON is complete."
    )


# ------------------------------------------------------------------ a kernel
def _kernel(number: int, name: str, profile: Costs, occupancies: Context) -> dict[str, Any]:
    notes = explanations(profile)
    totals, derived = profile.totals(), profile.derived()
    anchor = f"k{number}"
    return {
        "anchor": anchor,
        "name": name,
        "launches": profile.launches,
        "device": profile.device.name,
        "notes": [(note, _line_anchor(anchor, note.place)) for note in notes],
        "files": [_source(anchor, profile, file, notes) for file in profile.sources if _lines_of(profile, file)],
        "totals": [(n, count, MEANING[n], METRIC.get(n, "")) for n, count in totals.items() if count],
        "derived": [(n, value, DERIVED[n], METRIC.get(n, "")) for n, value in derived.items()],
        "arrays": [(array, row) for array, row in profile.by_array().items()],
        "line_arrays": [
            (PurePath(file).name, line, array, row) for (file, line, array), row in profile.by_line_and_array().items()
        ],
        "accesses": list(_accesses(anchor, profile, notes[0].place if notes else None)),
        "loops": [
            (_place_text(place), _line_anchor(anchor, place), *_iterations(table))
            for place, table in profile.loops.items()
            if nonempty_rows(table)
        ],
        "branches": [
            (_place_text(place), _line_anchor(anchor, place), place.span.text, row)
            for place, row in profile.rows.items()
            if place.kind == "branch" and row.get("branches")
        ],
        "occupancy": occupancies,
    }


def _lines_of(profile: Costs, file: str) -> list[int]:
    return [line for (name, line) in profile.by_line() if name == file]


def _source(anchor: str, profile: Costs, file: str, notes: list[Explanation]) -> dict[str, Any]:
    """Return the lines of a file from the first with counters to the last."""
    by_line = profile.by_line()
    rows = {line: row for (name, line), row in by_line.items() if name == file}
    most = {name: max((value(row) for row in by_line.values()), default=0) for name, value in HEAT.items()}
    text = profile.sources[file].splitlines()
    first, last = max(1, min(rows) - 2), min(len(text), max(rows) + 1)
    lines = []
    for number in range(first, last + 1):
        row = rows.get(number, {})
        cells = [(value(row), _shade(value(row), most[name])) for name, value in HEAT.items()]
        instructions = row.get("warp_instructions", 0)
        lanes = f"{row.get('thread_instructions', 0) / instructions:.1f}" if instructions else ""
        own = [note for note in notes if (note.place.span.file, note.place.span.line) == (file, number)]
        lines.append(SourceLine(number, text[number - 1], f"{anchor}-{_tag(file)}-{number}", lanes, cells, own))
    return {"name": PurePath(file).name, "lines": lines}


def _shade(count: int, most: int) -> int:
    return min(_SHADES, 1 + int(_SHADES * count / most)) if count else 0


def _accesses(anchor: str, profile: Costs, shown_first: Place | None) -> Iterator[dict[str, Any]]:
    """Yield pictures of each access: of the cost with most transactions, and of the most frequent cost."""
    for place, table in profile.accesses.items():
        rows = nonempty_rows(table)
        if not rows:
            continue
        dearest, usual = costliest_row(table), max(rows, key=lambda row: int(table["count"][row]))
        shown = [("most transactions", dearest)] + ([("most frequent", usual)] if usual != dearest else [])
        unit = "sector" if place.kind.startswith("global") else "wavefront"
        yield {
            "where": _place_text(place),
            "line": _line_anchor(anchor, place),
            "what": f"{place.kind.replace('_', ' ')} of {place.array}",
            "open": place == shown_first,
            "costs": ", ".join(f"{_many(row, unit)}: {int(table['count'][row]):,}" for row in rows),
            "pictures": [
                (
                    f"{label}: {_many(row, unit)}, first in block {int(table['block'][row]):,}, warp {int(table['warp'][row])}",
                    pictures.access(place, table, row, profile.device),
                )
                for label, row in shown
            ],
        }


def _iterations(table: Table) -> tuple[str, str]:
    """Return a caption of a loop and the picture of its iterations; "" instead of one bar."""
    (first, last, lanes), *more = lanes_by_iterations(table)
    if more:
        return "lanes by iterations", pictures.iterations(table)
    number = f"{first:,}" if first == last else f"{first:,} to {last:,}"
    return f"{_many(lanes, 'lane')}, {number} iteration{'' if number == '1' else 's'} each", ""


def _many(count: int, unit: str) -> str:
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


def _line_anchor(anchor: str, place: Place) -> str:
    return f"{anchor}-{_tag(place.span.file)}-{place.span.line}"


def _place_text(place: Place) -> str:
    return f"{PurePath(place.span.file).name}:{place.span.line}"


def _tag(file: str) -> str:
    """Return the file's name as a component of an anchor."""
    return "".join(c if c.isalnum() else "-" for c in PurePath(file).name)


def _intensity(profile: Costs) -> float:
    """Return the warp instructions per sector of global memory."""
    totals = profile.totals()
    sectors = SECTORS(totals)
    return totals["warp_instructions"] / sectors if sectors else 0.0


def _figure(value: Any) -> str:
    """Format a number; empty for 0 and None."""
    if not value:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"
