"""All launches whose times the model is held to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from . import one_sm, patterns
from .launches import Timed
from .scattered import cases as scattered_cases
from .textbook import KERNELS
from .timed_kernels import cases
from .timed_variants import variants


def every(scattered: bool = False) -> Iterator[Timed]:
    """Kernels of one kind each, textbook kernels, then the shipped variants. scattered: those of scattered accesses, of the warps
    of one SM and of drawn patterns instead, which figures of a device are read from."""
    if scattered:
        return chain(scattered_cases(), one_sm.cases(), patterns.cases())
    return chain(cases(), (one for kernel in KERNELS for one in kernel.timed()), variants())
