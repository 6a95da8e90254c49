"""The tests of numba-cuda that are not run, by reason: `listed.toml`.

A reason may name distributions that make its tests run. Its tests are skipped while one of them is missing,
also on a machine with a CUDA toolkit.
"""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

LISTED = Path(__file__).parent / "listed.toml"
PACKAGES = ("cudapy", "cudadrv", "nocuda", "core", "doc_examples")
"""Packages of `numba.cuda.tests` with tests for a device."""
PREFIX = "numba.cuda.tests."


@dataclass(frozen=True)
class Reason:
    """A reason to skip tests. runs_with: distributions that make them run. tests: `package.module.Class.test` or
    `package.module.Class` for all tests of a class."""

    text: str
    tests: Sequence[str]
    runs_with: Sequence[str] = ()

    def applies(self) -> bool:
        """Return whether its tests are skipped in this environment."""
        return not self.runs_with or not all(map(_is_installed, self.runs_with))

    def covers(self, test: str) -> bool:
        """Return whether a test is listed here. test: its name without `PREFIX`."""
        return test in self.tests or test.rpartition(".")[0] in self.tests


def reasons() -> list[Reason]:
    """Return the reasons of the committed list."""
    rows = tomllib.loads(LISTED.read_text())["reason"]
    return [Reason(row["text"], tuple(row["tests"]), tuple(row.get("runs_with", ()))) for row in rows]


def modules() -> list[str]:
    """Return the names of the installed test modules, without `PREFIX`."""
    return [f"{package}.{file.stem}" for package in PACKAGES for file in _files(package)]


def _files(package: str) -> Iterator[Path]:
    """Yield the test modules of a package without importing Numba."""
    root = Path(str(distribution("numba-cuda").locate_file("numba_cuda/numba/cuda/tests")))
    yield from sorted((root / package).glob("test_*.py"))


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
