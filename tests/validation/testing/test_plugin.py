"""The plugin with workers, a GPU, a report and the compiler, each in a process of its own."""

import json
import tomllib

import pytest

from tests.compilers import needs_nvcc
from tests.pages import ROOT
from tests.testing.projects import COSTS, PLAIN, TRANSPOSE, baseline, run


def test_a_gpu_counts_nothing_and_its_baselines_are_used(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update on a GPU neither removes nor empties them."""
    pytester.makepyfile(COSTS)
    run(pytester, "--simtbed-update")
    text = baseline(pytester).read_text()
    played = ("-p", "no:cacheprovider", "-p", "tests.testing.played_gpu", "--simtbed-engine")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    result = pytester.runpytest_subprocess(*played, "cuda")
    result.assert_outcomes(passed=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["1 launch on cuda", "*not compared: a GPU counts nothing"])
    for engines in ("cuda", "cuda,jit"):
        assert pytester.runpytest_subprocess(*played, engines, "--simtbed-update").ret == 0
        assert baseline(pytester).read_text() == text


def test_workers_of_xdist_share_one_tally(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=COSTS, test_b=COSTS)
    assert run(pytester, "-n", "2", "--simtbed-update").ret == 0
    assert set(tomllib.loads(baseline(pytester).read_text())) == {"test_a.py::test_costs", "test_b.py::test_costs"}
    result = run(pytester, "-n", "2")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["2 launches on jit"])


def test_device_arrays_on_a_gpu_are_not_compared(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """An emulator has the array in memory, a GPU does not send it; results computed from it are compared."""
    test = TRANSPOSE + (
        "def test_device_array(launch):\n    array = st.DeviceArray(np.zeros(1024, np.float32))\n"
        "    launch(transpose, **{**HOW, 'args': {**HOW['args'], 'out': array}})\n"
        "    launch(transpose, **{**HOW, 'args': {**HOW['args'], 'x': array}})\n"
    )
    pytester.makepyfile(test)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert run(pytester, "--simtbed-write-launches", "made").ret == 0
    played = ("-p", "no:cacheprovider", "-p", "tests.testing.played_gpu", "--simtbed-engine", "cuda")
    result = pytester.runpytest_subprocess(*played, "--simtbed-same-launches", "made")
    assert result.ret == 0, result.outlines
    result.stdout.fnmatch_lines(["the bits of 2 of 2 launches compared with made"])


def test_a_report_is_one_page_and_a_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=PLAIN, test_b=PLAIN)
    reports = ("--simtbed-report", "page.html", "--simtbed-report", "run.json")
    assert run(pytester, "-n", "2", *reports).ret == 0
    page = (pytester.path / "page.html").read_text()
    assert "transpose" in page and "http" not in page.replace("http://www.w3.org", "")
    content = json.loads((pytester.path / "run.json").read_text())
    assert len(content["launches"]) == 2 and all(one["counts"] and one["samples"] for one in content["launches"])


@needs_nvcc
def test_every_kernel_is_compiled(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(PLAIN)
    assert run(pytester, "--simtbed-compile", "sm_80,sm_90").ret == 0
    assert run(pytester, "--simtbed-compile", "sm_1").ret == pytest.ExitCode.USAGE_ERROR
    pytester.makepyfile(
        test_wide=TRANSPOSE
        + "@st.kernel\ndef wide(x: Global[f32], y: Global[f32]) -> None:\n    kept = st.registers(f32, 96)\n"
        "    s = f32(1)\n    for k in st.unroll(range(96)):\n        kept[k] = x[st.thread.x + k]\n"
        "        s = s * kept[k] + 1.0\n    for k in st.unroll(range(96)):\n        s = s * s + kept[k]\n"
        "    y[st.thread.x] = s\ndef test_wide(launch):\n"
        "    launch(wide, grid=1, block=1024, args=dict(x=np.zeros(2000, np.float32), y=st.empty(1024, f32)))"
    )
    result = run(pytester, "--simtbed-compile", "sm_90", "test_wide.py")
    result.assert_outcomes(failed=1)
    assert "wide spills registers on sm_90" in result.stdout.str() and 'kind = "spill"' in result.stdout.str()
