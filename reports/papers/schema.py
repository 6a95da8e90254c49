"""Schema of the measured times of a paper. Imported where a record is read: msgspec is."""

from __future__ import annotations

from typing import Annotated, Literal

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
