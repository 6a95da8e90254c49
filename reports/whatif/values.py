"""Parsers of the options of `simtbed whatif`: devices, block sizes, constants and changed fields of a device."""

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
    """Return the axes of the sweep. Raises SimtbedError for an invalid value."""
    constants: dict[str, tuple[Any, ...]] = {}
    for text in const:
        name, values = _named("--const", text, "T=8,16,32")
        if name in constants:
            raise SimtbedError(f"--const {text}: {name} is repeated: separate its values by commas")
        constants[name] = tuple(_value(value) for value in values.split(","))
    ties = {}
    for text in tie:
        name, extent = _named("--tie", text, "BLOCK=block.x")
        if extent not in ("block.x", "block.y", "block.z"):
            raise SimtbedError(f"--tie {text}: expected block.x, block.y or block.z after the =")
        ties[name] = extent
    if both := [name for name in ties if name in constants]:
        raise SimtbedError(f"--tie and --const both set {both[0]}")
    return Axes(_extents("--block", block), _extents("--grid", grid), constants, ties)


def chosen_devices(names: str, replaced: str | None) -> tuple[Device, ...]:
    """Return the listed devices, with fields replaced as in l2=50MB,timing.dram=500."""
    listed = [devices.find(name) for name in names.split(",")]
    return tuple(_replaced(device, replaced) if replaced else device for device in listed)


def _replaced(device: Device, text: str) -> Device:
    changed = device
    for setting in text.split(","):
        name, value = _named("--replace", setting, "l2=50MB,banks=16")
        group, _, field = name.rpartition(".")
        owner: Any = {"": changed, "timing": changed.timing, "rates": changed.rates}.get(group)
        kinds = {"": Device, "timing": Timing, "rates": Rates}
        values = {f.name: getattr(owner, f.name) for f in fields(kinds[group])} if owner is not None else {}
        if not isinstance(values.get(field), int | float):
            raise SimtbedError(
                f"--replace {setting}: a device has no numeric field {name}: see the fields of simtbed.Device, timing.* and "
                "rates.*"
            )
        number = _size(setting, value, type(values[field]))
        changed = replace(changed, **{field: number} if not group else {group: replace(owner, **{field: number})})
    return replace(changed, name=f"{device.name} {text.replace(',', ' ')}")


def _size(option: str, text: str, kind: type) -> Any:
    if kind is bool and text in ("true", "false"):
        return text == "true"
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)([KMG]?)(?:i?B)?", text, re.ASCII)
    if match is None or kind is bool:
        raise SimtbedError(f"--replace {option}: expected a number, such as 16 or 50MB")
    number = float(match[1]) * _UNITS[match[2]]
    if kind is int and number != int(number):
        raise SimtbedError(f"--replace {option}: expected a whole number")
    return kind(number)


def _named(option: str, text: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals or not value:
        raise SimtbedError(f"{option} {text}: expected a name and a value, such as {example}")
    return name, value


def _extents(option: str, text: str | None) -> tuple[Dim3, ...]:
    extents = []
    for size in text.split(",") if text else ():
        if not _EXTENT.fullmatch(size) or 0 in (sizes := tuple(int(n) for n in size.split("x"))):
            raise SimtbedError(f"{option} {text}: expected sizes above 0, such as 64,128 or 32x8, got {size!r}")
        x, y, z = (*sizes, 1, 1)[:3]
        extents.append((x, y, z))
    return tuple(extents)


def _value(text: str) -> Any:
    """Parse a constant: an integer, a float, a boolean or a string."""
    if text in ("true", "false", "True", "False"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
