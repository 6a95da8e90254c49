"""The claims of Lu 2012, on counters by the rules of a C2070."""

from __future__ import annotations

import json

import pytest
from simtbed.reports.papers.lu2012 import profiled as lu2012
from simtbed.reports.papers.lu2012.profiled import Row

from tests.reports.conftest import Simtbed


@pytest.fixture(scope="module", autouse=True)
def smaller() -> object:
    """Less to count, which the claims do not depend on, by the engine that has nothing to compile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lu2012, "INDIVIDUALS", 64)
        yield


def by_variant(rows: list[Row]) -> dict[str, Row]:
    return {row["variant"]: row for row in rows}


def test_work() -> None:
    """Section 3.3, to the multiplication."""
    rows = lu2012.work("numpy")
    assert (
        [row["counted"] for row in rows] == [row["paper"] for row in rows] == [3 * 64**2 - 3, 2 * 64**2 + 12 * 64 - 65]
    )


def test_shared_memory_cuts_global_traffic() -> None:
    rows = by_variant(lu2012.memory("numpy"))
    for what in ("global bytes per site", "global requests per site"):
        assert rows["reduction-shared"][what] * 2 < rows["reduction"][what]
    assert rows["reduction"]["shared wavefronts per site"] == 0 < rows["reduction-shared"]["shared wavefronts per site"]


def test_skipping_zeros_saves_instructions_and_diverges() -> None:
    """Fig. 9 in warp order; with a block's barrier in the inner loop nothing can be skipped."""
    rows = by_variant(lu2012.skipping("numpy"))
    plain, skip = rows["reduction-shared"], rows["reduction-shared-skip"]
    assert skip["warp instructions per site"] < plain["warp instructions per site"]
    assert skip["divergent branches per site"] > plain["divergent branches per site"]
    plain, skip = rows["reduction-shared-block"], rows["reduction-shared-skip-block"]
    assert skip["warp instructions per site"] >= plain["warp instructions per site"]


@pytest.mark.slow
def test_occupancy_falls_past_2296_bytes_a_warp() -> None:
    rows = lu2012.buffers("numpy")
    sizes = [row["shared bytes per warp"] for row in rows]
    occupancies = [float(row["occupancy"].split()[0]) for row in rows]
    assert sizes[0] == 504 and 2296 in sizes and sizes[-1] > 12000
    remaining = sizes.index(2296) + 1
    assert len(set(occupancies[:remaining])) == 1
    assert max(occupancies[remaining:]) < occupancies[0] and sorted(occupancies, reverse=True) == occupancies
    traffic = [row["global bytes per site"] for row in rows[:4]]
    assert sorted(set(traffic), reverse=True) == traffic  # what the larger buffers buy


def test_explicit_barriers_cost_instructions() -> None:
    """Fig. 11: a barrier a step, which all of a block's warps execute; warp order has none."""
    rows = by_variant(lu2012.order("numpy"))
    for warps, blocks in (("reduction", "reduction-block"), ("reduction-shared", "reduction-shared-block")):
        assert rows[warps]["barriers per site"] == 0 < rows[blocks]["barriers per site"]
        assert rows[warps]["warp instructions per site"] < rows[blocks]["warp instructions per site"]


@pytest.mark.slow
def test_the_tables_are_printed(simtbed: Simtbed) -> None:
    result = simtbed("bench", "sfs", "--engine", "numpy")
    assert result.code == 0
    for table in lu2012.TABLES.values():
        assert table.claim in result.out
    content = json.loads(simtbed("bench", "sfs", "--engine", "numpy", "--json").out)
    assert content["work"]["rows"] == lu2012.work("numpy")
