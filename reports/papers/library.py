"""Registry of papers by name."""

from __future__ import annotations

from simtbed import SimtbedError

from .definitions import paper_of
from .paper import Paper

PAPERS = ("ren2018", "gpupairhmm2024", "ren2019", "mangal2014", "lu2012")
"""Folders of this package, each with a `paper.toml`."""


def find(name: str) -> Paper:
    """Return a paper. Raises SimtbedError for an unknown name."""
    if name not in PAPERS:
        raise SimtbedError(f"there is no paper {name!r}; expected one of {', '.join(PAPERS)}")
    return paper_of(name)
