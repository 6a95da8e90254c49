"""Answers do not depend on threads, hash seeds, locales, time zones, nor on what runs at the same time."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from simtbed import disk_cache
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.kernels import FAMILIES
from simtbed.reports.launchers import Runner
from simtbed.runtime.request import prepare_request
from simtbed.testing.conformance import FEATURES, Feature, assert_same

from tests.table_checks import check_each

COMMANDS = {
    "pairhmm": ("pairhmm", "--example", "--counters"),
    "align": ("align", "--example", "--counters"),
    "correct": ("correct", "--example"),
    "sfs": ("sfs", "--example"),
}
MORE = {"profile": ("profile", "sfs/iterative", "--json"), "check": ("check", "sfs/iterative", "--json")}
PROGRAM = """
import locale, sys
locale.setlocale(locale.LC_ALL, "")
from simtbed.reports.cli.app import run
sys.exit(run(sys.argv[1:]))
"""
Answer = tuple[int, bytes, bytes]


def start(words: tuple[str, ...], cache: Path, **environment: str) -> subprocess.Popen[bytes]:
    """A command in a process that takes the locale of its environment, as an embedding program may."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "SIMTBED_"))}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**inherited, "SIMTBED_CACHE": str(cache), **environment},
    )  # fmt: skip


def answer(process: subprocess.Popen[bytes]) -> Answer:
    out, err = process.communicate()
    return process.returncode, out, err


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def expected(cache: Path) -> dict[str, Answer]:
    """What every command answers alone, with one thread."""
    result = {
        name: answer(start(words, cache, SIMTBED_THREADS="1", LC_ALL="C.UTF-8", TZ="UTC", PYTHONHASHSEED="0"))
        for name, words in {**COMMANDS, **MORE}.items()
    }
    assert [name for name, (code, out, _) in result.items() if code or not out] == [], result
    return result


# ------------------------------------------------------------------ threads
def _solved(family: str, variant: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> tuple[str, dict[str, int]]:
    monkeypatch.setenv("SIMTBED_THREADS", str(threads))
    row, runner = FAMILIES[family], Runner("jit", counting=True)
    result = row.solve(row.example(), variant, runner)
    assert runner.counters is not None
    return repr(result.tolist()), dict(runner.counters.totals())


@pytest.mark.parametrize("family", FAMILIES)
def test_threads_do_not_change_a_variant(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(variant: str) -> None:
        alone = _solved(family, variant, 1, monkeypatch)
        assert _solved(family, variant, 7, monkeypatch) == alone

    check_each(FAMILIES[family].variants, check)


def check_threads(feature: Feature) -> None:
    request = feature.launch(prepare_request)
    alone, together = (LlvmEngine(threads=threads).run(request) for threads in (1, 5))
    assert_same(together, alone, request)
    assert (together.faults, together.printed) == (alone.faults, alone.printed)


def test_threads_do_not_change_a_feature() -> None:
    """Outputs, counters, faults and printed lines, in their order. Threads share the blocks of a grid."""
    check_each([feature for feature in FEATURES if feature.grid != 1], check_threads, lambda feature: feature.name)


# ------------------------------------------------------------------ the environment
ENVIRONMENTS = {
    "the locale C": {"LC_ALL": "C", "PYTHONHASHSEED": "1", "TZ": "Pacific/Kiritimati", "SIMTBED_THREADS": "16"},
    "ASCII": {
        "LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONHASHSEED": "random", "TZ": "America/St_Johns",
    },
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_the_environment_does_not_show(environment: str, cache: Path, expected: dict[str, Answer]) -> None:
    """Nor is anything kept under another name."""
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


@pytest.mark.slow
def test_a_decimal_comma_does_not_show(comma: dict[str, str], cache: Path, expected: dict[str, Answer]) -> None:
    _assert_same(comma, cache, expected)


def _assert_same(environment: dict[str, str], cache: Path, expected: dict[str, Answer]) -> None:
    before = read_by_the_front_end(cache)
    for name, words in {**COMMANDS, **MORE}.items():
        assert answer(start(words, cache, **environment)) == expected[name], name
    assert read_by_the_front_end(cache) == before != set()


def read_by_the_front_end(cache: Path) -> set[str]:
    """The entries that depend on kernels alone. Code depends on time too: what runs for long is optimised."""
    return {path.name for path in cache.glob("*.json")}


# ------------------------------------------------------------------ at once
@pytest.mark.slow
def test_eight_processes_on_an_empty_cache(tmp_path: Path, expected: dict[str, Answer]) -> None:
    """Two of each command side by side; afterwards every entry is whole."""
    cache = tmp_path / "cache"
    running = [(name, start(words, cache)) for name, words in [*COMMANDS.items()] * 2]
    for name, process in running:
        assert answer(process) == expected[name], name
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SIMTBED_CACHE", str(cache))
        assert {path.name for path in cache.iterdir() if disk_cache.load(path.name, bytes) is None} == {"key"}
    before = read_by_the_front_end(cache)
    for name, words in COMMANDS.items():
        assert answer(start(words, cache)) == expected[name]
    assert read_by_the_front_end(cache) == before != set()


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


@pytest.mark.slow
def test_a_full_disk_does_not_show(small_disk: Path, expected: dict[str, Answer]) -> None:
    assert answer(start(COMMANDS["sfs"], small_disk / "cache")) == expected["sfs"]
    remaining = list((small_disk / "cache").iterdir())
    assert remaining and not [path for path in remaining if path.suffix == ".part"]


@pytest.mark.slow
@pytest.mark.parametrize("most", [16, 4096])
def test_a_limit_of_file_sizes_does_not_show(most: int, tmp_path: Path, expected: dict[str, Answer]) -> None:
    words = (sys.executable, "-c", PROGRAM, *MORE["profile"])
    completed = subprocess.run(
        words, capture_output=True, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )  # fmt: skip
    assert (completed.returncode, completed.stdout, completed.stderr) == expected["profile"]
    assert not list(tmp_path.rglob("*.part"))
    assert [path for path in tmp_path.rglob("*.*") if path.stat().st_size > most] == []
