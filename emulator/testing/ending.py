"""End of a test run: writes the requested files, and reports problems of the run as a whole."""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from ..errors import SimtbedError
from ..profiler.run import Run
from . import answers
from .budgets import FILE, Baselines
from .known_findings import Pin
from .tally import Tally
from .written import write

MOST = 10
"""Tests listed in one line."""


def at_the_end(
    config: pytest.Config, tally: Tally, pins: Callable[[], Sequence[Pin]], tests: int, passed: bool
) -> Iterator[str]:
    """Write the requested files, and yield a line for each problem. pins: the known findings. tests: the number selected.
    passed: whether pytest reports success.

    In a run with unfinished tests, no launches are recorded or compared, and no baseline or pin is reported as unused: a run
    may stop at the first failure.
    """
    cut = tests - len(set(tally.ended))
    if cut and (passed or any(config.getoption(name) for name in _WRITING)):
        yield (
            f"{cut} of {tests} tests did not finish: the run was stopped, or a worker of pytest-xdist died. "
            "So no launches are recorded or compared, and no baseline is removed"
        )
    steps: tuple[Callable[[], Iterator[str]], ...] = (
        partial(_recorded, config, tally, cut > 0),
        partial(_reported, config, tally),
        partial(_left_out, config, tally),
        partial(_pins, config, tally, pins, cut > 0),
        partial(_baselines, config, tally, cut > 0),
    )
    for step in steps:
        try:
            yield from step()
        except OSError as error:
            yield f"{error.filename or 'a file'}: {error.strerror or error}"
        except SimtbedError as error:
            yield str(error)


_WRITING = ("simtbed_update", "simtbed_write_launches", "simtbed_same_launches")
"""Options that require a finished run."""


# ------------------------------------------------------------------ files
def _recorded(config: pytest.Config, tally: Tally, cut: bool) -> Iterator[str]:
    """Write the record of the launches; yield its differences from another one."""
    if cut:
        return
    into, reference = config.getoption("simtbed_write_launches"), config.getoption("simtbed_same_launches")
    if into and tally.answers:
        write(Path(into), answers.as_text(tally.answers))
    elif into:
        yield f"{into}: there is no launch to record"
    if reference:
        yield from answers.differences(tally.answers, answers.read(Path(reference)), reference)
        bits, all = answers.compared_bits(tally.answers)
        tally.remarks.append(f"the bits of {bits} of {all} launches compared with {reference}")
        engines = config.getoption("simtbed_engine") or ""
        for engine in engines.split(","):
            if engine not in ("", "auto") and not tally.launches.get(engine):
                yield f"no launch ran on {engine}: tests launch there by the fixture `launch`"


def _reported(config: pytest.Config, tally: Tally) -> Iterator[str]:
    """Write the reports; yield a line if there is nothing to report."""
    files = config.getoption("simtbed_report")
    if not files:
        return
    runs = (Run.of_json(text) for text in tally.runs)
    run = Run([launch for one in runs for launch in one.launches], "the tests")
    if all(one.counts is None for one in run.launches):
        yield f"{', '.join(files)}: no launch was counted, so there is nothing to report"
        return
    for file in files:
        write(Path(file), run.html() if file.endswith((".html", ".htm")) else run.json())


# ------------------------------------------------------------------ the whole run
def _left_out(config: pytest.Config, tally: Tally) -> Iterator[str]:
    """Yield the tests that a conftest or a plugin deselected, in a run of a service."""
    names = sorted(set(tally.left_out))
    if not names:
        return
    shown = ", ".join(names[:MOST]) + (f" and {len(names) - MOST} more" if len(names) > MOST else "")
    line = f"left out by a conftest or a plugin, and by no option of pytest: {shown}"
    if os.environ.get("CI"):
        yield line
    else:
        tally.remarks.append(line)


def _pins(config: pytest.Config, tally: Tally, pins: Callable[[], Sequence[Pin]], cut: bool) -> Iterator[str]:
    """Yield the unused pins of tests that all ran and passed."""
    sources_observed = {who for who, option in _LOOKING.items() if config.getoption(option)}
    if (
        not sources_observed
        or cut
        or tally.incomplete
        or tally.skipped
        or tally.left_out
        or not _is_whole(config, tally)(config.rootpath)
    ):
        return
    for number, pin in enumerate(pins()):
        if (
            number not in tally.pins
            and ("compiler" if pin.kind in ("compile", "spill") else "checkers") in sources_observed
        ):
            yield f".simtbed/known.toml: not found any more: {pin.kind} in {pin.file}: {pin.line}"


_LOOKING = {"checkers": "simtbed_check", "compiler": "simtbed_compile"}
"""Options that observe all launches, by the source of their findings."""


def _baselines(config: pytest.Config, tally: Tally, cut: bool) -> Iterator[str]:
    """Write the baselines if requested; yield the unused baselines of tests that did not fail.

    A skipped test uses none: this is reported where a service runs the tests, because the run would look complete.
    """
    if not (tally.budgets or (config.rootpath / FILE).is_file()):
        return
    baselines, whole = Baselines.from_root(config.rootpath), _is_whole(config, tally)

    def has_run(test: str) -> bool:
        file = test.partition("::")[0]
        return not {test, file} & {*tally.incomplete, *tally.left_out} and whole(config.rootpath / file)

    left = [] if cut else baselines.unused(tally.budgets, has_run)
    reasons = {test: tally.skipped.get(test) or tally.skipped.get(test.partition("::")[0]) for test, _ in left}
    if config.getoption("simtbed_update"):
        baselines.write(tally.budgets, [(test, name) for test, name in left if reasons[test] is None])
        return
    for test, name in left:
        reason = reasons[test]
        if reason is None:
            yield f"{FILE.as_posix()}: not used any more: {name} of {test}"
        elif os.environ.get("CI"):
            yield f"{FILE.as_posix()}: not compared: {name} of {test}, which was skipped: {reason}"


def _is_whole(config: pytest.Config, tally: Tally) -> Callable[[Path], bool]:
    """Return whether all tests of a file, or of a folder, were selected."""
    option = config.option
    partial = tally.deselected or getattr(option, "lf", False) or option.ignore or option.ignore_glob
    everything = config.args_source is not pytest.Config.ArgsSource.ARGS
    selected = [Path(config.invocation_params.dir, one).resolve() for one in config.args if "::" not in one]

    def whole(path: Path) -> bool:
        return not partial and (everything or any(path.resolve().is_relative_to(one) for one in selected))

    return whole
