"""Contents of the wheel: packages, types and data, documented names, one version; imports of `import simtbed`."""

import inspect
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
import simtbed

ROOT = Path(__file__).parents[1]
FOLDERS = ("emulator", "kernels", "oracles", "reports")
TEST_COMMAND = 'python -m pip install ".[test]" && python -m pytest -n auto'


def _installed(path: Path) -> tuple[str, ...]:
    """Return the path in the package of a file of the tree: emulator/ is the package itself."""
    return path.parts[1:] if path.parts[0] == "emulator" else path.parts


MAX_WHEEL, MAX_INSTALLED, MAX_BASELINES = 2_200_000, 8_500_000, 150_000
"""Bytes: of the wheel, of its files without bytecode, of the baselines of the shipped variants."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the tree."""
    tree = tmp_path_factory.mktemp("tree")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, tree)
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    process = subprocess.run([sys.executable, "-c", build, "dist"], cwd=tree, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    (path,) = (tree / "dist").glob("*.whl")
    return path


@pytest.fixture(scope="module")
def wheel(built: Path) -> set[str]:
    """The file names of the wheel."""
    with zipfile.ZipFile(built) as archive:
        return set(archive.namelist())


def test_sizes(built: Path) -> None:
    assert built.stat().st_size <= MAX_WHEEL
    with zipfile.ZipFile(built) as archive:
        assert sum(member.file_size for member in archive.infolist()) <= MAX_INSTALLED
    assert (ROOT / ".simtbed/variants.toml").stat().st_size <= MAX_BASELINES


def test_only_simtbed_is_installed(wheel: set[str]) -> None:
    assert {name.split("/")[0] for name in wheel} == {"simtbed", f"simtbed-{simtbed.__version__}.dist-info"}


def test_every_module_type_marker_and_data_file_is_shipped(wheel: set[str]) -> None:
    shipped = {".py", ".typed", ".in", ".md", ".tsv", ".csv", ".json", ".toml", ".html", ".css", ".js", ".h", ".cl"}
    files = {
        "/".join(("simtbed", *_installed(path.relative_to(ROOT))))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {Path(name).suffix for name in files} <= shipped
    assert files == {name for name in wheel if name.startswith("simtbed/")}
    assert "simtbed/py.typed" in files


def test_the_pairhmm_example_is_shipped(wheel: set[str]) -> None:
    assert any(name.startswith("simtbed/kernels/pairhmm/") and name.endswith(".in") for name in wheel)


# ------------------------------------------------------------------ `import simtbed`
def test_the_version_is_written_once() -> None:
    content = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, release = content["project"], content["tool"]["bumpversion"]
    assert project["dynamic"] == ["version"] and "version" not in project
    assert version("simtbed") == simtbed.__version__ == release["current_version"]


def test_an_import_loads_no_compiler_and_no_plotting() -> None:
    heavy = ("numba", "llvmlite", "click", "rich", "dnaio", "hypothesis")
    code = f"import sys, simtbed; print(*[name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == []


def _documented() -> Iterator[tuple[str, object]]:
    """Yield every public name, and the public methods and properties of public classes."""
    for name in simtbed.__all__:
        value = getattr(simtbed, name)
        yield name, value
        if inspect.isclass(value) and value.__module__.startswith("simtbed"):
            for own, member in vars(value).items():
                if not own.startswith("_") and (
                    callable(member) or isinstance(member, property | classmethod | staticmethod)
                ):
                    yield f"{name}.{own}", member


def test_every_public_name_is_documented() -> None:
    """Functions and classes have their own docstring; a value, such as a type of the language, has that of its class."""
    undocumented = []
    for name, value in _documented():
        text = inspect.getdoc(value if callable(value) or inspect.ismodule(value) else type(value))
        if not text or text.startswith(f"{name}("):  # `dataclass` writes a docstring of this form
            undocumented.append(name)
    assert undocumented == []


@pytest.mark.parametrize("file", ["README.md", ".ci/run", ".github/workflows/ci.yml"])
def test_one_test_command_everywhere(file: str) -> None:
    assert TEST_COMMAND in (ROOT / file).read_text(encoding="utf-8")
