"""Names of a library in a stand-in: an absent one raises AttributeError that names the library's function."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any, NoReturn


def module(name: str, contents: Mapping[str, Any]) -> ModuleType:
    """Return a module with these names."""

    def absent(attribute: str) -> NoReturn:
        raise AttributeError(f"{name}.{attribute} is not emulated")

    result = ModuleType(name, "Emulated by simtbed.")
    vars(result).update(contents, __getattr__=absent)
    return result


class Named:
    """An object of a library. library: its name there, by default the name of its class."""

    library = ""

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self.library or type(self).__name__}.{name} is not emulated")


class Constants(Named):
    """Constants of an enumeration."""

    def __init__(self, library: str, **values: Any) -> None:
        vars(self).update(values, library=library)
