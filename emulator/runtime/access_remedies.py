"""Remedies of a detailed launch: the facts about the launch that `profiler.remedies` needs."""

from dataclasses import replace
from math import prod

import numpy as np

from ..ir import nodes as ir
from ..ir.names import Name
from ..ir.walk import statements
from ..language.types import Array
from ..passes.run_time_indices import arrays_indexed_at_run_time
from ..passes.sites import Site
from ..profiler.access_changes import remedies
from ..profiler.access_sampling import AccessSampler
from ..profiler.sampled_sites import LaunchFacts, SiteAccess
from ..profiler.samples import Samples
from .engine import Outcome, Request


def add_remedies(request: Request, outcome: Outcome, sampler: AccessSampler) -> Samples:
    """Return the samples of a launch with the changes that would save transactions of memory."""
    assert outcome.samples is not None and outcome.counts is not None
    prepared = request.prepared
    kernel = prepared.program.kernel
    accesses = {
        number: SiteAccess(site.access.space, str(site.access.operation), _array(site), site.size, site.combines)
        for number, site in enumerate(prepared.sites)
        if site.array
    }
    lengths = {name: len(np.asarray(value)) for name, value in request.arguments.items() if np.ndim(value)}
    lengths |= {
        name: type.length
        for name, type in (
            *((param.name, param.type) for param in kernel.params),
            *((stmt.array, stmt.type) for stmt in statements(kernel.body) if isinstance(stmt, ir.Alloc)),
        )
        if isinstance(type, Array) and type.length is not None
    }
    loops = {stmt.site for stmt in statements(kernel.body) if isinstance(stmt, ir.For | ir.While)}
    in_loops: set[int] = set()
    for number, site in enumerate(prepared.sites):
        if site.parent is not None and (site.parent in loops or site.parent in in_loops):
            in_loops.add(number)
    launch = LaunchFacts(
        accesses=accesses,
        lengths=lengths,
        counts=outcome.counts,
        device=request.device,
        blocks=prod(request.grid),
        threads=prod(request.block),
        shared=request.dynamic_shared + request.specialisation.summary.shared,
        loops=frozenset(in_loops),
        complete=sampler.is_complete,
        in_memory=arrays_indexed_at_run_time(kernel),
    )
    return replace(outcome.samples, remedies=remedies(sampler, launch))


def _array(site: Site) -> str:
    """Return the name of the accessed array: of a global array as the user writes it, with its field; else the unique one."""
    return Name.parse(site.array).user if site.access.space == "global" else site.array
