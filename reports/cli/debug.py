"""`simtbed debug`: stop in a kernel of a program at a finding, a line or a thread."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from simtbed.runtime.recording import parsed

from ..selection import find_device
from ..targets.debugger import Debugger
from ..targets.running import require_launches, run_target
from ..targets.target import find_target
from .options import Device, Input, SelectionOptions, TargetArgument, TargetArguments
from .parameters import Option, command


@dataclass(frozen=True, kw_only=True)
class DebugOptions:
    """The options of `simtbed debug`."""

    selection: SelectionOptions
    block: Annotated[str | None, Option(metavar="B", help="Stop in this block: an index or x,y,z; by default 0.")] = (
        None
    )
    thread: Annotated[str | None, Option(metavar="T", help="Stop in this thread: an index or x,y,z.")] = None
    line: Annotated[
        int | None, Option(metavar="LINE", min=1, max=1 << 30, help="Stop before this line of the kernel's file.")
    ] = None
    fault: Annotated[
        bool, Option(help="Stop at the first finding only; the default without block, thread and line.")
    ] = False
    trace: Annotated[
        bool, Option(help="Print the assignments and stores of the thread, by default 0, instead of stopping.")
    ] = False
    check: Annotated[
        str | None,
        Option(
            metavar="NAMES",
            help="Checkers to run, as in `simtbed check`; by default all to stop at findings, else none.",
        ),
    ] = None
    device: Device = "H200"
    input: Input = None


@command
def debug(target: TargetArgument, arguments: TargetArguments = (), *, options: DebugOptions) -> int:
    """Stop in a kernel of a target, with pdb's commands.

    The first stop is at the first finding, or in a block, thread or line.

    The commands are those of pdb, and: thread T, warp, lanes EXPRESSION, memory A[0:64], watch A[5], back, other. A
    program continues after a launch as without the debugger.

    \b
    simtbed debug train.py --epochs 1
    simtbed debug --kernel block_sum --block 3 --thread 17 --line 42 sum.py
    simtbed debug --trace --thread 5 sum.py
    """
    selection = options.selection
    debugged = find_target(target, arguments, options.input, selection.emulate)
    places = options.block, options.thread, options.line
    stops_at_findings = options.fault or (not options.trace and places == (None, None, None))
    make = partial(
        Debugger,
        kernel=selection.kernel,
        number=selection.launch,
        block=options.block,
        thread=options.thread,
        line=options.line,
        only_findings=stops_at_findings,
        trace=options.trace,
        check=parsed(options.check or ("all" if stops_at_findings else ())),
        device=find_device(options.device),
    )
    completed = run_target(debugged, make)
    if not completed.code:
        require_launches(completed, debugged)
        completed.run.select(selection.kernel, selection.launch)
    return completed.code
