"""Test support for kernels and engines.

verify: compares a kernel with an oracle, on several engines. strategies: Hypothesis strategies for launches and kernels; only
this module needs Hypothesis. conformance: the test suite of an engine. source_text: kernels from text. plugin: fixtures and
options of pytest.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from .verifying import Disagreement, verify

__all__ = ["Disagreement", "verify"]


def __getattr__(name: str) -> _Any:
    """Import on demand: pytest imports this package for its plugin, also in runs without launches."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f"{__name__}.verifying"), name)
