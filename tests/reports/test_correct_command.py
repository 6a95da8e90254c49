"""`simtbed correct` and `simtbed simulate`, from file to file."""

import gzip
import json
from pathlib import Path

import pytest
from simtbed.kernels.correction import FAMILY
from simtbed.kernels.correction.host import files, pipeline_files
from simtbed.oracles import correction as oracle

from tests.reports.conftest import Simtbed

Records = list[tuple[str, str, str]]


@pytest.fixture
def reads(simtbed: Simtbed, tmp_path: Path) -> Path:
    """Simulated reads and their truth."""
    created = simtbed(
        "simulate", "-o", str(tmp_path / "reads.fq"), "--truth", str(tmp_path / "truth.fa"),
        "--genome", "800", "--coverage", "25", "--length", "15-60", "--error-rate", "0.02",
    )  # fmt: skip
    assert (created.code, created.err) == (0, "")
    return tmp_path / "reads.fq"


def fastq(text: str) -> Records:
    lines = text.splitlines()
    assert len(lines) % 4 == 0
    assert all(name[0] == "@" and plus == "+" for name, plus in zip(lines[::4], lines[2::4], strict=True))
    return [
        (name[1:], bases, quality) for name, bases, quality in zip(lines[::4], lines[1::4], lines[3::4], strict=True)
    ]


def expected(records: Records) -> list[oracle.Corrected]:
    return oracle.corrected([bases for _, bases, _ in records])


@pytest.mark.slow
def test_reads_are_written_in_order_with_their_qualities(simtbed: Simtbed, reads: Path, tmp_path: Path) -> None:
    records = fastq(reads.read_text())
    answers = expected(records)
    remaining = [
        (name, answer.sequence, quality[answer.start : answer.end])
        for (name, _, quality), answer in zip(records, answers, strict=True)
        if answer.flag != "D"
    ]
    log, discarded = tmp_path / "log.tsv", tmp_path / "discarded.fq"
    result = simtbed("correct", str(reads), "--log", str(log), "--discarded", str(discarded))
    assert result.code == 0
    assert fastq(result.out) == remaining
    assert fastq(discarded.read_text()) == [r for r, a in zip(records, answers, strict=True) if a.flag == "D"]
    assert 0 < len(remaining) < len(records)

    header, *rows = [line.split("\t") for line in log.read_text().split("\n")[:-1]]
    assert header == ["name", "flag", "length", "sequence", "edits"]
    assert [(row[1], int(row[2]), row[3]) for row in rows] == [(a.flag, len(a.sequence), a.sequence) for a in answers]
    assert {a.flag for a in answers} == {"F", "D", "S"}
    for (name, bases, _), row, answer in zip(records, rows, answers, strict=True):
        assert row[0] == name
        changed = list(bases)
        for edit in filter(None, row[4].split(",")):
            at, change = edit.split(":")
            assert changed[int(at) - 1] == change[0]
            changed[int(at) - 1] = change[2]
        whole = "".join(changed)
        assert (whole if answer.flag == "D" else whole[answer.start : answer.end]) == answer.sequence


@pytest.mark.slow
def test_the_example(simtbed: Simtbed, tmp_path: Path) -> None:
    """The reads of the family's example, as a FASTA file of them would be corrected."""
    source = tmp_path / "example.fa"
    sequences = FAMILY.example().reads.strings()
    source.write_text("".join(f">read{r}\n{bases}\n" for r, bases in enumerate(sequences, 1)))
    result, same = simtbed("correct", "--example"), simtbed("correct", str(source))
    assert (result.code, result.out, result.err) == (same.code, same.out, same.err) == (0, same.out, same.err)
    expected = [answer.sequence for answer in oracle.corrected(sequences) if answer.flag != "D"]
    assert result.out.splitlines()[1::2] == expected
    assert "correct takes a file, or --example" in simtbed("correct").refused()
    assert "correct takes a file, or --example" in simtbed("correct", str(source), "--example").refused()
    assert "--truth needs a file" in simtbed("correct", "--example", "--truth", str(source)).refused()


@pytest.mark.slow
def test_chunks_change_nothing(simtbed: Simtbed, reads: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = ("correct", str(reads), "--truth", str(tmp_path / "truth.fa"), "--json")
    whole = simtbed(*line)
    monkeypatch.setattr(files, "PIECE", 1000)
    again = simtbed(*line)
    assert again.out == whole.out
    content, pieces = json.loads(whole.err), json.loads(again.err)
    assert pieces.pop("launches") > content.pop("launches")
    assert pieces == content


@pytest.mark.slow
def test_gzip_by_content_and_fasta(simtbed: Simtbed, reads: Path, tmp_path: Path) -> None:
    whole = simtbed("correct", str(reads)).out
    packed = tmp_path / "packed.txt"
    packed.write_bytes(gzip.compress(reads.read_bytes()))
    assert simtbed("correct", str(packed)).out == whole
    target = tmp_path / "out.fq.gz"
    assert simtbed("correct", str(reads), "-o", str(target)).code == 0
    assert gzip.decompress(target.read_bytes()).decode() == whole

    lines = (f">{name}\n{bases[:20]}\n{bases[20:]}\n" for name, bases, _ in fastq(reads.read_text()))
    fasta = tmp_path / "reads.fa"
    fasta.write_text("".join(lines))
    assert simtbed("correct", str(fasta)).out == "".join(f">{name}\n{bases}\n" for name, bases, _ in fastq(whole))


@pytest.mark.slow
def test_the_report(simtbed: Simtbed, reads: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.fq"
    result = simtbed("correct", str(reads), "-o", str(target), "--truth", str(tmp_path / "truth.fa"), "--json")
    assert (result.code, result.err) == (0, "")
    content = json.loads(result.out)
    answers = expected(fastq(reads.read_text()))
    kinds = [content[name] for name in ("unchanged", "changed", "trimmed", "discarded", "short")]
    assert sum(kinds) == content["reads"] == len(answers)
    assert content["discarded"] == sum(answer.flag == "D" for answer in answers)
    assert content["accuracy"]["gain"] > 0.3
    assert content["accuracy"]["kept_right"] > 0.97 * content["accuracy"]["kept"]
    table = simtbed("correct", str(reads), "-o", str(target), "--truth", str(tmp_path / "truth.fa"))
    assert f"{content['unchanged']:,}" in table.out
    assert "gain" in table.out


@pytest.mark.slow
def test_lower_case_and_short_reads(simtbed: Simtbed, tmp_path: Path) -> None:
    sequence = "ACGATTCGGCATTACGGATCGATTACC"
    source = tmp_path / "reads.fa"
    source.write_text(f">a\n{sequence}\n" * 6 + f">b\n{sequence.lower()}\n>c\nacgt\n>d\n{sequence[:22]}N\n>e\n")
    result = simtbed("correct", str(source))
    assert result.out == f">a\n{sequence}\n" * 6 + f">b\n{sequence}\n>c\nacgt\n>e\n\n"


@pytest.mark.slow
def test_low_coverage_is_a_warning(simtbed: Simtbed, tmp_path: Path) -> None:
    source = tmp_path / "reads.fq"
    assert simtbed("simulate", "-o", str(source), "--genome", "2000", "--coverage", "0.5").code == 0
    result = simtbed("correct", str(source))
    assert (result.code, result.out) == (0, "")
    assert "warning: no k-mer was seen 6 times: every read of 20 bases or more is discarded" in result.err
    assert simtbed("simulate", "-o", str(source), "--genome", "2000", "--coverage", "9").code == 0
    assert "coverage is too low for --min-multiplicity 6" in simtbed("correct", str(source)).err


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", gzip.compress(b"", mtime=0)])
def test_an_empty_file_is_said_to_be_empty(simtbed: Simtbed, tmp_path: Path, content: bytes) -> None:
    source, target = tmp_path / "empty.fq", tmp_path / "out.fq"
    source.write_bytes(content)
    result = simtbed("correct", str(source), "-o", str(target))
    assert result.code == 0
    assert "contains no reads" in result.err
    assert target.read_bytes() == b""


GOOD = b"@a\nACGT\n+\nIIII\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD + b"@b\nACGT\n+\nII\n", "reads.fq:8: Length of sequence and qualities differ"),
        (GOOD + b"@b\nACGT\nIIII\n+\n", "reads.fq:7: "),
        (GOOD + b"@b\nACGT\n", "reads.fq:7: "),
        (GOOD + b"b\nACGT\n+\nIIII\n", "reads.fq:5: "),
        (GOOD.replace(b"C", b"\xc3"), "reads.fq: after read 0: Non-ASCII characters found"),
        (b"reads\n", "reads.fq:1: it begins with 'r', expected '@' (FASTQ) or '>' (FASTA)"),
        (gzip.compress(GOOD * 1000, mtime=0)[:60], "reads.fq: damaged or truncated"),
        (gzip.compress(GOOD, mtime=0)[:12] + b"\xff" * 40, "reads.fq: damaged or truncated"),
        (b"\x1f\x8b", "reads.fq: damaged or truncated"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    simtbed: Simtbed, tmp_path: Path, content: bytes, message: str
) -> None:
    source = tmp_path / "reads.fq"
    source.write_bytes(content)
    line = ("correct", str(source), "-o", str(tmp_path / "out.fq"), "--log", str(tmp_path / "log.tsv"))
    assert message in simtbed(*line).refused()
    assert [path.name for path in tmp_path.iterdir()] == ["reads.fq"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--k 11", "11 is not in the range 12<=x<=31"),
        ("--k 32", "32 is not in the range 12<=x<=31"),
        ("--min-multiplicity 0", "0 is not in the range 1<=x<=255"),
        ("--max-trim -1", "-1 is not in the range 0<=x<="),
        ("--variant tree", "correction has no variant 'tree'; it has thread-per-read"),
        ("--filter cuckoo", "'cuckoo' is not one of 'exact', 'bloom', 'split-first'"),
        ("-o x.fq --log x.fq", "x.fq: --log and --output are the same file"),
        ("-o missing/x.fq", "there is no folder missing"),
        ("--truth missing.fa", "missing.fa: No such file"),
    ],
)
def test_bad_use(simtbed: Simtbed, reads: Path, options: str, message: str) -> None:
    assert message in simtbed("correct", str(reads), *options.split()).refused()


def test_a_source_must_be_there(simtbed: Simtbed, tmp_path: Path) -> None:
    assert "No such file" in simtbed("correct", str(tmp_path / "nothing.fq")).refused()
    assert "Is a directory" in simtbed("correct", str(tmp_path)).refused()
    assert "/dev/null contains no reads" in simtbed("correct", "/dev/null").err


@pytest.mark.slow
def test_the_truth_has_the_same_reads(simtbed: Simtbed, reads: Path, tmp_path: Path) -> None:
    truth = (tmp_path / "truth.fa").read_text()
    wrong = tmp_path / "wrong.fa"
    for content, message in (
        (truth[: truth.rindex(">")], "wrong.fa: it ends before read "),
        (truth + ">more\nACGT\n", "wrong.fa: it continues after read "),
        (truth.replace("\n", "A\n", 2), "wrong.fa: read 1 has "),
    ):
        wrong.write_text(content)
        assert (
            message in simtbed("correct", str(reads), "--truth", str(wrong), "-o", str(tmp_path / "out.fq")).refused()
        )
        assert not (tmp_path / "out.fq").exists()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_an_error(simtbed: Simtbed, reads: Path) -> None:
    assert "/dev/full: cannot be written: No space left on device" in simtbed(
        "correct", str(reads), "-o", "/dev/full"
    ).refused(3)
    assert Path("/dev/full").is_char_device()  # a device is written to, not replaced


def test_results_appear_together(
    simtbed: Simtbed, reads: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails after the first chunk was written leaves no file."""
    monkeypatch.setattr(pipeline_files, "launch", lambda *_: 1 / 0)
    assert "ZeroDivisionError" in simtbed("correct", str(reads), "-o", str(tmp_path / "out.fq")).refused(3)
    assert {path.name for path in tmp_path.iterdir()} == {"reads.fq", "truth.fa"}


# ------------------------------------------------------------------ simulate
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--length 0", "--length: expected a number or a range such as 30-50, got '0'"),
        ("--length 50-30", "--length: expected a number or a range"),
        ("--length long", "--length: expected a number or a range"),
        ("--error-rate 0.5", "0.5 is not in the range 0.0<=x<=0.25"),
        ("--coverage 0", "0.0 is not in the range 0.0<x<=100000.0"),
        ("--genome 20", "a reference of 20 bases has no reads of 36"),
        ("--reference missing.fa", "missing.fa: No such file"),
    ],
)
def test_simulate_refuses(simtbed: Simtbed, tmp_path: Path, options: str, message: str) -> None:
    assert message in simtbed("simulate", "-o", str(tmp_path / "reads.fq"), *options.split()).refused()
    assert not list(tmp_path.iterdir())


def test_simulate_from_a_reference(simtbed: Simtbed, tmp_path: Path) -> None:
    """Reads are within a record and within a run of bases; lower case is upper case, U is T, an IUPAC code is no base."""
    reference = tmp_path / "reference.fa"
    reference.write_text(
        ">gap\nACGTTGCATG\nnnnnn\nGGATTACCAG\n>short\nACGATC\n>whole\nacguugCAUG\nGGATTACCAG\n>code\nACGTTGCATGRGGATTACCAG\n"
    )
    target = tmp_path / "reads.fq"
    options = ("--length", "20", "--error-rate", "0", "--coverage", "5")
    result = simtbed("simulate", "-o", str(target), "--reference", str(reference), *options)
    assert (result.code, result.out) == (0, "5 reads of 20 bases, 0 errors\n")
    assert {bases for _, bases, _ in fastq(target.read_text())} <= {"ACGTTGCATGGGATTACCAG", "CTGGTAATCCCATGCAACGT"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no record has 20 consecutive bases A, C, G or T, the length of a read; the longest run has 0"),
        (">a\nACGTTGCATG\n>b\nGGATTACCAG\n", "the longest run has 10"),
        (">a\nACGTTGCATGNGGATTACCAG\n", "the longest run has 10"),
        (">a\n>b x\nACG-T\n", "record 2, 'b x', holds '-' at 4, expected A, C, G, T, U, N or another IUPAC code"),
    ],
)
def test_references_without_reads(simtbed: Simtbed, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "r.fa").write_text(text)
    options = ("--reference", str(tmp_path / "r.fa"), "--length", "20-30")
    assert message in simtbed("simulate", "-o", str(tmp_path / "reads.fq"), *options).refused()


@pytest.mark.slow
def test_the_oracle_and_the_counters(
    simtbed: Simtbed, reads: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = reads.read_text().count("\n") // 4
    result = simtbed("correct", str(reads), "--check", "--counters")
    assert result.code == 0 and f"{number} values and the oracle agree" in result.err
    assert "warp_instructions" in result.err
    mates = [str(tmp_path / name) for name in ("c1.fq", "c2.fq")]
    second = tmp_path / "second.fq"
    second.write_text(reads.read_text())
    pairs = ("correct", str(reads), str(second), "-o", mates[0], "-p", mates[1])
    content = json.loads(simtbed(*pairs, "--filter", "blocked", "--check", "--json").out)
    assert content["agreement"] == content["agreement"] | {"agrees": True, "compared": 2 * number}
    assert "it excludes --spectrum" in simtbed("correct", str(reads), "--check", "--spectrum", "dump").refused()
    assert "does not count" in simtbed("correct", str(reads), "--counters", "--engine", "cuda").refused()
    monkeypatch.setattr(
        oracle, "corrected", lambda reads, *_: [oracle.Corrected("F", read, 0, len(read)) for read in reads]
    )
    wrong = simtbed("correct", str(reads), "--check")
    assert wrong.code == 1 and "the oracle DISAGREE" in wrong.err
