"""Findings as SARIF, annotations, tables and reports of other services: valid, within limits, with lasting fingerprints."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Sarif
from simtbed import Diagnostic
from simtbed.reports.targets import formats
from simtbed.span import Span

from tests.reports.conftest import CommandResult, Simtbed
from tests.table_checks import each_row
from tests.test_escaping import URI

RACE = """
import numpy as np
import simtbed as st
from simtbed import Global, i32

@st.kernel
def shift(x: Global[i32], out: Global[i32]) -> None:
    s = st.shared(i32, 64)
    s[st.thread.x] = x[st.thread.x]
    out[st.thread.x] = s[63 - st.thread.x]

x = np.arange(64, dtype=np.int32)
st.launch(shift, grid=1, block=64, args=dict(x=x, out=st.empty(64, i32)))
"""


def _checked(simtbed: Simtbed, tmp_path: Path, source: str, shape: str) -> tuple[CommandResult, str]:
    script, report = tmp_path / f"script{len(source)}.py", tmp_path / "report"
    script.write_text(source, encoding="utf-8")
    result = simtbed("check", "--format", shape, "-o", str(report), str(script))
    return result, report.read_text(encoding="utf-8")


def _findings(count: int) -> list[formats.Finding]:
    span = Span("file,1.py", 3, 5, 3, 9)
    return formats.fingerprinted([Diagnostic("race", f"100 % | of\n{n}", span, related=span) for n in range(count)], [])


@pytest.mark.slow
def test_sarif_is_valid_and_has_both_places(simtbed: Simtbed, tmp_path: Path) -> None:
    result, text = _checked(simtbed, tmp_path, RACE, "sarif")
    assert result.code == 1
    Sarif.model_validate_json(text)
    (run,) = json.loads(text)["runs"]
    result = run["results"][0]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "race"
    places = [one["physicalLocation"] for one in (*result["locations"], *result["relatedLocations"])]
    assert sorted(place["region"]["startLine"] for place in places) == [9, 10]
    assert all(place["artifactLocation"]["uri"].endswith(".py") for place in places)
    assert all({"startColumn", "endLine", "endColumn"} <= set(place["region"]) for place in places)


def test_sarif_without_findings_is_valid() -> None:
    Sarif.model_validate_json(formats.sarif([]))


FILES = (
    "a b.py", "é.py", "a#b?c%d:e.py", "c:k.py", "<stdin>", "<ipython-input-1-2>", "<generated>", "/other place/k.py", "../k.py",
    r"C:\a b\k.py", r"\\host\share\k.py", "a\\b.py", "a\nb\r::error::.py", "caf\udce9.py", "\ud800", "\x00", "\x1b[31m\u202e.py",
)  # fmt: skip
TEXTS = (
    "\x1b[31m\x07\x9b\x00",
    "\ufffe\uffff",
    "\ud800\udce9",
    "a\r\n::error::b",
    "##[error]x",
    "\u202e]]>",
    "<b>&",
    "x" * 3000,
)


def _hostile(file: str, text: str) -> list[formats.Finding]:
    span = Span(file, 0, 0, 0, 0)
    later = Span(file, 9, 7, 3, 1)
    diagnostic = Diagnostic("race", text, span, (text,), count=0, related=later)
    return formats.fingerprinted([diagnostic, Diagnostic(f"kind {text[:9]}", text, later)], [diagnostic])


@pytest.mark.slow
@each_row([(file, text) for file in FILES for text in TEXTS])
def test_hostile_names_and_texts_give_valid_reports(row: tuple[str, str]) -> None:
    """Check every report of a hostile file name and text: the schemas, the URIs, the regions, the characters."""
    findings = _hostile(*row)
    sarif = formats.sarif(findings)
    Sarif.model_validate_json(sarif)
    for result in json.loads(sarif)["runs"][0]["results"]:
        for place in (*result["locations"], *result.get("relatedLocations", ())):
            assert URI.fullmatch(place["physicalLocation"]["artifactLocation"]["uri"])
            region = place["physicalLocation"]["region"]
            start, end = ((region[f"{at}Line"], region[f"{at}Column"]) for at in ("start", "end"))
            assert (1, 1) <= start <= end and min(*start, *end) >= 1
        assert result["occurrenceCount"] >= 1 and result["message"]["text"].replace("\n", "").isprintable()
    suite = ElementTree.fromstring(formats.junit(findings))
    assert len(suite.findall("testcase/failure")) == 2
    lines = formats.github(findings).split("\n")
    assert len(lines) == 3 and all(re.match("::(error|warning) file=", line) and line.isprintable() for line in lines)
    assert formats.summary(findings).count("\n") == 5
    (issue, *_) = json.loads(formats.gitlab(findings))
    assert issue["location"]["path"].isprintable() and issue["location"]["lines"]["begin"] == 1
    for text in (sarif, formats.junit(findings), formats.gitlab(findings)):
        text.encode()
        assert "##[" not in text and not re.search(r"^\s*::", text, re.MULTILINE)


@pytest.mark.parametrize(("folder", "expected"), [(".", "sub/k.py"), ("sub", "sub/k.py"), ("other", "sub/k.py")])
def test_paths_are_relative_to_the_repository(
    folder: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (".git", "sub", "other"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / folder)
    uris = re.findall('"uri": "(.*)"', formats.sarif(_hostile(str(tmp_path / "sub/k.py"), "text")))
    assert {*uris} == {expected}
    outside = re.findall('"uri": "(.*)"', formats.sarif(_hostile(str(tmp_path.parent / "k.py"), "text")))
    assert {*outside} == {(tmp_path.parent / "k.py").as_uri()}


def test_fingerprints_outlive_edits_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def fingerprints(text: str, first: int) -> list[str]:
        import linecache

        file = tmp_path / "kernel.py"
        file.write_text(text)
        linecache.checkcache(str(file))
        spans = [Span(str(file), first + n, 5, first + n, 9) for n in range(2)]
        result = [Diagnostic("race", f"{first}", spans[0], related=spans[1]), Diagnostic("bounds", "b", spans[1])]
        return [one.fingerprint for one in formats.fingerprinted(result, [])]

    original = fingerprints("    a = 1\n    b = 2\n", 1)
    assert original == fingerprints("# above\n\n    a = 1\n    b = 2\n", 3)
    assert original != fingerprints("    a = 1\n    b = 33\n", 1)
    assert len(set(original)) == 2


def test_equal_lines_have_fingerprints_of_their_own() -> None:
    assert len({one.fingerprint for one in _findings(5)}) == 5


def test_annotations_respect_githubs_limits() -> None:
    lines = formats.github(_findings(12)).split("\n")
    assert len(lines) == formats.MAX_ANNOTATIONS + 1
    assert all(
        re.fullmatch(r"::error file=file%2C1\.py,line=3,endLine=3,col=5,title=race::[^\n]*", one) for one in lines[:10]
    )
    assert "100 %25 | of\\n0" in lines[0]
    assert lines[-1] == "and 2 more findings, above the limit of GitHub"


def test_the_table_is_cut_by_us(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = formats.summary(_findings(3))
    assert whole.count("| error |") == 3 and "100 % \\| of 0" in whole
    monkeypatch.setattr(formats, "MAX_SUMMARY", 400)
    cut = formats.summary(_findings(50))
    assert len(cut.encode()) <= 400
    shown = cut.count("| error |")
    assert shown > 0 and f"{50 - shown} rows omitted." in cut


@pytest.mark.slow
def test_the_table_is_written_for_github(simtbed: Simtbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    result, text = _checked(simtbed, tmp_path, RACE, "github")
    assert result.code == 1 and text.startswith("::error file=")
    assert "| error |" in (tmp_path / "summary").read_text()


def test_an_issue_has_the_fields_of_gitlab() -> None:
    (issue,) = json.loads(formats.gitlab(_findings(1)))
    assert set(issue) == {"description", "check_name", "fingerprint", "severity", "location"}
    assert issue["location"] == {"path": "file,1.py", "lines": {"begin": 3}}


@pytest.mark.parametrize("count", [0, 2])
def test_junit_counts_its_failures(count: int) -> None:
    suite = ElementTree.fromstring(formats.junit(_findings(count)))
    assert suite.get("failures") == str(count) == str(len(suite.findall("testcase/failure")))
    assert len(suite.findall("testcase")) == int(suite.get("tests", "")) == max(count, 1)


@pytest.mark.slow
def test_a_clean_script_passes_in_every_format(simtbed: Simtbed, tmp_path: Path) -> None:
    clean = RACE.replace("    out[", "    st.sync()\n    out[")
    for shape in formats.FORMATS:
        result, text = _checked(simtbed, tmp_path, clean, shape)
        assert result.code == 0, (shape, text)
