"""Compute the pair-HMM likelihoods of a region of GATK's HaplotypeCaller and compare them with GATK's.

    gatk HaplotypeCaller -R ref.fa -I reads.bam -L 20:10000000-10010000 -O calls.vcf --pair-hmm-results-file region.txt
    python examples/gatk_region.py region.txt -o again.txt

Without a file, the script generates a small region with the likelihoods of the oracle.
"""

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import simtbed as st
from simtbed.kernels import FunctionLauncher
from simtbed.kernels.files import write
from simtbed.kernels.pairhmm import FAMILY
from simtbed.kernels.pairhmm.host import files_gatk
from simtbed.kernels.pairhmm.host.generate import generate


def write_region(path: Path) -> None:
    """Write a dump of two regions in GATK's format."""
    problem = generate(7, records=2, reads=(4, 6), haplotypes=(2, 3), read_length=(30, 60))
    write(path, files_gatk.lines(problem, FAMILY.oracle(problem)))


@dataclass
class Agreement:
    """Differences between computed likelihoods and a dump. changed: reads with a clearly different best haplotype."""

    pairs: int = 0
    worst: float = 0.0
    changed: int = 0


def recompute(
    dump: Path, variant: str, engine: Literal["jit", "numpy", "cuda"], agreement: Agreement
) -> Iterator[bytes]:
    """Yield the lines of a dump with computed likelihoods, a batch of reads at a time."""
    launcher = FunctionLauncher(partial(st.launch, engine=engine, counters=False))
    records = 0
    for problem, gatk in files_gatk.batches(dump):
        ours = FAMILY.solve(problem, variant, launcher)
        agreement.pairs += len(ours)
        agreement.worst = max(agreement.worst, float(np.abs(ours - gatk).max(initial=0.0)))
        for first, last in pairwise(problem.first_pairs):  # pairs of one read
            best = gatk[first:last]
            agreement.changed += bool(best.max() - best[ours[first:last].argmax()] > 1e-4)
        yield from files_gatk.lines(problem, ours, records)
        records += len(problem.record_reads) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description="Likelihoods of a dump of GATK's pair-HMM, computed again.")
    parser.add_argument("dump", nargs="?", type=Path, help="of --pair-hmm-results-file")
    parser.add_argument("-o", "--output", type=Path, help="the same dump with computed likelihoods")
    parser.add_argument("--variant", default="wavefront-rescaled", choices=FAMILY.variants)
    parser.add_argument("--engine", default="jit", choices=("jit", "numpy", "cuda"))
    options = parser.parse_args()
    agreement = Agreement()
    with tempfile.TemporaryDirectory() as folder:
        dump = options.dump or Path(folder) / "region.txt"
        if options.dump is None:
            write_region(dump)
        write(options.output or Path(folder) / "again.txt", recompute(dump, options.variant, options.engine, agreement))
    print(f"{agreement.pairs:,} pairs; the largest difference from GATK's log10 is {agreement.worst:.0e}")
    print(f"{agreement.changed} reads prefer another haplotype than with GATK")


if __name__ == "__main__":
    main()
