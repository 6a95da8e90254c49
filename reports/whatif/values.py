"""What the options of `simtbed whatif` stand for: lists of devices, blocks, constants, and parts of a device put otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

from simtbed import Device, SimtbedError, devices
from simtbed.machine.device import Rates
from simtbed.machine.timing import Timing
from simtbed.model.sweeps import Axes, Dim3

_EXTENT = re.compile(r"\d{1,10}(x\d{1,10}){0,2}")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def axes(block: str | None, grid: str | None, const: Iterable[str], tie: Iterable[str]) -> Axes:
    """What is varied. Raises SimtbedError with what was expected."""
    constants: dict[str, tuple[Any, ...]] = {}
    for one in const:
        name, values = _named("--const", one, "T=8,16,32")
        if name in constants:
            raise SimtbedError(f"--const {one}: {name} was given before: write its values with commas")
        constants[name] = tuple(_value(value) for value in values.split(","))
    ties = {}
    for one in tie:
        name, of = _named("--tie", one, "BLOCK=block.x")
        if of not in ("block.x", "block.y", "block.z"):
            raise SimtbedError(f"--tie {one}: expected block.x, block.y or block.z after the =")
        ties[name] = of
    if both := [name for name in ties if name in constants]:
        raise SimtbedError(f"--tie and --const both say what {both[0]} is")
    return Axes(_extents("--block", block), _extents("--grid", grid), constants, ties)


def chosen_devices(names: str, replaced: str | None) -> tuple[Device, ...]:
    """The devices of a list; with parts put otherwise, as in l2=50MB,timing.dram=500."""
    found = [devices.find(name) for name in names.split(",")]
    return tuple(_replaced(device, replaced) if replaced else device for device in found)


def _replaced(device: Device, text: str) -> Device:
    changed = device
    for one in text.split(","):
        name, value = _named("--replace", one, "l2=50MB,banks=16")
        part, _, inner = name.rpartition(".")
        owner: Any = {"": changed, "timing": changed.timing, "rates": changed.rates}.get(part)
        kinds = {"": Device, "timing": Timing, "rates": Rates}
        known = {f.name: getattr(owner, f.name) for f in fields(kinds[part])} if owner is not None else {}
        if not isinstance(known.get(inner), int | float):
            raise SimtbedError(
                f"--replace {one}: no number of a device is called {name}: see the fields of simtbed.Device, timing.* and "
                "rates.*"
            )
        number = _size(one, value, type(known[inner]))
        changed = replace(changed, **{inner: number} if not part else {part: replace(owner, **{inner: number})})
    return replace(changed, name=f"{device.name} {text.replace(',', ' ')}")


def _size(option: str, text: str, kind: type) -> Any:
    if kind is bool and text in ("true", "false"):
        return text == "true"
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)([KMG]?)(?:i?B)?", text, re.ASCII)
    if found is None or kind is bool:
        raise SimtbedError(f"--replace {option}: expected a number, such as 16 or 50MB")
    number = float(found[1]) * _UNITS[found[2]]
    if kind is int and number != int(number):
        raise SimtbedError(f"--replace {option}: expected a whole number")
    return kind(number)


def _named(option: str, text: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals or not value:
        raise SimtbedError(f"{option} {text}: expected a name and what it is, such as {example}")
    return name, value


def _extents(option: str, text: str | None) -> tuple[Dim3, ...]:
    found = []
    for one in text.split(",") if text else ():
        if not _EXTENT.fullmatch(one) or 0 in (sizes := tuple(int(n) for n in one.split("x"))):
            raise SimtbedError(f"{option} {text}: expected sizes above 0, such as 64,128 or 32x8, got {one!r}")
        x, y, z = (*sizes, 1, 1)[:3]
        found.append((x, y, z))
    return tuple(found)


def _value(text: str) -> Any:
    """A constant: a whole number, a number, true or false, or a text."""
    if text in ("true", "false", "True", "False"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
