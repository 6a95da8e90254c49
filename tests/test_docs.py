"""Documentation tests: code runs and prints the shown output; commands, links and names exist."""

import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
import simtbed as st
from simtbed.kernels import FAMILIES
from simtbed.machine.device import DEVICES
from simtbed.profiler.events import MEANING
from simtbed.reports.cli.app import GROUPS, simtbed
from simtbed.sanitizer.checkers import BY_NAME

from tests.page_facts import folders, updated
from tests.pages import (
    GPU,
    NVCC,
    PAGES,
    ROOT,
    SOURCE,
    Block,
    Script,
    blocks,
    inline_code,
    matching_lines,
    name,
    output_of,
    prose,
    session_of,
)
from tests.table_checks import each_row

FOLDERS = {"emulator", "kernels", "oracles", "reports", "tests", "docs", "examples", ".ci", ".github"}
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
every_page = pytest.mark.parametrize("page", PAGES, ids=name)


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def shown(page: Path, outputs: Iterable[tuple[Block, str]], request: pytest.FixtureRequest) -> None:
    """Check that each block of the page shows its output; with --update-golden, write the output into the page."""
    wrong = [(block, text.rstrip("\n") + "\n") for block, text in outputs if block.text.rstrip() != text.rstrip()]
    if request.config.getoption("--update-golden"):
        lines = read(page).splitlines()
        for block, text in reversed(wrong):
            lines[block.first : block.first + block.text.count("\n")] = text.splitlines()
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        for block, text in wrong:
            assert text == block.text, f"{name(page)} shows something else; --update-golden accepts what is printed now"


# ------------------------------------------------------------------ code
@pytest.mark.slow
@every_page
def test_python_blocks_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    script, outputs = Script(page, tmp_path), []
    out: str | None = ""
    for block in blocks(read(page)):
        if block.language == "python":
            out = script.run(block)
        elif block.mark == "output" and out is not None:
            outputs.append((block, out))
    shown(page, outputs, request)


@pytest.mark.slow
@every_page
def test_outputs_of_scripts_and_commands_are_what_the_page_shows(page: Path, request: pytest.FixtureRequest) -> None:
    outputs = []
    for block in blocks(read(page)):
        kind, _, what = block.mark.partition(" of ")
        if kind in ("output", "excerpt") and what:
            whole = output_of(what)
            outputs.append((block, whole if kind == "output" else matching_lines(block.text, whole)))
    shown(page, outputs, request)


@pytest.mark.slow
@pytest.mark.integration
def test_sessions_of_the_debugger_are_what_the_page_shows(request: pytest.FixtureRequest) -> None:
    page, outputs = ROOT / "docs/debugging.md", []
    for block in blocks(read(page)):
        kind, _, what = block.mark.partition(" of ")
        if kind == "session":
            outputs.append((block, session_of(what, block.text)))
    assert len(outputs) >= 5
    shown(page, outputs, request)


@each_row(PAGES, name)
def test_quoted_files_hold_the_quoted_text(page: Path) -> None:
    quoted = [block for block in blocks(read(page)) if block.mark.startswith("file: ")]
    assert [b.mark for b in quoted if b.text not in read(ROOT / b.mark.removeprefix("file: "))] == []


@each_row(PAGES, name)
def test_marks_are_known(page: Path) -> None:
    pattern = re.compile(
        rf"|output|(output|excerpt) of (\S+\.py|simtbed .*)|session of simtbed debug .*|file: \S+|{GPU}|{NVCC}"
    )
    assert [block.mark for block in blocks(read(page)) if not pattern.fullmatch(block.mark)] == []


def test_the_page_of_examples_shows_every_kernel() -> None:
    text = read(ROOT / "docs/examples.md")
    kernels = sorted(name(path) for path in (ROOT / "examples/kernels").glob("*.py"))
    assert sorted(SOURCE.findall(text)) == kernels
    assert sorted(re.findall(r"^\| `(\S+)` \|", text, flags=re.MULTILINE)) == kernels


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_examples_run(example: Path) -> None:
    assert output_of(name(example))


# ------------------------------------------------------------------ commands
@cache
def commands() -> dict[str, Any]:
    """Return every command by its words, subcommands included."""
    by_words: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [("", simtbed)]
    while waiting:
        words, command = waiting.pop()
        by_words[words] = command
        if isinstance(command, click.Group):
            inside = click.Context(command)
            for key in command.list_commands(inside):
                waiting.append((f"{words} {key}".strip(), command.get_command(inside, key)))
    return by_words


def command_lines(page: Path) -> list[str]:
    """Return the text after `simtbed` in shell blocks and in inline code."""
    shell = [block.text for block in blocks(read(page)) if block.language in ("", "sh")]
    lines = [piece for text in shell for line in text.splitlines() for piece in re.split(r"&&|\|\|?", line)]
    return [
        piece.strip().removeprefix("simtbed").strip()
        for piece in (*lines, *inline_code(read(page)))
        if re.match(r"\s*simtbed( |$)", piece)
    ]


@each_row(PAGES, name)
def test_commands_and_their_options_exist(page: Path) -> None:
    wrong = []
    for line in command_lines(page):
        words = line.split()
        called = max((c for c in commands() if words[: len(c.split())] == c.split()), key=len)
        options = {option for param in commands()[called].params for option in (*param.opts, *param.secondary_opts)}
        options |= {"--help"}
        own = re.split(r"\.(?:py|cu) ", line)[
            0
        ]  # options after a script are its own, those after a .cu file the compiler's
        passed = set(re.findall(r"(?<![\w\\-])--?[a-z][\w-]*", own))
        missing_command = words and words[0].islower() and words[0].isalpha() and not called
        if missing_command or not passed <= options:
            wrong.append(f"simtbed {line}: {sorted(passed - options) or 'no such command'}")
    assert wrong == []


def test_every_command_is_documented_in_the_section_of_its_group() -> None:
    text = read(ROOT / "docs/command-line.md")
    sections = {section.partition("\n")[0]: section for section in text.split("\n## ")}
    group_of = {command: title for title, group in GROUPS.items() for command in group}
    leaves = [words for words, command in commands().items() if words and not isinstance(command, click.Group)]
    assert [words for words in leaves if f"`simtbed {words}" not in sections[group_of[words.split()[0]]]] == []


# ------------------------------------------------------------------ links and names
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and MkDocs make them."""
    headings = re.findall(r"^#+ (.*)$", prose(read(page)), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@each_row(PAGES, name)
def test_relative_links_resolve(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(read(page))):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


@each_row(PAGES, name)
def test_tables_have_a_head_and_rows_of_equal_length(page: Path) -> None:
    broken = []
    for table in re.findall(r"(?:^\|.*\n)+", prose(read(page)), flags=re.MULTILINE):
        rows = table.splitlines()
        cells = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
        if len(cells) > 1 or len(rows) < 3 or not re.fullmatch(r"[|: -]+", rows[1]):
            broken.append(rows[0])
    assert broken == []


@each_row(PAGES, name)
def test_paths_in_the_text_exist(page: Path) -> None:
    named = [code for code in inline_code(read(page)) if re.fullmatch(r"[.\w][\w./-]*/[\w./-]*", code)]
    inside = [code for code in named if code.split("/")[0] in FOLDERS]
    assert [code for code in inside if not (ROOT / code).exists()] == []


def resolves(dotted: str) -> bool:
    """Return whether simtbed.a.b.c is a module, or an attribute of one."""
    names = dotted.split(".")
    for split in range(len(names), 0, -1):
        try:
            value: Any = import_module(".".join(names[:split]))
        except ImportError:
            continue
        for attribute in names[split:]:
            if attribute in getattr(type(value), "__annotations__", {}):  # an axis of an index
                return True
            if not hasattr(value, attribute) and attribute not in getattr(value, "__dataclass_fields__", {}):
                return False
            value = getattr(value, attribute, None)
        return True
    return False


@each_row(PAGES, name)
def test_names_in_the_text_exist(page: Path) -> None:
    named = {
        reference.replace("st.", "simtbed.", 1) if reference.startswith("st.") else reference
        for code in inline_code(read(page))
        for reference in re.findall(r"(?<![\w./])(?:st|simtbed)(?:\.[A-Za-z_]\w*)+", code)
    }
    assert sorted(reference for reference in named if not resolves(reference)) == []


def test_terms_of_the_glossary_have_a_page() -> None:
    rows = re.findall(r"^\| .* \|$", read(ROOT / "docs/glossary.md"), flags=re.MULTILINE)
    assert 20 < len(rows) <= 42  # 40 terms, the head and its rule
    pages = [row.rsplit("|", 2)[1].strip() for row in rows[1:]]
    assert [page for page in pages if not re.fullmatch(r"\[[^]]*\]\([\w-]+\.md(#[\w-]+)?\)", page)] == []


def test_the_changelog_begins_with_the_version_of_the_package() -> None:
    version, _, date = re.findall(r"^## (\S+) (-) (.*)$", read(ROOT / "CHANGELOG.md"), flags=re.MULTILINE)[0]
    assert st.__version__ == (f"{version}.dev0" if date == "unreleased" else version)
    assert date == "unreleased" or re.fullmatch(r"\d{4}-\d\d-\d\d", date)


# ------------------------------------------------------------------ completeness
def test_every_variant_device_counter_and_check_is_documented() -> None:
    kernels, counters, checkers = (read(ROOT / f"docs/{page}.md") for page in ("kernels", "counters", "checkers"))
    variants = [variant for family in FAMILIES.values() for variant in family.variants]
    assert [variant for variant in variants if f"`{variant}`" not in kernels] == []
    assert [device for device in DEVICES if f"`{device}`" not in counters] == []
    assert [check for check in BY_NAME if f"`{check}`" not in checkers] == []
    kinds = {counter.split(".")[0] for counter in MEANING}
    assert [kind for kind in sorted(kinds) if f"`{kind}`" not in counters] == []


@each_row(PAGES, name)
def test_tables_and_numbers_are_those_of_the_data(page: Path, request: pytest.FixtureRequest) -> None:
    text = updated(page, read(page))
    if request.config.getoption("--update-golden"):
        page.write_text(text, encoding="utf-8")
    assert text.splitlines() == read(page).splitlines(), "--update-golden accepts what the data states now"


def test_every_package_is_described() -> None:
    assert [folder for folder, content in folders() if not content] == []


class Ids(HTMLParser):
    """The identifiers of a page's elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids |= {value for key, value in attrs if key == "id" and value}


@pytest.mark.slow
def test_every_folder_has_tests_to_run_after_a_change() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    changed = "".join(re.findall(r"^\| (`.*?) \| `tests/", page, re.MULTILINE))
    folders = {
        str(init.parent.relative_to(ROOT))
        for top in ("emulator", "kernels", "reports")
        for init in ROOT.glob(f"{top}/*/__init__.py")
    }
    assert set(re.findall("`(.*?)`", changed)) == folders | {"oracles"}


@pytest.mark.slow
def test_the_documentation_builds_with_a_complete_reference(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install '.[docs]'")
    pytest.importorskip("mkdocstrings_handlers.python", reason="mkdocstrings is not installed: pip install '.[docs]'")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    process = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    shown = re.sub(r"<[^>]+>", "", read(tmp_path / "examples/index.html"))
    assert shown.count("__main__") == len(SOURCE.findall(read(ROOT / "docs/examples.md"))) > 0
    for family in FAMILIES.values():
        headings = Ids(read(tmp_path / f"variants/{family.name}/index.html")).ids
        assert sorted(set(family.variants) - headings) == []
    pages = [tmp_path / page / "index.html" for page in ("api", "language")]
    ids = {identifier for page in pages for identifier in Ids(read(page)).ids}
    words = ("atomics", "bits", "clusters", "copies", "hints", "intrinsics", "maths", "matrices", "mbarriers", "warps")
    homes = ("simtbed", *(f"simtbed.language.{file}" for file in words))
    assert [public for public in st.__all__ if not {f"{home}.{public}" for home in homes} & ids] == []
