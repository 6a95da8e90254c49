"""Elements of the accesses of warps, sorted by lane value: sectors, regular patterns, and the elements of another layout."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..language.intrinsics import WARP_SIZE
from .trace import Entries

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_LANES = np.arange(WARP_SIZE)


@dataclass(frozen=True)
class LaneElements:
    """The elements of n accesses of one array. index: int64[n, 32]; active: bool[n, 32]; size: bytes of an element."""

    index: Numbers
    active: Mask
    size: int

    @staticmethod
    def from_entries(entries: Entries, size: int) -> LaneElements:
        """Return the elements of accesses, ENTRY[n]."""
        active = (entries["mask"][:, None] >> _LANES.astype(np.uint32) & 1).astype(np.bool_)
        return LaneElements(np.ascontiguousarray(entries["index"]), active, size)

    @cached_property
    def order(self) -> npt.NDArray[np.intp]:
        """int[n, 32]: the lanes by their element, inactive lanes last."""
        return np.argsort(np.where(self.active, self.index, np.iinfo(np.int64).max), axis=1, kind="stable")

    @cached_property
    def elements(self) -> Numbers:
        """int64[n, 32]: the elements in ascending order, the last one repeated for inactive lanes."""
        ascending = np.take_along_axis(self.index, self.order, axis=1)
        last = np.take_along_axis(ascending, self.lanes[:, None] - 1, axis=1)
        return np.where(self.lanes[:, None] > _LANES, ascending, last)

    @cached_property
    def lanes(self) -> Numbers:
        """int64[n]: active lanes."""
        return np.asarray(self.active.sum(axis=1))

    @cached_property
    def ranks(self) -> Numbers:
        """int64[n, 32]: for each of `elements` the number of smaller ones."""
        ranks = np.zeros_like(self.elements)
        ranks[:, 1:] = np.cumsum(np.diff(self.elements, axis=1) > 0, axis=1)
        return ranks

    @property
    def distinct(self) -> Numbers:
        """int64[n]: different elements."""
        return self.ranks[:, -1] + 1

    @cached_property
    def first_lanes(self) -> Mask:
        """bool[n, 32]: active lanes whose element no lower lane accesses."""
        new = np.ones_like(self.active)
        new[:, 1:] = np.diff(self.ranks, axis=1) > 0
        first = np.zeros_like(self.active)
        np.put_along_axis(first, self.order, new, axis=1)
        return first & self.active

    @cached_property
    def lane_step(self) -> Numbers:
        """int64[n]: the common distance of elements from one lane to the next; 0 if there is none, or one element."""
        first = np.argmax(self.active, axis=1)
        rows = np.arange(len(first))
        gaps = _LANES - first[:, None]
        beyond = self.active & (gaps > 0)
        second = np.argmax(beyond, axis=1)
        distance = self.index - self.index[rows, first][:, None]
        step, rest = np.divmod(distance[rows, second], np.maximum(gaps[rows, second], 1))
        follows = ((distance == step[:, None] * gaps) | ~self.active).all(axis=1)
        return np.where(follows & (rest == 0) & beyond.any(axis=1), step, 0)

    def sectors(self, elements: Numbers, sector: int) -> Numbers:
        """Return int64[n], the sectors of ascending elements, int64[n, 32]."""
        numbers = elements * self.size // sector
        return np.asarray(1 + (np.diff(numbers, axis=1) > 0).sum(axis=1))

    @cached_property
    def spacing(self) -> Numbers:
        """int64[n, 2]: the distance and the length of runs of neighbours; the length is 1 for elements at multiples of one
        distance. Zeros if there are no such runs, or one."""
        gaps = np.diff(self.elements, axis=1)
        common = np.gcd.reduce(gaps, axis=1)
        jumps = gaps > 1
        count = jumps.sum(axis=1)
        widest = gaps.max(axis=1)
        equal = np.where(jumps, gaps, widest[:, None]).min(axis=1) == widest
        length, rest = np.divmod(self.distinct, count + 1)
        whole = (~jumps | (self.ranks[:, 1:] % np.maximum(length, 1)[:, None] == 0)).all(axis=1)
        runs = (count > 0) & equal & (rest == 0) & whole & (length > 1)
        # elements start..start + length - 1 of each run, so that the distance of runs is the jump and the run's length less 1
        spacing = np.zeros((len(gaps), 2), np.int64)
        spacing[runs] = np.stack([widest + length - 1, length], axis=1)[runs]
        strided = common > 1
        spacing[strided] = np.stack([common, np.ones_like(common)], axis=1)[strided]
        return spacing

    @property
    def irregular(self) -> Mask:
        """bool[n]: elements at no common distance, or at multiples of one with larger gaps, as of random rows of a table."""
        multiples = (self.spacing[:, 1] == 1) & (np.diff(self.elements, axis=1).max(axis=1) > self.spacing[:, 0])
        return np.asarray((self.spacing[:, 0] == 0) | multiples)

    def packed(self, sector: int) -> Numbers:
        """Return int64[n, 32]: the elements, ascending, after a change that makes regular elements neighbours.

        Elements at one distance begin at a sector; runs begin where the first of them does.
        """
        distance = np.where(self.spacing[:, 1] == 1, self.spacing[:, 0], 1)
        dense = (self.elements - self.elements[:, :1]) // distance[:, None]
        begin = self.elements[:, :1] % (sector // self.size)
        return np.where((self.spacing[:, 1] > 1)[:, None], self.ranks + begin, dense)
