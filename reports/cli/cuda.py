"""`simtbed cuda`: CUDA C++ of the kernels of a target, and their resources as nvcc reports them."""

from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Annotated, Any

from simtbed import SimtbedError
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.printer import Source, cuda_source
from simtbed.kernels.files import Outputs
from simtbed.runtime.engine import Request
from simtbed.runtime.recording import Recorder

from .. import tables
from ..requests import first_request
from ..targets.running import require_launches, run_target
from ..targets.target import Shipped, Target, find_target
from ..terminal import progress
from .options import Json, MathsChoice, Report, SelectionOptions, TargetArgument, TargetArguments
from .output import program_output, report_files, write_report
from .parameters import Option, command


@dataclass(frozen=True, kw_only=True)
class CudaOptions:
    """The options of `simtbed cuda`."""

    selection: SelectionOptions
    build: Annotated[bool, Option(("--compile",), help="Compile with nvcc; print registers, memory and spills.")] = (
        False
    )
    arch: Annotated[str, Option(help="Architecture to compile for.")] = "sm_90"
    maths: Annotated[
        MathsChoice,
        Option(help="native: CUDA's functions; portable: with the bits of the emulators, as launches run them."),
    ] = MathsChoice.native
    output: Report = None
    json: Json = False


@command
def cuda(target: TargetArgument, arguments: TargetArguments = (), *, options: CudaOptions) -> int:
    """Print the kernels of a target as CUDA C++.

    For a program, print each launched kernel with its constants and block size. For a shipped variant, print the
    kernel of the first launch on the shipped example.

    \b
    simtbed cuda -o kernels.cu saxpy.py --n 1000
    simtbed cuda --compile --arch sm_80 file.py:function
    simtbed cuda tree
    """
    chosen = find_target(target, arguments)
    with report_files({"--output": options.output}, chosen.files) as outputs:
        return _print(chosen, options, outputs)


def _print(target: Target, options: CudaOptions, outputs: Outputs) -> int:
    """Print the kernels as text or, with --compile, their resources."""
    code, selection = 0, options.selection
    if isinstance(target, Shipped):
        if not selection.is_complete:
            raise SimtbedError("--kernel and --launch need a program: of a variant, the first launch is printed")
        sources = [_source(first_request(target.family, target.variant, target.family.example()), options)]
    else:
        make = partial(Recorder, engine="jit", counters=False, keep="program")
        completed = run_target(target, make, output=program_output(outputs))
        require_launches(completed, target)
        code, launches = completed.code, completed.run.select(selection.kernel, selection.launch).launches
        printed = [_source(launch.request, options) for launch in launches]
        sources = list({source.text: source for source in printed}.values())
    text = _resources(target, sources, options) if options.build else _text(target, sources, options.json)
    write_report(outputs, text)
    return code


def _heading(target: Target) -> dict[str, str]:
    return {"variant" if isinstance(target, Shipped) else "target": str(target)}


def _text(target: Target, sources: list[Source], json: bool) -> str:
    text = "\n".join(source.text for source in sources)
    if not json:
        return text.removesuffix("\n")
    if isinstance(target, Shipped):
        return tables.as_json({**_heading(target), "source": text})
    kernels = [{"kernel": source.kernel, "source": source.text} for source in sources]
    return tables.as_json({**_heading(target), "kernels": kernels})


def _resources(target: Target, sources: list[Source], options: CudaOptions) -> str:
    heading, rows = _heading(target), []
    for source in sources:
        with progress(f"nvcc -arch={options.arch}"):
            rows.append(_compile(source, options.arch))
    if options.json:
        return tables.as_json({**heading, **rows[0]} if isinstance(target, Shipped) else {**heading, "kernels": rows})
    return "\n\n".join(
        tables.table(
            ["kernel", s.kernel], [(key.replace("_", " "), value) for key, value in {**heading, **row}.items()]
        )
        for s, row in zip(sources, rows, strict=True)
    )


def _source(request: Request, options: CudaOptions) -> Source:
    return cuda_source(request.program, request.block, options.maths.value, request.cluster)


def _compile(source: Source, arch: str) -> dict[str, Any]:
    built = nvcc.build(source.with_lines(), source.kernel, arch)
    resources = replace(built.resources, shared_bytes=built.resources.shared_bytes + source.carved_bytes)
    return {"arch": arch, "compiler": built.compiler, **asdict(resources)}
