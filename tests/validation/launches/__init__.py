"""Timed launches: `--cases tests.validation.launches:timed` of `simtbed hardware times` and `errors`."""

from collections.abc import Iterator
from itertools import chain

from simtbed.reports.hardware import patterns
from simtbed.reports.hardware.launches import Timed

from ..kernels import KERNELS
from . import one_sm, scattered_accesses
from .kinds import cases
from .variants import variants


def timed() -> Iterator[Timed]:
    """Return the launches with a validated time: kernels of one kind each, validation kernels, shipped variants."""
    return chain(cases(), (launch for kernel in KERNELS for launch in kernel.timed()), variants())


def scattered() -> Iterator[Timed]:
    """Return launches of scattered accesses, of the warps of one SM, and of random access patterns: sources of device constants."""
    return chain(scattered_accesses.cases(), one_sm.cases(), patterns.cases())
