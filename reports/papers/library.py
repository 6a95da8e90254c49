"""Registry of papers by name."""

from __future__ import annotations

from simtbed import SimtbedError
from simtbed.kernels.family import load

from .paper import Paper

PAPERS = {
    "ren2018": "simtbed.reports.papers.ren2018.items:PAPER",
    "gpupairhmm2024": "simtbed.reports.papers.gpupairhmm2024.items:PAPER",
    "ren2019": "simtbed.reports.papers.ren2019.items:PAPER",
    "mangal2014": "simtbed.reports.papers.mangal2014.items:PAPER",
    "lu2012": "simtbed.reports.papers.lu2012.items:PAPER",
}
"""References "module:name" of the Paper objects, imported on use."""


def find(name: str) -> Paper:
    """Return a paper. Raises SimtbedError for an unknown name."""
    if name not in PAPERS:
        raise SimtbedError(f"there is no paper {name!r}; expected one of {', '.join(PAPERS)}")
    paper: Paper = load(PAPERS[name])
    return paper
