"""What bounds a launch, how far each limit is, and what one step would change: each by running the model again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from ..machine.device import Device
from ..machine.occupancy import occupancy
from .time import MEMORIES, Estimate, ObservedLaunch, estimate

_LEAST = 0.005
"""Share of the time from which on a change is worth a line."""


@dataclass(frozen=True)
class Change:
    """A step, and the time with it. what: in words."""

    what: str
    time_us: float
    saved: float


def changes(observed: ObservedLaunch, device: Device, found: Estimate, cold: bool = False) -> list[Change]:
    """What single steps would bring, those that bring most first; steps that bring less than half a per cent are left out.

    A step that changes what is resident or the size of a cache has the caches simulated again; the others keep their traffic.
    """
    made = []
    for what, other, of, given in _steps(observed, device, found):
        again = estimate(other, of, cold, None if given is None else found.traffic, **(given or {}))
        saved = 1 - again.time_us / found.time_us
        if abs(saved) >= _LEAST:
            made.append(Change(what, again.time_us, saved))
    return sorted(made, key=lambda change: -change.saved)


def _steps(
    observed: ObservedLaunch, device: Device, found: Estimate
) -> Iterator[tuple[str, ObservedLaunch, Device, dict[str, object] | None]]:
    """In words, the launch, the device, and parts of the model put otherwise; None where caches are simulated again."""
    occupied = found.occupancy
    if observed.registers and "registers" in occupied.limiter:
        fewer = _fewer_registers(observed, device, occupied.active_blocks)
        if fewer:
            blocks = replace(observed, registers=fewer).occupancy(device).active_blocks
            yield (
                f"with {fewer} registers: {blocks} blocks an SM instead of {occupied.active_blocks}",
                replace(observed, registers=fewer),
                device,
                None,
            )
    if occupied.active_blocks and observed.blocks > device.sms * occupied.active_blocks:
        yield (
            f"with {occupied.active_blocks + 1} blocks an SM",
            observed,
            device,
            {"resident": occupied.active_blocks + 1},
        )
    if observed.blocks % device.sms:
        full = ceil(observed.blocks / device.sms) * device.sms
        yield (
            f"with the same work for all SMs, as a grid of {full:,} blocks would have",
            observed,
            device,
            {"balanced": True},
        )
    for name in ("L1", "L2", "DRAM", "latency", "atomics", "blocks"):
        if found.limits.get(name):
            what = {
                "latency": "with chains half as long",
                "blocks": "with blocks that begin twice as fast",
                "atomics": "with atomic operations on twice as many addresses",
            }
            yield what.get(name, f"with half of the bytes of {name}"), observed, device, {"scale": {name: 0.5}}
    pipes = [name for name in found.limits if name not in (*MEMORIES, "latency", "issue")]
    if pipes and isinstance(observed.compiled(device), str):
        most = max(pipes, key=lambda name: found.limits[name])
        rest = 1 - observed.instructions[most] / (2 * found.warp_instructions)
        yield f"with half of the {most} instructions", observed, device, {"scale": {most: 0.5, "issue": rest}}
    yield "with twice the L2", observed, replace(device, l2=2 * device.l2), None


def _fewer_registers(observed: ObservedLaunch, device: Device, blocks: int) -> int:
    """The most registers a thread with which one more block is resident; 0 where registers alone do not decide it."""
    threads = observed.warps * 32
    for registers in range(observed.registers - 1, 15, -1):
        if occupancy(device, threads, registers, observed.shared_bytes).active_blocks > blocks:
            return registers
    return 0


def text(observed: ObservedLaunch, device: Device, found: Estimate, cold: bool = False) -> str:
    """A launch on a device in words: its time, what bounds it, each limit, what steps would bring."""
    lines = [
        f"{found.time_us:,.2f} us on {device.name} ({found.low_us:,.2f} to {found.high_us:,.2f}), bound by {found.bound}",
        f"  resident: {max(1, found.occupancy.active_blocks)} blocks an SM, limited by {found.occupancy.limiter}",
        f"  L1 hits {100 * found.traffic.l1_hit:.1f} %, L2 hits {100 * found.traffic.l2_hit:.1f} %, "
        f"{found.traffic.dram_bytes:,} bytes of device memory",
    ]
    for name, time in sorted(found.limits.items(), key=lambda limit: -limit[1]):
        if time > _LEAST * found.time_us:
            lines.append(f"  {name}: {time:,.2f} us alone, {100 * time / found.time_us:.0f} % of the time")
    lines += [
        f"  {change.what}: {change.time_us:,.2f} us, {abs(100 * change.saved):.1f} % {'less' if change.saved > 0 else 'more'}"
        for change in changes(observed, device, found, cold)
    ]
    return "\n".join([*lines, *(f"  note: {remark}" for remark in found.remarks)])
