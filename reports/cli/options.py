"""Options and groups of options shared by several commands."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from simtbed.kernels.family import deferred
from simtbed.kernels.files.inputs import MEMORY as DEFAULT_MEMORY

from .parameters import ARGUMENTS, Option, Program, Size


class MathsChoice(StrEnum):
    """Mathematical functions of printed kernels, by the name on the command line."""

    native = "native"
    portable = "portable"


class Engine(StrEnum):
    """Engines that run kernels."""

    jit = "jit"
    numpy = "numpy"
    cuda = "cuda"


class Emulator(StrEnum):
    """Engines with counters and checkers."""

    jit = "jit"
    numpy = "numpy"


Output = Annotated[
    Path | None, Option(("--output", "-o"), metavar="OUT", help="Write the answer to OUT; - or by default stdout.")
]
Variant = Annotated[str, Option(("--variant",), help="Kernel variant; see `simtbed list`.")]
_TARGET = Program(
    metavar="TARGET",
    help="A script, a .cu file, PACKAGE.MODULE, MODULE:FUNCTION, FILE.py:FUNCTION, or a variant of `simtbed list`.",
    is_program=deferred("simtbed.reports.targets.target:is_program"),
    is_built=deferred("simtbed.reports.targets.target:is_built"),
)
TargetArgument = Annotated[str, _TARGET]
TargetProgram = Annotated[
    str | None,
    Program(
        metavar="TARGET",
        help="A script, a .cu file, PACKAGE.MODULE, MODULE:FUNCTION or FILE.py:FUNCTION.",
        is_program=deferred("simtbed.reports.targets.target:is_program"),
        is_built=deferred("simtbed.reports.targets.target:is_built"),
    ),
]
TargetOrAll = Annotated[str | None, _TARGET]
TargetArguments = Annotated[tuple[str, ...], ARGUMENTS]
RunOn = Annotated[Engine, Option(("--engine",), help="Engine that runs the kernels.")]
Report = Annotated[
    Path | None,
    Option(
        ("--output", "-o"),
        metavar="OUT",
        help="Write the report to OUT; by default stdout, and the output of a program to stderr.",
    ),
]
Kernels = Annotated[str, Option(("--kernel",), metavar="PATTERN", help="Select kernels by name, for example b*.")]
Number = Annotated[
    int | None,
    Option(("--launch",), metavar="N", min=0, max=1 << 40, help="Select launch N of these kernels, counted from 0."),
]
Counting = Annotated[bool, Option(("--counters",), help="Collect counters and print the totals.")]
Checking = Annotated[bool, Option(("--check",), help="Compare the answer with the oracle.")]
Example = Annotated[bool, Option(("--example",), help="Run on the shipped example instead of IN.")]
Gpus = Annotated[
    int,
    Option(
        ("--gpus",),
        min=1,
        max=1024,
        metavar="N",
        help="Distribute the work to at most N GPUs, one for each 256 MiB of the file; needs --engine cuda.",
    ),
]
MaxMemory = Annotated[
    Size,
    Option(
        ("--max-memory",), metavar="SIZE", help="Limit the arrays sized by the input to SIZE bytes, for example 512M."
    ),
]
MEMORY = Size(DEFAULT_MEMORY)
Dask = Annotated[
    str | None,
    Option(
        ("--dask",),
        metavar="ADDRESS",
        help="Distribute the work to a Dask cluster; local: to processes on this machine.",
    ),
]
Threads = Annotated[
    int | None,
    Option(
        ("--threads",), min=1, max=1024, metavar="N", help="Use N cores; by default SIMTBED_THREADS, else all cores."
    ),
]
Json = Annotated[bool, Option(("--json",), help="Print JSON instead of tables.")]
Input = Annotated[
    Path | None, Option(("--input",), metavar="FILE", help="Read the problem from FILE instead of the shipped example.")
]
OnlyFamily = Annotated[str | None, Option(("--family",), help="Select the variants of one family.")]
Device = Annotated[
    str, Option(("--device",), metavar="NAME", help="Device of `simtbed list`, or a TOML file with a device.")
]
Cases = Annotated[
    list[str] | None,
    Option(("--cases",), metavar="MODULE:FUNCTION", help="Launches to run; default: every variant on its example."),
]
UpdateBudget = Annotated[bool, Option(("--update-budget",), help="Write the baselines to the file of --budget.")]


@dataclass(frozen=True, kw_only=True)
class SelectionOptions:
    """The selected launches of a target."""

    kernel: Kernels = "*"
    launch: Number = None
    emulate: Annotated[
        str | None,
        Option(
            metavar="NAMES",
            help="Emulate pycuda, cupy and numba in a script; none for the installed libraries. By default those that the "
            "script imports, without a GPU.",
        ),
    ] = None

    @property
    def is_complete(self) -> bool:
        """Whether no launch is excluded."""
        return self.kernel == "*" and self.launch is None


@dataclass(frozen=True, kw_only=True)
class BudgetOptions:
    """The file of baselines and the limits, in percent."""

    budget: Annotated[
        Path | None, Option(("--budget",), metavar="FILE", help="Compare each kernel with its baseline in FILE.")
    ] = None
    soft: Annotated[
        float, Option(("--soft",), help="Ignore changes up to PERCENT.", metavar="PERCENT", min=0, max=1e9)
    ] = 0.0
    hard: Annotated[
        float, Option(("--hard",), help="Report changes up to PERCENT as remarks.", metavar="PERCENT", min=0, max=1e9)
    ] = 0.0


@dataclass(frozen=True, kw_only=True)
class ResourceOptions:
    """Cores, cluster and memory of a command on files."""

    threads: Threads = None
    dask: Dask = None
    max_memory: MaxMemory = MEMORY
