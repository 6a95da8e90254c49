"""Faults: what compiled code writes down about the first one of each kind and site, and how it is told.

A record is int64: lanes so far; then of the first in execution order its block, phase, warp, lanes (a mask),
and the values that its message names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...errors import Diagnostic
from ...language.types import BOOL, Scalar
from ...llvm.values import Value, one_lane
from ...runtime.engine import Request
from ...sanitizer.faults import Faults
from ...sanitizer.places import where

if TYPE_CHECKING:
    from .context import Build

HEADER = 5
COUNT, BLOCK, PHASE, WARP, LANES_FIELD = range(HEADER)

Number = bool | int | float
Telling = Callable[[str, Request, Sequence[Number]], Diagnostic]
"""From the place of the first lane, the launch and the values to the finding."""


@dataclass(frozen=True)
class Record:
    """One kind of fault at one site."""

    kind: str
    site: int
    start: int  # in the buffer
    types: tuple[Scalar, ...]
    tell: Telling


@dataclass
class Records:
    """Every fault that the compiled code can meet."""

    known: dict[tuple[str, int], Record] = field(default_factory=dict)
    size: int = 0

    def record(self, kind: str, site: int, types: Sequence[Scalar], tell: Telling) -> Record:
        if (kind, site) not in self.known:
            self.known[kind, site] = Record(kind, site, self.size, tuple(types), tell)
            self.size += HEADER + len(types)
        return self.known[kind, site]

    def collect(self, buffers: Sequence[npt.NDArray[np.int64]], request: Request) -> Faults:
        """The findings of all threads' buffers."""
        faults = Faults()
        for record in self.known.values():
            for buffer in buffers:
                found = buffer[record.start : record.start + HEADER + len(record.types)]
                if found[COUNT]:
                    order = (int(found[BLOCK]), int(found[PHASE]), int(found[WARP]))
                    faults.add(record.kind, record.site, order, int(found[COUNT]), lambda r=record, f=found: _told(r, f, request))  # type: ignore[misc]  # fmt: skip
        return faults


def _told(record: Record, found: npt.NDArray[np.int64], request: Request) -> Diagnostic:
    lanes = int(found[LANES_FIELD]) & 0xFFFFFFFF
    lane = (lanes & -lanes).bit_length() - 1
    thread = 32 * int(found[WARP]) + lane
    place = where(int(found[BLOCK]), thread, request.grid, request.block, lanes.bit_count() - 1)
    values = [_number(bits, type) for bits, type in zip(found[HEADER:], record.types, strict=True)]
    return record.tell(place, request, values)


def _number(bits: np.int64, type: Scalar) -> Number:
    """A value from the low bits of an int64."""
    number: Number = np.array([bits]).view(type.dtype)[0].item()
    return bool(bits & 1) if type is BOOL else number


def note(build: Build, record: Record, lanes: str, values: Sequence[Value]) -> None:
    """Print: these lanes (an i32) are at fault; of the first one ever, keep its values."""
    page = build.page
    pointer = page.element("i64", "%.faults", record.start, "record")
    header = [
        ("ptr", pointer), ("i64", build.block), ("i32", build.phase()), ("i32", build.warp), ("i32", lanes),
    ]  # fmt: skip
    first = page.call("i1", "note_fault", *header, hint="first")
    if not values:
        return
    keep, done = page.label("keep"), page.label("noted")
    page.branch(first, keep, done)
    page.place(keep)
    lane = page.call("i32", "llvm.cttz.i32", ("i32", lanes), ("i1", "false"), hint="lane")
    lane = page.let(f"and i32 {lane}, 31", "lane")
    for number, value in enumerate(values):
        page.store("i64", as_i64(build, value, lane), page.element("i64", pointer, HEADER + number))
    page.jump(done)
    page.place(done)


def as_i64(build: Build, value: Value, lane: str) -> str:
    """The bits of one lane's value."""
    page, type = build.page, value.type
    ref = one_lane(page, value, lane)
    if type.is_float:
        ref = page.let(f"bitcast {'float' if type.size == 4 else 'double'} {ref} to i{8 * type.size}", "bits")
    if type.bits == 64:
        return ref
    return page.let(f"zext i{type.bits} {ref} to i64", "bits")


NOTE_BARRIER = """define internal void @note_barrier(ptr %record, i64 %block, i32 %phase, ptr %active, ptr %alive) #2 {
  %here = load <32 x i32>, ptr %active
  %living = load <32 x i32>, ptr %alive
  %others = xor <32 x i32> %here, splat (i32 -1)
  %away = and <32 x i32> %living, %others
  %arrived = call i32 @note_lanes(<32 x i32> %here)
  %missing = call i32 @note_lanes(<32 x i32> %away)
  %some = icmp ne i32 %arrived, 0
  br i1 %some, label %count, label %done
count:
  %seen = load i64, ptr %record
  %missing64 = zext i32 %missing to i64
  %new = add i64 %seen, %missing64
  store i64 %new, ptr %record
  %first = icmp eq i64 %seen, 0
  br i1 %first, label %keep, label %done
keep:
  %thread = call i32 @note_first(<32 x i32> %here)
  %absent = call i32 @note_first(<32 x i32> %away)
  %warp = lshr i32 %thread, 5
  %lane = and i32 %thread, 31
  %bit = shl i32 1, %lane
  %p1 = getelementptr i64, ptr %record, i64 1
  store i64 %block, ptr %p1
  %words0 = insertelement <8 x i32> zeroinitializer, i32 %phase, i64 0
  %words1 = insertelement <8 x i32> %words0, i32 %warp, i64 1
  %words2 = insertelement <8 x i32> %words1, i32 %bit, i64 2
  %words3 = insertelement <8 x i32> %words2, i32 %arrived, i64 3
  %words4 = insertelement <8 x i32> %words3, i32 %missing, i64 4
  %words5 = insertelement <8 x i32> %words4, i32 %absent, i64 5
  %wide = zext <8 x i32> %words5 to <8 x i64>
  %six = shufflevector <8 x i64> %wide, <8 x i64> poison, <6 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5>
  %p2 = getelementptr i64, ptr %record, i64 2
  store <6 x i64> %six, ptr %p2, align 8
  %p8 = getelementptr i64, ptr %record, i64 8
  store i64 %block, ptr %p8
  br label %done
done:
  ret void
}
define internal i32 @note_lanes(<32 x i32> %masks) #2 {
  %each = call <32 x i32> @llvm.ctpop.v32i32(<32 x i32> %masks)
  %sum = call i32 @llvm.vector.reduce.add.v32i32(<32 x i32> %each)
  ret i32 %sum
}
define internal i32 @note_first(<32 x i32> %masks) #2 {
  %some = icmp ne <32 x i32> %masks, zeroinitializer
  %warps = bitcast <32 x i1> %some to i32
  %warp = call i32 @llvm.cttz.i32(i32 %warps, i1 false)
  %within = and i32 %warp, 31
  %mask = extractelement <32 x i32> %masks, i32 %within
  %lane = call i32 @llvm.cttz.i32(i32 %mask, i1 false)
  %start = shl i32 %within, 5
  %thread = add i32 %start, %lane
  ret i32 %thread
}"""
"""After the header: threads that arrived, threads that are missing, the first of these, the block."""

NOTE_DECLARED = (
    "declare i32 @llvm.ctpop.i32(i32)",
    "declare <32 x i32> @llvm.ctpop.v32i32(<32 x i32>)",
    "declare i32 @llvm.vector.reduce.add.v32i32(<32 x i32>)",
    "declare i32 @llvm.cttz.i32(i32, i1)",
)

NOTE_FAULT = """define internal i1 @note_fault(ptr %record, i64 %block, i32 %phase, i32 %warp, i32 %lanes) #2 {
  %n = call i32 @llvm.ctpop.i32(i32 %lanes)
  %n64 = zext i32 %n to i64
  %seen = load i64, ptr %record
  %new = add i64 %seen, %n64
  store i64 %new, ptr %record
  %first = icmp eq i64 %seen, 0
  br i1 %first, label %keep, label %done
keep:
  %p1 = getelementptr i64, ptr %record, i64 1
  store i64 %block, ptr %p1
  %p2 = getelementptr i64, ptr %record, i64 2
  %phase64 = zext i32 %phase to i64
  store i64 %phase64, ptr %p2
  %p3 = getelementptr i64, ptr %record, i64 3
  %warp64 = zext i32 %warp to i64
  store i64 %warp64, ptr %p3
  %p4 = getelementptr i64, ptr %record, i64 4
  %lanes64 = zext i32 %lanes to i64
  store i64 %lanes64, ptr %p4
  br label %done
done:
  ret i1 %first
}"""
