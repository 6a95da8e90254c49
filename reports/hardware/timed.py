"""All launches whose times the model is held to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from .launches import Timed
from .scattered import cases as scattered_cases
from .textbook import KERNELS
from .timed_kernels import cases
from .timed_variants import variants


def every(scattered: bool = False) -> Iterator[Timed]:
    """Kernels of one kind each, textbook kernels, then the shipped variants. scattered: those of scattered accesses instead, which
    figures of a device are read from."""
    if scattered:
        return scattered_cases()
    return chain(cases(), (one for kernel in KERNELS for one in kernel.timed()), variants())
