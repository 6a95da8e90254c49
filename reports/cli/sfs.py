"""`simtbed sfs`: site frequency spectra of a file of genotype likelihoods, one batch of sites at a time."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from simtbed import SimtbedError
from simtbed.escaping import printable
from simtbed.kernels import Agreement, Family
from simtbed.kernels.family import merge_agreements
from simtbed.kernels.files import STANDARD, Outputs, is_file_name
from simtbed.kernels.sfs.host import files, files_spectrum, files_vcf_out
from simtbed.kernels.sfs.host.files import Options
from simtbed.kernels.sfs.host.frequency import by_em
from simtbed.kernels.sfs.host.pipeline_files import solve_file
from simtbed.kernels.sfs.host.problem import Floats, Mode, Problem
from simtbed.kernels.sfs.host.sites import SiteCounts
from simtbed.kernels.sfs.host.spectrum import Spectrum
from simtbed.runtime.cores import current_cores, on_cores

from ..gpu_count import gpus_for_file
from ..launchers import Runner, launcher_of_workers, require_gpus
from ..selection import find_family, require_variant
from ..terminal import progress, progress_of_records
from .options import Checking, Counting, Engine, Gpus, Json, Output, ResourceOptions, RunOn, Variant
from .output import print_report, report, require_cluster_options, require_counting_engine, warn
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
        ModeName, Option(help="product: log of the plain product; saf: -doSaf of ANGSD; gama: posterior of GAMA.")
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
    counters: Counting = False
    check: Checking = False
    example: Annotated[bool, Option(help="Run on a generated example instead of IN.")] = False
    gpus: Gpus = 1
    resources: ResourceOptions
    json: Json = False

    @property
    def cluster(self) -> str:
        return self.resources.dask or ""

    def require_consistent(self, family: Family[Any], target: Path | None) -> None:
        """Raise SimtbedError for options that exclude each other."""
        require_variant(family, self.variant)
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
    require_gpus(options.gpus, options.engine.value)
    require_counting_engine(options.engine, options.counters)
    require_cluster_options(options.cluster, options.counters, options.json, options.gpus)
    with on_cores(options.resources.threads or current_cores()):
        return solve_sites(source, target, options)


def solve_sites(source: Path | None, target: Path | None, options: SfsOptions) -> int:
    """Compute the spectra of all sites of a file, or of the example, and print the report."""
    family = find_family("sfs")
    options.require_consistent(family, target)
    gpus = gpus_for_file(source, options.gpus)
    tally: SiteCounts = Counter()
    agreements: list[Agreement] = []
    runner = Runner(options.engine.value, counting=options.counters)
    launcher = launcher_of_workers(options.engine.value) if options.cluster else runner
    name = "the example" if source is None else str(source)
    mode: Mode = options.mode.value
    targets = {"--output": target or STANDARD, "--spectrum": options.spectrum}
    if options.spectrum:
        targets["the plot of --spectrum"] = options.spectrum.with_suffix(".svg")
    with Outputs(targets, [source]) as outputs, Spectrum(mode) as total:
        with progress_of_records(f"{options.variant} on {name}", "sites") as show:

            def take(problem: Problem, answer: Floats) -> None:
                if options.spectrum:
                    total.add(answer)
                if options.check:
                    agreements.append(family.compare(answer, family.oracle(problem)))

            problems = _problems(source, options, tally)
            form: files.Format = options.format.value
            output, cluster = outputs["--output"], options.cluster
            solve_file(problems, form, output, options.variant, launcher, take, show, cluster, gpus if gpus > 1 else 0)
        if options.spectrum:
            with progress("the spectrum over sites"):
                spectrum = total.result()
            outputs["--spectrum"].writelines(line.encode() for line in files_spectrum.lines(spectrum))
            title = printable(f"{source.name if source else name}, {mode}")
            outputs["the plot of --spectrum"].write(files_spectrum.picture(spectrum, title).encode())
    if not tally["sites"]:
        warn(f"{name} has no usable sites; the answer is empty")
    counts = {what: count for what, count in tally.items() if count or what == "sites"}
    agreement = merge_agreements(agreements) if agreements else None
    if options.json:
        print_report(outputs, report(runner, agreement, True, {"counts": counts}))
    else:
        lines = "\n".join(f"{n:>12,}  {what}" for what, n in sorted(counts.items(), key=_order))
        print_report(outputs, "\n".join([lines, *filter(None, [report(runner, agreement, False)])]))
    return int(agreement is not None and not agreement.agrees)


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
