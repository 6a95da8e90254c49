"""Explanations of shipped variants: recurrence, paper, thread mapping and memory layout."""

import inspect
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from simtbed.kernels import Family, Variant

CHOICES = "Choices where the paper is silent"


@dataclass(frozen=True)
class Explanation:
    """Explanation of a variant.

    recurrence: of the family. section: of the paper. mapping: of work to threads. layout: a diagram of the memory, or empty.
    choices: one per line, where the paper is silent. kernel: docstring of the module of the kernel.
    """

    family: str
    variant: str
    description: str
    paper: str
    section: str
    recurrence: str
    mapping: str
    layout: str
    choices: str
    kernel: str

    def content(self) -> dict[str, str]:
        """Return the JSON content."""
        return dict(vars(self))

    def text(self) -> str:
        """Return the sections as text."""
        return "\n\n".join(f"{title}\n\n{_indented(text)}" for title, text in self.sections() if text)

    def sections(self) -> list[tuple[str, str]]:
        """Return titles and texts."""
        source = f"{self.paper}\n{self.section}" if self.section else self.paper
        return [
            (f"{self.family}/{self.variant}", self.description),
            ("Paper", source),
            ("Recurrence", self.recurrence),
            ("Threads", self.mapping),
            ("Memory", self.layout),
            (CHOICES, self.choices),
            ("The kernel", self.kernel),
        ]


def explanation(family: Family[Any], variant: Variant) -> Explanation:
    """Combine the family's row `explained`, the docstring of its package, and that of the variant's kernel."""
    details = family.explained().get(variant.name)
    return Explanation(
        family=family.name,
        variant=variant.name,
        description=variant.description,
        paper=variant.paper,
        section=details.section if details else "",
        recurrence=inspect.getdoc(import_module(f"simtbed.kernels.{family.name}")) or "",
        mapping=details.mapping if details else "",
        layout=details.layout if details else "",
        choices="\n".join(details.choices) if details else "",
        kernel=inspect.getdoc(import_module(variant.location.partition(":")[0])) or "",
    )


def choices(family: Family[Any], variant: str) -> str:
    """Return the choices of a variant as one paragraph."""
    return f"{CHOICES}, in `{variant}`: {' '.join(family.explained()[variant].choices)}"


def page(family: Family[Any]) -> str:
    """Return the Markdown page of the variants of a family."""
    recurrence = inspect.getdoc(import_module(f"simtbed.kernels.{family.name}")) or ""
    paragraphs = [f"# {family.title}: variants", _fenced(recurrence)]
    for variant in family.variants.values():
        details = explanation(family, variant)
        paragraphs.append(f"## {variant.name}")
        paragraphs += [
            f"{title}: {text}" for title, text in (("From", details.paper), ("Section", details.section)) if text
        ]
        paragraphs += [text for text in (details.mapping, _fenced(details.layout) if details.layout else "") if text]
        if details.choices:
            paragraphs.append(f"{CHOICES}:")
            paragraphs.append("\n".join(f"- {choice}" for choice in details.choices.splitlines()))
        if not details.mapping:
            paragraphs.append(_fenced(details.kernel))
    return "\n\n".join(paragraphs) + "\n"


def _fenced(text: str) -> str:
    return f"```text\n{text}\n```"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())
