"""Versions of the packages whose private names are replaced."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from ..errors import UnavailableError

TESTED = {"numba-cuda": ("0.30.4",), "numba": ("0.68.",), "llvmlite": ("0.50.",)}
"""Accepted versions by distribution: a version, or the beginning of one that ends with a dot."""


def require_versions() -> None:
    """Raise UnavailableError for a missing package or for another version than the tested ones."""
    for name, accepted in TESTED.items():
        expected = " or ".join(f"{text}*" if text.endswith(".") else text for text in accepted)
        try:
            found_version = version(name)
        except PackageNotFoundError:
            raise UnavailableError(f"{name} is not installed: pip install 'simtbed[numba-cuda]'") from None
        if not any(found_version == text or (text[-1] == "." and found_version.startswith(text)) for text in accepted):
            raise UnavailableError(
                f"{name} {found_version} is not supported: simtbed runs Numba programs with {name} {expected}; "
                f"pip install '{name}=={expected}'"
            )


def installed_versions() -> dict[str, str]:
    """Return the versions of these packages, a component of cache keys."""
    return {name: version(name) for name in TESTED}
