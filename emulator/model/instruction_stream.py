"""Instruction stream of a compiled kernel for the SM simulator: control bits, access profiles, executed paths."""

from dataclasses import dataclass
from enum import IntEnum
from math import prod
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..compiled.instruction_counts import InstructionCount
from ..compiled.kernel import ExecutedKernel
from ..compiled.opcode_classes import access_of, access_width, is_indexed_constant_load, phases_of
from ..compiled.pipes import TENSOR
from ..errors import LaunchError
from ..language.intrinsics import WARP_SIZE
from ..machine.device import Device
from ..machine.tensor_rates import group_rate, tensor_rate
from ..sass.matrices import instruction_of
from ..sass.operands import Decoded, decode
from ..sass.warpgroups import WARPGROUPS
from ..sass.warpgroups import instruction_of as group_instruction_of
from .access_lines import Kind
from .executed_warps import ExecutedWarps, executed_warps
from .line_trace import LINE, LineTrace
from .sm_state import SCOREBOARDS
from .traffic import SHARED_COST, Column, Traffic
from .wait_probabilities import any_line_waits, burst_rate, line_correlation, max_wait_fraction, wait_fractions

Words = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

Field = IntEnum("Field", "STALL WAITS WRITES READS PIPE COST KIND LATENCY IMUL_CYCLES PENDING ROLE", start=0)
WORDS = len(Field)
"""Words of an instruction: issue stall in cycles; mask of awaited scoreboards; scoreboards released by the result and
by operand reads (-1: none); pipe (-1: none) and its cycles; kind; latency; cycles of the integer half of the fma pipe,
during which float products use the other half; groups of asynchronous copies that a GROUP_WAIT leaves; its role in a phase."""
InstructionKind = IntEnum("InstructionKind", "PLAIN GLOBAL SHARED BARRIER BARRIER_RESULT GROUP GROUP_WAIT", start=0)
"""Kinds of instructions. BARRIER_RESULT reads the count of a barrier, and also arrives at it. GROUP ends a group of asynchronous copies,
GROUP_WAIT waits for all but the last groups."""
Role = IntEnum("Role", "NONE ARRIVE WAIT COPY", start=0)
"""What an instruction does with a phase of a barrier in shared memory."""
Profile = IntEnum(
    "Profile",
    "ACCESS_FRACTION LSU_CYCLES L2_SECTORS DRAM_READ_SECTORS DRAM_WRITE_SECTORS FAR_PROBABILITY "
    "DRAM_PROBABILITY L2_PROBABILITY STORE_LINES MERGED_LINES MERGED_SECTORS REUSE_DISTANCE "
    "REUSE_FRACTION LOAD_MISS_LINES BURST_SHARE",
    start=0,
)
PROFILE_WORDS = len(Profile)
"""Words of an access profile, per execution: fraction of executions with an access; LSU cycles; L2 sectors (scaled by
request cost); device-memory sectors read and written; probabilities to wait for far L2, device memory, and L2 at all;
store lines; lines and L2 sectors of a store merged with an earlier one; its distance in store lines; fraction of such
stores; load lines requested from L2. BURST_SHARE: probability of a wait divided by the length of a burst of waits."""
OWN_PIPES = ("alu", "fma", "fp64", "xu", "adu", "uniform", "cbu", TENSOR)
"""Pipes of a scheduler; the LSU is shared by the SM."""
LSU_PIPE = len(OWN_PIPES)
_UNPAIRED_COST = 1.3
"""Additional sectors of an unpaired one. Non-adjacent lines open another row (`Timing.dram_row`). Fitted on an H200."""
_MIN_DISTINCT_LINES = 8
"""Distinct sampled lines for a class profile; standard error 35 %."""
_BARRIER_DEFERRAL = 8
"""Cycles after a barrier until the warp waits; measured on an H100."""
_CONSTANT_ADDRESS_CYCLES = 2.05
"""Cycles of an SM per distinct constant address; measured on an H200."""
_ROLES = {"ARRIVE": Role.ARRIVE, "PHASECHK": Role.WAIT}
"""By form of SYNCS."""
_COPY_LATENCY, _COPY_WIDTH = -40, 92
"""Cycles of a bulk copy in addition to those of memory, and bytes a cycle; measured on an H200."""
_GROUP_BOARD = SCOREBOARDS - 1
_INDEXED_LOAD_CYCLES = 8
"""Scheduler cycles of a constant load at a register address; measured on an H100."""
_SCOREBOARD_LATENCY = {
    "LDC": 35, "S2R": 25, "S2UR": 25, "CS2R": 15, "R2UR": 10, "B2R": 35, "SHFL": 0, "VOTE": 12, "POPC": 0, "FLO": 0, "BREV": 0,
}  # fmt: skip
"""Latency in cycles of instructions with a scoreboard and no memory access."""


@dataclass(frozen=True)
class InstructionStream:
    """Instructions of a warp.

    code: int64[instruction, WORDS]. memory: float64[class, instruction, PROFILE_WORDS]. warps: with their paths.
    """

    code: Words
    memory: Floats
    warps: ExecutedWarps


def warps_of(compiled: ExecutedKernel) -> ExecutedWarps:
    """Return the warps of the executed blocks of the first launch."""
    executed = compiled.executed
    return executed_warps(executed.first, executed.first_blocks, prod(executed.grid), compiled.claims_work)


def stream(
    compiled: ExecutedKernel, lines: LineTrace, traffic: Traffic, device: Device, warps: ExecutedWarps
) -> InstructionStream:
    """Return the instruction stream of a compiled kernel, given the trace of its accesses, its traffic and warps."""
    code = np.zeros((len(compiled.instructions), WORDS), np.int64)
    memory = np.zeros((len(warps.executions), len(code), PROFILE_WORDS))
    costs, sums = _pipe_cycles(device), ""
    for n, executed_instruction in enumerate(compiled.instructions):
        instruction, control = executed_instruction.instruction, executed_instruction.instruction.control
        row = code[n]
        row[Field.STALL] = max(1, control.stall) if control else device.timing.alu
        row[Field.WRITES] = row[Field.READS] = row[Field.PIPE] = -1
        if control:
            row[Field.WAITS] = sum(1 << board for board in control.waits)
            row[Field.WRITES] = -1 if control.writes is None else control.writes
            row[Field.READS] = -1 if control.reads is None else control.reads
        pipe = next((pipe for pipe in executed_instruction.pipes), "")
        row[Field.LATENCY] = _latency(instruction.opcode, pipe, device)
        if pipe == TENSOR:
            row[Field.PIPE] = OWN_PIPES.index(pipe)
            op = decode(n, instruction)
            if instruction.opcode in WARPGROUPS:
                sums = _fill_group_product(row, op, sums, device)
            else:
                row[[Field.COST, Field.LATENCY]] = tensor_rate(device, instruction_of(op).name)
        elif pipe in OWN_PIPES:
            row[Field.PIPE] = OWN_PIPES.index(pipe)
            row[Field.COST] = _INDEXED_LOAD_CYCLES if is_indexed_constant_load(instruction) else costs[pipe]
            if instruction.opcode == "IMAD":
                row[Field.IMUL_CYCLES] = costs["imul"] * _passes(instruction.operation)
                row[Field.COST] = row[Field.IMUL_CYCLES] if _passes(instruction.operation) > 1 else costs[pipe]
        elif pipe == "lsu":
            row[Field.PIPE], row[Field.COST] = LSU_PIPE, 1
        if instruction.opcode == "BAR":
            row[Field.KIND], row[Field.PIPE] = InstructionKind.BARRIER, -1
        if instruction.operation == "WARPGROUP.DEPBAR.LE" and instruction.text.endswith(" 0x0"):
            row[Field.WAITS] |= 1 << _GROUP_BOARD
        if instruction.opcode == "LDGDEPBAR":
            row[Field.KIND] = InstructionKind.GROUP
        if instruction.opcode == "DEPBAR":
            row[[Field.KIND, Field.PENDING]] = InstructionKind.GROUP_WAIT, _left(instruction.text)
        if instruction.opcode == "SYNCS":
            _check_phases(warps)
            row[Field.ROLE] = _ROLES.get(instruction.operation.split(".")[1], Role.NONE)
        if instruction.opcode == "B2R":
            row[Field.KIND], row[Field.PIPE] = InstructionKind.BARRIER_RESULT, -1
        if instruction.opcode == "SHFL":
            _fill_own_access(row, memory[:, n], WARP_SIZE / max(1, device.rates.shuffle), device.timing.shuffle)
    _fill_accesses(compiled, lines, traffic, device, warps, code, memory)
    _defer_barriers(warps, code)
    return InstructionStream(code, memory, warps)


def _check_phases(warps: ExecutedWarps) -> None:
    """Raise LaunchError if the waits of warps for each other are not known."""
    if warps.claims_work or not warps.events.complete:
        reason = "warps claim work" if warps.claims_work else "there are too many"
        raise LaunchError(f"the time of waits at barriers in shared memory is not predicted: {reason}")


def _left(text: str) -> int:
    """Return the operations of its scoreboard that a DEPBAR leaves: `DEPBAR.LE SB0, 0x1`."""
    return int(text.rstrip().rpartition(" ")[2], 0)


def _fill_group_product(row: Words, op: Decoded, before: str, device: Device) -> str:
    """Fill in a product of a warpgroup. before: the first register of the sums of the one before it. Return that of this one."""
    to, first, *_ = op.operands
    place: Literal["registers", "shared"] = "registers" if first.kind == "register" else "shared"
    product = group_instruction_of(op)
    row[Field.COST], row[Field.LATENCY], chained = group_rate(
        device, product.name, product.part.total, product.n, place
    )
    row[Field.WRITES] = _GROUP_BOARD
    if chained and to.text == before:
        row[Field.WAITS] |= 1 << _GROUP_BOARD
    return to.text


def _defer_barriers(warps: ExecutedWarps, code: Words) -> None:
    """Move barrier waits behind the instructions issued within _BARRIER_DEFERRAL cycles, in code that each warp continues with."""
    executions = warps.executions.sum(axis=0)
    alone = 1 + np.flatnonzero(executions[1:] != executions[:-1])
    for at in np.flatnonzero(code[:, Field.KIND] == InstructionKind.BARRIER).tolist():
        last, issued = at, int(code[at, Field.STALL])
        while issued < _BARRIER_DEFERRAL and last + 1 < len(code) and last + 1 not in alone:
            if code[last + 1, Field.KIND] != InstructionKind.PLAIN or code[last + 1, Field.PIPE] == LSU_PIPE:
                break
            last += 1
            issued += int(code[last, Field.STALL])
        code[at, Field.KIND], code[last, Field.KIND] = InstructionKind.PLAIN, InstructionKind.BARRIER


def executions_by_pipe(compiled: ExecutedKernel) -> dict[str, float]:
    """Return executions by pipe, integer products separately."""
    products = [one for one in compiled.instructions if one.instruction.opcode == "IMAD"]
    return compiled.pipes | {"imul": sum(one.warps * _passes(one.instruction.operation) for one in products)}


def _passes(operation: str) -> int:
    """Return the passes of an integer product: two for 64-bit and high products, which occupy both halves of the pipe."""
    return 2 if {"WIDE", "HI"} & {*operation.split(".")} else 1


def _pipe_cycles(device: Device) -> dict[str, int]:
    """Return scheduler cycles of an instruction by pipe."""
    lanes_per_cycle = device.timing.schedulers * WARP_SIZE
    rates = device.rates
    rates_by_pipe = {"alu": rates.alu, "fma": rates.fp32, "fp64": rates.fp64, "xu": rates.sfu, "imul": rates.imul}
    return {"adu": 2, "uniform": 2, "cbu": 2} | {
        pipe: max(1, lanes_per_cycle // max(1, rate)) for pipe, rate in rates_by_pipe.items()
    }


def _latency(opcode: str, pipe: str, device: Device) -> int:
    timing = device.timing
    if opcode == "SHFL":
        return timing.shuffle
    if pipe == "xu":
        return timing.sfu
    if pipe == "fp64":
        return timing.fp64
    return _SCOREBOARD_LATENCY.get(opcode, timing.alu)


# ------------------------------------------------------------------ accesses
def _fill_accesses(
    compiled: ExecutedKernel,
    lines: LineTrace,
    traffic: Traffic,
    device: Device,
    warps: ExecutedWarps,
    code: Words,
    memory: Floats,
) -> None:
    """Fill in access profiles."""
    by_class = warps.executions
    for n, counted in enumerate(compiled.instructions):
        kind, site = access_of(counted.instruction).kind, int(lines.sites.site_of[n])
        if kind.startswith("bulk"):
            executed = warps.acting(n) if kind == "bulk_load" else by_class[:, n]
            profiles = _profiles_by_class(traffic, counted, site, executed, device, kind)
            _fill_bulk_copy(code[n], profiles, traffic.sites[site], float(executed.sum()), kind == "bulk_load")
            memory[:, n] = profiles
            continue
        if not counted.requests:
            continue
        if kind.startswith("shared"):
            _fill_shared_access(counted, kind, device, code[n], memory[:, n])
        elif kind == "constant_load":
            addresses = traffic.sites[site, Column.LINES] / max(1, traffic.sites[site, Column.ACCESSES])
            if addresses > 1:
                _fill_own_access(code[n], memory[:, n], _CONSTANT_ADDRESS_CYCLES * addresses, code[n, Field.LATENCY])
        elif site >= 0:
            profiles = _profiles_by_class(traffic, counted, site, by_class[:, n], device, kind)
            fill_cycles = access_width(counted.instruction) * WARP_SIZE / (4.0 * max(1, device.rates.shared))
            profiles[:, Profile.LSU_CYCLES] = np.maximum(profiles[:, Profile.LSU_CYCLES], fill_cycles)
            memory[:, n], code[n, Field.KIND], code[n, Field.PIPE] = profiles, InstructionKind.GLOBAL, LSU_PIPE
            latency = device.timing.atomic if kind == "global_atomic" else 0
            code[n, Field.LATENCY] = device.timing.l1 if kind.endswith("load") else latency


def _fill_bulk_copy(row: Words, profiles: Floats, total: Words, executed: float, loads: bool) -> None:
    """Fill in a bulk copy: all of it is read from one memory. LSU_CYCLES are those of the unit of bulk copies. total: columns of the
    site. executed: number of copies."""
    sectors = max(1, total[Column.SECTORS])
    row[[Field.ROLE, Field.LATENCY, Field.PIPE]] = Role.COPY, _COPY_LATENCY if loads else 0, -1
    profiles[:, Profile.LSU_CYCLES] = 32 * sectors / max(1.0, executed) / _COPY_WIDTH
    misses, far = total[Column.MISSES], total[Column.FAR_HITS]
    probabilities = np.array([misses, misses + far, sectors]) / sectors
    profiles[:, [Profile.DRAM_PROBABILITY, Profile.FAR_PROBABILITY, Profile.L2_PROBABILITY]] = probabilities
    profiles[:, Profile.BURST_SHARE] = 0.0
    merged = (1 - SHARED_COST) * total[Column.SHARED_SECTORS] / sectors
    profiles[:, [Profile.L2_SECTORS, Profile.LOAD_MISS_LINES]] *= 1 - merged


def _fill_own_access(row: Words, memory: Floats, cycles: float, latency: int, fraction: float = 1.0) -> None:
    """Fill in an access that the SM answers: LSU cycles and latency. memory: float64[class, PROFILE_WORDS]."""
    row[[Field.KIND, Field.LATENCY, Field.PIPE]] = InstructionKind.SHARED, latency, LSU_PIPE
    memory[:, [Profile.ACCESS_FRACTION, Profile.LSU_CYCLES]] = fraction, cycles


def _fill_shared_access(counted: InstructionCount, kind: str, device: Device, row: Words, memory: Floats) -> None:
    """Fill in the access profile of shared memory."""
    cycles = WARP_SIZE / max(1, device.rates.shared)
    phases = phases_of(kind, access_width(counted.instruction), WARP_SIZE)
    wavefronts = counted.transactions / counted.requests if counted.requests else 1.0
    cycles = max(1.0, wavefronts * cycles, phases * cycles)
    _fill_own_access(row, memory, cycles, device.timing.shared, min(1.0, counted.requests / counted.warps))


def as_sectors(lines: float, sectors: float, device: Device, stored: bool) -> float:
    """Return the L2 cost of requests in equivalent sectors of fully read lines."""
    timing = device.timing
    rate = timing.l2_bandwidth * 1000 / 32 / device.clock  # sectors a cycle
    first = rate / (timing.request_rate if stored else timing.load_rate)
    more = max(0.0, ((4 * rate / timing.store_rate if stored else 4.0) - first) / 3)
    return lines * first + max(0.0, sectors - lines) * more


@dataclass(frozen=True)
class _Accesses:
    """Accesses with a common profile. adds: atomic operations at L2 per access. correlation: `line_correlation`. max_wait:
    `max_wait_fraction`."""

    traffic: Traffic
    device: Device
    kind: str
    adds: float
    correlation: Floats
    max_wait: float


def _profiles_by_class(
    traffic: Traffic, counted: InstructionCount, site: int, executed: Floats, device: Device, kind: str
) -> Floats:
    """Return float64[class, PROFILE_WORDS] of global or local accesses.

    executed: by class. Classes with too few samples use the mean profile.
    """
    total, rows = traffic.sites[site].astype(np.float64), traffic.classes[:, site]
    sampled = traffic.sampled[:, site]
    lines = total[Column.LINES] / max(1.0, total[Column.ACCESSES])
    accesses = _Accesses(
        traffic, device, kind, counted.transactions / max(1, counted.requests),
        line_correlation(sampled.sum(0), lines, traffic.sampling_stride),
        max_wait_fraction(total) if kind.endswith("load") else 1.0,
    )  # fmt: skip
    average = _global_profile(accesses, total, sampled.sum(0), float(executed.sum()))
    profiles = np.repeat(average[None], len(rows), axis=0)
    is_sampled = traffic.distinct_lines[:, site] >= (_MIN_DISTINCT_LINES if traffic.sampling_stride > 1 else 1)
    for number, row in enumerate(rows if len(rows) > 1 else ()):
        if is_sampled[number] and executed[number]:
            row[Column.ACCESSES] = row[Column.ACCESSES] or total[Column.ACCESSES] * executed[number] / executed.sum()
            profiles[number] = _global_profile(accesses, row, sampled[number], float(executed[number]))
    return profiles


def _global_profile(group: _Accesses, total: Floats, sampled: Words, executed: float) -> Floats:
    """Return an access profile. total, sampled: columns of the sites."""
    profile, timing, traffic = np.zeros(PROFILE_WORDS), group.device.timing, group.traffic
    if not total[Column.ACCESSES] or not executed:
        return profile
    share = profile[Profile.ACCESS_FRACTION] = min(1.0, total[Column.ACCESSES] / executed)
    accesses = share * executed  # source accesses not merged by nvcc
    lines = total[Column.LINES] / total[Column.ACCESSES]
    profile[Profile.LSU_CYCLES] = max(
        timing.request_interval,
        total[Column.CYCLES] / total[Column.ACCESSES] * LINE / timing.l1_width,
        lines / timing.lookup_rate,
    )
    misses = total[Column.MISSES]
    out = misses + total[Column.FAR_HITS] + total[Column.NEAR_HITS]
    profile[Profile.L2_SECTORS] = as_sectors(total[Column.L2_REQUESTS], out, group.device, stored=False) / accesses
    profile[Profile.LOAD_MISS_LINES] = total[Column.L2_REQUESTS] / accesses if group.kind.endswith("load") else 0.0
    scattered = total[Column.NON_ADJACENT] / total[Column.ACCESSES]
    profile[Profile.DRAM_READ_SECTORS] = (
        misses + (_UNPAIRED_COST + scattered * (timing.dram_row - _UNPAIRED_COST)) * total[Column.UNPAIRED_SECTORS]
    ) / accesses
    if not sampled[Column.ACCESSES]:  # no sampled line: few lines
        probabilities = np.minimum(
            1.0, np.array([misses, misses + total[Column.FAR_HITS], out]) / max(1.0, total[Column.SECTORS])
        )
    else:
        of_lines, of_accesses = wait_fractions(sampled, lines, traffic.sampling_stride)
        probabilities = (
            of_accesses if traffic.sampling_stride == 1 else any_line_waits(of_lines, lines, group.correlation)
        )
    profile[[Profile.DRAM_PROBABILITY, Profile.FAR_PROBABILITY, Profile.L2_PROBABILITY]] = np.minimum(
        probabilities, group.max_wait
    )
    profile[Profile.BURST_SHARE] = burst_rate(sampled) * profile[Profile.L2_PROBABILITY]
    if not group.kind.endswith("load"):
        _add_writes(group, total, profile)
    return profile


def _add_writes(group: _Accesses, total: Floats, profile: Floats) -> None:
    """Set the sectors written by stores and atomics."""
    traffic, timing, sectors = group.traffic, group.device.timing, total[Column.SECTORS] / total[Column.ACCESSES]
    stored = max(1, traffic.total(Column.SECTORS, Kind.STORE, Kind.ATOMIC, Kind.LOCAL_STORE))
    profile[Profile.DRAM_WRITE_SECTORS] = (
        sectors * (traffic.dram_written + traffic.dram_filled + traffic.dram_wasted) / 32 / stored
    )
    if not group.kind.endswith("store"):
        rate = timing.l2_bandwidth * 1000 / 32 / group.device.clock  # sectors a cycle
        rate /= timing.fetch_rate if group.kind == "global_atomic" else timing.atomic_rate
        profile[Profile.L2_SECTORS] = max(sectors, group.adds * rate)
        return
    requests = (
        max(total[Column.LINES], total[Column.PARTIAL_SECTORS])
        if group.kind.startswith("local")
        else total[Column.LINES]
    )
    profile[Profile.L2_SECTORS] = (
        as_sectors(requests, total[Column.SECTORS], group.device, stored=True) / total[Column.ACCESSES]
    )
    profile[Profile.DRAM_READ_SECTORS] = 0.0
    profile[Profile.STORE_LINES] = total[Column.LINES] / total[Column.ACCESSES]
    if total[Column.STORE_REHITS]:
        rehit_fraction = total[Column.STORE_REHITS] / total[Column.LINES]
        merged_requests = total[Column.L2_REQUESTS] - total[Column.LINES] + total[Column.STORE_REHITS]
        merged_sectors = rehit_fraction * total[Column.SECTORS] - total[Column.MERGEABLE_SECTORS]
        rehits = rehit_fraction * total[Column.ACCESSES]
        profile[Profile.MERGED_SECTORS] = (
            as_sectors(merged_requests, merged_sectors, group.device, stored=True) / rehits
        )
        profile[Profile.MERGED_LINES] = merged_requests / rehits
        profile[Profile.REUSE_DISTANCE] = total[Column.STORE_REUSE_DISTANCE] / total[Column.STORE_REHITS]
        profile[Profile.REUSE_FRACTION] = rehit_fraction
