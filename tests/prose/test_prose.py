"""Each folder's prose has few private words, few relative pronouns, and identifiers that are names of the field."""

import pytest

from tests.prose.measure import ROOT, Passage, Tally, passages, split, tallies, vocabulary

PRIVATE_PER_10_000 = 15
RELATIVES_PER_100 = 3.0
FEW_WORDS = 700
"""In a folder with fewer words, one private word exceeds the rate: a folder may have one."""


@pytest.fixture(scope="module")
def folders() -> dict[str, dict[str, Tally]]:
    return tallies()


@pytest.mark.slow
def test_prose_has_few_private_words(folders: dict[str, dict[str, Tally]]) -> None:
    over = {
        name: dict(kinds["prose"].private)
        for name, kinds in folders.items()
        if kinds["prose"].private.total() > 1 and kinds["prose"].private_rate > PRIVATE_PER_10_000
    }
    assert over == {}, "python -m tests.prose FOLDER lists them with their lines"


@pytest.mark.slow
def test_identifiers_are_names_of_the_field(folders: dict[str, dict[str, Tally]]) -> None:
    over = {
        name: dict(kinds["identifiers"].private)
        for name, kinds in folders.items()
        if kinds["identifiers"].private_rate > PRIVATE_PER_10_000
    }
    assert over == {}, "python -m tests.prose FOLDER lists them with their lines"


@pytest.mark.slow
def test_sentences_have_few_relative_clauses(folders: dict[str, dict[str, Tally]]) -> None:
    over = {
        name: round(kinds["prose"].relative_rate, 1)
        for name, kinds in folders.items()
        if kinds["prose"].words > FEW_WORDS and kinds["prose"].relative_rate > RELATIVES_PER_100
    }
    assert over == {}


@pytest.mark.parametrize(
    ("text", "private"),
    [
        ("What was told by the other hand.", ["told", "hand"]),
        ("a two-way cache, written by hand", []),
        ("Warps take turns", ["turns"]),
        ("Return the real part of z.", []),
    ],
)
def test_private_words_are_found_and_field_phrases_allowed(text: str, private: list[str]) -> None:
    assert vocabulary().private(text) == private


@pytest.mark.parametrize(
    ("name", "private"), [("told_of", ["told"]), ("_found", ["found"]), ("found_sites", []), ("one", ["one"])]
)
def test_identifiers_are_split_into_words(name: str, private: list[str]) -> None:
    assert vocabulary().private_in(Passage("x.py", 1, "identifier", split(name))) == private


def test_every_kind_of_passage_is_read() -> None:
    kinds = {
        passage.kind
        for path in ("emulator/cluster.py", "emulator/errors.py", "README.md")
        for passage in passages(ROOT / path)
    }
    assert kinds == {"docstring", "comment", "message", "identifier", "page"}
