"""Results do not depend on threads, hash seeds, locales or time zones."""

from pathlib import Path

import pytest
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.kernels import FAMILIES
from simtbed.reports.launchers import Runner
from simtbed.runtime.request import prepare_request
from simtbed.testing.conformance import FEATURES, Feature, assert_same

from tests.hostile.processes import COMMANDS, answer, checked_kernels, run_alone, start
from tests.table_checks import each_row


# ------------------------------------------------------------------ threads
def _solved(family: str, variant: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> tuple[str, dict[str, int]]:
    monkeypatch.setenv("SIMTBED_THREADS", str(threads))
    row, runner = FAMILIES[family], Runner("jit", counting=True)
    result = row.solve(row.example(), variant, runner)
    assert runner.counters is not None
    return repr(result.tolist()), dict(runner.counters.totals())


def assert_threads_agree(family: str, variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = _solved(family, variant, 1, monkeypatch)
    assert _solved(family, variant, 7, monkeypatch) == alone


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "variant"),
    [("pairhmm", "wavefront-rescaled"), ("alignment", "packed"), ("correction", "warp-per-read"), ("sfs", "tiled")],
)
def test_threads_do_not_change_a_variant(family: str, variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """tests/validation runs all variants."""
    assert_threads_agree(family, variant, monkeypatch)


@each_row([feature for feature in FEATURES if feature.grid != 1], lambda feature: feature.name)
def test_threads_do_not_change_a_feature(feature: Feature) -> None:
    """Outputs, counters, faults and printed lines, in their order. Threads share the blocks of a grid."""
    request = feature.launch(prepare_request)
    alone, together = (LlvmEngine(threads=threads).run(request) for threads in (1, 5))
    assert_same(together, alone, request)
    assert (together.faults, together.printed) == (alone.faults, alone.printed)


# ------------------------------------------------------------------ the environment
ENVIRONMENTS = {
    "the locale C": {"LC_ALL": "C", "PYTHONHASHSEED": "1", "TZ": "Pacific/Kiritimati", "SIMTBED_THREADS": "16"},
    "ASCII": {
        "LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONHASHSEED": "random", "TZ": "America/St_Johns",
    },
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ["profile", "sfs"])
def test_the_environment_does_not_change_a_command(name: str, tmp_path: Path) -> None:
    """Cached kernels are found in the changed environment too. tests/validation runs more commands and environments."""
    cache = tmp_path / "cache"
    expected = run_alone(name, cache)
    before = checked_kernels(cache)
    assert answer(start(COMMANDS[name], cache, **ENVIRONMENTS["the locale C"])) == expected
    assert checked_kernels(cache) == before != set()
