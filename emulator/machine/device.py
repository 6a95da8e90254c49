"""GPU devices: limits, memories and rates. `devices.toml` has one dated row a device, with its source."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..checked import counted, shown
from ..documents import text_of, toml_of
from ..errors import LaunchError, SimtbedError
from ..escaping import printable
from ..language.intrinsics import WARP_SIZE
from .device_fields import filled, require, rows, types
from .timing import TIMINGS, Timing

MIN_NVCC_CAPABILITY = (7, 5)
"""Lowest compute capability that nvcc 13 compiles for."""
SECTOR_BYTES, LINE_BYTES = 32, 128  # of L2, on every device; an L1 may transfer whole lines
KIB, MIB = 1024, 1024 * 1024


def log2(power: int) -> int:
    """The exponent of a power of two."""
    return power.bit_length() - 1


@dataclass(frozen=True)
class Rates:
    """Lanes a cycle that one SM issues, by cost class; 0 where the device has no such instruction.

    Divisions have no rate of their own: they compile to sequences of the others.
    convert: between 32-bit types. shared: 4-byte words of conflict-free accesses. Raises LaunchError.
    """

    alu: int
    imul: int
    fp32: int
    fp64: int
    sfu: int
    convert: int
    shuffle: int
    shared: int

    def __post_init__(self) -> None:
        for field in fields(self):
            require("rates.", field.name, int, getattr(self, field.name))


@dataclass(frozen=True)
class Device:
    """One GPU. Sizes are bytes; `dataclasses.replace(H200, banks=16)` is a what-if.

    block_extents, grid_extents: the most threads of a block, and blocks of a grid, along x, y and z.
    register_unit: registers of a warp are allocated in multiples of it.
    register_unit_doubled: registers a thread for which the unit is twice as large (Fermi only).
    register_least: registers a thread gets even if it needs fewer.
    cluster_sms: SMs of each group whose SMs run the blocks of a cluster together; empty without clusters, or if they are unknown.
    warp_unit: partitions of an SM's registers; a warp's registers are in one of them.
    shared_carveouts: sizes of shared memory within the memory it shares with L1, ascending; the last is shared_per_sm.
    shared_unit, shared_reserved: a block's shared memory, including the system's reserve, is allocated in multiples of the unit.
    shared_per_block_optin: the limit of a kernel that requests more than the default.
    bank_width: of shared memory; 8 on Kepler is its 8-byte mode.
    shared_load_merges: a load of 8 or 16 bytes a lane may merge its halves (see `banks.count`).
    sector: the smallest transfer of a store, an atomic or an uncached load; line: of the caches.
    loads_cached: global loads are cached in L1. load_sector: the smallest transfer of a global load.
    clock: highest of the SMs, MHz. bandwidth: of device memory, GB/s (10^9).
    timing: parameters of the time model; no counter depends on them.
    dated: date of the row. source: where its values are published or measured.
    """

    name: str
    compute_capability: tuple[int, int]
    sms: int
    cluster_sms: tuple[int, ...]
    warps_per_sm: int
    blocks_per_sm: int
    threads_per_block: int
    block_extents: tuple[int, int, int]
    grid_extents: tuple[int, int, int]
    registers_per_sm: int
    registers_per_block: int
    registers_per_thread: int
    register_unit: int
    register_unit_doubled: tuple[int, ...]
    register_least: int
    warp_unit: int
    shared_per_sm: int
    shared_carveouts: tuple[int, ...]
    shared_per_block: int
    shared_per_block_optin: int
    shared_unit: int
    shared_reserved: int
    banks: int
    bank_width: int
    shared_load_merges: bool
    sector: int
    line: int
    loads_cached: bool
    load_sector: int
    clock: int
    rates: Rates
    bandwidth: float
    l2: int
    timing: Timing
    dated: str
    source: str

    def __post_init__(self) -> None:
        """Refuse values outside the range of the rules: they divide by shifting, an access has up to 16 bytes, a block 32 warps."""
        try:
            for field in fields(self):
                require("", field.name, types(Device)[field.name], getattr(self, field.name))
            for name, (least, most) in _POWERS.items():
                value = getattr(self, name)
                if not least <= value <= most or value & (value - 1):
                    raise LaunchError(
                        f"{name}: expected a power of two of {least} to {counted(most)}, got {counted(value)}"
                    )
            if self.line < max(self.sector, self.load_sector):
                raise LaunchError(f"line: expected at least the sector's bytes, got {self.line}")
            if self.threads_per_block > WARP_SIZE * WARP_SIZE:
                raise LaunchError(
                    f"threads_per_block: expected at most {WARP_SIZE * WARP_SIZE}, got {self.threads_per_block:,}"
                )
        except LaunchError as error:
            raise LaunchError(f"device {shown(self.name).strip(chr(39))}: {error}") from None

    @property
    def warp_synchronous(self) -> bool:
        """Whether the lanes of a warp run in step unasked: below compute capability 7.0."""
        return self.compute_capability < (7, 0)

    @property
    def threads_per_sm(self) -> int:
        """Threads resident on one SM at most."""
        return WARP_SIZE * self.warps_per_sm


_POWERS = {
    "sector": (16, 1 << 16),
    "load_sector": (16, 1 << 16),
    "line": (16, 1 << 16),
    "banks": (4, 1 << 10),
    "bank_width": (4, 1 << 7),
}
"""Fields that are powers of two, and their bounds."""

DEVICES: dict[str, Device] = rows("devices.toml", Device, {"timing": TIMINGS})
"""Every device known, by name, oldest first."""
C2070, M2090, K20m, K40, V100, T4, A100, A10, RTX3090, L4, L40S, RTX4090, H100, H200, B200 = DEVICES.values()


def find(name: str) -> Device:
    """The device of that name, or the one of a TOML file, whose name ends in `.toml`. Case, spaces and hyphens do not count.

    Raises LaunchError with the names there are.
    """
    if not isinstance(name, str):
        raise LaunchError(f"a device is given by its name, not {shown(name)}")
    if name in DEVICES:
        return DEVICES[name]
    if name.endswith(".toml"):
        return load(name)
    for device_name, device in DEVICES.items():
        if device_name.lower() == re.sub("[ -]", "", name).lower():
            return device
    raise LaunchError(f"no device is called {shown(name)}; there are {', '.join(DEVICES)}, or a TOML file of your own")


_DIFFERING = (
    "compute_capability", "sms", "warps_per_sm", "blocks_per_sm", "registers_per_sm", "shared_per_sm", "clock", "bandwidth",
    "l2", "rates", "timing",
)  # fmt: skip
"""Fields with different values on current GPUs."""


def _inherited(base: Device, table: dict[str, Any]) -> str:
    """Return the fields that a user's table takes from another device, with their values."""
    inherited = [name for name in _DIFFERING if name not in table]
    values = (f"{name} {getattr(base, name)}" if name not in ("rates", "timing") else name for name in inherited)
    return f"as {base.name}: {', '.join(values) or 'the other fields'}"


def __getattr__(name: str) -> Device:
    if name.startswith("_"):
        raise AttributeError(name)
    raise AttributeError(f"no device is called {name}; there are {', '.join(DEVICES)}", name=name, obj=None)


def load(path: str | Path) -> Device:
    """A device described by the user: TOML with keys as the fields of Device, and a table [rates].

    `like = "H200"` names a device of the table that all keys left out are taken from; without it, every key is needed.
    A file with `like` and without `source` has as its source the values that it takes from there.
    Raises LaunchError, one line with file, key and what was expected.
    """
    if not isinstance(path, str | Path):
        raise LaunchError(f"a device's file is given by its path, not {shown(path)}")
    try:
        table = toml_of(text_of(path))
    except SimtbedError as error:
        raise LaunchError(str(error)) from None
    except ValueError as error:
        raise LaunchError(f"{printable(path)}: expected a TOML file: {error}") from None
    try:
        base = None
        if "like" in table:
            name = table.pop("like")
            if not isinstance(name, str) or name.endswith(".toml"):
                raise LaunchError(f"like: expected the name of a device, got {shown(name)}")
            base = find(name)
            table.setdefault("source", _inherited(base, table))
        return Device(**filled("", Device, table, base))
    except LaunchError as error:
        raise LaunchError(f"{printable(path)}: {error}") from None
