"""Schemas of the definition of a paper and of its measured times. Imported where a file is read: msgspec is."""

from typing import Annotated, Any, Literal

import msgspec

Amount = Annotated[float, msgspec.Meta(ge=0, le=1e300)]


class Timing(msgspec.Struct, forbid_unknown_fields=True):
    """A measured time."""

    milliseconds: Amount
    work: Amount
    machine: str
    dated: str


class Record(msgspec.Struct, forbid_unknown_fields=True):
    """The times of a paper."""

    paper: str
    timings: dict[Literal["GPU", "one core", "all cores"], dict[str, Timing]]


Expected = float | dict[str, float]


class Entry(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A comparison. value: name of values of the formula; or printed numbers. within: a tolerance, or its name."""

    value: str = ""
    quotient: tuple[float, float] | None = None
    sum: list[float] | None = None
    quantity: str = ""
    near: Expected | None = None
    exactly: Expected | None = None
    more_than: Expected | None = None
    less_than: Expected | None = None
    at_least: Expected | None = None
    at_most: Expected | None = None
    within: float | str = ""


class ClaimEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A claim."""

    text: str
    compare: list[Entry] = []
    main: bool = False
    remark: str = ""
    place: str = ""


class TableEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A table of printed figures."""

    title: str
    columns: list[str]
    rows: list[list[float | str]]


class ItemEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A table, figure, algorithm or headline. formula: "module:function" in the package of the paper."""

    name: str
    caption: str
    reason: str
    claim: list[ClaimEntry]
    formula: str = ""
    note: str = ""
    table: list[TableEntry] = []


class ParameterEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A parameter with its value for each size."""

    small: float
    paper: float
    meaning: str


class Tolerance(msgspec.Struct, forbid_unknown_fields=True):
    """A relative tolerance and the reason for its size."""

    within: Annotated[float, msgspec.Meta(gt=0, le=0.25)]
    source: str


class Definition(msgspec.Struct, forbid_unknown_fields=True):
    """A paper."""

    title: str
    citation: str
    device: str
    item: list[ItemEntry]
    benchmarks: str = ""
    parameters: dict[str, ParameterEntry] = {}
    tolerances: dict[str, Tolerance] = {}
    printed: dict[str, Any] = {}
    texts: dict[str, str] = {}
    sizes: list[tuple[str, str, str]] = []
