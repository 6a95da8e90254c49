"""GPU devices: limits, memories and rates, one dated row a device, with its source."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

from ..checked import counted, shown
from ..documents import text_of, toml_of
from ..errors import LaunchError, SimtbedError
from ..escaping import printable
from ..language.intrinsics import WARP_SIZE
from .device_fields import filled, require, types
from .timing import ADA, AMPERE, FERMI, GH100, HOPPER, KEPLER, VOLTA, Timing

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

_GUIDE = "CUDA C++ Programming Guide 12.9, tables of compute capabilities and of arithmetic throughput"
_OLD_GUIDE = "CUDA C Programming Guide 8.0, tables of compute capabilities and of arithmetic throughput"
_OCCUPANCY = "cuda_occupancy.h (allocation units)"
_MEASURED = "access_patterns.csv (shared load rule, measured on an H200)"

C2070 = Device(
    name="C2070",
    compute_capability=(2, 0),
    sms=14,
    warps_per_sm=48,
    blocks_per_sm=8,
    threads_per_block=1024,
    block_extents=(1024, 1024, 64),
    grid_extents=(65535, 65535, 65535),
    registers_per_sm=32768,
    registers_per_block=32768,
    registers_per_thread=63,
    register_unit=64,
    register_unit_doubled=(21, 22, 29, 30, 37, 38, 45, 46),
    register_least=1,
    warp_unit=2,
    shared_per_sm=48 * KIB,
    shared_carveouts=(16 * KIB, 48 * KIB),
    shared_per_block=48 * KIB,
    shared_per_block_optin=48 * KIB,
    shared_unit=128,
    shared_reserved=0,
    banks=32,
    bank_width=4,
    shared_load_merges=False,
    sector=SECTOR_BYTES,
    line=LINE_BYTES,
    loads_cached=True,
    load_sector=LINE_BYTES,
    clock=1150,
    rates=Rates(alu=32, imul=16, fp32=32, fp64=16, sfu=4, convert=16, shuffle=0, shared=16),
    bandwidth=144.0,
    l2=768 * KIB,
    timing=FERMI,
    dated="2026-11-21",
    source=f"{_OLD_GUIDE}; {_OCCUPANCY}; Fermi whitepaper; Tesla C2050/C2070 board specification",
)
M2090 = replace(
    C2070,
    name="M2090",
    sms=16,
    clock=1300,
    bandwidth=177.0,
    source=f"{_OLD_GUIDE}; {_OCCUPANCY}; Fermi whitepaper; Tesla M2090 board specification",
)
K20m = Device(
    name="K20m",
    compute_capability=(3, 5),
    sms=13,
    warps_per_sm=64,
    blocks_per_sm=16,
    threads_per_block=1024,
    block_extents=(1024, 1024, 64),
    grid_extents=((1 << 31) - 1, 65535, 65535),
    registers_per_sm=65536,
    registers_per_block=65536,
    registers_per_thread=255,
    register_unit=256,
    register_unit_doubled=(),
    register_least=1,
    warp_unit=4,
    shared_per_sm=48 * KIB,
    shared_carveouts=(16 * KIB, 32 * KIB, 48 * KIB),
    shared_per_block=48 * KIB,
    shared_per_block_optin=48 * KIB,
    shared_unit=256,
    shared_reserved=0,
    banks=32,
    bank_width=8,
    shared_load_merges=False,
    sector=SECTOR_BYTES,
    line=LINE_BYTES,
    loads_cached=False,
    load_sector=SECTOR_BYTES,
    clock=706,
    rates=Rates(alu=160, imul=32, fp32=192, fp64=64, sfu=32, convert=32, shuffle=32, shared=32),
    bandwidth=208.0,
    l2=1280 * KIB,
    timing=KEPLER,
    dated="2026-11-21",
    source=f"{_OLD_GUIDE}; {_OCCUPANCY}; Kepler GK110 whitepaper; Tesla K20 board specification",
)
K40 = replace(
    K20m,
    name="K40",
    sms=15,
    clock=875,  # base 745, the clock unless application clocks are raised
    bandwidth=288.0,
    l2=1536 * KIB,
    source=f"{_OLD_GUIDE}; {_OCCUPANCY}; Kepler GK110/210 whitepaper; Tesla K40 board specification",
)
V100 = Device(
    name="V100",
    compute_capability=(7, 0),
    sms=80,
    warps_per_sm=64,
    blocks_per_sm=32,
    threads_per_block=1024,
    block_extents=(1024, 1024, 64),
    grid_extents=((1 << 31) - 1, 65535, 65535),
    registers_per_sm=65536,
    registers_per_block=65536,
    registers_per_thread=255,
    register_unit=256,
    register_unit_doubled=(),
    register_least=1,
    warp_unit=4,
    shared_per_sm=96 * KIB,
    shared_carveouts=tuple(KIB * n for n in (0, 8, 16, 32, 64, 96)),
    shared_per_block=48 * KIB,
    shared_per_block_optin=96 * KIB,
    shared_unit=256,
    shared_reserved=0,
    banks=32,
    bank_width=4,
    shared_load_merges=True,
    sector=SECTOR_BYTES,
    line=LINE_BYTES,
    loads_cached=True,
    load_sector=SECTOR_BYTES,
    clock=1530,
    rates=Rates(alu=64, imul=64, fp32=64, fp64=32, sfu=16, convert=16, shuffle=32, shared=32),
    bandwidth=900.0,
    l2=6 * MIB,
    timing=VOLTA,
    dated="2026-11-21",
    source=f"{_GUIDE}; {_OCCUPANCY}; Tesla V100 (SXM2) whitepaper; {_MEASURED}",
)
A100 = replace(
    V100,
    name="A100",
    compute_capability=(8, 0),
    sms=108,
    shared_per_sm=164 * KIB,
    shared_carveouts=tuple(KIB * n for n in (0, 8, 16, 32, 64, 100, 132, 164)),
    shared_per_block_optin=163 * KIB,
    shared_unit=128,
    shared_reserved=1 * KIB,
    clock=1410,
    bandwidth=2039.0,
    l2=40 * MIB,
    timing=AMPERE,
    source=f"{_GUIDE}; {_OCCUPANCY}; A100 whitepaper and data sheet (SXM4, 80 GB); {_MEASURED}",
)
L4 = replace(
    A100,
    name="L4",
    compute_capability=(8, 9),
    sms=58,
    warps_per_sm=48,
    blocks_per_sm=24,
    shared_per_sm=100 * KIB,
    shared_carveouts=tuple(KIB * n for n in (0, 8, 16, 32, 64, 100)),
    shared_per_block_optin=99 * KIB,
    clock=2040,
    rates=Rates(alu=64, imul=64, fp32=128, fp64=2, sfu=16, convert=16, shuffle=32, shared=32),
    bandwidth=300.0,
    l2=48 * MIB,
    timing=replace(ADA, l2_bandwidth=1900.0),
    source=f"{_GUIDE}; {_OCCUPANCY}; Ada whitepaper and L4 data sheet; {_MEASURED}",
)
L40S = replace(
    L4,
    name="L40S",
    sms=142,
    clock=2520,
    bandwidth=864.0,
    l2=96 * MIB,
    timing=ADA,
    source=f"{_GUIDE}; {_OCCUPANCY}; Ada whitepaper and L40S data sheet; {_MEASURED}",
)
H100 = replace(
    A100,
    name="H100",
    compute_capability=(9, 0),
    sms=132,
    register_least=16,  # measured on an H200: Nsight Compute reports 16 where the compiler reports fewer
    shared_per_sm=228 * KIB,
    shared_carveouts=tuple(KIB * n for n in (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)),
    shared_per_block_optin=227 * KIB,
    clock=1980,
    rates=Rates(alu=64, imul=64, fp32=128, fp64=64, sfu=16, convert=16, shuffle=32, shared=32),
    bandwidth=3350.0,
    l2=50 * MIB,
    timing=HOPPER,
    source=f"{_GUIDE}; {_OCCUPANCY}; H100 whitepaper and data sheet (SXM5); {_MEASURED}",
)
H200 = replace(
    H100,
    name="H200",
    bandwidth=4800.0,
    l2=60 * MIB,
    timing=GH100,
    source=f"{_GUIDE}; {_OCCUPANCY}; H200 data sheet (SXM); SMs, clock, L2 and {_MEASURED}",
)

DEVICES: dict[str, Device] = {d.name: d for d in (C2070, M2090, K20m, K40, V100, A100, L4, L40S, H100, H200)}
"""Every device known, by name, oldest first."""


def find(name: str) -> Device:
    """The device of that name, in upper or lower case, or the one of a TOML file, whose name ends in `.toml`.

    Raises LaunchError with the names there are.
    """
    if not isinstance(name, str):
        raise LaunchError(f"a device is given by its name, not {shown(name)}")
    if name in DEVICES:
        return DEVICES[name]
    if name.endswith(".toml"):
        return load(name)
    for device_name, device in DEVICES.items():
        if device_name.lower() == name.lower():
            return device
    raise LaunchError(f"no device is called {shown(name)}; there are {', '.join(DEVICES)}, or a TOML file of your own")


def __getattr__(name: str) -> Device:
    if name.startswith("_"):
        raise AttributeError(name)
    raise AttributeError(f"no device is called {name}; there are {', '.join(DEVICES)}", name=name, obj=None)


def load(path: str | Path) -> Device:
    """A device described by the user: TOML with keys as the fields of Device, and a table [rates].

    `like = "H200"` names a device of the table that all keys left out are taken from; without it, every key is needed.
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
        return Device(**filled("", Device, table, base))
    except LaunchError as error:
        raise LaunchError(f"{printable(path)}: {error}") from None
