"""Claims and verdicts: every comparison can fail, and a failed main claim contradicts its item."""

import math
from dataclasses import replace

import pytest
from simtbed.documents import require
from simtbed.kernels import Agreement
from simtbed.kernels.pairhmm import FAMILY, REN
from simtbed.reports.papers import definitions
from simtbed.reports.papers.claims import (
    MAX_TOLERANCE,
    PRINTED,
    Claim,
    Comparison,
    Holds,
    Origin,
    Source,
    Value,
    Verdict,
    change,
    quotient,
    verdict,
)
from simtbed.reports.papers.paper import Figures
from simtbed.reports.papers.schema import Entry
from simtbed.reports.papers.values import differing, ranked

H100, H200 = Origin(Source.gpu, "H100", "2026-01-01"), Origin(Source.gpu, "H200", "2026-01-02")


def compare(origin: Origin, quantity: str, value: float | None, **expected: float) -> Comparison:
    """Return the comparison of an entry of a definition."""
    entry = {"value": "x", "quantity": quantity, **expected}
    (compared,) = definitions.comparisons(entry, Figures({"x": [Value(origin, value)]}), {})
    return compared


def claim(*values: float | None, main: bool = False) -> Claim:
    """A claim compared by an origin for each value; values from 1 hold."""
    origins = [Origin(Source.gpu, str(number)) for number in range(len(values))]
    return Claim(
        "", [compare(origin, "ratio", value, at_least=1) for origin, value in zip(origins, values, strict=True)], main
    )


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
        (compare(PRINTED, "%", None, near=3.5, within=0.1), (3.15, 3.5, 3.85), (3.14, 3.86, math.nan)),
        (compare(PRINTED, "%", None, near=-2.0, within=0.1), (-2.2, -1.8), (-2.3, -1.7)),
        (compare(PRINTED, "bytes", None, exactly=3072), (3072,), (2296, 3073)),
        (compare(PRINTED, "ratio", None, more_than=1), (1.1,), (1, 0)),
        (compare(PRINTED, "ratio", None, less_than=1), (0.9,), (1, 2)),
        (compare(PRINTED, "ratio", None, at_least=80), (80, 81), (79,)),
        (compare(PRINTED, "ratio", None, at_most=80), (80, 79), (81,)),
    ],
)
def test_ends_of_intervals(comparison: Comparison, inside: tuple[float, ...], outside: tuple[float, ...]) -> None:
    assert comparison.holds is Holds.unknown
    assert [replace(comparison, value=value).holds for value in inside] == [Holds.yes] * len(inside)
    assert [replace(comparison, value=value).holds for value in outside] == [Holds.no] * len(outside)


def test_text_of_a_comparison() -> None:
    assert str(compare(H200, "time, ms", 1.166, near=0.05, within=0.1)) == (
        "time, ms: 1.166 (GPU, H200, 2026-01-02); expected 0.045 to 0.055 (± 0.1)"
    )
    assert (
        str(compare(H200, "ratio", None, more_than=1))
        == "ratio: not available (GPU, H200, 2026-01-02); expected more than 1"
    )


def test_a_tolerance_that_accepts_nearly_anything_is_refused() -> None:
    with pytest.raises(ValueError, match=f"at most {MAX_TOLERANCE}"):
        compare(PRINTED, "ratio", 1.0, near=1.0, within=0.5)


def test_origins_that_disagree_dispute_a_claim() -> None:
    def holds(*values: tuple[Origin, float]) -> Holds:
        return Claim("", [compare(origin, "ratio", value, at_least=1) for origin, value in values]).holds

    assert holds((H100, 2), (H200, 2)) is Holds.yes
    assert holds((H100, 2), (H200, 0)) is Holds.disputed
    assert holds((H100, 2), (H100, 0)) is Holds.no  # one source, and one of its values fails


MODEL = Origin(Source.model, "K40")


@pytest.mark.parametrize(
    ("value", "interval", "expected"),
    [
        (2.0, (1.5, 3.0), Holds.yes),
        (2.0, (0.9, 3.0), Holds.unresolved),
        (0.8, (0.5, 1.2), Holds.unresolved),
        (0.8, (0.5, 0.9), Holds.no),
    ],
)
def test_a_prediction_resolves_a_claim_by_its_interval(
    value: float, interval: tuple[float, float], expected: Holds
) -> None:
    assert Comparison(MODEL, "ratio", value, low=1, interval=interval).holds is expected


def test_an_interval_around_the_expectation_resolves_nothing() -> None:
    compared = Comparison(MODEL, "ratio", 3.0, low=0.9, high=1.1, interval=(0.5, 4.0))
    assert compared.holds is Holds.unresolved
    assert verdict([Claim("", [compared], main=True)]) is Verdict.unresolved
    assert (
        Claim("", [compared, compare(H100, "ratio", 2, at_least=1)]).holds is Holds.yes
    )  # a measured value resolves it


def test_numbers_of_a_formula_are_values_of_its_rule() -> None:
    figures = Figures({"one": 2.0, "many": {"a": 1, "b": 3}, "values": [Value(H100, 4.0)]}, rule=H200)
    assert figures.values_of("one") == [Value(H200, 2.0)] and figures.values_of("values") == [Value(H100, 4.0)]
    assert figures.values_of("many") == [Value(H200, 1, "a"), Value(H200, 3, "b")]


def test_ranks_are_of_each_origin() -> None:
    values = [Value(origin, number) for origin, numbers in ((H100, (3, 1, 2)), (H200, (9, 8))) for number in numbers]
    for rank, expected in ((lambda n: 0, (1, 8)), (lambda n: n // 2, (2, 9)), (lambda n: n - 1, (3, 9))):
        assert ranked([*values, Value(H100, None)], rank) == [
            Value(H100, expected[0], "of 3"),
            Value(H200, expected[1], "of 2"),
        ]


def test_no_results_are_no_agreement() -> None:
    for agreement, expected in ((Agreement(0, 0, 0.0, 0.0, ""), None), (Agreement(9, 1, 0.0, 0.0, ""), 1)):
        (value,) = differing(agreement)
        assert value.value == expected


def test_a_failure_on_another_gpu_disputes_an_unresolved_claim() -> None:
    """The claim is of the GPU of the paper; alone, the failure contradicts it."""
    left_open = Comparison(MODEL, "ratio", 1.2, low=1, interval=(0.6, 2.4))
    failed = compare(H100, "ratio", 0.5, at_least=1)
    assert Claim("", [left_open, failed]).holds is Holds.disputed
    assert Claim("", [failed]).holds is Holds.no


def test_quotients_have_independent_intervals() -> None:
    above, below = Value(MODEL, 6.0, "a", (4.0, 8.0)), Value(MODEL, 2.0, "b", (1.0, 4.0))
    assert quotient(above, below) == Value(MODEL, 3.0, "a", (1.0, 8.0))
    assert quotient(Value(H100, 6.0), Value(H100, 2.0)) == Value(H100, 3.0)
    assert quotient(Value(H100, None), below).value is None


def test_printed_values_alone_reproduce_nothing() -> None:
    arithmetic = Claim("", [compare(PRINTED, "quotient", 2.0, near=2.0, within=0.1)], main=True)
    assert verdict([arithmetic]) is Verdict.arithmetic
    assert verdict([arithmetic, claim(*YES, main=True)]) is Verdict.reproduced
    assert (
        verdict([replace(arithmetic, comparisons=[compare(PRINTED, "quotient", 3.0, near=2.0, within=0.1)])])
        is Verdict.contradicted
    )


@pytest.mark.parametrize(
    ("compared", "expected"),
    [
        (compare(H100, "ratio", 2.0, at_least=1), "The verdict changes to contradicted at 1 of: ratio, here 2."),
        (compare(H100, "races", 0, exactly=0), "The verdict changes to contradicted at -1 of: races, here 0."),
        (compare(H100, "ratio", 0.5, at_least=1), "The verdict changes to reproduced at 1 of: ratio, here 0.5."),
        (
            Comparison(MODEL, "ratio", 2.0, low=1, interval=(0.8, 3.0)),
            "The verdict changes to reproduced at 1 of: ratio, here 2, 0.8 to 3.",
        ),
        (compare(H100, "ratio", None, at_least=1), "No number of this machine changes this verdict."),
    ],
)
def test_the_number_that_turns_a_verdict(compared: Comparison, expected: str) -> None:
    assert change([Claim("", [compared], main=True)]) == expected


def test_a_definition_without_a_tolerance_is_refused() -> None:
    """A number of the paper needs a tolerance; an unknown key is no entry."""
    figures = Figures({"rate": [Value(H100, 2.0, "a"), Value(H100, 3.0, "b")]})
    (first, second) = definitions.comparisons({"value": "rate", "near": {"a": 2, "b": 4}, "within": 0.1}, figures, {})
    assert (first.holds, second.holds, first.tolerance) == (Holds.yes, Holds.no, "± 0.1")
    with pytest.raises(ValueError, match="expected a tolerance above 0"):
        definitions.comparisons({"value": "rate", "near": 2}, figures, {})
    with pytest.raises(ValueError, match="tolerence"):
        require({"value": "rate", "tolerence": 1}, Entry)


def test_every_variant_of_ren_2018_has_a_printed_profile() -> None:
    variants = {variant.name for variant in FAMILY.variants.values() if variant.paper == REN}
    assert {row["variant"] for row in definitions.printed("ren2018")["profiles"]} == variants
