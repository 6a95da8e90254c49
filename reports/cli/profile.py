"""`simtbed profile`: what a target's kernels cost on a device, in all and line by line."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from simtbed import Device as DeviceRow
from simtbed import Run, devices
from simtbed.runtime.recording import Recorder

from .. import tables
from ..profile import page
from ..targets.budgets import Budgets
from ..targets.running import Ran, own, require_launches, run_target
from ..targets.target import Shipped, find_target, target_name
from .budgets import Held, is_whole
from .options import (
    Budget,
    Device,
    Emulator,
    Hard,
    Input,
    Json,
    Kernels,
    Number,
    Report,
    Soft,
    TargetArgument,
    TargetArguments,
    UpdateBudget,
)
from .output import report_on, write_lines
from .parameters import Option, command


@command
def profile(
    target: TargetArgument,
    arguments: TargetArguments = (),
    kernel: Kernels = "*",
    launch: Number = None,
    source: Input = None,
    device: Device = "H200",
    engine: Annotated[Emulator, Option(help="What counts.")] = Emulator.jit,
    save: Annotated[Path | None, Option(metavar="FILE", help="Keep the run, for `simtbed diff`.")] = None,
    html: Annotated[
        Path | None, Option(metavar="FILE", help="Write a page with everything, which needs no network.")
    ] = None,
    budget: Budget = None,
    soft: Soft = 0.0,
    hard: Hard = 0.0,
    compiled: Annotated[
        bool,
        Option(
            ("--compiled",),
            help="The compiled view: what nvcc makes of the kernels; with --budget, budget their registers, spills and local "
            "memory too. Needs nvcc, and nvdisasm for the view, not a GPU.",
        ),
    ] = False,
    update: UpdateBudget = False,
    output: Report = None,
    json: Json = False,
) -> int:
    """What a target would cost on a device.

    Totals, efficiencies, what costs more than it had to, and the source line by line, of all launches that it makes.
    That is the source's view. The compiled view, with --compiled, says what nvcc made of each kernel: its instructions
    and accesses, and where they differ from the source's.
    Launches of a variant that prepare what its whole family needs are left out. With --budget the exit code is 1 where a
    kernel costs something else than its baseline says.

    \b
    simtbed profile saxpy.py --n 1000
    simtbed profile --kernel 'tile*' --device K40 -o report.txt transpose.py
    simtbed profile --html page.html package.module:function
    simtbed profile pairhmm/wavefront
    simtbed profile --budget .simtbed/kernels.toml --update-budget transpose.py
    """
    found, row = find_target(target, arguments, source), devices.find(device)
    held = Held(Budgets.asked(budget, soft, hard, compiled and budget is not None, update))
    keep: Literal["nothing", "program"] = "program" if compiled else "nothing"
    view = compiled and budget is None
    make = partial(Recorder, engine=engine.value, device=row, detail=not view, decisions=view, keep=keep)
    heading = {"variant" if isinstance(found, Shipped) else "target": str(found)}
    if isinstance(found, Shipped):
        heading["input"] = found.input
    show = _compiled if view else _counted
    paths = {"--save": save, "--html": html, "--output": output}
    with held.reports(paths, found.files, device) as outputs:
        ran = run_target(found, make)
        require_launches(ran, found)
        run = own(ran.run, found).select(kernel, launch)
        for option, text in (("--save", run.json), ("--html", run.html)):
            if (file := outputs.get(option)) is not None:
                write_lines(file, text())
        held.add(found, run)
        held.end(outputs, lambda name: is_whole(kernel, launch) and name == target_name(found))
        content = show(heading, ran, run, row, json)
        if isinstance(content, str):
            report_on(found, outputs.get("--output"), "\n\n".join([content, *held.text()]))
        else:
            report_on(found, outputs.get("--output"), tables.as_json(content | held.content()))
    return ran.code or int(bool(held.faults))


def _counted(heading: dict[str, str], ran: Ran, run: Run, device: DeviceRow, json: bool) -> dict[str, Any] | str:
    profile, launches = run.profile, len(run.launches)
    if json:
        content: dict[str, Any] = {**heading, "device": device.name, "launches": launches, **page.content(profile)}
        if "target" in heading:
            content["kernels"] = [
                {"kernel": name, "launches": one.launches, **page.content(one)} for name, one in run.profiles().items()
            ]
        return content
    every = len(ran.run.launches)
    of = "" if launches == every else f" of {every:,}"
    plural = "" if every == 1 else "es"
    title = f"{' on '.join(heading.values())}, {device.name}, {launches:,}{of} launch{plural}"
    kernels = [page.kernels(run)] if "target" in heading else []
    return "\n\n".join([title, *kernels, page.text(profile)])


def _compiled(heading: dict[str, str], ran: Ran, run: Run, device: DeviceRow, json: bool) -> dict[str, Any] | str:
    """What the compiled kernels execute and access."""
    from simtbed.compiled.kernel import compiled_kernels
    from simtbed.compiled.kernel_launches import printed_kernels

    from ..profile.compiled import content, text

    launched = printed_kernels((one.request, one.counts, one.decisions) for one in run.launches)
    found = compiled_kernels(launched, "sm_{}{}".format(*device.compute_capability))
    if json:
        return {**heading, "device": device.name, "view": "compiled", "kernels": [content(kernel) for kernel in found]}
    title = f"{' on '.join(heading.values())}, {device.name}: the compiled view, counted from nvcc's code and the emulator's decisions"
    return "\n\n".join([title, *map(text, found)])
