"""Private words and relative pronouns in the prose and the identifiers of each folder.

`python -m tests.prose` prints the table; `python -m tests.prose emulator/ir` lists each private word of a folder.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORDS = Path(__file__).with_name("words.toml")
RELATIVES = frozenset({"that", "which", "who", "whom", "whose", "what"})
EXEMPT = frozenset({"tests/prose"})
"""Folders that quote private words."""
_WORD = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*")
_CODE_BLOCK = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`\n]*`|\]\([^)\n]*\)|<!--.*?-->|https?://\S+")
_TOOL_COMMENT = re.compile(r"#\s*(noqa|fmt:|type:|ruff:|pragma|mypy:|!)")


@dataclass(frozen=True)
class Vocabulary:
    """Private words with the words to write instead. suggestion: by word in lower case. allowed: phrases of the field.
    banned: whole identifiers that are no names."""

    suggestion: dict[str, str]
    allowed: re.Pattern[str]
    banned: frozenset[str]

    def private(self, text: str) -> list[str]:
        """Return the private words of a text, in order and in lower case."""
        return [word for word in words(self.allowed.sub(" ", text)) if word in self.suggestion]

    def private_in(self, passage: Passage) -> list[str]:
        """Return the private words of a passage; of an identifier, also the identifier where it is no name."""
        if passage.kind == "identifier" and passage.text.strip().lower() in self.banned:
            return [passage.text.strip().lower()]
        return self.private(passage.text)


@dataclass(frozen=True)
class Passage:
    """A text of one kind (docstring, comment, message, page, identifier) at a line of a file."""

    path: str
    line: int
    kind: str
    text: str


@dataclass
class Tally:
    """Number of words, private words and relative pronouns of a folder's prose."""

    words: int = 0
    relatives: int = 0
    private: Counter[str] = field(default_factory=Counter)

    @property
    def private_rate(self) -> float:
        """Private words per 10,000 words."""
        return 10_000 * self.private.total() / max(self.words, 1)

    @property
    def relative_rate(self) -> float:
        """Relative pronouns per 100 words."""
        return 100 * self.relatives / max(self.words, 1)


def words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return [word.lower().removesuffix("'s") for word in _WORD.findall(text)]


@cache
def vocabulary() -> Vocabulary:
    """Return the vocabulary of words.toml."""
    content = tomllib.loads(WORDS.read_text(encoding="utf-8"))
    rows = content["private"]
    suggestion = {word: row["write"] for row in rows for word in row["words"]}
    phrases = [phrase for row in rows for phrase in row.get("allow", ())]
    return Vocabulary(
        suggestion,
        re.compile(r"\b(?:" + "|".join(phrases) + r")\b", re.IGNORECASE),
        frozenset(content["identifiers"]["banned"]),
    )


def tracked_files() -> list[Path]:
    """Return the Python and Markdown files of the repository, without the golden texts."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.md"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    return [ROOT / name for name in names if name and (ROOT / name).is_file() and "/golden/" not in name]


def passages(path: Path) -> Iterator[Passage]:
    """Return each passage of a file."""
    name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        prose = _CODE_BLOCK.sub(lambda match: "\n" * match[0].count("\n"), text)
        for number, line in enumerate(prose.split("\n"), 1):
            if line.strip():
                yield Passage(name, number, "page", _INLINE_CODE.sub(" ", line))
        return
    tree = ast.parse(text)
    yield from _strings(name, tree)
    yield from _identifiers(name, tree)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not _TOOL_COMMENT.match(token.string):
            yield Passage(name, token.start[0], "comment", _INLINE_CODE.sub(" ", token.string))


def _strings(name: str, tree: ast.Module) -> Iterator[Passage]:
    """Docstrings, the texts below attributes and constants, and messages: strings of at least three words. Kernels given as text are
    left out, see `_identifiers`."""
    kernels = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "source"
        for inner in ast.walk(node)
    }
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in kernels:
            kind = "docstring" if id(node) in statements else "message"
            text = _INLINE_CODE.sub(" ", node.value)
            if kind == "docstring" or (" " in node.value.strip() and len(words(text)) >= 3):
                yield Passage(name, node.lineno, kind, text)


def _identifiers(name: str, tree: ast.Module) -> Iterator[Passage]:
    """Names that a file defines: modules, classes, functions, parameters, variables and attributes, split into words.

    Variables of comprehensions and lambdas are left out: they live for one line. So are names inside functions of the
    kernel language: they are part of the printed CUDA, whose digests the records of GPUs have.
    """
    yield Passage(name, 1, "identifier", split(Path(name).stem))
    left_out = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.comprehension | ast.Lambda) or _in_kernel_language(node)
        for inner in ast.walk(_names_of(node))
    }
    for node in ast.walk(tree):
        if id(node) in left_out:
            continue
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield Passage(name, node.lineno, "identifier", split(node.name))
        elif isinstance(node, ast.arg):
            yield Passage(name, node.lineno, "identifier", split(node.arg))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield Passage(name, node.lineno, "identifier", split(node.id))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield Passage(name, node.lineno, "identifier", split(node.attr))


def _in_kernel_language(node: ast.AST) -> bool:
    """Return whether a node is a function with the decorator kernel or device."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else ()
    names = {ast.unparse(decorator).split("(")[0].rpartition(".")[2] for decorator in decorators}
    return bool(names & {"kernel", "device"})


def _names_of(node: ast.AST) -> ast.AST:
    """Return the tree of the names that a comprehension, a lambda or a function defines."""
    if isinstance(node, ast.comprehension):
        return node.target
    return node.args if isinstance(node, ast.Lambda) else node


def split(identifier: str) -> str:
    """Return the words of an identifier, separated by blanks: `LanePath_of` gives `Lane Path of`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", identifier.replace("_", " "))


def folder(name: str) -> str:
    """Return the folder that a file is counted with: two levels, or one where the file lies directly in it."""
    levels = name.split("/")[:-1]
    return "/".join(levels[:2]) or "."


def tallies() -> dict[str, dict[str, Tally]]:
    """Return the tallies by folder: of prose (`prose`) and of identifiers (`identifiers`)."""
    result: dict[str, dict[str, Tally]] = defaultdict(lambda: {"prose": Tally(), "identifiers": Tally()})
    for path in tracked_files():
        for passage in passages(path):
            place = folder(passage.path)
            if place in EXEMPT:
                continue
            tally = result[place]["identifiers" if passage.kind == "identifier" else "prose"]
            found = words(passage.text)
            tally.words += len(found)
            tally.private.update(vocabulary().private_in(passage))
            tally.relatives += sum(word in RELATIVES for word in found)
    return result


def findings(prefix: str) -> Iterator[tuple[Passage, str]]:
    """Return each private word below a folder or in a file, with its passage."""
    for path in tracked_files():
        if path.relative_to(ROOT).as_posix().startswith(prefix):
            for passage in passages(path):
                for word in vocabulary().private_in(passage):
                    yield passage, word
