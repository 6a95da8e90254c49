"""Lookup of families, variants and problems by name."""

import os
from pathlib import Path
from typing import Any

from simtbed import Device, SimtbedError, devices
from simtbed.documents import require_file
from simtbed.escaping import printable
from simtbed.kernels import FAMILIES, Family

from .printing import print_message


def variants_called(name: str) -> list[Family[Any]]:
    """Return the families with a variant VARIANT or FAMILY/VARIANT."""
    family, _, variant = name.rpartition("/")
    return [f for f in FAMILIES.values() if variant in f.variants and family in ("", f.name)]


def find_variant(name: str) -> tuple[Family[Any], str]:
    """Return the family and the variant named VARIANT or, if the name is ambiguous, FAMILY/VARIANT."""
    variant, families = name.rpartition("/")[2], variants_called(name)
    if len(families) == 1:
        return families[0], variant
    if families:
        raise SimtbedError(f"{name} is ambiguous: write {' or '.join(f'{f.name}/{variant}' for f in families)}")
    if os.path.exists(name) and not os.path.isfile(name):
        require_file(name, "; expected a program or a shipped variant")
    names = [v for f in FAMILIES.values() for v in f.variants]
    choices = (v if names.count(v) == 1 else f"{f.name}/{v}" for f in FAMILIES.values() for v in f.variants)
    raise SimtbedError(f"there is no variant {name!r}; expected one of {', '.join(choices)}")


def require_variant(family: Family[Any], variant: str) -> None:
    """Raise SimtbedError if a family has no variant of this name."""
    if variant not in family.variants:
        raise SimtbedError(f"{family.name} has no variant {variant!r}; it has {', '.join(family.variants)}")


def is_device_file(name: str) -> bool:
    """Return whether a device is given by a TOML file."""
    return name.endswith(".toml")


def find_device(name: str) -> Device:
    """Return a device by name or by TOML file. The source of a file's values is printed on stderr."""
    device = devices.find(name)
    if is_device_file(name):
        print_message(f"simtbed: {printable(name)}: {printable(device.source)}")
    return device


def find_family(name: str) -> Family[Any]:
    """Return the family of a name."""
    if name not in FAMILIES:
        raise SimtbedError(f"there is no family {name!r}; expected one of {', '.join(FAMILIES)}")
    return FAMILIES[name]


def find_variants(family: str | None, variant: str | None, source: Path | None) -> list[tuple[Family[Any], list[str]]]:
    """Return the families selected by name or by variant, by default all, each with its selected variants.

    source: an input file, which requires a single family.
    """
    if variant is not None:
        if family is None:
            owner, variant = find_variant(variant)
            return [(owner, [variant])]
        require_variant(find_family(family), variant)
    chosen = [find_family(family)] if family else list(FAMILIES.values())
    if source is not None and len(chosen) > 1:
        raise SimtbedError("--input needs a single family: add --family or --variant")
    return [(f, [variant] if variant else list(f.variants)) for f in chosen]


def find_problem(family: Family[Any], source: Path | None) -> tuple[Any, str]:
    """Return the problem of a file, or the shipped example, and its name in reports."""
    return (family.example(), "the example") if source is None else (family.read(source), str(source))
