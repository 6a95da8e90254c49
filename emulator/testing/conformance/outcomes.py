"""Launches on any engine, and comparison of the outcomes of two engines."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ...ir.ops import BITS
from ...language.functions import Kernel
from ...profiler.trace import ENTRY, TRACED, Entries
from ...runtime.engine import Engine, Outcome, Request
from ...runtime.launching import launch
from ...runtime.registry import EngineName, engine_named
from ...runtime.request import prepare_request


@dataclass
class Accesses:
    """A tracer that records all accesses."""

    blocks: int = 1 << 62
    interval: int = 1
    spaces: tuple[str, ...] = TRACED
    recorded: list[Entries] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def take(self, entries: Entries) -> None:
        with self._lock:
            self.recorded.append(entries.copy())

    def begin_again(self) -> None:
        self.recorded.clear()

    @property
    def by_warp(self) -> Entries:
        """Return all accesses, ENTRY[n], by block and warp, those of a warp in the order of execution."""
        entries = np.concatenate([np.zeros(0, ENTRY), *self.recorded])
        return entries[np.lexsort((entries["warp"], entries["block"]))]


def engine_of(engine: EngineName | Engine) -> Engine:
    """Return the engine, or the registered engine of that name."""
    return engine_named(engine) if isinstance(engine, str) else engine


def launcher(engine: EngineName | Engine) -> Callable[..., Any]:
    """Return `launch` for a registered engine, or its equivalent for another one; the result has `buffers`."""
    return partial(launch, engine=engine) if isinstance(engine, str) else partial(_launch, engine)


def _launch(engine: Engine, kernel: Kernel, **request_arguments: Any) -> Outcome:
    """Launch, and update device arrays with the outcome."""
    request = prepare_request(kernel, **request_arguments)
    changed = frozenset(request.specialisation.summary.changed)
    request = replace(request, in_place=changed & request.device_arrays.keys())
    outcome = engine.run(request)
    outcome.buffers = request.shaped(outcome.buffers)
    for name in request.device_arrays.keys() & outcome.buffers.keys():
        request.device_arrays[name].replace(outcome.buffers.pop(name))
    return outcome


def assert_same(actual: Outcome, expected: Outcome, request: Request) -> None:
    """Assert that two outcomes of one launch have the same outputs (any NaN equals any NaN), counts, samples, faults and printed
    lines."""
    assert list(actual.buffers) == list(expected.buffers)
    for name, values in actual.buffers.items():
        differing = np.argwhere(~BITS.agree(values, expected.buffers[name]))
        assert not len(differing), f"{name}{differing[0]}: {values[tuple(differing[0])]}"
    assert_same_counts(actual, expected, request)
    assert_same_samples(actual, expected, request)
    assert [(f.kind, f.count, str(f)) for f in actual.faults] == [(f.kind, f.count, str(f)) for f in expected.faults]
    assert actual.printed == expected.printed


def assert_same_counts(actual: Outcome, expected: Outcome, request: Request) -> None:
    """Assert that the counts of each event at each site are equal; the message names the sites that differ."""
    assert actual.counts is not None and expected.counts is not None
    sites = request.prepared.sites
    wrong = np.flatnonzero((actual.counts != expected.counts).any(axis=1))
    assert not len(wrong), "\n".join(
        f"{sites[n].kind} {sites[n].span.place} {sites[n].span.text}: {actual.counts[n]}, expected {expected.counts[n]}"
        for n in wrong
    )


def assert_same_samples(actual: Outcome, expected: Outcome, request: Request) -> None:
    """Assert that the samples of every site are equal; the message names the sites that differ."""
    if actual.samples is None or expected.samples is None:
        assert actual.samples is expected.samples
        return
    sites = request.prepared.sites
    pairs = ((actual.samples.accesses, expected.samples.accesses), (actual.samples.loops, expected.samples.loops))
    for actual_table, expected_table in pairs:
        assert actual_table.keys() == expected_table.keys()
        wrong = [site for site, table in actual_table.items() if (table != expected_table[site]).any()]
        assert not wrong, "\n".join(f"{sites[n].kind} {sites[n].span.place} {sites[n].span.text}" for n in wrong)
