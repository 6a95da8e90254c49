"""Ren 2019's report: what it reads off the figures, and what measured times change."""

from __future__ import annotations

import pytest
from simtbed.kernels.alignment import FAMILY
from simtbed.kernels.alignment.host.problem import Parameters, Problem
from simtbed.reports.papers import library
from simtbed.reports.papers.measured import Machine, Measured, Timing
from simtbed.reports.papers.paper import Setting, Shown, Size, Source, Verdict
from simtbed.reports.papers.ren2019 import figures, items, timing
from simtbed.reports.papers.ren2019.counted import BATCHES, LENGTHS


def setting(timings: dict[tuple[str, str], Timing] | None = None) -> Setting:
    return library.find("ren2019").setting(Size.small, {"batch": 1}, "jit", Measured(timings or {}))


def test_what_figure_1_pictures() -> None:
    assert figures.pictured() == ("3M2D1M2I2M1S", 1)


def test_figure_1_is_the_best_alignment_of_no_parameters() -> None:
    """All of a range, of which the claim speaks without an end."""
    above, below = (row.replace("-", "").encode() for row in figures.PICTURED)
    for mismatch in range(-14, 1, 2):
        for opening in range(-9, 0, 2):
            for extending in range(opening, 1, 2):
                problem = Problem.from_pairs([(above, below)], Parameters(10, mismatch, opening, extending))
                assert FAMILY.oracle(problem)["cigar"][0] != figures.CIGAR


def verdicts(shown: Shown) -> list[bool | None]:
    return [claim.holds for claim in shown.claims]


@pytest.mark.slow
def test_times_settle_what_counters_cannot() -> None:
    """A GPU on which larger blocks are faster up to 100 pairs, gpu-pairAlign never, and a slow core."""
    timings = {}
    for length in LENGTHS:
        for pairs in BATCHES:
            cells = float(length * length * pairs)
            for variant, rate in (
                (timing.WIDE, 2e9),
                (timing.PASSES, 3e9 if pairs == 1_000 else 1e9),
                (timing.PEER, 1e8),
            ):
                for stage in (1, 2):
                    name = timing.timing_name(variant, length, pairs, stage)
                    timings[Machine.gpu.value, name] = Timing(
                        1e3 * cells / rate, cells, "made up", "2026-01-01", Machine.gpu
                    )
        cells = float(length * length * 1_000)
        for stage in (1, 2):
            name = timing.loop_name(length, stage)
            timings[Machine.core.value, name] = Timing(1e3 * cells / 2e7, cells, "slow", "2026-01-01", Machine.core)
    without, result = setting(), setting(timings)
    assert verdicts(items.two_solutions(without))[:2] == [None, None]
    assert verdicts(items.two_solutions(result)) == [True] * 5
    assert verdicts(items.first_stage_of_peer(result))[0] is True
    assert items.speedups(without).verdict is Verdict.not_shown and not items.speedups(without).tables
    assert verdicts(items.speedups(result)) == [True, False]
    assert items.speedups(result).claims[0].evidence == "up to 100 times"


@pytest.mark.slow
def test_the_time_model_computes_batches_up_to_a_size() -> None:
    some = library.find("ren2019").setting(Size.small, {"batch": 25}, "jit", Measured())
    names = {column.name for column in items.two_solutions(some).tables[0].columns if column.source is Source.model}
    assert names == {"GCUPS, 25 pairs"}
    assert verdicts(items.first_stage_of_peer(some))[1] is True
    assert verdicts(items.first_stage_of_peer(setting()))[1] is None


@pytest.mark.slow
def test_the_plain_loop_is_timed() -> None:
    loop = next(one for one in timing.benchmarks(setting()) if one.machine is Machine.core)
    assert loop.name == "plain loop, 64 bases, stage 1"
    milliseconds, cells = loop.run(2)
    assert len(milliseconds) == 2 and min(milliseconds) > 0
    assert cells == 64 * 64 * 4096
