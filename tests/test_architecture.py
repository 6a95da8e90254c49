"""The house keeps its shape: imports run one way, files stay short, texts speak of the project alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("emulator", "kernels", "oracles", "reports")
MOST_LINES = 520

# What a part may import of ours, besides itself. A part is a folder or a file of emulator/, or another folder.
LANGUAGE = {"span", "errors", "ir"}
ALLOWED: dict[str, set[str]] = {
    "span": set(),
    "errors": {"span"},
    "lang": {"errors"},
    "ir": {"span", "errors"},
    "frontend": {*LANGUAGE, "lang"},
    "passes": {*LANGUAGE, "frontend", "observe"},
    "machine": {"errors"},
    "observe": {*LANGUAGE, "machine"},
    "engines": {*LANGUAGE, "passes", "machine", "observe"},
    "launch": {*LANGUAGE, "lang", "frontend", "passes", "machine", "observe", "engines"},
    "emulator": {*LANGUAGE, "lang", "machine", "observe", "engines", "launch"},  # the public names
    "kernels": {"emulator", "lang", "launch", "oracles"},
    "oracles": set(),
}
ALLOWED["reports"] = {*ALLOWED}  # which nothing may import

SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def _module(path: Path) -> tuple[str, ...]:
    """simtbed.emulator.ir.nodes as its parts; a package is named by its folder."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ("simtbed", *(parts[:-1] if parts[-1] == "__init__" else parts))


def _part(module: tuple[str, ...]) -> str:
    """The part of the house that a module of ours belongs to."""
    return module[2] if module[1] == "emulator" and len(module) > 2 else module[1]


MODULES = {_module(path) for path in SOURCES}


def _imports(path: Path) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Line and module of every import of ours, wherever in the file it stands; names of modules are followed."""
    module = _module(path)
    package = module if path.name == "__init__.py" else module[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, tuple(a.name.split("."))) for a in node.names if a.name.startswith("simtbed."))
        elif isinstance(node, ast.ImportFrom):
            named = tuple(node.module.split(".")) if node.module else ()
            base = (*package[: len(package) - node.level + 1], *named) if node.level else named
            if base[:1] == ("simtbed",):
                for alias in node.names:
                    inner = (*base, alias.name)
                    yield node.lineno, inner if inner in MODULES or len(base) == 1 else base


EDGES = [(path, line, target) for path in SOURCES for line, target in _imports(path)]


def _show(edges: list[tuple[Path, int, tuple[str, ...]]]) -> list[str]:
    return [f"{path.relative_to(ROOT)}:{line} imports {'.'.join(target)}" for path, line, target in edges]


def test_every_part_has_its_rule() -> None:
    assert {_part(module) for module in MODULES} == set(ALLOWED)


def test_imports_name_modules_that_exist() -> None:
    packages = {module[:n] for module in MODULES for n in range(2, len(module) + 1)}
    assert _show([edge for edge in EDGES if edge[2] not in packages]) == []


def test_imports_run_one_way() -> None:
    wrong = []
    for path, line, target in EDGES:
        source, reached = _part(_module(path)), _part(target)
        if reached != source and reached not in ALLOWED[source]:
            wrong.append((path, line, target))
    assert _show(wrong) == []


def test_engines_do_not_import_each_other() -> None:
    def engine(module: tuple[str, ...]) -> str:
        return module[3].split("_")[0] if len(module) > 3 else "all"

    inside = [edge for edge in EDGES if _module(edge[0])[2:3] == edge[2][2:3] == ("engines",)]
    wrong = [e for e in inside if engine(e[2]) not in ("engine", "arrays", "store", engine(_module(e[0])))]
    assert _show(wrong) == []


def test_only_a_family_names_its_oracle() -> None:
    """Variants do not know how they are checked."""
    reaching = [edge for edge in EDGES if _module(edge[0])[1] == "kernels" and edge[2][1] == "oracles"]
    assert _show([edge for edge in reaching if edge[0].name != "__init__.py"]) == []


def test_oracles_import_nothing_of_ours_not_even_each_other() -> None:
    assert _show([edge for edge in EDGES if _module(edge[0])[1] == "oracles"]) == []


@pytest.mark.parametrize("folder", [*FOLDERS, "tests"])
def test_no_file_is_long(folder: str) -> None:
    lines = {p: p.read_text(encoding="utf-8").count("\n") for p in (ROOT / folder).rglob("*.py")}
    assert {str(p.relative_to(ROOT)): n for p, n in lines.items() if n > MOST_LINES} == {}


def test_every_module_says_what_it_knows() -> None:
    silent = [
        p for p in SOURCES if p.stat().st_size and not ast.get_docstring(ast.parse(p.read_text(encoding="utf-8")))
    ]
    assert [str(p.relative_to(ROOT)) for p in silent] == []


def test_texts_name_no_machine() -> None:
    """No absolute path of somebody's machine, in code, tests or texts."""
    machine_path = re.compile(r"(?<![\w.])/(?:work|home|root|Users|mnt)/\w")
    texts = [
        *ROOT.glob("*.md"),
        *ROOT.glob("*.toml"),
        *ROOT.glob("*.ini"),
        ROOT / ".ci/run",
        *ROOT.glob(".github/**/*.yml"),
    ]
    texts += [
        p
        for folder in (*FOLDERS, "tests")
        for p in (ROOT / folder).rglob("*")
        if p.suffix in (".py", ".json", ".md", ".cu", ".txt")
    ]
    found = [
        f"{p.relative_to(ROOT)}: {m[0]}" for p in texts for m in machine_path.finditer(p.read_text(encoding="utf-8"))
    ]
    assert found == []
