"""`simtbed profile`: counters of a target's kernels on a device, in total and by source line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from simtbed import Device as DeviceRow
from simtbed import LaunchError, Run, SimtbedError, devices
from simtbed.engines.cuda.nvcc import find_nvcc
from simtbed.engines.cuda.sass import find_nvdisasm
from simtbed.escaping import Document
from simtbed.machine.device import MIN_NVCC_CAPABILITY
from simtbed.runtime.cubin_launch import CubinLaunch
from simtbed.runtime.recording import Recorder

from .. import tables
from ..profile import page
from ..targets.running import CompletedTarget, require_launches, run_target, without_setup_kernels
from ..targets.target import Shipped, find_target, target_name
from .budgets import BudgetCheck
from .options import (
    BudgetOptions,
    Device,
    Emulator,
    Input,
    Json,
    Report,
    SelectionOptions,
    TargetArgument,
    TargetArguments,
    UpdateBudget,
)
from .output import program_output, write_lines, write_report
from .parameters import Option, command

if TYPE_CHECKING:  # imported late: it takes half a second
    from simtbed.compiled.kernel import CompiledKernel


@dataclass(frozen=True, kw_only=True)
class ProfileOptions:
    """The options of `simtbed profile`."""

    selection: SelectionOptions
    input: Input = None
    device: Device = "H200"
    engine: Annotated[Emulator, Option(help="Engine that collects the counters.")] = Emulator.jit
    save: Annotated[Path | None, Option(metavar="FILE", help="Save the run to FILE, for `simtbed diff`.")] = None
    html: Annotated[Path | None, Option(metavar="FILE", help="Write a self-contained HTML report to FILE.")] = None
    budget: BudgetOptions
    compiled: Annotated[
        bool,
        Option(
            help="Report the compiled view: instructions and accesses of the SASS; needs nvcc and nvdisasm, not a GPU. With "
            "--budget, compare registers, spills and local memory with the baselines too."
        ),
    ] = False
    source_only: Annotated[bool, Option(help="Count the source only, without nvcc.")] = False
    update_budget: UpdateBudget = False
    output: Report = None
    json: Json = False


@command
def profile(target: TargetArgument, arguments: TargetArguments = (), *, options: ProfileOptions) -> int:
    """Profile the kernels of a target on a device.

    The report has totals and efficiencies over all launches, the costs that another access pattern would avoid, and
    the counters of each source line. With nvcc and nvdisasm it shows the instructions of the compiled kernels beside
    those of the source. With --compiled it describes the compiled kernels instead: their instructions and accesses, and
    the differences from the source. Setup kernels, common to all variants of a family, are excluded.
    With --budget the exit code is 1 if the counters of a kernel differ from its baseline.

    \b
    simtbed profile saxpy.py --n 1000
    simtbed profile --kernel 'tile*' --device K40 -o report.txt transpose.py
    simtbed profile --html page.html package.module:function
    simtbed profile pairhmm/wavefront
    simtbed profile --budget .simtbed/kernels.toml --update-budget transpose.py
    """
    profiled, device = (
        find_target(target, arguments, options.input, options.selection.emulate),
        devices.find(options.device),
    )
    with_budget = options.budget.budget is not None
    budgets = BudgetCheck.from_options(options.budget, options.compiled and with_budget, options.update_budget)
    compiled_view = options.compiled and not with_budget
    both_views = not (options.source_only or options.compiled or with_budget)
    reason = _missing_tool(device) if both_views else ""
    executed = compiled_view or (both_views and not reason)
    keep: Literal["nothing", "program"] = "program" if options.compiled or executed else "nothing"
    make = partial(
        Recorder, engine=options.engine.value, device=device, detail=not compiled_view, compiled=executed, keep=keep
    )
    heading = {"variant" if isinstance(profiled, Shipped) else "target": str(profiled)}
    if isinstance(profiled, Shipped):
        heading["input"] = profiled.input
    paths = {"--save": options.save, "--html": options.html, "--output": options.output}
    selection = options.selection
    with budgets.report_files(paths, profiled.files, options.device) as outputs:
        completed = run_target(profiled, make, output=program_output(outputs))
        require_launches(completed, profiled)
        cubins = _cubin_reports(completed.cubins, selection.kernel, options.json)
        if cubins and not completed.run.launches:
            whole = {**heading, "device": device.name, "cubins": cubins}
            write_report(outputs, tables.as_json(whole) if options.json else "\n\n".join(cubins))
            return completed.code
        run = without_setup_kernels(completed.run, profiled).select(selection.kernel, selection.launch)
        for option, text in (("--save", run.json), ("--html", run.html)):
            if (file := outputs.get(option)) is not None:
                write_lines(file, Document(text()))
        budgets.add(profiled, run)
        budgets.finish(outputs, lambda name: selection.is_complete and name == target_name(profiled))
        compiled = (reason or _compiled(run, device)) if both_views else None
        view = _compiled_view if compiled_view else partial(_source_view, completed=completed, compiled=compiled)
        content = view(heading, run, device, options.json)
        if isinstance(content, str):
            write_report(outputs, "\n\n".join([content, *cubins, *budgets.text()]))
        else:
            added = {"cubins": cubins} if cubins else {}
            write_report(outputs, tables.as_json(content | added | budgets.content()))
    return completed.code or int(bool(budgets.faults))


def _missing_tool(device: DeviceRow) -> str:
    """Return the reason why no kernel can be compiled for a device on this machine; "" if one can."""
    if device.compute_capability < MIN_NVCC_CAPABILITY:
        return f"today's nvcc does not compile for {device.name}"
    try:
        find_nvcc()
        find_nvdisasm()
    except LaunchError as error:
        return str(error)
    return ""


def _compiled(run: Run, device: DeviceRow) -> list[CompiledKernel] | str:
    """Return the compiled kernels of a run with copies of its arrays, or the reason why there are none."""
    from simtbed.compiled.kernel import compiled_kernels
    from simtbed.compiled.kernel_launches import launches_by_kernel

    from ..profile.predicted import tracer

    try:
        launched = launches_by_kernel((one.request, one.counts, one.memory) for one in run.launches)
        return compiled_kernels(launched, "sm_{}{}".format(*device.compute_capability), [*map(tracer, launched)])
    except SimtbedError as error:
        return str(error).splitlines()[0]


def _cubin_reports(launches: Sequence[CubinLaunch], pattern: str, json: bool) -> list[Any]:
    """Return the report of each launch of a cubin."""
    if not launches:
        return []
    from ..profile.predicted import content, cubin_text, executed_cubins

    return [content(kernel) if json else cubin_text(kernel) for kernel in executed_cubins(launches, pattern)]


def _source_view(
    heading: dict[str, str],
    run: Run,
    device: DeviceRow,
    json: bool,
    completed: CompletedTarget,
    compiled: list[CompiledKernel] | str | None,
) -> dict[str, Any] | str:
    """Return the report. compiled: see `page.instructions`; None to omit them."""
    profile, launches, shipped = run.profile, len(run.launches), "variant" in heading
    if json:
        content: dict[str, Any] = {**heading, "device": device.name, "launches": launches}
        content |= page.content(profile, shipped)
        if not shipped:
            content["kernels"] = [
                {"kernel": name, "launches": kernel.launches, **page.content(kernel, shipped)}
                for name, kernel in run.profiles().items()
            ]
        if compiled is not None:
            content |= page.instructions_as_json(compiled)
        return content | ({"predicted": predictions} if (predictions := _predictions(compiled, json)) else {})
    total = len(completed.run.launches)
    count = f"{launches:,}" if launches == total else f"{launches:,} of {total:,}"
    title = f"{' on '.join(heading.values())}, {device.name}, {count} launch{'' if total == 1 else 'es'}"
    kernels = [] if shipped else [page.kernels(run)]
    instructions = [page.instructions(compiled)] if compiled is not None else []
    predictions = _predictions(compiled, json)
    return "\n\n".join([title, *kernels, *instructions, *predictions, page.text(profile, shipped)])


def _predictions(compiled: list[CompiledKernel] | str | None, json: bool) -> list[Any]:
    """Return the predicted time of each kernel that was executed with a trace."""
    timed = [one for one in compiled if one.executed.first.trace is not None] if isinstance(compiled, list) else []
    if not timed:
        return []
    from ..profile.predicted import content, text

    return [content(kernel) if json else text(kernel) for kernel in timed]


def _compiled_view(heading: dict[str, str], run: Run, device: DeviceRow, json: bool) -> dict[str, Any] | str:
    from simtbed.compiled.kernel import compiled_kernels
    from simtbed.compiled.kernel_launches import launches_by_kernel

    from ..profile.compiled import content, text

    launched = launches_by_kernel((one.request, one.counts, one.memory) for one in run.launches)
    kernels = compiled_kernels(launched, "sm_{}{}".format(*device.compute_capability), [None] * len(launched))
    if json:
        rows = [content(kernel) for kernel in kernels]
        return {**heading, "device": device.name, "view": "compiled", "kernels": rows}
    title = f"{' on '.join(heading.values())}, {device.name}: compiled view, counted from the executed SASS"
    return "\n\n".join([title, *map(text, kernels)])
