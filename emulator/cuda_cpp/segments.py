"""Declarations of a C++ text outside of functions and classes, without a parser: their range and their words.

Host code is declared beside kernels and often needs other headers than a kernel. A declaration with an error is removed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

_TOKEN = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)|R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
    r"""|^[ \t]*\#(?:\\\n|[^\n])*|[A-Za-z_]\w*|[{}();]|[^\s]""",
    re.DOTALL | re.MULTILINE,
)
_ATTRIBUTES = {"__launch_bounds__", "__attribute__", "__align__", "alignas", "__maxnreg__", "__cluster_dims__"}
_DEVICE_WORDS = {"__global__", "__device__"}


@dataclass(frozen=True)
class Segment:
    """A declaration: its first and its last line, from 1, and its words before the body."""

    first: int
    last: int
    start: int
    end: int
    words: tuple[str, ...]

    @property
    def is_device_code(self) -> bool:
        return not _DEVICE_WORDS.isdisjoint(self.words)

    @property
    def kernel(self) -> str:
        """The name of a kernel; "" for other declarations and for templates."""
        if "__global__" not in self.words or "template" in self.words:
            return ""
        calls = (word for word, after in zip(self.words, self.words[1:], strict=False) if after == "(")
        return next((word for word in calls if word not in _ATTRIBUTES), "")


def segments(text: str) -> Iterator[Segment]:
    """Yield the declarations of a text, those in namespaces one by one."""
    depth, start, words = 0, -1, list[str]()
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token.startswith(("//", "/*")) or token.lstrip().startswith("#"):
            continue
        if not depth and token == "}":  # of a namespace
            start, words = -1, []
            continue
        if start < 0:
            start = match.start()
        if token == "{":
            if not depth and _is_outer(words):
                start, words = -1, []
                continue
            depth += 1
        elif token == "}":
            depth = max(depth - 1, 0)
        elif depth == 0 or token in _DEVICE_WORDS:
            words.append(token)
        ends = depth == 0 and (token == ";" or (token == "}" and _is_function(words)))
        if ends:
            end = match.end()
            yield Segment(text.count("\n", 0, start) + 1, text.count("\n", 0, end) + 1, start, end, tuple(words))
            start, words = -1, []


def _is_outer(words: list[str]) -> bool:
    """Whether a brace opens a namespace or a block of linkage."""
    if words[:1] == ["extern"]:
        return len(words) == 2
    return "namespace" in words[:2] and "(" not in words


def _is_function(words: list[str]) -> bool:
    """Whether the brace that closes a body ends its declaration: that of a function, not of a class or an initialiser."""
    types = ("struct", "class", "union", "enum", "typedef")
    words = _without_templates(words)
    return "(" in words and "=" not in words[: words.index("(")] and words[0] not in types


def _without_templates(words: list[str]) -> list[str]:
    """Return a declaration without its lists of template parameters, which may have default arguments."""
    while words[:1] == ["template"]:
        depths = accumulate((word == "<") - (word == ">") for word in words[1:])
        words = words[next((n + 2 for n, depth in enumerate(depths) if not depth), len(words)) :]
    return words


def without(text: str, removed: list[Segment]) -> str:
    """Return a text with blank declarations; its lines keep their numbers."""
    for segment in removed:
        blank = "".join(c if c == "\n" else " " for c in text[segment.start : segment.end])
        text = text[: segment.start] + blank + text[segment.end :]
    return text
