"""Interrupted runs of tests: no result is reported, written or removed as after a complete run."""

import pytest

from tests.testing.projects import COSTS, TRANSPOSE, baseline, run

STOPPING = COSTS + "\ndef test_stops(launch):\n    {}\n\n" + COSTS.removeprefix(TRANSPOSE).replace("costs", "too")
"""A test with a budget, one that may stop the run, and another one with a budget."""
STOPS = {
    "fails": ("assert False", "-x"),
    "ends it well": ("pytest.exit('enough', returncode=0)",),
    "ends the run": ("pytest.exit('too much')",),
}
CUT = "FAILED {} of 3 tests did not finish: *"


@pytest.fixture
def baselines(pytester: pytest.Pytester) -> str:
    """Return the baselines of such a project."""
    pytester.makepyfile(test_a=STOPPING.format("pass"))
    assert run(pytester, "--simtbed-update").ret == 0
    text = baseline(pytester).read_text()
    assert text.count(".figures]") == 2
    return text


@pytest.mark.parametrize("how", STOPS)
def test_no_baseline_is_removed(pytester: pytest.Pytester, baselines: str, how: str) -> None:
    line, *options = STOPS[how]
    pytester.makepyfile(test_a=STOPPING.format(line))
    result = run(pytester, "--simtbed-update", *options)
    assert result.ret != 0
    result.stdout.fnmatch_lines([CUT.format("[12]")])
    assert baseline(pytester).read_text() == baselines


@pytest.mark.parametrize("how", STOPS)
def test_no_baseline_is_called_unused(pytester: pytest.Pytester, baselines: str, how: str) -> None:
    line, *options = STOPS[how]
    pytester.makepyfile(test_a=STOPPING.format(line))
    result = run(pytester, *options)
    assert result.ret != 0
    result.stdout.no_fnmatch_line("*not used any more*")
    if "returncode=0" in line:
        result.stdout.fnmatch_lines([CUT.format("[12]")])


def test_no_launches_are_recorded_or_compared(pytester: pytest.Pytester, baselines: str) -> None:
    assert run(pytester, "--simtbed-write-launches", "made").ret == 0
    pytester.makepyfile(test_a=STOPPING.format("pytest.exit('enough', returncode=0)"))
    result = run(pytester, "--simtbed-write-launches", "other", "--simtbed-same-launches", "made")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (line,) = [line for line in result.outlines if line.startswith("FAILED ")]
    assert "did not finish" in line and not (pytester.path / "other").exists()


@pytest.mark.parametrize("when", ["in a test", "at its end"])
def test_a_worker_that_dies_takes_no_baseline_with_it(pytester: pytest.Pytester, baselines: str, when: str) -> None:
    """At its end a worker has reported its tests' results but not their launches; pytest-xdist accepts that."""
    dies = "import os; os._exit(1)"
    if when == "in a test":
        pytester.makepyfile(test_a=STOPPING.format(dies))
    else:
        ending = f"def pytest_sessionfinish(session):\n    if hasattr(session.config, 'workerinput'):\n        {dies}\n"
        pytester.makeconftest(ending)
    for update in ((), ("--simtbed-update",)):
        result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-n", "1", *update)
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        result.stdout.no_fnmatch_line("*not used any more*")
        assert baseline(pytester).read_text() == baselines
    result.stdout.fnmatch_lines([CUT.format("[23]")])
