"""Facts of pages that the repository states as data: tables below a mark, and numbers in sentences.

<!-- table of folders -->   packages and their docstrings
<!-- table of mistakes -->  pairs of the corpus, and those that compute-sanitizer reports
"""

import ast
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from simtbed.kernels import FAMILIES

from tests.checkers.corpus import PAIRS

ROOT = Path(__file__).parents[1]
MISTAKES = {
    "race": "races", "unacquired race": "reads of released data without an acquire",
    "bounds": "accesses out of bounds", "uninitialised": "uninitialised reads",
    "arithmetic": "results outside the domain of an operation", "barrier": "barriers",
    "convergence": "warp operations on inactive lanes", "step limit": "endless loops and waits",
    "schedule": "results that depend on the schedule", "wgmma": "products of warpgroups", "mbarrier": "barriers in shared memory",
}  # fmt: skip
"""Kinds of finding in the corpus, in words."""


# ------------------------------------------------------------------ folders
def packages() -> list[Path]:
    """Return the folders with code: each package and its direct subpackages."""
    tops = [ROOT / name for name in ("emulator", "kernels", "oracles", "reports")]
    return [folder for top in tops for folder in (top, *sorted(p.parent for p in top.glob("*/__init__.py")))]


def folders() -> Iterator[Sequence[str]]:
    """Yield the rows of the folders: path, first paragraph of the docstring."""
    yield "folder", "content"
    for folder in packages():
        docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
        yield f"`{folder.relative_to(ROOT)}/`", " ".join(docstring.partition("\n\n")[0].split())


# ------------------------------------------------------------------ the corpus
def _measured() -> dict[str, tuple[str, bool]]:
    """Return the pairs that ran under compute-sanitizer: kind of the mistake, and whether it is reported and its fixed twin is not."""
    table = json.loads((ROOT / "tests/checkers/sanitizer_h200.json").read_text(encoding="utf-8"))["pairs"]
    executed = {name: row for name, row in table.items() if row["mistake"] != "not run"}
    return {name: (row["kind"], bool(row["mistake"]) and not row["mended"]) for name, row in executed.items()}


def mistakes() -> Iterator[Sequence[str]]:
    """Yield the rows of the corpus: kind, pairs, detected by simtbed, detected by compute-sanitizer."""
    yield "mistakes in the corpus", "simtbed", "compute-sanitizer on an H200 (all four tools)"
    faults = [pair.fault for pair in PAIRS.values()]
    for kind, words in MISTAKES.items():
        pairs, detected = faults.count(kind), [reported for own, reported in _measured().values() if own == kind]
        measured = f"{sum(detected)} of {len(detected)}" if detected else "not run"
        yield words, f"{pairs} of {pairs}", measured


TABLES: dict[str, Callable[[], Iterator[Sequence[str]]]] = {"folders": folders, "mistakes": mistakes}


# ------------------------------------------------------------------ numbers
def _numbers() -> list[tuple[str, str, tuple[int, ...]]]:
    """Return (page, pattern, the numbers of its groups)."""
    variants = sum(len(family.variants) for family in FAMILIES.values())
    detected = [reported for _, reported in _measured().values()]
    pairs = len(PAIRS)
    return [
        ("README.md", r"(\d+) variants\]", (variants,)),
        ("README.md", r"(\d+) of (\d+) in the corpus; compute-sanitizer finds (\d+) of the (\d+)",
         (pairs, pairs, sum(detected), len(detected))),
        ("docs/checkers.md", r"`tests/checkers/corpus` has (\d+) pairs", (pairs,)),
    ]  # fmt: skip


def updated(page: Path, text: str) -> str:
    """Return the text of a page with the facts of the data. Raises AssertionError for a page without a number that it should have."""
    for mark, rows in re.findall(r"^<!-- table of (\w+) -->\n((?:\|.*\n)+)", text, re.MULTILINE):
        text = text.replace(rows, _table(list(TABLES[mark]())))
    for name, pattern, numbers in _numbers():
        if page == ROOT / name:
            match = re.search(pattern, text)
            assert match is not None, f"{name} has no {pattern}"
            for group in range(len(numbers), 0, -1):
                text = text[: match.start(group)] + str(numbers[group - 1]) + text[match.end(group) :]
    return text


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
