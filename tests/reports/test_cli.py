"""The command line: help, refusals, exit codes, tables and JSON."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from simtbed import LaunchError, SimtbedError, UnavailableError, __version__
from simtbed.kernels import FAMILIES, InputError
from simtbed.kernels.files import DiskError, Stopped
from simtbed.machine.device import DEVICES
from simtbed.reports import gpu_count, launchers, tables
from simtbed.reports.cli import app, verify
from simtbed.reports.cli.options import Engine
from simtbed.reports.launchers import ENGINES

from tests.reports.conftest import Simtbed

COMMANDS = tuple(app.COMMANDS)


# ------------------------------------------------------------------ the frame
def test_help_names_every_command(simtbed: Simtbed) -> None:
    requested, bare = simtbed("--help"), simtbed()
    assert requested == bare
    assert requested.code == 0
    assert all(f"\n  {name}" in requested.out for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(simtbed: Simtbed, command: str) -> None:
    result = simtbed(command, "--help")
    assert result.code == 0
    assert result.out.startswith(f"Usage: simtbed {command}")
    assert app.COMMANDS[command] in result.out
    assert f"\n  simtbed {command}" in result.out, "no example"


@pytest.mark.slow
def test_completion_is_clicks_own() -> None:
    """The shell passes the words typed so far."""
    words = {"_SIMTBED_COMPLETE": "bash_complete", "COMP_WORDS": "simtbed pro", "COMP_CWORD": "1"}
    program = "from simtbed.reports.cli.app import main; main()"
    completed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, **words}
    )
    assert completed.stdout == "plain,profile\n"


def test_the_engines_are_those_of_launch() -> None:
    assert [engine.value for engine in Engine] == list(ENGINES)


@pytest.mark.parametrize("command", ["--help", "list"])
def test_help_and_list_import_nothing_heavy(command: str) -> None:
    heavy = {"numba", "numpy", "llvmlite", "rich"}
    program = (
        f"import sys; from simtbed.reports.cli.app import run; run([{command!r}]); print(*{heavy!r} & set(sys.modules))"
    )
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert completed.stdout.splitlines()[-1] == ""


@pytest.mark.slow
@pytest.mark.parametrize("command", ["align", "sfs"])
def test_a_second_run_reads_no_kernel(command: str) -> None:
    """What was found out in the first one is on the disk: neither the front end nor a compiler is imported."""
    late = {
        "simtbed.ir.nodes", "simtbed.frontend.reader", "simtbed.passes.inline", "numba", "numpy.ma",
        "concurrent.futures",
    }  # fmt: skip
    program = (
        f"import sys; from simtbed.reports.cli.app import run; run([{command!r}, '--example']); "
        f"print(sorted({late!r} & set(sys.modules)))"
    )
    for _ in range(2):
        completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert completed.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("frobnicate", "No such command 'frobnicate'"),
        ("profile", "Missing argument 'TARGET'"),
        ("list --colour", "No such option: --colour"),
        ("profile nothing", "there is no variant 'nothing'; expected one of "),
        ("profile packed", "packed is ambiguous: write alignment/packed or correction/packed"),
        ("verify --variant packed", "packed is ambiguous: write alignment/packed or correction/packed"),
        ("profile pairhmm/packed", "there is no variant 'pairhmm/packed'; expected one of "),
        ("profile nobody", "pairalign-global, alignment/packed, "),
        ("profile tree --device Z80", "no device is called 'Z80'; there are C2070,"),
        ("profile tree --device missing.toml", "missing.toml: No such file"),
        ("profile tree --input missing.txt", "missing.txt: No such file"),
        ("verify --ulp 1 tree", "--kernel, --launch and tolerances need a program"),
        ("verify --ulp -1 tree", "--ulp"),
        ("verify --rtol -1 tree", "--rtol"),
        ("cuda --kernel x tree", "--kernel and --launch need a program"),
        ("profile tree some.txt", "tree takes no arguments, got some.txt"),
        ("verify --family nothing", "there is no family 'nothing'; expected one of "),
        ("verify --family pairhmm --variant tree", "pairhmm has no variant 'tree'; it has "),
        ("verify --input some.txt", "--input needs a single family"),
        ("verify --engine abacus", "'abacus' is not one of 'jit', 'numpy', 'cuda'"),
        ("pairhmm", "pairhmm takes a file, or --example"),
        ("pairhmm some.in --example", "pairhmm takes a file, or --example"),
        ("pairhmm --example --variant tree", "pairhmm has no variant 'tree'; it has "),
        ("pairhmm --example --json", "--json formats a report"),
        ("pairhmm --example --counters --engine cuda", "the cuda engine does not count"),
        ("pairhmm missing.in", "missing.in: "),
        ("cuda nothing", "there is no variant 'nothing'"),
        ("access missing.csv", "missing.csv: No such file"),
        ("align --strategy SoftClip", "align takes a file, or --example"),
        ("align --example -o answer/", "'answer/' is no folder; a file name has no '/' at the end."),
        ("simulate -o reads.fq --truth truth/.", "'truth/.' is no folder"),
        ("profile tree --json -o page/", "'page/' is no folder"),
    ],
)
def test_bad_use_is_one_line_and_code_2(simtbed: Simtbed, line: str, expected: str) -> None:
    assert expected in simtbed(*line.split()).refused()


def test_the_console_script_exits_with_the_code() -> None:
    program = "from simtbed.reports.cli.app import main; main()"
    completed = subprocess.run(
        [sys.executable, "-c", program, "frobnicate"], capture_output=True, text=True, check=False
    )
    assert (completed.returncode, completed.stdout) == (2, "")


# ------------------------------------------------------------------ list
def test_list_shows_variants_and_devices(simtbed: Simtbed) -> None:
    result = simtbed("list")
    assert result.code == 0
    assert all(variant in result.out for family in FAMILIES.values() for variant in family.variants)
    assert all(device in result.out for device in DEVICES)


def test_list_as_json(simtbed: Simtbed) -> None:
    content = json.loads(simtbed("list", "--json").out)
    assert {row["variant"] for row in content["variants"]} >= {"tree", "wavefront"}
    assert [row["device"] for row in content["devices"]] == list(DEVICES)


# ------------------------------------------------------------------ verify
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (launchers, verify):
        monkeypatch.setattr(module, "why_unavailable", lambda engine: "no device" if engine == "cuda" else None)


def test_verify_distinguishes_right_wrong_and_faulty(simtbed: Simtbed, monkeypatch: pytest.MonkeyPatch) -> None:
    _no_gpu(monkeypatch)
    result = simtbed("verify", "--family", "sums", "--json")
    content = json.loads(result.out)
    assert (result.code, content["agrees"]) == (1, False)
    results = {(row["variant"], row["engine"]): row for row in content["results"]}
    assert {key: row["result"] for key, row in results.items()} == {
        ("tree", "jit"): "agrees", ("tree", "numpy"): "agrees", ("tree", "cuda"): "not run",
        ("half-tree", "jit"): "differs", ("half-tree", "numpy"): "differs", ("half-tree", "cuda"): "not run",
        ("over-the-end", "jit"): "faults", ("over-the-end", "numpy"): "faults", ("over-the-end", "cuda"): "not run",
    }  # fmt: skip
    assert results["tree", "cuda"]["reason"] == "no device"
    # The last block has 8 numbers, within the reach of half a tree.
    assert (results["half-tree", "numpy"]["compared"], results["half-tree", "numpy"]["differing"]) == (4, 3)
    assert "shared read out of bounds: partial[64]" in results["over-the-end", "numpy"]["reason"]


def test_verify_prints_one_table_and_the_reasons(simtbed: Simtbed, monkeypatch: pytest.MonkeyPatch) -> None:
    _no_gpu(monkeypatch)
    result = simtbed("verify", "--family", "sums")
    assert result.code == 1
    rows = {tuple(line.split()[:2]): line for line in result.out.splitlines()}
    assert " agrees " in rows["tree", "numpy"]
    assert " DIFFERS " in rows["half-tree", "numpy"]
    assert " FAULTS" in rows["over-the-end", "numpy"]
    assert " not run" in rows["tree", "cuda"]
    assert result.out.count("cuda: not run: no device") == 1


def test_verify_of_what_agrees_is_0(simtbed: Simtbed) -> None:
    result = simtbed("verify", "--variant", "tree", "--engine", "numpy")
    assert (result.code, result.err) == (0, "")


def test_verify_takes_a_file(simtbed: Simtbed, tmp_path: Path) -> None:
    file = tmp_path / "numbers.txt"
    file.write_text("1 2 3\n")
    result = simtbed("verify", "--variant", "half-tree", "--engine", "numpy", "--input", str(file), "--json")
    (row,) = json.loads(result.out)["results"]
    assert (result.code, row["result"], row["input"]) == (0, "agrees", str(file))


def test_a_requested_engine_must_run(simtbed: Simtbed, monkeypatch: pytest.MonkeyPatch) -> None:
    _no_gpu(monkeypatch)
    assert "the cuda engine cannot run here: no device" in simtbed("verify", "--engine", "cuda").refused(3)


# ------------------------------------------------------------------ access
def test_access_counts_and_compares(simtbed: Simtbed, tmp_path: Path) -> None:
    file = tmp_path / "accesses.csv"
    lanes = " ".join(map(str, range(32)))
    file.write_text(f"op,bytes,lanes,requests,sectors,wavefronts,bank_conflicts\nglobal_load,4,{lanes},1,5,,\n")
    counted = simtbed("access", str(file), "--json")
    assert (counted.code, json.loads(counted.out)["rows"][0]["sectors"]) == (0, 4)
    compared = simtbed("access", str(file), "--compare")
    assert compared.code == 1
    assert compared.out.endswith("mismatches 1 of 1\n")


def test_the_version(simtbed: Simtbed) -> None:
    result = simtbed("--version")
    assert (result.code, result.out) == (0, f"simtbed {__version__}\n")


# ------------------------------------------------------------------ streams and how commands end
def _console(*line: str, **how: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "simtbed", *line], text=True, stderr=subprocess.PIPE, check=False, **how
    )


@pytest.mark.slow
def test_a_deleted_folder_is_named(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMTBED_CACHE", str(tmp_path_factory.mktemp("other") / "not there yet"))
    program = f"import os, sys; os.rmdir({str(tmp_path)!r}); from simtbed.reports.cli.app import run; sys.exit(run(sys.argv[1:]))"
    for line in (["check", "iterative"], ["sfs", "--example", "-o", "out"], ["new", "smooth"]):
        tmp_path.mkdir(exist_ok=True)
        completed = subprocess.run(
            [sys.executable, "-c", program, *line], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert completed.returncode == 2
        assert completed.stderr.count("\n") == 1 and "No such file or directory" in completed.stderr
        assert "output:" not in completed.stderr


@pytest.mark.slow
def test_a_closed_pipe_ends_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    for line in (("list",), ("--help",), ("align", "--example")):
        completed = _console(*line, stdout=writing)
        assert (completed.returncode, completed.stderr) == (0, "")
    os.close(writing)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("line", [("list",), ("list", "--json"), ("align", "--example")])
def test_a_full_disk_behind_stdout_is_an_error(line: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        completed = _console(*line, stdout=full)
    assert (completed.returncode, completed.stderr.count("\n")) == (3, 1)
    assert "No space left on device" in completed.stderr


@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (MemoryError(), 3, "there is not enough memory"),
        (KeyboardInterrupt(), 130, ""),
        (Stopped(signal.SIGTERM), 143, ""),
        (Stopped(signal.SIGHUP), 129, ""),
        (Stopped(signal.SIGQUIT), 131, ""),
        (DiskError("x: full"), 3, "x: full"),
        (InputError("a\nb\x1b[31m: bad"), 2, "a\\nb\\x1b[31m: bad"),
        (SimtbedError("one\ntwo\x07"), 2, "one\\ntwo\\x07"),
        (LaunchError("of\na compiler\x07"), 2, "of\na compiler\\x07"),
        (UnavailableError("no GPU"), 3, "no GPU"),
        (OSError(28, "No space left on device"), 3, "output: No space left on device"),
        (PermissionError(13, "Permission denied", "there"), 2, "there: Permission denied"),
        (EOFError("cut"), 3, "a defect of simtbed, please report it: EOFError: cut (test_cli.py:"),
        (KeyError("name"), 3, "a defect of simtbed, please report it: KeyError: 'name' (test_cli.py:"),
    ],
)
@pytest.mark.parametrize("json_requested", [False, True])
def test_every_error_has_its_code_and_its_line(
    error: BaseException,
    code: int,
    expected: str,
    json_requested: bool,
    simtbed: Simtbed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **how: object) -> None:
        raise error

    monkeypatch.setattr("simtbed.reports.tables.table", fail)
    if json_requested:
        as_json = tables.as_json
        monkeypatch.setattr(tables, "as_json", lambda content: as_json(content) if "error" in content else fail())
    result = simtbed("list", *["--json"] * json_requested)
    assert result.code == code
    assert result.err.startswith(f"simtbed: {expected}" if expected else "") and result.err.count("\n") == bool(
        expected
    ) + expected.count("\n")
    if json_requested:
        assert expected in json.loads(result.out)["error"]
    else:
        assert result.out == ""


def test_json_has_no_infinite_numbers() -> None:
    assert json.loads(tables.as_json({"a": [1.5, float("inf"), float("nan")], "b": {"c": (float("-inf"),)}})) == {
        "a": [1.5, None, None],
        "b": {"c": [None]},
    }


def test_a_small_file_gets_one_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pairs.in"
    path.write_bytes(bytes(700))
    assert (gpu_count.gpus_for_file(path, 4), gpu_count.gpus_for_file(None, 4)) == (1, 4)
    monkeypatch.setattr(gpu_count, "BYTES_PER_GPU", 300)
    assert [gpu_count.gpus_for_file(path, gpus) for gpus in (1, 2, 4)] == [1, 2, 2]
    assert gpu_count.gpus_for_file(tmp_path / "missing", 3) == 3


@pytest.mark.parametrize(
    ("line", "contexts"),
    [
        ("pairhmm none.in --engine cuda", 1),
        ("correct none.fq --engine=cuda", 1),
        ("align none.tsv --engine jit --engine cuda", 1),
        ("pairhmm none.in --engine cuda --gpus 2", 2),
        ("align none.tsv --gpus=4 --gpus=3 --engine cuda", 3),
        ("align none.tsv --gpus many --engine cuda", 1),
        ("align none.tsv --gpus 1024 --engine cuda", 16),
        ("align none.tsv --gpus 2", 0),
        ("sfs none.vcf --engine cuda --engine jit", 0),
        ("sfs none.vcf --engine cuda --dask local", 0),
        ("align none.tsv", 0),
        ("pairhmm --engine cuda --help", 0),
        ("verify none.py --engine cuda", 0),
    ],
)
def test_a_needed_context_starts_during_the_imports(
    line: str, contexts: int, simtbed: Simtbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    monkeypatch.setattr("simtbed.engines.cuda.startup.begin_context", lambda number=0: calls.append(number))
    monkeypatch.setattr("simtbed.reports.cli.app.simtbed.make_context", lambda *_: _stop())
    simtbed(*line.split())
    assert calls == list(range(contexts))


def _stop() -> None:
    raise click.UsageError("here")
