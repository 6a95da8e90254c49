"""One trial: a command line on hostile files, and the properties required for any files."""

import contextlib
import io
import json
import warnings
from collections.abc import Sequence
from pathlib import Path

from simtbed.reports.cli.app import run

from tests.hostile.formats import Format

BEFORE = b"what was there before"


class _Out(io.TextIOWrapper):
    """A standard stream in memory."""

    def __init__(self) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, "utf-8", errors="backslashreplace", write_through=True)


def command(arguments: Sequence[str]) -> tuple[int, bytes, str]:
    """Exit code, stdout and stderr of a command line, in this process."""
    out, err = _Out(), _Out()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("error")
        code = run(arguments)
    return code, out.bytes.getvalue(), err.bytes.getvalue().decode()


def mishandled(form: Format, data: bytes, folder: Path) -> str:
    """What is wrong with how the format's command handled the file; empty where it is right."""
    source, other, out, second = (folder / name for name in ("given", "other", "out", "second"))
    source.write_bytes(data)
    other.write_bytes(form.other)
    outputs = [path for path, mark in ((out, "{out}"), (second, "{second}")) if mark in form.command]
    for path in outputs:
        path.write_bytes(BEFORE)
    names = {path.name for path in folder.iterdir()}
    places = {"{}": source, "{other}": other, "{out}": out, "{second}": second}
    code, printed, message = command([str(places.get(word, word)) for word in form.command])
    left = {path.name for path in folder.iterdir()} - names - {"second.svg"}
    (folder / "second.svg").unlink(missing_ok=True)
    wrong = []
    if code not in (0, 2):
        wrong.append(f"exit code {code}: {message.strip()}")
    if code and (message.count("\n") != 1 or not message.startswith("simtbed: ")):
        wrong.append(f"not one line on stderr: {message!r}")
    if not all(c.isprintable() or c == "\n" for c in message):
        wrong.append(f"control characters on stderr: {message!r}")
    if code and any(path.read_bytes() != BEFORE for path in outputs):
        wrong.append("an output changed")
    if code == 0 and any(path.read_bytes() == BEFORE for path in outputs):
        wrong.append("an output did not change")
    if left:
        wrong.append(f"left over: {left}")
    if "--json" in form.command:
        json.loads(printed)
    elif code and printed:
        wrong.append(f"printed {printed[:80]!r}")
    if (
        code == 0
        and form.command[0] == "sfs"
        and "npz" not in form.command
        and {"nan", "inf"} & {value for line in out.read_text().splitlines() for value in line.split("\t")[2:]}
    ):
        wrong.append("NaN or infinity in the answer")
    return "; ".join(wrong)
