"""VCF: blank lines, order of errors, values to the bit. cyvcf2 is required."""

import math
import sys
from collections import Counter
from pathlib import Path

import cyvcf2
import numpy as np
import pytest
from simtbed import UnavailableError
from simtbed.kernels import InputError
from simtbed.kernels.files import open_input
from simtbed.kernels.sfs.host import files_bcf, files_vcf
from simtbed.kernels.sfs.host.exponentials import exponentials
from simtbed.kernels.sfs.host.sites import Sites

from tests.table_checks import check_each

HEADER = """##fileformat=VCFv4.2
##contig=<ID=1>
##FORMAT=<ID=PL,Number=G,Type=Integer,Description="">
##FORMAT=<ID=GL,Number=G,Type=Float,Description="">
#CHROM	POS	ID	REF	ALT	QUAL	FILTER	INFO	FORMAT	A	B	C
"""
GOOD = b"1\t5\t.\tA\tG\t.\t.\t.\tPL\t0,1,2\t0,1,2\t3,4,0"


def read(path: Path) -> list[Sites]:
    """Return all sites of a file, by batches."""
    with open_input(path) as source:
        reader = files_bcf if path.suffix == ".bcf" else files_vcf
        return [sites for part in reader.sections(source, False) for sites in part(Counter())]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n\n"])
def test_blank_lines_at_the_end(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "given.vcf"
    path.write_bytes(HEADER.encode() + GOOD + b"\n" + GOOD + end)
    assert sum(len(part.likelihoods) for part in read(path)) == 2


def test_the_first_mistake_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its line, after good ones, whether this module or htslib finds it."""
    monkeypatch.setattr(files_vcf, "SECTION_BYTES", 500)
    path, negative = tmp_path / "given.vcf", GOOD.replace(b"\t0,1,2", b"\t0,-1,2")
    mistakes = [b"", GOOD.rpartition(b"\t")[0], GOOD.replace(b"\t5", b"\tx"), GOOD.replace(b"3,4,0", b"3,4x,0")]

    def check(line: bytes) -> None:
        for at in (0, 3, 40):
            path.write_bytes(HEADER.encode() + b"\n".join([*[GOOD] * at, line, negative]) + b"\n")
            with pytest.raises(InputError, match=rf"given\.vcf:{at + 6}: "):
                read(path)
        path.write_bytes(HEADER.encode() + b"\n".join([GOOD, negative, line]) + b"\n")
        with pytest.raises(InputError, match="1:5, sample 1: PL is 0,-1,2, expected Phred scores"):
            read(path)

    check_each(mistakes, check)


@pytest.mark.parametrize("name", ["PL", "GL"])
def test_likelihoods_to_the_bit(tmp_path: Path, name: str) -> None:
    """VCF and BCF, integers of all sizes, missing values, a numbers with many digits."""
    draw, factor = np.random.default_rng(4), math.log(10) * (-0.1 if name == "PL" else 1)
    factor = -math.log(10) / 10 if name == "PL" else factor
    values = -draw.exponential(3, (60, 3, 3)) if name == "GL" else draw.integers(0, [[3], [300], [70_000]], (60, 3, 3))
    expected = values.astype(np.float32 if name == "GL" else np.int64).astype(np.float64) * factor
    text = [[",".join(map(repr, row.tolist())) for row in site] for site in values]
    for site in range(0, 60, 7):
        text[site][site % 3], expected[site, site % 3] = ("." if site % 2 else ".,.,."), 0
    path = tmp_path / "given.vcf"
    rows = ["\t".join(["1", str(at + 1), ".", "A", "G", ".", ".", ".", name, *row]) for at, row in enumerate(text)]
    path.write_text(HEADER + "\n".join(rows) + "\n")
    source = cyvcf2.VCF(str(path))
    writer = cyvcf2.Writer(str(tmp_path / "given.bcf"), source, "wb")
    for record in source:
        writer.write_record(record)
    writer.close()
    largest = expected.max(axis=2)
    for one in (path, tmp_path / "given.bcf"):
        (sites,) = read(one)
        np.testing.assert_array_equal(sites.likelihoods, exponentials(expected - largest[:, :, None]))
        np.testing.assert_array_equal(sites.scale, largest.sum(axis=1))


@pytest.mark.parametrize("reader", [files_vcf, files_bcf])
def test_cyvcf2_is_required(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: object) -> None:
    path = tmp_path / "given.vcf"
    path.write_bytes(HEADER.encode() + GOOD + b"\n")
    monkeypatch.setitem(sys.modules, "cyvcf2", None)
    format = "VCF" if reader is files_vcf else "BCF"
    with (
        open_input(path) as source,
        pytest.raises(UnavailableError, match=f"{path} is a {format}, which only cyvcf2 reads: pip"),
    ):
        list(reader.sections(source))  # type: ignore[attr-defined]
