"""Nsight Compute's counters of a case, by printed kernel."""

import base64
import json
import sys
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from simtbed import LaunchError
from simtbed.compiled.instruction_counts import LocatedInstruction
from simtbed.compiled.kernel import without_padding
from simtbed.compiled.kernel_launches import KernelLaunches
from simtbed.compiled.pipes import PIPES
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.sass import Instruction, disassemble

from . import nsight
from .figures import A_LAUNCH, FIGURES, PIPE_METRIC

_METRICS = {figure.name: figure.metric for figure in FIGURES if figure.metric}
PIPE_METRICS = {pipe: PIPE_METRIC.format(pipe=pipe) for pipe in PIPES}


class InstructionCount(NamedTuple):
    """An instruction with its place in the printed kernel, and its executions by warps and by threads."""

    placed: LocatedInstruction
    warps: int
    threads: int


@dataclass(frozen=True)
class Profiled:
    """A printed kernel in one case, summed over its launches.

    source: digest of the printed kernel. registers, shared_bytes: as the compiler reports them, plus dynamic shared
    memory. figures: values by name; pipes: instructions by pipe. sass: executed instructions, without padding. cubin: of
    the compiler, packed by `pack`; empty in older records.
    """

    kernel: str
    source: str
    launches: int
    registers: int
    shared_bytes: int
    figures: dict[str, float]
    pipes: dict[str, int]
    sass: tuple[InstructionCount, ...]
    cubin: str = ""

    def compiled(self, launched: KernelLaunches) -> bytes | None:
        """Return the cubin, recorded or compiled again; None if its operations are not the recorded ones. Raises LaunchError."""
        name = launched.source.kernel
        if self.cubin:
            cubin = zlib.decompress(base64.b64decode(self.cubin))
        else:
            cubin = nvcc.build(launched.source.with_lines(), name, "sm_90").cubin
        listed = [one.operation for one in without_padding(disassemble(cubin, name))]
        return cubin if listed == [one.placed.instruction.operation for one in self.sass] else None


def pack(cubin: bytes) -> str:
    """Return a cubin as text of a record; empty for none."""
    return "" if not cubin else base64.b64encode(zlib.compress(cubin, 9)).decode()


def take_counters(
    ncu: Path, arch: str, launched: Mapping[str, Sequence[KernelLaunches]], names: Sequence[str], only: str
) -> dict[str, tuple[Profiled, ...]]:
    """Profile the kernels of cases. names, only: the functions and the pattern of the cases, for the profiled process.
    Raises LaunchError."""
    kernels_of_all = [kernel for kernels in launched.values() for kernel in kernels]
    with ThreadPoolExecutor() as pool:
        built = dict(
            zip(
                (kernel.digest for kernel in kernels_of_all),
                pool.map(partial(_built, arch=arch), kernels_of_all),
                strict=True,
            )
        )
    profiles: dict[tuple[str, str], list[nsight.Profile]] = {}
    metrics = [*_METRICS.values(), *PIPE_METRICS.values()]
    with tempfile.TemporaryDirectory(prefix="simtbed-") as folder:
        log = str(Path(folder, "log.json"))
        command = [sys.executable, "-m", "simtbed.reports.hardware.profiled_process", log, only, *names]
        order = nsight.profile(ncu, command, metrics)
        listed = json.loads(Path(log).read_text(encoding="utf-8"))
    if len(listed) != len(order):
        raise LaunchError(f"{len(listed)} launches were made, Nsight Compute reports {len(order)}")
    for (case, digest), profile in zip(listed, order, strict=True):
        profiles.setdefault((case, digest), []).append(profile)
    return {
        name: tuple(_profiled(kernel, built[kernel.digest], profiles[name, kernel.digest]) for kernel in kernels)
        for name, kernels in launched.items()
    }


Compiled = tuple[nvcc.Built, tuple[Instruction, ...]]


def _built(kernel: KernelLaunches, arch: str) -> Compiled:
    built = nvcc.build(kernel.source.with_lines(), kernel.source.kernel, arch)
    return built, disassemble(built.cubin, kernel.source.kernel)


def _profiled(kernel: KernelLaunches, compiled: Compiled, profiles: list[nsight.Profile]) -> Profiled:
    """Return the sums over the launches of a kernel."""
    built, sass = compiled
    for profile in profiles:
        opcodes = [
            Instruction(0, text).opcode[:3] for text, _, _ in profile.instructions
        ]  # RED or REDG, by the version of the tool
        if opcodes != [instruction.opcode[:3] for instruction in sass]:
            raise LaunchError(f"{kernel.source.kernel}: the SASS that ran is not what nvdisasm shows")

    def total(metric: str) -> float:
        return sum(profile.metrics[metric] for profile in profiles)

    figures = {name: total(metric) for name, metric in _METRICS.items()}
    figures |= {name: profiles[0].metrics[_METRICS[name]] for name in A_LAUNCH}
    for figure in FIGURES:
        if figure.opcodes:
            places = [n for n, instruction in enumerate(sass) if instruction.opcode in figure.opcodes]
            figures[figure.name] = sum(profile.instructions[n][1] for profile in profiles for n in places)
    figures["warp_execution_efficiency"] = figures["thread_instructions"] / (32 * figures["warp_instructions"])
    executions = [
        InstructionCount(
            placed, sum(p.instructions[n][1] for p in profiles), sum(p.instructions[n][2] for p in profiles)
        )
        for n, placed in enumerate(kernel.placed(without_padding(sass)))
    ]
    shared = built.resources.shared_bytes + kernel.source.carved_bytes + kernel.request.dynamic_shared
    return Profiled(
        kernel.source.kernel,
        kernel.digest,
        len(profiles),
        built.resources.registers,
        shared,
        figures,
        {pipe: int(total(metric)) for pipe, metric in PIPE_METRICS.items()},
        tuple(executions),
        pack(built.cubin),
    )
