"""Digest of a function's code: it differs for each change of the program, and only then."""

import importlib.util
import itertools
import textwrap
from pathlib import Path
from types import ModuleType

import pytest
import simtbed as st
from simtbed.frontend.digest import digest
from simtbed.language.functions import SourceFunction

HEAD = """
from __future__ import annotations
import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, i32, i64
from simtbed import native as _native
native = _native.native
"""
BODY = '''
LIMIT = 3
TABLE = (1, 2, 3)
WIDE = i64
things = []

@st.device
def helper(x: i32) -> i32:
    return x + LIMIT

@native
def f(a: Global[i32], n: i32) -> i32:
    """Says things."""
    own = st.constant(i32, TABLE)
    count: i32 = 0
    big: WIDE = 0
    for i in range(n):
        count += helper(a[i]) + own[0]  # things
    return count + i32(big)
'''
_NUMBERS = itertools.count()


def _module(folder: Path, text: str) -> ModuleType:
    name = f"digested{next(_NUMBERS)}"
    path = folder / f"{name}.py"
    path.write_text(HEAD + text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _digest(folder: Path, text: str) -> str | None:
    function = _module(folder, text).f
    assert isinstance(function, SourceFunction)
    actual = digest(function)
    return None if actual is None else actual.key


def test_the_same_function_elsewhere_has_the_same_key(tmp_path: Path) -> None:
    key = _digest(tmp_path, BODY)
    assert key is not None
    assert key == _digest(tmp_path, "\n\nOTHER = {}\n" + BODY + "\n\nLAST = []\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("LIMIT = 3", "LIMIT = 3.0"),
        ("LIMIT = 3", "LIMIT = True"),
        ("TABLE = (1, 2, 3)", "TABLE = (1, 2, 4)"),
        ("x + LIMIT", "x - LIMIT"),
        ("helper(x: i32)", "helper(x: WIDE)"),
        ("WIDE = i64", "WIDE = i32"),  # of a variable's annotation, which Python does not store
        ("count: i32 = 0", "count: i64 = 0"),
        ("count += ", "count -= "),
        ("a: Global[i32]", "a: Global[f32]"),
        ('-> i32:\n    """', '-> WIDE:\n    """'),
        ("@st.device\ndef helper", "@st.kernel\ndef helper"),
        ("return count + i32(big)", "return count + i32(big)\n    pass"),
        ("WIDE = i64", "WIDE = i64\nrange = st.unroll"),
    ],
)
def test_each_change_of_the_program_changes_the_key(tmp_path: Path, old: str, new: str) -> None:
    assert old in BODY
    assert _digest(tmp_path, BODY) != _digest(tmp_path, BODY.replace(old, new, 1))


def test_it_is_stale_while_a_name_refers_to_another_object(tmp_path: Path) -> None:
    other = _module(tmp_path, "SIZE = 3")
    module = _module(tmp_path, BODY.replace("x + LIMIT", "x + LIMIT + other.SIZE") + "\nother = None\n")
    vars(module)["other"] = other
    actual = digest(module.f)
    assert actual is not None and not actual.stale
    space, inner = vars(module), vars(other)
    for names, name, value in (
        (space, "LIMIT", 4),
        (space, "range", len),
        (space, "other", module),
        (inner, "SIZE", 5),
    ):
        present = name in names
        before = names.get(name)
        names[name] = value
        assert actual.stale, name
        del names[name]
        assert actual.stale == present
        if present:
            names[name] = before
        assert not actual.stale


def test_attributes_of_modules_are_followed(tmp_path: Path) -> None:
    other = _module(tmp_path, "SIZE = 3\nOTHER = 1")
    module = _module(
        tmp_path, "import types\nother = None\n@native\ndef f(n: i32) -> i32:\n    return n + other.SIZE\n"
    )
    keys = set()
    vars(module)["other"] = other
    for name, value in (("SIZE", 3), ("SIZE", 4), ("OTHER", 2)):
        setattr(other, name, value)
        actual = digest(module.f)
        keys.add(None if actual is None else actual.key)
    assert len(keys) == 2 and None not in keys


def test_names_of_enclosing_functions_are_followed(tmp_path: Path) -> None:
    text = textwrap.dedent("""
        def make(k):
            @native
            def f(n: i32) -> i32:
                return n + k
            return f
        f = make(%d)
    """)
    assert len({_digest(tmp_path, text % k) for k in (1, 2)}) == 2


RECORDS = """
import enum, dataclasses, typing
class Mode(enum.Enum):
    A = %(a)s
    B = 2
Settings = dataclasses.make_dataclass("Settings", ["scale"], frozen=True)
class Window(typing.NamedTuple):
    low: int
SETTINGS, WINDOW, START = Settings(%(b)s), Window(%(c)s), %(d)s

@st.device
def more(x: i32, by: i32 = START) -> i32:
    return x + by

START = 0

@native
def f(n: i32) -> i32:
    return n + Mode.A + WINDOW.low + i32(SETTINGS.scale) + more(n)
"""


def test_records_and_defaults_are_followed(tmp_path: Path) -> None:
    """A default is fixed at the definition of the function, also after a change of its name."""
    same = {"a": "1", "b": "0.5", "c": "3", "d": "7"}
    changed = [same, *({**same, name: "9"} for name in same)]
    keys = [_digest(tmp_path, RECORDS % values) for values in changed]
    assert None not in keys and len(set(keys)) == 5 and _digest(tmp_path, RECORDS % same) == keys[0]


@pytest.mark.parametrize("value", ["[1]", "{}", "np", "np.arange(3)", "object()", "lambda: 1"])
def test_what_is_not_understood_has_no_key(tmp_path: Path, value: str) -> None:
    assert _digest(tmp_path, f"thing = {value}\n@native\ndef f(n: i32) -> i32:\n    return n + thing\n") is None


def test_a_function_that_calls_itself_has_a_key(tmp_path: Path) -> None:
    assert _digest(tmp_path, "@native\ndef f(n: i32) -> i32:\n    return f(n)\n") is not None


def test_a_name_is_resolved_once_a_launch() -> None:
    @st.kernel
    def often(a: st.Global[st.f32], b: st.Global[st.f32], c: st.Global[st.f32]) -> None:
        a[st.thread.x] = b[st.thread.x] + c[st.thread.x]

    actual = digest(often)
    assert actual is not None
    names = [(id(source), *parts) for source, parts, _ in actual.values]
    assert len(names) == len(set(names)) > 0
