"""Genotype likelihoods from every format: equal values, counts of skipped sites, error messages of one line."""

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cyvcf2
import numpy as np
import pytest
from simtbed.kernels import InputError
from simtbed.kernels.sfs.host import files_bcf, files_beagle, files_vcf, sites
from simtbed.kernels.sfs.host.files import Options, check_answer, concatenate_problems, problems
from simtbed.kernels.sfs.host.frequency import by_em, by_reads
from simtbed.kernels.sfs.host.generate import likelihoods
from simtbed.kernels.sfs.host.problem import Problem
from simtbed.kernels.sfs.host.sites import SiteCounts
from simtbed.runtime.cores import on_cores

from tests.table_checks import check_each

HEADER = """##fileformat=VCFv4.2
##contig=<ID=1>
##contig=<ID=X>
##FORMAT=<ID=GT,Number=1,Type=String,Description="genotype">
##FORMAT=<ID=PL,Number=G,Type=Integer,Description="Phred">
##FORMAT=<ID=GL,Number=G,Type=Float,Description="log10">
##FORMAT=<ID=AD,Number=.,Type=Integer,Description="reads by allele">
##FORMAT=<ID=DP,Number=1,Type=Integer,Description="reads">
#CHROM	POS	ID	REF	ALT	QUAL	FILTER	INFO	FORMAT	A	B	C
"""
VALUES = np.array([[1, 0.1, 0.001], [1, 1, 1], [0.001, 0.1, 1]])
"""PL 0,10,30, missing, and 30,10,0."""


def vcf(folder: Path, *records: str, header: str = HEADER) -> Path:
    path = folder / "given.vcf"
    path.write_text(header + "".join(record.replace(" ", "\t") + "\n" for record in records), encoding="utf-8")
    return path


def rewritten(path: Path, to: Path, mode: str) -> Path:
    """Rewrite a file in another format by cyvcf2."""
    source = cyvcf2.VCF(str(path))
    writer = cyvcf2.Writer(str(to), source, mode)
    for record in source:
        writer.write_record(record)
    writer.close()
    return to


def read_problem(path: Path, options: Options | None = None) -> tuple[Problem, SiteCounts]:
    tally: SiteCounts = Counter()
    return concatenate_problems(list(problems(path, options or Options(polarise="alt"), tally))), Counter(
        {k: v for k, v in tally.items() if v}
    )


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as error:
        read_problem(path, Options(**options))
    assert "\n" not in str(error.value) and str(error.value).startswith(str(path))
    return str(error.value)


GOOD = "1 5 . A G . . . GT:PL 0/0:0,10,30 ./.:. 1/1:30,10,0"


# ------------------------------------------------------------------ VCF and BCF
def test_phred_and_log10_and_missing(tmp_path: Path) -> None:
    problem, tally = read_problem(
        vcf(
            tmp_path,
            GOOD,
            "1 6 . A G . . . GT:GL 0/0:0,-1,-3 ./.:.,.,. 1/1:-3,-1,0",
            "X 9 . A AT . . . PL 0,10,30 . 30,10,0",
        )
    )
    np.testing.assert_allclose(problem.likelihoods, [VALUES] * 3, rtol=1e-6)
    assert problem.chromosomes == ["1", "1", "X"]
    assert problem.positions.tolist() == [5, 6, 9]
    assert tally == {"sites": 3}


def test_bcf_and_compressed_vcf_are_equal(tmp_path: Path) -> None:
    path = vcf(tmp_path, GOOD, GOOD.replace(" 5 ", " 8 "))
    for mode, name in (("wb", "same.bcf"), ("wz", "same.vcf.gz")):
        same = rewritten(path, tmp_path / name, mode)
        np.testing.assert_array_equal(read_problem(same)[0].likelihoods, read_problem(path)[0].likelihoods)


def test_skipped_sites_are_counted(tmp_path: Path) -> None:
    problem, tally = read_problem(
        vcf(
            tmp_path,
            GOOD,
            "1 6 . A G,T . . . PL 0,1,2,3,4,5 0,1,2,3,4,5 0,1,2,3,4,5",
            "1 7 . A . . . . GT 0/0 0/0 0/0",
            "1 8 . A <*> . . . PL 0,1,2 0,1,2 0,1,2",
            "1 9 . A G . . . GT 0/0 0/0 0/0",
            "X 1 . A G . . . PL 0,10 0,10,20 0,10,30",
            "X 2 . A G . . . PL . . .",
        )
    )
    assert problem.sites == 1
    assert tally == {
        "sites": 1,
        "skipped: more than two alleles": 1,
        "skipped: no alternative allele": 2,
        "skipped: neither PL nor GL": 1,
        "skipped: a sample is not diploid": 1,
        "left out: no individual has any information": 1,
    }


def test_the_product_includes_every_site_and_the_scale(tmp_path: Path) -> None:
    path = vcf(tmp_path, "1 6 . A G . . . GL -400,-401,-403 -1,-1,-1 -403,-401,-400", "X 2 . A G . . . PL . . .")
    problem, tally = read_problem(path, Options(mode="product", polarise="alt"))
    assert tally["sites"] == 2
    np.testing.assert_allclose(problem.likelihoods[0], VALUES, rtol=1e-6)
    np.testing.assert_allclose(problem.scale, [-801 * np.log(10), 0.0])


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("1 6 . A G . . . PL 0,10,30 0,-1,3 0,1,2", "1:6, sample 2: PL is 0,-1,3, expected Phred scores from 0 up"),
        ("1 6 . A G . . . GL 0,-1,-2 0,nan,-3 0,-1,-2", "1:6, sample 2: GL is 0,nan,-3"),
        ("1 6 . A G . . . GL 0,-1,-2 0,-1,-2 -inf,-inf,-inf", "1:6, sample 3: GL is -inf,-inf,-inf"),
    ],
)
def test_invalid_likelihoods(tmp_path: Path, record: str, message: str) -> None:
    assert message in refusal(vcf(tmp_path, GOOD, record))


def test_unusable_files(tmp_path: Path) -> None:
    neither = "".join(line for line in HEADER.splitlines(True) if "ID=PL" not in line and "ID=GL" not in line)
    assert "neither FORMAT PL nor GL" in refusal(vcf(tmp_path, header=neither))
    assert "no samples" in refusal(vcf(tmp_path, header=HEADER.replace("\tFORMAT\tA\tB\tC", "")))
    assert "No such file" in refusal(tmp_path / "nothing.vcf")
    (tmp_path / "text").write_text("hello\n")
    assert "expected a VCF, a BCF, Beagle" in refusal(tmp_path / "text")


def test_truncated_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = vcf(tmp_path, *[GOOD.replace(" 5 ", f" {at} ") for at in range(1, 4000)])
    whole = rewritten(path, tmp_path / "whole.bcf", "wb").read_bytes()
    for length in (len(whole) // 2, len(whole) - len(b"the last block ends here....")):
        (tmp_path / "cut.bcf").write_bytes(whole[:length])
        assert "truncated" in refusal(tmp_path / "cut.bcf")
    path.write_text(path.read_text()[:-20])
    assert ":4008: 10 columns, expected 12" in refusal(path)
    assert capfd.readouterr().err == ""  # htslib prints nothing itself


# ------------------------------------------------------------------ Beagle and npz
def beagle(folder: Path, text: str, pack: bool = False) -> Path:
    path = folder / "given.beagle"
    path.write_bytes(gzip.compress(text.encode()) if pack else text.encode())
    return path


BEAGLE = "marker a b I I I J J J K K K\nchr1_5 0 1 1 .1 .001 1 1 1 .001 .1 1\nrs7 0 1 1 .1 .001 1 1 1 .001 .1 1\n"


@pytest.mark.parametrize("pack", [False, True])
def test_beagle(tmp_path: Path, pack: bool) -> None:
    problem, _ = read_problem(beagle(tmp_path, BEAGLE, pack), Options())
    np.testing.assert_allclose(problem.likelihoods, [VALUES] * 2)
    assert list(zip(problem.chromosomes, problem.positions.tolist(), strict=True)) == [("chr1", 5), ("rs7", 0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BEAGLE + "chr1_9 0 1 1 1\n", ":4: 5 columns, expected 12"),
        (BEAGLE + "chr1_9 0 1" + " x" * 9 + "\n", ":4: a likelihood is a number"),
        (BEAGLE + "chr1_9 0 1" + " nan" * 9 + "\n", "line 4, individual 1: 'nan nan nan'"),
        (BEAGLE + "chr1_9 0 1" + " 0" * 9 + "\n", "line 4, individual 1: '0 0 0'"),
        (BEAGLE + "chr1_9 0 1" + " 1" * 8 + " -1\n", "line 4, individual 3: '1 1 -1'"),
        ("marker a b I I\n", ":1: 5 columns"),
    ],
)
def test_wrong_beagle(tmp_path: Path, text: str, message: str) -> None:
    assert message in refusal(beagle(tmp_path, text))


def test_truncated_beagle(tmp_path: Path) -> None:
    path = beagle(tmp_path, BEAGLE + BEAGLE.splitlines(True)[1] * 100, pack=True)
    path.write_bytes(path.read_bytes()[:-20])
    assert "damaged or truncated" in refusal(path)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path: Path, save: Callable[..., None]) -> None:
    path = tmp_path / "given.npz"
    save(path, P=np.array([VALUES, VALUES[::-1]], np.float32), chrom=np.array(["1", "X"]), pos=np.array([7, 8]))
    problem, _ = read_problem(path, Options())
    np.testing.assert_allclose(problem.likelihoods, [VALUES, VALUES[::-1]], rtol=1e-6)
    assert (problem.chromosomes, problem.positions.tolist()) == (["1", "X"], [7, 8])
    save(path, P=np.array([VALUES] * 2))
    assert read_problem(path, Options())[0].positions.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"Q": np.ones(3)}, "expected an array P of sites x individuals x 3, found Q"),
        ({"P": np.ones((3, 3))}, "P is float64 of shape (3, 3)"),
        ({"P": np.ones((2, 0, 3))}, "of shape (2, 0, 3)"),
        ({"P": np.array([[["a", "b", "c"]]])}, "expected numbers"),
        ({"P": np.asfortranarray(np.ones((2, 2, 3)))}, "Fortran order"),
        ({"P": np.array([[[1, np.inf, 0]]])}, "P[0], individual 1: '1 inf 0'"),
        ({"P": np.array([[[1, np.longdouble("1e4000"), 0]]])}, "P[0], individual 1: '1 inf 0'"),
        ({"P": np.ones((2, 1, 3)), "pos": np.ones(3)}, "pos has the shape (3,), expected (2,)"),
    ],
)
def test_wrong_npz(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    path = tmp_path / "given.npz"
    np.savez(path, **arrays)
    assert message in refusal(path)
    path.write_bytes(path.read_bytes()[:40])
    assert "damaged or truncated" in refusal(path)


def test_sites_are_read_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "SITES_AT_ONCE", 3)
    np.savez(tmp_path / "given.npz", P=likelihoods(1, 8, 3))
    lines = [f"c_{at} 0 1 " + " ".join(map(str, site.ravel())) for at, site in enumerate(likelihoods(1, 8, 3))]
    inputs = [
        tmp_path / "given.npz",
        beagle(tmp_path, "\n".join(["marker a b" + " I" * 9, *lines])),
        vcf(tmp_path, *[GOOD.replace(" 5 ", f" {at} ") for at in range(1, 9)]),
    ]
    for path in inputs:
        problems_read = list(problems(path, Options(mode="product"), Counter()))
        assert [part.sites for part in problems_read][:3] == [3, 3, 2]
    np.testing.assert_allclose(read_problem(inputs[1])[0].likelihoods, read_problem(inputs[0])[0].likelihoods)


# ------------------------------------------------------------------ minor alleles and frequencies
@pytest.mark.parametrize("form", ["vcf", "bcf", "beagle"])
def test_sections_of_a_file_are_read_in_parallel(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In several threads, in file order, with the first mistake."""
    for reader in (files_bcf, files_beagle, files_vcf):
        monkeypatch.setattr(reader, "SECTION_BYTES", 1000)
    calls = [f"0/1:{a},{a + at % 7},{30 - at % 20}" for at, a in enumerate(range(300))]
    path = vcf(tmp_path, *(f"1 {at + 1} . A G . . . GT:PL {call} {call} ./.:." for at, call in enumerate(calls)))
    if form == "bcf":
        path = rewritten(path, tmp_path / "given.bcf", "wb")
    elif form == "beagle":
        path = tmp_path / "given.beagle"
        rows = [f"1_{at + 1} 0 1 0.{at + 1} 0.5 0.25 1 0.{at} 0\n" for at in range(300)]
        path.write_text("marker a b A A A B B B\n" + "".join(rows))
    with on_cores(1):
        first, counts = read_problem(path, Options(mode="gama"))
    with on_cores(4):
        four, rest = read_problem(path, Options(mode="gama"))
    assert four.positions.tolist() == list(range(1, 301)) and counts == rest
    np.testing.assert_array_equal(four.likelihoods, first.likelihoods)
    np.testing.assert_array_equal(four.frequency, first.frequency)
    if form != "bcf":
        lines = path.read_text().splitlines()
        lines[200], lines[250] = "1\tx", "y"
        path.write_text("\n".join(lines))
        with on_cores(4):
            assert f":{201}: " in refusal(path)


def test_the_minor_allele_is_the_rarer_one(tmp_path: Path) -> None:
    def record(position: int, *phred: str) -> str:
        return f"1 {position} . A G . . . PL " + " ".join(phred)

    common, rare, tie = ["30,10,0"] * 3, ["0,10,30"] * 3, ["0,10,30", "10,0,10", "30,10,0"]
    path = vcf(tmp_path, record(1, *common), record(2, *rare), record(3, *tie))
    as_it_is, swapped = (read_problem(path, Options(polarise=which)) for which in ("alt", "minor"))
    assert swapped[1]["of these: the first allele is the minor one"] == 1
    np.testing.assert_array_equal(swapped[0].likelihoods[0], as_it_is[0].likelihoods[0, :, ::-1])
    np.testing.assert_array_equal(swapped[0].likelihoods[1:], as_it_is[0].likelihoods[1:])
    np.testing.assert_array_equal(read_problem(path, Options())[0].likelihoods, swapped[0].likelihoods)


def test_beagle_and_npz_define_the_minor_allele(tmp_path: Path) -> None:
    path = tmp_path / "given.npz"
    np.savez(path, P=likelihoods(2, 5, 6)[:, :, ::-1])
    np.testing.assert_array_equal(read_problem(path, Options())[0].likelihoods, likelihoods(2, 5, 6)[:, :, ::-1])
    np.testing.assert_array_equal(read_problem(path, Options(polarise="minor"))[0].likelihoods, likelihoods(2, 5, 6))


def test_frequency_by_em() -> None:
    """For known genotypes it is the share of the allele; individuals without information do not change it."""
    genotypes = np.eye(3)[[0, 0, 1, 2, 1, 0, 0, 0]]
    assert by_em(np.stack([genotypes, genotypes[::-1]])).tolist() == pytest.approx([4 / 16] * 2)
    assert by_em(np.concatenate([genotypes, np.ones((50, 3))])[None])[0] == pytest.approx(4 / 16)
    assert by_em(np.ones((1, 4, 3)))[0] == 0.5


def test_frequency_by_reads() -> None:
    """realSFS 2010 by hand: e = 0.1, (1 of 2, weight 4/3) and (3 of 4, weight 8/5); no reads in the second site."""
    minor, reads = np.array([[1, 3], [0, 0], [0, 5]]), np.array([[2, 4], [0, 0], [5, 5]])
    result = by_reads(minor, reads, 0.1)
    shares = [(1 - 0.2) / (2 * 0.8), (3 - 0.4) / (4 * 0.8)]
    assert result[0] == pytest.approx((4 / 3 * shares[0] + 8 / 5 * shares[1]) / (4 / 3 + 8 / 5))
    assert np.isnan(result[1]) and result[2] == 0.5


def test_gama_uses_read_counts(tmp_path: Path) -> None:
    """AD of both alleles, or of ALT with DP; EM if both are missing. The counts are exchanged with the alleles."""
    common = "30,10,0"
    path = vcf(
        tmp_path,
        "1 1 . A G . . . PL:AD 0,10,30:4,0 0,10,30:2,0 0,0,0:1,1",
        "1 2 . A G . . . PL:AD:DP 0,10,30:0:4 0,10,30:0:2 0,0,0:1:2",
        "1 3 . A G . . . PL 0,10,30 0,10,30 0,0,0",
        f"1 4 . A G . . . PL:AD {common}:0,4 {common}:0,2 0,0,0:1,1",
    )
    problem, _ = read_problem(path, Options(mode="gama", epsilon=0.01))
    by_hand = by_reads(np.array([[0, 0, 1]]), np.array([[4, 2, 2]]), 0.01)[0]
    expected = [by_hand, by_hand, by_em(problem.likelihoods[2:3])[0], by_hand]
    assert problem.frequency.tolist() == pytest.approx(expected)


# ------------------------------------------------------------------ invalid inputs that were once accepted
@pytest.mark.parametrize("value", ["1e301", "inf", "nan", "1e999"])
def test_likelihoods_without_a_finite_answer(tmp_path: Path, value: str) -> None:
    path = beagle(tmp_path, BEAGLE + f"chr1_9 0 1 {value}" + " 1" * 8 + "\n")
    assert "line 4, individual 1: " in refusal(path)


def test_the_largest_likelihoods_have_an_answer(tmp_path: Path) -> None:
    problem, _ = read_problem(beagle(tmp_path, BEAGLE + "chr1_9 0 1" + " 1e300" * 5 + " 1e-320" + " 0 1e300 0\n"))
    vectors, scale = problem.vectors()
    assert np.isfinite(vectors).all() and np.isfinite(scale).all()


def test_a_non_finite_answer_is_refused(tmp_path: Path) -> None:
    problem, _ = read_problem(beagle(tmp_path, BEAGLE))
    answer = np.zeros((2, 7))
    answer[1, 3] = -np.inf  # log 0
    check_answer(problem, answer)
    for wrong in (np.nan, np.inf):
        answer[1, 3] = wrong
        with pytest.raises(InputError, match="rs7:0: the likelihoods of this site have no finite answer in saf mode"):
            check_answer(problem, answer)


@pytest.mark.parametrize(
    ("begin", "fields", "message"),
    [
        ("1\t", "PL\t0,1,2", ":10: POS is '', expected a number"),
        ("1\t-5", "PL\t0,1,2", ":10: POS is '-5'"),
        ("1\t2147483648", "PL\t0,1,2", ":10: POS is '2147483648'"),
        ("\t5", "PL\t0,1,2", ":10: CHROM is ''"),
        ("1\t5", "PL\t0,1,99999999999", ":10: sample 1: PL is '99999999999'"),
        ("1\t5", "PL\t0,1x,2", ":10: 1:5, sample 1: PL is '0,1x,2', expected integers"),
        ("1\t5", "PL\t0,1.5,2", ":10: 1:5, sample 1: PL is '0,1.5,2', expected integers"),
        ("1\t5", "GL\t0,x,2", ":10: 1:5, sample 1: GL is '0,x,2', expected numbers"),
        ("1\t5", "PL:AD\t0,1,2:4,b", ":10: 1:5, sample 1: AD is '4,b', expected integers"),
        ("1\t5", "PL:AD:DP\t0,1,2:4:b", ":10: 1:5, sample 1: DP is 'b', expected integers"),
        ("1\t5", "PL\t0,1,2:3", ":10: 1:5, sample 1 has more fields than FORMAT names"),
        ("1\t5", "PL:PL\t0,1,2", ":10: FORMAT is 'PL:PL'"),
    ],
)
def test_malformed_records(tmp_path: Path, begin: str, fields: str, message: str) -> None:
    path = tmp_path / "given.vcf"
    path.write_text(f"{HEADER}{begin}\t.\tA\tG\t.\t.\t.\t{fields}\t0,1,2\t0,1,2\n")
    assert message in refusal(path, mode="gama")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("A\tB\tC", "A\tB\tA", ":9: two samples are called A"),
        ("A\tB\tC", "A\tB\t\xff", ":9: '#CHROM\\tPOS\\tID\\tREF\\tALT\\tQU...' is not UTF-8"),
        ("#CHROM", "#CHROMOSOME", ":9: expected the columns #CHROM POS"),
    ],
)
def test_malformed_headers(tmp_path: Path, before: str, after: str, message: str) -> None:
    path = tmp_path / "given.vcf"
    path.write_bytes(HEADER.replace(before, after).encode("latin-1"))
    assert message in refusal(path)


def test_declarations_out_of_use_are_not_checked(tmp_path: Path) -> None:
    """Neither are the values of fields that are not read: GT, and AD and DP outside of gama mode."""
    records = ["1 5 . A G . . . GT:PL:AD:DP 0/1:0,10,30:1,2:3 0|0:0,5,9:3,0:3 1/1:9,4,0:0,2:2"]
    expected = read_problem(vcf(tmp_path, *records))[0].likelihoods
    headers = [
        HEADER.replace("ID=PL,Number=G,Type=Integer", "ID=PL,Number=1,Type=Float"),
        HEADER.replace("ID=GL,Number=G,Type=Float", "ID=GL,Number=3,Type=String"),
        HEADER.replace("ID=AD,Number=.,Type=Integer", "ID=AD,Number=1,Type=String"),
        HEADER.replace(
            "##contig=<ID=1>", "##contig=<ID=1,IDX=999999999>\n##FILTER=LowQual\n##INFO=<Number=1>\n##contig=<length=9>"
        ),
        HEADER.replace("ID=PL", "ID=QL"),
        HEADER.replace("ID=PL", "ID=QL").replace("ID=GL", "ID=HL"),
        "".join(line for line in HEADER.splitlines(True) if not line.startswith(("##contig", "##FORMAT"))),
    ]

    def check(header: str) -> None:
        path = vcf(tmp_path, *records, header=header)
        for options in (Options(mode="saf"), Options(mode="gama")):
            np.testing.assert_array_equal(read_problem(path, options)[0].likelihoods, expected)

    check_each(headers, check)
    unread = ["1 5 . A G . . . GT:PL:AD:DP 0/x:0,10,30:a:b 0:0,5,9:3,0:3 ./1|1:9,4,0:-:2"]
    np.testing.assert_array_equal(read_problem(vcf(tmp_path, *unread), Options(mode="saf"))[0].likelihoods, expected)


def test_types_of_a_bcf_are_checked_where_a_field_is_read(tmp_path: Path) -> None:
    phred = "1 5 . A G . . . PL:AD 0,10,30:1,2 0,5,9:3,0 9,4,0:0,2"
    logarithms = "1 5 . A G . . . GL:AD 0,-1,-3:1,2 0,-1,-3:3,0 -3,-1,0:0,2"
    ad, pl = "ID=AD,Number=.,Type=", "ID=PL,Number=G,Type="
    cases = [
        # record, header line with another Type, modes that read it, message
        (phred, f"{ad}String", ("gama",), "AD holds text, expected integers"),
        (phred, f"{pl}String", ("saf", "gama"), "PL holds text, expected integers"),
        (phred, f"{pl}Float", ("saf", "gama"), "PL holds floats, expected integers"),
        (logarithms, f"{pl}Float", (), ""),
        (logarithms, "ID=GL,Number=G,Type=String", ("saf", "gama"), "GL holds text, expected floats"),
    ]

    def check(case: tuple[str, str, tuple[str, ...], str]) -> None:
        record, declared, modes, message = case
        header = "\n".join(
            f'##FORMAT=<{declared},Description="">' if declared[:5] in line else line for line in HEADER.splitlines()
        )
        path = rewritten(vcf(tmp_path, record, header=header + "\n"), tmp_path / "given.bcf", "wb")
        for mode in ("saf", "gama"):
            if mode in modes:
                assert f"record 1, 1:5: {message}" in refusal(path, mode=mode)
            else:
                assert read_problem(path, Options(mode=mode))[0].sites == 1

    check_each(cases, check)


def test_chromosomes_and_positions_of_an_npz_are_not_altered(tmp_path: Path) -> None:
    path, P = tmp_path / "in.npz", np.ones((2, 1, 3)) * [1, 2, 3]
    for names in (np.array([b"1", b"22"]), np.array(["1", "22"]), np.array([1, 22])):
        np.savez(path, P=P, chrom=names)
        assert read_problem(path)[0].chromosomes == ["1", "22"]
    for wrong in (np.array([1.5, 2.5]), np.array(["a\tb", "c"]), np.array([1j, 2j])):
        np.savez(path, P=P, chrom=wrong)
        assert "chrom" in refusal(path)
    for positions in (np.array([1j, 2]), np.array([-1, 2]), np.array([1.5, 2.0]), np.array([2**63, 1], np.uint64)):
        np.savez(path, P=P, pos=positions)
        assert "pos" in refusal(path)
