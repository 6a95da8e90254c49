"""Kernels of a cubin: launches that execute the SASS, on an emulated device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..checked import closest, shown, whole
from ..cubin_sections import Parameter, Sections
from ..documents import bytes_of
from ..errors import LaunchError
from ..machine.device import H200, Device
from ..runtime.cubin_launch import CubinLaunch
from ..runtime.observing import cubin_receivers, overrides
from ..runtime.request import check_cluster, find_device, grid_and_block
from ..sass.state import ARCHITECTURES
from .cubin_launch import execute_cubin, line_of
from .device_launch import shared_bytes
from .instruction_counts import InstructionCount
from .memory import memory_counters

_POINTER_BYTES = 8


class Cubin(Mapping[str, "CubinKernel"]):
    """The kernels of a cubin by name, the result of `cubin`. architecture: such as "sm_90"."""

    def __init__(self, content: bytes, sections: Sections) -> None:
        self.architecture = sections.architecture
        self._kernels = {name: CubinKernel(name, content, sections) for name in sections.kernels}

    def __getitem__(self, name: str) -> CubinKernel:
        if name not in self._kernels:
            near = closest(str(name), self._kernels)
            names = f"do you mean {near}?" if near else f"it has {', '.join(self._kernels) or 'none'}"
            raise LaunchError(f"the cubin has no kernel {shown(name)}: {names}")
        return self._kernels[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __repr__(self) -> str:
        return f"<cubin of {self.architecture}: {', '.join(self)}>"


def cubin(source: str | Path | bytes) -> Cubin:
    """Return the kernels of a cubin: a path, or the content of a file.

    The kernels are executed by their SASS; nvdisasm disassembles it. Kernels of any compiler will do.

    Raises
    ------
    LaunchError
        For a file that is no linked cubin, or of an architecture whose SASS is not emulated.
    SimtbedError
        For a file that cannot be read.
    """
    content = source if isinstance(source, bytes) else bytes_of(source)
    name = "the cubin" if isinstance(source, bytes) else str(source)
    try:
        sections = Sections.read(content)
    except ValueError as error:
        raise LaunchError(f"{name}: {error}, as `nvcc -cubin` writes it") from None
    if sections.architecture not in ARCHITECTURES:
        target = sections.architecture or "another machine"
        raise LaunchError(f"{name} is of {target}: the SASS of {', '.join(ARCHITECTURES)} is emulated")
    if not sections.is_linked:
        raise LaunchError(f"{name} is not linked: link it by `nvlink`, or compile it without -rdc=true")
    return Cubin(content, sections)


@dataclass(frozen=True)
class CubinResult:
    """The result of a launch. arguments: the arguments after the launch, arrays as copies. device: of the counts.
    instructions: of the SASS, each with its counts."""

    kernel: str
    arguments: tuple[Any, ...]
    device: Device
    instructions: tuple[InstructionCount, ...]

    @property
    def counters(self) -> dict[str, int]:
        """Warp and thread instructions, and the counters of memory, by name."""
        warps, threads = (round(sum(getattr(one, name) for one in self.instructions)) for name in ("warps", "threads"))
        return {"warp_instructions": warps, "thread_instructions": threads} | memory_counters(self.instructions)

    def __str__(self) -> str:
        """The counters that are not zero, and each executed instruction with its source line, if the cubin has one."""
        from tabulate import tabulate  # late: its import takes longer than most launches

        counters = [[name.replace("_", " "), f"{count:,}"] for name, count in self.counters.items() if count]
        rows = [
            [f"{one.warps:,.0f}", f"{one.all_transactions:,.0f}" if one.all_requests else "", line_of(one.instruction),
             f"{one.instruction.offset:#06x}", one.instruction.text]
            for one in self.instructions if one.warps
        ]  # fmt: skip
        heading = ["warps", "transactions", "line", "address", "instruction"]
        aligned = ("right", "right", "left", "left", "left")
        table = tabulate(rows, heading, disable_numparse=True, colalign=aligned if rows else None)
        totals = tabulate(
            counters, tablefmt="plain", disable_numparse=True, colalign=("left", "right") if counters else None
        )
        return f"{self.kernel} on {self.device.name}\n\n{totals}\n\n{table}"


@dataclass(frozen=True)
class CubinKernel:
    """A kernel of a cubin. Its parameters have sizes, and no names."""

    name: str
    content: bytes
    sections: Sections

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Offset and size of each parameter, in bytes."""
        try:
            return self.sections.parameters(self.name)
        except ValueError as error:
            raise LaunchError(f"the cubin is not supported: {error}") from None

    def launch(
        self, *arguments: Any, grid: Any, block: Any, shared: int = 0, device: Device | str = H200, cooperative: bool = False
    ) -> CubinResult:  # fmt: skip
        """Execute all blocks of a launch, on copies of the arrays.

        Parameters
        ----------
        arguments : an array for each pointer; a NumPy number or array of the size of each other parameter. A Python
            number has the type of its size: an integer, or a float of 4 or 8 bytes.
        grid, block : one to three extents.
        shared : bytes of dynamic shared memory of a block.
        device : the counters are those of this device.
        cooperative : whether the blocks wait for each other.

        Raises
        ------
        LaunchError
            For arguments that do not fit the kernel, a grid that is not divisible into its clusters, or without nvdisasm.
        SimtbedError
            For an instruction that is not emulated, an address outside of the arrays, or a loop without progress.
        """
        if len(arguments) != len(self.parameters):
            raise LaunchError(f"{self.name} takes {len(self.parameters)} arguments: {len(arguments)} are given")
        _, row = overrides("jit", find_device(device))
        grid, block = grid_and_block(grid, block, row)
        static = shared_bytes(self.sections, self.name)
        dynamic = whole("shared", shared, 0, max(0, row.shared_per_block_optin - static), f"the {row.name}")
        cluster = self.sections.cluster(self.name)
        check_cluster(cluster, grid, row)
        values = tuple(one if self._is_array(n, one) else self._bytes(n, one) for n, one in enumerate(arguments))
        launch = CubinLaunch(self.name, self.content, values, grid, block, dynamic, row, cooperative, cluster)
        for receive in cubin_receivers:
            receive(launch)
        kernel, memory = execute_cubin(launch)
        results = tuple(
            memory.array(f"argument {n}").copy() if self._is_array(n, one) else one for n, one in enumerate(arguments)
        )
        return CubinResult(self.name, results, row, kernel.instructions)

    def _is_array(self, number: int, value: Any) -> bool:
        return isinstance(value, np.ndarray) and value.ndim > 0 and self.parameters[number].size == _POINTER_BYTES

    def _bytes(self, number: int, value: Any) -> bytes:
        """Return the bytes of an argument that is no array."""
        size = self.parameters[number].size
        if isinstance(value, bool | int | float):
            kind = "f" if isinstance(value, float) else "u" if value >= 1 << (8 * size - 1) else "i"
            try:
                value = np.dtype(f"{kind}{size}").type(value)
            except (TypeError, OverflowError):
                raise LaunchError(f"argument {number} has {size} bytes: {shown(value)} does not fit") from None
        if not isinstance(value, np.generic | np.ndarray) or value.nbytes != size:
            got = f"{value.nbytes}" if isinstance(value, np.generic | np.ndarray) else f"a {type(value).__name__}"
            raise LaunchError(f"argument {number} has {size} bytes, got {got}: give a NumPy value of this size")
        return value.tobytes()
