"""What a person at a terminal sees of long work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from simtbed.kernels.pipeline import Show


@contextmanager
def progress(what: str) -> Iterator[Callable[[str], None]]:
    """A spinner on stderr while long work runs, if stderr is a terminal; it takes what is done so far."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console

    with Console(stderr=True).status(what) as status:
        yield lambda done: status.update(f"{what}: {done}")


@contextmanager
def progress_of_records(what: str, unit: str) -> Iterator[Show]:
    """While a flow runs, if stderr is a terminal: what is done, how many records, how many a second, the time left."""
    if not sys.stderr.isatty():
        yield lambda step, records, part: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}: {task.fields[records]:,} {task.fields[unit]}{task.fields[rate]}"),
        BarColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, records=0, unit=unit, rate="")
        before = ""

        def show(step: str, records: int, part: float | None) -> None:
            nonlocal before
            if step != before:
                bar.reset(task, total=None, description=f"{what}, {step}" if step else what)
                before = step
            elapsed = bar.tasks[0].elapsed or 0.0
            rate = f", {records / elapsed:,.0f} a second" if elapsed else ""
            total = None if part is None else 1.0
            bar.update(task, total=total, completed=part or 0.0, records=records, rate=rate)

        yield show
