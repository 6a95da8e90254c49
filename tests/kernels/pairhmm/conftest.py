"""Where the published data of the pair-HMM is."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data(data: Path) -> Path:
    return data / "pairhmm"
