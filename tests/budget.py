"""Budget of the tree: lines of Python by folder, uses of `Any`, and imports inside functions.

`python -m tests.budget` lowers each number of `budget.toml` to the measured one, and adds the names that the file lacks. Nothing raises
a number but an edit of the file.
"""

import ast
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import tomli_w

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).with_suffix(".toml")
FOLDERS = "docs", "emulator", "examples", "kernels", "oracles", "reports", "tests"
"""Folders with Python files; an installation adds others."""
SLACK = 0.02, 20
"""Fraction of a budget, and lines, that a folder may be under it; the larger one counts."""
Numbers = dict[str, int]


def _sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def _ceilings() -> Numbers:
    """Return the number of times that the installed package names `Any`, and of its imports in bodies of functions."""
    texts = [p.read_text("utf-8") for name in ("emulator", "kernels", "oracles", "reports") for p in _sources(name)]
    trees = [ast.parse(text) for text in texts if re.search(r"^ +(from|import) ", text, re.MULTILINE)]
    functions = [n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    late = {id(n) for f in functions for n in ast.walk(f) if isinstance(n, ast.Import | ast.ImportFrom)}
    return {"Any": sum(len(re.findall(r"\bAny\b", text)) for text in texts), "imports inside functions": len(late)}


def _lines() -> Numbers:
    """Return the lines of each folder of the tree and of `emulator`."""
    folders = [ROOT / name for name in FOLDERS]
    folders += [p for p in (ROOT / "emulator").iterdir() if p.is_dir() and p.name[0] not in "._"]
    names = [folder.relative_to(ROOT).as_posix() for folder in sorted(folders)]
    lines = {name: sum(p.read_bytes().count(b"\n") for p in _sources(name)) for name in names}
    return {name: count for name, count in lines.items() if count}


MEASURES: dict[str, Callable[[], Numbers]] = {"lines": _lines, "ceilings": _ceilings}
"""The tables of `budget.toml`."""


def budget() -> dict[str, Numbers]:
    """Return the tables of `budget.toml`."""
    return tomllib.loads(FILE.read_text("utf-8"))


def problems(actual: Numbers, allowed: Numbers) -> list[str]:
    """Return the numbers over their budget, the ones far under it, and names without one."""
    result = [f"{name}: not in {FILE.name}" for name in sorted(actual.keys() - allowed.keys())]
    result += [f"{name}: in {FILE.name} alone" for name in sorted(allowed.keys() - actual.keys())]
    for name in actual.keys() & allowed.keys():
        count, limit = actual[name], allowed[name]
        if count > limit:
            result.append(f"{name}: {count:,}, {count - limit:,} over the budget of {limit:,}")
        elif limit - count > max(SLACK[0] * limit, SLACK[1]):
            result.append(f"{name}: {count:,} of {limit:,}: lower the budget: python -m tests.budget")
    return result


def main() -> None:
    """Lower the numbers, and print the ones that the tree exceeds."""
    allowed, actual = budget(), {table: measure() for table, measure in MEASURES.items()}
    lowered = {
        table: {name: min(count, allowed[table].get(name, count)) for name, count in numbers.items()}
        for table, numbers in actual.items()
    }
    FILE.write_text(tomli_w.dumps(lowered), encoding="utf-8")
    for problem in (found for table in actual for found in problems(actual[table], lowered[table])):
        print(problem)


if __name__ == "__main__":
    main()
