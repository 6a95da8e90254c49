"""`simtbed report`: the pages in docs are its output, verdicts follow from claims, and measured times are stored and read."""

import json
from collections.abc import Iterator
from datetime import date
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
from simtbed import LaunchError, SimtbedError
from simtbed.kernels import Agreement, InputError
from simtbed.reports.papers import charts, definitions, formats, measured, paper
from simtbed.reports.papers.claims import Claim, Comparison, Origin, Source, text_of_number
from simtbed.reports.papers.measured import Benchmark, Check, Machine, Measured, Record, Timing

from tests.reports import fake_gpu
from tests.reports.conftest import Simtbed

DOCS = Path(__file__).parents[3] / "docs/papers"
every_paper = pytest.mark.parametrize("name", definitions.PAPERS)


@cache
def cached_report(name: str) -> paper.Report:
    result = definitions.find(name)
    return paper.report(result, result.setting(paper.Size.small, {}, "jit", measured.shipped(name)))


def check_page(path: Path, text: str, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"docs/papers/{path.name} differs; --update-golden writes it"


# ------------------------------------------------------------------ the papers
@every_paper
def test_the_kept_page_is_what_is_reported(name: str, request: pytest.FixtureRequest) -> None:
    check_page(DOCS / f"{name}.md", formats.markdown(cached_report(name)), request)


def test_the_kept_index_counts_all_papers(request: pytest.FixtureRequest) -> None:
    check_page(DOCS / "index.md", formats.markdown_index([cached_report(name) for name in definitions.PAPERS]), request)


@every_paper
def test_the_page_holds_every_item_its_tables_and_its_plots(name: str) -> None:
    text = formats.html(cached_report(name))
    for item, shown in cached_report(name).shown:
        assert f'id="{formats.anchor(item.name)}"' in text
        assert shown.reason and shown.claims, f"{item.name} says nothing"
    assert text.count("<svg") == sum(len(shown.charts) for _, shown in cached_report(name).shown)
    assert "http://" not in text and 'src="' not in text  # it needs no network


@every_paper
def test_json_says_what_the_page_says(name: str) -> None:
    content = json.loads(formats.json(cached_report(name)))
    assert [one["name"] for one in content["items"]] == [item.name for item in definitions.find(name).items]
    assert sum(content["verdicts"].values()) == len(content["items"])


@every_paper
def test_items_have_names_of_their_own(name: str) -> None:
    names = [item.name for item in definitions.find(name).items]
    assert len(set(names)) == len(names) > 5


# ------------------------------------------------------------------ a small paper
def show(setting: paper.Setting) -> paper.Shown:
    timing = setting.timing("sum", Machine.gpu)
    rows: list[paper.Row] = [
        {"n": n, "paper: ms": 2.5 * n, "GPU: ms": timing.milliseconds * n if timing else None} for n in (1, 2)
    ]
    plot = paper.Chart("sums", "n", "ms", [paper.Series("said", Source.paper, [(1, 2.5), (2, 5.0)])])
    grows = Comparison(Origin(Source.emulator, "K40"), "sums", setting.whole("sums"), 6.3, 7.7)
    return paper.Shown([Claim("it grows", [grows], main=True)], "It does.", [paper.Table("sums", rows)], [plot])


def times(setting: paper.Setting) -> Iterator[Benchmark]:
    right = Check("sums", lambda: Agreement(4, 0, 0.0, 0.0, ""))
    yield Benchmark("sum", Machine.core, lambda repeat: ([3.0, 1.0, 2.0][:repeat], 4.0), right)
    yield Benchmark("sum", Machine.gpu, lambda repeat: ([0.5] * repeat, 4.0), right)


SMALL = paper.Paper(
    "sums2000", "Sums", "A, B 2000", "K40", [paper.Parameter("sums", 7, 700, "sums")], [paper.Item("Table 1", "sums", show)], times,
    sizes=[("Table 1", "run", "2 s")],
)  # fmt: skip


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "PAPERS", {"sums2000": "found by the next line"})
    monkeypatch.setattr(definitions, "find", lambda name: SMALL)


@pytest.mark.usefixtures("small")
def test_reports_in_each_format(simtbed: Simtbed, tmp_path: Path) -> None:
    text = simtbed("report", "sums2000").out
    assert "**Reproduced**: It does." in text and "| 2 | 5 |  |" in text
    assert "Missing: time model: no prediction; CPU: not measured." in text
    assert "| it grows (main claim) | yes | sums: 7 (emulator, K40); expected 6.3 to 7.7 |" in text
    assert "The verdict changes to contradicted at 7.7 of: sums, here 7." in text and "| Table 1 | run | 2 s |" in text
    assert "**Contradicted**" in simtbed("report", "sums2000", "--size", "paper").out
    assert simtbed("report", "sums2000", "--item", "table 1").out == text.rstrip() + "\n"
    assert json.loads(simtbed("report", "sums2000", "--format", "json").out)["verdicts"]["reproduced"] == 1
    assert simtbed("report", "--format", "html", "-o", str(tmp_path)).code == 0
    assert 'href="sums2000.html"' in (tmp_path / "index.html").read_text()
    assert "<svg" in (tmp_path / "sums2000.html").read_text()
    assert "[sums2000](sums2000.md)" in simtbed("report").out


@pytest.mark.usefixtures("small")
def test_wrong_use_is_one_line(simtbed: Simtbed, tmp_path: Path) -> None:
    assert "sums2000 has no --pairs; it has --sums" in simtbed("report", "sums2000", "--pairs", "3").refused()
    assert "need a PAPER" in simtbed("report", "--pairs", "3").refused()
    assert "sums2000 has no item '2'; expected one of Table 1" in simtbed("report", "sums2000", "--item", "2").refused()
    assert "--only selects times of --measure FILE" in simtbed("report", "sums2000", "--only", "x*").refused()
    assert (
        "expected a folder with one file, got 0 files"
        in simtbed("report", "sums2000", "--data", str(tmp_path)).refused()
    )
    assert "needs an existing folder" in simtbed("report", "-o", str(tmp_path / "none")).refused()
    assert "no benchmark of this machine matches 'x*'" in simtbed(
        "report", "sums2000", "--measure", str(tmp_path / "r.json"), "--only", "x*"
    ).refused()  # fmt: skip
    assert not (tmp_path / "r.json").exists()


@every_paper
def test_every_parameter_has_an_option(name: str, simtbed: Simtbed, tmp_path: Path) -> None:
    """A wrong name would be no option, and exit code 2 with another text."""
    for item in definitions.find(name).parameters:
        option = f"--{item.name.replace('_', '-')}"
        message = simtbed("report", "none", option, str(item.small or 1)).refused()
        assert "there is no paper 'none'" in message


def test_a_name_that_is_no_paper(simtbed: Simtbed) -> None:
    assert "there is no paper 'ren1492'; expected one of ren2018" in simtbed("report", "ren1492").refused()


# ------------------------------------------------------------------ measured times
@pytest.mark.usefixtures("small")
def test_times_are_taken_kept_and_shown(simtbed: Simtbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "record.json"
    monkeypatch.setattr(measured, "available", lambda: {Machine.core: "a CPU"})
    assert simtbed("report", "sums2000", "--measure", str(file), "--repeat", "3").out == f"1 times are in {file}\n"
    monkeypatch.setattr(measured, "available", lambda: {Machine.gpu: "a GPU"})
    assert simtbed("report", "sums2000", "--measure", str(file)).code == 0
    record, today = measured.load(file), date.today().isoformat()
    assert record.timings == {
        "one core": {"sum": Timing(2.0, 4.0, "a CPU", today, Machine.core)},
        "GPU": {"sum": Timing(0.5, 4.0, "a GPU", today, Machine.gpu)},
    }  # fmt: skip
    assert record.timings["GPU"]["sum"].rate == 8000
    monkeypatch.setattr(measured, "shipped", lambda name: Measured.merge([record]))
    text = simtbed("report", "sums2000").out
    assert "| 2 | 5 | 1 |" in text
    monkeypatch.setattr(measured, "available", lambda: {Machine.gpu: "another"})
    assert "of another machine: a GPU, not another" in simtbed("report", "sums2000", "--measure", str(file)).refused()
    assert measured.load(file) == record


def test_a_file_that_is_no_record(tmp_path: Path) -> None:
    for text in ("", "[]", "{}", '{"paper": "a", "timings": {"GPU": {"x": {"milliseconds": 1}}}}'):
        (tmp_path / "r.json").write_text(text)
        with pytest.raises(InputError, match="expected a record of"):
            measured.load(tmp_path / "r.json")


def test_records_of_two_papers_do_not_mix() -> None:
    with pytest.raises(SimtbedError, match="of a, not of b"):
        measured.require_same_machines(Record("a", {}), "b", {})


def test_failures_are_reported_and_other_results_remain() -> None:
    """Work with wrong answers is not timed, and each time is saved before the next measurement."""
    observed: list[str] = []

    def benchmark(name: str, differing: int = 0, error: str = "") -> Benchmark:
        def run(repeat: int) -> tuple[list[float], float]:
            observed.append(f"times {name}")
            if error:
                raise ValueError(f"{error}\nand more")
            return [1.0] * repeat, 1.0

        def agreement() -> Agreement:
            if name == "broken":
                raise LaunchError("no kernel")
            return Agreement(0 if name == "empty" else 5, differing, 0.0, 0.0, "")

        return Benchmark(name, Machine.core, run, Check(name, agreement))

    def keep(record: Record) -> None:
        observed.append(f"keeps {next(iter(record.timings['one core']))}")

    work = [
        benchmark("first"),
        benchmark("wrong", 2),
        benchmark("bad", error="no memory"),
        benchmark("broken"),
        benchmark("empty"),
        benchmark("last"),
    ]
    failed = measured.measure("p", work, measured.Session("*", 1, {Machine.core: "a CPU"}, keep))
    assert observed == ["times first", "keeps first", "times bad", "times last", "keeps last"]
    assert failed == [
        "wrong, one core: 2 of 5 answers are wrong", "bad, one core: no memory", "broken, one core: no kernel",
        "empty, one core: 0 of 0 answers are wrong",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "only", "options"),
    [
        ("ren2018", "*, set 1, 196 pairs", ()),
        ("gpupairhmm2024", "*, 32 bases", ()),
        ("ren2019", "*64 bases*", ()),
        ("mangal2014", "*", ("--reads", "200", "--genome", "600")),
        ("lu2012", "*", ("--individuals", "8", "--sites", "4")),
    ],
)
def test_a_paper_is_measured(
    name: str, only: str, options: tuple[str, ...], simtbed: Simtbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU that is none: every check runs its kernel and every time is taken, one by one."""
    fake_gpu.install(monkeypatch)
    file = tmp_path / "record.json"
    completed = simtbed("report", name, "--measure", str(file), "--only", only, "--repeat", "1", *options)
    assert completed.code == 0, completed.err
    gpus = measured.load(file).timings["GPU"]
    assert len(gpus) >= 3 and {one.machine for one in gpus.values()} == {fake_gpu.NAME}


def test_a_kernel_that_answers_wrongly_is_not_timed(
    simtbed: Simtbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_gpu.install(monkeypatch, wrong=frozenset({"intratask_block"}))
    file = tmp_path / "record.json"
    completed = simtbed(
        "report", "ren2018", "--measure", str(file), "--only", "intratask-*, set 1, 196 pairs", "--repeat", "1"
    )
    assert completed.code == 1 and "not measured: intratask-naive, set 1, 196 pairs, GPU: " in completed.err
    assert {name.partition(",")[0] for name in measured.load(file).timings["GPU"]} == {
        "intratask-warp", "intratask-warps",
    }  # fmt: skip


def test_shipped_records_name_times_that_papers_take() -> None:
    """Every name of a record belongs to a benchmark."""
    for path in sorted(measured.FOLDER.glob("*.json")):
        record = measured.load(path)
        result = definitions.find(record.paper)
        names = {
            (one.machine.value, one.name)
            for one in result.benchmarks(result.setting(paper.Size.paper, {}, "jit", Measured()))
        }
        assert {(machine, name) for machine, timings in record.timings.items() for name in timings} <= names


# ------------------------------------------------------------------ plots and figures
def lines(chart: paper.Chart) -> ElementTree.Element:
    return ElementTree.fromstring(charts.chart_svg(chart))


def test_lines_pass_through_their_points() -> None:
    svg = lines(paper.Chart("t", "n", "ms", [paper.Series("a <b>", Source.gpu, [(0, 0.0), (10, 60.0), (20, 120.0)])]))
    ends = [(float(c.attrib["cx"]), float(c.attrib["cy"])) for c in svg.iter("circle")]
    assert ends[0] == (charts.LEFT, charts.HEIGHT) and ends[2] == (charts.LEFT + charts.WIDTH, 0)
    assert ends[1] == (charts.LEFT + charts.WIDTH / 2, charts.HEIGHT / 2)
    assert "a <b>, 10: 60" in [title.text for title in svg.iter("title")]


def test_a_logarithmic_axis_has_powers_of_ten() -> None:
    points: list[tuple[str, float]] = [("x", 1.0), ("y", 10.0), ("z", 100.0)]
    svg = lines(paper.Chart("t", "n", "ms", [paper.Series("a", Source.gpu, points)], bars=True, logarithmic=True))
    heights = [float(r.attrib["height"]) for r in svg.iter("rect")][:3]
    assert heights == [0.5, charts.HEIGHT / 2, charts.HEIGHT]  # a bar of no height is seen all the same


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (3, "3"), (12345, "12,345"), (0.0, "0"), (2.5, "2.5"), (0.123456, "0.1235"), (12345.6, "12,346"),
     (1e-7, "1e-07"), (-31415.9, "-31,416"), ("a|b", "a|b")],
)  # fmt: skip
def test_figures_as_they_are_read(value: float | str | None, text: str) -> None:
    assert formats.cell(value) == text
    if isinstance(value, int | float):
        assert text_of_number(value) == text


def test_timings_of_two_gpus_or_days_remain_separate() -> None:
    def record(machine: str, dated: str, milliseconds: float, *names: str) -> Record:
        return Record("p", {"GPU": {name: Timing(milliseconds, 1.0, machine, dated, Machine.gpu) for name in names}})

    merged = Measured.merge([record("H200", "2026-01-02", 2.0, "a", "b"), record("H100", "2026-01-03", 3.0, "a"),
                             record("H200", "2026-01-01", 9.0, "a")])  # fmt: skip
    latest = merged.timing("a", Machine.gpu)
    assert latest and latest.machine == "H100" and merged.timing("c", Machine.gpu) is None
    assert [timings["a"].milliseconds for timings in merged.by_machine(["a"], Machine.gpu)] == [3.0, 9.0, 2.0]
    assert [timings["b"].milliseconds for timings in merged.by_machine(["a", "b"], Machine.gpu)] == [2.0]
    assert merged.by_machine(["a", "c"], Machine.gpu) == merged.by_machine(["a"], Machine.core) == []
