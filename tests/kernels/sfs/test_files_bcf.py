"""BCF: damage is found, and reported with the record and the position before it."""

import gzip
import struct
from collections import Counter
from pathlib import Path

import cyvcf2
import pytest
from simtbed.kernels.family import InputError
from simtbed.kernels.files import open_input
from simtbed.kernels.sfs.host import files_bcf, sites

from tests.table_checks import check_each

HEADER = """##fileformat=VCFv4.2
##contig=<ID=1>
##contig=<ID=chrX>
##FILTER=<ID=q10,Description="">
##INFO=<ID=NS,Number=1,Type=Integer,Description="">
##INFO=<ID=TX,Number=1,Type=String,Description="">
##FORMAT=<ID=GT,Number=1,Type=String,Description="">
##FORMAT=<ID=AD,Number=R,Type=Integer,Description="">
##FORMAT=<ID=GL,Number=G,Type=Float,Description="">
##FORMAT=<ID=PL,Number=G,Type=Integer,Description="">
"""


def text(count: int, samples: int) -> str:
    """Return sites of the usual form."""
    names = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
    lines = [HEADER + "\t".join([*names, *(f"s{n}" for n in range(samples))])]
    for at in range(count):
        values = [f"0/1:{at},{300 * n},{at % 7}" for n in range(samples)]
        lines.append(
            "\t".join([("1", "chrX")[at % 2], str(at + 1), "i", "A", "G", ".", "PASS", "NS=3", "GT:PL", *values])
        )
    return "\n".join(lines) + "\n"


def written(folder: Path, content: str) -> bytes:
    """Return the text as uncompressed BCF."""
    (folder / "given.vcf").write_text(content)
    source = cyvcf2.VCF(str(folder / "given.vcf"))
    writer = cyvcf2.Writer(str(folder / "given.bcf"), source, "wb")
    for record in source:
        writer.write_record(record)
    writer.close()
    source.close()
    return gzip.decompress((folder / "given.bcf").read_bytes())


def read(path: Path) -> list[sites.Sites]:
    """Return all sites of a file, by batches."""
    with open_input(path) as source:
        return [batch for section in files_bcf.sections(source, True) for batch in section(Counter())]


def error_of(path: Path) -> str:
    with pytest.raises(InputError) as error:
        read(path)
    return str(error.value)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use pieces of a few records and batches of a few sites."""
    monkeypatch.setattr(files_bcf, "SECTION_BYTES", 3_000)
    monkeypatch.setattr(sites, "SITES_AT_ONCE", 13)


@pytest.mark.usefixtures("small")
def test_damage_is_reported_after_the_preceding_record(tmp_path: Path) -> None:
    path = tmp_path / "given"
    whole = written(tmp_path, text(60, 3))
    at = 9 + int.from_bytes(whole[5:9], "little")
    last = "the header"
    for record in range(1, 61):
        path.write_bytes(whole[: at + 12])
        assert f"record {record}, after {last}: " in error_of(path)
        shared, single = struct.unpack("<II", whole[at : at + 8])
        contig, position = struct.unpack("<ii", whole[at + 8 : at + 16])
        last = f"{('1', 'chrX')[contig]}:{position + 1}"
        at += 8 + shared + single


def test_damage_that_htslib_does_not_report(tmp_path: Path) -> None:
    """Two records of "GT" and "PL"; the second is changed."""
    path = tmp_path / "given"
    whole = written(tmp_path, text(2, 3))
    first = 9 + int.from_bytes(whole[5:9], "little")
    second = first + 8 + sum(struct.unpack("<II", whole[first : first + 8]))
    phred = len(whole) - 3 * 3 * 2 - 1  # the type of PL: three int16 for each of three samples
    assert whole[phred] == 0x32
    cases = {  # bytes of the second record and their values: message
        (second + 8, b"\x07"): "after 1:1: truncated or damaged: contig 7 is not in the header",
        (second + 12, b"\xf0\xff\xff\xff"): "after 1:1: truncated or damaged: the position -15",
        (second + 26, b"\x00\x00"): "after 1:1: truncated or damaged: no alleles",
        (second + 28, b"\x02"): "after 1:1: truncated or damaged: 2 samples, expected 3",
        (second + 31, b"\x01"): "after 1:1: truncated or damaged: 21 bytes follow its last value",
        (phred - 1, whole[phred - 10 : phred - 9]): "after 1:1: truncated or damaged: FORMAT GT occurs twice",
        (second + 33, b"\xff"): "after 1:1: truncated or damaged: ID is not UTF-8",
        (second + 35, b"\xff"): "after 1:1: truncated or damaged: an allele is not UTF-8",
        (phred, b"\x67"): "chrX:2: PL holds text, expected integers",
        (phred, b"\x35"): "after 1:1: truncated or damaged: htslib does not read it",
    }

    def check(case: tuple[int, bytes]) -> None:
        at, changed = case
        path.write_bytes(whole[:at] + changed + whole[at + len(changed) :])
        assert f"record 2, {cases[case]}" in error_of(path)

    check_each(cases, check)
