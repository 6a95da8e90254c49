"""The workloads of `simtbed bench` as OpenCL kernels, timed in Oclgrind if installed."""

from __future__ import annotations

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

KERNELS = """
kernel void transpose(global const float* x, global float* out, int width) {
#ifndef NOTHING
  local float tile[32][PITCH];
  int tx = get_local_id(0), ty = get_local_id(1), bx = get_group_id(0), by = get_group_id(1);
  for (int r = ty; r < 32; r += 8) tile[r][tx] = x[(by * 32 + r) * width + bx * 32 + tx];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int r = ty; r < 32; r += 8) out[(bx * 32 + r) * width + by * 32 + tx] = tile[tx][r];
#endif
}

kernel void block_sum(global const float* x, global float* out) {
#ifndef NOTHING
  local float partial[BLOCK];
  int t = get_local_id(0);
  partial[t] = x[get_group_id(0) * BLOCK + t];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int width = BLOCK / 2; width > 0; width /= 2) {
    if (t < width) partial[t] += partial[t + width];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (t == 0) out[get_group_id(0)] = partial[0];
#endif
}

kernel void intertask_naive(
    global const int4* groups, global const int2* lengths, global const uint* reads, global const uint* haplotypes,
    global const float* error, global const float* alpha, global const float* delta, global const float* zeta,
    global const float* epsilon, global float* match_row, global float* insertion_row, global float* deletion_row,
    global float* sums, float scale) {
#ifndef NOTHING
  int pair = get_global_id(0), lane = pair % 32;
  int4 place = groups[pair / 32];
  int2 size = lengths[pair];
  float initial = scale / size.y, result = 0.0f;
  uint word = 0;
  for (int i = 0; i < place.y; i++) {
    if (i % 4 == 0) word = reads[(place.x + i) / 4 * 32 + lane];
    int base = (word >> (i % 4 * 8)) & 255, at = (place.x + i) * 32 + lane;
    float q = error[at], a = alpha[at], d = delta[at], z = zeta[at], e = epsilon[at], b = 1.0f - e;
    float MN = 0.0f, DN = 0.0f, IN, MID = i == 0 ? b * initial : 0.0f;
    for (int j = 0; j < place.w; j++) {
      int letter = (haplotypes[(place.z + j) / 4 * 32 + lane] >> (j % 4 * 8)) & 255;
      int cell = (place.z + j) * 32 + lane;
      float MU = 0.0f, IU = 0.0f, DU = initial;
      if (i > 0) { MU = match_row[cell]; IU = insertion_row[cell]; DU = deletion_row[cell]; }
      DN = fma(z, MN, e * DN);
      MN = ((letter & base) != 0 ? 1.0f - q : q / 3.0f) * MID;
      IN = fma(d, MU, e * IU);
      MID = fma(a, MU, b * (IU + DU));
      match_row[cell] = MN;
      insertion_row[cell] = IN;
      deletion_row[cell] = DN;
      if (i == size.x - 1 && j < size.y) result += MN + IN;
    }
  }
  sums[pair] = result;
#endif
}
"""
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
