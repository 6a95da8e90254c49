"""All launches whose times the model is held to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from .launches import Timed
from .textbook import KERNELS
from .timed_kernels import cases
from .timed_variants import variants


def every() -> Iterator[Timed]:
    """Kernels of one kind each, textbook kernels, then the shipped variants."""
    return chain(cases(), (one for kernel in KERNELS for one in kernel.timed()), variants())
