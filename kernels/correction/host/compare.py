"""Comparison of corrections with other answers, and accuracy if the truth is known."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from ...family import Agreement, Answer
from .problem import Corrected, Reads


def compare(answer: Answer, expected: Answer) -> Agreement:
    """Compare by read. The distance of two reads is the number of different letters, including missing ones.

    Raise ValueError if the numbers of reads differ.
    """
    if answer.shape != expected.shape:
        raise ValueError(f"{len(answer)} reads cannot be compared with {len(expected)}")
    different = np.flatnonzero(answer != expected)
    worst = max((_letters(answer[r], expected[r]) for r in different), default=0)
    return Agreement(len(answer), len(different), float(worst), 0.0, "letters")


def _letters(a: str, b: str) -> int:
    return sum(x != y for x, y in zip(a, b, strict=False)) + abs(len(a) - len(b))


@dataclass(frozen=True)
class Accuracy:
    """Bases: corrected errors, introduced errors, and remaining or wrongly corrected errors (before trimming, including discarded
    reads). Reads: correct before, retained, correct among the retained, and discarded although correct. A letter other than
    A, C, G, T counts as an error."""

    corrected: int = 0
    introduced: int = 0
    left: int = 0
    reads: int = 0
    right_before: int = 0
    kept: int = 0
    kept_right: int = 0
    discarded_right: int = 0

    @property
    def gain(self) -> float:
        """(corrected - introduced) / errors in the input; 0 if there are none."""
        errors = self.corrected + self.left
        return (self.corrected - self.introduced) / errors if errors else 0.0

    def __add__(self, other: Accuracy) -> Accuracy:
        return Accuracy(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @staticmethod
    def measure(corrected: Corrected, truth: Reads) -> Accuracy:
        """Return the accuracy. truth: the same reads without errors, with equal number and lengths."""
        before, after = corrected.reads.text != truth.text, corrected.text != truth.text
        retained = corrected.flags != ord("D")
        starts = corrected.reads.offsets[:-1]
        errors_before = _counts(before)
        wrong_before = errors_before[corrected.reads.offsets[1:]] > errors_before[starts]
        errors_after = _counts(after)
        wrong_after = errors_after[starts + corrected.spans[:, 1]] > errors_after[starts + corrected.spans[:, 0]]
        return Accuracy(
            corrected=int((before & ~after).sum()),
            introduced=int((~before & after).sum()),
            left=int((before & after).sum()),
            reads=len(retained),
            right_before=int((~wrong_before).sum()),
            kept=int(retained.sum()),
            kept_right=int((retained & ~wrong_after).sum()),
            discarded_right=int((~retained & ~wrong_before).sum()),
        )


def _counts(holds: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the number of true elements before each position, and in total."""
    return np.concatenate([[0], np.cumsum(holds, dtype=np.int64)])
