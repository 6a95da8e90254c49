"""VCF writer for posteriors of sites, alleles and genotypes. REF and ALT remain those of the input.

Posteriors of a site are GAMA's: of the number of alleles, with the prior probability that the site varies. Posteriors of a genotype
combine its likelihoods with Hardy-Weinberg at the site's frequency. All counts refer to ALT, even if REF is the minor allele.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import IO

import numpy as np
import numpy.typing as npt
import simtbed as st
from simtbed import Global, SimtbedError, f64, i64, u8
from simtbed.escaping import printable
from simtbed.native import native

from ...family import InputError
from ...files import temporary_file
from .problem import Floats, Mode, Problem, Rows

HIGHEST_QUALITY = 3_000.0
"""Maximum of QUAL: the smallest double is about 10^-308."""
HIGHEST_GENOTYPE_QUALITY = 99
SAMPLE = 32
"""Maximum characters of a sample."""

FIELDS = """##INFO=<ID=AF,Number=A,Type=Float,Description="Frequency of ALT: posterior mean">
##INFO=<ID=MAPAC,Number=A,Type=Integer,Description="Most probable number of ALT alleles, of two a sample">
##INFO=<ID=PVAR,Number=1,Type=Float,Description="Posterior probability that both alleles are there">
##FORMAT=<ID=GT,Number=1,Type=String,Description="Most probable genotype; missing where nothing is known of the sample">
##FORMAT=<ID=GQ,Number=1,Type=Integer,Description="Phred of another genotype than GT, at most 99">
##FORMAT=<ID=GP,Number=G,Type=Float,Description="Posterior probabilities of the genotypes, Hardy-Weinberg at the site's frequency">
"""


def check_mode(mode: Mode) -> None:
    """Raise SimtbedError if a mode has no posteriors."""
    if mode != "gama":
        raise SimtbedError(f"--format vcf writes posteriors, which --mode {mode} does not have: use --mode gama")


def write(rows: Rows, to: IO[bytes]) -> None:
    """Write sites in gama mode with their answers. The header names the contigs of all sites, so a temporary file collects the sites.

    Raise SimtbedError if the input has no REF, ALT and samples.
    """
    contigs: dict[str, None] = {}
    samples: tuple[str, ...] = ()
    with temporary_file() as waiting:
        for problem, answer in rows:
            if problem.sites and not problem.alleles:
                raise SimtbedError("--format vcf needs a VCF or a BCF, which name REF and ALT")
            samples = samples or problem.samples
            contigs |= dict.fromkeys(problem.chromosomes)
            waiting.writelines(_lines(problem, answer))
        to.write(b"##fileformat=VCFv4.3\n##source=simtbed\n")
        to.writelines(f"##contig=<ID={name}>\n".encode() for name in contigs)
        columns = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT", *samples]
        to.write((FIELDS + "\t".join(columns) + "\n").encode())
        waiting.seek(0)
        shutil.copyfileobj(waiting, to)


def _lines(problem: Problem, answer: Floats) -> Iterator[bytes]:
    swapped = problem.swapped[:, None]
    quality, mean, likeliest, varies = site_posteriors(np.where(swapped, answer[:, ::-1], answer))
    posteriors, informative = genotype_posteriors(problem)
    posteriors = np.where(swapped[:, :, None], posteriors[:, :, ::-1], posteriors)
    named = zip(problem.chromosomes, problem.positions.tolist(), problem.alleles, strict=True)
    sites = zip(quality.tolist(), mean.tolist(), likeliest.tolist(), varies.tolist(), strict=True)
    for site, ((chromosome, position, (name, reference, alternative)), (phred, frequency, count, share)) in enumerate(
        zip(named, sites, strict=True)
    ):
        if not f"{name}{reference}{alternative}".isprintable() or " " in f"{name}{reference}{alternative}":
            raise InputError(
                f"{printable(chromosome)}:{position}: ID, REF or ALT contains a character that VCF excludes"
            )
        info = f"AF={frequency:.6g};MAPAC={count};PVAR={share:.6g}"
        start = f"{chromosome}\t{position}\t{name}\t{reference}\t{alternative}\t{phred:.2f}\t.\t{info}\tGT:GQ:GP"
        yield start.encode() + sample_text(posteriors[site], informative[site]) + b"\n"


def site_posteriors(shares: Floats) -> tuple[Floats, Floats, npt.NDArray[np.int64], Floats]:
    """Return (QUAL, mean frequency, most probable number, probability that the site varies). shares: (sites, 2N + 1)
    probabilities of 0 to 2N alleles. All four are 0 for a site without probabilities."""
    alleles = shares.shape[1] - 1
    whole = shares.sum(axis=1)
    with np.errstate(divide="ignore"):
        quality = np.where(whole > 0, np.clip(-10 * np.log10(shares[:, 0]), 0.0, HIGHEST_QUALITY), 0.0)
    mean = shares @ np.arange(alleles + 1) / np.where(whole > 0, alleles * whole, 1.0)
    return quality, mean, shares.argmax(axis=1), np.minimum(shares[:, 1:-1].sum(axis=1), 1.0)


def genotype_posteriors(problem: Problem) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return ((sites, N, 3) probabilities in the problem's order, whether the sample has information)."""
    f = problem.frequency[:, None]
    prior = np.stack([(1 - f) ** 2, 2 * f * (1 - f), f**2], axis=2)
    posterior = problem.likelihoods * prior
    whole = posterior.sum(axis=2, keepdims=True)
    posterior = np.where(whole > 0, posterior, problem.likelihoods)  # the frequency excludes the genotype
    informative = (problem.likelihoods != problem.likelihoods[:, :, :1]).any(axis=2)
    return posterior / posterior.sum(axis=2, keepdims=True), informative


def sample_text(posteriors: Floats, informative: npt.NDArray[np.bool_]) -> bytes:
    """Return the columns of (N, 3) samples, each after a tab: GT, GQ and GP with five decimals."""
    best = posteriors.argmax(axis=1)
    rest = np.delete(posteriors.ravel(), np.arange(len(best)) * 3 + best).reshape(-1, 2).sum(axis=1)
    phred = np.full(len(best), float(HIGHEST_GENOTYPE_QUALITY))
    phred[rest > 0] = -10 * np.log10(rest[rest > 0])
    quality = np.minimum(phred, HIGHEST_GENOTYPE_QUALITY).astype(np.int64)
    to = np.empty(SAMPLE * len(best), np.uint8)
    length = _samples(np.ascontiguousarray(posteriors).ravel(), np.where(informative, best, -1), quality, len(best), to)
    return to[: int(length)].tobytes()


@native
def _samples(
    posteriors: Global[f64], genotypes: Global[i64], qualities: Global[i64], samples: i64, to: Global[u8]
) -> i64:
    at = i64(0)
    for sample in range(samples):
        genotype = genotypes[sample]
        to[at] = 9
        to[at + 1] = u8(46) if genotype < 0 else u8(48 + genotype // 2)
        to[at + 2] = 47
        to[at + 3] = u8(46) if genotype < 0 else u8(48 + (genotype + 1) // 2)
        to[at + 4] = 58
        at += 5
        if genotype < 0:
            to[at] = 46
        else:
            tens = qualities[sample] // 10
            to[at] = u8(48 + tens)
            at += i64(tens > 0)
            to[at] = u8(48 + qualities[sample] % 10)
        at += 1
        for which in range(3):
            to[at] = u8(58) if which == 0 else u8(44)
            _five_decimals(posteriors[sample * 3 + i64(which)], to, at + 1)
            at += 8
    return at


@st.device
def _five_decimals(share: f64, to: Global[u8], at: i64) -> None:
    """Write a number from 0 to 1 as by '%.5f', except for ties."""
    units = i64(share * 100_000 + 0.5)
    to[at] = u8(48 + units // 100_000)
    to[at + 1] = 46
    units %= 100_000
    for place in range(at + 6, at + 1, -1):
        to[place] = u8(48 + units % 10)
        units //= 10
