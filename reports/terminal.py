"""Progress displays on stderr: on a terminal, and as lines of the steps of benchmarks elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from simtbed.escaping import printable
from simtbed.kernels.pipeline import Show

from .printing import print_message


@contextmanager
def progress(what: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner. Yields a function to update its text with the finished step."""
    if not sys.stderr.isatty():
        yield lambda step: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(printable(what))) as status:
        yield lambda step: status.update(Text(printable(f"{what}: {step}")))


@contextmanager
def announced(what: str) -> Iterator[None]:
    """Show a spinner during a step of a benchmark; without a terminal, print a line at its start."""
    if not sys.stderr.isatty():
        print_message(printable(what))
        yield
        return
    with progress(what):
        yield


@contextmanager
def progress_of_records(what: str, unit: str) -> Iterator[Show]:
    """Show the step, the number of records, records per second and the remaining time of a pipeline."""
    if not sys.stderr.isatty():
        yield lambda step, records, fraction: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}: {task.fields[records]:,} {task.fields[unit]}{task.fields[rate]}", markup=False),
        BarColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(printable(what), total=None, records=0, unit=unit, rate="")
        before = ""

        def show(step: str, records: int, fraction: float | None) -> None:
            nonlocal before
            if step != before:
                bar.reset(task, total=None, description=printable(f"{what}, {step}" if step else what))
                before = step
            elapsed = bar.tasks[0].elapsed or 0.0
            rate = f", {records / elapsed:,.0f}/s" if elapsed else ""
            total = None if fraction is None else 1.0
            bar.update(task, total=total, completed=fraction or 0.0, records=records, rate=rate)

        yield show
