"""Description of a launched kernel for its counts: sites, their source positions, and the text of the source files."""

import weakref

from .. import source_text
from ..ir.names import Name
from ..profiler.costs import Place
from ..profiler.profile import CountedKernel, Site
from .engine import Request
from .specialisation import Specialisation

_DESCRIPTIONS: weakref.WeakKeyDictionary[Specialisation, CountedKernel] = weakref.WeakKeyDictionary()


def describe_kernel(request: Request) -> CountedKernel:
    """Return the description of a launch's kernel, cached by specialisation."""
    description = _DESCRIPTIONS.get(request.specialisation)
    if description is None:
        description = _DESCRIPTIONS[request.specialisation] = _describe(request.specialisation)
    return description


def _describe(specialisation: Specialisation) -> CountedKernel:
    from .prepared import prepare  # late, as in `specialisation`

    sites = tuple(
        Site(
            Place(site.span.without_calls, site.kind, Name.parse(site.array).user, site.size),
            site.costs,
            site.parent,
        )
        for site in prepare(specialisation.program).sites
    )
    kernel = specialisation.program.kernel
    files = dict.fromkeys((kernel.span.file, *(site.place.span.file for site in sites)))
    sources = {file: "".join(source_text.lines(file)) for file in files}
    return CountedKernel(kernel.name, kernel.span, sites, sources)
