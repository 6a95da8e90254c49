"""`simtbed sfs`: genotype likelihoods from a file, spectra to a file, a batch of sites at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from simtbed import SimtbedError
from simtbed.kernels import Family
from simtbed.kernels.files import STANDARD, Outputs, is_file_name, printable
from simtbed.kernels.sfs.host import files, files_spectrum, files_vcf_out
from simtbed.kernels.sfs.host.files import Format, Options, Polarise
from simtbed.kernels.sfs.host.frequency import by_em
from simtbed.kernels.sfs.host.pipeline_files import solve_file
from simtbed.kernels.sfs.host.problem import Floats, Mode, Problem
from simtbed.kernels.sfs.host.sites import SiteCounts
from simtbed.kernels.sfs.host.spectrum import Spectrum
from simtbed.runtime.cores import current_cores, on_cores
from simtbed.runtime.registry import EngineName

from .. import tables
from ..launchers import Runner, launcher_of_workers
from ..selection import find_family
from ..terminal import progress, progress_of_records
from .options import MEMORY, Dask, Engine, Json, MaxMemory, Output, RunOn, Threads, Variant
from .output import require_cluster_options, tell, warn
from .parameters import Argument, Option, command


class ModeName(StrEnum):
    """What is made of genotype likelihoods."""

    product = "product"
    saf = "saf"
    gama = "gama"


class SpectraFormat(StrEnum):
    """How site frequency spectra are written."""

    tsv = "tsv"
    npz = "npz"
    vcf = "vcf"


class Allele(StrEnum):
    """Which allele is counted."""

    minor = "minor"
    alt = "alt"


@command
def sfs(
    source: Annotated[
        Path | None,
        Argument(
            metavar="IN", help="VCF, BCF, Beagle likelihoods, or npz with P: sites x individuals x 3; - is stdin."
        ),
    ] = None,
    target: Output = None,
    mode: Annotated[
        ModeName,
        Option(help="product: log of the plain product; saf: ANGSD's -doSaf; gama: the posterior of GAMA."),
    ] = ModeName.saf,
    form: Annotated[SpectraFormat, Option(("--format",), help="How the answer is written.")] = SpectraFormat.tsv,
    polarise: Annotated[
        Allele | None,
        Option(help="Count the rarer allele, or the second. [VCF, BCF: minor; Beagle, npz: alt, as they say]"),
    ] = None,
    variable: Annotated[
        float, Option(("--p-variable",), metavar="P", min=0, max=1, help="gama: prior that a site varies.")
    ] = 0.015,
    epsilon: Annotated[float, Option(metavar="E", min=0, below=0.5, help="gama: sequencing error rate.")] = 0.005,
    variant: Variant = "tiled",
    engine: RunOn = Engine.jit,
    spectrum: Annotated[
        Path | None,
        Option(metavar="FILE", help="The spectrum over sites as TSV, and its picture beside it: FILE.svg."),
    ] = None,
    example: Annotated[bool, Option(("--example",), help="Run on a generated example instead of IN.")] = False,
    threads: Threads = None,
    dask: Dask = None,
    max_memory: MaxMemory = MEMORY,
    json: Json = False,
) -> int:
    """Site frequency spectra of N individuals, from file to file.

    The answer is 2N + 1 values a site. What was read, skipped and left out is reported on stdout if the answer
    goes to a file, and on stderr otherwise.

    \b
    simtbed sfs --example --mode saf
    simtbed sfs calls.vcf -o spectra.tsv
    """
    if (source is None) != example:
        raise SimtbedError("sfs takes a file, or --example")
    wanted = Wanted(
        mode.value, polarise.value if polarise else None, variable, epsilon, variant, engine.value, form.value, spectrum,
        max_memory, dask or "",
    )  # fmt: skip
    require_cluster_options(dask, counting=False, json=json, gpus=1)
    with on_cores(threads or current_cores()):
        return solve_sites(source, target, wanted, json)


@dataclass(frozen=True)
class Wanted:
    """What the command line asks for."""

    mode: Mode
    polarise: Polarise | None
    variable: float
    epsilon: float
    variant: str
    engine: EngineName
    form: Format
    spectrum: Path | None
    memory: int
    cluster: str = ""

    def check(self, family: Family[Any], target: Path | None) -> None:
        """Raise SimtbedError where it cannot be, before the work begins."""
        if self.variant not in family.variants:
            raise SimtbedError(f"sfs has no variant {self.variant!r}; it has {', '.join(family.variants)}")
        if target is None and self.form == "npz":
            raise SimtbedError("--format npz needs a file: -o OUT")
        if self.form == "vcf":
            files_vcf_out.check_mode(self.mode)
        if self.spectrum is not None and not is_file_name(self.spectrum):
            raise SimtbedError(f"{printable(self.spectrum)}: --spectrum names a file: its picture is written beside it")
        if self.spectrum is not None and self.spectrum.suffix == ".svg":
            raise SimtbedError(f"{self.spectrum}: --spectrum names the table; the picture gets its name with .svg")


def solve_sites(source: Path | None, target: Path | None, wanted: Wanted, json: bool) -> int:
    """From file to file. The report goes to stdout when the answer goes to a file, to stderr otherwise."""
    family = find_family("sfs")
    wanted.check(family, target)
    tally: SiteCounts = Counter()
    runner = Runner(wanted.engine)
    launcher = launcher_of_workers(wanted.engine) if wanted.cluster else runner
    name = "the example" if source is None else str(source)
    targets = {"--output": target or STANDARD, "--spectrum": wanted.spectrum}
    if wanted.spectrum:
        targets["the picture of --spectrum"] = wanted.spectrum.with_suffix(".svg")
    with Outputs(targets, [source]) as outputs, Spectrum(wanted.mode) as total:
        with progress_of_records(f"{wanted.variant} on {name}", "sites") as show:
            take = total.add if wanted.spectrum else _nothing
            problems = _problems(source, wanted, tally)
            solve_file(problems, wanted.form, outputs["--output"], wanted.variant, launcher, take, show, wanted.cluster)
        if wanted.spectrum:
            with progress("the spectrum over sites"):
                found = total.result()
            outputs["--spectrum"].writelines(line.encode() for line in files_spectrum.lines(found))
            title = printable(f"{source.name if source else name}, {wanted.mode}")
            outputs["the picture of --spectrum"].write(files_spectrum.picture(found, title).encode())
    if not tally["sites"]:
        warn(f"{name} has no sites to work on; the answer is empty")
    counts = {what: count for what, count in tally.items() if count or what == "sites"}
    if json:
        tell(outputs, tables.as_json({"launches": runner.launches, "counts": counts}))
    else:
        tell(outputs, "\n".join(f"{n:>12,}  {what}" for what, n in sorted(counts.items(), key=_order)))
    return 0


def _order(counted: tuple[str, int]) -> tuple[bool, bool, str]:
    """The sites of the answer first, then what they are, then what is not in it."""
    what = counted[0]
    return what != "sites", not what.startswith("of these"), what


def _problems(source: Path | None, wanted: Wanted, tally: SiteCounts) -> Iterator[Problem]:
    options = Options(wanted.mode, wanted.polarise, wanted.variable, wanted.epsilon)
    if source is not None:
        return files.problems(source, options, tally, wanted.memory)
    example = find_family("sfs").example()
    tally["sites"] = example.sites
    frequency = by_em(example.likelihoods) if wanted.mode == "gama" else example.frequency
    return iter([replace(example, mode=wanted.mode, frequency=frequency, variable=wanted.variable)])


def _nothing(answer: Floats) -> None:
    """Nobody wants the spectrum over sites."""
