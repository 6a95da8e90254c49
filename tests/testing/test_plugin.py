"""The pytest plugin: engines, checks, known findings and budgets; and that no broken run of tests passes."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest
import simtbed
from simtbed.engines.cuda.nvcc import find_tool

for _module in walk_packages(simtbed.__path__, "simtbed."):
    # pytester forgets what a run imports: of modules that know each other it would forget some alone
    if not _module.name.startswith(("simtbed.__main__", "simtbed.kernels", "simtbed.oracles", "simtbed.reports")):
        import_module(_module.name)

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


def needs_nvcc() -> None:
    """Skips where there is none."""
    find_tool("nvcc") or pytest.skip("there is no nvcc")


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
    needs_nvcc()
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


# ------------------------------------------------------------------ records and reports
EMPTY = '{"format": "simtbed launches", "version": 1, "tests": {}}'


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda text: text.replace("]", ', "transpose (1, 1, 1) (32, 8, 1): rounds"]'), "1 launch on jit; other has 2"),
        (lambda text: EMPTY, "other has no launches"),
        (lambda text: text.replace("test_transposes", "test_gone"), "test_gone: made no launch; other has some"),
        (lambda text: text.replace("test_transposes", "test_gone"), "test_transposes: other knows no launch of it"),
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
    assert _run(pytester, "--simtbed-write-launches", "made").ret == 0
    same = _run(pytester, "--simtbed-same-launches", "made", "--simtbed-engine", "numpy")
    assert same.ret == 0
    same.stdout.fnmatch_lines(["the bits of 1 of 1 launches compared with made"])
    if edit is not None:
        (pytester.path / "other").write_text(edit((pytester.path / "made").read_text()))
    result = _run(pytester, "--simtbed-same-launches", "other")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert any(line.startswith("FAILED ") and reason in line for line in result.outlines), result.outlines


@pytest.mark.slow
def test_a_report_is_one_page_and_a_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=PLAIN, test_b=PLAIN)
    reports = ("--simtbed-report", "page.html", "--simtbed-report", "run.json")
    assert _run(pytester, "-n", "2", *reports).ret == 0
    page = (pytester.path / "page.html").read_text()
    assert "transpose" in page and "http" not in page.replace("http://www.w3.org", "")
    run = json.loads((pytester.path / "run.json").read_text())
    assert len(run["launches"]) == 2 and all(one["counts"] and one["samples"] for one in run["launches"])


def test_what_a_test_failed_for_is_in_the_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(RACE)
    assert _run(pytester, "--simtbed-check", "all", "--simtbed-report", "run.json").ret == 1
    (launch,) = json.loads((pytester.path / "run.json").read_text())["launches"]
    assert {fault["kind"] for fault in launch["faults"]} == {"race"}


@pytest.mark.slow
def test_every_kernel_goes_to_the_compiler(pytester: pytest.Pytester) -> None:
    needs_nvcc()
    pytester.makepyfile(PLAIN)
    assert _run(pytester, "--simtbed-compile", "sm_80,sm_90").ret == 0
    assert _run(pytester, "--simtbed-compile", "sm_1").ret == pytest.ExitCode.USAGE_ERROR
    pytester.makepyfile(
        test_wide=TRANSPOSE
        + "@st.kernel\ndef wide(x: Global[f32], y: Global[f32]) -> None:\n    kept = st.registers(f32, 96)\n"
        "    s = f32(1)\n    for k in st.unroll(range(96)):\n        kept[k] = x[st.thread.x + k]\n"
        "        s = s * kept[k] + 1.0\n    for k in st.unroll(range(96)):\n        s = s * s + kept[k]\n"
        "    y[st.thread.x] = s\ndef test_wide(launch):\n"
        "    launch(wide, grid=1, block=1024, args=dict(x=np.zeros(2000, np.float32), y=st.empty(1024, f32)))"
    )
    result = _run(pytester, "--simtbed-compile", "sm_90", "test_wide.py")
    result.assert_outcomes(failed=1)
    assert "wide spills registers on sm_90" in result.stdout.str() and 'kind = "spill"' in result.stdout.str()


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
        (PLAIN, ("--simtbed-engine", "cuda"), 1, "1 failed"),
        ("def test_it():\n    pass", ("--simtbed-report", "page.html"), 1, "so there is nothing to report"),
        ("def test_it():\n    pass", ("--simtbed-write-launches", "made"), 1, "there is no launch to record"),
        ("import os\ndef test_dies():\n    os._exit(9)", ("-n", "1"), 1, "crashed"),
    ],
    ids=[
        "no tests",
        "deselected",
        "no plugin",
        "import error",
        "refused kernel",
        "no baseline",
        "no GPU",
        "empty report",
        "empty record",
        "dead worker",
    ],
)
def test_a_broken_run_does_not_pass(
    pytester: pytest.Pytester, source: str, options: tuple[str, ...], code: int, reason: str
) -> None:
    pytester.makepyfile(source)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)
    assert result.ret == code
    assert reason in result.stdout.str() + result.stderr.str()


@pytest.mark.slow
def test_a_missing_engine_fails(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyCUDA is not installed."""
    (pytester.path / "pycuda.py").write_text("raise ModuleNotFoundError(name='pycuda')")
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    pytester.makepyfile(PLAIN)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--simtbed-engine", "cuda")
    assert result.ret == 1 and "PyCUDA" in result.stdout.str()


TOO_OLD = """
class Error(Exception): pass
class MemoryError(Error): pass
def init(): pass
def get_driver_version(): return 12020
class Device:
    @staticmethod
    def count(): return 1
    def __init__(self, number): pass
    def name(self): return "a GPU"
    def compute_capability(self): return (9, 0)
    def retain_primary_context(self): return Context()
class Context:
    def push(self): pass
    def pop(self): pass
def module_from_buffer(cubin): raise Error("cuModuleLoadDataEx failed: device kernel image is invalid")
"""
"""PyCUDA with a driver that does not know what nvcc makes."""


@pytest.mark.slow
def test_a_driver_that_is_too_old_fails_with_both_versions(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_nvcc()
    pytester.mkpydir("pycuda").joinpath("driver.py").write_text(TOO_OLD)
    monkeypatch.setenv("PYTHONPATH", str(pytester.path))
    pytester.makepyfile(PLAIN)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--simtbed-engine", "cuda")
    assert result.ret == 1
    assert (
        "its driver is for CUDA 12.2, and the kernel was made by Cuda compilation tools, release" in result.stdout.str()
    )


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--simtbed-write-launches", "--simtbed-report", "--simtbed-update"])
def test_a_full_disk_fails_and_leaves_what_was_there(pytester: pytest.Pytester, option: str) -> None:
    """Files may grow to a few bytes alone, as on a full disk."""
    pytester.makepyfile(test_a=COSTS)
    assert _run(pytester, "--simtbed-update").ret == 0
    kept = _baseline(pytester).read_text()
    (pytester.path / "made").write_text("what was there")
    words = [option] if option == "--simtbed-update" else [option, "made"]

    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-s", *words]
    quiet = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command,
        cwd=pytester.path,
        env=quiet,
        preexec_fn=full,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "File too large" in done.stdout, done.stdout + done.stderr
    assert _baseline(pytester).read_text() == kept and (pytester.path / "made").read_text() == "what was there"
    assert {path.name for path in pytester.path.iterdir()} <= {"test_a.py", "made", ".simtbed", "__pycache__"}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_for_its_time_does_not_pass(pytester: pytest.Pytester, number: signal.Signals) -> None:
    """As services do at the end of a job's time."""
    pytester.makepyfile(
        PLAIN + "\ndef test_hangs():\n    open('hangs', 'w').close()\n    import time\n    time.sleep(600)"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--simtbed-write-launches", "made"]
    process = subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.DEVNULL)
    while not (pytester.path / "hangs").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait() != 0
    made = pytester.path / "made"
    assert number == signal.SIGINT or not made.exists()
