"""Occupancy: published values, and one case for each limiting rule."""

import csv
from pathlib import Path

import pytest
from simtbed.errors import LaunchError
from simtbed.machine.device import C2070, H200, K40, V100
from simtbed.machine.occupancy import Occupancy, active_clusters, occupancy


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "percent"),
    [
        # Ren 2018, table 2 (between tasks; blocks of 128: the printed shared bytes are 32 a thread and two rows)
        (128, 48, 0, 62.5),
        (128, 72, 4096, 43.8),
        (128, 73, 8192, 37.5),
        (128, 104, 12288, 25.0),
        (128, 142, 16384, 18.8),
        # Table 4 (within a task): naive, tile of 2, one warp, eight warps a block
        (128, 32, 2124, 100.0),
        (128, 39, 3660, 75.0),
        (32, 32, 6540, 10.9),
        (256, 44, 2000, 62.5),
    ],
)
def test_ren_2018_on_a_k40(threads: int, registers: int, shared: int, percent: float) -> None:
    assert occupancy(K40, threads, registers, shared).percent == pytest.approx(percent, abs=0.05 + 1e-9)


def test_gama_on_a_c2070() -> None:
    """Figure 10: unchanged from 504 to 2,296 shared bytes a warp, less beyond.

    The paper prints neither block size nor registers; with steps of 256 bytes, 4 warps and 48 registers do it.
    """
    warps = 4
    levels = [occupancy(C2070, 32 * warps, 48, warps * size).active_warps for size in range(504, 4096, 256)]
    until = (2296 - 504) // 256 + 1
    assert levels[:until] == [20] * until
    assert max(levels[until:]) == 16
    assert levels == sorted(levels, reverse=True)


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "expected"),
    [
        (1024, 32, 0, Occupancy(2, 64, 64, 100.0, "warps, registers")),
        (32, 16, 0, Occupancy(32, 32, 64, 50.0, "blocks")),
        (33, 16, 0, Occupancy(32, 64, 64, 100.0, "warps, blocks")),
        (256, 65, 0, Occupancy(3, 24, 64, 37.5, "registers")),  # 2,304 a warp: 7 in each of 4 partitions
        (64, 32, 6144, Occupancy(32, 64, 64, 100.0, "warps, blocks, registers, shared memory")),
        (64, 32, 6400, Occupancy(31, 62, 64, 96.875, "shared memory")),  # 1,024 reserved, in units of 128
        (128, 32, 227 * 1024, Occupancy(1, 4, 64, 6.25, "shared memory")),
        (128, 32, 227 * 1024 + 1, Occupancy(0, 0, 64, 0.0, "shared memory")),
        (1025, 32, 0, Occupancy(0, 0, 64, 0.0, "warps")),
        (1024, 65, 0, Occupancy(0, 0, 64, 0.0, "registers")),
        (32, 256, 0, Occupancy(0, 0, 64, 0.0, "registers")),
        (128, 0, 0, Occupancy(16, 64, 64, 100.0, "warps")),
    ],
)
def test_each_rule_on_an_h200(threads: int, registers: int, shared: int, expected: Occupancy) -> None:
    assert occupancy(H200, threads, registers, shared) == expected


def test_what_cuda_says_on_an_h200() -> None:
    """840 configurations of 60 kernels, by cudaOccupancyMaxActiveBlocksPerMultiprocessor on an H200."""
    with Path(__file__).with_name("h200_occupancy.csv").open(newline="") as file:
        rows = [{key: int(value) for key, value in row.items()} for row in csv.DictReader(file)]
    blocks = [occupancy(H200, row["threads"], row["registers"], row["shared"]).active_blocks for row in rows]
    assert len(rows) == 840
    assert blocks == [row["blocks"] for row in rows]


CLUSTERS = {
    32: (1056, 528, 327, 248, 193, 163, 139, 124, 102, 88, 81, 74, 67, 65, 58, 58),
    5: (660, 330, 203, 154, 124, 101, 84, 77, 60, 58, 51, 44, 42, 37, 37, 35),
    4: (528, 264, 163, 124, 94, 79, 69, 62, 51, 44, 37, 37, 30, 30, 28, 28),
    3: (396, 198, 124, 92, 69, 62, 47, 45, 37, 30, 28, 28, 23, 21, 21, 21),
    2: (264, 132, 79, 62, 47, 39, 32, 30, 23, 21, 16, 16, 14, 14, 14, 14),
    1: (132, 66, 39, 30, 22, 17, 15, 15, 9, 7, 7, 7, 7, 7, 7, 7),
}
"""Clusters of 1 to 16 blocks that an H200 holds, by blocks of an SM: cudaOccupancyMaxActiveClusters."""


def test_clusters_on_an_h200() -> None:
    for blocks, expected in CLUSTERS.items():
        assert tuple(active_clusters(H200, blocks, size) for size in range(1, 17)) == expected, blocks


def test_fermi_rounds_some_register_counts_to_twice_the_unit() -> None:
    assert occupancy(C2070, 32 * 7, 45, 0).active_blocks == 2  # 1,536 a warp: 10 in each half; 1,472 would give 11
    assert occupancy(C2070, 32 * 11, 45, 0).active_blocks == 1
    assert occupancy(C2070, 32 * 11, 44, 0).active_blocks == 2


def test_volta_reserves_nothing() -> None:
    assert occupancy(V100, 64, 32, 96 * 1024) == Occupancy(1, 2, 64, 3.125, "shared memory")
    assert occupancy(V100, 64, 32, 3 * 1024).active_blocks == 32


@pytest.mark.parametrize(("threads", "registers", "shared"), [(0, 1, 1), (32, -1, 0), (32, 1, -1)])
def test_sizes_that_mean_nothing(threads: int, registers: int, shared: int) -> None:
    with pytest.raises(LaunchError, match="expected at least 1 thread and no negative size"):
        occupancy(H200, threads, registers, shared)


def test_warps_of_some_register_counts_get_two_units() -> None:
    """29 registers of 32 lanes are 928: 1,024 in units of 128, so that 16 warps fit a half of the SM's registers."""
    assert occupancy(C2070, 128, 29, 0).active_blocks == 8
