"""Small SASS programs for the emulator: instructions at 0x0, 0x10, ..., without nvcc."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from simtbed import SimtbedError, devices
from simtbed.compiled.executed import Tracer
from simtbed.compiled.opcode_classes import access_of
from simtbed.engines.cuda.sass import Instruction
from simtbed.sass.counts import Counts
from simtbed.sass.execution import Launch, Program, execute
from simtbed.sass.state import ARCHITECTURES, GlobalMemory, parameter_bank

SM_90 = ARCHITECTURES["sm_90"]


def instruction(number: int, text: str) -> Instruction:
    """Return an instruction. A float among its operands is encoded as float32, of D instructions as a float64's upper word."""
    value = re.findall(r"(?<![\w.\]])[-+]?(?:\d+\.\d*(?:e[-+]?\d+)?|INF|QNAN)(?![\w.])", text)
    bits = 0
    if value:
        number64 = np.float64(value[-1].replace("Q", ""))
        wide = re.search(r"\bD[A-Z]", text.split(",")[0].replace("@P", "")) is not None
        bits = int(number64.view(np.uint64)) >> 32 if wide else int(np.float32(number64).view(np.uint32))
    return Instruction(16 * number, text, encoding=bits << 32)


def instructions(*texts: str) -> list[Instruction]:
    """Return the instructions of a program."""
    return [instruction(number, text) for number, text in enumerate(texts)]


def run(
    *texts: str,
    arrays: Mapping[str, Any] | None = None,
    grid: int | tuple[int, int] = 1,
    block: int = 32,
    numbers: Sequence[Any] = (),
    banks: Mapping[int, bytes] | None = None,
    shared: int = 4096,
    cooperative: bool = False,
    tracer: Tracer | None = None,
) -> tuple[Counts, GlobalMemory]:
    """Execute a program, interpreted and compiled, with equal results or errors. Its parameters begin at c[0x0][0x210]: the addresses of
    the arrays, then numbers. grid: blocks, and those of a cluster. tracer: of the accesses."""
    blocks, in_cluster = (grid, 1) if isinstance(grid, int) else grid
    cluster = (in_cluster, 1, 1)
    program = Program.from_listing(instructions(*texts))
    results, errors = [], []
    for compile_after in (1 << 60, 0):
        memory = GlobalMemory.allocate(arrays or {})
        parameters = [*(np.uint64(memory.address(name)) for name in memory.places), *numbers]
        workspace = memory.workspace_address if cooperative else 0
        data = b"".join(one.tobytes() for one in parameters)
        bank = parameter_bank((block, 1, 1), (blocks, 1, 1), data, SM_90.parameters, memory, workspace, cluster)
        all_banks = {0: bank, **(banks or {})}
        trace = None if tracer is None else tracer([*map(access_of, instructions(*texts))], blocks)
        counts = Counts(devices.H200, program.ends_run, blocks * -(-block // 32), trace)
        launch = Launch(
            (blocks, 1, 1), (block, 1, 1), np.arange(blocks), shared + SM_90.shared_reserved, memory, all_banks, cooperative,
            cluster,
        )  # fmt: skip
        try:
            execute(program, launch, counts, compile_after)
        except SimtbedError as error:
            errors.append(error)
        results.append((counts, memory))
    if errors:
        first, second = errors
        assert (type(first), str(first)) == (type(second), str(second))
        raise first
    (counts, memory), (compiled_counts, compiled_memory) = results
    assert differing_counts(counts, compiled_counts) == []
    events = (one.phase_events(-(-block // 32)) for one in (counts, compiled_counts))
    assert all(map(np.array_equal, *events))
    assert np.array_equal(memory.contents, compiled_memory.contents)
    return counts, memory


def differing_counts(a: Counts, b: Counts) -> list[str]:
    """Return the names of the counts that differ."""
    arrays = [name for name in ("lanes", "active", "traffic") if not np.array_equal(getattr(a, name), getattr(b, name))]
    if a.starts.keys() != b.starts.keys() or any(not np.array_equal(each, b.starts[n]) for n, each in a.starts.items()):
        arrays.append("starts")
    if not all(map(np.array_equal, a.paths(), b.paths())):
        arrays.append("paths")
    return arrays


def executions(*texts: str, **options: Any) -> dict[str, tuple[int, int]]:
    """Return the executions by warps and by lanes of each executed address of a program."""
    counts, _ = run(*texts, **options)
    warps, lanes = counts.totals()
    return {f"{16 * n:#x}": (int(warps[n]), int(lanes[n])) for n in range(len(texts)) if warps[n]}
