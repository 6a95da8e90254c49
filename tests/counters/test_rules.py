"""The version of the counting rules changes if and only if the counts of a kernel change."""

import hashlib
import inspect
import json
from pathlib import Path

import pytest
from simtbed.profiler.events import RULES
from simtbed.runtime.launching import launch
from simtbed.testing.conformance import FEATURES

FILE = Path(__file__).with_name("rules.json")
"""rules: the version. features: digests of the text and of the counts of each feature's kernel under that version."""


def _digests() -> dict[str, list[str]]:
    """Return digests of the text and of the counts of each feature's kernel."""
    digests = {}
    for feature in FEATURES:
        result = feature.launch(launch)
        assert result.counts is not None
        text = inspect.getsource(feature.kernel.function)
        digests[feature.name] = [
            hashlib.sha256(part).hexdigest()[:16] for part in (text.encode(), result.counts.tobytes())
        ]
    return digests


@pytest.mark.slow
def test_what_is_counted_has_a_version(request: pytest.FixtureRequest) -> None:
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    digests = _digests()
    same = [name for name in digests if name in stored["features"] and digests[name][0] == stored["features"][name][0]]
    other = [name for name in same if digests[name] != stored["features"][name]]
    if stored["rules"] == RULES:
        assert not other, f"{', '.join(other)}: counted differently: raise RULES in emulator/profiler/events.py"
    if request.config.getoption("--update-golden"):
        FILE.write_text(json.dumps({"rules": RULES, "features": digests}, indent=1) + "\n", encoding="utf-8")
        return
    assert stored["rules"] == RULES, "RULES was raised: --update-golden accepts the new counts"
    assert len(same) >= len(FEATURES) / 2, "most features are other kernels now: --update-golden accepts them"
