"""All launches whose times the model is held to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from .timed_kernels import cases
from .timed_variants import variants
from .timing import Timed


def every() -> Iterator[Timed]:
    """Kernels of one kind each, then the shipped variants."""
    return chain(cases(), variants())
