"""The command line: its words, its options, and how errors leave it. The work is in `commands`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

# Nothing of the emulator is imported here: `simtbed --help` must not wait for Numba.
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
_UsageError: Any = typer.BadParameter.__mro__[1]  # typer shows no name for it


class Engine(StrEnum):
    """The engines a kernel can run on."""

    jit = "jit"
    numpy = "numpy"
    cuda = "cuda"


class Bench(StrEnum):
    """What can be measured."""

    emulator = "emulator"
    pairhmm = "pairhmm"


class Format(StrEnum):
    """How Pair-HMM answers are written."""

    gpupairhmm = "gpupairhmm"
    tsv = "tsv"


Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Input = Annotated[Path | None, typer.Option("--input", metavar="FILE", help="Instead of the shipped example.")]
Device = Annotated[
    str, typer.Option("--device", metavar="NAME", help="A device of the list, or a TOML file of your own.")
]


@app.callback()
def simtbed() -> None:
    """A testbed for GPU kernels that needs no GPU.

    Exit codes: 0; 1 for a finding (a fault, a disagreement); 2 for bad use or input.
    """


@app.command("list")
def list_(json: Json = False) -> int:
    """The kernel families, their variants, and the devices."""
    from . import commands

    return commands.list_all(json)


@app.command()
def pairhmm(
    source: Annotated[Path | None, typer.Argument(metavar="IN", help="Reads and haplotypes; plain or gzip.")] = None,
    target: Annotated[Path | None, typer.Option("--output", "-o", metavar="OUT", help="Instead of stdout.")] = None,
    variant: Annotated[str, typer.Option(help="How it is computed: see `simtbed list`.")] = "wavefront-rescaled",
    engine: Annotated[Engine, typer.Option(help="Where the kernels run.")] = Engine.jit,
    form: Annotated[Format, typer.Option("--format", help="How the answer is written.")] = Format.gpupairhmm,
    counters: Annotated[bool, typer.Option("--counters", help="Count, and print the totals.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Compare with the oracle.")] = False,
    example: Annotated[bool, typer.Option("--example", help="Run on the shipped example instead of IN.")] = False,
    json: Json = False,
) -> int:
    """Pair-HMM forward likelihoods, from file to file.

    What --check and --counters report goes to stdout if the answer goes to a file, and to stderr otherwise.
    """
    from simtbed.emulator import SimtbedError

    from . import commands

    if (source is None) != example:
        raise SimtbedError("pairhmm takes a file, or --example")
    if counters and engine is Engine.cuda:
        raise SimtbedError("--counters needs an emulator, jit or numpy: the cuda engine does not count")
    if json and not (check or counters):
        raise SimtbedError("--json is about reports: ask for --check or --counters too")
    return commands.pairhmm(source, target, variant, engine.value, form.value, counters, check, json)


@app.command()
def profile(
    variant: Annotated[str, typer.Argument(metavar="VARIANT", help="See `simtbed list`.")],
    source: Input = None,
    device: Device = "H200",
    json: Json = False,
) -> int:
    """What a variant would cost on a device: totals, efficiencies, and its source line by line."""
    from . import commands

    return commands.profile(variant, source, device, json)


@app.command()
def verify(
    family: Annotated[str | None, typer.Option(help="Only this family.")] = None,
    variant: Annotated[str | None, typer.Option(help="Only this variant.")] = None,
    engine: Annotated[Engine | None, typer.Option(help="Only this engine, which then must be able to run.")] = None,
    source: Input = None,
    json: Json = False,
) -> int:
    """Every variant on every engine, against its oracle."""
    from . import commands

    return commands.verify(family, variant, engine.value if engine else None, source, json)


@app.command()
def cuda(
    variant: Annotated[str, typer.Argument(metavar="VARIANT", help="See `simtbed list`.")],
    build: Annotated[bool, typer.Option("--compile", help="Run nvcc; print registers, memory and spills.")] = False,
    arch: Annotated[str, typer.Option(help="What to compile for.")] = "sm_90",
    json: Json = False,
) -> int:
    """A variant as CUDA C++: the first launch it makes on the shipped example."""
    from . import commands

    return commands.cuda(variant, build, arch, json)


@app.command()
def access(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV: op, bytes, lanes; with --compare the figures too.")
    ],
    device: Device = "H200",
    compare: Annotated[
        bool, typer.Option("--compare", help="Show the rows that differ from the file's figures.")
    ] = False,
    json: Json = False,
) -> int:
    """Requests, sectors, wavefronts and bank conflicts of single warp accesses."""
    from . import commands

    return commands.access(source, device, compare, json)


@app.command()
def bench(
    what: Annotated[Bench, typer.Argument(help="The jit engine, or a family's kernels.")] = Bench.emulator,
    peers: Annotated[bool, typer.Option("--peers", help="Beside other emulators too.")] = False,
    repeat: Annotated[int, typer.Option(metavar="N", help="Rounds; medians are printed.")] = 7,
    engine: Annotated[
        Engine, typer.Option(help="Of a family's kernels: measured with cuda, else counted.")
    ] = Engine.jit,
    pairs: Annotated[
        int | None, typer.Option(metavar="N", help="Of a family's synthetic sets, instead of all.")
    ] = None,
    source: Input = None,
    json: Json = False,
) -> int:
    """How fast the jit engine emulates on this machine, beside scalar code; or how fast a family's kernels are on a
    GPU, or what they cost on the emulator. Takes minutes."""
    if what is Bench.pairhmm:
        from . import bench_pairhmm

        return bench_pairhmm.bench(engine.value, repeat, pairs, source, json)
    from . import bench as benchmark

    return benchmark.bench(repeat, peers, json)


def run(arguments: Sequence[str]) -> int:
    """One command line; the exit code. Errors are told in one line on stderr."""
    try:
        # Typer wants to print and exit by itself; here errors have one form.
        return int(app(args=list(arguments) or ["--help"], prog_name="simtbed", standalone_mode=False) or 0)
    except _UsageError as error:
        return _refuse(
            f"{error.format_message()} (simtbed --help lists the commands, simtbed COMMAND --help the options)"
        )
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _refuse(f"{error.filename or 'output'}: {error.strerror or error}")
    except Exception as error:
        from simtbed.emulator import FaultError, SimtbedError

        if isinstance(error, FaultError):
            print(error, file=sys.stderr)
            return 1
        if isinstance(error, SimtbedError):
            return _refuse(str(error))
        raise
    except KeyboardInterrupt:
        return 130


def _refuse(message: str) -> int:
    print(f"simtbed: {message}", file=sys.stderr)
    return 2


def main() -> NoReturn:
    """The console script."""
    sys.exit(run(sys.argv[1:]))
