"""Print the table of private words and relative pronouns, or the private words of the folders named."""

import sys

from tabulate import tabulate

from tests.prose.measure import findings, tallies, vocabulary


def main(prefixes: list[str]) -> None:
    """Print the private words below the prefixes, or the table of all folders where there are none."""
    for prefix in prefixes:
        for passage, word in findings(prefix):
            text = " ".join(passage.text.split())[:160]
            suggestion = vocabulary().suggestion.get(word, "say what it is")
            print(f"{passage.path}:{passage.line}: {passage.kind}: {word} ({suggestion}): {text}")
    if not prefixes:
        rows = [
            (
                name,
                of["prose"].words,
                of["prose"].private_rate,
                of["prose"].relative_rate,
                of["identifiers"].private_rate,
            )
            for name, of in sorted(tallies().items(), key=lambda item: -item[1]["prose"].private_rate)
        ]
        headings = ("folder", "words", "private per 10,000", "relatives per 100", "identifiers per 10,000")
        print(tabulate(rows, headers=headings, floatfmt=".1f"))


if __name__ == "__main__":
    main(sys.argv[1:])
