"""Pins of known findings: the printed text is TOML for every name and source line."""

import linecache
import tomllib
from pathlib import Path

import pytest
from simtbed import Diagnostic, SimtbedError
from simtbed.span import Span
from simtbed.testing.known_findings import as_pin, read_file
from simtbed.testing.watching import findings_text

NAMES = ("plain.py", "été 😀.py", 'quote".py', "back\\slash.py", "it's # not.py")
LINES = ("out[i] = x", "print(\"a\\n\", 'b')", "s = '😀é' # {x}", "a[i]\t+= '\x7f\x1b'", "key = [1] = {}")


@pytest.mark.parametrize(("name", "line"), list(zip(NAMES, LINES, strict=True)))
def test_a_printed_pin_is_toml(tmp_path: Path, name: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = str(tmp_path / name)
    monkeypatch.setitem(linecache.cache, file, (len(line), None, [f"    {line}\n"], file))
    finding = Diagnostic("race", "message", Span(file, 1, 1, 1, 2), ("note",))
    pin = as_pin(finding, tmp_path)
    fields = {"kind": "race", "file": name, "line": line, "reason": ""}
    assert tomllib.loads(pin) == {"known": [fields]}
    assert pin in findings_text([finding], tmp_path)
    known = tmp_path / "known.toml"
    known.write_text(pin, encoding="utf-8")
    with pytest.raises(SimtbedError, match="reason"):
        read_file(known)  # the user writes the reason
    known.write_text(pin.replace('reason = ""', 'reason = "accepted"'), encoding="utf-8")
    assert [row.covers(finding, tmp_path) for row in read_file(known)] == [True]
