"""`--dask`: the same files as a serial run if a worker is killed in the middle."""

from collections.abc import Iterator

import pytest
from simtbed.cluster import connected

from tests.reports.dask_runs import Cluster
from tests.reports.test_dask_option import (
    test_align,
    test_correct,
    test_k_mers_are_counted_by_workers,
    test_pairhmm,
    test_sfs,
    test_simulate,
)

__all__ = [
    "test_align", "test_correct", "test_k_mers_are_counted_by_workers", "test_pairhmm", "test_sfs", "test_simulate",
]  # fmt: skip


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A real cluster of worker processes."""
    with connected("local") as client:
        yield Cluster(client.scheduler_info()["address"], client, scale=4)
