"""Answers of commands do not depend on locales, hash seeds, time zones, full disks, or commands that run at the same time."""

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from simtbed import disk_cache
from simtbed.kernels import FAMILIES

from tests.hostile.processes import COMMANDS, PROGRAM, Answer, answer, checked_kernels, run_alone, start
from tests.hostile.test_same_answers import ENVIRONMENTS, assert_threads_agree
from tests.table_checks import check_each


@pytest.mark.parametrize("family", FAMILIES)
def test_threads_do_not_change_a_variant(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_each(FAMILIES[family].variants, lambda variant: assert_threads_agree(family, variant, monkeypatch))


ON_FILES = ("pairhmm", "align", "correct", "sfs")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def expected(cache: Path) -> dict[str, Answer]:
    """The answer of each command alone, with one thread."""
    return {name: run_alone(name, cache) for name in COMMANDS}


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_the_environment_does_not_show(environment: str, cache: Path, expected: dict[str, Answer]) -> None:
    _assert_same(ENVIRONMENTS[environment], cache, expected)


@pytest.fixture
def comma(tmp_path: Path) -> dict[str, str]:
    """A locale that writes decimals with a comma."""
    compiler = shutil.which("localedef")
    if compiler is None or not Path("/usr/share/i18n/locales/de_DE").exists():
        pytest.skip("there is nothing here to make a locale with")
    completed = subprocess.run(
        [compiler, "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.UTF-8")], capture_output=True
    )
    assert (tmp_path / "de_DE.UTF-8").is_dir(), completed.stderr
    environment = {"LOCPATH": str(tmp_path), "LC_ALL": "de_DE.UTF-8"}
    program = "import locale; locale.setlocale(locale.LC_ALL, ''); print(locale.str(0.5))"
    shown = subprocess.run([sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True)
    assert shown.stdout == b"0,5\n"
    return environment


def test_a_decimal_comma_does_not_show(comma: dict[str, str], cache: Path, expected: dict[str, Answer]) -> None:
    _assert_same(comma, cache, expected)


def _assert_same(environment: dict[str, str], cache: Path, expected: dict[str, Answer]) -> None:
    before = checked_kernels(cache)
    for name, words in COMMANDS.items():
        assert answer(start(words, cache, **environment)) == expected[name], name
    assert checked_kernels(cache) == before != set()


# ------------------------------------------------------------------ at once
def test_eight_processes_on_an_empty_cache(tmp_path: Path, expected: dict[str, Answer]) -> None:
    """Two of each command side by side; afterwards every entry is whole."""
    cache = tmp_path / "cache"
    running = [(name, start(COMMANDS[name], cache)) for name in ON_FILES * 2]
    for name, process in running:
        assert answer(process) == expected[name], name
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SIMTBED_CACHE", str(cache))
        assert {path.name for path in cache.iterdir() if disk_cache.load(path.name, bytes) is None} == {"key"}
    before = checked_kernels(cache)
    for name in ON_FILES:
        assert answer(start(COMMANDS[name], cache)) == expected[name]
    assert checked_kernels(cache) == before != set()


# ------------------------------------------------------------------ a disk that is full
@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with space for few entries."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root mounts a disk")
    completed = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k,mode=700", "tmpfs", str(tmp_path)])
    if completed.returncode:
        pytest.skip("nothing can be mounted here")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_full_disk_does_not_show(small_disk: Path, expected: dict[str, Answer]) -> None:
    assert answer(start(COMMANDS["sfs"], small_disk / "cache")) == expected["sfs"]
    remaining = list((small_disk / "cache").iterdir())
    assert remaining and not [path for path in remaining if path.suffix == ".part"]


@pytest.mark.parametrize("most", [16, 4096])
def test_a_limit_of_file_sizes_does_not_show(most: int, tmp_path: Path, expected: dict[str, Answer]) -> None:
    words = (sys.executable, "-c", PROGRAM, *COMMANDS["profile"])
    completed = subprocess.run(
        words, capture_output=True, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )  # fmt: skip
    assert (completed.returncode, completed.stdout, completed.stderr) == expected["profile"]
    assert not list(tmp_path.rglob("*.part"))
    assert [path for path in tmp_path.rglob("*.*") if path.stat().st_size > most] == []
