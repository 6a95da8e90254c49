"""Metrics of launches, as baselines contain them, and their differences by metric and by line of the kernel."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, NamedTuple

from ..machine.occupancy import occupancy
from ..profiler.events import RULES
from ..profiler.profile import Profile
from ..source_text import functions_in
from ..span import Span

Figures = dict[str, Any]
MOST_LINES, MOST_CHANGES = 10, 3
"""Maximum lines of a kernel in a difference, and metrics of each."""
COMPILED = ("registers", "spill_stores", "spill_loads", "local_bytes", "compiled_occupancy")
"""Metrics from a compiler: bytes, except registers per thread and percent of occupancy."""
_ABOUT = {"device": "device", "rules": "counting rules", "compiler": "compiler"}
"""Other dependencies of metrics than the kernel."""


def figures(profile: Profile, blocks: Iterable[tuple[int, int]], compiled: Mapping[str, Any] | None = None) -> Figures:
    """Return the metrics of launches. blocks: threads and bytes of shared memory of each launch's blocks. compiled: values from
    a compiler: its version and COMPILED, without the occupancy."""
    shapes = set(blocks)

    def occupancy_with(registers: int) -> float:
        """Return the smallest occupancy of a launch."""
        return min(occupancy(profile.device, threads, registers, shared).percent for threads, shared in shapes)

    totals = {name: count for name, count in profile.totals().items() if count}
    compiler_metrics = {name: value for name, value in (compiled or {}).items() if name != "compiler"}
    return {
        "device": profile.device.name,
        "rules": RULES,
        **({"compiler": compiled["compiler"]} if compiled else {}),
        "figures": {
            "launches": profile.launches,
            **totals,
            **profile.derived(),
            "occupancy": occupancy_with(0),
            "shared_bytes": max(shared for _, shared in shapes),
            **(
                {**compiler_metrics, "compiled_occupancy": occupancy_with(compiler_metrics["registers"])}
                if compiled
                else {}
            ),
        },
        "lines": [line for line, _ in _lines(profile)],
    }


def _lines(profile: Profile) -> Iterator[tuple[Figures, Span]]:
    """Yield each line with counters, relative to the first line of its function, and its place."""
    for (file, number), row in profile.by_line().items():
        text = profile.sources[file]
        function, first = _function(text, number)
        whole = "".join(text.splitlines()[number - 1 : number])
        source = whole.strip()
        column = len(whole) - len(whole.lstrip()) + 1
        place = Span(file, number, column, number, column + len(source))
        yield {"function": function, "line": number - first, "source": source, **row}, place


def _function(text: str, number: int) -> tuple[str, int]:
    """Return the innermost Python function around a line, and the line of its `def`; in another language the first line of the file."""
    around = [node for node in functions_in(text) if node.lineno <= number <= (node.end_lineno or node.lineno)]
    innermost = max(around, key=lambda node: node.lineno, default=None)
    return ("", 1) if innermost is None else (innermost.name, innermost.lineno)


@dataclass(frozen=True)
class Change:
    """A metric in a baseline and now; 0 if absent."""

    name: str
    before: float
    now: float

    @property
    def percent(self) -> float:
        """The relative change, in percent."""
        if self.before == self.now:
            return 0.0
        return 100 * abs(self.now - self.before) / abs(self.before) if self.before else float("inf")

    @property
    def is_count(self) -> bool:
        """Whether the metric is a count, not a ratio."""
        return isinstance(self.before, int) and isinstance(self.now, int)

    def __str__(self) -> str:
        sign = "+" if self.now > self.before else "-"
        much = f" ({sign}{rounded(self.percent)} %)" if self.before else ""
        return f"{self.name}: {_shown(self.before)} in the baseline, now {_shown(self.now)}{much}"


def rounded(percent: float) -> str:
    """Return a percentage with two significant digits, and whole from 10 on."""
    return f"{percent:,.0f}" if percent >= 10 else f"{percent:.2g}"


def _shown(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def improvement(differences: Iterable[Change]) -> str:
    """Return the largest decrease of a count as text; empty if a count increased, or none changed."""
    counts = [change for change in differences if change.is_count]
    if not counts or any(change.now > change.before for change in counts):
        return ""
    best = max(counts, key=lambda change: change.percent)
    return f"improved by {rounded(best.percent)} % ({best.name})"


def changes(before: Mapping[str, float], now: Mapping[str, float]) -> list[Change]:
    """Return the metrics that differ, the largest change first."""
    entries = [Change(name, before.get(name, 0), now.get(name, 0)) for name in {**before, **now}]
    return sorted((one for one in entries if one.before != one.now), key=lambda one: (-one.percent, one.name))


def compared(before: Figures, now: Figures) -> list[Change]:
    """Return the changes from a baseline. Metrics of a compiler are compared if `now` has them."""
    baseline_metrics = before["figures"]
    if "compiler" not in now:
        baseline_metrics = {name: value for name, value in baseline_metrics.items() if name not in COMPILED}
    return changes(baseline_metrics, now["figures"])


class ChangedLine(NamedTuple):
    """A line whose metrics changed, a new line, or a removed one. span: its place; None if removed.
    edited: whether its text differs from the baseline."""

    text: str
    span: Span | None
    edited: bool


def explained(
    before: Figures, now: Figures, changed: Sequence[ChangedLine], differences: Iterable[Change]
) -> list[str]:
    """Return lines about the changes, the lines of the kernel that cause them, and other changed dependencies."""
    lines = [str(change) for change in differences]
    for line in changed[:MOST_LINES]:
        lines += line.text.split("\n")
    if len(changed) > MOST_LINES:
        lines.append(f"and {len(changed) - MOST_LINES} more lines")
    about = ("device", "rules", *(["compiler"] if "compiler" in now else []))
    other = [key for key in about if before.get(key) != now.get(key)]
    lines += [
        f"the baseline is of {_ABOUT[key]} {before.get(key, 'none')}, this is of {_ABOUT[key]} {now[key]}"
        for key in other
    ]
    if other and "lines" in before and not any(line.edited for line in changed):
        lines.append("no line of the kernel is another one: that is the reason")
    return lines


def changed_lines(before: Figures, profile: Profile) -> list[ChangedLine]:
    """Return the lines that differ from those of a baseline, edited ones first, matched by text; none for a baseline of totals."""
    if "lines" not in before:
        return []
    return sorted(_changed_lines(before["lines"], profile), key=lambda line: not line.edited)


def _changed_lines(before: list[Figures], profile: Profile) -> Iterator[ChangedLine]:
    entries = list(_lines(profile))
    now = [line for line, _ in entries]
    matcher = SequenceMatcher(None, [_key(line) for line in before], [_key(line) for line in now], autojunk=False)
    for kind, start, end, now_start, now_end in matcher.get_opcodes():
        pairs = zip_longest(before[start:end], entries[now_start:now_end])
        for was, current in pairs:
            if current is None:
                text = f"gone: line {was['line']} of {was['function']}: {was['source']}"
                yield ChangedLine(text, None, edited=True)
                continue
            row, span = current
            differing = changes(_row(was or {}), _row(row))
            if kind == "equal" and not differing:
                continue
            old = [f"    was: {was['source']}"] if kind == "replace" and was else []
            shown = [f"    {change}" for change in differing[:MOST_CHANGES]]
            text = "\n".join([f"{span.place}: {row['source']}", *old, *shown])
            yield ChangedLine(text, span, edited=kind != "equal")


def _key(line: Figures) -> tuple[str, str]:
    return line["function"], line["source"]


def _row(line: Figures) -> dict[str, int]:
    return {name: value for name, value in line.items() if name not in ("function", "line", "source")}
