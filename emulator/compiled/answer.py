"""The arrays that the compiled code of a launch leaves: its SASS, executed without a GPU."""

from collections.abc import Mapping

from ..cubin_sections import Sections
from ..engines.cuda.binary import binary
from ..engines.cuda.sass import disassemble
from ..errors import LaunchError
from ..runtime.engine import Request
from ..runtime.poison import Buffer
from ..sass.execution import Program
from ..sass.operands import UnsupportedInstruction
from ..sass.state import ExecutionError
from .device_launch import execute_on_device
from .executed import device_launch, may_sample
from .kernel import EMULATED, without_padding

MAX_INSTRUCTIONS = 20_000_000
"""Warp instructions up to which a launch is executed: about two seconds on one core."""


def executed_arrays(request: Request, arch: str) -> Mapping[str, Buffer] | None:
    """Return the written arrays of a launch of the code that the engine cuda loads for `arch`, flat.

    None if SASS of `arch` is not emulated, if an instruction is not, if nvdisasm is missing, and for a launch that is too
    long. Raises LaunchError for a kernel that nvcc does not compile.
    """
    if arch not in EMULATED:
        return None
    interface, cubin = (loaded := binary(request, arch)).interface, loaded.built.cubin
    try:
        listing = without_padding(disassemble(cubin, interface.kernel))
        program, sections = Program.from_listing(listing), Sections.read(cubin)
        launch = device_launch(interface, request, request.copied_memory().before)
        blocks = request.clusters
        if may_sample(request):
            counts, _ = execute_on_device(launch, sections, program, blocks[len(blocks) // 2])
            if counts.totals()[0].sum() * len(blocks) > MAX_INSTRUCTIONS:
                return None
        _, memory = execute_on_device(launch, sections, program, blocks.reshape(-1))
    except (ExecutionError, UnsupportedInstruction, LaunchError):
        return None
    return {name: memory.array(name) for name in interface.written}
