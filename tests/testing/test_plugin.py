"""The pytest plugin: engines, checks, known findings, budgets, records and reports."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable

import pytest

from tests.compilers import needs_nvcc
from tests.testing.projects import COSTS, PLAIN, RACE, TRANSPOSE, baseline, run


# ------------------------------------------------------------------ engines
def test_a_test_runs_on_each_selected_engine(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(PLAIN)
    result = run(pytester, "-v", "--simtbed-engine", "jit,numpy")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["*engine=jit*PASSED*", "*engine=numpy*PASSED*", "1 launch on jit", "1 launch on numpy"]
    )


def test_without_options_the_ini_file_says_which(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nsimtbed_engine = numpy")
    pytester.makepyfile(PLAIN)
    run(pytester).stdout.fnmatch_lines(["1 launch on numpy"])


def test_the_marker_says_engines_and_device(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        TRANSPOSE + '@pytest.mark.simtbed(engines=("jit", "numpy"), device="K40", schedules=1)\n'
        "def test_device(launch):\n    assert launch(transpose, **HOW).request.device.name == 'K40'"
    )
    run(pytester).assert_outcomes(passed=2)


@pytest.mark.slow
def test_a_selected_engine_that_cannot_run_fails(pytester: pytest.Pytester) -> None:
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


@pytest.mark.parametrize("engines", ["opencl", "jit,auto", "", "jit,numpy,jit"])
def test_unknown_engines_are_bad_use(pytester: pytest.Pytester, engines: str) -> None:
    pytester.makepyfile(PLAIN)
    pytester.makeini(f"[pytest]\nsimtbed_engine = {engines}")
    assert run(pytester).ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.slow
def test_unknown_words_of_the_marker_are_an_error(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TRANSPOSE + "@pytest.mark.simtbed(engine='jit')\ndef test_it(launch):\n    pass")
    assert run(pytester).ret != 0


def test_a_project_without_kernels_imports_nothing_heavy() -> None:
    script = (
        "import sys, simtbed.testing.plugin; "
        "print([name for name in sys.modules if name.startswith(('simtbed.runtime', 'simtbed.engines', 'llvmlite'))])"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert process.stdout == "[]\n"


# ------------------------------------------------------------------ checks
def test_findings_fail_with_both_places(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(RACE)
    run(pytester).assert_outcomes(passed=1)
    result = run(pytester, "--simtbed-check", "all")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert text.count(" | ") >= 2 and "^^^" in text and "tile[st.thread.x" in text


def test_a_test_is_not_held_to_what_it_expects(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        RACE.replace("    launch(", "    with pytest.raises(st.FaultError):\n        launch(").replace(
            "**HOW)\n", "check='races', **HOW)\n"
        )
    )
    run(pytester, "--simtbed-check", "all").assert_outcomes(passed=1)


@pytest.mark.slow
def test_known_findings_pass_while_they_are_found(pytester: pytest.Pytester) -> None:
    path = pytester.makepyfile(RACE)
    text = run(pytester, "--simtbed-check", "races").stdout.str()
    pins = [part.partition("reason = ")[0] for part in text.split("[[known]]")[1:]]
    rows = dict.fromkeys(
        "\n".join(line.removeprefix("E   ") for line in pin.splitlines() if " = " in line) for pin in pins
    )
    file = pytester.path / ".simtbed" / "known.toml"
    file.parent.mkdir()
    file.write_text("".join(f'[[known]]\n{row}\nreason = "a test"\n' for row in rows))
    run(pytester, "--simtbed-check", "races").assert_outcomes(passed=1)
    path.write_text(PLAIN)
    result = pytester.runpytest_subprocess("--simtbed-check", "races", "-p", "no:cacheprovider")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["FAILED .simtbed/known.toml: not found any more: race in *"])


def test_a_pin_needs_a_reason(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(PLAIN)
    pytester.mkdir(".simtbed").joinpath("known.toml").write_text('[[known]]\nkind="race"\nfile="a"\nline="b"\n')
    result = run(pytester, "--simtbed-check", "all")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*known.toml: known?0?: missing key reason"])


# ------------------------------------------------------------------ budgets
@pytest.mark.slow
def test_a_budget_is_written_and_held(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=COSTS)
    result = run(pytester)
    result.assert_outcomes(failed=1)
    assert "has no baseline" in result.stdout.str()
    run(pytester, "--simtbed-update").assert_outcomes(passed=1)
    written = tomllib.loads(baseline(pytester).read_text())["test_a.py::test_costs"]["whole"]
    assert written["figures"]["shared_load_requests"] == 32 and "shared_load_conflicts" not in written["figures"]
    result = run(pytester, "--simtbed-engine", "jit,numpy")
    result.assert_outcomes(passed=2)
    assert result.ret == 0


@pytest.mark.slow
def test_a_difference_names_counter_values_and_line(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=COSTS)
    run(pytester, "--simtbed-update")
    pytester.makepyfile(test_a="# a line above\n\n\n" + COSTS.replace("32, 33", "32, 32"))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*shared_load_conflicts: 0 in the baseline, now 992*", "*test_a.py:18: out*= tile*"])


@pytest.mark.slow
def test_edits_elsewhere_give_no_alarm(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=COSTS)
    run(pytester, "--simtbed-update")
    pytester.makepyfile(test_a="# a line above\n\n" + COSTS.replace("A tile", "One tile"))
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


@pytest.mark.slow
@pytest.mark.parametrize(("limits", "code"), [("hard=1000", 0), ("soft=1000, hard=1000", 0), ("hard=1", 1)])
def test_limits_in_percent(pytester: pytest.Pytester, limits: str, code: int) -> None:
    costs = COSTS.replace('"whole"', f'"whole", {limits}')
    pytester.makepyfile(test_a=costs)
    run(pytester, "--simtbed-update")
    pytester.makepyfile(
        test_a=costs.replace("for row in range(4):\n        tile", "for row in range(3):\n        tile")
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert result.ret == code
    assert ("budget whole of test_a.py::test_costs: within" in result.stdout.str()) == (limits == "hard=1000")


def test_another_device_is_named_as_the_reason(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=COSTS)
    run(pytester, "--simtbed-update")
    text = baseline(pytester).read_text()
    baseline(pytester).write_text(text.replace('device = "H200"', 'device = "K40"'))
    result = run(pytester)
    result.assert_outcomes(failed=1)
    assert "the baseline is of device K40, this is of device H200" in result.stdout.str()


@pytest.mark.slow
def test_an_unused_baseline_fails_after_all_tests_of_its_file(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=COSTS + "\ndef test_other():\n    pass\n")
    run(pytester, "--simtbed-update")
    text = baseline(pytester).read_text()
    baseline(pytester).write_text(text.replace("whole", "removed") + text)
    assert run(pytester, "-k", "test_costs").ret == 0
    assert run(pytester, "test_a.py::test_costs").ret == 0
    result = run(pytester)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["FAILED .simtbed/budgets.toml: not used any more: removed of test_a.py::test_costs"])
    assert run(pytester, "--simtbed-update").ret == 0
    assert "removed" not in baseline(pytester).read_text()


def test_parameters_have_baselines_of_their_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_a=TRANSPOSE + "@pytest.mark.parametrize('n', [1, 2])\ndef test_costs(launch, budget, n):\n"
        "    budget('whole').expect(launch(transpose, **{**HOW, 'grid': n}))"
    )
    run(pytester, "--simtbed-update", "--simtbed-engine", "numpy,jit").assert_outcomes(passed=4)
    assert set(tomllib.loads(baseline(pytester).read_text())) == {
        "test_a.py::test_costs[1]",
        "test_a.py::test_costs[2]",
    }
    run(pytester).assert_outcomes(passed=2)


@pytest.mark.slow
def test_threads_give_no_alarm(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_a="from concurrent.futures import ThreadPoolExecutor\n"
        + TRANSPOSE
        + "def test_costs(launch, budget):\n    with ThreadPoolExecutor(8) as pool:\n"
        "        for result in pool.map(lambda _: launch(transpose, **HOW), range(100)):\n"
        "            budget('whole').expect(result)"
    )
    run(pytester, "--simtbed-update").assert_outcomes(passed=1)
    result = run(pytester)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["100 launches on jit"])


def test_hypothesis_may_launch(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_a="from hypothesis import given, settings, strategies\n"
        + TRANSPOSE
        + "@settings(max_examples=5, database=None)\n@given(n=strategies.integers(1, 3))\n"
        "def test_costs(launch, budget, n):\n    budget(f'{n}').expect(launch(transpose, **{**HOW, 'grid': n}))"
    )
    run(pytester, "--simtbed-update").assert_outcomes(passed=1)


def test_a_budget_of_what_was_not_counted_fails(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(COSTS)
    run(pytester, "--simtbed-update")
    pytester.makepyfile(COSTS.replace("**HOW)", "**HOW, counters=False)"))
    result = run(pytester)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*nothing was counted: the launch says counters=False*"])


def test_a_budget_fails_if_two_launches_fit_differently(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_a=TRANSPOSE + "def test_costs(launch, budget):\n    for n in (1, 2):\n"
        "        budget('whole').expect(launch(transpose, **{**HOW, 'grid': n}))"
    )
    result = run(pytester, "--simtbed-update")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*an earlier launch of the test has this budget: give this one another name*"])
    assert "accepts it" not in result.stdout.str()


@pytest.mark.slow
@needs_nvcc
def test_compiled_values_are_compared_if_selected(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=COSTS.replace('"whole"', '"whole", compiled=True'))
    run(pytester, "--simtbed-update").assert_outcomes(passed=1)
    written = tomllib.loads(baseline(pytester).read_text())["test_a.py::test_costs"]["whole"]
    assert written["figures"]["registers"] > 0 and "release" in written["compiler"]


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "place"), [("0", "C"), ("1", "C.UTF-8"), ("4242", "tr_TR.UTF-8")])
def test_a_rerun_elsewhere_gives_no_alarm(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, seed: str, place: str
) -> None:
    pytester.makepyfile(test_a=COSTS)
    assert run(pytester, "--simtbed-update").ret == 0
    monkeypatch.setenv("PYTHONHASHSEED", seed)
    monkeypatch.setenv("LC_ALL", place)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--simtbed-engine", "jit,numpy")
    assert result.ret == 0
    result.assert_outcomes(passed=2)


def test_junit_has_every_launch(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(PLAIN)
    run(pytester, "--junitxml", "report.xml")
    text = (pytester.path / "report.xml").read_text()
    assert 'name="simtbed launch" value="transpose on jit, grid (1, 1, 1), block (32, 8, 1), ' in text


# ------------------------------------------------------------------ records and reports
EMPTY = '{"format": "simtbed launches", "version": 1, "tests": {}}'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda text: text.replace("]", ', "transpose (1, 1, 1) (32, 8, 1): rounds"]'), "1 launch on jit; other has 2"),
        (lambda text: EMPTY, "other has no launches"),
        (lambda text: text.replace("test_transposes", "test_removed"), "test_removed: made no launch; other has some"),
        (lambda text: text.replace("test_transposes", "test_removed"), "test_transposes: other knows no launch of it"),
        (lambda text: text.replace("32, 8, 1", "32, 4, 2"), "not as in other, on jit: transpose (1, 1, 1) (32, 8, 1)"),
        (lambda text: text.replace("1): ", "1): 0"), "not as in other, on jit: transpose (1, 1, 1) (32, 8, 1)"),
        (lambda text: "", "other: expected what --simtbed-write-launches wrote"),
        (lambda text: "[]", "other: expected what --simtbed-write-launches wrote"),
        (None, "No such file"),
    ],
)
def test_a_run_launches_and_answers_as_another(
    pytester: pytest.Pytester, edit: Callable[[str], str] | None, reason: str
) -> None:
    pytester.makepyfile(PLAIN)
    assert run(pytester, "--simtbed-write-launches", "made").ret == 0
    same = run(pytester, "--simtbed-same-launches", "made", "--simtbed-engine", "numpy")
    assert same.ret == 0
    same.stdout.fnmatch_lines(["the bits of 1 of 1 launches compared with made"])
    if edit is not None:
        (pytester.path / "other").write_text(edit((pytester.path / "made").read_text()))
    result = run(pytester, "--simtbed-same-launches", "other")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert any(line.startswith("FAILED ") and reason in line for line in result.outlines), result.outlines


def test_faults_of_a_failed_test_are_in_the_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(RACE)
    assert run(pytester, "--simtbed-check", "all", "--simtbed-report", "run.json").ret == 1
    (launch,) = json.loads((pytester.path / "run.json").read_text())["launches"]
    assert {fault["kind"] for fault in launch["faults"]} == {"race"}
