"""`simtbed correct R1 R2`: pairs are written in step, as read mappers expect; files out of step are refused."""

import json
from collections.abc import Callable
from pathlib import Path

import dnaio
import pysam
import pytest
from simtbed.kernels.correction.host import files
from simtbed.oracles import correction as oracle

from tests.reports.conftest import Simtbed

Pair = Callable[[str], tuple[Path, Path]]


@pytest.fixture
def pair(simtbed: Simtbed, tmp_path: Path) -> Pair:
    """Simulated reads, alternately in two files, with names in one of two conventions."""
    simtbed(
        "simulate", "-o", str(tmp_path / "reads.fq"), "--genome", "800", "--coverage", "25", "--length", "15-60",
        "--error-rate", "0.02",
    )  # fmt: skip
    with dnaio.open(tmp_path / "reads.fq") as source:
        reads = list(source)
    reads = reads[: len(reads) // 2 * 2]

    def write(custom: str) -> tuple[Path, Path]:
        paths = tmp_path / "r1.fq", tmp_path / "r2.fq"
        for which, path in enumerate(paths):
            lines = []
            for number, read in enumerate(reads[which::2]):
                name = f"X:{number}/{which + 1}" if custom == "slash" else f"X:{number} {which + 1}:N:0:ACGT\tBC:Z:A"
                lines.append(f"@{name}\n{read.sequence}\n+\n{read.qualities}\n")
            path.write_text("".join(lines))
        return paths

    return write


@pytest.mark.slow
@pytest.mark.parametrize("custom", ["slash", "comment"])
def test_pairs_remain_in_step(
    simtbed: Simtbed, tmp_path: Path, pair: Pair, custom: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PIECE", 5_000)  # blocks of the two files do not begin at the same reads
    first, second = pair(custom)
    with dnaio.open(first, second) as source:
        arguments = list(source)
    answers = oracle.corrected([read.sequence for both in arguments for read in both])
    corrected = list(zip(arguments, answers[::2], answers[1::2], strict=True))
    accepted = [(both, a, b) for both, a, b in corrected if "D" not in (a.flag, b.flag)]
    lost = [both for both, a, b in corrected if "D" in (a.flag, b.flag)]
    assert min(len(accepted), len(lost)) > 20
    outputs = [tmp_path / name for name in ("c1.fq", "c2.fq.gz")]
    log, discarded = tmp_path / "log.tsv", tmp_path / "lost.fq"
    result = simtbed(
        "correct", str(first), str(second), "-o", str(outputs[0]), "-p", str(outputs[1]), "--json", "--log", str(log),
        "--discarded", str(discarded),
    )  # fmt: skip
    assert (result.code, result.err) == (0, "")
    with dnaio.open(*outputs) as written:  # which refuses pairs that are not in step
        pairs = list(written)
    for which, output in enumerate(outputs):
        expected = [
            (both[which].name, (a, b)[which].sequence, both[which].qualities[(a, b)[which].start : (a, b)[which].end])
            for both, a, b in accepted
        ]
        assert [(p[which].name, p[which].sequence, p[which].qualities) for p in pairs] == expected
        with pysam.FastxFile(str(output)) as read_by_kseq:  # what bwa and minimap2 read with
            names = [f"{one.name} {one.comment}" if one.comment else one.name for one in read_by_kseq]
        assert names == [name for name, _, _ in expected]
    with dnaio.open(discarded, interleaved=True) as aside:
        assert [(a.sequence, b.sequence) for a, b in aside] == [(a.sequence, b.sequence) for a, b in lost]
    rows = [line.split("\t") for line in log.read_text().splitlines()[1:]]
    assert [row[1] for row in rows] == [
        "D" if "D" in (a.flag, b.flag) else one.flag for _, a, b in corrected for one in (a, b)
    ]
    summary = json.loads(result.out)
    alone = sum((a.flag == "D") != (b.flag == "D") for _, a, b in corrected)
    assert (summary["reads"], summary["discarded"], summary["with_mate"]) == (2 * len(corrected), 2 * len(lost), alone)


def test_what_is_out_of_step(simtbed: Simtbed, tmp_path: Path) -> None:
    record = "@{}\nACGTACGTACGTACGTACGTACGT\n+\nIIIIIIIIIIIIIIIIIIIIIIII\n"
    first, second, fasta = tmp_path / "r1.fq", tmp_path / "r2.fq", tmp_path / "r.fa"
    first.write_text(record.format("a/1") + record.format("b"))
    fasta.write_text(">a\nACGT\n>b\nACGT\n")
    options = ("-o", str(tmp_path / "c1.fq"), "-p", str(tmp_path / "c2.fq"))

    def refused(mates: str, *more: str) -> str:
        second.write_text(mates)
        return simtbed("correct", str(first), str(second), *(more or options)).refused()

    assert "r2.fq: read 2 is 'c x', expected the mate of 'b' in" in refused(record.format("a/2") + record.format("c x"))
    assert "r2.fq: it ends before read 2 of" in refused(record.format("a"))
    both = record.format("a/2") + record.format("b 2:N")
    assert "r2.fq: it continues after read 2, the last of" in refused(both + record.format("c"))
    assert "pairs need both" in refused(both, "-o", str(tmp_path / "c1.fq"))
    assert "--truth needs a single file" in refused(both, *options, "--truth", str(first))
    assert "mates have the same format" in simtbed("correct", str(first), str(fasta), *options).refused()
    (tmp_path / "r3.fq").symlink_to(first)
    for same in (first, tmp_path / "r3.fq"):
        assert "IN and MATES are the same file" in simtbed("correct", str(first), str(same), *options).refused()
    (tmp_path / "r3.fq").unlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.fa", "r1.fq", "r2.fq"]
    assert simtbed("correct", str(first), str(second), *options).code == 0


def test_pairs_in_fasta(simtbed: Simtbed, tmp_path: Path) -> None:
    for which, text in (("r1.fa", ">a one\nACGTACGT\n>b\nAAAA\n"), ("r2.fa", ">a two\nCCCC\n>b\nTTTT\n")):
        (tmp_path / which).write_text(text)
    result = simtbed("correct", str(tmp_path / "r1.fa"), str(tmp_path / "r2.fa"), "-p", str(tmp_path / "c2.fa"))
    assert (result.code, result.out) == (0, ">a one\nACGTACGT\n>b\nAAAA\n")
    assert (tmp_path / "c2.fa").read_text() == ">a two\nCCCC\n>b\nTTTT\n"
