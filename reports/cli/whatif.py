"""`simtbed whatif`: how long a target's launches would take on other devices, with other blocks and constants."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

from simtbed.model.sweeps import require_constants, run

from ..targets.running import own, require_launches, run_target
from ..targets.target import find_target
from ..terminal import progress
from ..whatif import report
from ..whatif.planner import Planned, Planner
from ..whatif.registers import registers_of
from ..whatif.values import axes, chosen_devices
from .options import Input, Json, Kernels, Number, Report, TargetArgument, TargetArguments
from .output import report_on, reports, write_lines
from .parameters import Option, command


class Objective(StrEnum):
    """What the best choice has least of."""

    time = "time"
    bytes = "bytes"


@command
def whatif(
    target: TargetArgument,
    arguments: TargetArguments = (),
    device: Annotated[str, Option(metavar="LIST", help="Devices, such as H100,A100,L4, or TOML files.")] = "H200",
    block: Annotated[str | None, Option(metavar="LIST", help="Sizes of blocks, such as 64,128 or 32x8.")] = None,
    const: Annotated[list[str] | None, Option(metavar="NAME=LIST", help="Values of a Const parameter.")] = None,
    tie: Annotated[list[str] | None, Option(metavar="NAME=block.x", help="A Const that follows the block.")] = None,
    grid: Annotated[str | None, Option(metavar="LIST", help="Grids; else they cover the same threads.")] = None,
    replace: Annotated[str | None, Option(metavar="LIST", help="Of the devices, such as l2=50MB,banks=16.")] = None,
    objective: Annotated[Objective, Option(help="What the best choice has least of.")] = Objective.time,
    cold: Annotated[bool, Option(("--cold",), help="With empty caches; else as after an earlier launch.")] = False,
    source_only: Annotated[bool, Option(("--source-only",), help="Without nvcc: registers do not limit.")] = False,
    dask: Annotated[str | None, Option(metavar="ADDRESS", help="A Dask cluster, or local for this machine.")] = None,
    kernel: Kernels = "*",
    launch: Number = None,
    source: Input = None,
    csv: Annotated[Path | None, Option(metavar="FILE", help="Write the rows as comma-separated values.")] = None,
    svg: Annotated[Path | None, Option(metavar="FILE", help="Write the plot of the first kernel.")] = None,
    html: Annotated[
        Path | None, Option(metavar="FILE", help="Write a page with plots, which needs no network.")
    ] = None,
    output: Report = None,
    json: Json = False,
) -> int:
    """How long a target's launches would take.

    Its launches are made again on the emulator, in every configuration; a model of caches and time says how long each would take
    on each device, what bounds it, and what one step would change. A time comes with an interval.

    \b
    simtbed whatif --device H100,A100,K40 examples/scripts/transpose.py --n 1024
    simtbed whatif --block 64,128,256 --tie BLOCK=block.x --kernel block_sum examples/block_sum.py
    simtbed whatif --replace l2=25MB --objective bytes --json saxpy.py
    """
    found = find_target(target, arguments, source)
    varied, devices = axes(block, grid, const or (), tie or ()), chosen_devices(device, replace)
    make = partial(Planner, axes=varied, devices=devices, kernels=kernel, number=launch)
    files = {"--csv": csv, "--svg": svg, "--html": html, "--output": output}
    with reports(files, found.files, device) as outputs:
        ran = run_target(found, make)
        require_launches(ran, found)
        chosen = own(ran.run, found).select(kernel, launch)
        planned = [one.request for one in chosen.launches if isinstance(one.request, Planned)]
        require_constants(varied, (name for one in planned for name in one.constants))
        with progress(f"what if: {found}") as done:
            table = run(
                [task for one in planned for task in one.tasks],
                objective=objective.value, cold=cold, dask=dask, registers=None if source_only else registers_of,
                source_only=source_only,
                progress=done,
            )  # fmt: skip
        title = f"{found}: {', '.join(one.name for one in devices)}, {'cold' if cold else 'warm'} caches"
        if (file := outputs.get("--csv")) is not None:
            write_lines(file, table.csv().rstrip("\n"))
        if (file := outputs.get("--svg")) is not None:
            write_lines(file, report.drawn(table)[0][2])
        if (file := outputs.get("--html")) is not None:
            write_lines(file, report.page(title, table, devices))
        shown = report.as_json(table) if json else report.text(title, table)
        report_on(found, outputs.get("--output"), shown)
    return ran.code
