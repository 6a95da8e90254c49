"""Letters of sequences: case, U, N and IUPAC codes give the same answers in every command and format, and with the oracle."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from simtbed import SimtbedError
from simtbed.kernels.alignment.host.problem import Problem as AlignmentProblem
from simtbed.kernels.correction.host.problem import Reads
from simtbed.kernels.files.letters import FOLDED, folded
from simtbed.kernels.pairhmm.host.files_gatk import HEADER
from simtbed.kernels.pairhmm.host.problem import Problem as PairHmmProblem

from tests.reports.conftest import Simtbed
from tests.table_checks import check_each

READ, HAPLOTYPE = "acguNRryACGT", "TTacgtnACGTACGUkk"
"""Odd letters. Fewer than a vector and its rest are in the second loop of the scan."""
LONG = "acgu" * 20 + "NRACGTTGCAUGCATGCATGC"
BASES = "acgtuuga" * 4 + "GGATTACCAGuuucaagUCCAt"
CODE = f"@code\n{BASES[:30]}R\n+\n{'I' * 31}\n"
"""A read with an IUPAC code: discarded like one with N."""


def plain(sequence: str) -> str:
    """Return the bases by the rule."""
    return "".join({"U": "T"}.get(c, c if c in "ACGTN" else "N") for c in sequence.upper())


def pairhmm(spell: Callable[[str], str]) -> str:
    reads = "".join(f"{spell(s)} {'I' * len(s)} {'N' * len(s)} {'N' * len(s)} {'+' * len(s)}\n" for s in (READ, LONG))
    return f"2 2\n{reads}{spell(HAPLOTYPE)}\n{spell(LONG)}\n"


def gatk(spell: Callable[[str], str]) -> str:
    rows = [f"{spell(h)} {spell(READ)} {'I' * 12} {'N' * 12} {'N' * 12} {'+' * 12} -1.0\n" for h in (HAPLOTYPE, LONG)]
    header: str = HEADER.decode()
    return header + "".join(rows)


def table(spell: Callable[[str], str]) -> str:
    return f"{spell(HAPLOTYPE)}\t{spell(READ)}\n{spell(LONG)}\t{spell(LONG[3:])}\n"


def fasta(spell: Callable[[str], str]) -> str:
    return f">a\n{spell(HAPLOTYPE[:9])}\n{spell(HAPLOTYPE[9:])}\n>b\n{spell(LONG)}\n"


def fastq(spell: Callable[[str], str]) -> str:
    reads = [BASES[n % 9 :] for n in range(60)]
    return "".join(f"@{n}\n{spell(read)}\n+\n{'I' * len(read)}\n" for n, read in enumerate(reads)) + CODE


def fasta_reads(spell: Callable[[str], str]) -> str:
    return "".join(f">{n}\n{spell(BASES[n % 9 :])}\n" for n in range(60))


CASES: list[tuple[list[str], Callable[[Callable[[str], str]], str]]] = [
    (["pairhmm", "IN", "--check"], pairhmm),
    (["pairhmm", "IN", "--format", "gatk"], gatk),
    (["align", "IN", "--check"], table),
    (["align", "IN", "--format", "sam"], table),
    (["align", "IN", "IN", "--format", "sam"], fasta),
    (["correct", "IN", "-o", "OUT"], fasta_reads),
    (["correct", "IN", "-o", "OUT", "--save-spectrum", "OUT.tsv", "--log", "OUT.log"], fastq),
    (["simulate", "--reference", "IN", "--length", "12-20", "-o", "OUT"], fasta),
]


@pytest.mark.slow
def test_commands_read_letters_by_one_rule(simtbed: Simtbed, tmp_path: Path) -> None:
    def answer(arguments: list[str], content: str) -> list[str]:
        (tmp_path / "IN").write_text(content)
        result = simtbed(*(str(tmp_path / a) if a.startswith(("IN", "OUT")) else a for a in arguments))
        assert result.code == 0, result.err
        written = [path for path in sorted(tmp_path.iterdir()) if path.name != "IN"]
        return [result.out, *(path.read_text() for path in written)]

    def check(case: tuple[list[str], Callable[[Callable[[str], str]], str]]) -> None:
        arguments, content = case
        expected = answer(arguments, content(plain))
        assert len(expected[-1]) > 10
        assert answer(arguments, content(str)) == expected
        for path in tmp_path.glob("OUT*"):
            path.unlink()

    check_each(CASES, check, lambda case: " ".join(case[0]))


def test_the_table_of_letters() -> None:
    assert bytes(range(33, 127)).decode().translate(FOLDED.decode("latin-1")) == "".join(
        plain(chr(c)) if chr(c).upper() in "ACGTUNRYSWKMBDHV" else "\0" for c in range(33, 127)
    )
    assert not any(FOLDED[:65]) and not any(FOLDED[123:])


def test_problems_of_the_library() -> None:
    assert folded(np.frombuffer(b"acguRn", np.uint8)).tobytes() == b"ACGTNN"
    assert AlignmentProblem.from_pairs([(b"acgu", b"r")]).references.tobytes() == b"ACGT"
    qualities = [np.full(2, 40, np.uint8)] * 4
    problem = PairHmmProblem.from_records([([(b"au", *qualities)], [b"uk"])])
    assert (problem.bases.tobytes(), problem.haplotypes.tobytes()) == (b"AT", b"TN")
    assert Reads.from_strings(["acgu"]).text.tobytes() == b"ACGT\n"
    with pytest.raises(SimtbedError, match="'-' at 2, expected A, C, G, T, U, N or another IUPAC code"):
        AlignmentProblem.from_pairs([(b"A-", b"C")])
