"""Texts with control characters, commands of services and markup, as each sink shows them."""

import re
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as some
from simtbed import escaping
from simtbed.errors import Diagnostic, render
from simtbed.span import Span

from tests.table_checks import check_each, each_row

HOSTILE = (
    "\x1b[31mred", "bell\a", "\x9b31m", "back\b", "a\rb", "a\nb", "a\n::error::b", "a\r::error file=x::b", "  ::warning::x",
    "##[error]x", "a ##[group]", "##vso[task.complete]", "##teamcity[x]", "\u202eright", "\u2066isolate", "\u200bnothing",
    "\u2028line", "\x00", "\x7f", "\x85", "\ufeff", "\udce9", "\ud800", "]]>", "<b>&\"'", "=1+1", "+1", "-1+1", "@SUM(1)",
    "`code`", "a|b", "[x](y)", "\t=1", "%0A::error::", "\ufffe", "\U000e0001", "",
)  # fmt: skip
RESERVED = r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2}"
URI = re.compile(rf"(?:{RESERVED})+")


def _harmless(text: str) -> bool:
    """Return whether a log shows these lines as they are."""
    return (
        all(c.isprintable() or c in "\n\t" for c in text)
        and not re.search(r"##[\w.]*\[", text)
        and not any(line.lstrip().startswith("::") for line in text.split("\n"))
    )


def _check_line_sinks(text: str) -> None:
    assert escaping.printable(text).isprintable()
    assert _harmless(escaping.terminal(text))
    assert "\n" not in escaping.markdown(text) and escaping.printable(escaping.markdown(text)) == escaping.markdown(
        text
    )
    assert not re.search(r"[\r\n:,]|%(?!25|0D|0A|3A|2C)", escaping.annotation_property(text))
    assert not re.search(r"[\r\n]|%(?!25|0D|0A)", escaping.annotation(text))
    assert escaping.csv_cell(text)[:1] not in ("=", "+", "-", "@") or re.fullmatch(r"[+-]\d+", text)
    element = ElementTree.Element("a", b=escaping.printable(text))
    element.text = escaping.xml(text)
    assert ElementTree.fromstring(ElementTree.tostring(element, encoding="unicode")).text in (element.text, None)
    ElementTree.fromstring(f'<a b="{escaping.html(text)}">{escaping.html(text)}</a>')
    finding = render(Diagnostic("race", text, Span(text or "x", 1, 1, 1, 2), (text,)))
    assert len(finding.split("\n")) == 2 and _harmless(escaping.terminal(finding))


def test_hostile_texts_are_shown_as_text() -> None:
    check_each(HOSTILE, _check_line_sinks)


@given(some.text(some.characters(codec=None) | some.sampled_from(":#[\n\r\t%=+-@\x1b")))
def test_any_text_is_shown_as_text(text: str) -> None:
    _check_line_sinks(text)


def test_a_document_is_not_changed() -> None:
    document = escaping.Document("::error file=a::b\n##[x]")
    assert escaping.terminal(document) is document
    assert escaping.json_text('{"a": "##[error]x"}') == '{"a": "#\\u0023[error]x"}'


def test_numbers_of_a_table_remain_numbers() -> None:
    values = (-1, 2.5, -0.25, "-3", "-1e-3", None, True)
    assert [escaping.csv_cell(value) for value in values] == ["-1", "2.5", "-0.25", "-3", "-1e-3", "", "True"]


def test_a_fence_is_longer_than_those_of_its_text() -> None:
    assert escaping.fenced("a\n````\nb").split("\n")[0] == "`````text"


PATHS = {
    "a b.py": "a%20b.py", "é.py": "%C3%A9.py", "a#b?c%d.py": "a%23b%3Fc%25d.py", "c:k.py": "c%3Ak.py", "<stdin>": "%3Cstdin%3E",
    "<ipython-input-1-2>": "%3Cipython-input-1-2%3E", "/a b/k.py": "file:///a%20b/k.py", "../k.py": "../k.py",
    r"C:\a b\k.py": "file:///C:/a%20b/k.py", "D:/k.py": "file:///D:/k.py", r"\\host\share\k.py": "file://host/share/k.py",
    "a\\b.py": "a%5Cb.py", "a\nb.py": "a%0Ab.py", "caf\udce9.py": "caf%5Cudce9.py", "[x].py": "%5Bx%5D.py", '"^`{|}".py': None,
    "/tmp/ipykernel_1/2.py": "file:///tmp/ipykernel_1/2.py", "\ud800": "%5Cud800", "a+b&c=d;e@f.py": None,
}  # fmt: skip
"""References; None: any valid one."""


@each_row(PATHS)
def test_paths_are_valid_uris(path: str) -> None:
    uri = escaping.uri_reference(path)
    assert URI.fullmatch(uri), uri
    assert PATHS[path] in (None, uri), uri
    unquote(uri, errors="strict")
    segments = urlsplit(uri)
    assert segments.scheme in ("", "file") and not segments.query and not segments.fragment


@pytest.mark.slow
@pytest.mark.parametrize("root", ["", "/"])
@given(some.text(min_size=1))
def test_any_path_is_a_valid_uri(root: str, path: str) -> None:
    uri = escaping.uri_reference(root + path)
    assert URI.fullmatch(uri)
    if not root and not escaping.WINDOWS_PATH.match(path) and not path.startswith("/"):
        assert unquote(uri, errors="strict") == path.encode(errors="backslashreplace").decode()
        assert ":" not in PurePosixPath(uri).parts[0] if uri.strip("/.") else True
