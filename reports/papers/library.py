"""The papers, by the name the command line knows them by."""

from __future__ import annotations

from simtbed import SimtbedError
from simtbed.kernels.family import load

from .paper import Paper

PAPERS = {
    "ren2018": "simtbed.reports.papers.ren2018.items:PAPER",
    "gpupairhmm2024": "simtbed.reports.papers.gpupairhmm2024.items:PAPER",
    "ren2019": "simtbed.reports.papers.ren2019.items:PAPER",
}
"""Each with the reference "module:name" of its Paper, which is imported when it is asked for."""


def find(name: str) -> Paper:
    """A paper. Raises SimtbedError for a name that is none."""
    if name not in PAPERS:
        raise SimtbedError(f"{name!r} is no paper; there are {', '.join(PAPERS)}")
    paper: Paper = load(PAPERS[name])
    return paper
