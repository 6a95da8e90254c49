"""Every feature kernel, from the files that define them."""

from tests.language import features, features_memory  # noqa: F401  (their decorators fill the list)
from tests.language.feature import FEATURES, Feature

__all__ = ["FEATURES", "Feature"]
