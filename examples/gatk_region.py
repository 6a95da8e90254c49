"""A region of GATK's HaplotypeCaller: its reads and haplotypes to likelihoods, beside GATK's own, and back.

    gatk HaplotypeCaller -R ref.fa -I reads.bam -L 20:10000000-10010000 -O calls.vcf --pair-hmm-results-file region.txt
    python examples/gatk_region.py region.txt -o again.txt

Without a file it makes a small region first, whose likelihoods are those of the oracle.
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


def made_region(path: Path) -> None:
    """A dump as GATK writes it, of two regions."""
    problem = generate(7, records=2, reads=(4, 6), haplotypes=(2, 3), read_length=(30, 60))
    write(path, files_gatk.lines(problem, FAMILY.oracle(problem)))


@dataclass
class Found:
    """What a dump's likelihoods are beside those found here. changed: reads that prefer another haplotype clearly."""

    pairs: int = 0
    worst: float = 0.0
    changed: int = 0


def again(dump: Path, variant: str, engine: Literal["jit", "numpy", "cuda"], found: Found) -> Iterator[bytes]:
    """The lines of a dump with the likelihoods found here, some reads at a time."""
    launcher = FunctionLauncher(partial(st.launch, engine=engine, counters=False))
    records = 0
    for problem, gatk in files_gatk.parts(dump):
        ours = FAMILY.solve(problem, variant, launcher)
        found.pairs += len(ours)
        found.worst = max(found.worst, float(np.abs(ours - gatk).max(initial=0.0)))
        for first, last in pairwise(problem.first_pairs):  # the pairs of a read
            best = gatk[first:last]
            found.changed += bool(best.max() - best[ours[first:last].argmax()] > 1e-4)
        yield from files_gatk.lines(problem, ours, records)
        records += len(problem.record_reads) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description="Likelihoods of a dump of GATK's pair-HMM, computed again.")
    parser.add_argument("dump", nargs="?", type=Path, help="of --pair-hmm-results-file")
    parser.add_argument("-o", "--output", type=Path, help="the same dump with the likelihoods found here")
    parser.add_argument("--variant", default="wavefront-rescaled", choices=FAMILY.variants)
    parser.add_argument("--engine", default="jit", choices=("jit", "numpy", "cuda"))
    given = parser.parse_args()
    found = Found()
    with tempfile.TemporaryDirectory() as folder:
        dump = given.dump or Path(folder) / "region.txt"
        if given.dump is None:
            made_region(dump)
        write(given.output or Path(folder) / "again.txt", again(dump, given.variant, given.engine, found))
    print(f"{found.pairs:,} pairs; the furthest from GATK's log10 is {found.worst:.0e} away")
    print(f"{found.changed} reads prefer another haplotype than with GATK")


if __name__ == "__main__":
    main()
