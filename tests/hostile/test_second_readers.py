"""Where a second reader exists, both read the same: VCF and BCF as pysam does, FASTQ as a plain loop does."""

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pysam
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simtbed.kernels import InputError
from simtbed.kernels.correction.host.files import read_file
from simtbed.kernels.sfs.host.files import Options, concatenate_problems, problems

from tests.hostile.formats import VCF_HEADER, bcf, bgzf
from tests.hostile.mutations import mutated

Site = tuple[str, int, list[list[float]]]


def ours(path: Path) -> list[Site]:
    """Chromosome, position and likelihoods of the sites that are read."""
    problem = concatenate_problems(list(problems(path, Options("product", "alt"), Counter())))
    return [
        (name, int(at), values.tolist())
        for name, at, values in zip(problem.chromosomes, problem.positions, problem.likelihoods, strict=True)
    ]


def theirs(path: Path) -> Iterator[Site]:
    """The same as pysam reads it: sites of two alleles with PL or GL of three values a sample."""
    with pysam.VariantFile(str(path)) as file:
        for record in file:
            alternatives = record.alts or ()
            if len(alternatives) != 1 or alternatives[0] in ("<*>", "<NON_REF>", "*", "."):
                continue
            name = next((name for name in ("PL", "GL") if name in record.format), None)
            rows = [sample[name] for sample in record.samples.values()] if name else []
            if not rows or any(len(row) not in (1, 3) and None not in row for row in rows):
                continue
            scale = -0.1 if name == "PL" else 1.0
            result = []
            for row in rows:
                complete = len(row) == 3 and None not in row
                logs = [scale * value for value in row] if complete else [0.0] * 3
                result.append([math.pow(10, value - max(logs)) for value in logs])
            yield record.contig, record.pos, result


def same(first: list[Site], other: list[Site]) -> bool:
    return [site[:2] for site in first] == [site[:2] for site in other] and all(
        np.allclose(a[2], b[2], rtol=1e-5) for a, b in zip(first, other, strict=True)
    )


def test_bcf_is_read_as_pysam_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "in.bcf"
    path.write_bytes(bgzf(bcf()))
    assert len(ours(path)) == 3 and same(ours(path), list(theirs(path)))


NUMBERS = st.one_of(st.integers(0, 300), st.integers(0, 2**31 - 10))
SAMPLES = st.one_of(
    st.just("."), st.just(".,.,."), st.tuples(NUMBERS, NUMBERS, NUMBERS).map(lambda t: ",".join(map(str, t)))
)
SITES = st.lists(
    st.tuples(st.sampled_from(["1", "X"]), st.integers(1, 2**31 - 2), SAMPLES, SAMPLES), min_size=1, max_size=8
)


@pytest.mark.slow
@given(sites=SITES)
def test_vcf_and_bcf_are_read_as_pysam_reads_them(
    tmp_path_factory: pytest.TempPathFactory, sites: list[tuple[str, int, str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("given")
    rows = [f"{name}\t{at}\t.\tA\tG\t.\t.\t.\tPL\t{a}\t{b}\n" for name, at, a, b in sites]
    text = folder / "in.vcf"
    text.write_bytes(VCF_HEADER + "".join(rows).encode())
    packed = folder / "in.bcf"
    with pysam.VariantFile(str(text)) as source, pysam.VariantFile(str(packed), "wb", header=source.header) as target:
        for record in source:
            target.write(record)
    result = ours(text)
    assert same(result, list(theirs(text)))
    assert same(ours(packed), result)


def _plain(data: bytes) -> list[tuple[str, str]] | None:
    """Names and sequences, in upper case, of FASTQ, four lines a record; None where it is not."""
    lines = data.decode("ascii").removesuffix("\n").split("\n")
    if len(lines) % 4:
        return None
    result = []
    for name, sequence, plus, quality in zip(*(lines[at::4] for at in range(4)), strict=True):
        if name[:1] != "@" or plus[:1] != "+" or len(sequence) != len(quality):
            return None
        result.append((name[1:], sequence.upper()))
    return result


@pytest.mark.slow
@given(seed=st.integers(0, 100_000))
def test_fastq_is_read_as_a_plain_loop_reads_it(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    data = mutated(b"@r1 first\nACGT\n+\nIIII\n@r2\nNNACGT\n+\n!~III5\n@r3\nAC\n+\n!!\n", seed)
    if not data.isascii() or b"\r" in data or b"\0" in data:
        return
    path = tmp_path_factory.mktemp("given") / "in.fq"
    path.write_bytes(data)
    try:
        with read_file(path) as reads:
            blocks = list(reads.blocks())
    except InputError:
        return
    result = [pair for b in blocks for pair in zip(map(b.name, range(len(b))), b.reads.strings(), strict=True)]
    if data[:1] == b"@":
        assert result == _plain(data)
