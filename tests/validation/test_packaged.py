"""Generated data of the package are current."""

from tests.validation import packaged


def test_recorded_values_are_current() -> None:
    assert packaged.FILE.read_text(encoding="utf-8") == packaged.content(), (
        "python -m tests.validation.packaged --write"
    )
