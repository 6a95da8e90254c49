"""Options that several commands have, and the typer application that each command is."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


def new_app(**settings: Any) -> typer.Typer:
    """An application for one command; its help and its errors are plain text."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, **settings)


class Engine(StrEnum):
    """The engines a kernel can run on."""

    jit = "jit"
    numpy = "numpy"
    cuda = "cuda"


Output = Annotated[Path | None, typer.Option("--output", "-o", metavar="OUT", help="Instead of stdout.")]
Variant = Annotated[str, typer.Option("--variant", help="How it is computed: see `simtbed list`.")]
VariantArgument = Annotated[str, typer.Argument(metavar="VARIANT", help="See `simtbed list`.")]
RunOn = Annotated[Engine, typer.Option("--engine", help="Where the kernels run.")]
Counting = Annotated[bool, typer.Option("--counters", help="Count, and print the totals.")]
Checking = Annotated[bool, typer.Option("--check", help="Compare with the oracle.")]
Example = Annotated[bool, typer.Option("--example", help="Run on the shipped example instead of IN.")]
Gpus = Annotated[int, typer.Option("--gpus", min=1, metavar="N", help="Share the work, with --engine cuda.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Input = Annotated[Path | None, typer.Option("--input", metavar="FILE", help="Instead of the shipped example.")]
OnlyFamily = Annotated[str | None, typer.Option("--family", help="Only this family.")]
Device = Annotated[
    str, typer.Option("--device", metavar="NAME", help="A device of the list, or a TOML file of your own.")
]
Cases = Annotated[
    list[str] | None,
    typer.Option("--cases", metavar="MODULE:FUNCTION", help="What to launch; default: every variant on its example."),
]
