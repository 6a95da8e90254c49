"""Commands run where neither the package nor a home can be written. `.ci/run` does it for the installed package."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.unprivileged import CannotDropPrivileges, drop, fault, folders, run


@pytest.fixture(scope="module")
def places() -> Iterator[tuple[Path, Path]]:
    if os.geteuid() != 0:
        pytest.skip("the package can be written: only root can run as another user")
    try:
        drop()
    except CannotDropPrivileges as error:
        pytest.skip(str(error))
    with folders() as result:
        yield result


@pytest.mark.slow
def test_a_script_runs_without_a_writable_folder(places: tuple[Path, Path]) -> None:
    """.ci/run runs all commands likewise."""
    assert fault(run("a script", *places)) == ""


@pytest.mark.slow
def test_a_command_runs_without_any_cache(places: tuple[Path, Path]) -> None:
    assert fault(run("sfs", places[0], Path("/dev/null"))) == ""


@pytest.mark.slow
def test_code_is_kept_among_temporary_files(places: tuple[Path, Path]) -> None:
    assert fault(run("a script", *places)) == ""
    (cache,) = places[1].glob("simtbed-*")
    before = {path: path.stat().st_mtime_ns for path in cache.iterdir()}
    assert fault(run("a script", *places)) == ""
    assert {path: path.stat().st_mtime_ns for path in cache.iterdir()} == before != {}
