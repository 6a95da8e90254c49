"""The table of features of Triton that scripts here run, their inputs, and the comparison of their results."""

# mypy: allow-untyped-defs
import traceback
from collections.abc import Callable
from typing import Any

import torch

import triton

DEVICE = triton.runtime.driver.active.get_active_torch_device()
FEATURES: dict[str, Callable[[], None]] = {}


def feature(function: Callable[[], None]) -> Callable[[], None]:
    FEATURES[function.__name__] = function
    return function


def random(*shape: int, dtype: Any = torch.float32) -> Any:
    generator = torch.Generator().manual_seed(sum(shape))
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(DEVICE).to(dtype)
    return torch.randint(-100 if dtype.is_signed else 0, 100, shape, generator=generator).to(DEVICE).to(dtype)


def require(actual: Any, expected: Any, tolerance: float = 0.0) -> None:
    """Raise AssertionError unless two tensors are equal within a relative and an absolute tolerance."""
    torch.testing.assert_close(
        actual, expected.to(actual.device, actual.dtype), rtol=tolerance, atol=tolerance, equal_nan=True
    )


def main(names: list[str]) -> int:
    """Run the features with these names, or all; return the number of failures."""
    failures = 0
    for name, function in FEATURES.items():
        if names and name not in names:
            continue
        try:
            function()
            print(f"equal: {name}", flush=True)
        except Exception as error:
            failures += 1
            print(f"failed: {name}: {type(error).__name__}: {str(error).strip()[:600]}", flush=True)
            if names:
                traceback.print_exc()
    return failures
