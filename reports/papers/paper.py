"""A paper as data: its tables and figures in its own order, what each claims, and what is found here beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from simtbed import SimtbedError
from simtbed.runtime.registry import EngineName

from .measured import Machine, Measured, Timed, Timing

Cell: TypeAlias = str | int | float | None
Number: TypeAlias = int | float


class Size(StrEnum):
    """small: seconds on a laptop, for claims that do not depend on size. paper: the paper's own parameters."""

    small = "small"
    paper = "paper"


class Source(StrEnum):
    """Where a figure comes from. emulator: counted by the rules of the paper's GPU, or computed by a shipped variant."""

    paper = "paper"
    emulator = "emulator"
    model = "time model"
    gpu = "GPU"
    cpu = "CPU"


class Verdict(StrEnum):
    """What became of the claims of a table or figure."""

    reproduced = "reproduced"
    partly = "partly"
    contradicted = "contradicted"
    not_shown = "cannot be shown"


# ------------------------------------------------------------------ what an item shows
@dataclass(frozen=True)
class Column:
    """A column of a table. source: None for what a row is about."""

    name: str
    source: Source | None = None


def about(name: str) -> Column:
    """The column that says what a row is about."""
    return Column(name)


def paper(name: str) -> Column:
    """A column of the paper's own figures."""
    return Column(name, Source.paper)


def emulator(name: str) -> Column:
    """A column of what the emulator counts or computes."""
    return Column(name, Source.emulator)


def model(name: str) -> Column:
    """A column of what the time model predicts."""
    return Column(name, Source.model)


def gpu(name: str) -> Column:
    """A column of what a GPU's record holds."""
    return Column(name, Source.gpu)


def cpu(name: str) -> Column:
    """A column of what was measured on a CPU."""
    return Column(name, Source.cpu)


Row = Mapping[Column, Cell]


@dataclass(frozen=True)
class Table:
    """Rows of cells; a row may leave columns out."""

    title: str
    rows: Sequence[Row]

    @property
    def columns(self) -> list[Column]:
        """In the order in which rows name them."""
        return list(dict.fromkeys(column for row in self.rows for column in row))


@dataclass(frozen=True)
class Series:
    """Points of one line, or bars of one colour: (position or name, height)."""

    name: str
    source: Source
    points: Sequence[tuple[Number | str, float]]


@dataclass(frozen=True)
class Chart:
    """A plot as the paper draws it. across, up: the names of the axes. bars: groups of bars instead of lines.
    logarithmic: the axis upwards."""

    title: str
    across: str
    up: str
    series: Sequence[Series]
    bars: bool = False
    logarithmic: bool = False


@dataclass(frozen=True)
class Claim:
    """What the paper says with a table or figure. holds: None where nothing here can tell. found: what is found here."""

    text: str
    holds: bool | None
    found: str


@dataclass(frozen=True)
class Shown:
    """An item as far as it can be shown. why: a sentence on the verdict. note: how the figures were taken."""

    claims: Sequence[Claim]
    why: str
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """Reproduced if all claims hold, contradicted if none does of those that can be told, partly in between."""
        told = [claim.holds for claim in self.claims if claim.holds is not None]
        if not told:
            return Verdict.not_shown
        if not any(told):
            return Verdict.contradicted
        return Verdict.reproduced if len(told) == len(self.claims) and all(told) else Verdict.partly

    @property
    def sources(self) -> list[Source]:
        """Where its figures come from, in the order of Source."""
        found = {column.source for table in self.tables for column in table.columns}
        found |= {series.source for chart in self.charts for series in chart.series}
        return [source for source in Source if source in found]


# ------------------------------------------------------------------ a paper
@dataclass(frozen=True)
class Parameter:
    """What the size of a report sets, unless its option says otherwise. name: of the option, with - for _."""

    name: str
    small: Number
    paper: Number
    meaning: str


@dataclass(frozen=True)
class Setting:
    """What a report is made with. values: of the paper's parameters. measured: what machines have measured."""

    size: Size
    values: Mapping[str, Number]
    engine: EngineName
    measured: Measured

    def __getitem__(self, name: str) -> Number:
        return self.values[name]

    def whole(self, name: str) -> int:
        """A parameter that is a whole number."""
        return int(self.values[name])

    def timing(self, name: str, machine: Machine) -> Timing | None:
        """What was measured under a name of the paper's `timed`, if it was."""
        return self.measured.timing(name, machine)


@dataclass(frozen=True)
class Item:
    """A table or figure. name: as the paper numbers it. caption: what it is, in a few words."""

    name: str
    caption: str
    show: Callable[[Setting], Shown]


def nothing_timed(setting: Setting) -> Iterator[Timed]:
    """For a paper of which nothing is timed."""
    return iter(())


@dataclass(frozen=True)
class Paper:
    """A paper. items: every table and figure, in its order. timed: what `simtbed report --measure` takes the time of."""

    name: str
    title: str
    citation: str
    device: str
    parameters: Sequence[Parameter]
    items: Sequence[Item]
    timed: Callable[[Setting], Iterator[Timed]] = nothing_timed

    def setting(
        self, size: Size, given: Mapping[str, Number | None], engine: EngineName, measured: Measured
    ) -> Setting:
        """The parameters of a size, with those that are given instead. Raises SimtbedError for one it does not have."""
        known = {one.name: one.small if size is Size.small else one.paper for one in self.parameters}
        changed = {name: value for name, value in given.items() if value is not None}
        if unknown := [name for name in changed if name not in known]:
            has = ", ".join(f"--{name.replace('_', '-')}" for name in known) or "no parameters"
            raise SimtbedError(f"{self.name} has no --{unknown[0].replace('_', '-')}; it has {has}")
        return Setting(size, known | changed, engine, measured)


@dataclass(frozen=True)
class Report:
    """A paper's items, shown."""

    paper: Paper
    setting: Setting
    shown: Sequence[tuple[Item, Shown]]

    def counts(self) -> dict[Verdict, int]:
        """How many items have each verdict."""
        return {verdict: sum(shown.verdict is verdict for _, shown in self.shown) for verdict in Verdict}


def report(paper: Paper, setting: Setting, tell: Callable[[str], None] = lambda done: None) -> Report:
    """Show every item. tell: takes the name of the one that is being shown."""
    found = []
    for item in paper.items:
        tell(item.name)
        found.append((item, item.show(setting)))
    return Report(paper, setting, found)
