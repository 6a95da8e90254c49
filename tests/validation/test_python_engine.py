"""The python engine compared with the others: the whole conformance suite and the corpus of mistakes."""

import json
import os
import subprocess
import sys

import pytest
import simtbed as st
from simtbed.ir.ops import BITS
from simtbed.runtime.engine import Request
from simtbed.runtime.registry import engine_named
from simtbed.runtime.request import prepare_request
from simtbed.testing.conformance import FEATURES, Feature, cases

from tests.checkers.corpus import PAIRS
from tests.language.test_python_engine import _text
from tests.table_checks import check_each, each_row

CHECKS = "bounds,alignment,uninitialised,barriers,arithmetic"
WAITS = (
    "flag_of_another_element", "syncwarp_in_one_arm", "spin_lock_that_only_releases", "spin_lock_without_a_fence",
    "mailbox_freed_before_it_is_read", "block_barrier_passed_twice_by_one_count", "barrier_of_blocks_without_a_fence",
)  # fmt: skip
"""Pairs whose corrected form has lanes or blocks that wait for later ones: this engine runs them in order."""
ELSEWHERE = ("race", "unacquired race", "schedule", "wgmma", "mbarrier")
"""Faults of another test, or that this engine does not look for."""
MISTAKES = [n for n, pair in PAIRS.items() if pair.fault not in ELSEWHERE and n not in WAITS]
SHOWN_VALUE = "off_by_one_in_a_function"
"""Its finding shows the value of an argument that the other engines fold."""


def test_operations() -> None:
    check_each([c for c in cases("python") if not c.name.startswith("feature")], lambda case: case.run(), str)


def _same(request: Request) -> None:
    actual, expected = (engine_named(engine).run(request) for engine in ("python", "numpy"))
    assert list(actual.buffers) == list(expected.buffers)
    for name, values in actual.buffers.items():
        assert BITS.agree(values, expected.buffers[name]).all(), name
    assert actual.printed == expected.printed
    assert [_text(fault) for fault in actual.faults] == [_text(fault) for fault in expected.faults[:1]]


@each_row(FEATURES, lambda feature: feature.name)
def test_features_equal_the_numpy_engine_to_the_bit(feature: Feature) -> None:
    _same(feature.launch(prepare_request))


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_has_a_finding_of_jit_and_its_fixed_twin_none(name: str) -> None:
    pair = PAIRS[name]
    for fixed in (False, True):
        python = st.launch(
            pair.kernel, device=pair.device, args={**pair.args, "FIXED": fixed}, check=CHECKS, faults="return",
            step_limit=200, engine="python", **pair.shape,
        ).faults  # fmt: skip
        jit = pair.launch(fixed, "jit").faults
        assert len(python) == (not fixed)
        assert bool(jit) == (not fixed)
        if python and name != SHOWN_VALUE:
            assert _text(python[0]) in map(_text, jit)


REFUSED_RACES = {
    "barrier_without_a_wait", "copied_for_another_warp_without_a_barrier", "copy_that_is_not_waited_for",
    "pipeline_that_waits_for_too_few", "buffer_filled_again_before_the_copy_has_read_it", "bulk_store_without_a_fence",
    "product_without_a_fence_of_its_operand", "operand_written_before_the_wait", "sum_of_blocks_by_copies",
}  # fmt: skip
"""Kernels with asynchronous copies or products."""
RACES = [name for name, pair in PAIRS.items() if pair.fault in ("race", "unacquired race") and name not in WAITS]


def test_races_of_the_corpus_are_found_or_refused_by_name() -> None:
    def kinds(name: str, fixed: bool) -> list[str]:
        return [fault.kind for fault in PAIRS[name].launch(fixed, "python").faults]

    def check(name: str) -> None:
        if name in REFUSED_RACES:
            with pytest.raises(st.LaunchError, match="no races in a kernel with asynchronous copies"):
                kinds(name, True)
        else:
            assert (kinds(name, False), kinds(name, True)) == ([PAIRS[name].fault], [])

    check_each(RACES, check, str)


TIMES = """
import json, time
from simtbed.reports.bench.cudasim import KERNELS, simulated
from simtbed.reports.bench.kernels import Size, works
from simtbed.runtime.registry import engine_named

ratios = {}
for work in works(Size(1, 1, 64)):
    if work.name in ("block sum", "transpose, pitch 33"):
        request, seconds = work.request(), []
        for _ in range(3):
            start = time.perf_counter()
            engine_named("python").run(request)
            seconds.append(time.perf_counter() - start)
        ratios[work.name] = min(simulated(work, 2)) / min(seconds)
print(json.dumps(ratios))
"""


def test_it_is_three_times_as_fast_as_the_simulator_of_numba() -> None:
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    run = subprocess.run([sys.executable, "-c", TIMES], env=environment, capture_output=True, text=True, check=True)
    ratios = json.loads(run.stdout)
    assert len(ratios) == 2
    assert min(ratios.values()) > 3, ratios
