"""TOML and JSON files: reading, and the comparison of their content with a schema of msgspec before it is used."""

import io
import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .checked import shown
from .errors import SimtbedError
from .escaping import printable

_MESSAGE = re.compile(r"(?P<problem>.*?)(?: - at `(?P<key>key in )?\$(?P<place>.*)`)?", re.DOTALL)
MAX_LENGTH = 300
"""Characters of a message: keys and values may be long."""
_WORDS = {
    "array": "a list", "bool": "true or false", "float": "a number", "int": "a whole number", "null": "null",
    "object": "a table", "str": "a text",
}  # fmt: skip
"""Types in messages of msgspec."""


def text_of(path: str | Path, encoding: str = "utf-8") -> str:
    """Return the text of a file. Raises the errors of `bytes_of`, and ValueError for another encoding."""
    with io.TextIOWrapper(io.BytesIO(bytes_of(path)), encoding) as file:  # with universal newlines, as `open` has
        return file.read()


def bytes_of(path: str | Path) -> bytes:
    """Return the content of a file. Raises SimtbedError, one line, also for a pipe or a device, which may have no end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise SimtbedError(f"{printable(path)}: expected a regular file")
            return file.read()
    except OSError as error:
        raise SimtbedError(f"{printable(path)}: {error.strerror or error}") from None


def require_file(path: str | Path, expected: str = "") -> None:
    """Raise SimtbedError, one line, unless a path is that of a regular file. expected: the end of the line."""
    if not os.path.isfile(path):
        folder = "a folder" if os.path.isdir(path) else "not a regular file"
        raise SimtbedError(f"{printable(path)}: {folder if os.path.exists(path) else 'No such file'}{expected}")


def toml_of(text: str) -> dict[str, Any]:
    """Return the content of a TOML text. Raises ValueError, also for values that nest too deep."""
    import tomllib  # late: most commands read no TOML

    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("its values are nested too deep") from None


def json_of(text: str | bytes) -> Any:
    """Return the content of a JSON text. Raises ValueError, also for NaN, repeated keys, and values that nest too deep."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("its values are nested too deep") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {shown(next(key for key in keys if keys.count(key) > 1))} is repeated")
    return content


def _refuse(constant: str) -> None:
    raise ValueError(f"expected a finite number, got {constant}")


def require(content: Any, schema: Any, at: str = "") -> None:
    """Raise ValueError, one line with the key and the expectation, if the content has another form than the schema.

    at: the key of the content in its document.
    """
    import msgspec  # late: most commands read no file with a schema

    try:
        msgspec.convert(content, schema, dec_hook=_of_class)
    except msgspec.ValidationError as error:
        raise ValueError(_message(str(error), at)) from None
    except RecursionError:
        raise ValueError(f"{at or 'its values'}: nested too deep") from None


class PrintableText:
    """A text of printable characters, in a schema."""

    def __init__(self, content: Any) -> None:
        if not (isinstance(content, str) and content.isprintable()):
            raise ValueError(f"expected a printable text, got {shown(content)}")


class NestedNumbers:
    """A number, a text or a list of these, in a schema."""

    def __init__(self, content: Any) -> None:
        if isinstance(content, dict):
            raise ValueError("expected a number, a text or a list, not a table")
        for item in content if isinstance(content, list) else ():
            NestedNumbers(item)


def _of_class(schema: type, content: Any) -> Any:
    """Return a value of a class that msgspec does not have."""
    return schema(content)


def require_each(content: Any, schema: Any, at: str = "") -> None:
    """Raise ValueError if the content is no table, or if a value in it has another form than the schema."""
    require_table(content, at)
    for key, value in content.items():
        require(value, schema, joined(at, key))


def require_table(content: Any, at: str = "") -> None:
    """Raise ValueError if the content is no table."""
    if not isinstance(content, Mapping):
        raise ValueError(f"{at}: expected a table, got {shown(content)}".removeprefix(": "))


def joined(at: str, key: object) -> str:
    """Return the key of a value in a table with a key."""
    return f"{at}.{printable(key)}" if at else printable(key)


def _message(text: str, at: str) -> str:
    """Return a message of msgspec as "key: problem", in the words of documents."""
    match = _MESSAGE.fullmatch(text)
    assert match is not None
    place = f"{at}{match['place'] or ''}".removeprefix(".")
    problem = re.sub(r"`([^`]*)`", lambda name: _worded(name[1]), match["problem"])
    for old, new in (
        ("Object contains unknown field", "unknown key"),
        ("Object missing required field", "missing key"),
    ):
        problem = problem.replace(old, new)
    problem = problem[:1].lower() + problem[1:]
    line = printable(f"{place}: {problem}" if place else problem)
    return line if len(line) <= MAX_LENGTH else f"{line[: MAX_LENGTH - 4]} ..."


def _worded(name: str) -> str:
    return " or ".join(_WORDS.get(one, one) for one in name.split(" | "))
