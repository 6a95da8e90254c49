"""The language's feature kernels as cases to compare with a GPU: `--cases tests.hardware.features:cases`."""

from __future__ import annotations

from collections.abc import Iterator

from simtbed.reports.hardware.cases import Case

from tests.language.all_features import FEATURES


def cases() -> Iterator[Case]:
    """One case a feature."""
    for feature in FEATURES:
        yield Case(feature.name, feature.launch)
