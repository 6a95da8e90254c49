"""What is said of a shipped variant: its family's recurrence, its paper, its threads and its memory, from one source."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from simtbed.kernels import Family, Variant


@dataclass(frozen=True)
class Explanation:
    """recurrence: of the family. section: of the paper. mapping: of work to threads. layout: a picture of the memory, or
    empty. kernel: what the kernel's file says of itself."""

    family: str
    variant: str
    description: str
    paper: str
    section: str
    recurrence: str
    mapping: str
    layout: str
    kernel: str

    def content(self) -> dict[str, str]:
        """For JSON."""
        return dict(vars(self))

    def text(self) -> str:
        """For people."""
        return "\n\n".join(f"{title}\n\n{_indented(text)}" for title, text in self.parts() if text)

    def parts(self) -> list[tuple[str, str]]:
        """Titles and what stands below them."""
        source = f"{self.paper}\n{self.section}" if self.section else self.paper
        return [
            (f"{self.family}/{self.variant}", self.description),
            ("Paper", source),
            ("What is computed", self.recurrence),
            ("Threads", self.mapping),
            ("Memory", self.layout),
            ("The kernel", self.kernel),
        ]


def explanation(family: Family[Any], variant: Variant) -> Explanation:
    """Of a family's row `explained`, the docstring of its package, and that of the variant's kernel."""
    known = family.explained().get(variant.name)
    return Explanation(
        family=family.name,
        variant=variant.name,
        description=variant.description,
        paper=variant.paper,
        section=known.section if known else "",
        recurrence=inspect.getdoc(import_module(f"simtbed.kernels.{family.name}")) or "",
        mapping=known.mapping if known else "",
        layout=known.layout if known else "",
        kernel=inspect.getdoc(import_module(variant.location.partition(":")[0])) or "",
    )


def page(families: Iterable[Family[Any]]) -> str:
    """Every variant of every family, as Markdown."""
    parts = ["# Variants, explained", "Written by the test of `simtbed explain`, from the same source."]
    for family in families:
        parts.append(f"## {family.title}")
        recurrence = inspect.getdoc(import_module(f"simtbed.kernels.{family.name}")) or ""
        parts.append(_fenced(recurrence))
        for variant in family.variants.values():
            found = explanation(family, variant)
            parts.append(f"### {variant.name}")
            parts += [f"{title}: {text}" for title, text in (("From", found.paper), ("Section", found.section)) if text]
            parts += [text for text in (found.mapping, _fenced(found.layout) if found.layout else "") if text]
            if not found.mapping:
                parts.append(_fenced(found.kernel))
    return "\n\n".join(parts) + "\n"


def _fenced(text: str) -> str:
    return f"```text\n{text}\n```"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())
