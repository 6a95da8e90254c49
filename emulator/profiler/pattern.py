"""Classification of the elements of one access: one element, a stride, runs of neighbours, or scattered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..language.intrinsics import WARP_SIZE

Elements = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pattern:
    """The elements of an access's active lanes.

    kind: "one" element for all lanes; a "stride" from lane to lane, which may repeat; "runs" of neighbours, of one length
    and at one distance; "scattered" otherwise. stride: elements from one lane to the next, or from one run to the next, 0 if
    there is one run. run: elements of a run. lanes: active lanes. distinct: elements accessed.
    """

    kind: Literal["one", "stride", "runs", "scattered"]
    lanes: int
    distinct: int
    stride: int = 0
    run: int = 1

    @staticmethod
    def classify(mask: int, index: Elements) -> Pattern:
        """Classify the elements of the active lanes, at least one. index: int64[32]."""
        lanes = np.flatnonzero([mask >> lane & 1 for lane in range(WARP_SIZE)])
        at = index[lanes]
        distinct = np.unique(at)
        lane_count, elements = len(lanes), len(distinct)
        if elements == 1:
            return Pattern("one", lane_count, 1)
        repeats = np.array_equal(at, np.resize(at[:elements], lane_count))
        step = _step(lanes[:elements], at[:elements]) if repeats else None
        if step is not None:
            return Pattern("stride", lane_count, elements, step)
        starts = np.flatnonzero(np.diff(distinct) != 1) + 1
        lengths = np.diff([0, *starts, elements])
        gaps = np.diff(distinct[[0, *starts]])
        if lengths[0] > 1 and (lengths == lengths[0]).all() and (gaps == gaps[:1]).all():
            return Pattern("runs", lane_count, elements, int(gaps.max(initial=0)), int(lengths[0]))
        return Pattern("scattered", lane_count, elements)


def _step(lanes: npt.NDArray[np.intp], at: Elements) -> int | None:
    """Return the distance from each lane to the next, in elements; None if it differs."""
    slopes = np.diff(at) / np.diff(lanes)
    return int(slopes[0]) if (slopes == slopes[0]).all() and slopes[0] == int(slopes[0]) else None
