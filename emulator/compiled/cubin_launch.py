"""Execution of a launch of a kernel of a cubin."""

from typing import Any

import numpy as np

from ..cubin_sections import Sections
from ..engines.cuda.sass import Instruction, disassemble
from ..errors import LaunchError
from ..runtime.cubin_launch import CubinLaunch
from ..runtime.engine import clusters_of
from ..sass.execution import Program
from ..sass.state import ARCHITECTURES, GlobalMemory
from .device_launch import DeviceLaunch, execute_on_device
from .executed import Executed, Tracer
from .instruction_counts import LocatedInstruction, counted
from .kernel import ExecutedKernel
from .opcode_classes import access_of


def execute_cubin(launch: CubinLaunch, tracer: Tracer | None = None) -> tuple[ExecutedKernel, GlobalMemory]:
    """Execute all blocks on copies of the arrays. tracer: for the accesses. The memory has argument n by the name "argument n".

    Raises LaunchError for a damaged cubin or without nvdisasm; SimtbedError as `execute_on_device`.
    """
    try:
        sections = Sections.read(launch.content)
        instructions = disassemble(launch.content, launch.name)
        program = Program.from_listing(instructions)
        blocks = clusters_of(launch.grid, launch.cluster).reshape(-1)
        trace = None if tracer is None else tracer([*map(access_of, instructions)], len(blocks))
        registers = max(sections.registers(launch.name), launch.device.register_least)
        counts, memory = execute_on_device(_on_device(launch), sections, program, blocks, trace)
    except ValueError as error:
        raise LaunchError(f"the cubin is not supported: {error}") from None
    warps, threads = counts.totals()
    executed = Executed(
        warps.astype(np.float64), threads.astype(np.float64), counts.traffic.astype(np.float64), 1, (), counts, blocks,
        launch.grid, launch.block, launch.cluster,
    )  # fmt: skip
    reserved = ARCHITECTURES[sections.architecture].shared_reserved
    located = [LocatedInstruction(one, 0) for one in instructions]
    kernel = ExecutedKernel(
        launch.name, sections.architecture, launch.device, registers,
        max(0, sections.static_shared(launch.name) - reserved) + launch.shared, False,
        counted(located, warps, threads, counts.traffic), executed,
    )  # fmt: skip
    return kernel, memory


def _on_device(launch: CubinLaunch) -> DeviceLaunch:
    arrays = {f"argument {n}": one for n, one in enumerate(launch.arguments) if isinstance(one, np.ndarray)}

    def packed(address: Any) -> list[bytes]:
        named = ((f"argument {n}", value) for n, value in enumerate(launch.arguments))
        return [np.uint64(address(name)).tobytes() if name in arrays else bytes(value) for name, value in named]

    return DeviceLaunch(
        launch.name, launch.device, launch.grid, launch.block, launch.shared, arrays, packed, launch.cooperative, launch.cooperative,
        cluster=launch.cluster,
    )  # fmt: skip


def line_of(instruction: Instruction) -> str:
    """Return file and line of an instruction; empty without a line table."""
    return ":".join(map(str, instruction.places[0])) if instruction.places else ""
