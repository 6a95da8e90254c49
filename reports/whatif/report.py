"""Report of a sweep: text table, JSON, and an HTML page with plots."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, NamedTuple

import jinja2
from simtbed import Device
from simtbed.escaping import Document, html_value
from simtbed.model.outputs import Agreement
from simtbed.model.sweep_table import OBJECTIVES, SweepTable
from simtbed.profiler.html.roofline import Point, roofline

from .. import tables
from .plots import heat_map, line_plot

HEADINGS = (
    "kernel", "device", "choice", "launch", "grid", "us", "low us", "high us", "bound", "L1", "L2", "DRAM bytes",
    "outputs",
)  # fmt: skip
_TEXT_COLUMNS = 3
"""Leading columns with text."""
UNITS = {"time": "us", "bytes": "bytes of device memory"}


def text(title: str, table: SweepTable) -> str:
    """Return the rows, the best choices with margins and explanations of their bounds, the choices with other outputs, and the
    refused choices."""
    paragraphs = [title, tables.table(HEADINGS, _rows(table), left=_TEXT_COLUMNS)]
    for best in _best(table):
        rank = f"best of {best.choices}" if best.choices > 1 else ""
        rank = ", ".join(filter(None, [rank, best.outputs]))
        line = f"{best.kernel} on {best.device}, {rank}{': ' * bool(rank)}{best.choice}: {best.amount} {UNITS[table.objective]}"
        paragraphs.append(f"{line}{', ' * bool(best.margin)}{best.margin}\n{best.explanation}")
    paragraphs += _without_best(table)
    if lines := _differences(table):
        paragraphs.append("\n".join(lines))
    if table.refused:
        paragraphs.append("\n".join(f"omitted: {line}" for line in table.refused))
    return "\n\n".join(paragraphs)


def _differences(table: SweepTable) -> list[str]:
    """Return a line for each launch and choice with other outputs, with the reason."""
    lines = (
        f"not a candidate: {row['kernel']}, launch {row['launch']}, {choice}: {row['outputs']}"
        for row, choice, agreement in zip(table, table.choices, table.agreements, strict=True)
        if agreement is Agreement.differ
    )
    return list(dict.fromkeys(lines))


def _without_best(table: SweepTable) -> list[str]:
    """Return a line for each kernel and device without a candidate."""
    best = table.best()
    return [f"{kernel} on {device}: no best choice" for kernel, device in table.sums() if (kernel, device) not in best]


def _rows(table: SweepTable) -> list[list[Any]]:
    """Return formatted cells."""
    return [
        [
            row["kernel"], row["device"], choice, row["launch"], "x".join(map(str, row["grid"])),
            f"{row['time_us']:,.2f}", f"{row['low_us']:,.2f}", f"{row['high_us']:,.2f}", row["bound"],
            f"{100 * row['l1_hit']:.1f} %", f"{100 * row['l2_hit']:.1f} %", row["dram_bytes"],
            agreement.value,
        ]
        for row, choice, agreement in zip(table, table.choices, table.agreements, strict=True)
    ]  # fmt: skip


_COMPARED = (Agreement.reference.value, Agreement.equal.value)


class _Best(NamedTuple):
    """The best choice for a kernel on a device.

    choices: number of candidates. amount: value of the objective. margin: text about the other choices: a tie, or the relative
    difference from the second best; "" if there are none. outputs: what was not compared, "" if everything was.
    """

    kernel: str
    device: str
    choice: str
    choices: int
    amount: str
    margin: str
    bound: str
    explanation: str
    outputs: str


def _best(table: SweepTable) -> list[_Best]:
    sums, ties, result = table.candidates(), table.ties(), []
    for (kernel, device), (choice, margin) in table.best().items():
        totals = sums[kernel, device]
        first = next(
            n for n, row in enumerate(table)
            if (row["kernel"], row["device"], table.choices[n]) == (kernel, device, choice)
        )  # fmt: skip
        tied = ties[kernel, device][1:]
        less = f"a tie with {', '.join(tied)}" if tied else f"{100 * margin:.2g} % less than the next"
        bound, explanation = table[first]["bound"], table.explanations[first]
        amount = f"{totals[choice]:,.2f}"
        outputs = "; ".join(text for text in table.outputs(kernel, device, choice) if text not in _COMPARED)
        result.append(
            _Best(
                kernel,
                device,
                choice,
                len(totals),
                amount,
                less if len(totals) > 1 else "",
                bound,
                explanation,
                outputs,
            )
        )
    return result


def as_json(table: SweepTable) -> Document:
    """Return a list with one object per launch and configuration."""
    return tables.as_json(list(table))


def page(title: str, table: SweepTable, devices: Iterable[Device]) -> str:
    """Return a self-contained HTML page."""
    best, images = _best(table), plots(table)
    kernels = [
        {
            "name": kernel,
            "plots": [plot for plot in images if plot.kernel == kernel],
            "explanations": [(f"{b.device}, {b.choice}", b.explanation) for b in best if b.kernel == kernel],
        }
        for kernel in dict.fromkeys(row["kernel"] for row in table)
    ]
    environment = jinja2.Environment(autoescape=True, finalize=html_value, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
    headings = [(name, number < _TEXT_COLUMNS or name == "bound") for number, name in enumerate(HEADINGS)][1:]
    return template.render(
        title=title, differences=[*_without_best(table), *_differences(table)],
        style=files("simtbed.profiler.html").joinpath("page.css").read_text(encoding="utf-8"),
        unit=UNITS[table.objective], best=best, refused=table.refused, kernels=kernels, headings=headings, rows=_rows(table),
        rooflines=rooflines(table, devices),
    )  # fmt: skip


def rooflines(table: SweepTable, devices: Iterable[Device]) -> list[tuple[str, str]]:
    """Return title and SVG of a roofline per device. Points: by kernel and choice, warp instructions per DRAM sector and per
    second of the predicted time."""
    result = []
    for device in devices:
        sums: dict[str, tuple[int, int, float]] = {}
        for row, choice in zip(table, _labels(table), strict=True):
            if row["device"] == device.name:
                name = f"{row['kernel']}, {choice}"
                instructions, sectors, time = sums.get(name, (0, 0, 0.0))
                sectors += row["dram_bytes"] // device.sector
                sums[name] = instructions + row["warp_instructions"], sectors, time + row["time_us"] / 1e6
        points = [Point(name, n / sectors, n / time) for name, (n, sectors, time) in sums.items() if sectors]
        if points:
            result.append((f"{device.name}: device memory", roofline(points, ("fp32", "alu"), device)))
    return result


def _labels(table: SweepTable) -> list[str]:
    """Return the choice of each row for plots, with a mark unless it is a candidate."""
    candidates = table.candidates()
    return [
        choice if choice in candidates[row["kernel"], row["device"]] else f"{choice} (no candidate)"
        for row, choice in zip(table, table.choices, strict=True)
    ]


class Plot(NamedTuple):
    """A plot of a kernel."""

    kernel: str
    title: str
    svg: str


Points = dict[str, dict[str, tuple[float, float, float]]]
"""Value, low and high of the objective, by device and choice."""


def plots(table: SweepTable) -> list[Plot]:
    """Return a line plot per kernel, and a heat map per device if the choices form a grid of two axes."""
    result, unit = [], UNITS[table.objective]
    for kernel, points in _points(table).items():
        result.append(Plot(kernel, f"{unit} by choice", line_plot(points, unit)))
        for device, choices in points.items():
            if cells := _grid(choices):
                result.append(Plot(kernel, f"{unit} on {device}", heat_map(cells)))
    return result


def _points(table: SweepTable) -> dict[str, Points]:
    """Sum the objective over the launches of each kernel, device and choice."""
    by_kernel: dict[str, Points] = defaultdict(lambda: defaultdict(dict))
    for row, choice in zip(table, _labels(table), strict=True):
        choices = by_kernel[row["kernel"]][row["device"]]
        value, low, high = choices.get(choice, (0.0, 0.0, 0.0))
        objective = row[OBJECTIVES[table.objective]]
        ends = (row["low_us"], row["high_us"]) if table.objective == "time" else (objective, objective)
        choices[choice] = (value + objective, low + ends[0], high + ends[1])
    return by_kernel


def _grid(choices: Mapping[str, tuple[float, float, float]]) -> dict[tuple[str, ...], float]:
    """Return the values by pair of choices if all pairs of two axes occur, else nothing."""
    pairs = [tuple(choice.rsplit(", ", 1)) for choice in choices]
    if len(pairs) <= 3 or any(len(pair) != 2 for pair in pairs):
        return {}
    first, second = (len({pair[axis] for pair in pairs}) for axis in (0, 1))
    if first < 2 or second < 2 or first * second != len(pairs):
        return {}
    return {pair: choices[", ".join(pair)][0] for pair in pairs}
