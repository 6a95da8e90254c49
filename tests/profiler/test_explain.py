"""Explanations of avoidable costs: the advised change saves what it promises, and kernels without the cost get no advice."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.profiler import access_sampling
from simtbed.profiler.lane_elements import LaneElements
from simtbed.profiler.remedies import NUMBERS, Remedy, Saving, merge_remedies
from simtbed.profiler.trace import ENTRY

from tests.table_checks import each_row

from .advised import ADVISED, Advised, N, column, floats, gather, histogram, profile, shifted
from .unadvised import SPARSE, UNADVISED, UNPREDICTED, Unadvised


@pytest.mark.slow
@each_row(ADVISED, lambda case: case.name)
def test_an_advised_change_saves_what_is_predicted(case: Advised) -> None:
    """The changed kernel has no such cost with a prediction, and its counters change by the prediction, within 20 %."""
    before, after = case.before(), case.after()
    advice = [one for one in before.explanations() if one.what == case.what]
    assert any(re.search(case.pattern, str(one)) for one in advice), [str(one) for one in before.explanations()]
    assert [str(one) for one in before.explanations() if one.savings and one not in advice] == []
    assert [str(one) for one in after.explanations() if one.what == case.what and one.savings] == []
    for saving in (saving for one in advice for saving in one.savings):
        actual = before.totals()[saving.counter] - after.totals()[saving.counter]
        assert actual == pytest.approx(saving.saved, rel=0.2), saving


@pytest.mark.slow
def test_every_rule_with_a_prediction_is_applied() -> None:
    rules = {rule for case in ADVISED for rule, _ in case.before().remedies}
    assert rules >= NUMBERS.keys() - {"scattered", "conflicts"}


@pytest.mark.slow
@each_row(UNADVISED, lambda case: case.name)
def test_kernels_without_an_avoidable_cost_get_no_advice(case: Unadvised) -> None:
    advice = [one for one in case.run().explanations() if not case.kinds or one.what in case.kinds]
    assert [str(one) for one in advice] == []


@each_row(UNPREDICTED, lambda case: case.name)
def test_an_effect_that_is_unknown_is_not_predicted(case: Unadvised) -> None:
    (advice,) = case.run().explanations()
    assert advice.what in case.kinds and advice.savings == () and "Saves" not in str(advice)


def test_advice_states_the_instructions_that_it_adds() -> None:
    (advice,) = next(case for case in ADVISED if case.name == "few bins").before().explanations()
    assert advice.more == pytest.approx(9 * 16 / 64)
    assert str(advice).endswith(" Saves 121 global reduction sectors. Adds about 144 warp instructions (225 % more).")


def test_advice_that_adds_more_cycles_than_it_saves_is_not_given() -> None:
    """Two lanes of a warp share an element: an operation is saved, and nine instructions are added."""
    at = np.arange(N, dtype=np.int32)
    at[::16] += 1
    assert profile(histogram, values=at, out=st.zeros(N + 1, st.i32)).explanations() == []


rows_by_thread = partial(profile, column, x=floats(N * 16), out=st.empty(N, st.f32), K=16, ACROSS=0)


def test_a_sample_predicts_as_all_accesses_do(monkeypatch: pytest.MonkeyPatch) -> None:
    (whole,) = rows_by_thread().explanations()
    monkeypatch.setattr(access_sampling, "MAX_ACCESSES", 40)
    (sampled,) = rows_by_thread().explanations()
    assert sampled.savings[0].saved == pytest.approx(whole.savings[0].saved, rel=0.05)


@st.kernel
def beyond(x: st.Global[st.f32]) -> None:
    if st.thread.x > 64:
        x[st.thread.x + 64] = st.f32(1)


def test_a_launch_without_a_sampled_access_is_explained() -> None:
    """Every access is out of bounds, or no lane executes it."""
    for block, faults in ((96, 1), (32, 0)):
        args = {"x": floats(64)}
        result = st.launch(beyond, grid=1, block=block, args=args, detail=True, faults="return")
        assert len(result.faults) == faults
        assert [one for one in result.profile().explanations() if one.savings] == []


def test_engines_explain_the_same() -> None:
    texts = []
    for engine in ("numpy", "jit"):
        args = {"x": floats(65536), "at": SPARSE, "out": st.empty(N, st.f32)}
        result = st.launch(gather, grid=4, block=128, args=args, detail=True, engine=engine)
        texts.append([str(one) for one in result.profile().explanations()])
    assert texts[0] and texts[0] == texts[1]


def test_explanations_are_in_order_of_cost() -> None:
    shares = [one.share for case in ADVISED for one in case.before().explanations()[:1]]
    assert all(0 < share <= 1 for share in shares)
    two = profile(column, x=floats(N * 16), out=st.empty(N, st.f32), K=16, ACROSS=0) + ADVISED[0].before()
    assert [one.savings for one in two.explanations()] == [(Saving("global_load_sectors", 2 * 7168),)]


def test_a_parameter_of_the_change_is_one_for_all_launches() -> None:
    def remedy(rule: str, shift: int) -> Remedy:
        return Remedy(rule, (3,), (Saving("global_load_sectors", 10),), 5, (shift, 5, 4))

    assert merge_remedies([[remedy("alignment", 3)], [remedy("alignment", 3)]])[0].savings[0].saved == 20
    assert merge_remedies([[remedy("alignment", 3)], [remedy("alignment", 4)]]) == ()
    assert merge_remedies([[remedy("alignment", 3)], []]) == ()
    assert merge_remedies([[remedy("contended", 3)], []])[0].savings[0].saved == 10


def elements(indices: Any, mask: int = 0xFFFFFFFF) -> LaneElements:
    entries = np.zeros(1, ENTRY)
    entries["index"][0], entries["mask"] = list(indices), mask
    return LaneElements.from_entries(entries, 4)


@each_row(
    [
        ([7] * 32, 0, (0, 0), 1),
        (range(5, 37), 1, (0, 0), 32),
        (range(99, 3, -3), -3, (3, 1), 32),
        ([64 * (n // 8) + n % 8 for n in range(32)], 0, (64, 8), 32),
        ([n % 5 for n in range(32)], 0, (0, 0), 5),
        ([64 * (n % 16) for n in range(32)], 0, (64, 1), 16),
        ([64 * (n % 16) + n // 16 for n in range(32)], 0, (64, 2), 32),
        ([n // 2 for n in range(32)], 0, (0, 0), 16),
        ([n * n for n in range(32)], 0, (0, 0), 32),
    ]
)
def test_patterns_of_lanes(row: tuple[Any, int, tuple[int, int], int]) -> None:
    """Elements by lane; the step from lane to lane; the distance and the length of runs."""
    indices, step, spacing, distinct = row
    lanes = elements(indices)
    actual = (int(lanes.lane_step[0]), tuple(lanes.spacing[0].tolist()), int(lanes.distinct[0]))
    assert actual == (step, spacing, distinct)


def test_a_pattern_is_of_the_active_lanes() -> None:
    index = np.arange(32)
    index[1::2] = 1000
    lanes = elements(index, 0x55555555)
    assert (int(lanes.lane_step[0]), int(lanes.distinct[0]), int(lanes.lanes[0])) == (1, 16, 16)
    assert np.flatnonzero(lanes.first_lanes[0]).tolist() == [*range(0, 32, 2)]


def test_a_saved_run_explains_the_same(tmp_path: Path) -> None:
    with st.profiling(detail=True) as run:
        profile(shifted, x=floats(N + 8), out=st.empty(N, st.f32), OFFSET=3)
        profile(gather, x=floats(65536), at=SPARSE, out=st.empty(N, st.f32))
    run.save(tmp_path / "run.json")
    loaded = st.Run.load(tmp_path / "run.json")
    texts = [str(one) for one in run.profile.explanations()]
    assert len(texts) == 2 and texts == [str(one) for one in loaded.profile.explanations()]


def test_a_sample_is_in_the_order_of_blocks() -> None:
    """Threads deliver the accesses of blocks in any order."""
    entries = np.zeros(64, ENTRY)
    entries["block"], entries["site"] = np.repeat(np.arange(16), 4), np.tile([3, 1, 3, 1], 16)
    entries["index"][:, 0] = np.arange(64)
    samples = []
    for blocks in (range(16), [9, 0, *range(1, 9), *range(15, 9, -1)]):
        sampler = access_sampling.AccessSampler()
        for block in blocks:
            sampler.take(entries[4 * block : 4 * block + 4])
        samples.append(sampler.sample())
    assert samples[0]["index"][:, 0].tolist() == samples[1]["index"][:, 0].tolist()
    assert samples[0]["site"].tolist() == [1] * 32 + [3] * 32
