"""Diagnostics as data, and their text form: file, line, caret, explanation."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Self

from .escaping import html, printable, source_line
from .span import Span
from .tracebacks import notebook_lines, set_hooks


@dataclass(frozen=True)
class Insertion:
    """A statement that corrects a finding, and its place in the source.

    line: of the statement that it precedes, or of the header of the loop in whose body it becomes the first or last statement.
    """

    statement: str
    file: str
    line: int
    place: Literal["before", "start of loop", "end of loop"]

    def __str__(self) -> str:
        if self.place == "before":
            return f"{self.statement} before line {self.line}"
        end = self.place.removesuffix(" of loop")
        when = ", before its next iteration" if end == "end" else ""
        return f"{self.statement} at the {end} of the loop in line {self.line}{when}"


UNFREED = "unfreed"
"""The kind of remarks on memory of a device that a program does not free."""
REFUSED = "refused launch"
"""The kind of remarks on launches that a device refuses, with an error that the program reads."""
HOST_REMARKS = (UNFREED, REFUSED, "unwritten")
"""The kinds of remarks on host code."""


@dataclass(frozen=True)
class Diagnostic:
    """One finding.

    kind: "compile", "bounds", "alignment", "barrier", "convergence", "step limit", "assertion", "uninitialised", "race", "benign race",
    "unacquired race", "arithmetic", "nan", "wgmma", "mbarrier" or "schedule"; "unwritten" for elements of an output that no thread
    wrote; "order" for a difference due to the order of threads, "native" for one due to CUDA's own mathematical functions; "spill" for
    a compiler message; "budget" for costs; of host code "copy" (also a memset), "free", "unread error", "host memory", "refused launch" and
    "unfreed" for memory. notes: lines of explanation (position, values, allocation, advice). count:
    occurrences of the finding (thread executions for a fault). related: the position of the other access. remedy: statements
    that correct a race; empty if no such statement is known. array: the array of a race, or that of "order" and "native".
    blocks: the linear indices of the blocks of a fault's threads, in the order of their accesses; empty if they are unknown, not compared.
    of_copies: whether the threads of a race load an element by the address by which one of them stores it, or are lanes of a warp that
    store it at once in shared memory; not compared.
    """

    kind: str
    message: str
    span: Span
    notes: tuple[str, ...] = ()
    count: int = 1
    related: Span | None = None
    remedy: tuple[Insertion, ...] = ()
    array: str = ""
    blocks: tuple[int, ...] = field(default=(), compare=False)
    of_copies: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return render(self)

    def _repr_html_(self) -> str:
        """Return the text for notebooks."""
        return f"<pre>{html(render(self))}</pre>"


MAX_COLUMNS = 400
"""Characters of a source line that a message shows, around the position."""


def render(diagnostic: Diagnostic) -> str:
    """Return `file:line:column: message`, the source line with the position underlined, then the notes; all printable."""
    span = diagnostic.span
    lines = [f"{span.name}:{span.line}:{span.column}: {printable(diagnostic.message)}"]
    for place in (span, diagnostic.related):
        source = place.source if place else ""
        if place and source:
            first = max(place.column - 1 - MAX_COLUMNS // 2, 0) if len(source) > MAX_COLUMNS else 0
            source, column = source[first : first + MAX_COLUMNS], place.column - 1 - first
            # A tab must remain a tab under the line, or the caret drifts.
            lead = "".join(c if c == "\t" else " " for c in source_line(source[:column]))
            carets = "^" * max(1, len(source_line(place.text[: MAX_COLUMNS - column])))
            lines += [f"{place.line:>5} | {source_line(source)}", f"      | {lead}{carets}"]
    lines += [f"      {printable(note)}" for note in diagnostic.notes]
    lines += [f"      called from {call.place}: {printable(call.source.strip())}" for call in reversed(span.calls)]
    return "\n".join(lines)


class SimtbedError(Exception):
    """Base class of this package's errors; their text is for the user."""

    for_the_user = True

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        if cls.for_the_user:
            set_hooks()
        return super().__new__(cls, *args, **kwargs)

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows."""
        return notebook_lines(self)


class HostCallError(SimtbedError):
    """Raised if Python evaluates a word of the kernel language."""


class LaunchError(SimtbedError):
    """Raised for launch arguments that do not fit the kernel, the device or the engine."""


class UnavailableError(LaunchError):
    """Raised without a required GPU or tool on this machine."""


class OutOfMemory(LaunchError):
    """Raised if the arrays of a launch do not fit the device's free memory; a smaller launch may fit."""


@dataclass(eq=False)
class CompileError(SimtbedError):
    """Raised for a kernel outside the language, with every error in it."""

    diagnostics: Sequence[Diagnostic] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(render(d) for d in self.diagnostics)


class VerifyError(SimtbedError):
    """Raised if the IR violates its rules: a defect of this package, never of the user's kernel."""

    for_the_user = False
