"""Coverage of kernels: executions by threads of each line and branch, as LCOV, or merged into the data of coverage.py."""

import ast
import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simtbed import Launch, SimtbedError
from simtbed.errors import UnavailableError
from simtbed.escaping import printable
from simtbed.ir import nodes as ir
from simtbed.ir.walk import statements
from simtbed.profiler.events import LANES

LCOV_SUFFIXES = (".info", ".lcov")
_LEAVING = (ast.Return, ast.Break, ast.Continue)
_COMPOUND = (ast.If, ast.For, ast.While)


@dataclass
class FileCoverage:
    """Executions in one file. lines: by line. branches: of both outcomes of a condition, by its line and column."""

    lines: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    branches: dict[tuple[int, int], tuple[int, int]] = field(default_factory=lambda: defaultdict(lambda: (0, 0)))

    def outcomes(self, line: int, last: int) -> tuple[bool, bool] | None:
        """Return whether the conditions of a statement in these lines were true and false; None without a condition."""
        outcomes = [both for (at, _), both in self.branches.items() if line <= at <= last]
        return (any(yes for yes, _ in outcomes), any(no for _, no in outcomes)) if outcomes else None


def coverage_of(launches: Iterable[Launch]) -> dict[str, FileCoverage]:
    """Return the coverage by file, absolute, of launches with counts and programs. Kernels without a file are omitted."""
    files: dict[str, FileCoverage] = defaultdict(FileCoverage)
    for launch in launches:
        if launch.counts is not None and launch.request is not None:
            _add(files, launch.request.prepared, launch.counts[:, LANES].tolist())
    covered = {os.path.abspath(name): file for name, file in sorted(files.items()) if os.path.isfile(name)}
    for name, file in covered.items():
        if name.endswith(".py") and (tree := _tree(name)) is not None:
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef):
                    _add_silent_lines(node.body, file.lines)
    return covered


def _add(files: dict[str, FileCoverage], prepared: Any, lanes: Sequence[int]) -> None:
    """Add the executions of one launch. lanes: threads by site."""
    places: dict[tuple[str, int, tuple[Any, ...]], int] = defaultdict(int)
    for number, site in enumerate(prepared.sites):
        calls = site.span.calls
        for depth, span in enumerate((*calls, site.span)):  # a call is executed if a statement of its function is
            place = span.file, span.line, calls[:depth]
            places[place] = max(places[place], lanes[number])
    for (name, line, _), count in places.items():
        files[name].lines[line] += count
    for stmt in statements(prepared.program.kernel.body):
        body = stmt.then if isinstance(stmt, ir.If) else stmt.body if isinstance(stmt, ir.While | ir.For) else ()
        inside = next((one.site for one in statements(body) if one.site >= 0), None)
        if stmt.site >= 0 and inside is not None:
            branches, condition = files[stmt.span.file].branches, (stmt.span.line, stmt.span.column)
            yes, no = branches[condition]
            branches[condition] = yes + lanes[inside], no + max(lanes[stmt.site] - lanes[inside], 0)


def _tree(name: str) -> ast.Module | None:
    try:
        return ast.parse(Path(name).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


def _add_silent_lines(block: Sequence[ast.stmt], lines: dict[int, int]) -> None:
    """Add the statements without code, such as a condition of constants, where the statements around them are executed."""
    for stmt in block:
        for inner in _bodies(stmt):
            _add_silent_lines(inner, lines)
        if isinstance(stmt, _COMPOUND) and stmt.lineno not in lines and (count := _count(stmt, lines)):
            lines[stmt.lineno] = count
    counts = [_count(stmt, lines) for stmt in block]
    last = max((number for number, count in enumerate(counts) if count), default=-1)
    for number, stmt in enumerate(block):
        if _is_known(stmt, lines):
            continue
        after = number > last >= 0 and not isinstance(block[last], _LEAVING)
        if number < last or (after and not any(_is_known(one, lines) for one in block[last + 1 : number])):
            lines[stmt.lineno] = counts[last]


def _bodies(stmt: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(stmt, _COMPOUND):
        yield stmt.body
        yield stmt.orelse


def _is_known(stmt: ast.stmt, lines: Mapping[int, int]) -> bool:
    last = stmt.lineno if isinstance(stmt, _COMPOUND) else stmt.end_lineno or stmt.lineno
    return any(line in lines for line in range(stmt.lineno, last + 1))


def _count(stmt: ast.stmt, lines: Mapping[int, int]) -> int:
    return max((lines.get(line, 0) for line in range(stmt.lineno, (stmt.end_lineno or stmt.lineno) + 1)), default=0)


# ------------------------------------------------------------------ formats
def as_lcov(files: Mapping[str, FileCoverage]) -> str:
    """Return a trace file of LCOV. DA: executions of a line by threads. BRDA: of the outcomes of a condition: true, false."""
    text: list[str] = []
    for name, file in files.items():
        text += ["TN:", f"SF:{printable(name)}"]
        text += [f"DA:{line},{count}" for line, count in sorted(file.lines.items())]
        text += [f"LF:{len(file.lines)}", f"LH:{sum(count > 0 for count in file.lines.values())}"]
        for (line, column), both in sorted(file.branches.items()):
            for outcome, count in enumerate(both):
                text.append(f"BRDA:{line},{column},{outcome},{count if any(both) else '-'}")
        outcomes = [count for both in file.branches.values() for count in both]
        text += [f"BRF:{len(outcomes)}", f"BRH:{sum(count > 0 for count in outcomes)}", "end_of_record"]
    return "\n".join(text)


def merged_data(path: Path, files: Mapping[str, FileCoverage]) -> bytes:
    """Return the data of coverage.py in a file, if it exists, with the executed lines, or arcs, of kernels in Python files.

    Raises UnavailableError without the package, SimtbedError for a file with other contents.
    """
    try:
        from coverage import CoverageData
        from coverage.exceptions import CoverageException
    except ImportError:
        raise UnavailableError(
            f"coverage.py is not installed: python -m pip install coverage, or name a file of LCOV, {path.stem}.info"
        ) from None
    python = {name: file for name, file in files.items() if name.endswith(".py")}
    with tempfile.TemporaryDirectory(prefix="simtbed-") as folder:
        copy = Path(folder, "coverage")
        if path.is_file():
            shutil.copyfile(path, copy)
        try:
            data = CoverageData(basename=str(copy))
            data.read()
            if data.has_arcs():
                data.add_arcs({name: _arcs(name, file) for name, file in python.items()})
            else:
                data.add_lines({name: [n for n, count in file.lines.items() if count] for name, file in python.items()})
            data.write()
            data.close()
        except CoverageException as error:
            reason = printable(str(error).replace(str(copy), str(path)))
            raise SimtbedError(f"{printable(path)}: expected data of coverage.py: {reason}") from None
        return copy.read_bytes()


def _arcs(name: str, file: FileCoverage) -> set[tuple[int, int]]:
    """Return the executed arcs of a file's functions: those of its parser between executed lines, by the outcomes of conditions."""
    from coverage.parser import PythonParser

    parser = PythonParser(filename=name)
    parser.parse_source()
    executed = {line for line, count in file.lines.items() if count}
    executed |= {parser.first_line(line) for line in executed}
    first: dict[int, tuple[int, tuple[bool, bool] | None]] = {}
    for node in ast.walk(_tree(name) or ast.Module([], [])):
        if isinstance(node, _COMPOUND):
            test = node.iter if isinstance(node, ast.For) else node.test
            first[node.lineno] = node.body[0].lineno, file.outcomes(test.lineno, test.end_lineno or test.lineno)
    arcs = set()
    for start, end in parser.arcs():
        if (start > 0 and start not in executed) or (end > 0 and end not in executed) or (start < 0 and end < 0):
            continue
        body, outcomes = first.get(start, (0, None))
        if outcomes is None or outcomes[0 if end == body else 1]:
            arcs.add((start, end))
    return arcs
