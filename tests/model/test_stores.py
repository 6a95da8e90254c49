"""Stores of a warp to lines that are open go to L2 with what it has stored there before."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from simtbed import Device, devices
from simtbed.model.launches import observe
from simtbed.model.line_trace import STORE
from simtbed.model.time import Estimate, ObservedLaunch, estimate
from simtbed.model.traffic import MERGEABLE_SECTORS, SECTORS
from simtbed.runtime.request import prepare_request

from tests.model.launches import observed, rows, written_and_read
from tests.validation.kernels import KERNELS
from tests.validation.launches import one_sm
from tests.validation.recorded import load_times

H200 = devices.H200
BARRIER_RESULT = "lts__t_sectors_srcunit_tex_op_write.sum"


def timed(name: str) -> ObservedLaunch:
    """A launch of the warps of one SM."""
    case = next(case for case in one_sm.cases() if case.name == name)
    request = prepare_request(case.kernel, grid=case.grid, block=case.block, args=dict(case.make()), device=H200)
    found = observe(request)
    if isinstance(compiled := found.compiled(H200), str):
        pytest.skip(compiled)
    return found


@cache
def counted() -> dict[str, Any]:
    launches: dict[str, Any] = load_times("scattered_h200")["launches"]
    return launches


def with_timing(**given: float) -> Device:
    return replace(H200, timing=replace(H200.timing, **given))  # type: ignore[arg-type]


def sent(found: Estimate) -> float:
    """Sectors of stores that go to L2, as so many times those that they fill."""
    least = found.traffic.total(SECTORS, STORE) - found.traffic.total(MERGEABLE_SECTORS)
    return found.traffic.stored[1] / least


@pytest.mark.parametrize(
    ("name", "off"),
    [
        ("words_in_turn 9 64", 0.05), ("words_in_turn 6 128", 0.1), ("words_in_turn 9 128", 0.4), ("words_in_turn 3 256", 0.1),
        ("words_in_turn 6 256", 0.3), ("words_in_turn 4 1024", 0.2), ("words_in_turn 16 32", 0.05), ("regions_in_turn 4 128", 0.1),
        ("words_apart 4 8 32", 0.05), ("words_apart 9 32 512", 0.05),
    ],
)  # fmt: skip
def test_as_many_sectors_go_to_l2_as_were_counted(name: str, off: float) -> None:
    found = estimate(timed(name), H200)
    least = found.traffic.total(SECTORS, STORE) - found.traffic.total(MERGEABLE_SECTORS)
    assert sent(found) == pytest.approx(counted()[name]["metrics"][BARRIER_RESULT] / least, abs=off)


def test_lines_are_open_that_were_stored_to_last() -> None:
    """Four warps that store to six lines each need 24."""
    launch = timed("words_in_turn 6 128")
    assert sent(estimate(launch, with_timing(open_lines=24))) < 1.1
    assert sent(estimate(launch, with_timing(open_lines=23))) > 5.5


def test_lines_are_open_for_a_while() -> None:
    """A warp that stores every 150 cycles."""
    launch = timed("words_apart 4 8 32")
    assert sent(estimate(launch, with_timing(open_cycles=400))) == pytest.approx(1, abs=0.05)
    assert sent(estimate(launch, with_timing(open_cycles=100))) == 4


def test_what_waits_in_queues_comes_apart() -> None:
    """Of two warps of a scheduler the one is ahead of the other by what its queue holds."""
    launch = timed("words_in_turn 4 256")
    assert sent(estimate(launch, with_timing(queue=12))) < sent(estimate(launch, with_timing(queue=2))) - 1


def test_stores_that_a_compiler_changes_about_go_together() -> None:
    """Of the four numbers of a thread it stores the last one first."""
    case = next(case for kernel in KERNELS if kernel.name == "philox" for case in kernel.timed())
    request = prepare_request(case.kernel, grid=132, block=64, args={"out": case.make()["out"], "seed": 7}, device=H200)
    launch = observe(request)
    if isinstance(compiled := launch.compiled(H200), str):
        pytest.skip(compiled)
    assert estimate(launch, H200).traffic.merge_ratio == 1.0


def test_without_a_compiler_all_go_together() -> None:
    launch = observed(rows, 132, 1024, device=H200, outputs=4, READ=0, WORDS=4)
    assert estimate(launch, H200).traffic.merge_ratio == 1.0


def test_without_machine_code_stores_go_alone_where_loads_come_between() -> None:
    """A load takes longer than lines stay open; where there are none, all that can go together do."""
    found = estimate(observed(written_and_read, 64, 128), H200).traffic
    assert found.total(MERGEABLE_SECTORS) > 0 and found.merge_ratio == 0.0
    assert found.stored[1] == found.total(SECTORS, STORE)
    case = next(case for case in one_sm.cases() if case.name == "words_in_turn 4 128")
    request = prepare_request(case.kernel, grid=case.grid, block=case.block, args=dict(case.make()), device=H200)
    alone = estimate(replace(observe(request), decisions=None), H200).traffic
    assert alone.total(MERGEABLE_SECTORS) > 0 and alone.merge_ratio == 1.0
