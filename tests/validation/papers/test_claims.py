"""Claims and verdicts: every comparison can fail, and a failed main claim contradicts its item."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from simtbed.kernels import Agreement
from simtbed.reports.papers.claims import (
    MAX_TOLERANCE,
    PRINTED,
    Claim,
    Comparison,
    Holds,
    Origin,
    Source,
    Verdict,
    at_least,
    at_most,
    exactly,
    less_than,
    more_than,
    near,
    same_results,
    verdict,
)

H100, H200 = Origin(Source.gpu, "H100", "2026-01-01"), Origin(Source.gpu, "H200", "2026-01-02")


def claim(*values: float | None, main: bool = False) -> Claim:
    """A claim compared by an origin for each value; values from 1 hold."""
    origins = [Origin(Source.gpu, str(number)) for number in range(len(values))]
    return Claim("", [at_least(origin, "ratio", value, 1) for origin, value in zip(origins, values, strict=True)], main)


YES, NO, DISPUTED, UNKNOWN = (2.0,), (0.5,), (2.0, 0.5), (None,)


@pytest.mark.parametrize(
    ("main", "minor", "expected"),
    [
        (YES, [], Verdict.reproduced),
        (YES, [YES], Verdict.reproduced),
        (YES, [NO], Verdict.partly),
        (YES, [UNKNOWN], Verdict.partly),
        (YES, [DISPUTED], Verdict.partly),
        (DISPUTED, [YES], Verdict.partly),
        (NO, [YES, YES, YES], Verdict.contradicted),
        (NO, [], Verdict.contradicted),
        (UNKNOWN, [YES], Verdict.not_shown),
        (UNKNOWN, [NO], Verdict.not_shown),
    ],
)
def test_verdict_follows_the_main_claim(
    main: tuple[float | None, ...], minor: list[tuple[float | None, ...]], expected: Verdict
) -> None:
    assert verdict([claim(*main, main=True), *(claim(*other) for other in minor)]) is expected


def test_two_main_claims_both_hold() -> None:
    assert verdict([claim(*YES, main=True), claim(*NO, main=True)]) is Verdict.contradicted
    assert verdict([claim(*YES, main=True), claim(*UNKNOWN, main=True)]) is Verdict.partly


@pytest.mark.parametrize(
    ("comparison", "inside", "outside"),
    [
        (near(PRINTED, "%", None, 3.5, 0.1), (3.15, 3.5, 3.85), (3.14, 3.86, math.nan)),
        (near(PRINTED, "%", None, -2.0, 0.1), (-2.2, -1.8), (-2.3, -1.7)),
        (exactly(PRINTED, "bytes", None, 3072), (3072,), (2296, 3073)),
        (more_than(PRINTED, "ratio", None, 1), (1.1,), (1, 0)),
        (less_than(PRINTED, "ratio", None, 1), (0.9,), (1, 2)),
        (at_least(PRINTED, "ratio", None, 80), (80, 81), (79,)),
        (at_most(PRINTED, "ratio", None, 80), (80, 79), (81,)),
    ],
)
def test_ends_of_intervals(comparison: Comparison, inside: tuple[float, ...], outside: tuple[float, ...]) -> None:
    assert comparison.holds is None
    assert [replace(comparison, value=value).holds for value in inside] == [True] * len(inside)
    assert [replace(comparison, value=value).holds for value in outside] == [False] * len(outside)


def test_text_of_a_comparison() -> None:
    assert str(near(H200, "time, ms", 1.166, 0.05, 0.1)) == (
        "time, ms: 1.166 (GPU, H200, 2026-01-02); expected 0.045 to 0.055"
    )
    assert (
        str(more_than(H200, "ratio", None, 1)) == "ratio: not available (GPU, H200, 2026-01-02); expected more than 1"
    )


def test_a_tolerance_that_accepts_nearly_anything_is_refused() -> None:
    with pytest.raises(ValueError, match=f"at most {MAX_TOLERANCE}"):
        near(PRINTED, "ratio", 1.0, 1.0, 0.5)


def test_origins_that_disagree_dispute_a_claim() -> None:
    def holds(*values: tuple[Origin, float]) -> Holds:
        return Claim("", [at_least(origin, "ratio", value, 1) for origin, value in values]).holds

    assert holds((H100, 2), (H200, 2)) is Holds.yes
    assert holds((H100, 2), (H200, 0)) is Holds.disputed
    assert holds((H100, 2), (H100, 0)) is Holds.no  # one source, and one of its values fails


def test_no_results_are_no_agreement() -> None:
    assert same_results(PRINTED, Agreement(0, 0, 0.0, 0.0, "")).holds is None
    assert same_results(PRINTED, Agreement(9, 0, 0.0, 0.0, "")).holds is True
    assert same_results(PRINTED, Agreement(9, 1, 0.0, 0.0, "")).holds is False
