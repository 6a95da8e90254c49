"""Files of site frequency spectra. Input: genotype likelihoods as VCF, BCF, Beagle or npz. Output: one row per site.

Sites are processed in batches, so that memory is bounded for any file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from simtbed.escaping import printable

from ...family import InputError
from ...files import MEMORY, Input, open_input
from ...pipeline import Flow, workers_for
from . import files_bcf, files_beagle, files_npz, files_vcf
from .frequency import by_em, by_reads
from .problem import EPSILON, P_VARIABLE, Floats, Mode, Problem
from .problem_loops import informed, swap_alleles
from .sites import SectionReader, SiteCounts, Sites

MAX_READERS = 8
"""Maximum number of threads that read sections of a file and prepare their sites."""
Polarise = Literal["minor", "alt"]
Format = Literal["tsv", "npz", "vcf"]


@dataclass(frozen=True)
class Options:
    """How the sites of a file are interpreted. polarise: None selects "minor" for formats that define only REF and ALT,
    and the file's order for formats that define the minor allele."""

    mode: Mode = "saf"
    polarise: Polarise | None = None
    variable: float = P_VARIABLE
    epsilon: float = EPSILON


def problems(path: Path, options: Options, counts: SiteCounts, memory: int = MEMORY) -> Iterator[Problem]:
    """Yield the sites of a file as problems of some sites each, at least one problem, possibly without sites. Raise
    InputError if the file is malformed.

    In saf and gama mode, sites without information on any individual are omitted.
    """

    def read() -> Iterator[tuple[SectionReader, Options]]:
        with open_input(path, memory) as source:
            format = _format(source)
            polarise = options.polarise or ("minor" if format in ("VCF", "BCF") else "alt")
            for read_section in _sections(format, source, options.mode):
                yield read_section, replace(options, polarise=polarise)

    def prepared(item: tuple[SectionReader, Options]) -> tuple[list[Problem], SiteCounts]:
        read_section, own = item[0], SiteCounts()
        return [_problem(sites, item[1], own) for sites in read_section(own)], own

    for some, own in Flow(read()).map(prepared, workers=workers_for(MAX_READERS)):
        counts.update(own)
        yield from some


def read(path: Path) -> Problem:
    """Return a whole file in saf mode. Raise InputError if it is malformed."""
    return concatenate_problems(list(problems(path, Options(), Counter())))


def check_answer(problem: Problem, answer: Floats) -> None:
    """Raise InputError if the answer of a site contains NaN or infinity. log 0 is -inf and is allowed."""
    wrong = np.flatnonzero(np.isnan(answer).any(axis=1) | (answer == np.inf).any(axis=1))
    if len(wrong):
        site = int(wrong[0])
        place = printable(f"{problem.chromosomes[site]}:{problem.positions[site]}")
        raise InputError(f"{place}: the likelihoods of this site have no finite answer in {problem.mode} mode")


def concatenate_problems(batches: list[Problem]) -> Problem:
    """Concatenate problems of one file."""
    return replace(
        batches[0],
        likelihoods=np.concatenate([batch.likelihoods for batch in batches]),
        chromosomes=[name for batch in batches for name in batch.chromosomes],
        positions=np.concatenate([batch.positions for batch in batches]),
        frequency=np.concatenate([batch.frequency for batch in batches]),
        scale=np.concatenate([batch.scale for batch in batches]),
        alleles=[names for batch in batches for names in batch.alleles],
        swapped=np.concatenate([batch.swapped for batch in batches]),
    )


def _problem(sites: Sites, options: Options, counts: SiteCounts) -> Problem:
    likelihoods, scale, reads = sites.likelihoods, sites.scale, sites.reads
    count, individuals = likelihoods.shape[:2]
    flat = likelihoods.reshape(-1)
    selected = np.arange(count)
    if options.mode != "product":
        informative = np.empty(count, np.bool_)
        if informed(flat, individuals, count, informative) < count:
            selected = np.flatnonzero(informative)
            counts["left out: no individual has any information"] += count - len(selected)
            likelihoods = likelihoods[selected]
            reads = (reads[0][selected], reads[1][selected]) if reads else None
    counts["sites"] += len(selected)
    frequency = np.empty(0)
    swapped = np.zeros(len(selected), np.bool_)
    if options.polarise == "minor" or options.mode == "gama":
        frequency = by_em(likelihoods)
    if options.polarise == "minor":
        swapped = frequency > 0.5 + 1e-9  # in a tie ALT is the minor allele
        counts["of these: the first allele is the minor one"] += int(swapped.sum())
        swap_alleles(likelihoods.reshape(-1), individuals, len(selected), swapped)
        frequency = np.where(swapped, 1 - frequency, frequency)
        if reads:
            reads = (np.where(swapped[:, None], reads[1] - reads[0], reads[0]), reads[1])
    if options.mode == "gama" and reads:
        counted = by_reads(*reads, options.epsilon)
        frequency = np.where(np.isnan(counted), frequency, counted)
    chromosomes = sites.chromosomes
    return Problem(
        likelihoods,
        chromosomes if len(selected) == count else [chromosomes[at] for at in selected],
        sites.positions[selected],
        options.mode,
        frequency if options.mode == "gama" else np.empty(0),
        options.variable,
        scale[selected] if options.mode == "product" else np.empty(0),
        [sites.alleles[at] for at in selected] if sites.alleles else [],
        sites.samples,
        swapped,
    )


def _sections(format: str, source: Input, mode: Mode) -> Iterator[SectionReader]:
    """Return the sections of a file."""
    if format in ("VCF", "BCF"):
        reader = files_vcf.sections if format == "VCF" else files_bcf.sections
        return reader(source, posteriors=mode == "gama")
    return READERS[format](source)


def _format(source: Input) -> str:
    """Return the format indicated by the first bytes of a file."""
    start = source.peek(16)[:16]
    for begin, format in ((b"PK\x03\x04", "npz"), (b"##fileformat=VCF", "VCF"), (b"BCF", "BCF"), (b"marker", "Beagle")):
        if start.startswith(begin):
            return format
    raise InputError(
        f"{source.path}: expected a VCF, a BCF, Beagle genotype likelihoods (a first line 'marker ...') or an npz"
    )


READERS: dict[str, Callable[[Input], Iterator[SectionReader]]] = {
    "Beagle": files_beagle.sections,
    "npz": files_npz.sections,
}
"""Functions that return the sections of a file, by format, except for VCF and BCF."""
