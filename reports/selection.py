"""What a command works on: families, variants, devices and problems by the names that a user gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from simtbed import SimtbedError
from simtbed.kernels import FAMILIES, Family


def variants_called(name: str) -> list[Family[Any]]:
    """The families with a variant of that name, VARIANT or FAMILY/VARIANT."""
    family, _, variant = name.rpartition("/")
    return [f for f in FAMILIES.values() if variant in f.variants and family in ("", f.name)]


def find_variant(name: str) -> tuple[Family[Any], str]:
    """The family and the name of a variant, given as VARIANT or, where several families have one, FAMILY/VARIANT."""
    variant, found = name.rpartition("/")[2], variants_called(name)
    if len(found) == 1:
        return found[0], variant
    if found:
        raise SimtbedError(f"{name} is ambiguous: say {' or '.join(f'{f.name}/{variant}' for f in found)}")
    names = [v for f in FAMILIES.values() for v in f.variants]
    known = (v if names.count(v) == 1 else f"{f.name}/{v}" for f in FAMILIES.values() for v in f.variants)
    raise SimtbedError(f"no variant is called {name!r}; there are {', '.join(known)}")


def find_family(name: str) -> Family[Any]:
    """The family of that name."""
    if name not in FAMILIES:
        raise SimtbedError(f"no family is called {name!r}; there are {', '.join(FAMILIES)}")
    return FAMILIES[name]


def find_variants(family: str | None, variant: str | None, source: Path | None) -> list[tuple[Family[Any], list[str]]]:
    """The families chosen by name, or by the name of a variant, or all; with their variants. source: an input, which
    only one family can read."""
    if variant is not None:
        if family is None:
            one, variant = find_variant(variant)
            return [(one, [variant])]
        if variant not in find_family(family).variants:
            raise SimtbedError(f"{family} has no variant {variant!r}; it has {', '.join(find_family(family).variants)}")
    chosen = [find_family(family)] if family else list(FAMILIES.values())
    if source is not None and len(chosen) > 1:
        raise SimtbedError("--input belongs to one family: name it with --family or --variant")
    return [(one, [variant] if variant else list(one.variants)) for one in chosen]


def find_problem(family: Family[Any], source: Path | None) -> tuple[Any, str]:
    """The problem to solve and what to call it: a file's, or the shipped example."""
    return (family.example(), "the example") if source is None else (family.read(source), str(source))
