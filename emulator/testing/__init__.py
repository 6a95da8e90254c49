"""What a test of kernels, or of an engine, can build on.

verify: a kernel held to an oracle, on several engines. strategies: what Hypothesis launches kernels with, and random
kernels; Hypothesis is needed for that module alone. conformance: the suite that any engine can be held to.
reference_interpreter: the IR run one thread at a time. source_text: kernels from text. plugin: fixtures and options
of pytest.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from .verifying import Disagreement, verify

__all__ = ["Disagreement", "verify"]


def __getattr__(name: str) -> _Any:
    """Imported when asked for: pytest imports this package for its plugin, in runs that may launch nothing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f"{__name__}.verifying"), name)
