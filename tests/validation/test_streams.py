"""Standard streams that are closed or full, in all combinations."""

from pathlib import Path

import pytest

from tests.hostile.test_streams import COMBINATIONS, assert_handled


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("line", COMBINATIONS, ids=" ".join)
def test_streams_that_are_closed_or_full(line: tuple[str, ...], tmp_path: Path) -> None:
    assert_handled(line, COMBINATIONS[line], tmp_path)
