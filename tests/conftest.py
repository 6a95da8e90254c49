"""Fixtures and settings of all tests: golden texts, Hypothesis profiles, compilation of kernels."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from simtbed.runtime.registry import engine_named

GOLDEN = Path(__file__).parent / "golden"

# Deterministic: every run has the same examples, so a failure is due to a change of the code.
for profile, examples in (("default", 40), ("ci", 400)):
    settings.register_profile(profile, derandomize=True, deadline=None, database=None, max_examples=examples)
settings.load_profile("default")


INTEGRATION = {
    "test_cluster.py", "test_docs.py", "test_packaging.py", "test_dask_option.py", "test_signals.py",
    "test_streams.py", "test_memory.py", "test_same_answers.py", "test_unprivileged.py",
    "test_cache_keys.py", "test_cli.py", "test_new_command.py",
}  # fmt: skip
"""Files whose tests start processes, send signals or measure the memory of a process, in addition to tests/testing."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark integration tests."""
    for item in items:
        if item.path.name in INTEGRATION or item.path.parent.name == "testing":
            item.add_marker(pytest.mark.integration)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden texts instead of comparing")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)` asserts that tests/golden/NAME holds the text; `--update-golden` writes it."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"tests/golden/{name} does not exist: look at the text, then run with --update-golden\n{text}")
        assert text == path.read_text(encoding="utf-8"), f"tests/golden/{name} differs; --update-golden accepts it"

    return check


@pytest.fixture
def optimised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the jit engine optimise every kernel, as it does for large launches."""
    monkeypatch.setattr(engine_named("jit"), "optimise", True)
