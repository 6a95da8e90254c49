r"""Escaping of texts for the places where they are shown: terminals and logs, annotations, tables, pages, documents.

Control characters, bidirectional controls, surrogates and other unprintable characters become Python escapes, such as
\x1b, in every place.
"""

import re
from pathlib import PurePosixPath, PureWindowsPath

_LOG_COMMAND = re.compile(r"##(?=[\w.]*\[)")
"""Commands of GitHub, Azure and TeamCity within a line."""
_LINE_COMMAND = re.compile(r"^([^\S\n]*):(?=:)", re.MULTILINE)
"""Commands of GitHub at the start of a line."""
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~$@&#])")
WINDOWS_PATH = re.compile(r"[A-Za-z]:[\\/]|\\\\\w+\\\w")
"""Absolute paths of Windows."""
_FORMULA = ("=", "+", "-", "@")


class Document(str):
    """A text in a format of its own, whose writer escaped it: it is written as it is."""


def printable(text: object) -> str:
    """Return the text on one line, for a name or a message."""
    text = str(text)
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def source_line(text: str) -> str:
    """Return a line of source text. Tabs remain."""
    return "\t".join(map(printable, text.split("\t")))


def terminal(text: str) -> str:
    """Return lines for a terminal or a log; a Document as it is. No line is a command of a service that reads the log."""
    if isinstance(text, Document):
        return text
    lines = "\n".join(map(source_line, text.split("\n")))
    return _LINE_COMMAND.sub(r"\1\\x3a", _LOG_COMMAND.sub(r"#\\x23", lines))


def json_text(text: str) -> Document:
    """Return a JSON text of ASCII characters for a file or a log: no string in it is a command of a service."""
    return Document(_LOG_COMMAND.sub(r"#\\u0023", text))


def xml_text(document: str) -> Document:
    """Return an XML text without CDATA for a file or a log: no text in it is a command of a service."""
    return Document(_LOG_COMMAND.sub("#&#35;", document))


def annotation(lines: str) -> str:
    """Return lines as the message of a GitHub annotation."""
    return _percent_encoded(terminal(lines), "%\r\n")


def annotation_property(text: object) -> str:
    """Return a text as a property of a GitHub annotation."""
    return _percent_encoded(terminal(printable(text)), "%\r\n:,")


def _percent_encoded(text: str, reserved: str) -> str:
    return re.sub(f"[{reserved}]", lambda match: f"%{ord(match[0]):02X}", text)


def markdown(text: object) -> str:
    """Return a text for a cell of a Markdown table, without markup."""
    return _MARKDOWN.sub(r"\\\1", printable(" ".join(str(text).split())))


def fenced(text: str) -> str:
    """Return lines as a block of code in Markdown."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{terminal(text)}\n{fence}"


def csv_cell(value: object) -> str:
    """Return a cell of a CSV table: numbers as they are, other texts that a spreadsheet would compute with an apostrophe first."""
    text = "" if value is None else terminal(printable(value))
    if not text.lstrip().startswith(_FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def xml(lines: str) -> str:
    """Return lines of characters that XML 1.0 allows; markup remains."""
    return "\n".join(map(source_line, lines.split("\n")))


def html_value(value: object) -> object:
    """Return a value of a template that escapes markup: a text of characters that HTML allows, or another value."""
    return xml(value) if type(value) is str else value


def html(text: object) -> str:
    """Return lines for the text or an attribute of an HTML or SVG element."""
    from html import escape  # late: most commands write no page

    return escape(xml(str(text)))


def uri_reference(path: str) -> str:
    """Return the URI of an absolute path of POSIX or Windows, else the relative reference; a name as <stdin> is a reference too.

    Characters that UTF-8 does not have are first escaped as in `printable`: services refuse other percent encodings.
    """
    from urllib.parse import quote  # late: most commands write no SARIF

    path = path.encode(errors="backslashreplace").decode()
    if WINDOWS_PATH.match(path):
        return PureWindowsPath(path).as_uri()
    return PurePosixPath(path).as_uri() if path.startswith("/") else quote(path)
