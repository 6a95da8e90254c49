"""Runs of tests that may hide a wrong kernel or a skipped launch: each fails with a reason."""

import pytest

from tests.pages import ROOT
from tests.testing.projects import COSTS, PLAIN, RACE, TRANSPOSE, baseline, run

CHECK = ("--simtbed-check", "all")
LAUNCHED = RACE.partition("\ndef test_races")[0]
"""A kernel that races."""


@pytest.fixture
def in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_launches_of_other_processes_are_checked(pytester: pytest.Pytester, method: str) -> None:
    (pytester.path / "own.py").write_text(LAUNCHED + "\ndef launch():\n    st.launch(transpose, **HOW)\n")
    pytester.makepyfile(
        "import multiprocessing, own\ndef test_elsewhere():\n"
        f"    process = multiprocessing.get_context({method!r}).Process(target=own.launch)\n"
        "    process.start()\n    process.join()\n    assert process.exitcode == 0\n"
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *CHECK, "--simtbed-write-launches", "made")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*own.py*race on shared memory*", "1 launch on jit"])
    assert "transpose" in (pytester.path / "made").read_text()


def test_launches_of_threads_are_checked(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import threading\n" + LAUNCHED + "\ndef test_in_a_thread():\n"
        "    thread = threading.Thread(target=lambda: st.launch(transpose, **HOW))\n    thread.start()\n    thread.join()\n"
    )
    result = run(pytester, *CHECK)
    assert result.ret == 1 and "race on shared memory" in result.stdout.str()


def test_a_launch_that_outlives_its_test_fails_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import threading, time\n" + LAUNCHED + "\nfrom simtbed.runtime import running\n"
        "def test_leaves(monkeypatch):\n    started, released = threading.Event(), threading.Event()\n"
        "    def slow(*args, real=running._outcome):\n        started.set()\n        released.wait(30)\n        return real(*args)\n"
        "    monkeypatch.setattr(running, '_outcome', slow)\n"
        "    threading.Thread(target=lambda: st.launch(transpose, **HOW)).start()\n    assert started.wait(30)\n"
        "    threading.Timer(0.5, released.set).start()\n"
    )
    result = run(pytester, *CHECK)
    assert result.ret == 1 and "1 launch had not ended when the test did" in result.stdout.str()


def test_launches_of_modules_are_checked(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        LAUNCHED + "\nANSWER = st.launch(transpose, **HOW)\ndef test_it():\n    assert ANSWER.out.size\n"
    )
    assert run(pytester).ret == 0
    # In a process of its own: CPython 3.11 fails to parse source while a thread of another test parses too.
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *CHECK)
    assert result.ret == pytest.ExitCode.INTERRUPTED and "race on shared memory" in result.stdout.str()


@pytest.mark.parametrize(
    "lines",
    [
        "    try:\n        budget('whole').expect(result)\n    except AssertionError:\n        pass\n",
        "    import threading\n    thread = threading.Thread(target=lambda: budget('whole').expect(result))\n"
        "    thread.start()\n    thread.join()\n",
    ],
    ids=["caught", "in a thread"],
)
def test_a_missed_budget_cannot_be_caught(pytester: pytest.Pytester, lines: str) -> None:
    hidden = "\ndef test_costs(launch, budget):\n    result = launch(transpose, **HOW)\n" + lines
    pytester.makepyfile(test_a=TRANSPOSE + hidden)
    run(pytester, "--simtbed-update").assert_outcomes(passed=1)
    pytester.makepyfile(test_a=(TRANSPOSE + hidden).replace("32, 33", "32,  32"))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    assert "shared_load_conflicts: 0 in the baseline, now 992" in result.stdout.str()


@pytest.mark.parametrize("option", ["--collect-only", "--setup-plan"])
def test_a_run_that_runs_nothing_is_refused(pytester: pytest.Pytester, option: str) -> None:
    pytester.makepyfile(PLAIN)
    result = run(pytester, option, "--simtbed-write-launches", "made")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize(
    ("hiding", "line"),
    [
        (
            "import pytest\n@pytest.fixture(autouse=True)\ndef skip():\n    pytest.skip('no luck')\n",
            "*skipped: no luck",
        ),
        (
            "def pytest_collection_modifyitems(config, items):\n    config.hook.pytest_deselected(items=items[:1])\n    del items[:1]",
            "FAILED left out by a conftest or a plugin, and by no option of pytest: test_a.py::test_costs",
        ),
        (
            "def pytest_collection_modifyitems(config, items):\n    del items[:1]",
            "FAILED .simtbed/budgets.toml: not used any more: whole of test_a.py::test_costs",
        ),
    ],
    ids=["skipped by a fixture", "deselected by a conftest", "dropped by a conftest"],
)
def test_a_budget_that_is_not_compared_fails_in_ci(
    pytester: pytest.Pytester, in_ci: None, monkeypatch: pytest.MonkeyPatch, hiding: str, line: str
) -> None:
    pytester.makepyfile(test_a=COSTS + "\ndef test_other(launch):\n    launch(transpose, **HOW)\n")
    monkeypatch.delenv("CI")
    run(pytester, "--simtbed-update")
    pytester.makeconftest(hiding)
    text = baseline(pytester).read_text()
    developers = run(pytester)
    if "not used any more" not in line:
        assert developers.ret == 0
        run(pytester, "--simtbed-update")
        assert baseline(pytester).read_text() == text
    monkeypatch.setenv("CI", "true")
    result = run(pytester)
    assert result.ret == 1
    result.stdout.fnmatch_lines([line])


def test_a_module_that_skips_itself_fails_in_ci(
    pytester: pytest.Pytester, in_ci: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI")
    pytester.makepyfile(test_a=COSTS, test_b="def test_it():\n    pass\n")
    run(pytester, "--simtbed-update")
    pytester.makepyfile(test_a="import pytest\npytest.importorskip('not_there')\n" + COSTS)
    assert run(pytester).ret == 0
    monkeypatch.setenv("CI", "true")
    result = run(pytester)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["FAILED *not compared: whole of test_a.py::test_costs, which was skipped: *not_there*"]
    )


def test_an_empty_set_of_parameters_uses_no_baseline(pytester: pytest.Pytester) -> None:
    text = TRANSPOSE + (
        "@pytest.mark.parametrize('n', [1, 2])\ndef test_costs(launch, budget, n):\n"
        "    budget('whole').expect(launch(transpose, **{**HOW, 'grid': n}))"
    )
    pytester.makepyfile(test_a=text)
    run(pytester, "--simtbed-update").assert_outcomes(passed=2)
    pytester.makepyfile(test_a=text.replace("[1, 2]", "[]"))
    result = run(pytester)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAILED *not used any more: whole of test_a.py::test_costs[[]1[]]"])


def test_the_same_tests_elsewhere_must_launch_there(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A direct launch in a test uses an emulator, independent of the selected engine."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(TRANSPOSE + "\ndef test_it():\n    st.launch(transpose, **HOW)\n")
    assert run(pytester, "--simtbed-write-launches", "made").ret == 0
    played = ("-p", "no:cacheprovider", "-p", "tests.testing.played_gpu", "--simtbed-engine", "cuda")
    result = pytester.runpytest_subprocess(*played, "--simtbed-same-launches", "made")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAILED no launch ran on cuda: tests launch there by the fixture `launch`"])


def test_a_test_that_is_run_again_answers_once(pytester: pytest.Pytester) -> None:
    """Some plugins run failed tests again."""
    pytester.makepyfile(PLAIN)
    run(pytester, "--simtbed-write-launches", "made")
    pytester.makeconftest(
        "from _pytest.runner import runtestprotocol\n"
        "def pytest_runtest_protocol(item, nextitem):\n"
        "    runtestprotocol(item, nextitem=nextitem, log=False)\n    item._initrequest()\n"
        "    runtestprotocol(item, nextitem=nextitem)\n    return True\n"
    )
    assert run(pytester, "--simtbed-same-launches", "made").ret == 0
    twice = PLAIN.replace("    result = launch", "    launch(transpose, **HOW)\n    result = launch")
    pytester.makepyfile(twice)
    assert run(pytester, "--simtbed-same-launches", "made").ret == 1


@pytest.mark.parametrize(("soft", "hard"), [(5, 2), (-1, 0), (0, -1)])
def test_limits_that_leave_a_gap_are_refused(pytester: pytest.Pytester, soft: int, hard: int) -> None:
    pytester.makepyfile(COSTS.replace('"whole"', f'"whole", soft={soft}, hard={hard}'))
    result = run(pytester, "--simtbed-update")
    assert result.ret == 1 and "limit" in result.stdout.str() and not baseline(pytester).exists()
