"""`simtbed whatif`: predicted time of a target's launches for other devices, block sizes and constants."""

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

from simtbed.escaping import Document
from simtbed.model.outputs import Comparison
from simtbed.model.sweeps import require_constants, run
from simtbed.runtime.tolerance import Tolerance

from ..targets.running import require_launches, run_target, without_setup_kernels
from ..targets.target import find_target
from ..terminal import progress
from ..whatif import report
from ..whatif.planner import Planned, Planner
from ..whatif.registers import registers_of
from ..whatif.values import axes, chosen_devices
from .options import Input, Json, Report, SelectionOptions, TargetArgument, TargetArguments
from .output import program_output, report_files, write_lines, write_report
from .parameters import Option, command


class Objective(StrEnum):
    """Quantities to minimise."""

    time = "time"
    bytes = "bytes"


@dataclass(frozen=True, kw_only=True)
class WhatIfOptions:
    """The options of `simtbed whatif`."""

    device: Annotated[
        str, Option(metavar="LIST", help="Devices, such as H100,A100,L4, or TOML files with devices.")
    ] = "H200"
    block: Annotated[str | None, Option(metavar="LIST", help="Block sizes, such as 64,128 or 32x8.")] = None
    const: Annotated[list[str] | None, Option(metavar="NAME=LIST", help="Values of a Const parameter.")] = None
    tie: Annotated[
        list[str] | None, Option(metavar="NAME=block.x", help="Set a Const parameter to the block size.")
    ] = None
    grid: Annotated[
        str | None, Option(metavar="LIST", help="Grid sizes; by default the number of threads is unchanged.")
    ] = None
    replace: Annotated[
        str | None, Option(metavar="LIST", help="Change fields of the devices, such as l2=50MB,banks=16.")
    ] = None
    objective: Annotated[Objective, Option(help="Quantity to minimise.")] = Objective.time
    cold: Annotated[bool, Option(help="Start with empty caches; by default caches are warm from a launch.")] = False
    source_only: Annotated[bool, Option(help="Predict without nvcc; registers do not limit the occupancy.")] = False
    not_compared: Annotated[
        str | None, Option(metavar="LIST", help="Output arrays that may depend on the configuration.")
    ] = None
    rtol: Annotated[float, Option(min=0, max=1e30, help="Relative tolerance of float outputs.")] = 0.0
    atol: Annotated[float, Option(min=0, max=1e300, help="Absolute tolerance of float outputs.")] = 0.0
    dask: Annotated[
        str | None, Option(metavar="ADDRESS", help="Address of a Dask cluster, or local for this machine.")
    ] = None
    selection: SelectionOptions
    input: Input = None
    csv: Annotated[Path | None, Option(metavar="FILE", help="Write the rows as comma-separated values to FILE.")] = None
    svg: Annotated[Path | None, Option(metavar="FILE", help="Write the plot of the first kernel to FILE.")] = None
    html: Annotated[Path | None, Option(metavar="FILE", help="Write a self-contained HTML page to FILE.")] = None
    output: Report = None
    json: Json = False

    @property
    def comparison(self) -> Comparison:
        names = self.not_compared.split(",") if self.not_compared else ()
        return Comparison(tuple(names), Tolerance(self.rtol, self.atol))


@command
def whatif(target: TargetArgument, arguments: TargetArguments = (), *, options: WhatIfOptions) -> int:
    """Predict the time of a target's launches.

    Every launch is emulated in every configuration. A model of caches and time predicts its time on each device, its
    bound and the effect of one change. Every predicted time has an interval. The outputs are compared with those of the
    launch as given: a configuration with other outputs is never the best.

    \b
    simtbed whatif --device H100,A100,K40 examples/scripts/transpose.py --n 1024
    simtbed whatif --block 64,128,256 --tie BLOCK=block.x --kernel block_sum examples/block_sum.py
    simtbed whatif --replace l2=25MB --objective bytes --json saxpy.py
    """
    planned_target, selection = (
        find_target(target, arguments, options.input, options.selection.emulate),
        options.selection,
    )
    varied = axes(options.block, options.grid, options.const or (), options.tie or ())
    devices = chosen_devices(options.device, options.replace)
    make = partial(Planner, axes=varied, devices=devices, kernels=selection.kernel, number=selection.launch)
    files = {"--csv": options.csv, "--svg": options.svg, "--html": options.html, "--output": options.output}
    with report_files(files, planned_target.files, options.device.split(",")) as outputs:
        completed = run_target(planned_target, make, output=program_output(outputs))
        require_launches(completed, planned_target)
        chosen = without_setup_kernels(completed.run, planned_target).select(selection.kernel, selection.launch)
        planned = [launch.request for launch in chosen.launches if isinstance(launch.request, Planned)]
        require_constants(varied, (name for plan in planned for name in plan.constants))
        with progress(f"what if: {planned_target}") as show:
            table = run(
                [task for plan in planned for task in plan.tasks],
                objective=options.objective.value, cold=options.cold, dask=options.dask,
                registers=None if options.source_only else registers_of, source_only=options.source_only,
                comparison=options.comparison, progress=show,
            )  # fmt: skip
        names = ", ".join(device.name for device in devices)
        title = f"{planned_target}: {names}, {'cold' if options.cold else 'warm'} caches"
        if (file := outputs.get("--csv")) is not None:
            write_lines(file, Document(table.csv().rstrip("\n")))
        if (file := outputs.get("--svg")) is not None:
            write_lines(file, Document(report.plots(table)[0].svg))
        if (file := outputs.get("--html")) is not None:
            write_lines(file, Document(report.page(title, table, devices)))
        text = report.as_json(table) if options.json else report.text(title, table)
        write_report(outputs, text)
    return completed.code
