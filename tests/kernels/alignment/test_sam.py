"""SAM: samtools reads and sorts it and computes the same differences; invalid names are refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pysam
import pytest
from simtbed import launch
from simtbed.kernels import FunctionLauncher, InputError
from simtbed.kernels.alignment.host import files
from simtbed.kernels.alignment.host.generate import generate
from simtbed.kernels.alignment.host.pipeline import align
from simtbed.kernels.alignment.host.problem import NEW, Parameters, Problem, Strategy


def written(problem: Problem, path: Path) -> Path:
    with path.open("wb") as to:
        files.write([(problem, align(problem, "packed", FunctionLauncher(launch), 1 << 20))], "sam", to)
    return path


def with_names(problem: Problem, names: list[tuple[str, str]]) -> Problem:
    return replace(problem, names=tuple(names))


@pytest.mark.parametrize("strategy", [Strategy.SOFTCLIP, Strategy.INDEL, Strategy.LEADING_INDEL])
def test_samtools_finds_the_same_alignments_and_differences(tmp_path: Path, strategy: Strategy) -> None:
    """Includes lower case and N: N matches N, and is a difference in SAM."""
    sequences = [(a.tobytes(), b.tobytes()) for a, b in generate(5, 30, (40, 90), (30, 100)).pairs()]
    sequences += [(b"acgtNNacgt", b"ACGTNNACGT"), (b"ACGTACGT", b"ACGTTTTACGT")]
    names = [(f"HLA*{p:02}:01|x", f"read/{p}") for p in range(len(sequences))]
    problem = with_names(Problem.from_pairs(sequences, Parameters(20, -15, -26, -2), strategy), names)
    path = written(problem, tmp_path / "found.sam")
    fasta = tmp_path / "references.fa"
    fasta.write_bytes(b"".join(b">%b\n%b\n" % (n.encode(), r) for (n, _), (r, _) in zip(names, sequences, strict=True)))
    pysam.faidx(str(fasta))
    marked = tmp_path / "marked.sam"
    marked.write_text("".join(pysam.calmd(str(path), str(fasta))))
    with pysam.AlignmentFile(str(path)) as ours, pysam.AlignmentFile(str(marked)) as samtools:
        assert ours.header.to_dict()["HD"] == {"VN": "1.6", "SO": "unknown"}
        assert [(record["SN"], record["LN"]) for record in ours.header.to_dict()["SQ"]] == [
            (name, len(reference)) for (name, _), (reference, _) in zip(names, sequences, strict=True)
        ]
        both = list(zip(ours, samtools, strict=True))
    assert len(both) == len(sequences)
    for (record, calculated), (name, read), (_, alternate) in zip(both, names, sequences, strict=True):
        assert (record.reference_name, record.query_name, record.flag, record.mapping_quality) == (name, read, 0, 255)
        assert record.query_sequence == alternate.decode().upper()  # pysam returns letters in upper case
        assert record.infer_query_length() == len(alternate)
        assert record.get_tag("NM") == calculated.get_tag("NM")
    if strategy is Strategy.INDEL:
        assert [record.get_tag("NM") for record, _ in both[-2:]] == [2, 3]


def test_ambiguity_codes_match_nothing(tmp_path: Path) -> None:
    """The specification of tags says so; samtools lets equal codes match, except N."""
    path = written(Problem.from_pairs([(b"ACGTRYACGT", b"ACGTRYACGT")]), tmp_path / "found.sam")
    with pysam.AlignmentFile(str(path)) as records:
        assert [record.get_tag("NM") for record in records] == [2]


def test_samtools_sorts_indexes_and_counts_it(tmp_path: Path) -> None:
    problem = generate(6, 40, (60, 80), (30, 50))
    problem = with_names(problem, [(f"chr{p % 4}", f"r{p}") for p in range(40)])
    offsets = np.arange(41) * 70
    bases = np.frombuffer(b"ACGT", np.uint8)[np.random.default_rng(1).integers(0, 4, 4 * 70)]
    problem = replace(problem, references=np.tile(bases, 10), reference_offsets=offsets)
    path, packed = written(problem, tmp_path / "found.sam"), tmp_path / "sorted.bam"
    pysam.quickcheck(str(path))
    pysam.sort("-o", str(packed), str(path))
    pysam.index(str(packed))
    with pysam.AlignmentFile(str(packed)) as records:
        assert [records.count(f"chr{c}") for c in range(4)] == [10] * 4


@pytest.mark.parametrize(
    ("names", "rejected"),
    [
        (("a,b", "r"), "a,b"),
        (("*a", "r"), "\\*a"),
        (("a", "@r"), "@r"),
        (("a", "r" * 255), "r" * 60),
        (("ä", "r"), "ä"),
    ],
)
def test_names_that_sam_does_not_take(names: tuple[str, str], rejected: str, tmp_path: Path) -> None:
    problem = with_names(Problem.from_pairs([(b"ACGT", b"CG")], NEW), [names])
    with pytest.raises(InputError, match=f"^{rejected} is no name for SAM: use tsv$"):
        written(problem, tmp_path / "found.sam")


def test_equal_names_are_one_reference(tmp_path: Path) -> None:
    """A name has one sequence: also if the other one has the same length, or is in another batch."""
    same = with_names(Problem.from_pairs([(b"ACGT", b"CG"), (b"acgu", b"AC")]), [("c", "a"), ("c", "b")])
    header = [line for line in written(same, tmp_path / "same.sam").read_text().splitlines() if line[0] == "@"]
    assert header == ["@HD\tVN:1.6\tSO:unknown", "@SQ\tSN:c\tLN:4"]
    other = with_names(Problem.from_pairs([(b"ACGT", b"CG"), (b"TTTT", b"TT")]), [("c", "a"), ("c", "b")])
    batches = [other.subset(0, 1), other.subset(1, 2)]
    answers = [(batch, align(batch, "packed", FunctionLauncher(launch), 1 << 20)) for batch in batches]
    with (tmp_path / "other.sam").open("wb") as to, pytest.raises(InputError, match="pairs 1 and 2 are both called c,"):
        files.write(answers, "sam", to)
