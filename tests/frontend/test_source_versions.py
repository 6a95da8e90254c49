"""The text of a kernel is the one that Python executed, also if its file changes between import and launch."""

import ast
import gc
import importlib
import importlib.util
import linecache
import os
import py_compile
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import simtbed as st
from simtbed import CompileError
from simtbed.source_text import parsed

from tests.table_checks import check_each

TEXT = """
import functools
import simtbed as st
from simtbed import Global, i32

FACTOR = 1

@st.device
def scaled(x: i32) -> i32:
    return x * 10

@st.kernel
def top(out: Global[i32]) -> None:
    assert st.lane < 32
    out[st.lane] = scaled(i32(FACTOR))

def make(n):
    @st.kernel
    def inner(out: Global[i32]) -> None:
        out[st.lane] = n + 7
    return inner

def make_wrapped():
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args)
        return wrapper

    @st.kernel
    @decorate
    def wrapped(out: Global[i32]) -> None:
        out[st.lane] = 1
    return wrapped
"""
OTHER = TEXT.replace("x * 10", "x * 20").replace("n + 7", "n + 8")


def value(kernel: Any) -> int:
    how: dict[str, Any] = {"engine": "numpy", "counters": False}
    return int(st.launch(kernel, grid=1, block=1, args={"out": st.zeros(1, "i32")}, **how).out[0])


def error(kernel: Any) -> str:
    with pytest.raises(CompileError) as caught:
        value(kernel)
    return str(caught.value)


def imported(path: Path) -> Any:
    """Import a file under its own name."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def saved(path: Path, text: str = OTHER) -> None:
    """Save another text with the time and the size of the file before."""
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    linecache.checkcache()


def saved_before_the_first_launch(path: Path) -> None:
    module = imported(path)
    saved(path)
    assert (value(module.top), value(module.make(0))) == (10, 7)


def saved_between_launches(path: Path) -> None:
    module = imported(path)
    assert value(module.top) == 10
    saved(path, "\n\n" + OTHER)
    assert (value(module.top), value(module.make(0))) == (10, 7)
    path.unlink()
    assert value(module.make(0)) == 7


def saved_before_the_first_definition(path: Path) -> None:
    """No text of the import is left."""
    path.write_text(TEXT.replace("@st.kernel\ndef top", "def top").replace("@st.device\n", ""))
    module = imported(path)
    saved(path, path.read_text().replace("n + 7", "n + 8"))
    message = error(module.make(0))
    assert "inner is not the function in this file: the file was saved after Python read it" in message
    assert "start the program again, or reload the module" in message


def reloaded(path: Path) -> None:
    module = imported(path)
    old = module.make(0)
    path.write_text(OTHER + "\n")  # of another size, or Python itself finds the old code
    sys.path.insert(0, str(path.parent))
    try:
        importlib.reload(module)
    finally:
        sys.path.remove(str(path.parent))
    assert (value(module.top), value(module.make(0)), value(old)) == (20, 8, 7)


def quoted_by_messages(path: Path) -> None:
    path.write_text(TEXT.replace("n + 7", "n + missing"))
    module = imported(path)
    saved(path)
    assert "out[st.lane] = n + missing\n" in error(module.make(0))


def constants_are_current(path: Path) -> None:
    module = imported(path)
    assert value(module.top) == 10
    module.FACTOR = 3
    assert value(module.top) == 30


def in_an_archive(path: Path) -> None:
    archive = path.with_suffix(".zip")
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("in_archive.py", TEXT)
    sys.path.insert(0, str(archive))
    try:
        module = importlib.import_module("in_archive")
    finally:
        sys.path.remove(str(archive))
        sys.modules.pop("in_archive", None)
    archive.unlink()
    assert (value(module.top), value(module.make(0))) == (10, 7)


def without_source(path: Path) -> None:
    compiled = path.with_suffix(".pyc")
    py_compile.compile(str(path), cfile=str(compiled))
    path.unlink()
    message = error(imported(compiled).top)
    assert f"{compiled} was loaded without its source" in message and f"put {path.name} beside it" in message


def executed_under_the_name_of_a_file(path: Path) -> None:
    names: dict[str, Any] = {}
    exec(compile(OTHER, str(path), "exec"), names)
    assert "scaled is not the function in this file" in error(names["top"])


def executed_again_in_a_notebook(path: Path) -> None:
    """A cell has its text in linecache alone."""
    names: dict[str, Any] = {}
    results = []
    for text in (TEXT, OTHER):
        linecache.cache["<cell 1>"] = (len(text), None, text.splitlines(keepends=True), "<cell 1>")
        exec(compile(text, "<cell 1>", "exec"), names)
        results.append((value(names["top"]), value(names["make"](0))))
    del linecache.cache["<cell 1>"]
    assert results == [(10, 7), (20, 8)] and value(names["make"](1)) == 9


def compiled_by_statements(path: Path) -> None:
    """A shell compiles each statement for itself: calls of names that the module imports get other instructions."""
    text = TEXT.replace("i32(FACTOR)", "st.div(i32(FACTOR), st.div(3, 2)) if FACTOR else i32(0)")
    for cell, expected in ((text, 10), (text.replace("st.div(3", "st.rem(3"), 0)):
        linecache.cache["<cell 2>"] = (len(text), None, text.splitlines(keepends=True), "<cell 2>")
        names: dict[str, Any] = {}
        for statement in ast.parse(cell).body:
            exec(compile(ast.Module([statement], []), "<cell 2>", "exec"), names)
        if expected:
            assert value(names["top"]) == expected
        else:
            assert "top is not the function in this file" in error(names["top"])
    del linecache.cache["<cell 2>"]


def wrapped_by_a_decorator(path: Path) -> None:
    message = error(imported(path).make_wrapped())
    assert "wrapped is a wrapper, made by a decorator" in message and "next to def" in message


CASES: tuple[Callable[[Path], None], ...] = (
    saved_before_the_first_launch, saved_between_launches, saved_before_the_first_definition, reloaded,
    quoted_by_messages, constants_are_current, in_an_archive, without_source, executed_under_the_name_of_a_file,
    executed_again_in_a_notebook, compiled_by_statements, wrapped_by_a_decorator,
)  # fmt: skip


def test_a_kernel_means_the_text_that_python_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def check(case: Callable[[Path], None]) -> None:
        path = tmp_path / f"module_{case.__name__}.py"
        path.write_text(TEXT)
        try:
            case(path)
        finally:
            sys.modules.pop(path.stem, None)

    check_each(CASES, check, lambda case: case.__name__)


def test_an_unchanged_file_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(TEXT)
    first, second = (imported(path).top.versions for _ in range(2))
    assert len(first) == 1 and first[0] is second[0]


class _Collected:
    """An object in a cycle, whose end runs Python code: other threads run meanwhile."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        sum(range(50))


@pytest.mark.slow
def test_threads_parse_at_different_depths_of_the_stack() -> None:
    text = "\n".join(f"x{n} = [a + {n} * (b - f(c, {n}))]" for n in range(300))

    def parse(depth: int) -> None:
        if depth:
            return parse(depth - 1)
        for _ in range(20):
            _Collected()
            parsed(text)

    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(5)
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(parse, (0, 20, 40, 60)))
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*threshold)
