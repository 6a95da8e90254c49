"""The files of site frequency spectra: genotype likelihoods in, as VCF, BCF, Beagle or npz; a row a site out.

Memory is bounded whatever the file: a batch of sites is read, used and forgotten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from ...family import InputError
from ...files import MEMORY, Input, open_input, printable
from ...pipeline import Flow, workers_for
from . import files_bcf, files_beagle, files_npz, files_vcf
from .frequency import by_em, by_reads
from .problem import EPSILON, P_VARIABLE, Floats, Mode, Problem
from .problem_loops import informed, swap_alleles
from .sites import SectionReader, SiteCounts, Sites

MAX_READERS = 8
"""Threads that read parts of a file and make problems of their sites, at most."""
Polarise = Literal["minor", "alt"]
Format = Literal["tsv", "npz", "vcf"]


@dataclass(frozen=True)
class Options:
    """What to make of a file's sites. polarise: None for "minor" where the file only tells REF from ALT, and for its
    own order where that says which allele is the minor one."""

    mode: Mode = "saf"
    polarise: Polarise | None = None
    variable: float = P_VARIABLE
    epsilon: float = EPSILON


def problems(path: Path, options: Options, counts: SiteCounts, memory: int = MEMORY) -> Iterator[Problem]:
    """A file's sites as problems, some at a time; at least one, perhaps without sites. Raises InputError.

    In saf and gama mode a site of which no individual knows anything is left out.
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
    """The whole of a file in saf mode. Raises InputError."""
    return concatenate_problems(list(problems(path, Options(), Counter())))


def check_answer(problem: Problem, answer: Floats) -> None:
    """Raises InputError where a site's answer would hold NaN or infinity; log 0 is -inf and may stand there."""
    wrong = np.flatnonzero(np.isnan(answer).any(axis=1) | (answer == np.inf).any(axis=1))
    if len(wrong):
        site = int(wrong[0])
        place = printable(f"{problem.chromosomes[site]}:{problem.positions[site]}")
        raise InputError(f"{place}: the likelihoods of this site have no finite answer in {problem.mode} mode")


def concatenate_problems(batches: list[Problem]) -> Problem:
    """Several problems of one file as one."""
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
        swapped = frequency > 0.5 + 1e-9  # a tie is ALT's
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
    """The parts of a file."""
    if format in ("VCF", "BCF"):
        reader = files_vcf.sections if format == "VCF" else files_bcf.sections
        return reader(source, posteriors=mode == "gama")
    return READERS[format](source)


def _format(source: Input) -> str:
    """The format that a file's first bytes say."""
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
"""By format other than VCF and BCF: the parts of a file."""
