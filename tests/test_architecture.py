"""Package layering: allowed imports, no import cycles, length of files and budget of folders, no absolute paths."""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tests import budget

ROOT = Path(__file__).parents[1]
FOLDERS = ("emulator", "kernels", "oracles", "reports")
MOST_LINES = 500

# Allowed imports of each package, in addition to its own modules. A package is a folder or a file of emulator/, or
# another folder.
BASE = {
    "source_text",
    "escaping",
    "span",
    "errors",
    "checked",
    "language",
    "ir",
    "own_code",
    "cubin_sections",
    "dominators",
}


def _with_base(names: str) -> set[str]:
    return {*BASE, *names.split()}


ALLOWED: dict[str, set[str]] = {
    "source_text": {"forking"},
    "own_code": set(),
    "cubin_sections": set(),
    "dominators": set(),
    "escaping": set(),
    "span": {"source_text", "escaping"},
    "tracebacks": {"span"},
    "errors": {"escaping", "span", "tracebacks"},
    "checked": {"errors"},
    "documents": {"checked", "errors", "escaping"},
    "language": {"source_text", "errors", "checked"},
    "ir": {"span", "documents", "errors", "language"},
    "frontend": BASE,
    "passes": {*BASE, "frontend"},
    "disk_cache": {"escaping"},
    "forking": set(),
    "interrupts": set(),
    "process_signals": set(),
    "cluster": {"errors", "checked", "process_signals"},
    "llvm": {*BASE, "disk_cache", "forking"},
    "native": {*BASE, "frontend", "passes", "llvm", "disk_cache"},
    "maths": {"language", "ir", "llvm", "native", "disk_cache", "documents"},
    "machine": {"documents", "escaping", "errors", "checked", "language", "native"},
    "sanitizer": {*BASE, "passes", "native", "machine"},
    "profiler": {"documents", "escaping", "source_text", "span", "errors", "checked", "language", "machine", "native"},
    "runtime": {*BASE, "tracebacks", "frontend", "passes", "machine", "sanitizer", "profiler", "disk_cache", "forking"},
    "driver": {"errors", "forking", "machine", "runtime"},
    "llvmir": BASE,
    "numba": _with_base("tracebacks frontend runtime machine driver llvmir disk_cache forking numba_hook"),
    "numba_hook": set(),
    "triton": {*BASE, "disk_cache", "driver", "llvmir", "machine", "model", "numba", "runtime"},
    "cuda_cpp": {*BASE, "disk_cache", "documents", "frontend", "llvmir", "machine", "runtime"},
    "host_apis": _with_base("cuda_cpp disk_cache documents driver forking llvmir machine process_signals runtime"),
    "stand_ins": {*BASE, "cuda_cpp", "driver", "host_apis", "llvmir", "machine", "runtime"},
    "model": _with_base("tracebacks cluster compiled sass disk_cache passes machine profiler runtime native"),
    "engines": _with_base("forking passes machine sanitizer profiler runtime llvm native disk_cache"),
    "debugger": {*BASE, "tracebacks", "machine", "passes", "sanitizer", "runtime", "engines"},
    "oracles": set(),
}
ALLOWED["sass"] = {"disk_cache", "errors", "language", "llvm", "machine", "native", "engines", "ir"}
ALLOWED["compiled"] = {*BASE, "documents", "passes", "machine", "profiler", "runtime", "engines", "native", "sass"}
ALLOWED["simtbed"] = {*ALLOWED} - {"oracles", "engines", "sass"}  # the public API
ALLOWED["testing"] = _with_base("compiled tracebacks documents simtbed machine sanitizer runtime profiler numba_hook")
ALLOWED["kernels"] = {"simtbed", "escaping", "process_signals", "cluster", "runtime", "native", "oracles"}
ALLOWED["reports"] = {*ALLOWED}  # imported by __main__ alone
ALLOWED["__main__"] = {"reports"}

SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def _module(path: Path) -> tuple[str, ...]:
    """Return the dotted name of a file as a tuple; a package has the name of its folder."""
    names = path.relative_to(ROOT).with_suffix("").parts
    inside = names[1:] if names[0] == "emulator" else names
    return ("simtbed", *(inside[:-1] if inside[-1] == "__init__" else inside))


def _package(module: tuple[str, ...]) -> str:
    """Return the package of a module, as ALLOWED names it."""
    return module[1] if len(module) > 1 else "simtbed"


MODULES = {_module(path): path for path in SOURCES}
PACKAGES = {_module(path) for path in SOURCES if path.name == "__init__.py"}


@cache
def _imports(path: Path) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """Return line and module of every import of simtbed in the file, functions included; an imported submodule counts as itself."""
    module = _module(path)
    package = module if path.name == "__init__.py" else module[:-1]
    imports = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [tuple(a.name.split(".")) for a in node.names if a.name.split(".")[0] == "simtbed"]
            imports += [(node.lineno, name) for name in names]
        elif isinstance(node, ast.ImportFrom):
            named = tuple(node.module.split(".")) if node.module else ()
            base = (*package[: len(package) - node.level + 1], *named) if node.level else named
            if base[:1] == ("simtbed",):
                for alias in node.names:
                    inner = (*base, alias.name)
                    imports.append((node.lineno, inner if inner in MODULES else base))
    return tuple(imports)


@cache
def _edges() -> list[tuple[Path, int, tuple[str, ...]]]:
    """Return every import of simtbed: file, line, module. A function, so that collection reads no files."""
    return [(path, line, target) for path in SOURCES for line, target in _imports(path)]


def _show(edges: list[tuple[Path, int, tuple[str, ...]]]) -> list[str]:
    return [f"{path.relative_to(ROOT)}:{line} imports {'.'.join(target)}" for path, line, target in edges]


def test_every_package_has_its_rule() -> None:
    assert {_package(module) for module in MODULES} == set(ALLOWED)


@pytest.mark.slow
def test_imports_name_modules_that_exist() -> None:
    assert _show([edge for edge in _edges() if edge[2] not in MODULES]) == []


@pytest.mark.slow
def test_package_imports_are_acyclic() -> None:
    wrong = []
    for path, line, target in _edges():
        source, imported = _package(_module(path)), _package(target)
        if imported != source and imported not in ALLOWED[source]:
            wrong.append((path, line, target))
    assert _show(wrong) == []


def test_allowed_imports_are_acyclic() -> None:
    rules: dict[tuple[str, ...], set[tuple[str, ...]]] = {
        (package,): {(o,) for o in ALLOWED[package]} for package in ALLOWED
    }
    assert _cycles({package: imported - {package} for package, imported in rules.items()}) == []


@pytest.mark.slow
def test_module_imports_are_acyclic() -> None:
    """No module imports itself through others. Imports inside functions and for types alone count; those of `simtbed` itself
    do not."""
    graph = {
        _module(path): {target for _, target in _imports(path) if target != _module(path) and target != ("simtbed",)}
        for path in SOURCES
    }
    cycles = [tuple(".".join(module) for module in cycle) for cycle in _cycles(graph)]
    assert cycles == []


def _cycles(graph: dict[tuple[str, ...], set[tuple[str, ...]]]) -> list[list[tuple[str, ...]]]:
    """Return the cycles of the graph."""
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        cycle = error.args[1]
        rest = {module: graph[module] - {cycle[0]} if module == cycle[1] else graph[module] for module in graph}
        return [cycle, *_cycles(rest)]
    return []


def test_no_name_is_both_a_module_and_something_else() -> None:
    """An attribute of a package that has the name of one of its modules is that module."""
    wrong = []
    for package in sorted(PACKAGES):
        space = vars(import_module(".".join(package)))
        for module in MODULES:
            if module[:-1] == package and len(module) > len(package) and module[-1] in space:
                value = space[module[-1]]
                if not isinstance(value, ModuleType):
                    wrong.append(".".join(module))
    assert wrong == []


@pytest.mark.slow
def test_engines_do_not_import_each_other_or_the_frontend() -> None:
    inside = [edge for edge in _edges() if _module(edge[0])[1:2] == ("engines",)]
    wrong = [e for e in inside if e[2][1:2] == ("engines",) and e[2][2:3] != _module(e[0])[2:3]]
    assert _show(wrong) == []


@pytest.mark.slow
def test_schemas_are_imported_where_a_file_is_read() -> None:
    """No command imports msgspec before it reads a file."""
    schemas = {path for path in SOURCES if path.stem.endswith(("schema", "schemas"))}
    early = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in SOURCES
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if path not in schemas and isinstance(node, ast.Import | ast.ImportFrom) and _SCHEMA.search(ast.unparse(node))
    ]
    assert len(schemas) == 5 and early == []


_SCHEMA = re.compile(r"msgspec|schemas?\b")


def test_only_a_family_names_its_oracle() -> None:
    """Variants do not know how they are checked."""
    reaching = [edge for edge in _edges() if _package(_module(edge[0])) == "kernels" and _package(edge[2]) == "oracles"]
    assert _show([edge for edge in reaching if edge[0].name != "__init__.py"]) == []


def test_oracles_import_nothing_of_ours_not_even_each_other() -> None:
    assert _show([edge for edge in _edges() if _package(_module(edge[0])) == "oracles"]) == []


@pytest.mark.parametrize("folder", [*FOLDERS, "tests"])
def test_no_file_is_long(folder: str) -> None:
    lines = {p: p.read_text(encoding="utf-8").count("\n") for p in (ROOT / folder).rglob("*.py")}
    assert {str(p.relative_to(ROOT)): n for p, n in lines.items() if n > MOST_LINES} == {}


@pytest.mark.parametrize("table", ["lines", pytest.param("ceilings", marks=pytest.mark.slow)])
def test_every_folder_is_within_its_budget(table: str) -> None:
    assert budget.problems(budget.MEASURES[table](), budget.budget()[table]) == []


def test_a_budget_only_falls() -> None:
    def problems(count: int) -> list[str]:
        return budget.problems({"a": count}, {"a": 5000})

    assert problems(5000) == problems(4900) == []
    assert problems(5001) == ["a: 5,001, 1 over the budget of 5,000"]
    assert problems(4899) == ["a: 4,899 of 5,000: lower the budget: python -m tests.budget"]
    assert budget.problems({"a": 1}, {"b": 1}) == ["a: not in budget.toml", "b: in budget.toml alone"]


@pytest.mark.slow
def test_every_module_says_what_it_knows() -> None:
    silent = [
        p for p in SOURCES if p.stat().st_size and not ast.get_docstring(ast.parse(p.read_text(encoding="utf-8")))
    ]
    assert [str(p.relative_to(ROOT)) for p in silent] == []


def test_names_of_tests_are_short() -> None:
    """A name of a test states a behaviour in at most 60 characters."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    names = {name for text in texts for name in re.findall(r"^\s*(?:async )?def (test_\w+)", text, re.MULTILINE)}
    assert sorted(name for name in names if len(name) > 60) == []


@pytest.mark.slow
def test_texts_name_no_machine() -> None:
    """Code, tests and texts have no absolute path of a developer's machine."""
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
        for folder in (*FOLDERS, "tests", "docs", "examples")
        for p in (ROOT / folder).rglob("*")
        if p.suffix in (".py", ".json", ".md", ".cu", ".txt")
    ]
    matches = [
        f"{p.relative_to(ROOT)}: {m[0]}" for p in texts for m in machine_path.finditer(p.read_text(encoding="utf-8"))
    ]
    assert matches == []


def test_validation_tests_are_not_marked_slow() -> None:
    """The mark excludes a test from the default run; the command of tests/validation runs all of that folder."""
    marked = [path for path in (ROOT / "tests/validation").rglob("*.py") if "mark.slow" in path.read_text("utf-8")]
    assert marked == []
