"""Launches on the HTML page: a row each, and the occupancy of their blocks."""

from collections.abc import Sequence
from typing import Any

from ...machine.occupancy import Occupancy, occupancy
from ..launch import Launch
from ..sums import SECTORS, WAVEFRONTS


def row(number: int, launch: Launch) -> dict[str, Any]:
    counted = launch.profile.totals() if launch.counts is not None else {}
    derived = launch.profile.derived() if launch.counts is not None else {}
    return {
        "number": number,
        "kernel": launch.kernel.name,
        "grid": " x ".join(map(str, launch.grid)),
        "block": " x ".join(map(str, launch.block)),
        "constants": ", ".join(f"{name}={value}" for name, value in launch.constants.items()),
        "seconds": launch.seconds,
        "instructions": counted.get("warp_instructions", 0),
        "efficiency": derived.get("warp_execution_efficiency"),
        "sectors": SECTORS(counted),
        "wavefronts": WAVEFRONTS(counted),
        "faults": len(launch.faults),
    }


def occupancies(launches: Sequence[Launch]) -> list[dict[str, Any]]:
    """Return the occupancy of each block size of a kernel, its limiter, and the requirement of one more block."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for launch in launches:
        threads = launch.block[0] * launch.block[1] * launch.block[2]
        key = (threads, launch.registers, launch.shared_bytes)
        if key not in rows:
            now = occupancy(launch.device, threads, launch.registers or 0, launch.shared_bytes)
            rows[key] = {
                "threads": threads,
                "registers": "unknown" if launch.registers is None else launch.registers,
                "shared": launch.shared_bytes,
                "found": now,
                "next": next_step(launch, threads, now),
            }
    return list(rows.values())


def next_step(launch: Launch, threads: int, now: Occupancy) -> str:
    """Return the change that allows one more block per SM, if there is a single limiter."""
    registers, shared = launch.registers or 0, launch.shared_bytes
    if now.limiter == "registers":
        for fewer in range(registers - 1, 0, -1):
            if occupancy(launch.device, threads, fewer, shared).active_blocks > now.active_blocks:
                return f"{fewer} registers a thread"
    if now.limiter == "shared memory":
        for less in range(shared - 1, -1, -1):
            if occupancy(launch.device, threads, registers, less).active_blocks > now.active_blocks:
                return f"{less:,} bytes of shared memory"
    return ""
