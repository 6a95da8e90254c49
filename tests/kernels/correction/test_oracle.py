"""The oracle: its functions on cases computed by hand, and the whole on CUDA-EC's published answers."""

import pytest
from simtbed.oracles import correction as oracle


@pytest.mark.parametrize(
    ("hash", "expected"),
    [
        (oracle.rs, 65 * (63689 * 378551 % 2**32) % 2**32 + 67),
        (oracle.pjw, 65 * 16 + 67),
        (oracle.elf, 65 * 16 + 67),
        (oracle.bkdr, 65 * 131 + 67),
        (oracle.sdbm, 65 * 65599 + 67),
        (oracle.djb, (5381 * 33 + 65) * 33 + 67),
        (oracle.dek, ((2 * 32 ^ 65) * 32 ^ 67)),
    ],
)
def test_hashes_of_two_letters(hash: oracle.Hash, expected: int) -> None:
    assert hash("AC") == expected


def test_js_of_one_letter() -> None:
    assert oracle.js("A") == 1315423911 ^ ((1315423911 * 32 + 65 + 1315423911 // 4) % 2**32)


def test_pjw_and_elf_are_one_function() -> None:
    for text in ("ACGTACGTACGTACGTACGT", "TTTTTTTTTTTTTTTTTTTTTTT", "GATTACA"):
        assert oracle.pjw(text) == oracle.elf(text)


def test_both_strands_are_counted() -> None:
    assert oracle.solid_kmers(["AAAC", "GTTT"], 3, 2) == {"AAA", "TTT", "AAC", "GTT"}
    assert oracle.solid_kmers(["AAAC"], 3, 2) == set()
    assert oracle.solid_kmers(["ACGT"], 4, 2) == {"ACGT"}  # equal to its reverse complement


def test_other_letters_make_no_kmer() -> None:
    assert oracle.solid_kmers(["AAANCCC"] * 3, 3, 3) == {"AAA", "TTT", "CCC", "GGG"}


def test_votes_count_windows() -> None:
    """The last letter of GATTACG should be A: it is in one window of four letters, at the last position."""
    solid = {"GATT", "ATTA", "TTAC", "TACA"}
    result = oracle.votes("GATTACG", solid, 4, 0)
    assert result[6][oracle.BASES.index("A")] == 1
    assert sum(map(sum, result)) == 1


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({(3, 1): 5}, (3, "A")),
        ({(3, 1): 2}, None),  # not more than min_votes
        ({(3, 1): 5, (7, 0): 5}, (3, "A")),
        ({(3, 1): 5, (3, 2): 5}, None),
        ({(3, 1): 5, (7, 0): 5, (7, 1): 5}, (3, "A")),
        ({(2, 3): 4, (3, 1): 5, (3, 2): 5, (4, 0): 5}, None),
    ],
)
def test_ties(cells: dict[tuple[int, int], int], expected: tuple[int, str] | None) -> None:
    result = [[cells.get((at, column), 0) for column in range(4)] for at in range(9)]
    assert oracle.best(result, 2) == expected


def test_trimming() -> None:
    solid = {"AAC", "ACG", "CGT"}
    assert oracle.correct("TTAACGTCC", solid, 3, 9, 2, True) == oracle.Corrected("F", "AACGT", 2, 7)
    assert oracle.correct("TTAACGTCC", solid, 3, 9, 1, True) == oracle.Corrected("D", "TTAACGTCC", 0, 0)
    assert oracle.correct("TTAACGTCC", solid, 3, 9, 2, False) == oracle.Corrected("D", "TTAACGTCC", 0, 0)


def test_short_and_strange_reads() -> None:
    assert oracle.correct("AC", set(), 3, 2, 20, True) == oracle.Corrected("S", "AC", 0, 2)
    assert oracle.correct("AANCC", {"AAN"}, 3, 2, 20, True) == oracle.Corrected("D", "AANCC", 0, 0)
