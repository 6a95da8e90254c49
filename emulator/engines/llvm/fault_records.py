"""Fault buffer of compiled code: its layout, and the conversion to findings.

A record represents the faults of one kind at one site: the number of lanes at fault, and the first of them in execution order.
All fields are int64.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...errors import Diagnostic
from ...language.intrinsics import WARP_SIZE
from ...language.types import BOOL, Scalar
from ...runtime.engine import Request
from ...sanitizer.faults import Faults
from ...sanitizer.places import thread_text

HEADER = np.dtype([(name, np.int64) for name in ("lanes", "block", "phase", "warp", "mask")])
"""lanes: number of lanes at fault. block, phase, warp, mask (of lanes): location of the first fault. The values for its message
follow the header."""


def _with_values(*names: str) -> np.dtype[np.void]:
    return np.dtype([(name, np.int64) for name in (*(HEADER.names or ()), *names)])


BOUNDS = _with_values("index", "length")
"""Record of an out-of-bounds access; the tracked registers of its index follow."""
BARRIER = _with_values("arrived", "missing", "first_missing", "missing_block")
"""Record of a divergent barrier: numbers of threads, and the first missing thread."""


def position(layout: np.dtype[np.void], name: str) -> int:
    """Return the offset of a field in a record, in int64 elements."""
    assert layout.fields is not None
    return int(layout.fields[name][1]) // 8


def length(layout: np.dtype[np.void]) -> int:
    """Return the int64 elements of a record."""
    return layout.itemsize // 8


Number = bool | int | float
Describe = Callable[[str, Request, Sequence[Number]], Diagnostic]
"""Maps the location of the first lane, the launch and the values to the finding."""


@dataclass(frozen=True)
class FaultRecord:
    """One kind of fault at one site. start: offset in the buffer. types: of the values after the header."""

    kind: str
    site: int
    start: int
    types: tuple[Scalar, ...]
    describe: Describe


@dataclass
class FaultRecords:
    """All possible faults of the compiled code. size: int64 elements of the buffer."""

    by_kind: dict[tuple[str, int], FaultRecord] = field(default_factory=dict)
    size: int = 0

    def record(self, kind: str, site: int, types: Sequence[Scalar], describe: Describe) -> FaultRecord:
        """Return the record of a kind and site, created on first use."""
        if (kind, site) not in self.by_kind:
            self.by_kind[kind, site] = FaultRecord(kind, site, self.size, tuple(types), describe)
            self.size += length(HEADER) + len(types)
        return self.by_kind[kind, site]

    def collect(self, buffers: Sequence[npt.NDArray[np.int64]], request: Request) -> Faults:
        """Return the findings of the buffers of all threads."""
        faults = Faults()
        for record in self.by_kind.values():
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
    thread = WARP_SIZE * int(header["warp"]) + lane
    place = thread_text(int(header["block"]), thread, request.grid, request.block, mask.bit_count() - 1)
    numbers = [_number(bits, type) for bits, type in zip(values, record.types, strict=True)]
    return record.describe(place, request, numbers)


def _number(bits: np.int64, type: Scalar) -> Number:
    """Return a value from the low bits of an int64."""
    number: Number = np.array([bits]).view(type.dtype)[0].item()
    return bool(bits & 1) if type is BOOL else number
