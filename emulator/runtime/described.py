"""A launched kernel as its counts see it: sites with their places, and the text of the files they lie in."""

from __future__ import annotations

import linecache
import weakref
from dataclasses import replace

from ..ir.names import Name
from ..profiler.costs import Place
from ..profiler.profile import CountedKernel, Site
from .engine import Request
from .specialisation import Specialisation

_KNOWN: weakref.WeakKeyDictionary[Specialisation, CountedKernel] = weakref.WeakKeyDictionary()


def described(request: Request) -> CountedKernel:
    """The kernel of a launch, described once for each specialisation."""
    known = _KNOWN.get(request.specialisation)
    if known is None:
        known = _KNOWN[request.specialisation] = _describe(request.specialisation)
    return known


def _describe(specialisation: Specialisation) -> CountedKernel:
    from .prepared import prepare  # late, as in `specialisation`

    sites = tuple(
        Site(
            Place(replace(site.span, calls=()), site.kind, Name.of(site.array).user, site.size), site.costs, site.parent
        )
        for site in prepare(specialisation.program).sites
    )
    kernel = specialisation.program.kernel
    files = dict.fromkeys((kernel.span.file, *(site.place.span.file for site in sites)))
    sources = {file: "".join(linecache.getlines(file)) for file in files}
    return CountedKernel(kernel.name, kernel.span, sites, sources)
