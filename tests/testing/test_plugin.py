"""The pytest plugin: engines, checks, known findings and budgets; and that no broken run of tests passes."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

TRANSPOSE = '''
import numpy as np
import pytest
import simtbed as st
from simtbed import Global, f32, i32

@st.kernel
def transpose(x: Global[f32], out: Global[f32]) -> None:
    """A tile, padded against bank conflicts."""
    tile = st.shared(f32, 32, 33)
    for row in range(4):
        tile[st.thread.y + 8 * row, st.thread.x] = x[(st.thread.y + 8 * row) * 32 + st.thread.x]
    st.sync()
    for row in range(4):
        out[(st.thread.y + 8 * row) * 32 + st.thread.x] = tile[st.thread.x, st.thread.y + 8 * row]

X = np.arange(1024, dtype=np.float32)
HOW = dict(grid=1, block=(32, 8), args=dict(x=X, out=st.empty(1024, f32)))
'''
PLAIN = (
    TRANSPOSE
    + """
def test_transposes(launch, engine):
    result = launch(transpose, **HOW)
    assert (result.out.reshape(32, 32) == X.reshape(32, 32).T).all()
"""
)
COSTS = (
    TRANSPOSE
    + """
def test_costs(launch, budget):
    budget("whole").expect(launch(transpose, **HOW))
"""
)
RACE = (
    TRANSPOSE.replace("    st.sync()\n", "")
    + """
def test_races(launch):
    launch(transpose, **HOW)
"""
)


@pytest.fixture(autouse=True)
def not_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """These runs are a developer's, wherever they run."""
    monkeypatch.delenv("CI", raising=False)


def _run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *options)


def _baseline(pytester: pytest.Pytester) -> Path:
    return pytester.path / ".simtbed" / "budgets.toml"


# ------------------------------------------------------------------ engines
def test_a_test_runs_on_each_engine_asked_for(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(PLAIN)
    result = _run(pytester, "-v", "--simtbed-engine", "jit,numpy")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["*engine=jit*PASSED*", "*engine=numpy*PASSED*", "1 launch on jit", "1 launch on numpy"]
    )


def test_without_options_the_ini_file_says_which(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nsimtbed_engine = numpy")
    pytester.makepyfile(PLAIN)
    _run(pytester).stdout.fnmatch_lines(["1 launch on numpy"])


def test_the_marker_says_engines_and_device(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        TRANSPOSE + '@pytest.mark.simtbed(engines=("jit", "numpy"), device="K40", schedules=1)\n'
        "def test_device(launch):\n    assert launch(transpose, **HOW).request.device.name == 'K40'"
    )
    _run(pytester).assert_outcomes(passed=2)


@pytest.mark.slow
def test_an_engine_that_cannot_run_fails_where_it_is_asked_for(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(PLAIN)
    result = pytester.runpytest_subprocess("--simtbed-engine", "cuda", "-p", "no:cacheprovider")
    if "1 launch on cuda" not in result.stdout.str():
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        result.assert_outcomes(failed=1)


@pytest.mark.slow
def test_auto_alone_skips_and_says_so(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    pytester.makepyfile(PLAIN)
    result = pytester.runpytest_subprocess("--simtbed-engine", "auto", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["not run: *engine=cuda*"])


@pytest.mark.parametrize("engines", ["opencl", "jit,auto", ""])
def test_unknown_engines_are_bad_use(pytester: pytest.Pytester, engines: str) -> None:
    pytester.makepyfile(PLAIN)
    pytester.makeini(f"[pytest]\nsimtbed_engine = {engines}")
    assert _run(pytester).ret == pytest.ExitCode.USAGE_ERROR


def test_unknown_words_of_the_marker_are_an_error(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TRANSPOSE + "@pytest.mark.simtbed(engine='jit')\ndef test_it(launch):\n    pass")
    assert _run(pytester).ret != 0


def test_a_project_without_kernels_imports_nothing_heavy() -> None:
    script = (
        "import sys, simtbed.testing.plugin; "
        "print([name for name in sys.modules if name.startswith(('simtbed.runtime', 'simtbed.engines', 'llvmlite'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# ------------------------------------------------------------------ checks
def test_findings_fail_with_both_places(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(RACE)
    _run(pytester).assert_outcomes(passed=1)
    result = _run(pytester, "--simtbed-check", "all")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert text.count(" | ") >= 2 and "^^^" in text and "tile[st.thread.x" in text


def test_a_test_is_not_held_to_what_it_expects(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        RACE.replace("    launch(", "    with pytest.raises(st.FaultError):\n        launch(").replace(
            "**HOW)\n", "check='races', **HOW)\n"
        )
    )
    _run(pytester, "--simtbed-check", "all").assert_outcomes(passed=1)


@pytest.mark.slow
def test_known_findings_pass_while_they_are_found(pytester: pytest.Pytester) -> None:
    path = pytester.makepyfile(RACE)
    text = _run(pytester, "--simtbed-check", "races").stdout.str()
    pins = [part.partition("reason = ")[0] for part in text.split("[[known]]")[1:]]
    rows = dict.fromkeys(
        "\n".join(line.removeprefix("E   ") for line in pin.splitlines() if " = " in line) for pin in pins
    )
    known = pytester.path / ".simtbed" / "known.toml"
    known.parent.mkdir()
    known.write_text("".join(f'[[known]]\n{row}\nreason = "a test"\n' for row in rows))
    _run(pytester, "--simtbed-check", "races").assert_outcomes(passed=1)
    path.write_text(PLAIN)
    result = pytester.runpytest_subprocess("--simtbed-check", "races", "-p", "no:cacheprovider")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["FAILED .simtbed/known.toml: not found any more: race in *"])


def test_a_pin_needs_a_reason(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(PLAIN)
    pytester.mkdir(".simtbed").joinpath("known.toml").write_text('[[known]]\nkind="race"\nfile="a"\nline="b"\n')
    result = _run(pytester, "--simtbed-check", "all")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*known finding 1: expected the texts kind, file, line, reason"])


# ------------------------------------------------------------------ budgets
def test_a_budget_is_written_and_held(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=COSTS)
    result = _run(pytester)
    result.assert_outcomes(failed=1)
    assert "has no baseline" in result.stdout.str()
    _run(pytester, "--simtbed-update").assert_outcomes(passed=1)
    written = tomllib.loads(_baseline(pytester).read_text())["test_a.py::test_costs"]["whole"]
    assert written["figures"]["shared_load_requests"] == 32 and "shared_load_conflicts" not in written["figures"]
    result = _run(pytester, "--simtbed-engine", "jit,numpy")
    result.assert_outcomes(passed=2)
    assert result.ret == 0


@pytest.mark.slow
def test_a_difference_names_counter_values_and_line(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=COSTS)
    _run(pytester, "--simtbed-update")
    pytester.makepyfile(test_a="# a line above\n\n\n" + COSTS.replace("32, 33", "32, 32"))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*shared_load_conflicts: 0 in the baseline, now 992*", "*test_a.py:18: out*= tile*"])


@pytest.mark.slow
def test_edits_elsewhere_give_no_alarm(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=COSTS)
    _run(pytester, "--simtbed-update")
    pytester.makepyfile(test_a="# a line above\n\n" + COSTS.replace("A tile", "One tile"))
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


@pytest.mark.slow
@pytest.mark.parametrize(("limits", "code"), [("hard=1000", 0), ("soft=1000, hard=1000", 0), ("hard=1", 1)])
def test_limits_in_percent(pytester: pytest.Pytester, limits: str, code: int) -> None:
    costs = COSTS.replace('"whole"', f'"whole", {limits}')
    pytester.makepyfile(test_a=costs)
    _run(pytester, "--simtbed-update")
    pytester.makepyfile(
        test_a=costs.replace("for row in range(4):\n        tile", "for row in range(3):\n        tile")
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert result.ret == code
    assert ("budget whole of test_a.py::test_costs: within" in result.stdout.str()) == (limits == "hard=1000")


def test_another_device_is_named_as_the_reason(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=COSTS)
    _run(pytester, "--simtbed-update")
    text = _baseline(pytester).read_text()
    _baseline(pytester).write_text(text.replace('device = "H200"', 'device = "K40"'))
    result = _run(pytester)
    result.assert_outcomes(failed=1)
    assert "the baseline is of device K40, this is of device H200" in result.stdout.str()


def test_an_unused_baseline_fails_where_all_tests_of_its_file_ran(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=COSTS + "\ndef test_other():\n    pass\n")
    _run(pytester, "--simtbed-update")
    text = _baseline(pytester).read_text()
    _baseline(pytester).write_text(text.replace("whole", "gone") + text)
    assert _run(pytester, "-k", "test_costs").ret == 0
    assert _run(pytester, "test_a.py::test_costs").ret == 0
    result = _run(pytester)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["FAILED .simtbed/budgets.toml: not used any more: gone of test_a.py::test_costs"])
    assert _run(pytester, "--simtbed-update").ret == 0
    assert "gone" not in _baseline(pytester).read_text()


def test_parameters_have_baselines_of_their_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_a=TRANSPOSE + "@pytest.mark.parametrize('n', [1, 2])\ndef test_costs(launch, budget, n):\n"
        "    budget('whole').expect(launch(transpose, **{**HOW, 'grid': n}))"
    )
    _run(pytester, "--simtbed-update", "--simtbed-engine", "numpy,jit").assert_outcomes(passed=4)
    assert set(tomllib.loads(_baseline(pytester).read_text())) == {
        "test_a.py::test_costs[1]",
        "test_a.py::test_costs[2]",
    }
    _run(pytester).assert_outcomes(passed=2)


def test_threads_give_no_alarm(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_a="from concurrent.futures import ThreadPoolExecutor\n"
        + TRANSPOSE
        + "def test_costs(launch, budget):\n    with ThreadPoolExecutor(8) as pool:\n"
        "        for result in pool.map(lambda _: launch(transpose, **HOW), range(100)):\n"
        "            budget('whole').expect(result)"
    )
    _run(pytester, "--simtbed-update").assert_outcomes(passed=1)
    result = _run(pytester)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["100 launches on jit"])


def test_hypothesis_may_launch(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_a="from hypothesis import given, settings, strategies\n"
        + TRANSPOSE
        + "@settings(max_examples=5, database=None)\n@given(n=strategies.integers(1, 3))\n"
        "def test_costs(launch, budget, n):\n    budget(f'{n}').expect(launch(transpose, **{**HOW, 'grid': n}))"
    )
    _run(pytester, "--simtbed-update").assert_outcomes(passed=1)


def test_a_budget_that_two_launches_of_a_run_fit_differently_fails(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_a=TRANSPOSE + "def test_costs(launch, budget):\n    for n in (1, 2):\n"
        "        budget('whole').expect(launch(transpose, **{**HOW, 'grid': n}))"
    )
    _run(pytester, "--simtbed-update").assert_outcomes(failed=1)


def test_what_is_compiled_counts_where_it_is_asked_for(pytester: pytest.Pytester) -> None:
    pytest.importorskip("simtbed.engines.cuda.nvcc").find_tool("nvcc") or pytest.skip("there is no nvcc")
    pytester.makepyfile(test_a=COSTS.replace('"whole"', '"whole", compiled=True'))
    _run(pytester, "--simtbed-update").assert_outcomes(passed=1)
    written = tomllib.loads(_baseline(pytester).read_text())["test_a.py::test_costs"]["whole"]
    assert written["figures"]["registers"] > 0 and "release" in written["compiler"]


@pytest.mark.slow
def test_workers_of_xdist_share_one_tally(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=COSTS, test_b=COSTS)
    assert _run(pytester, "-n", "2", "--simtbed-update").ret == 0
    assert set(tomllib.loads(_baseline(pytester).read_text())) == {"test_a.py::test_costs", "test_b.py::test_costs"}
    result = _run(pytester, "-n", "2")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["2 launches on jit"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["0", "1", "4242"])
@pytest.mark.parametrize("place", ["C", "C.UTF-8", "tr_TR.UTF-8"])
def test_a_rerun_elsewhere_gives_no_alarm(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, seed: str, place: str
) -> None:
    pytester.makepyfile(test_a=COSTS)
    assert _run(pytester, "--simtbed-update").ret == 0
    monkeypatch.setenv("PYTHONHASHSEED", seed)
    monkeypatch.setenv("LC_ALL", place)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--simtbed-engine", "jit,numpy")
    assert result.ret == 0
    result.assert_outcomes(passed=2)


def test_junit_has_every_launch(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(PLAIN)
    _run(pytester, "--junitxml", "report.xml")
    text = (pytester.path / "report.xml").read_text()
    assert 'name="simtbed launch" value="transpose on jit, grid (1, 1, 1), block (32, 8, 1), ' in text


@pytest.mark.parametrize(
    ("expected", "reason"),
    [
        ("3", "1 launches were made; other says 3"),
        ("0", "1 launches were made; other says 0"),
        ("", "expected a number"),
        (None, "No such file"),
    ],
)
def test_a_run_launches_as_often_as_another(pytester: pytest.Pytester, expected: str | None, reason: str) -> None:
    pytester.makepyfile(PLAIN)
    assert _run(pytester, "--simtbed-write-launches", "made").ret == 0
    assert _run(pytester, "--simtbed-same-launches", "made").ret == 0
    if expected is not None:
        (pytester.path / "other").write_text(expected)
    result = _run(pytester, "--simtbed-same-launches", "other")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"FAILED *{reason}*"])


# ------------------------------------------------------------------ runs that might pass by accident
def test_update_is_refused_in_ci(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    pytester.makepyfile(COSTS)
    assert _run(pytester, "--simtbed-update").ret == pytest.ExitCode.USAGE_ERROR
    assert not _baseline(pytester).exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "options", "code", "reason"),
    [
        ("", (), 5, "no tests ran"),
        (PLAIN, ("-k", "nothing"), 5, "1 deselected"),
        (PLAIN, ("-p", "no:simtbed", "--simtbed-check", "all"), 4, "unrecognized arguments"),
        ("import not_there", (), 2, "No module named 'not_there'"),
        (PLAIN.replace("st.sync()", "import os"), (), 1, "import"),
        (COSTS, (), 1, "has no baseline"),
        ("import os\ndef test_dies():\n    os._exit(9)", ("-n", "1"), 1, "crashed"),
    ],
    ids=["no tests", "deselected", "no plugin", "import error", "refused kernel", "no baseline", "dead worker"],
)
def test_a_broken_run_does_not_pass(
    pytester: pytest.Pytester, source: str, options: tuple[str, ...], code: int, reason: str
) -> None:
    pytester.makepyfile(source)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)
    assert result.ret == code
    assert reason in result.stdout.str() + result.stderr.str()
