"""Spectra as text: equal counts from every form of KMC and Jellyfish dumps, saving and loading, mistakes with their lines."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from simtbed.kernels import Launcher
from simtbed.kernels.correction.filters import EMPTY
from simtbed.kernels.correction.host import files_spectrum
from simtbed.kernels.correction.host.files_spectrum import dump_lines, load
from simtbed.kernels.correction.host.generate import genome, simulate
from simtbed.kernels.correction.host.pipeline import Counter
from simtbed.kernels.correction.host.problem import Reads
from simtbed.kernels.family import InputError

COMPLEMENT = str.maketrans("ACGT", "TGCA")
K = 12


def reads() -> Reads:
    sequences = simulate(1, genome(1, 400), 60, (10, 50), 0.02).reads.strings()
    return Reads.from_strings([*sequences, "ACGTACGTACGT"] * 2)  # it equals its reverse complement


def counted() -> dict[str, int]:
    """Counts under the alphabetically smaller strand, as in KMC: a k-mer and its reverse complement together."""
    counts: dict[str, int] = {}
    for read in reads().strings():
        for p in range(len(read) - K + 1):
            kmer = read[p : p + K]
            kmer = min(kmer, kmer[::-1].translate(COMPLEMENT))
            counts[kmer] = counts.get(kmer, 0) + 1
    return counts


def as_kmc(counts: dict[str, int]) -> str:
    return "".join(f"{kmer}\t{count}\n" for kmer, count in counts.items())


def as_jellyfish(counts: dict[str, int]) -> str:
    return "".join(f"{kmer} {count}\n" for kmer, count in counts.items())


def as_fasta(counts: dict[str, int]) -> str:
    return "".join(f">{count}\n{kmer}\n" for kmer, count in counts.items())


def of_both_strands(counts: dict[str, int]) -> str:
    """Counts as from Jellyfish without -C: a k-mer and its reverse complement share the count."""
    lines = []
    for kmer, count in counts.items():
        other = kmer[::-1].translate(COMPLEMENT)
        lines += [(other, count - 1), (kmer, 1)] if count > 1 and other != kmer else [(kmer, count)]
    return as_jellyfish(dict(lines)).lower().replace("\n", "\r\n")


def occurrences(counter: Counter) -> dict[int, int]:
    keys, counts = counter.table.keys.numpy(), counter.table.counts.numpy()
    return {int(key): int(count) for key, count in zip(keys, counts, strict=True) if key != EMPTY}


@pytest.mark.parametrize("form", [as_kmc, as_jellyfish, as_fasta, of_both_strands])
@pytest.mark.parametrize("size", [64, 1 << 20])
def test_a_dump_is_the_count_of_its_reads(
    form: Callable[[dict[str, int]], str],
    size: int,
    launcher: Launcher,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files_spectrum, "PIECE", size)
    monkeypatch.setattr(files_spectrum, "AT_ONCE", size)
    own, loaded, again = (Counter(K, launcher) for _ in range(3))
    own.add(reads().text)
    dump, saved = tmp_path / "dump", tmp_path / "saved"
    dump.write_text(form(counted()) + "\n")
    load(dump, loaded)
    assert occurrences(loaded) == occurrences(own)
    saved.write_bytes(b"".join(part.tobytes() for part in dump_lines(loaded)))
    rows = [line.split("\t") for line in saved.read_text().splitlines()]
    assert {min(kmer, kmer[::-1].translate(COMPLEMENT)): int(count) for kmer, count in rows} == counted()
    load(saved, again)
    assert occurrences(again) == occurrences(own)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ACGTACGTACGT\t3\nACGTACGTACG\t3\n", "dump:2: 'ACGTACGTACG' has 11 letters, expected 12 as --k says"),
        ("ACGTACGTACGT\t3\nACGTACGTACGN\t3\n", "dump:2: 'ACGTACGTACGN\\t3', expected a k-mer and a count"),
        ("ACGTACGTACGT\t0\n", "dump:1: 'ACGTACGTACGT\\t0', expected"),
        ("ACGTACGTACGT 4294967296\n", "dump:1: "),
        ("ACGTACGTACGT\n", "dump:1: "),
        ("ACGTACGTACGT 3 4\n", "dump:1: "),
        (">3\nACGTACGTACGT\n>x\nACGTACGTACGT\n", "dump:3: '>x', expected '>' and a count, then a k-mer"),
        (">3\nACGTACGTACGT\n>3\n", "dump:4: "),
        (">3\nACGTACGTACGT\n>3\nACGT\n", "dump:4: 'ACGT' has 4 letters"),
        (">3\nACGTACGTACGT\n>3\n\n", "dump:4: ''"),
        ("\n", "dump:1: ''"),
        ("ACGTACGTACGT 3\n\nACGTACGTACGT 3\n", "dump:2: ''"),
    ],
)
def test_a_mistake_is_reported_with_its_line(text: str, message: str, launcher: Launcher, tmp_path: Path) -> None:
    (tmp_path / "dump").write_text(text)
    with pytest.raises(InputError) as raised:
        load(tmp_path / "dump", Counter(K, launcher))
    assert str(raised.value).startswith(str(tmp_path / message))


def test_large_counts_are_unchanged(launcher: Launcher, tmp_path: Path) -> None:
    (tmp_path / "dump").write_text("ACGTTCGTACGA 2000000000\nACGTACGTACGT 3000000000\n")
    counter = Counter(K, launcher)
    load(tmp_path / "dump", counter)
    assert sorted(occurrences(counter).values()) == [2_000_000_000, 2**31 - 1]
    assert np.array_equal(np.flatnonzero(counter.histogram()), [255])
