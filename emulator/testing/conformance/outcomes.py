"""Running a launch on any engine, and comparing what two engines did."""

from __future__ import annotations

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
    """A tracer that keeps everything it is given."""

    blocks: int = 1 << 62
    interval: int = 1
    spaces: tuple[str, ...] = TRACED
    taken: list[Entries] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def take(self, entries: Entries) -> None:
        with self._lock:
            self.taken.append(entries.copy())

    def begin_again(self) -> None:
        self.taken.clear()

    @property
    def by_warp(self) -> Entries:
        """All of them, ENTRY[n]: block by block and warp by warp, those of a warp in the order in which it made them."""
        found = np.concatenate([np.zeros(0, ENTRY), *self.taken])
        return found[np.lexsort((found["warp"], found["block"]))]


def engine_of(engine: EngineName | Engine) -> Engine:
    """The engine itself, or the registered one of that name."""
    return engine_named(engine) if isinstance(engine, str) else engine


def launcher(engine: EngineName | Engine) -> Callable[..., Any]:
    """`launch` on a registered engine, or what it does on another one; what it returns has `buffers`."""
    return partial(launch, engine=engine) if isinstance(engine, str) else partial(_launch, engine)


def _launch(engine: Engine, kernel: Kernel, **given: Any) -> Outcome:
    """Arrays that stay with the engine take over what the kernel changed."""
    request = prepare_request(kernel, **given)
    changed = frozenset(request.specialisation.summary.changed)
    request = replace(request, in_place=changed & request.device_arrays.keys())
    outcome = engine.run(request)
    outcome.buffers = request.shaped(outcome.buffers)
    for name in request.device_arrays.keys() & outcome.buffers.keys():
        request.device_arrays[name].replace(outcome.buffers.pop(name))
    return outcome


def assert_same(found: Outcome, expected: Outcome, request: Request) -> None:
    """Two outcomes of one launch have the same outputs (any NaN equals any NaN), counts, samples, decisions, faults and
    printed lines."""
    assert list(found.buffers) == list(expected.buffers)
    for name, values in found.buffers.items():
        differing = np.argwhere(~BITS.agree(values, expected.buffers[name]))
        assert not len(differing), f"{name}{differing[0]}: {values[tuple(differing[0])]}"
    assert_same_counts(found, expected, request)
    assert_same_samples(found, expected, request)
    assert_same_decisions(found, expected, request)
    assert [(f.kind, f.count, str(f)) for f in found.faults] == [(f.kind, f.count, str(f)) for f in expected.faults]
    assert found.printed == expected.printed


def assert_same_counts(found: Outcome, expected: Outcome, request: Request) -> None:
    """The counts of each event at each site are the same; the message names the sites where they differ."""
    assert found.counts is not None and expected.counts is not None
    sites = request.prepared.sites
    wrong = np.flatnonzero((found.counts != expected.counts).any(axis=1))
    assert not len(wrong), "\n".join(
        f"{sites[n].kind} {sites[n].span.place} {sites[n].span.text}: {found.counts[n]}, expected {expected.counts[n]}"
        for n in wrong
    )


def assert_same_samples(found: Outcome, expected: Outcome, request: Request) -> None:
    """The samples of every site are the same; the message names the sites where they differ."""
    if found.samples is None or expected.samples is None:
        assert found.samples is expected.samples
        return
    sites = request.prepared.sites
    pairs = ((found.samples.accesses, expected.samples.accesses), (found.samples.loops, expected.samples.loops))
    for kept, wanted in pairs:
        assert kept.keys() == wanted.keys()
        wrong = [site for site, table in kept.items() if (table != wanted[site]).any()]
        assert not wrong, "\n".join(f"{sites[n].kind} {sites[n].span.place} {sites[n].span.text}" for n in wrong)


def assert_same_decisions(found: Outcome, expected: Outcome, request: Request) -> None:
    """The decisions at every branch and loop are the same; the message names the sites where they differ."""
    if found.decisions is None or expected.decisions is None:
        assert found.decisions is expected.decisions
        return
    sites, kept, wanted = request.prepared.sites, found.decisions.sites, expected.decisions.sites
    assert kept.keys() == wanted.keys()
    wrong = [
        site
        for site, one in kept.items()
        if not np.array_equal(one.patterns, wanted[site].patterns)
        or not np.array_equal(one.runs, wanted[site].runs)
        or one.others != wanted[site].others
    ]
    assert not wrong, "\n".join(f"{sites[n].kind} {sites[n].span.place} {sites[n].span.text}" for n in wrong)
