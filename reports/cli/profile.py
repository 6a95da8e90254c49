"""`simtbed profile`: what a target's kernels cost on a device, in all and line by line."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from simtbed import Device as DeviceRow
from simtbed import Run, devices
from simtbed.runtime.recording import Recorder

from .. import tables
from ..profile import page
from ..targets.running import Ran, require_launches, run_target
from ..targets.target import Shipped, Target, find_target
from .options import Device, Emulator, Input, Json, Kernels, Number, Report, TargetArgument, TargetArguments
from .output import report_on, reports, write_lines
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
    compiled: Annotated[
        bool, Option(("--compiled",), help="What its compiled kernels do; needs nvcc and nvdisasm, not a GPU.")
    ] = False,
    save: Annotated[Path | None, Option(metavar="FILE", help="Keep the run, for `simtbed diff`.")] = None,
    html: Annotated[
        Path | None, Option(metavar="FILE", help="Write a page with everything, which needs no network.")
    ] = None,
    output: Report = None,
    json: Json = False,
) -> int:
    """What a target would cost on a device.

    Totals, efficiencies, what costs more than it had to, and the source line by line, of all launches that it makes.
    That is the source's view. The compiled view, with --compiled, says what nvcc made of each kernel: its instructions
    and accesses, and where they differ from the source's.
    Launches of a variant that prepare what its whole family needs are left out.

    \b
    simtbed profile saxpy.py --n 1000
    simtbed profile --kernel 'tile*' --device K40 -o report.txt transpose.py
    simtbed profile --html page.html package.module:function
    simtbed profile pairhmm/wavefront
    """
    found, row = find_target(target, arguments, source), devices.find(device)
    keep = {"decisions": True, "keep": "program"} if compiled else {"detail": True}
    make = partial(Recorder, engine=engine.value, device=row, **keep)
    heading = {"variant" if isinstance(found, Shipped) else "target": str(found)}
    if isinstance(found, Shipped):
        heading["input"] = found.input
    show = _compiled if compiled else _counted
    with reports({"--save": save, "--html": html, "--output": output}, found.files, device) as outputs:
        ran = run_target(found, make)
        require_launches(ran, found)
        run = _own(ran.run, found).select(kernel, launch)
        for option, text in (("--save", run.json), ("--html", run.html)):
            if (file := outputs.get(option)) is not None:
                write_lines(file, text())
        report_on(found, outputs.get("--output"), show(heading, ran, run, row, json))
    return ran.code


def _own(run: Run, target: Target) -> Run:
    """The run without the kernels that prepare what all variants of a family need."""
    if not isinstance(target, Shipped):
        return run
    preparing = {(one.__name__, one.function.__code__.co_filename) for one in target.family.preparing()}
    own = [one for one in run.launches if (one.kernel.name, one.kernel.span.file) not in preparing]
    return Run(own, run.target)


def _counted(heading: dict[str, str], ran: Ran, run: Run, device: DeviceRow, json: bool) -> str:
    profile, launches = run.profile, len(run.launches)
    if json:
        content: dict[str, Any] = {**heading, "device": device.name, "launches": launches, **page.content(profile)}
        if "target" in heading:
            content["kernels"] = [
                {"kernel": name, "launches": one.launches, **page.content(one)} for name, one in run.profiles().items()
            ]
        return tables.as_json(content)
    every = len(ran.run.launches)
    of = "" if launches == every else f" of {every:,}"
    plural = "" if every == 1 else "es"
    title = f"{' on '.join(heading.values())}, {device.name}, {launches:,}{of} launch{plural}"
    kernels = [page.kernels(run)] if "target" in heading else []
    return "\n\n".join([title, *kernels, page.text(profile)])


def _compiled(heading: dict[str, str], ran: Ran, run: Run, device: DeviceRow, json: bool) -> str:
    """What the compiled kernels execute and access."""
    from simtbed.compiled.kernel import compiled_kernels
    from simtbed.compiled.launched import printed_kernels

    from ..profile.compiled import content, text

    launched = printed_kernels((one.request, one.counts, one.decisions) for one in run.launches)
    found = compiled_kernels(launched, "sm_{}{}".format(*device.compute_capability))
    if json:
        kernels = [content(kernel) for kernel in found]
        return tables.as_json({**heading, "device": device.name, "view": "compiled", "kernels": kernels})
    title = f"{' on '.join(heading.values())}, {device.name}: the compiled view, counted from nvcc's code and the emulator's decisions"
    return "\n\n".join([title, *map(text, found)])
