"""What Nsight Compute counts of a case, printed kernel by printed kernel, and how it is taken."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from simtbed import LaunchError
from simtbed.compiled.flow import LocatedInstruction
from simtbed.compiled.kernel_launches import KernelLaunches
from simtbed.compiled.pipes import PIPES
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.sass import Instruction, disassemble

from . import nsight
from .figures import A_LAUNCH, FIGURES, PIPE_METRIC

_METRICS = {figure.name: figure.metric for figure in FIGURES if figure.metric}
PIPE_METRICS = {pipe: PIPE_METRIC.format(pipe=pipe) for pipe in PIPES}


class Ran(NamedTuple):
    """An instruction with its place in the printed kernel, and its executions by warps and by threads."""

    placed: LocatedInstruction
    warps: int
    threads: int


@dataclass(frozen=True)
class Profiled:
    """One printed kernel in one case, its launches summed.

    source: digest of the printed kernel. registers, shared_bytes: as the compiler reports them; shared_bytes with what
    the launch adds. figures: by name; pipes: instructions by pipe. sass: what ran, without the padding.
    """

    kernel: str
    source: str
    launches: int
    registers: int
    shared_bytes: int
    figures: dict[str, float]
    pipes: dict[str, int]
    sass: tuple[Ran, ...]


def take_counters(
    ncu: Path, arch: str, launched: Mapping[str, Sequence[KernelLaunches]], names: Sequence[str], only: str
) -> dict[str, tuple[Profiled, ...]]:
    """Profile the cases whose kernels `launched` holds. names, only: where their process finds them. Raises LaunchError."""
    every = [one for kernels in launched.values() for one in kernels]
    with ThreadPoolExecutor() as pool:
        built = dict(zip((one.digest for one in every), pool.map(partial(_built, arch=arch), every), strict=True))
    profiles: dict[tuple[str, str], list[nsight.Profile]] = {}
    metrics = [*_METRICS.values(), *PIPE_METRICS.values()]
    with tempfile.TemporaryDirectory(prefix="simtbed-") as folder:
        log = str(Path(folder, "log.json"))
        command = [sys.executable, "-m", "simtbed.reports.hardware.profiled_process", log, only, *names]
        order = nsight.profile(ncu, command, metrics)
        listed = json.loads(Path(log).read_text(encoding="utf-8"))
    if len(listed) != len(order):
        raise LaunchError(f"{len(listed)} launches were made, Nsight Compute reports {len(order)}")
    for (case, digest), found in zip(listed, order, strict=True):
        profiles.setdefault((case, digest), []).append(found)
    return {
        name: tuple(_profiled(one, built[one.digest], profiles[name, one.digest]) for one in kernels)
        for name, kernels in launched.items()
    }


Compiled = tuple[nvcc.Built, tuple[Instruction, ...]]


def _built(one: KernelLaunches, arch: str) -> Compiled:
    built = nvcc.build(one.source.with_lines(), one.source.kernel, arch)
    return built, disassemble(built.cubin, one.source.kernel)


def _profiled(one: KernelLaunches, compiled: Compiled, profiles: list[nsight.Profile]) -> Profiled:
    """Launches of one kernel, summed."""
    built, sass = compiled
    for profile in profiles:
        ran = [
            Instruction(0, text).opcode[:3] for text, _, _ in profile.instructions
        ]  # RED or REDG, as the tool is old
        if ran != [instruction.opcode[:3] for instruction in sass]:
            raise LaunchError(f"{one.source.kernel}: the SASS that ran is not what nvdisasm shows")

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
        Ran(placed, sum(p.instructions[n][1] for p in profiles), sum(p.instructions[n][2] for p in profiles))
        for n, placed in enumerate(one.placed(_without_padding(sass)))
    ]
    shared = built.resources.shared_bytes + one.source.carved_bytes + one.request.dynamic_shared
    return Profiled(
        one.source.kernel,
        one.digest,
        len(profiles),
        built.resources.registers,
        shared,
        figures,
        {pipe: int(total(metric)) for pipe, metric in PIPE_METRICS.items()},
        tuple(executions),
    )


def _without_padding(sass: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """All but the NOPs that fill the section up."""
    used = max(n for n, instruction in enumerate(sass) if instruction.opcode != "NOP")
    return sass[: used + 1]
