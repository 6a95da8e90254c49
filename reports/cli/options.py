"""Options that several commands have."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from .parameters import Argument, Option


class Engine(StrEnum):
    """The engines a kernel can run on."""

    jit = "jit"
    numpy = "numpy"
    cuda = "cuda"


Output = Annotated[
    Path | None,
    Option(
        (
            "--output",
            "-o",
        ),
        metavar="OUT",
        help="Instead of stdout.",
    ),
]
Variant = Annotated[str, Option(("--variant",), help="How it is computed: see `simtbed list`.")]
VariantArgument = Annotated[str, Argument(metavar="VARIANT", help="See `simtbed list`.")]
RunOn = Annotated[Engine, Option(("--engine",), help="Where the kernels run.")]
Counting = Annotated[bool, Option(("--counters",), help="Count, and print the totals.")]
Checking = Annotated[bool, Option(("--check",), help="Compare with the oracle.")]
Example = Annotated[bool, Option(("--example",), help="Run on the shipped example instead of IN.")]
Gpus = Annotated[int, Option(("--gpus",), min=1, metavar="N", help="Share the work, with --engine cuda.")]
Json = Annotated[bool, Option(("--json",), help="Print JSON instead of tables.")]
Input = Annotated[Path | None, Option(("--input",), metavar="FILE", help="Instead of the shipped example.")]
OnlyFamily = Annotated[str | None, Option(("--family",), help="Only this family.")]
Device = Annotated[str, Option(("--device",), metavar="NAME", help="A device of the list, or a TOML file of your own.")]
Cases = Annotated[
    list[str] | None,
    Option(("--cases",), metavar="MODULE:FUNCTION", help="What to launch; default: every variant on its example."),
]
