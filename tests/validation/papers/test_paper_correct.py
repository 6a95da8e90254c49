"""The claims of Mangal and Jain 2014, on counters by the rules of their GPUs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from simtbed import Kernel, Result, devices
from simtbed.kernels.correction import FAMILY
from simtbed.reports import launchers
from simtbed.reports.bench import correct
from simtbed.reports.launchers import Runner
from simtbed.reports.papers.mangal2014 import profiled as mangal2014
from simtbed.reports.papers.mangal2014.profiled import OFF, SHARED, STEPS, Probes, Workload

from tests.reports.conftest import Simtbed


@pytest.fixture(scope="module")
def work() -> Workload:
    """With the exact set, which takes least to compile: lanes and memory do not depend on it."""
    return Workload.simulated(filter="exact")


@pytest.mark.slow
def test_twenty_one_of_32_lanes_vote(work: Workload) -> None:
    counters = work.counters("warp-per-read", SHARED, devices.K20m)
    assert mangal2014.vote_phase(counters) == pytest.approx(21 / 32, abs=0.01)


@pytest.mark.slow
def test_a_warp_a_read_wastes_fewer_lanes(work: Workload) -> None:
    """The paper: 3.5 % before, 65.7 % after. Lanes that wait for each other at the end of every loop do better before."""
    before, after, lonely = (
        work.counters(variant, switches, devices.K20m).derived()["warp_execution_efficiency"]
        for variant, switches in (
            ("thread-per-read-lean", OFF),
            ("warp-per-read", SHARED),
            ("one-lane-per-warp-lean", OFF),
        )
    )
    assert lonely == pytest.approx(1 / 32, abs=0.0005)
    assert lonely < before < 0.25 < 0.65 < after


@pytest.mark.slow
def test_active_lanes_agree_with_the_papers_times() -> None:
    """Its Table 4: 26.17 s with one lane per warp, 5.67 s with all. Which is 14.4 % of the lanes, not Table 1's 3.5 %."""
    bloom = Workload.simulated()
    before, lonely = (
        bloom.counters(variant, OFF, devices.M2090) for variant in ("thread-per-read-lean", "one-lane-per-warp-lean")
    )
    assert mangal2014.one_lane(before, lonely) == pytest.approx(26.17 / 5.67, rel=0.05)
    assert before.derived()["warp_execution_efficiency"] == pytest.approx(26.17 / 5.67 / 32, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("error_rate", "most"), [(0.002, 0.06), (0.005, 0.1)])
def test_few_lanes_vote_where_a_thread_has_a_read(error_rate: float, most: float) -> None:
    """As many as reads have a weak window there."""
    counters = Workload.simulated(error_rate=error_rate, filter="exact").counters(
        "thread-per-read-lean", OFF, devices.K20m
    )
    assert 1 / 32 <= mangal2014.vote_phase(counters) < most


@pytest.mark.slow
def test_each_switch_moves_its_traffic(work: Workload) -> None:
    rows = {row["step"]: row for row in mangal2014.step_rows(work, devices.M2090)}
    assert list(rows) == [step for step, *_ in STEPS]

    def value_of(step: str, what: str) -> float:
        return float(rows[step][what].replace(",", ""))

    original, reads, both = "original code", "reads in shared memory", "reads and votes in shared memory"
    assert value_of(reads, "global sectors") < 0.3 * value_of(original, "global sectors")
    assert value_of(original, "shared wavefronts") == 0 < value_of(reads, "shared wavefronts")
    assert (
        value_of(reads, "local accesses")
        == value_of(original, "local accesses")
        > 0
        == value_of(both, "local accesses")
    )
    assert value_of("loop unrolling", "warp instructions") < value_of(original, "warp instructions")
    assert value_of("loop unrolling", "global sectors") == value_of(original, "global sectors")
    warp = "warp divergence"
    assert value_of("... reads in global memory", "global sectors") > 2 * value_of(warp, "global sectors")
    assert value_of("... reads and votes in global memory", "shared wavefronts") < value_of(warp, "shared wavefronts")
    assert value_of("shuffles (future work)", "shared wavefronts") < value_of(warp, "shared wavefronts")


@pytest.mark.slow
def test_a_negative_query_reads_little_more_than_one_bit() -> None:
    """The paper: 1.07 bits, 97.4 % negative; more accesses, but fewer cache lines, where the first probe is confined."""
    bloom = Workload.simulated(k=20)
    standard, split = (
        Probes.from_counters(work.counters("thread-per-read-lean", OFF, devices.K20m), 20)
        for work in (bloom, Workload.simulated(k=20, filter="split-first"))
    )
    assert 1.07 < standard.bits_a_negative < 1.13 < split.bits_a_negative < 1.3
    assert standard.queries == split.queries
    assert standard.negative / standard.queries > 0.85
    assert standard.bits < split.bits
    assert split.lines < standard.lines


def test_bench_prints_the_tables(simtbed: Simtbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mangal2014, "content", lambda engine: {f"by {engine}": [{"metric": "lanes", "paper": "3.5 %"}]})
    assert json.loads(simtbed("bench", "correct", "--engine", "numpy", "--json").out) == {
        "by numpy": [{"metric": "lanes", "paper": "3.5 %"}]
    }
    assert "by jit\n\nmetric" in simtbed("bench", "correct").out


@pytest.mark.slow
def test_tables_1_and_3(work: Workload) -> None:
    rows = {row["metric"]: row for row in mangal2014.profile_rows(work, devices.K20m)}
    assert rows["warp execution efficiency"]["paper after"] == "65.7 %"
    assert rows["... of the vote phase"]["after"] == "65.6 %"
    assert rows["local accesses per read"]["after"] == "0.0"
    assert set(mangal2014.PAPER) <= set(rows)


@pytest.mark.slow
def test_a_measurement_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """On an emulator, whose launches are said to take a millisecond each."""

    class Timed(Runner):
        def launch(self, kernel: Kernel, **arguments: Any) -> Result:
            result = super().launch(kernel, **arguments)
            self.milliseconds = (self.milliseconds or 0) + 1
            return result

    monkeypatch.setattr(correct, "FILTERS", ("exact",))
    measured = correct.measure(Workload.simulated().reads.subset(0, 400), 2, lambda _: Timed("jit"))
    rows = {row["variant"]: row for row in measured["correction"]}
    assert list(rows) == list(FAMILY.variants)
    assert len({row["kept"] for row in rows.values()}) == 1
    assert [rows[variant]["milliseconds"] for variant in ("warp-per-read", "packed")] == [1, 3]
    assert measured["spectrum"]["milliseconds"] == 3
    lines = correct.text(measured).splitlines()
    assert lines[2].split() == [
        "thread-per-read",
        "exact",
        "0.4",
        "1.00",
        "(1.00-1.00)",
        "1.00",
        str(rows["packed"]["kept"]),
    ]
    assert lines[-1].startswith("spectrum: 0.1 million reads/s counted; ")


def test_measuring_needs_a_gpu(simtbed: Simtbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launchers, "why_unavailable", lambda engine: f"no {engine} here")
    assert "the cuda engine cannot run here: no cuda here" in simtbed("bench", "correct", "--engine", "cuda").refused(3)
    assert (
        "0 is not in the range 1<=x<=1000" in simtbed("bench", "correct", "--engine", "cuda", "--repeat", "0").refused()
    )
