"""Audit of the papers' claims: each compared value is moved out of its interval, and the verdict changes."""

import math
from collections.abc import Iterator
from dataclasses import replace

from simtbed.reports.papers.claims import MAX_TOLERANCE, Claim, Comparison, Holds, Source, Verdict, verdict

from .test_report import cached_report, every_paper


def claims(name: str) -> Iterator[tuple[str, list[Claim], Claim]]:
    """Yield the item's name, its claims and each of them."""
    for item, shown in cached_report(name).shown:
        for claim in shown.claims:
            yield item.name, list(shown.claims), claim


def moved_outside(comparison: Comparison) -> Iterator[Comparison]:
    """Yield the comparison with values just outside its interval."""
    for end, direction in ((comparison.low, -math.inf), (comparison.high, math.inf)):
        if math.isfinite(end):
            yield replace(comparison, value=math.nextafter(end, direction), interval=None)


@every_paper
def test_each_item_has_a_main_claim(name: str) -> None:
    for item, shown in cached_report(name).shown:
        assert any(claim.main for claim in shown.claims), f"{item.name} has no main claim"


@every_paper
def test_each_claim_states_its_condition(name: str) -> None:
    for item, _, claim in claims(name):
        assert claim.comparisons or claim.remark, (
            f"{item}: {claim.text}: no comparison, and no remark on what is missing"
        )
        for comparison in claim.comparisons:
            assert list(moved_outside(comparison)), f"{item}: {claim.text}: {comparison} cannot fail"
            assert comparison.origin.source is not Source.gpu or comparison.origin.dated or comparison.value is None


@every_paper
def test_intervals_of_numbers_are_narrow(name: str) -> None:
    """An interval with two ends is at most MAX_TOLERANCE wide on each side."""
    for item, _, claim in claims(name):
        for comparison in claim.comparisons:
            if math.isfinite(comparison.low) and math.isfinite(comparison.high):
                middle, margin = (comparison.low + comparison.high) / 2, (comparison.high - comparison.low) / 2
                assert margin <= MAX_TOLERANCE * abs(middle) * (1 + 1e-9), f"{item}: {comparison}"


@every_paper
def test_a_value_outside_its_interval_changes_the_verdict(name: str) -> None:
    for item, listed, claim in claims(name):
        for index, comparison in enumerate(claim.comparisons):
            if comparison.value is None:
                continue
            for moved in moved_outside(comparison):
                compared = [*claim.comparisons[:index], moved, *claim.comparisons[index + 1 :]]
                changed = replace(claim, comparisons=compared)
                assert changed.holds in (Holds.no, Holds.disputed), f"{item}: {moved}"
                result = verdict([changed if other is claim else other for other in listed])
                assert result not in (Verdict.reproduced, Verdict.arithmetic), f"{item}: {moved}"
                if claim.main and changed.holds is Holds.no:
                    assert result is Verdict.contradicted, f"{item}: {moved}"
