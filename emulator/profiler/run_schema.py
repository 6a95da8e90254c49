"""Schema of a saved run. Imported where a run is read: msgspec is."""

from __future__ import annotations

from dataclasses import fields
from types import GenericAlias
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from ..documents import NestedNumbers, PrintableText
from ..machine.device import Device, Rates
from ..machine.timing import Timing
from .events import COLUMNS
from .samples import ACCESS, COSTS, ITERATIONS, LOOP

Row = dict[str, Any]
Whole = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
"""Doubles represent these integers exactly."""
Signed = Annotated[int, msgspec.Meta(ge=-(1 << 53), le=1 << 53)]
Small = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]
Number = Annotated[float, msgspec.Meta(ge=0, le=1e300)]
Place = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]
Size = Annotated[int, msgspec.Meta(ge=1, le=(1 << 31) - 1)]


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """A table with exactly these keys."""


class Span(Strict):
    """A position in a source."""

    file: Annotated[str, msgspec.Meta(min_length=1)]
    line: Place
    column: Place
    end_line: Place
    end_column: Place
    calls: list[Span]


class Insertion(Strict):
    """A statement of a remedy, and its place."""

    statement: PrintableText
    file: Annotated[str, msgspec.Meta(min_length=1)]
    line: Place
    place: Literal["before", "start of loop", "end of loop"]


class Finding(Strict):
    """A finding of a launch."""

    kind: PrintableText
    message: str
    span: Span
    notes: list[str]
    count: Whole
    related: Span | None
    remedy: list[Insertion]
    array: str
    blocks: list[Whole]
    of_copies: bool = False


class Argument(Strict):
    """An argument of a launch."""

    name: PrintableText
    type: PrintableText
    shape: list[Whole] | None
    value: NestedNumbers


def _of_fields(row: Any, **forms: Any) -> Any:
    """Return the schema of a dataclass. forms: of some fields; the class checks the others."""
    return msgspec.defstruct(
        row.__name__, [(one.name, forms.get(one.name, Any)) for one in fields(row)], forbid_unknown_fields=True
    )


def _row(dtype: np.dtype[Any], rows: int) -> Any:
    """Return the schema of the rows of a sample table: of each site a list of rows, each its number and its fields."""
    forms: list[Any] = [Annotated[int, msgspec.Meta(ge=0, le=rows - 1)]]
    for field, *_ in (dtype.fields or {}).values():
        value = _integer(field.base)
        forms.append(GenericAlias(tuple, (value,) * field.shape[0]) if field.shape else value)
    of_site = GenericAlias(list, (GenericAlias(tuple, tuple(forms)),))
    return GenericAlias(list, (GenericAlias(tuple, (Whole, of_site)),))


def _integer(dtype: np.dtype[Any]) -> Any:
    limits = np.iinfo(dtype)
    most = (1 << 63) - 1  # msgspec has no larger limits
    return Annotated[int, msgspec.Meta(ge=int(limits.min), le=min(int(limits.max), most))]


_Device: Any = _of_fields(Device, name=PrintableText, rates=_of_fields(Rates), timing=_of_fields(Timing))


class Remedy(Strict):
    """A change of accesses."""

    rule: PrintableText
    sites: list[Whole]
    savings: list[tuple[PrintableText, Signed]]
    cycles: Whole
    numbers: list[Whole]


_Samples: Any = msgspec.defstruct(
    "Samples",
    [("accesses", _row(ACCESS, COSTS)), ("loops", _row(LOOP, ITERATIONS)), ("remedies", list[Remedy])],
    forbid_unknown_fields=True,
)


class SourceSite(Strict):
    """A statement with counters."""

    span: Span
    kind: PrintableText
    array: PrintableText
    size: Small
    costs: dict[str, Small]
    parent: Whole | None


class Kernel(Strict):
    """A kernel and the files of its sites."""

    name: PrintableText
    span: Span
    files: list[str]
    sites: list[SourceSite]


Dim3 = Annotated[list[Size], msgspec.Meta(min_length=3, max_length=3)]
Launch: Any = msgspec.defstruct(
    "Launch",
    [
        ("kernel", Whole), ("device", Whole), ("grid", Dim3), ("block", Dim3), ("arguments", list[Argument]),
        ("shared_bytes", Whole), ("engine", PrintableText), ("seconds", Number), ("milliseconds", Number | None),
        ("registers", Annotated[int, msgspec.Meta(ge=0, le=1 << 16)] | None),
        ("counts", list[Annotated[list[Whole], msgspec.Meta(min_length=COLUMNS, max_length=COLUMNS)]] | None),
        ("samples", _Samples | None),
        *((name, list[Finding]) for name in ("faults", "remarks", "disagreements")),
    ],
    forbid_unknown_fields=True,
)  # fmt: skip
RunFile: Any = msgspec.defstruct(
    "RunFile",
    [
        ("format", Literal["simtbed run"]), ("version", Literal[1]), ("target", PrintableText), ("sources", dict[str, str]),
        ("devices", list[_Device]), ("kernels", list[Kernel]), ("launches", list[Launch]),
    ],
    forbid_unknown_fields=True,
)  # fmt: skip
