"""Native VCF scanner against cyvcf2: equal likelihoods to the bit, and no line accepted that cyvcf2 refuses."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from simtbed import UnavailableError
from simtbed.kernels import InputError
from simtbed.kernels.files import Input, open_input
from simtbed.kernels.sfs.host import files_vcf
from simtbed.kernels.sfs.host.sites import SiteCounts, Sites, batch_size

HEADER = """##fileformat=VCFv4.2
##FORMAT=<ID=GT,Number=1,Type=String,Description="">
##FORMAT=<ID=PL,Number=G,Type=Integer,Description="">
##FORMAT=<ID=GL,Number=G,Type=Float,Description="">
##FORMAT=<ID=AD,Number=R,Type=Integer,Description="">
##FORMAT=<ID=DP,Number=1,Type=Integer,Description="">
##FORMAT=<ID=XX,Number=1,Type=String,Description="">
#CHROM	POS	ID	REF	ALT	QUAL	FILTER	INFO	FORMAT	A	B	C
"""
FORMATS = ("GT:PL", "PL", "GL", "GT:GL:DP", "GT:AD:DP:PL", "GT:XX:PL", "PL:GL", "GT:AD", ".")
ReadResult = tuple[Any, ...] | str


def sample(draw: np.random.Generator, keys: list[str], odd: float) -> str:
    """Return the fields of a sample, occasionally an odd one."""
    result = []
    for key in keys:
        phred = ",".join(map(str, draw.permutation([0, int(draw.integers(1, 99)), int(draw.integers(200))]).tolist()))
        real = ",".join(f"{value:.{draw.integers(1, 8)}f}" for value in -draw.random(3) * 30)
        usual: dict[str, str] = {"GT": "0/1", "PL": phred, "GL": real, "AD": "3,4", "DP": "7", "XX": "a b", ".": "."}
        odds = [
            ".", ".,.,.", "0,.,3", "", "1", "1,2", "1,2,3,4", "0,1x,2", "-1,2,3", "nan,0,-1", "-inf,0,0", "1e3,2,3", "+1,2,3", "x",
            "0|1", "./.", "0/", "1//2", "99999999999,0,1", "2147483647,0,3", ".5,0,-1", "-.5,0,-1", "5.,0,1", "0,-1,-2:9", "é",
            "0,-1.0000000000000000001,-2", "-0,-1,-2", " 1,2,3", "1,2,3,", "1000000000,1,2", ".,1", "0/1/1", "-1/0",
        ]  # fmt: skip
        result.append(str(draw.choice(odds)) if draw.random() < odd else usual[key])
    if draw.random() < 0.05:
        result = result[: draw.integers(1, len(result) + 1)]
    return ":".join(result)


def record(draw: np.random.Generator, odd: float) -> str:
    keys = str(draw.choice(FORMATS))
    fields = [sample(draw, keys.split(":"), odd) for _ in range(3)]
    alternative = str(draw.choice(["G", "G", "G", "G", "AT", "<*>", "G,T", ".", "*", "<DEL>"]))
    position = str(draw.integers(1, 10**9)) if draw.random() < 0.97 else str(draw.choice(["0", "2147483648", "x", ""]))
    chromosome = str(draw.choice(["1", "1", "chr2", "X"]))
    return "\t".join([chromosome, position, "rs1", "A", alternative, ".", "PASS", "A=1;B C", keys, *fields])


def read(source: Input, counts: SiteCounts, posteriors: bool = True) -> list[Sites]:
    """Return all sites of a file, by batches."""
    return [sites for part in files_vcf.sections(source, posteriors) for sites in part(counts)]


def read_result(path: Path, native: bool) -> ReadResult:
    """Return the concatenated sites, or the error message. native: whether native code may read lines."""
    counts: SiteCounts = Counter()
    with pytest.MonkeyPatch.context() as patched:
        if not native:
            patched.setattr(files_vcf._UsualSites, "expects", lambda self, line: False)
        try:
            with open_input(path) as source:
                batches = read(source, counts)
        except InputError as error:
            return str(error)
    arrays: list[npt.NDArray[Any]] = [
        np.concatenate([np.asarray(getattr(part, name)) for part in batches])
        for name in ("likelihoods", "positions", "scale")
    ]
    names = [name for part in batches for name in part.chromosomes]
    alleles = [one for part in batches for one in part.alleles]
    return (*(array.tobytes() for array in arrays), names, alleles, {k: v for k, v in counts.items() if v})


def test_native_code_and_cyvcf2_read_equal_sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, path = np.random.default_rng(5), tmp_path / "given.vcf"
    header = HEADER.replace('##FORMAT=<ID=AD,Number=R,Type=Integer,Description="">\n', "")
    monkeypatch.setattr(files_vcf, "SECTION_BYTES", 400)
    refused = 0
    for trial in range(150):
        lines = [record(draw, (0.0, 0.02, 0.2)[trial % 3]) for _ in range(draw.integers(0, 40))]
        path.write_text(header + "".join(line + draw.choice(["\n", "\n", "\r\n"]) for line in lines), encoding="utf-8")
        expected = read_result(path, native=False)
        assert read_result(path, native=True) == expected
        refused += isinstance(expected, str)
    assert 20 < refused < 130


def test_ordinary_sites_never_reach_cyvcf2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, path = np.random.default_rng(6), tmp_path / "given.vcf"
    rows = []
    for number in range(5000):
        fields = "\t".join(f"0/1:{sample(draw, ['PL'], 0.0)}" for _ in range(3))
        rows.append(f"{1 + number // 3000}\t{number}\t.\tA\tG\t.\t.\t.\tGT:PL\t{fields}\n")
    path.write_text(HEADER + "".join(rows))
    monkeypatch.setattr(files_vcf, "require_cyvcf2", lambda reason: pytest.fail("cyvcf2 was called"))
    counts: SiteCounts = Counter()
    with open_input(path) as source:
        batches = read(source, counts, posteriors=False)
    assert [name for part in batches for name in part.chromosomes] == ["1"] * 3000 + ["2"] * 2000
    assert np.concatenate([part.positions for part in batches]).tolist() == list(range(5000))
    assert max(len(part.likelihoods) for part in batches) <= batch_size(3)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n\n"])
@pytest.mark.parametrize("format", [b"PL", b"GL:PL"])
def test_blank_lines_at_the_end(tmp_path: Path, end: bytes, format: bytes) -> None:
    good = b"1\t5\t.\tA\tG\t.\t.\t.\t" + (
        b"PL\t0,1,2\t0,1,2\t3,4,0\n" if format == b"PL" else b"GL:PL\t.:0,1,2\t.:0,1,2\t.:3,4,0\n"
    )
    path = tmp_path / "given.vcf"
    path.write_bytes(HEADER.encode() + good + good + end)
    with open_input(path) as source:
        assert sum(len(part.likelihoods) for part in read(source, Counter())) == 2


@pytest.mark.parametrize(
    "line", [b"", b"1\t5\t.\tA\tG\t.\t.\t.\tPL\t0,1,2\t0,1,2", b"1\tx\t.\tA\tG\t.\t.\t.\tPL\t0,1,2\t.\t."]
)
def test_a_mistake_has_its_line_after_ordinary_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: bytes
) -> None:
    monkeypatch.setattr(files_vcf, "SECTION_BYTES", 500)
    good = b"1\t5\t.\tA\tG\t.\t.\t.\tPL\t0,1,2\t0,1,2\t3,4,0"
    path = tmp_path / "given.vcf"
    for at in (0, 3, 40):
        path.write_bytes(HEADER.encode() + b"\n".join([*[good] * at, line, good]) + b"\n")
        with open_input(path) as source, pytest.raises(InputError, match=rf"given\.vcf:{at + 9}: "):
            read(source, Counter())


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ("0,30,60\t0,20", "sample 2: PL has 2 values (haploid), not 3, which only cyvcf2 reads: pip install"),
        (".\t0,1,2,3", "sample 2: PL has 4 values, not 3, which only cyvcf2 reads: pip install"),
    ],
)
def test_without_cyvcf2_the_message_names_the_unusual_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, samples: str, message: str
) -> None:
    path = tmp_path / "given.vcf"
    names = "\t".join(HEADER.rstrip().split("\t")[:11])
    path.write_text(f"{names}\n1\t10\t.\tA\tC\t.\t.\t.\tPL\t{samples}\n")
    monkeypatch.setitem(sys.modules, "cyvcf2", None)
    with open_input(path) as source, pytest.raises(UnavailableError) as raised:
        read(source, Counter(), posteriors=False)
    assert message in str(raised.value) and str(raised.value).startswith(f"{path}:{names.count(chr(10)) + 2}: 1:10, ")
