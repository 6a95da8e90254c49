"""Launches as the page shows them: a row each, and how much of an SM their blocks fill."""

from __future__ import annotations

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
    """For each block size of a kernel: how much of an SM it fills, what limits it, and what the next step up needs."""
    known: dict[tuple[Any, ...], dict[str, Any]] = {}
    for one in launches:
        threads = one.block[0] * one.block[1] * one.block[2]
        key = (threads, one.registers, one.shared_bytes)
        if key not in known:
            found = occupancy(one.device, threads, one.registers or 0, one.shared_bytes)
            known[key] = {
                "threads": threads,
                "registers": "unknown" if one.registers is None else one.registers,
                "shared": one.shared_bytes,
                "found": found,
                "next": next_step(one, threads, found),
            }
    return list(known.values())


def next_step(launch: Launch, threads: int, now: Occupancy) -> str:
    """What allows one block more on an SM, where one thing alone limits."""
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
