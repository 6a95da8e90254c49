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
    Compiled,
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
    sass: Annotated[
        bool, Option(("--sass",), help="What its compiled kernels execute; needs nvcc and nvdisasm, not a GPU.")
    ] = False,
    save: Annotated[Path | None, Option(metavar="FILE", help="Keep the run, for `simtbed diff`.")] = None,
    html: Annotated[
        Path | None, Option(metavar="FILE", help="Write a page with everything, which needs no network.")
    ] = None,
    budget: Budget = None,
    soft: Soft = 0.0,
    hard: Hard = 0.0,
    compiled: Compiled = False,
    update: UpdateBudget = False,
    output: Report = None,
    json: Json = False,
) -> int:
    """What a target would cost on a device.

    Totals, efficiencies, what costs more than it had to, and the source line by line, of all launches that it makes.
    Instructions are the IR's; with --sass they are the compiled kernels', estimated from what the emulator counts.
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
    held = Held(Budgets.asked(budget, soft, hard, compiled, update))
    keep: Literal["nothing", "program"] = "program" if sass or compiled else "nothing"
    make = partial(Recorder, engine=engine.value, device=row, detail=True, keep=keep)
    heading = {"variant" if isinstance(found, Shipped) else "target": str(found)}
    if isinstance(found, Shipped):
        heading["input"] = found.input
    show = _sass if sass else _counted
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


def _sass(heading: dict[str, str], ran: Ran, run: Run, device: DeviceRow, json: bool) -> dict[str, Any] | str:
    """Instructions of the compiled kernels, estimated from the emulator's counts."""
    from ..hardware.instruction_mix import mixes
    from ..hardware.launched import printed_kernels

    found = mixes(printed_kernels(run.launches), "sm_{}{}".format(*device.compute_capability))
    if json:
        return {**heading, "device": device.name, "kernels": [m.content() for m in found]}
    title = f"{' on '.join(heading.values())}, {device.name}: instructions of the compiled kernels, estimated from the emulator's counts"
    return f"{title}\n\n{tables.table(list(found[0].row()), [list(m.row().values()) for m in found])}"
