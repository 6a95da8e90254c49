"""The pytest plugin: options, marker, fixtures, and the report at the end of a run.

Other modules of this package are imported when an option, the marker or a fixture is used.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .. import numba_hook  # noqa: F401  with SIMTBED_NUMBA=1 or SIMTBED_TRITON=1 it acts before tests import their modules
from ..escaping import terminal
from .tally import Tally, reason_of

if TYPE_CHECKING:
    from ..errors import Diagnostic
    from ..runtime.observer_folder import ObserverFolder
    from ..runtime.result import Result
    from .budgets import Budget
    from .compiling import Compiling
    from .judging import TestFindings
    from .known_findings import Pin
    from .watching import Watch

TALLY = pytest.StashKey[Tally]()
PINS = pytest.StashKey["list[Pin]"]()
COMPILING: pytest.StashKey[Compiling] = pytest.StashKey()
WATCH = pytest.StashKey["Watch"]()
TEST = pytest.StashKey[pytest.Item]()
"""The current test."""
FOLDER = pytest.StashKey["ObserverFolder"]()
FINDINGS: pytest.StashKey[TestFindings] = pytest.StashKey()
ANSWERED = pytest.StashKey["list[tuple[str, str]]"]()
"""Results of the launches of a test: engines and lines."""
ENGINE = "_simtbed_engine"
AUTO = ("jit", "numpy", "cuda")
MARKED = {"engines", "device", "check", "schedules"}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("simtbed", "kernels and what they cost")
    group.addoption(
        "--simtbed-engine", metavar="NAMES", help="engines of tests with `launch` or `engine`: some of jit,numpy,cuda; "
        "or auto: all that can run here"
    )  # fmt: skip
    group.addoption("--simtbed-check", metavar="NAMES", help="look for these in every launch of every test; all: all")
    group.addoption(
        "--simtbed-compile", metavar="ARCHS", help="give every kernel to nvcc for these, such as sm_80,sm_90; all: all"
    )
    group.addoption("--simtbed-update", action="store_true", help="write the baselines of budgets")
    group.addoption("--simtbed-write-launches", metavar="FILE", help="record the launches and what they answered")
    group.addoption("--simtbed-same-launches", metavar="FILE", help="fail unless launches and bits are those of FILE")
    group.addoption(
        "--simtbed-report", metavar="FILE", action="append", default=[], help="write what all launches cost: a page "
        "where FILE ends in .html, else a run for `simtbed diff` and `simtbed check`"
    )  # fmt: skip
    parser.addini("simtbed_engine", "what --simtbed-engine says where it is not given", default="jit")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "simtbed(engines, device, check, schedules): engines, a tuple of names; the device; what launches are checked "
        "for; in how many other orders each one runs too",
    )
    config.stash[TALLY] = Tally()
    if config.getoption("simtbed_update") and os.environ.get("CI"):
        raise pytest.UsageError("--simtbed-update writes baselines; where CI is set they are only compared")
    _named(config.getoption("simtbed_engine") or config.getini("simtbed_engine"))
    if active := [name for name in LOOKING if config.getoption(f"simtbed_{name}")]:
        for name in ("collectonly", "setupplan", "setuponly"):
            if getattr(config.option, name, False):
                raise pytest.UsageError(
                    f"--simtbed-{active[0].replace('_', '-')} is about tests that run; here none does"
                )
    check, archs = config.getoption("simtbed_check"), config.getoption("simtbed_compile")
    if not (check or archs):
        return
    from ..errors import SimtbedError
    from ..runtime.recording import parsed
    from .compiling import Compiling, architectures

    try:
        parsed(check or ())
        _pins(config)
        if archs:
            config.stash[COMPILING] = Compiling(architectures(archs))
    except SimtbedError as error:
        raise pytest.UsageError(terminal(str(error))) from None


def _pins(config: pytest.Config) -> list[Pin]:
    """Return the known findings, read once."""
    if PINS not in config.stash:
        from .known_findings import read_pins

        config.stash[PINS] = read_pins(config.rootpath)
    return config.stash[PINS]


# ------------------------------------------------------------------ engines
def _named(names: str) -> tuple[str, ...]:
    """Return the engines named in a text."""
    engines = tuple(name.strip() for name in names.split(","))
    if engines == ("auto",):
        return AUTO
    if wrong := [name for name in engines if name not in AUTO]:
        raise pytest.UsageError(f"no engine is called {wrong[0]!r}; there are {', '.join(AUTO)}, and auto alone")
    if twice := [name for name in engines if engines.count(name) > 1]:
        raise pytest.UsageError(f"the engine {twice[0]} is named twice")
    return engines


def _marked(node: pytest.Item | Any) -> dict[str, Any]:
    """Return the arguments of a test's marker."""
    marker = node.get_closest_marker("simtbed")
    if marker is None:
        return {}
    if marker.args or not set(marker.kwargs) <= MARKED:
        raise pytest.UsageError(f"{node.nodeid}: the marker simtbed takes {', '.join(sorted(MARKED))}, by name")
    return dict(marker.kwargs)


def _requested_engines(config: pytest.Config, node: Any) -> str:
    """Return the engines of a test: from the command line, else from its marker, else from the ini file."""
    marked = _marked(node).get("engines")
    named = marked if isinstance(marked, str | None) else ",".join(marked)
    return str(config.getoption("simtbed_engine") or named or config.getini("simtbed_engine"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if ENGINE in metafunc.fixturenames:
        engines = _named(_requested_engines(metafunc.config, metafunc.definition))
        ids = [f"engine={engine}" for engine in engines]
        metafunc.parametrize(ENGINE, engines, ids=ids, scope="session")


# ------------------------------------------------------------------ fixtures
# Session scope lets Hypothesis use them; they look up the current test.
@pytest.fixture(scope="session")
def engine(_simtbed_engine: str) -> str:
    """The engine of the test: a test runs once for each requested engine."""
    return _simtbed_engine


@pytest.fixture(scope="session")
def launch(_simtbed_engine: str) -> Callable[..., Result]:
    """`st.launch` on the engine of the test, with the device, checks and schedules of its marker."""
    from ..runtime.launching import launch

    def on_engine(kernel: Any, **how: Any) -> Result:
        return launch(kernel, **{"engine": _simtbed_engine, **how})

    return on_engine


@pytest.fixture(scope="session")
def budget(pytestconfig: pytest.Config) -> Callable[..., Budget]:
    """`budget(name).expect(result)`: compare the metrics of a launch with the test's baseline of that name.

    soft, hard: changes in percent. Beyond `hard` the test fails; beyond `soft` the summary reports it. compiled: whether to
    compare registers and spills too, which requires nvcc.
    """
    from .budgets import Baselines, Budget

    baselines = Baselines.from_root(pytestconfig.rootpath)

    def named(name: str, *, soft: float = 0.0, hard: float = 0.0, compiled: bool = False) -> Budget:
        test, tally = _without_engine(pytestconfig.stash[TEST]), pytestconfig.stash[TALLY]
        update = bool(pytestconfig.getoption("simtbed_update"))
        return Budget(baselines, tally, test, name, soft, hard, compiled, update)

    return named


def _without_engine(item: pytest.Item) -> str:
    """Return the test's name without the engine."""
    spec = getattr(item, "callspec", None)
    if spec is None:
        return item.nodeid
    words = spec.id.split("-")
    with suppress(ValueError):  # a test without an engine
        words.remove(f"engine={spec.params.get(ENGINE)}")
    path = item.nodeid.removesuffix(f"[{spec.id}]")
    return f"{path}[{'-'.join(words)}]" if words else path


# ------------------------------------------------------------------ tests
def _uses(item: pytest.Item) -> bool:
    names = getattr(item, "fixturenames", ())
    return bool(
        ENGINE in names
        or "budget" in names
        or item.get_closest_marker("simtbed")
        or any(item.config.getoption(f"simtbed_{name}") for name in LOOKING)
    )


LOOKING = ("check", "compile", "write_launches", "same_launches", "report")
"""Options that observe every launch."""


def _watched(item: pytest.Item) -> Generator[None, Any, Any]:
    """Observe the launches of a phase of a test."""
    if not _uses(item):
        return (yield)
    from ..errors import UnavailableError
    from ..runtime.observing import observing

    observed, config = _watch(item.config, _marked(item)), item.config
    config.stash[TEST] = item
    config.stash[TALLY].over.clear()
    try:
        with observing(observed), observed.elsewhere(partial(_folder, config)):
            return (yield)
    except UnavailableError as error:
        if _requested_engines(config, item) != "auto" or item.callspec.params.get(ENGINE) != "cuda":  # type: ignore[attr-defined]
            raise
        config.stash[TALLY].not_run.append(f"{item.nodeid}: {error}")
        pytest.skip(str(error))
    finally:
        _judge(item, observed, sys.exception())


def _watch(config: pytest.Config, marked: Mapping[str, Any]) -> Watch:
    """Return the observer of launches. marked: arguments of a marker."""
    from .watching import watch

    option = config.getoption
    required = option("simtbed_check")
    return watch(
        required or marked.get("check", ""),
        marked.get("schedules", 0),
        bool(required),
        marked.get("device"),
        compiling=config.stash.get(COMPILING, None),
        detail=bool(option("simtbed_report")),
        answering=bool(option("simtbed_write_launches") or option("simtbed_same_launches")),
    )


def _judge(item: pytest.Item, observed: Watch, error: BaseException | None) -> None:
    """Record the launches of a phase of a test, and its findings. error: of the phase."""
    from ..errors import SimtbedError
    from .judging import TestFindings
    from .watching import described

    observed.end()
    tally, config = item.config.stash[TALLY], item.config
    answered = item.stash.setdefault(ANSWERED, [])
    for engine, lines in observed.answers.items():
        answered += [(engine, line) for line in lines]
        tally.answers.setdefault(_without_engine(item), {}).setdefault(engine, []).extend(lines)
    if config.getoption("xmlpath", None):
        item.user_properties += [("simtbed launch", described(one)) for one in observed.launches]
    in_error = observed.raised(error) if isinstance(error, SimtbedError) else getattr(error, "findings", [])
    missed = [text for text in (*tally.over, _noted(config, observed, in_error)) if text]
    item.stash.setdefault(FINDINGS, TestFindings()).end_phase(missed, _raised(config, observed))
    if missed:
        tally.findings[item.nodeid] = missed[0]


def _folder(config: pytest.Config) -> ObserverFolder:
    """Return a folder that exists during the run."""
    from ..runtime.observer_folder import ObserverFolder

    if FOLDER not in config.stash:
        path = Path(tempfile.mkdtemp(prefix="simtbed-"))
        config.add_cleanup(partial(shutil.rmtree, path, ignore_errors=True))
        config.stash[FOLDER] = ObserverFolder(path)
        config.add_cleanup(config.stash[FOLDER].close)
    return config.stash[FOLDER]


def _begin_try(item: pytest.Item) -> None:
    """Discard the results of a test that runs again, and keep its findings."""
    by_engine = item.config.stash[TALLY].answers.get(_without_engine(item), {})
    for engine, line in item.stash.get(ANSWERED, []):
        by_engine[engine].remove(line)
    item.stash[ANSWERED] = []
    if FINDINGS in item.stash:
        item.stash[FINDINGS].begin_try()


def _noted(config: pytest.Config, observed: Watch, raised: Sequence[Diagnostic]) -> str:
    """Count and report finished launches; return their unreported findings as a text."""
    from .watching import findings_text, without_known

    tally = config.stash[TALLY]
    tally.launches.update(one.engine for one in observed.launches)
    unknown, used = without_known(observed.missed, _pins(config) if observed.missed else [], config.rootpath)
    tally.pins += sorted(used - {*tally.pins})
    if config.getoption("simtbed_report") and (run := observed.run([*raised, *unknown])):
        tally.runs.append(run)
    return findings_text(unknown, config.rootpath)


def _raised(config: pytest.Config, observed: Watch) -> str:
    """Return the faults that launches raised or returned, without known ones, as a text; empty without --simtbed-check."""
    from .watching import findings_text, without_known

    if not (observed.raised_faults and config.getoption("simtbed_check")):
        return ""
    unknown, _ = without_known(observed.raised_faults, _pins(config), config.rootpath)
    return findings_text(unknown, config.rootpath)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Observe the launches of modules during import, as those of tests."""
    config, tally = collector.config, collector.config.stash[TALLY]
    if any(config.getoption(f"simtbed_{name}") for name in LOOKING):
        from ..runtime.observing import observing

        observed, text = _watch(config, {}), ""
        try:
            with observing(observed):
                report = yield
        finally:
            observed.end()
            if text := _noted(config, observed, []):
                tally.findings[collector.nodeid] = text
        if text:
            report.outcome, report.longrepr = "failed", terminal(text)
    else:
        report = yield
    if report.skipped:
        tally.skipped[collector.nodeid] = reason_of(report)
    elif report.failed:
        tally.incomplete.append(collector.nodeid)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    _begin_try(item)
    return (yield from _watched(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _watched(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _watched(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    tally = item.config.stash[TALLY]
    if FINDINGS in item.stash:
        error = call.excinfo.value if call.excinfo else None
        if text := item.stash[FINDINGS].fail(item, report, error):
            tally.findings[item.nodeid] = text
    if call.when == "teardown":
        tally.ended.append(item.nodeid)
    if report.skipped and not hasattr(report, "wasxfail"):
        tally.skipped[_without_engine(item)] = reason_of(report)
    elif not report.passed:
        tally.incomplete.append(_without_engine(item))
    return report


# ------------------------------------------------------------------ the run
def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    for item in items:
        tally, option = item.config.stash[TALLY], item.config.option
        if any(getattr(option, name, None) for name in CHOOSING):
            tally.deselected = True
        elif _uses(item):
            tally.left_out.append(_without_engine(item))


CHOOSING = ("keyword", "markexpr", "deselect", "lf", "stepwise", "splits", "num_shards", "test_group_count")
"""Options, of pytest and of plugins that distribute tests, which deselect tests."""


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A worker of pytest-xdist has finished."""
    node.config.stash[TALLY].add(getattr(node, "workeroutput", {}).get("simtbed", Tally().plain()))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    config, tally = session.config, session.config.stash[TALLY]
    if hasattr(config, "workeroutput"):
        config.workeroutput["simtbed"] = tally.plain()
        return
    tests = (
        len({item.nodeid for item in session.items}) or session.testscollected
    )  # pytest-xdist reports only their number
    passed = exitstatus == pytest.ExitCode.OK
    wrong = [] if config.option.collectonly else _at_the_end(config, tests, passed)
    if passed:  # a plugin changed a report, or pytest.exit prevented it
        wrong += [f"{test}: {text}" for test, text in tally.findings.items()]
    config.stash[UNUSED] = wrong
    if wrong and passed:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


UNUSED = pytest.StashKey[list[str]]()
"""Problems of the whole run, a line each."""


def _at_the_end(config: pytest.Config, tests: int, passed: bool) -> list[str]:
    """Write the requested files; return the problems of the run as a whole. tests: the number selected. passed: whether
    pytest reports success."""
    tally, option = config.stash[TALLY], config.getoption
    used = any(option(f"simtbed_{name}") for name in (*LOOKING, "update"))
    if not (used or tally.budgets or tally.left_out or (config.rootpath / ".simtbed" / "budgets.toml").is_file()):
        return []
    from .ending import at_the_end

    return list(at_the_end(config, tally, lambda: _pins(config), tests, passed))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    tally, unused = config.stash[TALLY], config.stash.get(UNUSED, [])
    if not (tally.launches or tally.not_run or unused or tally.remarks):
        return
    terminalreporter.section("simtbed")
    for engine, count in sorted(tally.launches.items()):
        terminalreporter.line(f"{count} launch{'' if count == 1 else 'es'} on {engine}")
    lines = [*(f"not run: {one}" for one in tally.not_run), *tally.remarks, *(f"FAILED {one}" for one in unused)]
    for line in lines:
        terminalreporter.line(terminal(line))
