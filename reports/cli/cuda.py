"""`simtbed cuda`: the kernels of a target as CUDA C++, and what nvcc makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from functools import partial
from typing import Annotated, Any, BinaryIO

from simtbed import SimtbedError
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.printer import Source, cuda_source
from simtbed.runtime.engine import Request
from simtbed.runtime.recording import Recorder

from .. import tables
from ..requests import first_request
from ..targets.running import require_launches, run_target
from ..targets.target import Shipped, Target, find_target
from ..terminal import progress
from .options import Json, Kernels, Number, Report, TargetArgument, TargetArguments
from .output import report_on, reports
from .parameters import Option, command


@command
def cuda(
    target: TargetArgument,
    arguments: TargetArguments = (),
    kernel: Kernels = "*",
    launch: Number = None,
    build: Annotated[bool, Option(("--compile",), help="Run nvcc; print registers, memory and spills.")] = False,
    arch: Annotated[str, Option(help="What to compile for.")] = "sm_90",
    output: Report = None,
    json: Json = False,
) -> int:
    """The kernels of a target as CUDA C++.

    Of a program, each kernel that it launches, for its constants and its blocks. Of a shipped variant, the first launch
    that it makes on the shipped example.

    \b
    simtbed cuda -o kernels.cu saxpy.py --n 1000
    simtbed cuda --compile --arch sm_80 file.py:function
    simtbed cuda tree
    """
    found = find_target(target, arguments)
    with reports({"--output": output}, found.files) as outputs:
        return _print(found, kernel, launch, arch if build else None, outputs.get("--output"), json)


def _print(
    found: Target, kernel: str, launch: int | None, arch: str | None, output: BinaryIO | None, json: bool
) -> int:
    """The kernels as text; or what nvcc makes of them for an architecture."""
    code = 0
    if isinstance(found, Shipped):
        if (kernel, launch) != ("*", None):
            raise SimtbedError("--kernel and --launch are for programs: of a variant, its first launch is printed")
        sources = [_source(first_request(found.family, found.variant, found.family.example()))]
    else:
        ran = run_target(found, partial(Recorder, engine="jit", counters=False, keep="program"))
        require_launches(ran, found)
        code, launches = ran.code, ran.run.select(kernel, launch).launches
        sources = _distinct(_source(one.request) for one in launches)
    name = {"variant" if isinstance(found, Shipped) else "target": str(found)}
    if arch is None:
        text = "\n".join(source.text for source in sources)
        if json and isinstance(found, Shipped):
            text = tables.as_json({**name, "source": text})
        elif json:
            text = tables.as_json({**name, "kernels": [{"kernel": s.kernel, "source": s.text} for s in sources]})
        report_on(found, output, text.removesuffix("\n"))
        return code
    built = []
    for source in sources:
        with progress(f"nvcc -arch={arch}"):
            built.append(_built(source, arch))
    if json:
        alone = isinstance(found, Shipped)
        report_on(found, output, tables.as_json({**name, **built[0]} if alone else {**name, "kernels": built}))
        return code
    shown = [
        tables.table(["kernel", s.kernel], [(key.replace("_", " "), value) for key, value in {**name, **one}.items()])
        for s, one in zip(sources, built, strict=True)
    ]
    report_on(found, output, "\n\n".join(shown))
    return code


def _source(request: Request) -> Source:
    return cuda_source(request.program, request.block)


def _distinct(sources: Iterable[Source]) -> list[Source]:
    """Each printed text once, in order."""
    return list({source.text: source for source in sources}.values())


def _built(source: Source, arch: str) -> dict[str, Any]:
    built = nvcc.build(source.with_lines(), source.kernel, arch)
    resources = replace(built.resources, shared_bytes=built.resources.shared_bytes + source.carved_bytes)
    return {"arch": arch, "compiler": built.compiler, **asdict(resources)}
