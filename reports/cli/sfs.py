"""`simtbed sfs`: site frequency spectra of a file of genotype likelihoods, one batch of sites at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from simtbed import SimtbedError
from simtbed.escaping import printable
from simtbed.kernels import Family
from simtbed.kernels.files import STANDARD, Outputs, is_file_name
from simtbed.kernels.sfs.host import files, files_spectrum, files_vcf_out
from simtbed.kernels.sfs.host.files import Options
from simtbed.kernels.sfs.host.frequency import by_em
from simtbed.kernels.sfs.host.pipeline_files import solve_file
from simtbed.kernels.sfs.host.problem import Floats, Mode, Problem
from simtbed.kernels.sfs.host.sites import SiteCounts
from simtbed.kernels.sfs.host.spectrum import Spectrum
from simtbed.runtime.cores import current_cores, on_cores

from .. import tables
from ..launchers import Runner, launcher_of_workers
from ..selection import find_family
from ..terminal import progress, progress_of_records
from .options import Engine, Json, Output, ResourceOptions, RunOn, Variant
from .output import print_report, require_cluster_options, warn
from .parameters import Argument, Option, command


class ModeName(StrEnum):
    """Quantities computed from genotype likelihoods."""

    product = "product"
    saf = "saf"
    gama = "gama"


class SpectraFormat(StrEnum):
    """File formats of site frequency spectra."""

    tsv = "tsv"
    npz = "npz"
    vcf = "vcf"


class Allele(StrEnum):
    """The counted allele."""

    minor = "minor"
    alt = "alt"


@dataclass(frozen=True, kw_only=True)
class SfsOptions:
    """The options of `simtbed sfs`."""

    mode: Annotated[
        ModeName,
        Option(help="product: log of the plain product; saf: -doSaf of ANGSD; gama: posterior of GAMA."),
    ] = ModeName.saf
    format: Annotated[SpectraFormat, Option(help="Format of the answer.")] = SpectraFormat.tsv
    polarise: Annotated[
        Allele | None,
        Option(help="Count the minor or the alternate allele. [default: VCF, BCF: minor; Beagle, npz: alt]"),
    ] = None
    p_variable: Annotated[
        float, Option(metavar="P", min=0, max=1, help="gama: prior probability of a variable site.")
    ] = 0.015
    epsilon: Annotated[float, Option(metavar="E", min=0, below=0.5, help="gama: sequencing error rate.")] = 0.005
    variant: Variant = "tiled"
    engine: RunOn = Engine.jit
    spectrum: Annotated[
        Path | None,
        Option(metavar="FILE", help="Write the spectrum over all sites as TSV to FILE and as a plot to FILE.svg."),
    ] = None
    example: Annotated[bool, Option(help="Run on a generated example instead of IN.")] = False
    resources: ResourceOptions
    json: Json = False

    @property
    def cluster(self) -> str:
        return self.resources.dask or ""

    def check(self, family: Family[Any], target: Path | None) -> None:
        """Raise SimtbedError for options that exclude each other."""
        if self.variant not in family.variants:
            raise SimtbedError(f"sfs has no variant {self.variant!r}; it has {', '.join(family.variants)}")
        if target is None and self.format is SpectraFormat.npz:
            raise SimtbedError("--format npz needs a file: -o OUT")
        if self.format is SpectraFormat.vcf:
            files_vcf_out.check_mode(self.mode.value)
        if self.spectrum is not None and not is_file_name(self.spectrum):
            raise SimtbedError(f"{printable(self.spectrum)}: --spectrum needs a file name, for the table and its plot")
        if self.spectrum is not None and self.spectrum.suffix == ".svg":
            raise SimtbedError(f"{self.spectrum}: --spectrum names the table; the plot has the same name with .svg")


@command
def sfs(
    source: Annotated[
        Path | None,
        Argument(
            metavar="IN", help="VCF, BCF, Beagle likelihoods, or npz with P: sites x individuals x 3; - is stdin."
        ),
    ] = None,
    target: Output = None,
    *,
    options: SfsOptions,
) -> int:
    """Compute site frequency spectra of N individuals, from file to file.

    The answer is 2N + 1 values per site. The numbers of sites read and skipped are printed to stdout if the answer is
    written to a file, and to stderr otherwise.

    \b
    simtbed sfs --example --mode saf
    simtbed sfs calls.vcf -o spectra.tsv
    """
    if (source is None) != options.example:
        raise SimtbedError("sfs takes a file, or --example")
    require_cluster_options(options.cluster, counting=False, json=options.json, gpus=1)
    with on_cores(options.resources.threads or current_cores()):
        return solve_sites(source, target, options)


def solve_sites(source: Path | None, target: Path | None, options: SfsOptions) -> int:
    """Compute the spectra of all sites of a file, or of the example, and print the report."""
    family = find_family("sfs")
    options.check(family, target)
    tally: SiteCounts = Counter()
    runner = Runner(options.engine.value)
    launcher = launcher_of_workers(options.engine.value) if options.cluster else runner
    name = "the example" if source is None else str(source)
    mode: Mode = options.mode.value
    targets = {"--output": target or STANDARD, "--spectrum": options.spectrum}
    if options.spectrum:
        targets["the plot of --spectrum"] = options.spectrum.with_suffix(".svg")
    with Outputs(targets, [source]) as outputs, Spectrum(mode) as total:
        with progress_of_records(f"{options.variant} on {name}", "sites") as show:
            take = total.add if options.spectrum else _ignore
            problems = _problems(source, options, tally)
            form: files.Format = options.format.value
            solve_file(problems, form, outputs["--output"], options.variant, launcher, take, show, options.cluster)
        if options.spectrum:
            with progress("the spectrum over sites"):
                spectrum = total.result()
            outputs["--spectrum"].writelines(line.encode() for line in files_spectrum.lines(spectrum))
            title = printable(f"{source.name if source else name}, {mode}")
            outputs["the plot of --spectrum"].write(files_spectrum.picture(spectrum, title).encode())
    if not tally["sites"]:
        warn(f"{name} has no usable sites; the answer is empty")
    counts = {what: count for what, count in tally.items() if count or what == "sites"}
    if options.json:
        print_report(outputs, tables.as_json({"launches": runner.launches, "counts": counts}))
    else:
        print_report(outputs, "\n".join(f"{n:>12,}  {what}" for what, n in sorted(counts.items(), key=_order)))
    return 0


def _order(count: tuple[str, int]) -> tuple[bool, bool, str]:
    """Sort key: the sites of the answer, their kinds, the skipped sites."""
    what = count[0]
    return what != "sites", not what.startswith("of these"), what


def _problems(source: Path | None, options: SfsOptions, tally: SiteCounts) -> Iterator[Problem]:
    mode: Mode = options.mode.value
    polarise: files.Polarise | None = options.polarise.value if options.polarise else None
    if source is not None:
        reading = Options(mode, polarise, options.p_variable, options.epsilon)
        return files.problems(source, reading, tally, options.resources.max_memory)
    example = find_family("sfs").example()
    tally["sites"] = example.sites
    frequency = by_em(example.likelihoods) if mode == "gama" else example.frequency
    return iter([replace(example, mode=mode, frequency=frequency, variable=options.p_variable)])


def _ignore(answer: Floats) -> None:
    pass
