"""State of the machine: registers, predicates, constant banks and memories of a batch of warps."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import SimtbedError
from ..ir.matrices import INCOMPLETE, WITH_BASE
from ..language.intrinsics import WARP_SIZE
from .bulk_copy import MAX_UNITS, MapMemory, OwnedMemory, copy_box, copy_units
from .integer import u32, u64
from .operands import Decoded
from .phases import CAPACITY, log_phase, new_log

Bytes = npt.NDArray[np.uint8]
Rows = Any
"""Warps of a batch: a slice, or int64[n]."""

GLOBAL_BASE = 0x7_0000_0000
"""Address of the first array."""
SHARED_WINDOW = 1
"""Upper word of generic addresses of shared memory."""
LOCAL_BYTES = 1 << 16
"""Local memory of a thread. Its stack grows down from this address."""
_STACK_POINTER, _WORKSPACE_HIGH, _WORKSPACE_LOW = 0x28, 0x44, 0x48
_CLUSTER, _CLUSTER_BLOCKS, _PARAMETERS = 0x140, 0x188, 0x198
"""Offsets in constant bank 0. Block and grid sizes are at 0. The workspace of grid barriers is null in launches that are not
cooperative; a grid barrier traps then. From compute capability 9.0 on, the bank has the address of the parameters in global memory, and
of clusters: whether the launch has any, their sizes, the reciprocals of these, their numbers in the grid, and the blocks of one."""
RANK_SHIFT = 24
"""First bit of the rank of a block in an address of shared memory."""
SHARED_OFFSET = (1 << RANK_SHIFT) - 1
"""Bits of an address of shared memory within its block."""
_ALIGNMENT, _GUARD_BYTES = 512, 512


SPECIAL_NAMES = (
    "SR_TID.X", "SR_TID.Y", "SR_TID.Z", "SR_CTAID.X", "SR_CTAID.Y", "SR_CTAID.Z", "SR_LANEID", "SR_EQMASK", "SR_LTMASK",
    "SR_LEMASK", "SR_GTMASK", "SR_GEMASK", "SR_CgaSize", "SR_CgaCtaId", "SRZ", "SR_CLOCKLO", "SR_VIRTUALSMID", "SR_SWINHI",
)  # fmt: skip
PADDING = 16
"""Bytes behind each memory, so that an access may begin at its last byte."""


class Architecture(NamedTuple):
    """parameters: offset of the first one in constant bank 0. shared_reserved: bytes of shared memory reserved by the system,
    before those of the kernel."""

    parameters: int
    shared_reserved: int


ARCHITECTURES = {
    **dict.fromkeys(("sm_80", "sm_86", "sm_89"), Architecture(0x160, 0)),
    "sm_90": Architecture(0x210, 1024),
}
"""Architectures whose SASS is emulated."""


MISSING_LANES = "a matrix instruction needs all lanes of a warp"
FAILURES = (MISSING_LANES, INCOMPLETE, WITH_BASE)
"""Conditions of matrix instructions that do not hold."""


class ExecutionError(SimtbedError):
    """Raised for a kernel that the emulator cannot run to its end: a wild address, a deadlock, too many steps."""


def failed(op: Decoded, failure: str) -> ExecutionError:
    """Return the error of an instruction whose condition does not hold. failure: one of FAILURES."""
    return ExecutionError(f"{failure}: {op}")


@dataclass
class GlobalMemory:
    """Arrays at their addresses. contents: the memory from GLOBAL_BASE; the last _GUARD_BYTES are the workspace of grid
    barriers. places: offset, type and shape by array. parameter_address: of a copy of the parameters, which has their tensor maps."""

    contents: Bytes
    places: dict[str, tuple[int, np.dtype[Any], tuple[int, ...]]] = field(default_factory=dict)
    module_address: int = GLOBAL_BASE
    parameter_address: int = GLOBAL_BASE

    @cached_property
    def owned(self) -> Bytes:
        """Whether each byte belongs to an array, to the module or to the workspace."""
        result = np.zeros(len(self.contents), np.uint8)
        result[self.module_address - GLOBAL_BASE :] = 1
        for offset, dtype, shape in self.places.values():
            result[offset : offset + prod(shape) * dtype.itemsize] = 1
        return result

    def described(self, address: int) -> str:
        """Return the place of an address behind the array before it, as text; empty for none."""
        offset = address - GLOBAL_BASE
        for name, (first, dtype, shape) in reversed(self.places.items()):
            if first <= offset < len(self.contents):
                end = first + prod(shape) * dtype.itemsize
                return f", {offset - end:,} bytes past the end of {name}" if offset >= end else ""
        return ""

    @staticmethod
    def allocate(arrays: Mapping[str, npt.NDArray[Any]], module: bytes = b"", parameters: int = 0) -> GlobalMemory:
        """Copy arrays and a module's initialised memory to addresses. parameters: bytes of a copy of the parameters."""
        offsets, size = {}, 0
        for name, array in arrays.items():
            offsets[name] = size
            size += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT + _GUARD_BYTES
        before = size
        size += -(-parameters // _ALIGNMENT) * _ALIGNMENT
        module = module + bytes(-len(module) % _ALIGNMENT)
        result = GlobalMemory(np.zeros(size + len(module) + 2 * _GUARD_BYTES, np.uint8))
        for name, array in arrays.items():
            flat = np.ascontiguousarray(array)
            result.contents[offsets[name] :][: flat.nbytes] = flat.view(np.uint8).reshape(-1)
            result.places[name] = (offsets[name], flat.dtype, flat.shape)
        result.contents[size : size + len(module)] = np.frombuffer(module, np.uint8)
        result.parameter_address, result.module_address = GLOBAL_BASE + before, GLOBAL_BASE + size
        return result

    @property
    def workspace_address(self) -> int:
        """Address of the workspace of grid barriers."""
        return GLOBAL_BASE + len(self.contents) - _GUARD_BYTES

    def address(self, name: str) -> int:
        """Return the address of an array."""
        return GLOBAL_BASE + self.places[name][0]

    def array(self, name: str) -> npt.NDArray[Any]:
        """Return the present contents of an array."""
        offset, dtype, shape = self.places[name]
        return self.contents[offset : offset + prod(shape) * dtype.itemsize].view(dtype).reshape(shape)


def parameter_bank(
    block: Sequence[int], grid: Sequence[int], parameters: bytes, first: int, memory: GlobalMemory, workspace: int = 0,
    cluster: Sequence[int] = (1, 1, 1),
) -> bytes:  # fmt: skip
    """Return constant bank 0. first: offset of the parameters. memory: with their copy. workspace: of grid barriers, 0 for none.
    cluster: its blocks by axis."""
    bank = bytearray(first + max(0x1000, len(parameters)))
    struct.pack_into("<6I", bank, 0, *block, *grid)
    struct.pack_into("<I", bank, _STACK_POINTER, LOCAL_BYTES)
    struct.pack_into("<I", bank, _WORKSPACE_HIGH, workspace >> 32)
    struct.pack_into("<I", bank, _WORKSPACE_LOW, workspace & 0xFFFFFFFF)
    if first > _PARAMETERS:
        struct.pack_into("<Q", bank, _PARAMETERS, memory.parameter_address)
        clusters = [extent // blocks for extent, blocks in zip(grid, cluster, strict=True)]
        reciprocals = [1 / blocks for blocks in cluster]
        struct.pack_into("<4I3f3I", bank, _CLUSTER, prod(cluster) > 1, *cluster, *reciprocals, *clusters)
        struct.pack_into("<I", bank, _CLUSTER_BLOCKS, prod(cluster))
    bank[first : first + len(parameters)] = parameters
    return bytes(bank)


@dataclass
class State:
    """A batch of blocks. blocks: int64[n], their numbers in the grid, by cluster and rank. registers, uniform_registers: numbers of
    them. shared_bytes: of a block, with those reserved. traced: whether phases of barriers are logged.
    first_of_cluster: int64[warps], the first block of the batch in the cluster of each warp."""

    grid: Sequence[int]
    block: Sequence[int]
    blocks: npt.NDArray[np.int64]
    registers_used: int
    shared_bytes: int
    memory: GlobalMemory
    banks: Mapping[int, bytes]
    traced: bool = False
    cluster: Sequence[int] = (1, 1, 1)
    _constants: dict[tuple[int, int, int], Any] = field(default_factory=dict)
    _banks: dict[int, Bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.threads = prod(self.block)
        self.warps_per_block = -(-self.threads // 32)
        self.warps = warps = len(self.blocks) * self.warps_per_block
        self.cluster_blocks = prod(self.cluster)
        self.registers = np.zeros((self.registers_used, warps, 32), u32)
        self.uniform_registers = np.zeros((64, warps, 1), u32)
        self.predicates = np.zeros((7, warps, 32), np.bool_)
        self.uniform_predicates = np.zeros((7, warps, 1), np.bool_)
        self.block_of_warp = np.repeat(np.arange(len(self.blocks)), self.warps_per_block)
        self.first_of_cluster = self.block_of_warp // self.cluster_blocks * self.cluster_blocks
        self.shared_bytes += -self.shared_bytes % 16
        self.shared = np.zeros(len(self.blocks) * self.shared_bytes + 16, np.uint8)
        self.barrier_results = np.zeros(len(self.blocks), u32)
        self.units = np.zeros(1 + MAX_UNITS, np.int64)
        self.phases = new_log(len(self.shared), CAPACITY if self.traced else 0)
        thread = np.arange(32 * self.warps_per_block).reshape(self.warps_per_block, 32)
        self.launched_lanes = np.tile(thread < self.threads, (len(self.blocks), 1))
        self.special = self._special_registers(np.tile(thread, (len(self.blocks), 1)))

    def _special_registers(self, thread: npt.NDArray[np.int64]) -> dict[str, Any]:
        """Return the special registers: uint32[warps, 32] or [warps, 1]. The clock is 0."""
        (bx, by, _), (gx, gy, _) = self.block, self.grid
        number, lane = self.blocks[self.block_of_warp][:, None], np.arange(32)[None, :]
        rank, ones = (self.block_of_warp - self.first_of_cluster)[:, None], 0xFFFFFFFF
        values = {
            "SR_TID.X": thread % bx, "SR_TID.Y": thread // bx % by, "SR_TID.Z": thread // (bx * by),
            "SR_CTAID.X": number % gx, "SR_CTAID.Y": number // gx % gy, "SR_CTAID.Z": number // (gx * gy),
            "SR_LANEID": lane, "SR_EQMASK": 1 << lane, "SR_LTMASK": (1 << lane) - 1, "SR_LEMASK": (2 << lane) - 1,
            "SR_GTMASK": ones ^ ((2 << lane) - 1), "SR_GEMASK": ones ^ ((1 << lane) - 1), "SR_CgaCtaId": rank,
            "SR_CgaSize": np.full((1, 1), self.cluster_blocks), "SR_SWINHI": np.full((1, 1), SHARED_WINDOW),
            **dict.fromkeys(("SRZ", "SR_CLOCKLO", "SR_VIRTUALSMID"), np.zeros((1, 1))),
        }  # fmt: skip
        self.special_values = np.zeros((len(SPECIAL_NAMES), self.warps, 32), u32)
        for n, name in enumerate(SPECIAL_NAMES):
            self.special_values[n] = np.asarray(values[name]).astype(u64).astype(u32)
        return dict(zip(SPECIAL_NAMES, self.special_values, strict=True))

    @cached_property
    def local(self) -> Bytes:
        """Local memory of all threads, `local_stride` bytes each, below LOCAL_BYTES."""
        return np.zeros(self.warps * 32 * self.local_stride + 16, np.uint8)

    local_stride = LOCAL_BYTES // 16

    def threads_of(self, rows: Rows) -> Any:
        """Return the numbers of the threads of warps, int64[warps, 32]."""
        return np.arange(self.warps)[rows][:, None] * 32 + np.arange(32)[None, :]

    def wild_address(self, op: Decoded, address: int) -> ExecutionError:
        """Return the error of a wild or misaligned address, with the array before it or the rank of no block of the cluster."""
        place = f"{op} ({':'.join(map(str, op.instruction.places[0]))})" if op.instruction.places else str(op)
        described, rank = self.memory.described(address), address >> RANK_SHIFT
        if "G" not in op.opcode and 1 < self.cluster_blocks <= rank < 256:
            described = f", the rank {rank} is of no block of a cluster of {self.cluster_blocks}"
        return ExecutionError(f"the address {address:#x} is outside of its memory{described}: {place}")

    def checked(self, op: Decoded, index: Any, lanes: Any, address: Any, size: int, limit: int) -> Any:
        """Return the index of active lanes, others 0. Raises ExecutionError for a wild or misaligned address."""
        index = np.where(lanes, index, 0)
        if index.min(initial=0) < 0 or index.max(initial=0) > limit - PADDING or (index & (size - 1)).any():
            wrong = lanes & ((index < 0) | (index > limit - PADDING) | (index & (size - 1) != 0))
            raise self.wild_address(op, int(address[wrong][0]))
        return index

    def require(self, op: Decoded, holds: Any, failure: str) -> None:
        """Raise `failed` if a condition does not hold for all."""
        if not np.all(holds):
            raise failed(op, failure)

    def check_owned(self, op: Decoded, index: Any, lanes: Any, address: Any, size: int) -> None:
        """Raise ExecutionError for an access to global memory outside of the arrays."""
        wrong = lanes & (self.memory.owned[index + (size - 1)] == 0)
        if wrong.any():
            raise self.wild_address(op, int(address[wrong][0]))

    def copy_units(self, op: Decoded, index: Any, capacity: Any, address: Any, bytes: Any, counts: Any) -> None:
        """Copy bytes as `bulk_copy.copy_units`, by warp, [warps, 1]. Raises ExecutionError."""
        shared, owned = self.shared.view(u32), self.memory.owned
        fields: Any = self.memory.contents.view(u32), owned, len(owned)
        for n, values in enumerate(zip(index[:, 0], capacity[:, 0], address[:, 0], bytes[:, 0], strict=True)):
            at, left, to, count = map(int, values)
            wrong = copy_units(shared, at, left, OwnedMemory(*fields), to - GLOBAL_BASE, count, self.units)
            if wrong >= 0:
                raise self.wild_address(op, (self.shared_bytes - left, to)[wrong])
            counts.add_units(op, n, self.units)

    def log_phases(self, op: Decoded, kind: int, r: Rows, words: Any, lanes: Any) -> None:
        """Log what lanes of warps do with barriers, as `phases.log_phase`."""
        if not self.traced:
            return
        lanes, warps = np.asarray(lanes), np.arange(self.warps)[r]
        words, own = np.broadcast_to(words, lanes.shape), np.zeros(WARP_SIZE, np.int64)
        active = np.zeros(WARP_SIZE, np.bool_)
        for n in np.flatnonzero(lanes.any(axis=1)).tolist():
            own[: lanes.shape[1]], active[: lanes.shape[1]] = words[n], lanes[n]
            log_phase(self.phases, kind, int(warps[n]) << 32 | op.number, own, active)

    def copy_box(
        self, op: Decoded, index: Any, address: Any, tensor: Any, coordinates: Any, active: Any, counts: Any
    ) -> Any:
        """Copy boxes as `bulk_copy.copy_box`, by active warp, [warps, 1]; return their bytes. Raises ExecutionError."""
        memory: Any = self.memory.contents
        results = np.zeros(index.shape, np.int64)
        for n in np.flatnonzero(active):
            at, place = int(address[n, 0]), int(tensor[n, 0])
            first = np.array([int(np.broadcast_to(one, index.shape)[n, 0]) for one in coordinates], np.int64)
            capacity, offset = self.shared_bytes - at, place - GLOBAL_BASE
            bytes = copy_box(
                self.shared, int(index[n, 0]), at, capacity, MapMemory(memory, len(memory), offset), first, self.units
            )
            if bytes < 0:
                raise self.wild_address(op, (at, place)[-1 - bytes])
            counts.add_units(op, n, self.units)
            results[n] = bytes
        return results

    def bank(self, number: int) -> Bytes:
        """Return a constant bank, with zeros behind it."""
        if number not in self._banks:
            if number not in self.banks:
                raise ExecutionError(f"the cubin has no constant bank {number}")
            data = self.banks[number]
            self._banks[number] = np.frombuffer(data + bytes(-len(data) % 16 + 32), np.uint8)
        return self._banks[number]

    def constant(self, bank: int, offset: int, size: int) -> Any:
        """Return a constant of 4 or 8 bytes, [1, 1]."""
        key = (bank, offset, size)
        if key not in self._constants:
            data = self.banks.get(bank, b"")[offset : offset + size]
            if len(data) < size:
                raise ExecutionError(f"the constant c[{bank:#x}][{offset:#x}] is outside of its bank")
            self._constants[key] = np.frombuffer(data, u64 if size == 8 else u32).reshape(1, 1)
        return self._constants[key]
