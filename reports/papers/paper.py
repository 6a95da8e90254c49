"""Data model of a paper: its tables, figures, algorithms and headline claims, and the content of each."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from simtbed import SimtbedError
from simtbed.runtime.registry import EngineName

from .claims import COMPUTED, Claim, Number, Origin, Source, Value, Verdict, change, verdict
from .measured import Benchmark, Machine, Measured, Timing

Cell: TypeAlias = str | Number | None


class Size(StrEnum):
    """Problem sizes. small: seconds on a laptop, for claims independent of size. paper: the parameters of the paper."""

    small = "small"
    paper = "paper"


# ------------------------------------------------------------------ content of an item
Row = dict[str, Cell]
"""Cells by column. A column of values is named "SOURCE: NAME", a column of row labels NAME."""


def source_of(column: str) -> Source | None:
    """Return the source of a column; None for row labels."""
    return next((source for source in Source if column.startswith(f"{source}: ")), None)


@dataclass(frozen=True)
class Table:
    """Rows of cells; a row may lack columns."""

    title: str
    rows: Sequence[Row]

    @property
    def columns(self) -> list[str]:
        """The columns, in the order of their first occurrence."""
        return list(dict.fromkeys(column for row in self.rows for column in row))


@dataclass(frozen=True)
class Series:
    """Points of one line, or bars of one colour: (position or name, height)."""

    name: str
    source: Source
    points: Sequence[tuple[Number | str, float]]


@dataclass(frozen=True)
class Chart:
    """A plot. across, up: titles of the horizontal and vertical axis. bars: groups of bars instead of lines. logarithmic: scale
    of the vertical axis."""

    title: str
    across: str
    up: str
    series: Sequence[Series]
    bars: bool = False
    logarithmic: bool = False


@dataclass(frozen=True)
class Figures:
    """The result of a formula. values: for the comparisons of claims, by name; numbers, by label, are of the origin `rule`.
    texts: for braces in the item's texts."""

    values: Mapping[str, Sequence[Value] | Mapping[str, Number] | Number] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()
    texts: Mapping[str, object] = field(default_factory=dict)
    rule: Origin = COMPUTED

    def values_of(self, name: str) -> Sequence[Value]:
        """Return the values of a name."""
        values = self.values[name]
        labelled = {"": values} if isinstance(values, int | float) else values
        if isinstance(labelled, Mapping):
            return [Value(self.rule, number, label) for label, number in labelled.items()]
        return labelled


@dataclass(frozen=True)
class Shown:
    """The content of an item. claims: one of them at least is a main claim. reason: a sentence on the verdict. note: method of
    measurement."""

    claims: Sequence[Claim]
    reason: str
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """The verdict of the claims."""
        return verdict(self.claims)

    @property
    def change(self) -> str:
        """The number that changes the verdict."""
        return change(self.claims)

    @property
    def measurements(self) -> list[Origin]:
        """The machines and dates of the measured values that claims compare."""
        used = {comparison.origin for claim in self.claims for comparison in claim.comparisons}
        return sorted((origin for origin in used if origin.dated), key=str)

    @property
    def sources(self) -> list[Source]:
        """The sources of the values, in the order of Source."""
        used = {source_of(column) for table in self.tables for column in table.columns}
        used |= {series.source for chart in self.charts for series in chart.series}
        used |= {c.origin.source for claim in self.claims for c in claim.comparisons if c.value is not None}
        return [source for source in Source if source in used]


# ------------------------------------------------------------------ a paper
@dataclass(frozen=True)
class Parameter:
    """A parameter with its value for each size. name: name of its option, with _ for -."""

    name: str
    small: Number
    paper: Number
    meaning: str


@dataclass(frozen=True)
class Setting:
    """Settings of a report. values: of the parameters. measured: measured times. data: a file of the user, in place of
    simulated data."""

    size: Size
    values: Mapping[str, Number]
    engine: EngineName
    measured: Measured
    data: Path | None = None

    def __getitem__(self, name: str) -> Number:
        return self.values[name]

    def whole(self, name: str) -> int:
        """Return the value of an integer parameter."""
        return int(self.values[name])

    def timing(self, name: str, machine: Machine) -> Timing | None:
        """Return the latest timing of a benchmark of the paper, if any."""
        return self.measured.timing(name, machine)

    def timings(self, name: str, machine: Machine) -> list[Timing]:
        """Return the timings of a benchmark on all machines."""
        return [timings[name] for timings in self.by_machine([name], machine)]

    def by_machine(self, names: Iterable[str], machine: Machine) -> list[dict[str, Timing]]:
        """Return the timings of benchmarks on each machine that has all of them."""
        return self.measured.by_machine(names, machine)


@dataclass(frozen=True)
class Item:
    """A table, figure, algorithm or headline claim. name: its number or place in the paper. caption: its subject."""

    name: str
    caption: str
    show: Callable[[Setting], Shown]


@dataclass(frozen=True)
class Paper:
    """A paper.

    items: every table, figure and algorithm, in order, and the claims of the abstract. benchmarks: work timed by
    `simtbed report --measure`. tolerances: relative, with the reason for the size of each. sizes: items, how much of them was
    computed at the size of the paper, and its processor time.
    """

    name: str
    title: str
    citation: str
    device: str
    parameters: Sequence[Parameter]
    items: Sequence[Item]
    benchmarks: Callable[[Setting], Iterator[Benchmark]] = lambda setting: iter(())
    tolerances: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    sizes: Sequence[Sequence[str]] = ()

    def setting(
        self,
        size: Size,
        overrides: Mapping[str, Number | None],
        engine: EngineName,
        measured: Measured,
        data: Path | None = None,
    ) -> Setting:
        """Return the parameters of a size with overrides. Raises SimtbedError for an unknown parameter."""
        defaults = {p.name: p.small if size is Size.small else p.paper for p in self.parameters}
        changed = {name: value for name, value in overrides.items() if value is not None}
        if unknown := [name for name in changed if name not in defaults]:
            has = ", ".join(f"--{name.replace('_', '-')}" for name in defaults) or "no parameters"
            raise SimtbedError(f"{self.name} has no --{unknown[0].replace('_', '-')}; it has {has}")
        return Setting(size, defaults | changed, engine, measured, data)


@dataclass(frozen=True)
class Report:
    """The evaluated items of a paper."""

    paper: Paper
    setting: Setting
    shown: Sequence[tuple[Item, Shown]]

    def counts(self) -> dict[Verdict, int]:
        """Return the number of items by verdict."""
        return {verdict: sum(shown.verdict is verdict for _, shown in self.shown) for verdict in Verdict}


def report(
    paper: Paper, setting: Setting, progress: Callable[[str], None] = lambda step: None, only: str | None = None
) -> Report:
    """Evaluate every item, or only one by name. progress: receives the name of the current item. Raises SimtbedError for an
    unknown name."""
    items = [item for item in paper.items if only is None or item.name.casefold() == only.casefold()]
    if not items:
        names = ", ".join(item.name for item in paper.items)
        raise SimtbedError(f"{paper.name} has no item {only!r}; expected one of {names}")
    shown = []
    for item in items:
        progress(item.name)
        shown.append((item, item.show(setting)))
    return Report(paper, setting, shown)
