"""Options that several commands have."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from simtbed.kernels.family import deferred
from simtbed.kernels.files.inputs import MEMORY as OF_COMMANDS

from .parameters import ARGUMENTS, Option, Program, Size


class Engine(StrEnum):
    """The engines a kernel can run on."""

    jit = "jit"
    numpy = "numpy"
    cuda = "cuda"


class Emulator(StrEnum):
    """The engines that count and check."""

    jit = "jit"
    numpy = "numpy"


Output = Annotated[
    Path | None,
    Option(
        (
            "--output",
            "-o",
        ),
        metavar="OUT",
        help="Instead of stdout, which - stands for.",
    ),
]
Variant = Annotated[str, Option(("--variant",), help="How it is computed: see `simtbed list`.")]
_TARGET = Program(
    metavar="TARGET",
    help="A script, PACKAGE.MODULE, MODULE:FUNCTION, FILE.py:FUNCTION, or a variant of `simtbed list`.",
    is_program=deferred("simtbed.reports.targets.target:is_program"),
)
TargetArgument = Annotated[str, _TARGET]
TargetOrAll = Annotated[str | None, _TARGET]
TargetArguments = Annotated[tuple[str, ...], ARGUMENTS]
RunOn = Annotated[Engine, Option(("--engine",), help="Where the kernels run.")]
Report = Annotated[
    Path | None,
    Option(
        (
            "--output",
            "-o",
        ),
        metavar="OUT",
        help="Where the report goes; else to stdout for a variant, and to stderr for a program of yours.",
    ),
]
Kernels = Annotated[str, Option(("--kernel",), metavar="PATTERN", help="Only kernels with such a name, as in b*.")]
Number = Annotated[
    int | None, Option(("--launch",), metavar="N", min=0, max=1 << 40, help="Only launch N, from 0, of those kernels.")
]
Counting = Annotated[bool, Option(("--counters",), help="Count, and print the totals.")]
Checking = Annotated[bool, Option(("--check",), help="Compare with the oracle.")]
Example = Annotated[bool, Option(("--example",), help="Run on the shipped example instead of IN.")]
Gpus = Annotated[int, Option(("--gpus",), min=1, max=1024, metavar="N", help="Share the work, with --engine cuda.")]
MaxMemory = Annotated[
    Size, Option(("--max-memory",), metavar="SIZE", help="Most bytes of arrays that the input sizes, such as 512M.")
]
MEMORY = Size(OF_COMMANDS)
Dask = Annotated[
    str | None,
    Option(("--dask",), metavar="ADDRESS", help="Share the work with a Dask cluster; local: with processes here."),
]
Threads = Annotated[
    int | None,
    Option(("--threads",), min=1, max=1024, metavar="N", help="Cores to use; else SIMTBED_THREADS, or all."),
]
Json = Annotated[bool, Option(("--json",), help="Print JSON instead of tables.")]
Input = Annotated[Path | None, Option(("--input",), metavar="FILE", help="Instead of the shipped example.")]
OnlyFamily = Annotated[str | None, Option(("--family",), help="Only this family.")]
Device = Annotated[str, Option(("--device",), metavar="NAME", help="A device of the list, or a TOML file of your own.")]
Cases = Annotated[
    list[str] | None,
    Option(("--cases",), metavar="MODULE:FUNCTION", help="What to launch; default: every variant on its example."),
]
Budget = Annotated[Path | None, Option(("--budget",), metavar="FILE", help="Hold each kernel to its baseline in FILE.")]
Soft = Annotated[float, Option(("--soft",), help="Changes up to this are not told.", metavar="PERCENT", min=0, max=1e9)]
Hard = Annotated[float, Option(("--hard",), help="Changes up to this are remarks.", metavar="PERCENT", min=0, max=1e9)]
Compiled = Annotated[
    bool, Option(("--compiled",), help="Budget registers, spills and local memory too; needs nvcc, not a GPU.")
]
UpdateBudget = Annotated[bool, Option(("--update-budget",), help="Write the baselines of --budget.")]
