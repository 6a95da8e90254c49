"""Findings fail their test after every later event: skips, expected failures, further tries, the end of the run."""

import re

import pytest

from tests.testing.projects import RACE, TRANSPOSE, baseline, run

HEAD = (
    RACE.partition("def test_races")[0]
    + """
import unittest
from unittest import SkipTest, TestCase

@st.kernel
def outside(x: Global[f32]) -> None:
    x[2000] = 1.0
"""
)
RACES = "    st.launch(transpose, **HOW)\n"
"""A launch with a race, which it does not raise."""
FAULTS = "    st.launch(outside, grid=1, block=1, args=dict(x=X))\n"
"""A launch that raises its fault."""
FAILING = f"""
def test_skip(): {{
{RACES}    pytest.skip('later')
}}
def test_importorskip(): {{
{RACES}    pytest.importorskip('no_such_module')
}}
def test_skip_of_unittest(): {{
{RACES}    raise SkipTest('later')
}}
def test_xfail(): {{
{RACES}    pytest.xfail('later')
}}
@pytest.mark.xfail(reason='known')
def test_xfail_that_passes(): {{
{RACES}}}
@pytest.mark.xfail(strict=True)
def test_xfail_strict(): {{
{RACES}    assert False
}}
@pytest.mark.xfail(raises=KeyError)
def test_xfail_raises(): {{
{RACES}    raise KeyError
}}
def test_subtests(subtests): {{
    with subtests.test('one'):
    {RACES}        pytest.skip('later')
}}
def test_caught(): {{
    try:
    {RACES}        raise ValueError
    except ValueError:
        pytest.skip('later')
}}
@pytest.mark.parametrize('n', [1, 2])
def test_parametrised(n): {{
{RACES}    pytest.skip('later')
}}
class TestOfUnittest(TestCase):
    def test_skip(self):
        st.launch(transpose, **HOW)
        self.skipTest('later')
    @unittest.expectedFailure
    def test_expected_failure(self):
        st.launch(transpose, **HOW)
        self.fail()
    def test_sub_test(self):
        with self.subTest('one'):
            st.launch(transpose, **HOW)
            self.skipTest('later')
def test_fault_caught_then_skipped(): {{
    try:
    {FAULTS}    except st.FaultError:
        pytest.skip('later')
}}
@pytest.mark.xfail
def test_fault_of_an_xfail(): {{
{FAULTS}}}
""".replace("{\n", "\n").replace("}\n", "\n")
PASSING = f"""
@pytest.mark.xfail(raises=st.FaultError)
def test_expected_by_its_mark():
{FAULTS}
def test_expected_by_raises():
    with pytest.raises(st.FaultError):
    {FAULTS}
"""
ERRORS = f"""
@pytest.fixture
def skipping():
{RACES}    pytest.skip('later')
def test_of_a_skipping_fixture(skipping):
    pass
@pytest.fixture(scope='class')
def of_class():
{RACES}    raise SkipTest('later')
class TestClass:
    def test_of_a_class_fixture(self, of_class):
        pass
@pytest.fixture
def ending():
    yield
{RACES}    pytest.skip('later')
def test_of_a_skipping_teardown(ending):
    pass
"""
CHECKED = ("--simtbed-check", "all")


def names(result: pytest.RunResult, word: str) -> list[str]:
    """Return the functions of the short summary's lines with a word."""
    return sorted({line.split("::")[-1].split(" ")[0] for line in result.outlines if line.startswith(f"{word} ")})


def functions(source: str) -> list[str]:
    return re.findall(r"def (test_\w+)", source)


@pytest.mark.slow
def test_a_finding_fails_its_test_after_every_later_event(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=HEAD + FAILING + PASSING + ERRORS)
    result = run(pytester, *CHECKED, "-rfE")
    failed = [name.partition("[")[0] for name in names(result, "FAILED")]
    assert sorted({*failed}) == sorted({*functions(FAILING)})
    assert names(result, "ERROR") == sorted(functions(ERRORS))
    text = result.stdout.str()
    assert "a finding fails a skipped test too: later" in text and "race" in text
    assert "a finding fails an expected failure too" in text


def test_without_the_option_the_same_tests_do_not_fail(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=HEAD + PASSING + ERRORS + FAILING.partition("@pytest.mark.xfail(strict")[0])
    assert run(pytester).ret == 0


def test_doctests_and_modules_do_too(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_a=HEAD
        + '"""\n'.join(["def f():\n    ", "    >>> _ = st.launch(transpose, **HOW)\n    >>> pytest.skip()\n    ", ""]),
        test_b=HEAD + "st.launch(transpose, **HOW)\npytest.skip('later', allow_module_level=True)",
    )
    result = run(pytester, *CHECKED, "--doctest-modules", "--continue-on-collection-errors")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(failed=1, errors=2)  # a module is imported for its doctests too


@pytest.mark.slow
@pytest.mark.parametrize("code", ["", ", returncode=0"])
def test_the_end_of_the_run_hides_nothing(pytester: pytest.Pytester, code: str) -> None:
    pytester.makepyfile(test_a=HEAD + f"def test_exit():\n{RACES}    pytest.exit('now'{code})")
    result = run(pytester, *CHECKED)
    assert result.ret in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
    if code:
        result.stdout.fnmatch_lines(["FAILED test_a.py::test_exit: *race on shared memory*"])


def test_a_plugin_that_passes_every_report_hides_nothing(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "import pytest\n@pytest.hookimpl(wrapper=True, tryfirst=True)\ndef pytest_runtest_makereport():\n"
        "    report = yield\n    report.outcome = 'passed'\n    return report\n"
    )
    pytester.makepyfile(test_a=HEAD + f"def test_race():\n{RACES}")
    result = run(pytester, *CHECKED)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["FAILED test_a.py::test_race: *"])


AGAIN = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):  # as plugins that run a failed test again
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for last in (False, True):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if last or all(not report.failed for report in reports):
            break
        item._initrequest()
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
"""


@pytest.mark.parametrize("end", ["", "    pytest.skip('later')\n", "    assert n > 1\n"])
def test_a_finding_of_an_earlier_try_fails(pytester: pytest.Pytester, end: str) -> None:
    pytester.makeconftest(AGAIN)
    once = "n = 0\ndef test_once():\n    global n\n    n += 1\n    if n == 1:\n    " + RACES
    pytester.makepyfile(test_a=HEAD + once + end)
    result = run(pytester, *CHECKED)
    result.assert_outcomes(failed=1)
    assert "in an earlier try:" in result.stdout.str()


@pytest.mark.slow
def test_a_caught_budget_fails_a_skipped_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_a=TRANSPOSE + "def test_costs(launch, budget):\n    try:\n"
        "        budget('whole').expect(launch(transpose, **HOW))\n    except AssertionError:\n        pytest.skip('later')"
    )
    result = run(pytester)
    result.assert_outcomes(failed=1)
    assert "has no baseline" in result.stdout.str() and not baseline(pytester).exists()
