"""Registry of papers by name."""

from __future__ import annotations

from simtbed import SimtbedError
from simtbed.kernels.family import load

from .definitions import paper_of
from .paper import Paper

PAPERS = {
    "ren2018": "",
    "gpupairhmm2024": "",
    "ren2019": "",
    "mangal2014": "",
    "lu2012": "simtbed.reports.papers.lu2012.items:PAPER",
}
"""References "module:name" of the Paper objects, imported on use."""


def find(name: str) -> Paper:
    """Return a paper. Raises SimtbedError for an unknown name."""
    if name not in PAPERS:
        raise SimtbedError(f"there is no paper {name!r}; expected one of {', '.join(PAPERS)}")
    paper: Paper = load(PAPERS[name]) if PAPERS[name] else paper_of(name)
    return paper
