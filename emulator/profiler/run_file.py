"""The versioned JSON format of a run: encoder and decoder."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ..checked import shown
from ..documents import require
from ..errors import Diagnostic, Insertion
from ..escaping import printable
from ..machine.device import Device, Rates
from ..machine.timing import Timing
from ..span import Span
from .costs import Place
from .events import GLOBAL, MEANING, SHARED
from .launch import Argument, Launch
from .profile import CountedKernel, Site
from .remedies import NUMBERS, Remedy, Saving
from .samples import ACCESS, Packed, Samples, nonempty_rows

ACCESSES = (*GLOBAL, *SHARED, "local_load", "local_store", "constant_load")
FORMAT, VERSION = "simtbed run", 1


def encode(launches: Sequence[Launch], target: str) -> dict[str, Any]:
    """Return the run as a JSON document. Kernels, devices and sources occur once; launches refer to them by number."""
    kernels = list({id(one.kernel): one.kernel for one in launches}.values())
    devices = list(dict.fromkeys(one.device for one in launches))
    numbers = {id(kernel): number for number, kernel in enumerate(kernels)}
    encoded = [
        {
            **{name: getattr(one, name) for name in _PLAIN},
            "kernel": numbers[id(one.kernel)],
            "device": devices.index(one.device),
            "arguments": [asdict(argument) for argument in one.arguments],
            "counts": None if one.counts is None else one.counts.tolist(),
            "samples": None if one.samples is None else _encode_samples(one.samples),
            **{name: [asdict(finding) for finding in getattr(one, name)] for name in _FINDINGS},
        }
        for one in launches
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        "target": printable(target),
        "sources": {file: text for kernel in kernels for file, text in kernel.sources.items()},
        "devices": [asdict(device) for device in devices],
        "kernels": [_encode_kernel(kernel) for kernel in kernels],
        "launches": encoded,
    }


def decode(content: Any) -> tuple[list[Launch], str]:
    """Return the launches and the target. Raises ValueError or LaunchError if the document is invalid."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"there is no format {FORMAT!r}")
    if content.get("version") != VERSION:
        raise ValueError(f"its version is {shown(content.get('version'))}, this simtbed reads version {VERSION}")
    _check_references(content)
    devices = [_decode_device(device) for device in content["devices"]]
    kernels = [_decode_kernel(kernel, content["sources"]) for kernel in content["kernels"]]
    launches = [_decode_launch(one, kernels, devices) for one in content["launches"]]
    return launches, content["target"]


def _check_references(content: Any) -> None:
    """Raise ValueError if the run has another form, or refers to something absent."""
    from .run_schema import RunFile  # late: most commands read no run

    require(content, RunFile)
    for at, kernel in enumerate(content["kernels"]):
        for file in kernel["files"]:
            _within(file in content["sources"], f"kernels[{at}].files", "a source")
        for number_, site in enumerate(kernel["sites"]):
            place = f"kernels[{at}].sites[{number_}]"
            _within(site["span"]["file"] in kernel["files"], f"{place}.span.file", "one of the kernel's files")
            _within(site["size"] > 0 or site["kind"] not in (*GLOBAL, *SHARED), f"{place}.size", "bytes of an access")
            _within(site["parent"] is None or site["parent"] < number_, f"{place}.parent", "an earlier site")
    for at, launch in enumerate(content["launches"]):
        place = f"launches[{at}]"
        _within(launch["kernel"] < len(content["kernels"]), f"{place}.kernel", "the number of a kernel")
        _within(launch["device"] < len(content["devices"]), f"{place}.device", "the number of a device")
        kinds = [site["kind"] for site in content["kernels"][launch["kernel"]]["sites"]]
        sites = len(kinds)
        _within(launch["counts"] is None or len(launch["counts"]) == sites, f"{place}.counts", f"{sites} rows")
        samples = launch["samples"] or {"accesses": (), "loops": (), "remedies": ()}
        for name in ("accesses", "loops"):
            _within(all(site < sites for site, _ in samples[name]), f"{place}.samples.{name}", "numbers of sites")
        for at_, remedy in enumerate(samples["remedies"]):
            _check_remedy(remedy, kinds, f"{place}.samples.remedies[{at_}]")
        accesses = samples["accesses"]
        moving = all(kinds[site] in (*GLOBAL, *SHARED) for site, _ in accesses)
        _within(moving, f"{place}.samples.accesses", "numbers of accesses")
        lanes = list(ACCESS.names or ()).index("mask") + 1  # after the number of the row
        some = all(row[1] > 0 and row[lanes] > 0 for _, rows in accesses for row in rows)
        _within(some, f"{place}.samples.accesses", "executions by some lanes")


def _check_remedy(remedy: Any, kinds: Sequence[str], at: str) -> None:
    rule = NUMBERS.get(remedy["rule"], -1)
    _within(len(remedy["numbers"]) == rule, at, f"a rule with its numbers, one of {', '.join(NUMBERS)}")
    accesses = (number for number, kind in enumerate(kinds) if kind in ACCESSES)
    _within(bool(remedy["sites"]) and {*remedy["sites"]} <= {*accesses}, f"{at}.sites", "numbers of accesses")
    _within(all(counter in MEANING for counter, _ in remedy["savings"]), f"{at}.savings", "names of counters")


def _within(right: bool, at: str, expected: str) -> None:
    if not right:
        raise ValueError(f"{at}: expected {expected}")


_PLAIN = ("grid", "block", "shared_bytes", "engine", "seconds", "milliseconds", "registers")
_FINDINGS = ("faults", "remarks", "disagreements")


def _decode_launch(content: Any, kernels: Sequence[CountedKernel], devices: Sequence[Device]) -> Launch:
    changed: dict[str, Any] = {
        "kernel": kernels[content["kernel"]],
        "device": devices[content["device"]],
        "grid": _dim3(content["grid"]),
        "block": _dim3(content["block"]),
        "arguments": tuple(_decode_argument(argument) for argument in content["arguments"]),
        "counts": None if content["counts"] is None else np.array(content["counts"], np.int64),
        "packed": None if content["samples"] is None else Packed.pack(_decode_samples(content["samples"])),
    }
    findings = {name: tuple(_decode_finding(finding) for finding in content[name]) for name in _FINDINGS}
    own = {name: value for name, value in content.items() if name != "samples"}
    return Launch(**{**own, **changed, **findings})


def _encode_samples(samples: Samples) -> dict[str, Any]:
    """Return the rows with counts, by site and row."""
    tables: dict[str, Any] = {
        name: [
            [
                site,
                [
                    [row, *(table[row][field].tolist() for field in table.dtype.fields or ())]
                    for row in nonempty_rows(table)
                ],
            ]
            for site, table in tables.items()
        ]
        for name, tables in (("accesses", samples.accesses), ("loops", samples.loops))
    }
    return tables | {"remedies": [asdict(remedy) for remedy in samples.remedies]}


def _decode_samples(content: Any) -> Samples:
    samples = Samples({}, {}, tuple(_decode_remedy(remedy) for remedy in content["remedies"]))
    for name, empty in (("accesses", samples.of_access), ("loops", samples.of_loop)):
        for site, rows in content[name]:
            table = empty(site)
            for row, *values in rows:
                table[row] = tuple(values)
    return samples


def _decode_remedy(content: Any) -> Remedy:
    savings = tuple(Saving(*saving) for saving in content["savings"])
    return Remedy(
        **{**content, "sites": tuple(content["sites"]), "savings": savings, "numbers": tuple(content["numbers"])}
    )


def _encode_kernel(kernel: CountedKernel) -> dict[str, Any]:
    sites = [
        {
            "span": asdict(site.place.span), "kind": site.place.kind, "array": site.place.array,
            "size": site.place.size, "costs": dict(site.costs), "parent": site.parent,
        }
        for site in kernel.sites
    ]  # fmt: skip
    return {"name": kernel.name, "span": asdict(kernel.span), "sites": sites, "files": list(kernel.sources)}


def _decode_kernel(content: Any, sources: Any) -> CountedKernel:
    sites = [
        Site(
            Place(_decode_span(site["span"]), site["kind"], site["array"], site["size"]), site["costs"], site["parent"]
        )
        for site in content["sites"]
    ]
    texts = {file: sources[file] for file in content["files"]}
    return CountedKernel(content["name"], _decode_span(content["span"]), tuple(sites), texts)


def _decode_span(content: Any) -> Span:
    return Span(**{**content, "calls": tuple(_decode_span(call) for call in content["calls"])})


def _decode_finding(content: Any) -> Diagnostic:
    related = content["related"]
    changed = {
        "span": _decode_span(content["span"]),
        "notes": tuple(content["notes"]),
        "related": related and _decode_span(related),
        "remedy": tuple(Insertion(**one) for one in content["remedy"]),
        "blocks": tuple(content["blocks"]),
    }
    return Diagnostic(**{**content, **changed})


def _decode_argument(content: Any) -> Argument:
    shape, value = content["shape"], content["value"]
    return Argument(
        content["name"],
        content["type"],
        None if shape is None else tuple(shape),
        tuple(value) if isinstance(value, list) else value,
    )


def _decode_device(content: Any) -> Device:
    plain: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in content.items()}
    return Device(**plain | {"rates": Rates(**content["rates"]), "timing": Timing(**content["timing"])})


def _dim3(sizes: Any) -> tuple[int, int, int]:
    x, y, z = sizes
    return x, y, z
