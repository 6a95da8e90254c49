"""Ren 2019's report: what it reads off the figures, and what measured times change."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from simtbed.kernels.alignment import FAMILY
from simtbed.kernels.alignment.host.problem import Parameters, Problem
from simtbed.reports.papers import definitions
from simtbed.reports.papers.claims import Claim, Holds, Source, Verdict
from simtbed.reports.papers.measured import Machine, Measured, Record, Timing
from simtbed.reports.papers.paper import Setting, Shown, Size, source_of
from simtbed.reports.papers.ren2019 import figures, timing
from simtbed.reports.papers.ren2019.timing import BATCHES, LENGTHS


def setting(timings: Iterable[tuple[str, Timing]] = ()) -> Setting:
    record = Record("ren2019", {str(number): {name: one} for number, (name, one) in enumerate(timings)})
    return definitions.find("ren2019").setting(Size.small, {"batch": 1}, "jit", Measured.merge([record]))


def test_figure_1_is_optimal_only_in_ties() -> None:
    """Its score reaches the optimum only where a mismatch costs as much as the opening and one extension of a gap."""
    above, below = (row.replace("-", "").encode() for row in figures.PICTURED)
    optimal = set()
    for mismatch in range(-14, 1, 2):
        for opening in range(-9, 0):
            for extending in range(opening, 1):
                parameters = Parameters(10, mismatch, opening, extending)
                best = FAMILY.oracle(Problem.from_pairs([(above, below)], parameters))["score"][0]
                if best == 50 + mismatch + 2 * (opening + extending):
                    optimal.add((mismatch, opening + extending))
    assert optimal and all(mismatch == gap for mismatch, gap in optimal)


def shown(name: str, setting: Setting) -> Shown:
    return next(item for item in definitions.find("ren2019").items if item.name == name).show(setting)


def results(shown: Shown) -> list[Holds]:
    return [claim.holds for claim in shown.claims]


def test_times_of_a_gpu_support_or_contradict_claims() -> None:
    """A GPU on which larger blocks are faster up to 100 pairs, gpu-pairAlign never, and a slow core."""
    timings: list[tuple[str, Timing]] = []
    for length in LENGTHS:
        for pairs in BATCHES:
            cells = float(length * length * pairs)
            rates = {timing.WIDE: 2e9, timing.PASSES: 3e9 if pairs == 1_000 else 1e9, timing.PEER: 1e8}
            for variant, rate in rates.items():
                for stage in (1, 2):
                    timing_of_name = Timing(1e3 * cells / rate, cells, "a GPU", "2026-01-01", Machine.gpu)
                    timings.append((timing.timing_name(variant, length, pairs, stage), timing_of_name))
        cells = float(length * length * 1_000)
        for stage in (1, 2):
            timing_of_name = Timing(1e3 * cells / 2e7, cells, "a CPU", "2026-01-01", Machine.core)
            timings.append((timing.loop_name(length, stage), timing_of_name))
    without, result = setting(), setting(timings)
    assert results(shown("Figure 8", without))[:2] == [Holds.unknown, Holds.unknown]
    assert results(shown("Figure 8", result)) == [Holds.yes] * 4
    assert results(shown("Figure 10", result))[0] is Holds.yes
    assert shown("Figure 12", without).verdict is Verdict.not_shown and not shown("Figure 12", without).tables
    assert results(shown("Figure 12", result)) == [Holds.unknown, Holds.no]  # equal rates: 1,000 pairs are not faster
    assert "a GPU over a CPU of 2026-01-01: up to 100 times" in shown("Figure 12", result).claims[0].remark


@pytest.mark.parametrize(
    ("start", "slope", "expected"), [(0.07, 0.0005, Holds.yes), (0.1, -0.0001, Holds.no), (0.2, 0.0, Holds.no)]
)
def test_a_straight_line_need_not_be_proportional(start: float, slope: float, expected: Holds) -> None:
    """The time of a launch is part of every time; a time that falls, or does not grow, is no line that grows."""
    timings = [
        (timing.timing_name(f"{variant}, equal sequences", length, 100, 2), Timing(ms, 100.0, "a GPU", "2026-01-01", Machine.gpu))
        for length in LENGTHS
        for variant, ms in ((timing.WIDE, 0.05), (timing.STEPS, start + slope * length + 1e-4 * (length % 3)))
    ]  # fmt: skip
    measured = [c for c in shown("Figure 9", setting(timings)).claims[1].comparisons if c.origin.device == "a GPU"]
    assert Claim("", measured).holds is expected


def test_the_time_model_computes_batches_up_to_a_size() -> None:
    some = definitions.find("ren2019").setting(Size.small, {"batch": 25}, "jit", Measured())
    names = [column for column in shown("Figure 8", some).tables[0].columns if source_of(column) is Source.model]
    assert names == ["time model: GCUPS, 25 pairs"]
    assert len(shown("Figure 10", some).claims[0].comparisons) == 1
    assert not shown("Figure 10", setting()).claims[0].comparisons


def test_data_of_the_user_are_in_the_statistics(tmp_path: Path) -> None:
    pairs = tmp_path / "own.tsv"
    pairs.write_text("ACGTACGTAC\tACGTACGTAC\n" * 3)
    own = definitions.find("ren2019").setting(Size.small, {}, "jit", Measured(), pairs)
    claim = shown("Figure 4", own).claims[0]
    assert {c.quantity: c.value for c in claim.comparisons}["share of M, situation own.tsv"] == 1.0


def test_the_plain_loop_is_timed() -> None:
    loop = next(one for one in timing.benchmarks(setting()) if one.machine is Machine.core)
    assert loop.name == "plain loop, 64 bases, stage 1"
    milliseconds, cells = loop.run(2)
    assert len(milliseconds) == 2 and min(milliseconds) > 0
    assert cells == 64 * 64 * 4096
