"""What bounds a launch, how far each limit is, and what one step would change: each by running the model again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from ..machine.device import Device
from ..machine.occupancy import occupancy
from .time import MEMORIES, Estimate, ObservedLaunch, estimate

_MIN_SHARE = 0.005
"""Share of the time from which on a change is worth a line."""


@dataclass(frozen=True)
class Change:
    """A step, and the time with it. what: in words."""

    what: str
    time_us: float
    saved: float


def changes(observed: ObservedLaunch, device: Device, baseline: Estimate, cold: bool = False) -> list[Change]:
    """What single steps would bring, those that bring most first; steps that bring less than half a per cent are left out.

    A step that changes what is resident or the size of a cache has the caches simulated again; the others keep their traffic.
    """
    result = []
    for what, other, other_device, overrides in _steps(observed, device, baseline):
        again = estimate(
            other, other_device, cold, None if overrides is None else baseline.traffic, **(overrides or {})
        )
        saved = 1 - again.time_us / baseline.time_us
        if abs(saved) >= _MIN_SHARE:
            result.append(Change(what, again.time_us, saved))
    return sorted(result, key=lambda change: -change.saved)


def _steps(
    observed: ObservedLaunch, device: Device, baseline: Estimate
) -> Iterator[tuple[str, ObservedLaunch, Device, dict[str, object] | None]]:
    """In words, the launch, the device, and parts of the model put otherwise; None where caches are simulated again."""
    residency = baseline.occupancy
    if observed.registers and "registers" in residency.limiter:
        fewer = _fewer_registers(observed, device, residency.active_blocks)
        if fewer:
            blocks = replace(observed, registers=fewer).occupancy(device).active_blocks
            yield (
                f"with {fewer} registers: {blocks} blocks an SM instead of {residency.active_blocks}",
                replace(observed, registers=fewer),
                device,
                None,
            )
    if residency.active_blocks and observed.blocks > device.sms * residency.active_blocks:
        yield (
            f"with {residency.active_blocks + 1} blocks an SM",
            observed,
            device,
            {"resident": residency.active_blocks + 1},
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
        if baseline.limits.get(name):
            what = {
                "latency": "with chains half as long",
                "blocks": "with blocks that begin twice as fast",
                "atomics": "with atomic operations on twice as many addresses",
            }
            yield what.get(name, f"with half of the bytes of {name}"), observed, device, {"scale": {name: 0.5}}
    pipes = [name for name in baseline.limits if name not in (*MEMORIES, "latency", "issue")]
    if pipes and isinstance(observed.compiled(device), str):
        most = max(pipes, key=lambda name: baseline.limits[name])
        rest = 1 - observed.instructions[most] / (2 * baseline.warp_instructions)
        yield f"with half of the {most} instructions", observed, device, {"scale": {most: 0.5, "issue": rest}}
    yield "with twice the L2", observed, replace(device, l2=2 * device.l2), None


def _fewer_registers(observed: ObservedLaunch, device: Device, blocks: int) -> int:
    """The most registers a thread with which one more block is resident; 0 where registers alone do not decide it."""
    threads = observed.warps * 32
    for registers in range(observed.registers - 1, 15, -1):
        if occupancy(device, threads, registers, observed.shared_bytes).active_blocks > blocks:
            return registers
    return 0


def text(observed: ObservedLaunch, device: Device, baseline: Estimate, cold: bool = False) -> str:
    """A launch on a device in words: its time, what bounds it, each limit, what steps would bring."""
    lines = [
        f"{baseline.time_us:,.2f} us on {device.name} ({baseline.low_us:,.2f} to {baseline.high_us:,.2f}), bound by {baseline.bound}",
        f"  resident: {max(1, baseline.occupancy.active_blocks)} blocks an SM, limited by {baseline.occupancy.limiter}",
        f"  L1 hits {100 * baseline.traffic.l1_hit:.1f} %, L2 hits {100 * baseline.traffic.l2_hit:.1f} %, "
        f"{baseline.traffic.dram_bytes:,} bytes of device memory",
    ]
    for name, time in sorted(baseline.limits.items(), key=lambda limit: -limit[1]):
        if time > _MIN_SHARE * baseline.time_us:
            lines.append(f"  {name}: {time:,.2f} us alone, {100 * time / baseline.time_us:.0f} % of the time")
    lines += [
        f"  {change.what}: {change.time_us:,.2f} us, {abs(100 * change.saved):.1f} % {'less' if change.saved > 0 else 'more'}"
        for change in changes(observed, device, baseline, cold)
    ]
    return "\n".join([*lines, *(f"  note: {remark}" for remark in baseline.remarks)])
