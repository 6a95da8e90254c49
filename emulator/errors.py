"""What can go wrong, as data, and the one way it is shown: file, line, caret, explanation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .span import Span


@dataclass(frozen=True)
class Diagnostic:
    """One finding.

    kind: "compile", "bounds", "barrier", "convergence", "step limit", "assertion", "uninitialised", "race",
    "benign race", "unacquired race", "arithmetic" or "schedule"; "spill", of what a compiler said; "budget", of what a kernel costs.
    notes: lines that explain it (where, values, allocation, advice).
    count: how many times the same finding was made (thread executions for a fault).
    related: the other place it speaks of.
    """

    kind: str
    message: str
    span: Span
    notes: tuple[str, ...] = ()
    count: int = 1
    related: Span | None = None

    def __str__(self) -> str:
        return render(self)


def render(diagnostic: Diagnostic) -> str:
    """`file:line:column: message`, the source line with the place underlined, then the notes."""
    span = diagnostic.span
    lines = [f"{span.name}:{span.line}:{span.column}: {diagnostic.message}"]
    for place in (span, diagnostic.related):
        source = place.source if place else ""
        if place and source:
            # A tab must stay a tab under the line, or the caret drifts.
            lead = "".join(c if c == "\t" else " " for c in source[: place.column - 1])
            lines += [f"{place.line:>5} | {source}", f"      | {lead}{'^' * max(1, len(place.text))}"]
    lines += [f"      {note}" for note in diagnostic.notes]
    lines += [f"      called from {call.place}: {call.source.strip()}" for call in reversed(span.calls)]
    return "\n".join(lines)


class SimtbedError(Exception):
    """Base of every error this package raises on purpose; its text is meant for the user."""


class HostCallError(SimtbedError):
    """A word of the kernel language was used outside a kernel."""


class LaunchError(SimtbedError):
    """A launch whose arguments do not fit the kernel, the device or the engine."""


class UnavailableError(LaunchError):
    """What was asked for cannot run on this machine: there is no GPU, or a tool that it needs is missing."""


class OutOfMemory(LaunchError):
    """A launch whose arrays do not fit the device's free memory: less at once may fit."""


@dataclass(eq=False)
class CompileError(SimtbedError):
    """A kernel that is not in the language: every error found in it."""

    diagnostics: Sequence[Diagnostic] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(render(d) for d in self.diagnostics)


class VerifyError(SimtbedError):
    """The IR breaks its own rules: a defect of this package, never of the user's kernel."""
