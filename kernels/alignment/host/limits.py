"""Limits of each variant, checked before a launch, and the variant to use instead."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from simtbed import SimtbedError

from ..packed import SCALE
from .layout import words_of_intratask, words_of_packed, words_of_pairalign, words_of_strips
from .problem import Offsets, Problem

WIDEST = 1024
"""Maximum threads of a block: columns of `wide`."""
LONGEST_RUN = 2**15 - 1
"""Maximum of a short: lengths in `runs`."""
HIGHEST = 2**30
"""Bound of the absolute scores, with a margin for additions before a comparison."""
MOST_WORDS = 2**31
"""Words of moves addressable by 32-bit indices."""
LARGEST_TILE = 32 * 32
"""Maximum unused rows of `packed`."""


def check(problem: Problem, variant: str) -> None:
    """Raises SimtbedError with the first pair that exceeds a limit, and a variant without this limit."""
    n, m = problem.rows, problem.columns
    score = problem.parameters
    _refuse(problem, (n == 0) | (m == 0), "{} is of an empty sequence")
    if score.match < 0 or max(score.mismatch, score.opening, score.extending) > 0:
        raise SimtbedError(
            f"the parameters {','.join(map(str, score))} are match, mismatch, opening and extending a gap: "
            "the first one is not negative, the others not positive"
        )
    step = max(abs(value) for value in score)
    _refuse(problem, (n + m) * step >= HIGHEST, "the scores of {} may leave 32 bits")
    if variant.startswith("wide"):
        instead = variant.replace("wide", "passes")
        _refuse(problem, m > WIDEST, f"{{}} has an alternate of more than {WIDEST:,} bases: use {instead}")
    if "-runs" in variant:
        instead = variant.replace("runs", "steps")
        _refuse(problem, np.maximum(n, m) > LONGEST_RUN, f"{{}} has more than {LONGEST_RUN:,} bases: use {instead}")
    if variant == "packed":
        # A step is at most a match or a mismatch minus two extensions, and skewed scores differ by one per step.
        reach = (n + m + LARGEST_TILE) * 3 * step * SCALE
        _refuse(problem, reach >= HIGHEST * 2, "the scores of {} may leave the 28 bits that packed has: use pairalign")
    _refuse(
        problem,
        _words(problem, variant) >= MOST_WORDS,
        "the moves of {} are more than 32-bit indices reach" + ": use packed" * (variant != "packed"),
    )


def check_memory(problem: Problem, variant: str, words: int) -> None:
    """Raises SimtbedError if the moves of a pair exceed `words`."""
    _refuse(
        problem,
        _words(problem, variant) > words,
        f"the moves of {{}} are more than the {4 * words:,} bytes that --max-memory leaves for them"
        + (": use packed" if variant != "packed" else ""),
    )


def _words(problem: Problem, variant: str) -> Offsets:
    """Return the words of moves of each pair."""
    n, m = problem.rows, problem.columns
    if variant == "packed":
        return words_of_packed(n, m, 32, 32)
    if variant.startswith("pairalign"):
        return (words_of_strips if variant == "pairalign" else words_of_pairalign)(n, m) * 32
    return words_of_intratask(n, m, "diagonal-major" in variant)


def _refuse(problem: Problem, refused: npt.NDArray[np.bool_], reason: str) -> None:
    pairs = np.flatnonzero(refused)
    if len(pairs):
        raise SimtbedError(reason.format(f"pair {problem.before + int(pairs[0]) + 1:,}"))
