"""`debugging`: one block of each launch on the python engine, for the debugger of an editor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from ..engines.python.engine import Launch, kernel_frames
from ..engines.python.threads import Fault
from ..errors import LaunchError
from ..ir import nodes as ir
from ..ir.walk import map_bodies, statements
from ..machine.device import Device
from ..passes.grids import waits_for_blocks
from ..runtime.engine import Request
from ..runtime.observing import NextLaunch, PendingLaunch, observing
from ..runtime.registry import EngineName
from ..runtime.result import LaunchDetails
from ..runtime.specialisation import Specialisation
from .facts import linear_index


@contextmanager
def debugging(*, block: int | tuple[int, ...], kernel: str = "*") -> Iterator[None]:
    """Run one block of each launch on the python engine, where breakpoints of a debugger stop, and the launch on jit.

    Parameters
    ----------
    block : an index, or x, y, z. It begins with the arrays as they were before the launch; no other block runs before it.
    kernel : a pattern (`fnmatch`) of the names of the kernels.

    The results are those of the jit engine, without the calls of Python functions in the kernel; the block makes these calls. A finding
    in the block raises FaultError at its line. Raises LaunchError for a block outside the grid and for a cooperative kernel.
    """
    with observing(BlockDebugger(block, kernel)):
        yield


@dataclass(frozen=True)
class BlockDebugger:
    """The observer of `debugging`."""

    block: int | tuple[int, ...]
    kernel: str
    engine: EngineName = "python"
    device: Device | None = None

    def observe(self, call: PendingLaunch, proceed: NextLaunch) -> LaunchDetails:
        request = call.request
        result = proceed(replace(call, engine="jit", request=without_host_calls(request)))
        if not fnmatchcase(request.specialisation.summary.name, self.kernel):
            return result
        number = linear_index("block", self.block, request.grid)
        if waits_for_blocks(request.prepared.program.kernel):
            raise LaunchError(
                'a block of a cooperative kernel waits for the others: debug the launch with engine="python"'
            )
        launch = Launch(replace(request, show_prints=False))
        try:
            with np.errstate(all="ignore"):
                launch.run_block(number)
        except Fault as fault:
            return replace(result, faults=[fault.diagnostic], trace=kernel_frames(fault.__traceback__))
        return result


def without_host_calls(request: Request) -> Request:
    """Return the launch without the calls of Python functions, for the compiled engines."""
    program = request.program
    if not any(isinstance(s, ir.HostCall) for f in (program.kernel, *program.functions) for s in statements(f.body)):
        return request

    def body(stmts: ir.Body) -> ir.Body:
        return tuple(map_bodies(stmt, body) for stmt in stmts if not isinstance(stmt, ir.HostCall))

    kernel, *functions = (replace(f, body=body(f.body)) for f in (program.kernel, *program.functions))
    return replace(request, specialisation=Specialisation.of_program(ir.Program(kernel, tuple(functions))))
