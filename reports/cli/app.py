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
    align = "align"
    correct = "correct"
    sfs = "sfs"


class Section(StrEnum):
    """What the pair-HMM's benchmark has."""

    lengths = "lengths"
    files = "files"
    ren = "ren"
    tables = "tables"


class Format(StrEnum):
    """How Pair-HMM answers are written."""

    gpupairhmm = "gpupairhmm"
    tsv = "tsv"


class Strategy(StrEnum):
    """What becomes of an alternate's ends, by GATK's names."""

    SOFTCLIP = "SOFTCLIP"
    INDEL = "INDEL"
    LEADING_INDEL = "LEADING_INDEL"
    IGNORE = "IGNORE"


class AlignmentFormat(StrEnum):
    """How alignments are written."""

    tsv = "tsv"
    sam = "sam"


class Filter(StrEnum):
    """What tells `simtbed correct` whether a k-mer is solid."""

    exact = "exact"
    bloom = "bloom"
    split_first = "split-first"


class Mode(StrEnum):
    """What is made of genotype likelihoods."""

    product = "product"
    saf = "saf"
    gama = "gama"


class SpectraFormat(StrEnum):
    """How site frequency spectra are written."""

    tsv = "tsv"
    npz = "npz"


class Polarise(StrEnum):
    """Which allele is counted."""

    minor = "minor"
    alt = "alt"


Gpus = Annotated[int, typer.Option("--gpus", min=1, metavar="N", help="Share the work, with --engine cuda.")]
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
    gpus: Gpus = 1,
    json: Json = False,
) -> int:
    """Pair-HMM forward likelihoods, from file to file.

    What --check and --counters report goes to stdout if the answer goes to a file, and to stderr otherwise.
    """
    from simtbed import SimtbedError

    from . import commands

    if (source is None) != example:
        raise SimtbedError("pairhmm takes a file, or --example")
    if counters and engine is Engine.cuda:
        raise SimtbedError("--counters needs an emulator, jit or numpy: the cuda engine does not count")
    if json and not (check or counters):
        raise SimtbedError("--json is about reports: ask for --check or --counters too")
    return commands.pairhmm(source, target, variant, engine.value, form.value, counters, check, json, gpus)


@app.command()
def align(
    source: Annotated[
        Path | None, typer.Argument(metavar="IN", help="Rows of reference, tab, alternate; or FASTA.")
    ] = None,
    alternates: Annotated[Path | None, typer.Argument(metavar="[ALT]", help="FASTA, if IN is.")] = None,
    target: Annotated[Path | None, typer.Option("--output", "-o", metavar="OUT", help="Instead of stdout.")] = None,
    parameters: Annotated[
        str, typer.Option(metavar="M,X,O,E", help="Match, mismatch, opening, extending a gap.")
    ] = "200,-150,-260,-11",
    strategy: Annotated[Strategy, typer.Option(help="What becomes of the alternate's ends.")] = Strategy.SOFTCLIP,
    variant: Annotated[str, typer.Option(help="How it is computed: see `simtbed list`.")] = "packed",
    engine: Annotated[Engine, typer.Option(help="Where the kernels run.")] = Engine.jit,
    form: Annotated[AlignmentFormat, typer.Option("--format", help="How the answer is written.")] = AlignmentFormat.tsv,
    counters: Annotated[bool, typer.Option("--counters", help="Count, and print the totals.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Compare with the oracle.")] = False,
    example: Annotated[bool, typer.Option("--example", help="Run on the shipped example instead of IN.")] = False,
    gpus: Gpus = 1,
    json: Json = False,
) -> int:
    """Semi-global alignment with traceback, from file to file: CIGAR, offset and score of every pair.

    What --check and --counters report goes to stdout if the answer goes to a file, and to stderr otherwise.
    """
    from . import align as alignment

    how = alignment.How(variant, engine.value, parameters, strategy.value, form.value, counters, check, json, gpus)
    return alignment.align(source, alternates, target, example, how)


@app.command()
def correct(
    source: Annotated[Path, typer.Argument(metavar="IN", help="FASTQ or FASTA; plain or gzip.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="OUT", help="Instead of stdout.")] = None,
    k: Annotated[int, typer.Option("--k", help="Bases of a k-mer, 12 to 31.")] = 20,
    min_multiplicity: Annotated[int, typer.Option(help="How often a solid k-mer is seen, both strands counted.")] = 6,
    min_votes: Annotated[int, typer.Option(help="A change needs more votes than this.")] = 2,
    max_trim: Annotated[int, typer.Option(help="Bases that trimming may take from either end.")] = 20,
    no_trim: Annotated[bool, typer.Option("--no-trim", help="Discard what would be trimmed.")] = False,
    variant: Annotated[str, typer.Option(help="How it is computed: see `simtbed list`.")] = "packed",
    filter: Annotated[Filter, typer.Option(help="What tells whether a k-mer is solid.")] = Filter.exact,
    discarded: Annotated[
        Path | None, typer.Option("--discarded", metavar="FILE", help="For discarded reads, as they were.")
    ] = None,
    log: Annotated[
        Path | None, typer.Option("--log", metavar="TSV", help="Flag, sequence, edits of every read.")
    ] = None,
    truth: Annotated[
        Path | None, typer.Option("--truth", metavar="FILE", help="The same reads without errors: report accuracy.")
    ] = None,
    engine: Annotated[Engine, typer.Option(help="Where the kernels run.")] = Engine.jit,
    json: Json = False,
) -> int:
    """Correct sequencing errors in reads, from file to file.

    IN is read twice. What was done is reported on stdout if the reads go to a file, and on stderr otherwise.
    """
    from simtbed.kernels.correction.host.pipeline_files import Targets
    from simtbed.kernels.correction.host.problem import Parameters

    from . import correct as command

    parameters = Parameters(k, min_multiplicity, min_votes, max_trim, not no_trim, filter.value)
    return command.correct(source, Targets(output, discarded, log), parameters, variant, engine.value, truth, json)


@app.command()
def simulate(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FASTQ", help="Reads with errors.")],
    truth: Annotated[Path | None, typer.Option("--truth", metavar="FASTA", help="The same without errors.")] = None,
    reference: Annotated[
        Path | None, typer.Option("--reference", metavar="FASTA", help="Of A, C, G, T; else one is made at random.")
    ] = None,
    genome: Annotated[int, typer.Option(help="Bases of a reference made at random.")] = 100_000,
    coverage: Annotated[float, typer.Option(help="Bases of reads for each base of the reference.")] = 30.0,
    length: Annotated[str, typer.Option(metavar="N|N-M", help="Bases of a read; a range is drawn from.")] = "36",
    error_rate: Annotated[float, typer.Option(help="Substitutions a base.")] = 0.01,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal reads.")] = 1,
) -> int:
    """Make reads with sequencing errors, to try `simtbed correct` on."""
    from . import correct as command

    return command.simulate(output, truth, reference, genome, coverage, length, error_rate, seed)


@app.command()
def sfs(
    source: Annotated[
        Path | None,
        typer.Argument(metavar="IN", help="VCF, BCF, Beagle likelihoods, or npz with P: sites x individuals x 3."),
    ] = None,
    target: Annotated[Path | None, typer.Option("--output", "-o", metavar="OUT", help="Instead of stdout.")] = None,
    mode: Annotated[
        Mode, typer.Option(help="product: log of the plain product; saf: ANGSD's -doSaf; gama: the posterior of GAMA.")
    ] = Mode.saf,
    form: Annotated[SpectraFormat, typer.Option("--format", help="How the answer is written.")] = SpectraFormat.tsv,
    polarise: Annotated[
        Polarise | None,
        typer.Option(help="Count the rarer allele, or the second. [VCF, BCF: minor; Beagle, npz: alt, as they say]"),
    ] = None,
    variable: Annotated[
        float, typer.Option("--p-variable", metavar="P", help="gama: prior that a site varies.")
    ] = 0.015,
    epsilon: Annotated[float, typer.Option(metavar="E", help="gama: sequencing error rate.")] = 0.005,
    variant: Annotated[str, typer.Option(help="How it is computed: see `simtbed list`.")] = "tiled",
    engine: Annotated[Engine, typer.Option(help="Where the kernels run.")] = Engine.jit,
    spectrum: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The spectrum over sites as TSV, and its picture beside it: FILE.svg."),
    ] = None,
    example: Annotated[bool, typer.Option("--example", help="Run on a generated example instead of IN.")] = False,
    json: Json = False,
) -> int:
    """Site frequency spectra of N individuals, from file to file: 2N + 1 values a site.

    What was read, skipped and left out is told on stdout if the answer goes to a file, and on stderr otherwise.
    """
    from simtbed import SimtbedError

    from .sfs import Wanted
    from .sfs import sfs as command

    if (source is None) != example:
        raise SimtbedError("sfs takes a file, or --example")
    wanted = Wanted(
        mode.value, polarise.value if polarise else None, variable, epsilon, variant, engine.value, form.value, spectrum
    )
    return command(source, target, wanted, json)


@app.command()
def profile(
    variant: Annotated[str, typer.Argument(metavar="VARIANT", help="See `simtbed list`.")],
    source: Input = None,
    device: Device = "H200",
    sass: Annotated[
        bool, typer.Option("--sass", help="What its compiled kernels execute; needs nvcc and nvdisasm, not a GPU.")
    ] = False,
    json: Json = False,
) -> int:
    """What a variant would cost on a device: totals, efficiencies, and its source line by line.

    Instructions are the IR's; with --sass they are the compiled kernels', weighed by what the emulator counts.
    """
    from . import commands

    return commands.profile(variant, source, device, sass, json)


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
def check(
    variant: Annotated[str | None, typer.Argument(metavar="VARIANT", help="See `simtbed list`; all if none.")] = None,
    family: Annotated[str | None, typer.Option(help="Only this family.")] = None,
    what: Annotated[
        str,
        typer.Option(
            "--check", metavar="NAMES", help="all, or some of bounds,uninitialised,races,barriers,arithmetic."
        ),
    ] = "all",
    engine: Annotated[Engine, typer.Option(help="jit or numpy.")] = Engine.jit,
    device: Device = "H200",
    schedules: Annotated[
        int, typer.Option(metavar="N", min=0, help="Run each launch in N more orders of warps and blocks too.")
    ] = 0,
    source: Input = None,
    json: Json = False,
) -> int:
    """Variants over a whole input under the checkers: races, unwritten words, barriers, indices, arithmetic."""
    from . import check

    return check.check(variant, family, what, engine.value, device, schedules, source, json)


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


hardware = typer.Typer(help="The emulator's counters beside Nsight Compute's.", rich_markup_mode=None)
app.add_typer(hardware, name="hardware")
Cases = Annotated[
    list[str] | None,
    typer.Option("--cases", metavar="MODULE:FUNCTION", help="What to launch; default: every variant on its example."),
]


@hardware.command()
def record(
    target: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of DEVICE.json.")
    ] = None,
    cases: Cases = None,
    only: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Cases that fit, such as 'sfs *'; FILE keeps its others.")
    ] = None,
) -> int:
    """Profile this machine's GPU with Nsight Compute and write what it counts."""
    from . import commands

    return commands.hardware_record(target, cases, only)


@hardware.command()
def compare(
    device: Annotated[
        str, typer.Option(metavar="NAME", help="A device whose record is kept, or a record file.")
    ] = "H200",
    cases: Cases = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="The full report, as Markdown.")] = False,
    json: Json = False,
) -> int:
    """The emulator beside a record, on any machine; 1 where a figure falls short and no reason is known."""
    from . import commands

    return commands.hardware_compare(device, cases, markdown, json)


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
    only: Annotated[
        list[Section] | None, typer.Option("--only", help="Of the pair-HMM's sections; may be given again.")
    ] = None,
    json: Json = False,
) -> int:
    """How fast the jit engine emulates on this machine, beside scalar code; or how fast a family's kernels are on a
    GPU, or what they cost on the emulator. Takes minutes."""
    if what is Bench.sfs:
        from ..bench import sfs

        return sfs.bench(engine.value, repeat, json)
    if what is Bench.pairhmm:
        from ..bench import pairhmm

        return pairhmm.bench(engine.value, repeat, pairs, source, json, [section.value for section in only or ()])
    if what is Bench.align:
        from ..bench import align

        return align.bench(engine.value, repeat, json)
    if what is Bench.correct:
        from ..bench import correct

        return correct.bench(engine.value, repeat, json)
    from ..bench import emulation as benchmark

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
        from simtbed import FaultError, SimtbedError

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
