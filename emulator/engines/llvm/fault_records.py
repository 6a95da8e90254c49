"""The buffer in which compiled code records faults: its layout, and the findings read from it.

A record stands for the faults of one kind at one site. It counts all lanes at fault and describes the first of them
in the order of execution. All fields are int64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...errors import Diagnostic
from ...language.types import BOOL, Scalar
from ...runtime.engine import Request
from ...sanitizer.faults import Faults
from ...sanitizer.places import thread_text

HEADER = np.dtype([(name, np.int64) for name in ("lanes", "block", "phase", "warp", "mask")])
"""lanes: lanes at fault so far. block, phase, warp, mask (of lanes): where the first fault was. The values that its
message names follow the header."""


def _with_values(*names: str) -> np.dtype[np.void]:
    return np.dtype([(name, np.int64) for name in (*(HEADER.names or ()), *names)])


BOUNDS = _with_values("index", "length")
"""The record of an access out of bounds; the registers of its index tracked."""
BARRIER = _with_values("arrived", "missing", "first_missing", "missing_block")
"""The record of a barrier that not every thread reaches: numbers of threads, and the first thread that is missing."""


def position(layout: np.dtype[np.void], name: str) -> int:
    """The place of a field in a record, in int64 elements."""
    assert layout.fields is not None
    return int(layout.fields[name][1]) // 8


def length(layout: np.dtype[np.void]) -> int:
    """The int64 elements of a record."""
    return layout.itemsize // 8


Number = bool | int | float
Describe = Callable[[str, Request, Sequence[Number]], Diagnostic]
"""From the place of the first lane, the launch and the values to the finding."""


@dataclass(frozen=True)
class FaultRecord:
    """One kind of fault at one site. start: its place in the buffer. types: of the values after the header."""

    kind: str
    site: int
    start: int
    types: tuple[Scalar, ...]
    describe: Describe


@dataclass
class FaultRecords:
    """Every fault that the compiled code can meet. size: int64 elements of the buffer."""

    known: dict[tuple[str, int], FaultRecord] = field(default_factory=dict)
    size: int = 0

    def record(self, kind: str, site: int, types: Sequence[Scalar], describe: Describe) -> FaultRecord:
        """The record of a kind and site, made when first asked for."""
        if (kind, site) not in self.known:
            self.known[kind, site] = FaultRecord(kind, site, self.size, tuple(types), describe)
            self.size += length(HEADER) + len(types)
        return self.known[kind, site]

    def collect(self, buffers: Sequence[npt.NDArray[np.int64]], request: Request) -> Faults:
        """The findings of all threads' buffers."""
        faults = Faults()
        for record in self.known.values():
            for buffer in buffers:
                first = record.start + length(HEADER)
                header = buffer[record.start : first].view(HEADER)[0]
                values = buffer[first : first + len(record.types)]
                if header["lanes"]:
                    order = (int(header["block"]), int(header["phase"]), int(header["warp"]))
                    faults.add(
                        record.kind,
                        record.site,
                        order,
                        int(header["lanes"]),
                        lambda r=record, h=header, v=values: _diagnostic(r, h, v, request),  # type: ignore[misc]
                    )
        return faults


def _diagnostic(record: FaultRecord, header: np.void, values: npt.NDArray[np.int64], request: Request) -> Diagnostic:
    mask = int(header["mask"]) & 0xFFFFFFFF
    lane = (mask & -mask).bit_length() - 1
    thread = 32 * int(header["warp"]) + lane
    place = thread_text(int(header["block"]), thread, request.grid, request.block, mask.bit_count() - 1)
    numbers = [_number(bits, type) for bits, type in zip(values, record.types, strict=True)]
    return record.describe(place, request, numbers)


def _number(bits: np.int64, type: Scalar) -> Number:
    """A value from the low bits of an int64."""
    number: Number = np.array([bits]).view(type.dtype)[0].item()
    return bool(bits & 1) if type is BOOL else number
