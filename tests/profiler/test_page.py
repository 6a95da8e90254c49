"""Page of a run: one file without external resources; in a browser its tables sort and its keys work."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed.kernels import FAMILIES, FunctionLauncher
from simtbed.machine.device import H200
from simtbed.machine.occupancy import occupancy
from simtbed.profiler.html import page, pictures
from simtbed.profiler.html.launches import next_step
from simtbed.profiler.html.page import HEAT
from simtbed.profiler.html.roofline import Point, roofline

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@st.kernel
def transpose(x: st.Global[st.f32], out: st.Global[st.f32], n: st.i32) -> None:
    """out = x transposed, n x n; <&> in a comment must be escaped."""
    i = st.block.x * 32 + st.thread.x
    for k in range(32):
        out[i * n + st.block.y * 32 + k] = x[(st.block.y * 32 + k) * n + i]


@st.kernel
def uneven(out: st.Global[st.i32]) -> None:
    """Every fourth block of eight lanes takes 31 iterations more."""
    i = st.block.x * 64 + st.thread.x
    total = 0
    for k in range(1 + 30 * (i // 8 % 4 // 3)):
        total += k
    out[i] = total


@pytest.fixture(scope="module")
def run() -> st.Run:
    x = np.ones(64 * 64, np.float32)
    with st.profiling(detail=True) as profiled:
        for _ in range(2):
            st.launch(transpose, grid=(2, 2), block=32, args={"x": x, "out": st.empty(64 * 64, st.f32), "n": 64})
        st.launch(uneven, grid=2, block=64, args={"out": st.empty(128, st.i32)})
    return profiled


class _Tags(HTMLParser):
    """Check that each tag is opened and closed once, and collect attributes."""

    VOID = frozenset({"meta", "link", "br", "img", "input", "line", "rect", "circle"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(text: str) -> _Tags:
    tags = _Tags()
    tags.feed(text)
    assert tags.open == []
    return tags


def test_the_page_is_one_file_with_nothing_from_elsewhere(run: st.Run) -> None:
    tags = parsed(run.html())
    assert [value for name, value in tags.attributes if name in ("src", "srcset", "data")] == []
    links = [value for name, value in tags.attributes if name == "href"]
    anchors = {value for name, value in tags.attributes if name == "id"}
    assert links and all(link.startswith("#") and link[1:] in anchors for link in links)
    assert "://" not in run.html()


def test_the_page_shows_counts_explanations_and_pictures(run: st.Run) -> None:
    text = parsed(run.html()).text
    assert f"{run.profiles()['transpose'].totals()['global_store_sectors']:,}" in text
    assert "touches 32 sectors instead of 4" in text
    assert "lanes execute 1 to 31 iterations" in text
    assert "<&> in a comment must be escaped" in text
    assert text.count("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum") == len(run.profiles())
    assert run.html().count('aria-label="32 lanes touch 32 sectors"') == 1


@pytest.mark.slow
def test_the_page_of_a_shipped_variant_is_small() -> None:
    family = FAMILIES["pairhmm"]
    with st.profiling(detail=True) as run:
        family.solve(family.example(), "wavefront-loaded", FunctionLauncher(st.launch))
    assert len(run.html().encode()) < 1_000_000


def test_a_page_has_a_limit_and_says_what_is_left_out(run: st.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed launches are first, then the costliest: transpose costs more, and uneven failed."""
    assert "Not on this page" not in run.html()
    monkeypatch.setattr(page, "MOST_BYTES", 1)
    dearest = parsed(run.html()).text
    assert "Not on this page, which would be too large for a browser: 1 kernel." in dearest
    assert "lanes execute 1 to 31 iterations" not in dearest and "touches 32 sectors instead of 4" in dearest
    monkeypatch.setattr(page, "MOST_LAUNCHES", 1)
    fault = st.Diagnostic("race", "race on <x>", run.launches[2].kernel.span)
    failed = st.Run([*run.launches[:2], replace(run.launches[2], faults=(fault,))])
    text = parsed(failed.html()).text
    assert "1 kernel, 2 launches." in text and "3 launches, counted" in text
    assert "lanes execute 1 to 31 iterations" in text and "race on <x>" in text


def test_a_profile_and_a_run_show_themselves_in_a_notebook(run: st.Run, tmp_path: Path) -> None:
    for shown in (run, run.launches[0].profile):
        frame: Any = shown._repr_html_()
        assert frame.startswith("<iframe srcdoc=") and "&lt;!doctype html&gt;" in frame
    run.save(tmp_path / "run.html")
    assert (tmp_path / "run.html").read_text(encoding="utf-8") == run.html()


def test_the_next_occupancy_step_is_the_least_useful_change(run: st.Run) -> None:
    launch = replace(run.launches[0], registers=200, block=(256, 1, 1))
    now = occupancy(launch.device, 256, 200, 0)
    assert now.limiter == "registers"
    fewer = int(next_step(launch, 256, now).split()[0])
    blocks = [occupancy(launch.device, 256, n, 0).active_blocks for n in (fewer + 1, fewer)]
    assert blocks == [now.active_blocks, now.active_blocks + 1]


def test_pictures_name_every_lane() -> None:
    assert pictures._ranges([0, 1, 2, 7, 9, 10]) == "0-2, 7, 9-10"
    assert pictures.short(1_234) == "1.23k" and pictures.short(999) == "999"


SCRIPT = """
<pre id="result"></pre>
<script>
const key = (name) => document.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
const table = document.querySelector(".sortable");
const columns = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
const sectors = columns.indexOf("sectors");
const values = () => [...table.tBodies[0].rows].map((row) => row.cells[sectors].textContent);
const found = { errors: errors, before: values() };
table.tHead.rows[0].cells[sectors].click(); found.down = values();
table.tHead.rows[0].cells[sectors].click(); found.up = values();
const line = () => document.querySelector("tr.current pre").textContent.trim();
metric.selectedIndex = SECTORS;
key("n"); found.first = line(); key("n"); found.second = line(); key("p"); found.back = line();
const theme = document.documentElement.dataset.theme; key("t"); found.theme = [theme, document.documentElement.dataset.theme];
document.getElementById("result").textContent = JSON.stringify(found);
</script>
"""


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: the page was not opened in a browser")
def test_in_a_browser_tables_sort_and_keys_work(run: st.Run, tmp_path: Path) -> None:
    assert CHROMIUM is not None
    errors = '<script>const errors = []; addEventListener("error", (event) => errors.push(event.message));</script>'
    text = run.html().replace("<head>", f"<head>{errors}")
    script = SCRIPT.replace("SECTORS", str(list(HEAT).index("sectors")))
    file = tmp_path / "page.html"
    file.write_text(text.replace("</body>", f"{script}</body>"), encoding="utf-8")
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={tmp_path / 'browser'}", "--dump-dom", file.as_uri(),
    ]  # fmt: skip
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    (answer,) = re.findall(r'<pre id="result">(.*?)</pre>', printed, re.S)
    values = json.loads(answer)
    assert values["errors"] == []
    assert values["before"] == ["4,608", "4,608", "4"]
    assert values["down"] == ["4,608", "4,608", "4"] and values["up"] == ["4", "4,608", "4,608"]
    assert values["first"].startswith("out[i * n") and values["second"].startswith("out[st.lane]")
    assert values["back"] == values["first"]
    assert values["theme"][1] in ("light", "dark") and values["theme"][0] != values["theme"][1]


@st.kernel
def four_iterations(out: st.Global[st.i32]) -> None:
    total = 0
    for k in range(4):
        total += k
    out[st.thread.x] = total


def test_a_loop_with_one_number_of_iterations_is_one_line() -> None:
    with st.profiling(detail=True) as profiled:
        st.launch(four_iterations, grid=1, block=64, args={"out": st.empty(64, st.i32)})
    text = parsed(profiled.html()).text
    assert "64 lanes, 4 iterations each" in text and "lanes by iterations" not in profiled.html()


def test_a_kernel_with_a_time_is_a_dot_at_its_rate() -> None:
    """On the roof, at a tenth of it, and without a time."""
    limit = H200.bandwidth * 1e9 / H200.sector
    points = [Point("roof", 1.0, limit), Point("tenth", 1.0, limit / 10), Point("unknown", 2.0)]
    picture = roofline(points, (), H200)
    roof, tenth = [float(y) for y in re.findall(r'<circle class="point" cx="[\d.]+" cy="([\d.]+)"', picture)]
    powers = [float(y) for y in re.findall(r'<line class="grid" x1="[\d.]+" x2="620" y1="([\d.]+)"', picture)]
    assert tenth - roof == pytest.approx(powers[0] - powers[1], abs=0.2)  # a power of ten
    assert "<title>tenth: 1 instructions a sector" in picture and "10 % of the limit</title>" in picture
    assert len(re.findall(r'<line class="point" x1="([\d.]+)" x2="\1"', picture)) == 1
