"""Explanation of an estimate: limits, and the gain of single changes, each by another run of the model."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from ..machine.device import Device
from ..machine.occupancy import occupancy
from .observed import ObservedLaunch
from .time import MEMORIES, Estimate, estimate

_MIN_SHARE = 0.005
"""Fraction of the time from which a change is reported."""


@dataclass(frozen=True)
class Change:
    """A change and the resulting time. what: description. saved: fraction of the time."""

    what: str
    time_us: float
    saved: float


def changes(observed: ObservedLaunch, device: Device, baseline: Estimate, cold: bool = False) -> list[Change]:
    """Return single changes by gain, from 0.5 % on.

    Changes of residency or cache size simulate the caches again; others reuse their traffic.
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
    """Yield description, launch, device and overrides; None for overrides to simulate the caches again."""
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
            f"with the same work for all SMs, as with a grid of {full:,} blocks",
            observed,
            device,
            {"balanced": True},
        )
    for name in ("L1", "L2", "DRAM", "latency", "atomics", "blocks"):
        if baseline.limits.get(name):
            what = {
                "latency": "with chains half as long",
                "blocks": "with blocks launched twice as fast",
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
    """Return the largest register count with one more resident block; 0 if registers alone do not limit."""
    threads = observed.warps * 32
    for registers in range(observed.registers - 1, 15, -1):
        if occupancy(device, threads, registers, observed.shared_bytes).active_blocks > blocks:
            return registers
    return 0


def text(observed: ObservedLaunch, device: Device, baseline: Estimate, cold: bool = False) -> str:
    """Return an explanation: time, bound, limits, gains of changes."""
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
