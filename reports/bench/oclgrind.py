"""The workloads of `simtbed bench` as OpenCL kernels, timed in Oclgrind if installed."""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
from simtbed import SimtbedError
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.runtime.engine import Request
from simtbed.runtime.prepared import prepare

from .kernels import BLOCK, Work

KERNELS = (Path(__file__).parent / "oclgrind.cl").read_text(encoding="utf-8")
NAMES = {"intertask-naive", "transpose, pitch 33", "transpose, pitch 32", "block sum"}
"""Wavefront is missing: Oclgrind has no sub-groups."""


def installed() -> str | None:
    """Return the path of the program that runs one kernel in Oclgrind."""
    return shutil.which("oclgrind-kernel")


def simulated(program: str, work: Work, repeat: int) -> list[float]:
    """Return the seconds of each launch on one thread: a process less one with an empty kernel.

    Raises SimtbedError if Oclgrind fails or its answer differs from the jit engine.
    """
    request = work.request()
    with tempfile.TemporaryDirectory(prefix="simtbed-") as folder:
        simulation = Path(folder, "kernel.sim")
        simulation.write_text(_simulation(request))
        Path(folder, "kernels.cl").write_text(KERNELS)
        pitch = work.name.rpartition(" ")[2] if work.name.startswith("transpose") else "1"
        options = f"-cl-std=CL1.2 -DPITCH={pitch} -DBLOCK={BLOCK}"
        seconds: list[float] = []
        for _ in range(repeat):
            full, output = _timed(program, options, simulation)
            empty, _ = _timed(program, f"{options} -DNOTHING", simulation)
            seconds.append(full - empty)
    for name, expected in LlvmEngine(threads=1).run(request).buffers.items():
        if not np.allclose(_parse_dump(output, name), expected.reshape(-1), rtol=1e-3, atol=0):
            raise SimtbedError(f"{work.name}: {name} of Oclgrind and of the jit engine differ")
    return seconds


def _timed(program: str, options: str, simulation: Path) -> tuple[float, str]:
    command = [program, "--num-threads", "1", "--build-options", options, simulation.name]
    start = time.perf_counter()
    completed = subprocess.run(command, cwd=simulation.parent, capture_output=True, text=True)
    if completed.returncode or "error" in completed.stderr.lower():
        raise SimtbedError(f"oclgrind-kernel failed: {(completed.stderr or completed.stdout).strip()}")
    return time.perf_counter() - start, completed.stdout


def _simulation(request: Request) -> str:
    """Return Oclgrind's description of a launch: file, kernel, sizes, and arguments in words of 4 bytes."""
    kernel = request.program.kernel.name
    threads = [blocks * size for blocks, size in zip(request.grid, request.block, strict=True)]
    lines = ["kernels.cl", kernel, " ".join(map(str, threads)), " ".join(map(str, request.block))]
    changed = prepare(request.program).changed
    for name, value in request.arguments.items():
        data = np.asarray(value).tobytes()
        lines.append(f"<size={len(data)} uint{' dump' if name in changed else ''}>")
        lines.append(" ".join(map(str, np.frombuffer(data, np.uint32))))
    return "\n".join(lines) + "\n"


def _parse_dump(output: str, name: str) -> npt.NDArray[np.float32]:
    """Parse Oclgrind's dump of a float argument."""
    _, _, after = output.partition(f"Argument '{name}':")
    rows = after.partition("Argument '")[0].splitlines()[1:]
    return np.array([int(row.partition("=")[2]) for row in rows if "=" in row], np.uint32).view(np.float32)
