"""What a person at a terminal sees of long work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(what: str) -> Iterator[Callable[[str], None]]:
    """A spinner on stderr while long work runs, if stderr is a terminal; it takes what is done so far."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console

    with Console(stderr=True).status(what) as status:
        yield lambda done: status.update(f"{what}: {done}")
