"""`simtbed align`, from file to file, and `simtbed bench align`."""

import json
from pathlib import Path

import pytest
from simtbed.kernels.alignment import FAMILY
from simtbed.reports import launchers
from simtbed.reports.bench import align

from tests.reports.conftest import Simtbed


@pytest.mark.slow
def test_the_answer_is_all_of_stdout(simtbed: Simtbed) -> None:
    plain, reported = simtbed("align", "--example"), simtbed("align", "--example", "--check", "--counters")
    assert (plain.code, plain.err) == (0, "")
    assert (reported.code, reported.out) == (0, plain.out)
    rows = [line.split("\t") for line in plain.out.splitlines()]
    assert [(c, int(o), int(s)) for c, o, s in rows] == FAMILY.oracle(FAMILY.example()).tolist()
    assert " values and the oracle agree: worst 0 of score" in reported.err
    assert "global_load_sectors" in reported.err


@pytest.mark.slow
@pytest.mark.parametrize(("command", "heads"), [(("align",), 0), (("pairhmm", "--format", "tsv"), 1)])
def test_reports_are_on_stdout_if_the_answer_is_a_file(
    simtbed: Simtbed, tmp_path: Path, command: tuple[str, ...], heads: int
) -> None:
    target = tmp_path / "answer.tsv"
    result = simtbed(*command, "--example", "-o", str(target), "--check", "--counters", "--json")
    assert (result.code, result.err) == (0, "")
    assert target.read_text() == simtbed(*command, "--example").out
    content = json.loads(result.out)
    assert content["agreement"]["agrees"] is True
    assert content["agreement"]["compared"] == len(target.read_text().splitlines()) - heads
    assert content["counters"]["warp_instructions"] > 0
    assert [file.name for file in tmp_path.iterdir()] == ["answer.tsv"]


@pytest.mark.slow
def test_options_reach_the_alignment(simtbed: Simtbed, tmp_path: Path) -> None:
    source = tmp_path / "in.tsv"
    source.write_text("CG\tACGT\n")
    for strategy, row in (("SOFTCLIP", "1S2M1S\t0\t20"), ("INDEL", "1I2M1I\t0\t-40"), ("IGNORE", "4M\t-1\t20")):
        options = (
            "--parameters", "10,-15,-30,-5", "--strategy", strategy, "--variant", "pairalign", "--engine", "numpy",
        )  # fmt: skip
        assert simtbed("align", str(source), *options).out == f"{row}\n"


@pytest.mark.slow
def test_two_fasta_files_and_sam(simtbed: Simtbed, tmp_path: Path) -> None:
    references, alternates = tmp_path / "r.fa", tmp_path / "a.fa"
    references.write_text(">chr\nACGT\n")
    alternates.write_text(">read\nCG\n")
    result = simtbed("align", str(references), str(alternates), "--format", "sam")
    assert result.out.splitlines()[2] == "read\t0\tchr\t2\t255\t2M\t*\t0\t0\tCG\t*\tAS:i:400\tNM:i:0"


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ("A\tC\nACGT\n", (), "in.tsv:2: 'ACGT' has 1 column"),
        ("A\tC\nA\t\n", (), "in.tsv:2: the alternate is empty"),
        ("A\tC\n\x01\tA\n", (), "in.tsv:2: the reference holds '\\x01'"),
        ("A\tC\n", ("--parameters", "1,2"), "--parameters: expected four integers M,X,O,E, got '1,2'"),
        ("A\tC\n", ("--parameters", "1,-2,-3,x"), "--parameters: expected four integers"),
        ("A\tC\n", ("--parameters", "1,2,-3,-1"), "the parameters 1,2,-3,-1 are match, mismatch"),
        ("", ("--parameters", "1,2,-3,-1"), "the parameters 1,2,-3,-1 are match, mismatch"),
        ("A\tC\n", ("--strategy", "LOCAL"), "LOCAL"),
        ("A\tC\n", ("--variant", "wavefront"), "alignment has no variant 'wavefront'"),
        ("A\tC\n", ("--strategy", "IGNORE", "--format", "sam"), "SAM cannot say"),
        ("A\tC\n", ("--json",), "--json formats a report"),
        ("A\tC\n", ("--counters", "--engine", "cuda"), "the cuda engine does not count"),
        ("A\t" + "C" * 1025 + "\n", ("--variant", "wide-row-major-steps"), "use passes-row-major-steps"),
    ],
)
def test_bad_use_and_bad_input_leave_no_output(
    simtbed: Simtbed, tmp_path: Path, rows: str, options: tuple[str, ...], message: str
) -> None:
    source, target = tmp_path / "in.tsv", tmp_path / "out.tsv"
    source.write_text(rows)
    assert message in simtbed("align", str(source), "-o", str(target), *options).refused()
    assert [file.name for file in tmp_path.iterdir()] == ["in.tsv"]


def test_an_input_must_be_named(simtbed: Simtbed) -> None:
    assert "a file, or --example" in simtbed("align").refused()
    assert "No such file" in simtbed("align", "nowhere.tsv").refused()


@pytest.mark.slow
@pytest.mark.parametrize(("command", "name"), [("align", "pairs"), ("pairhmm", "pairs of reads and haplotypes")])
def test_an_empty_file_gives_an_empty_answer_and_a_warning(
    simtbed: Simtbed, tmp_path: Path, command: str, name: str
) -> None:
    source = tmp_path / "empty"
    source.write_text("")
    result = simtbed(command, str(source))
    assert (result.code, result.out) == (0, "")
    assert result.err == f"simtbed: warning: {source} has no {name}; the answer is empty\n"


@pytest.mark.slow
def test_bench_align_counts_what_the_paper_measured(simtbed: Simtbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(align, "LENGTHS", (64, 192))
    result = simtbed("bench", "align", "--json")
    assert result.code == 0
    content = json.loads(result.out)
    wide, passes = content["stage_1"][2:]
    assert (wide["variant"], wide["length"], passes["variant"], passes["length"]) == ("wide", 192, "passes", 192)
    assert wide["steps of a block"] < passes["steps of a block"]
    assert wide["sectors/store, diagonal-major"] < 5 < 25 < wide["sectors/store, row-major"]
    assert [row["loads per pair, steps"] for row in content["stage_2"]] == [64, 192]
    assert [row["loads per pair, runs"] for row in content["stage_2"]] == [1, 1]
    assert "Stage 2 on the emulator, 25 pairs" in simtbed("bench", "align").out
    monkeypatch.setattr(launchers, "why_unavailable", lambda engine: "no cuda here")
    assert "the cuda engine cannot run here: no cuda here" in simtbed("bench", "align", "--engine", "cuda").refused(3)


def test_several_gpus_share_the_pairs(simtbed: Simtbed, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the jit engine in the GPUs' place: the same answer in the same order."""
    assert "--gpus 2 needs --engine cuda" in simtbed("align", "--example", "--gpus", "2").refused()
    monkeypatch.setattr("simtbed.reports.cli.align.require_gpus", lambda gpus, engine: None)
    alone, shared = (simtbed("align", "--example", "--gpus", str(gpus)) for gpus in (1, 3))
    assert (shared.code, shared.out) == (0, alone.out)


@pytest.mark.slow
def test_statistics_of_an_input(simtbed: Simtbed, tmp_path: Path) -> None:
    source, target = tmp_path / "in.tsv", tmp_path / "out.tsv"
    source.write_text("ACGT\tCG\nACGT\tACGT\nCG\tACGT\n")
    message = simtbed("align", str(source), "-o", str(target), "--statistics").out
    assert "bases of references: least, median, most" in message and "M: bases, share, runs" in message
    result = json.loads(simtbed("align", str(source), "-o", str(target), "--statistics", "--check", "--json").out)
    assert result["agreement"]["agrees"] is True
    assert result["statistics"]["bases"] == {"M": 8, "S": 2}
    assert result["statistics"]["pairs_in_a_row_with_one_reference"] == [1, 1, 2]
    assert simtbed("align", str(source), "--statistics", "--json").out == target.read_text()
