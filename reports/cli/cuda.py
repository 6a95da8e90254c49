"""`simtbed cuda`: a variant as CUDA C++, and what nvcc makes of it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated

import typer
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.printer import cuda_source

from .. import tables
from ..requests import first_request
from ..selection import find_variant
from ..terminal import progress
from .options import Json, VariantArgument, new_app

app = new_app()


@app.command()
def cuda(
    variant: VariantArgument,
    build: Annotated[bool, typer.Option("--compile", help="Run nvcc; print registers, memory and spills.")] = False,
    arch: Annotated[str, typer.Option(help="What to compile for.")] = "sm_90",
    json: Json = False,
) -> int:
    """A variant as CUDA C++.

    Printed is the first launch that it makes on the shipped example.
    """
    family, variant = find_variant(variant)
    request = first_request(family, variant, family.example())
    source = cuda_source(request.program, request.block)
    if not build:
        print(
            tables.as_json({"variant": variant, "source": source.text}) if json else source.text,
            end="\n" if json else "",
        )
        return 0
    with progress(f"nvcc -arch={arch}"):
        built = nvcc.build(source.with_lines(), source.kernel, arch)
    resources = replace(built.resources, shared_bytes=built.resources.shared_bytes + source.carved_bytes)
    content = {"variant": variant, "arch": arch, "compiler": built.compiler, **asdict(resources)}
    if json:
        print(tables.as_json(content))
    else:
        print(
            tables.table(["kernel", source.kernel], [(key.replace("_", " "), value) for key, value in content.items()])
        )
    return 0
