"""Files of reports: none is an input or another output, and none is there unless all are."""

from pathlib import Path

import pytest

from tests.hostile.trial import BEFORE, command

PROGRAM = """
import numpy as np
import simtbed as st

@st.kernel
def double(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    out[st.thread.x] = x[st.thread.x] * st.f32(2.0)

def run() -> None:
    st.launch(double, grid=1, block=32, args={"x": np.ones(32, np.float32), "out": st.zeros(32, "f32")})

if __name__ == "__main__":
    run()
"""
OPTIONS = [("profile", option) for option in ("-o", "--save", "--html")]
OPTIONS += [(name, "-o") for name in ("check", "verify", "cuda", "diff")]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "k.py").write_text(PROGRAM)
    (tmp_path / "link.py").symlink_to("k.py")
    (tmp_path / "hard.py").hardlink_to(tmp_path / "k.py")
    (tmp_path / "mine.toml").write_text('like = "V100"\nname = "mine"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(words: list[str]) -> str:
    code, printed, message = command(words)
    assert (code, printed) == (2, b"")
    assert message.count("\n") == 1
    return message


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_no_report_replaces_the_program(name: str, option: str) -> None:
    second = ["iterative"] if name == "diff" else []
    for at in ("k.py", "./k.py", "link.py", "hard.py"):
        for target in ("k.py", "k.py:run", "link.py:run"):
            assert "the same file" in refused([name, option, at, target, *second]), (at, target)
            assert Path("k.py").read_text() == PROGRAM


@pytest.mark.parametrize("name", ["profile", "check", "verify", "diff", "whatif"])
def test_no_report_replaces_the_device(name: str) -> None:
    second = ["k.py:run"] if name == "diff" else []
    for devices in ("mine.toml", "H200,mine.toml") if name == "whatif" else ("mine.toml",):
        assert "the same file" in refused([name, "-o", "mine.toml", "--device", devices, "k.py:run", *second])
    assert "mine" in Path("mine.toml").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["profile", "check", "verify", "diff"])
def test_the_source_of_a_device_is_printed_once(name: str) -> None:
    second = ["k.py:run"] if name == "diff" else []
    code, _, message = command([name, "-o", "report", "--device", "mine.toml", "k.py:run", *second])
    assert (code, message.count("simtbed: mine.toml: as V100: ")) == (0, 1), message


@pytest.mark.parametrize("name", ["profile", "check", "verify"])
def test_no_report_replaces_the_problem(name: str) -> None:
    Path("given").write_bytes(BEFORE)
    refused([name, "-o", "given", "--input", "given", "iterative"])
    assert Path("given").read_bytes() == BEFORE


def test_no_report_replaces_a_run() -> None:
    Path("run.json").write_bytes(BEFORE)
    assert "the same file" in refused(["diff", "-o", "run.json", "run.json", "iterative"])
    assert "the same file" in refused(["diff", "-o", "run.json", "iterative", "run.json"])
    assert Path("run.json").read_bytes() == BEFORE


def test_two_reports_are_two_files() -> None:
    assert "the same file" in refused(["profile", "-o", "a", "--save", "a", "iterative"])
    assert "the same file" in refused(["profile", "--html", "a", "--save", "./a", "iterative"])
    assert not Path("a").exists()


@pytest.mark.parametrize("last", ["/dev/full", ".", "none/x", "k.py"])
def test_all_reports_or_none(last: str) -> None:
    Path("a").write_bytes(BEFORE)
    code, _, message = command(["profile", "--save", "a", "--html", "b", "-o", last, "k.py:run"])
    assert (code, message.count("\n")) == (3 if last == "/dev/full" else 2, 1)
    assert Path("a").read_bytes() == BEFORE
    assert not Path("b").exists()


@pytest.mark.slow
def test_a_name_that_is_not_utf8_is_reported(folder: Path) -> None:
    name = "caf\udce9.py"
    Path(name).write_text(PROGRAM)
    code, _, message = command(["profile", "--save", "a", "--html", "b", "-o", "c", name])
    assert code == 0, message
    assert "caf\\udce9.py" in Path("c").read_text()
