"""The pytest plugin: its options, marker and fixtures, and what a run of tests ends with.

Nothing else of this package is imported until an option, the marker or a fixture is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .tally import Tally

if TYPE_CHECKING:
    from ..runtime.result import Result
    from .budgets import Budget
    from .known import Pin
    from .watching import Watch

TALLY = pytest.StashKey[Tally]()
PINS = pytest.StashKey["list[Pin]"]()
WATCH = pytest.StashKey["Watch"]()
TEST = pytest.StashKey[pytest.Item]()
"""The test that runs now."""
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
    group.addoption("--simtbed-update", action="store_true", help="write the baselines of budgets")
    group.addoption("--simtbed-write-launches", metavar="FILE", help="write how many launches there were")
    group.addoption("--simtbed-same-launches", metavar="FILE", help="fail unless there are as many as FILE says")
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
    if check := config.getoption("simtbed_check"):
        from ..errors import SimtbedError
        from ..runtime.recording import parsed

        try:
            parsed(check)
            _pins(config)
        except SimtbedError as error:
            raise pytest.UsageError(str(error)) from None


def _pins(config: pytest.Config) -> list[Pin]:
    """The known findings, read once."""
    if PINS not in config.stash:
        from .known import read_pins

        config.stash[PINS] = read_pins(config.rootpath)
    return config.stash[PINS]


# ------------------------------------------------------------------ engines
def _named(names: str) -> tuple[str, ...]:
    """The engines that a text names."""
    found = tuple(name.strip() for name in names.split(","))
    if found == ("auto",):
        return AUTO
    if wrong := [name for name in found if name not in AUTO]:
        raise pytest.UsageError(f"no engine is called {wrong[0]!r}; there are {', '.join(AUTO)}, and auto alone")
    return found


def _marked(node: pytest.Item | Any) -> dict[str, Any]:
    """What the marker of a test says."""
    marker = node.get_closest_marker("simtbed")
    if marker is None:
        return {}
    if marker.args or not set(marker.kwargs) <= MARKED:
        raise pytest.UsageError(f"{node.nodeid}: the marker simtbed takes {', '.join(sorted(MARKED))}, by name")
    return dict(marker.kwargs)


def _asked(config: pytest.Config, node: Any) -> str:
    """The engines of a test: as the command line has it, or its marker, or the ini file."""
    marked = _marked(node).get("engines")
    named = marked if isinstance(marked, str | None) else ",".join(marked)
    return str(config.getoption("simtbed_engine") or named or config.getini("simtbed_engine"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if ENGINE in metafunc.fixturenames:
        engines = _named(_asked(metafunc.config, metafunc.definition))
        ids = [f"engine={engine}" for engine in engines]
        metafunc.parametrize(ENGINE, engines, ids=ids, scope="session")


# ------------------------------------------------------------------ fixtures
# They live as long as the run, so that Hypothesis may use them, and ask which test runs now.
@pytest.fixture(scope="session")
def engine(_simtbed_engine: str) -> str:
    """The engine that the test runs on: a test is run once for each that is asked for."""
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
    """`budget(name).expect(result)`: what the launch costs is what the baseline of the test has under that name.

    soft, hard: changes in percent. Beyond `hard` the test fails; beyond `soft` the summary says so. compiled: whether
    registers and spills count too, which nvcc is needed for.
    """
    from .budgets import Baselines, Budget

    baselines = Baselines.of(pytestconfig.rootpath)

    def named(name: str, *, soft: float = 0.0, hard: float = 0.0, compiled: bool = False) -> Budget:
        test, tally = _without_engine(pytestconfig.stash[TEST]), pytestconfig.stash[TALLY]
        update = bool(pytestconfig.getoption("simtbed_update"))
        return Budget(baselines, tally, test, name, soft, hard, compiled, update)

    return named


def _without_engine(item: pytest.Item) -> str:
    """The test's name, the same on every engine."""
    engine = getattr(item, "callspec", None) and item.callspec.params.get(ENGINE)  # type: ignore[attr-defined]
    path, bracket, parameters = item.nodeid.partition("[")
    kept = "-".join(one for one in parameters.removesuffix("]").split("-") if one != f"engine={engine}")
    return f"{path}{bracket}{kept}]" if kept else path


# ------------------------------------------------------------------ tests
def _uses(item: pytest.Item) -> bool:
    names = getattr(item, "fixturenames", ())
    return bool(
        ENGINE in names
        or "budget" in names
        or item.get_closest_marker("simtbed")
        or any(item.config.getoption(f"simtbed_{name}") for name in ("check", "write_launches", "same_launches"))
    )


def _watched(item: pytest.Item) -> Generator[None, Any, Any]:
    """A phase of a test, its launches observed."""
    if not _uses(item):
        return (yield)
    from ..errors import UnavailableError
    from ..runtime.observing import observing

    found, config = _watch(item), item.config
    config.stash[TEST] = item
    try:
        with observing(found):
            result = yield
    except UnavailableError as error:
        if _asked(config, item) != "auto" or item.callspec.params.get(ENGINE) != "cuda":  # type: ignore[attr-defined]
            raise
        config.stash[TALLY].not_run.append(f"{item.nodeid}: {error}")
        pytest.skip(str(error))
    finally:
        unknown = _judge(item, found)
    if unknown:
        pytest.fail(unknown, pytrace=False)
    return result


def _watch(item: pytest.Item) -> Watch:
    from .watching import watch

    marked, required = _marked(item), item.config.getoption("simtbed_check")
    return watch(required or marked.get("check", ""), marked.get("schedules", 0), bool(required), marked.get("device"))


def _judge(item: pytest.Item, found: Watch) -> str:
    """What the test was not told, as a text; what there is to say of its launches is noted."""
    from .watching import described

    tally, config = item.config.stash[TALLY], item.config
    tally.launches.update(one.engine for one in found.launches)
    if config.getoption("xmlpath", None):
        item.user_properties += [("simtbed launch", described(one)) for one in found.launches]
    unknown, used = found.judged(_pins(config) if found.missed else [], config.rootpath)
    tally.pins += sorted(used - {*tally.pins})
    if unknown:
        item.add_report_section("call", "simtbed found", unknown)
    return unknown


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _watched(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _watched(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _watched(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if not report.passed:
        item.config.stash[TALLY].incomplete.append(item.nodeid.partition("::")[0])
    return report


# ------------------------------------------------------------------ the run
def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    if items:
        items[0].config.stash[TALLY].deselected = True


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A worker of pytest-xdist is done."""
    node.config.stash[TALLY].add(getattr(node, "workeroutput", {}).get("simtbed", Tally().plain()))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    config, tally = session.config, session.config.stash[TALLY]
    if hasattr(config, "workeroutput"):
        config.workeroutput["simtbed"] = tally.plain()
        return
    config.stash[UNUSED] = unused = [] if config.option.collectonly else [*_miscounted(config), *_unused(config)]
    if unused and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


UNUSED = pytest.StashKey[list[str]]()
"""What the whole run did not use, or did not launch, a line each."""


def _miscounted(config: pytest.Config) -> list[str]:
    """How the number of launches differs from that of another run; it is written where that is asked for."""
    made = config.stash[TALLY].launches.total()
    if into := config.getoption("simtbed_write_launches"):
        Path(into).write_text(f"{made}\n", encoding="utf-8")
    wanted = config.getoption("simtbed_same_launches")
    if not wanted:
        return []
    try:
        expected = int(Path(wanted).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return [f"{wanted}: expected a number of launches: {error}"]
    return [] if made == expected > 0 else [f"{made} launches were made; {wanted} says {expected}"]


def _unused(config: pytest.Config) -> list[str]:
    """Pins and baselines that nothing used, of tests that all ran and passed. Baselines are written where asked."""
    tally = config.stash[TALLY]
    lines = []
    whole = _is_whole(config)
    if config.getoption("simtbed_check") and not tally.incomplete and whole(config.rootpath):
        pins = enumerate(_pins(config))
        lines = [
            f".simtbed/known.toml: not found any more: {pin.kind} in {pin.file}: {pin.line}"
            for number, pin in pins
            if number not in tally.pins
        ]
    if not (tally.budgets or (config.rootpath / ".simtbed" / "budgets.toml").is_file()):
        return lines
    from .budgets import Baselines

    baselines = Baselines.of(config.rootpath)
    left = baselines.unused(tally.budgets, lambda file: file not in tally.incomplete and whole(config.rootpath / file))
    if config.getoption("simtbed_update"):
        baselines.write(tally.budgets, left)
        return lines
    return lines + [f".simtbed/budgets.toml: not used any more: {name} of {test}" for test, name in left]


def _is_whole(config: pytest.Config) -> Callable[[Path], bool]:
    """Whether all tests of a file, or of a folder, were to run."""
    tally, option = config.stash[TALLY], config.option
    partial = tally.deselected or getattr(option, "lf", False) or option.ignore or option.ignore_glob
    everything = config.args_source is not pytest.Config.ArgsSource.ARGS
    given = [Path(config.invocation_params.dir, one).resolve() for one in config.args if "::" not in one]

    def whole(path: Path) -> bool:
        return not partial and (everything or any(path.resolve().is_relative_to(one) for one in given))

    return whole


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    tally, unused = config.stash[TALLY], config.stash.get(UNUSED, [])
    if not (tally.launches or tally.not_run or unused or tally.remarks):
        return
    terminalreporter.section("simtbed")
    for engine, count in sorted(tally.launches.items()):
        terminalreporter.line(f"{count} launch{'' if count == 1 else 'es'} on {engine}")
    lines = [*(f"not run: {one}" for one in tally.not_run), *tally.remarks, *(f"FAILED {one}" for one in unused)]
    for line in lines:
        terminalreporter.line(line)
