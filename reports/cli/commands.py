"""What each command of `simtbed` does. Each returns the exit code: 0, or 1 for a finding."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal, TextIO

from simtbed import Device, FaultError, SimtbedError, devices, map_over_gpus
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.printer import cuda_source
from simtbed.kernels import FAMILIES
from simtbed.kernels.family import Agreement, Family, joined
from simtbed.runtime.registry import EngineName

from .. import tables
from ..annotate import annotated, hottest, short
from ..layout import Traffic, traffic
from ..running import (
    ENGINES,
    ConcurrentRunner,
    Runner,
    ahead,
    ask_for_gpus,
    find_family,
    find_variant,
    find_variants,
    first_launch,
    obstacle,
    progress,
)


def list_all(json: bool) -> int:
    """The families with their variants, and the devices."""
    variants = [
        {"family": f.name, "variant": v.name, "description": v.description, "paper": v.paper}
        for f in FAMILIES.values()
        for v in f.variants.values()
    ]
    known = [
        {
            "device": d.name,
            "compute capability": ".".join(map(str, d.compute_capability)),
            "SMs": d.sms,
            "clock MHz": d.clock,
            "bandwidth GB/s": round(d.bandwidth),
        }
        for d in devices.DEVICES.values()
    ]
    if json:
        print(tables.as_json({"variants": variants, "devices": known}))
        return 0
    print(tables.table(list(variants[0]), [list(row.values()) for row in variants], left=4))
    print()
    print(tables.table(list(known[0]), [list(row.values()) for row in known]))
    return 0


# ------------------------------------------------------------------ profile
def profile(variant: str, source: Path | None, device: str, sass: bool, json: bool) -> int:
    """Counters of a variant, by name and by line, emulated; with `sass` what its compiled kernels would execute."""
    if sass:
        return _profile_sass(variant, source, device, json)
    family, variant = find_variant(variant)
    problem, name = find_problem(family, source)
    runner = Runner("jit", find_device(device), counting=True, uncounted=family.preparing())
    with progress(f"{variant} on {name}"):
        family.solve(problem, variant, runner)
    counters = runner.counters
    if counters is None:
        raise SimtbedError(f"{variant} launches no kernel on {name}")
    moved = traffic(runner.counted)
    if json:
        lines = [{"file": short(file), "line": line, **row} for (file, line), row in counters.by_line().items()]
        content = {
            "variant": variant,
            "input": name,
            "device": runner.device.name,
            "launches": runner.launches,
            "totals": counters.totals(),
            "derived": counters.derived(),
            "hottest": [
                {"what": h.what, "file": short(h.place[0]), "line": h.place[1], "count": h.count}
                for h in hottest(counters)
            ],
            "traffic": [{**asdict(t), "file": short(t.file), "apart": t.apart} for t in moved],
            "lines": lines,
        }
        print(tables.as_json(content))
        return 0
    launches = f"{runner.launches:,} launch{'' if runner.launches == 1 else 'es'}"
    print(f"{variant} on {name}, {runner.device.name}, {launches}\n")
    print(tables.totals(counters) + "\n")
    print(tables.derived(counters) + "\n")
    print("\n".join(str(line) for line in hottest(counters)) + "\n")
    if moved:
        print(_traffic(moved) + "\n")
    print(annotated(counters))
    return 0


def _traffic(moved: list[Traffic]) -> str:
    """Global memory line by line, as it is and as it would be with one row a lane."""
    headers = ["global memory", "access", "bytes a lane", "requests", "sectors", "a request", "used", "sectors apart"]
    rows = [
        [
            f"{short(t.file)}:{t.line}", t.kind.removeprefix("global_"), t.size, t.requests, t.sectors,
            f"{t.sectors / t.requests:.2f}", f"{100 * t.used:.1f} %", "" if t.apart is None else t.apart,
        ]
        for t in moved
    ]  # fmt: skip
    text = tables.table(headers, rows, left=2)
    if any(t.apart is None for t in moved):
        text += "\nused above 100 %: lanes ask for the same bytes, which no layout changes"
    spread = [t for t in moved if t.apart is not None]
    if not spread:
        return text
    sectors, apart, asked = (
        sum(t.sectors for t in spread),
        sum(t.apart or 0 for t in spread),
        sum(t.bytes for t in spread),
    )
    used = 100 * asked / (apart * spread[0].sector)
    return (
        f"{text}\napart: with a row of its own for each lane (for pairs: pair-major), these accesses would move {apart:,} sectors\n"
        f"instead of {sectors:,}, {apart / sectors:.1f} times as many, of which {used:.1f} % would be used"
    )


def _profile_sass(variant: str, source: Path | None, device: str, json: bool) -> int:
    """Instructions of the compiled kernels, weighed by the emulator's counts."""
    from ..hardware.cases import RecordingLauncher
    from ..hardware.mix import mixes

    (family, variant), row = find_variant(variant), find_device(device)
    problem, name = find_problem(family, source)
    launcher = RecordingLauncher("jit", row)
    with progress(f"{variant} on {name}"):
        family.solve(problem, variant, launcher)
        found = mixes(launcher.kernels, "sm_{}{}".format(*row.compute_capability))
    if json:
        print(
            tables.as_json(
                {"variant": variant, "input": name, "device": row.name, "kernels": [m.content() for m in found]}
            )
        )
        return 0
    print(f"{variant} on {name}, {row.name}: instructions of the compiled kernels, weighed by the emulator's counts\n")
    print(tables.table(list(found[0].row()), [list(m.row().values()) for m in found]))
    return 0


# ------------------------------------------------------------------ verify
def verify(family: str | None, variant: str | None, engine: EngineName | None, source: Path | None, json: bool) -> int:
    """Every chosen variant on every chosen engine against its oracle. 1 if any disagrees or has faults."""
    chosen = find_variants(family, variant, source)
    obstacles = {name: obstacle(name) for name in ([engine] if engine else ENGINES)}
    if engine and obstacles[engine]:
        raise SimtbedError(f"the {engine} engine cannot run here: {obstacles[engine]}")
    rows: list[dict[str, Any]] = []
    for one, variants in chosen:
        problem, name = find_problem(one, source)
        with progress(f"the oracle of {one.name} on {name}"):
            expected = one.oracle(problem)
        for each in variants:
            for engine_name, reason in obstacles.items():
                row: dict[str, Any] = {"family": one.name, "variant": each, "engine": engine_name, "input": name}
                if reason:
                    rows.append({**row, "result": "not run", "reason": reason})
                    continue
                with progress(f"{each} on {name}, {engine_name}"):
                    rows.append({**row, **_verified(one, each, engine_name, problem, expected)})
    bad = any(row["result"] in ("differs", "faults") for row in rows)
    if json:
        print(tables.as_json({"agrees": not bad, "results": rows}))
        return int(bad)
    print(_verify_table(rows))
    return int(bad)


def _verified(family: Family[Any], variant: str, engine: EngineName, problem: Any, expected: Any) -> dict[str, Any]:
    """Result, comparison and times of one run; `reason` holds the faults, if there are any."""
    runner, start = Runner(engine), time.perf_counter()
    try:
        answer = family.solve(problem, variant, runner)
    except FaultError as error:
        return {"result": "faults", "reason": str(error)}
    seconds = time.perf_counter() - start
    agreement = family.compare(answer, expected)
    return {
        "result": "agrees" if agreement.agrees else "differs",
        **asdict(agreement),
        "seconds": seconds,
        "kernel_milliseconds": runner.milliseconds,
    }


def _verify_table(rows: list[dict[str, Any]]) -> str:
    headers = [
        "variant",
        "engine",
        "input",
        "result",
        "compared",
        "differing",
        "worst",
        "tolerance",
        "seconds",
        "kernel ms",
    ]
    cells, notes = [], {}
    for row in rows:
        cells.append([
            row["variant"], row["engine"], row["input"], row["result"].upper() if row["result"] in ("differs", "faults") else row["result"],
            row.get("compared", ""), row.get("differing", ""),
            f"{row['worst']:.2g} {row['unit']}" if "worst" in row else "",
            f"{row['tolerance']:.0e}" if "tolerance" in row else "",
            f"{row['seconds']:.2f}" if "seconds" in row else "",
            f"{row['kernel_milliseconds']:.3f}" if row.get("kernel_milliseconds") else "",
        ])  # fmt: skip
        if "reason" in row:
            key = row["engine"] if row["result"] == "not run" else f"{row['variant']} on {row['engine']}"
            notes[key] = f"{key}: {row['result']}: {row['reason']}"
    return "\n".join([tables.table(headers, cells, left=4), *notes.values()])


# ------------------------------------------------------------------ pairhmm
def pairhmm(
    source: Path | None,
    target: Path | None,
    variant: str,
    engine: EngineName,
    form: Literal["gpupairhmm", "tsv"],
    counting: bool,
    check: bool,
    json: bool,
    gpus: int = 1,
) -> int:
    """Pair-HMM from file to file. Reports go to stdout when the answer goes to a file, to stderr otherwise."""
    from simtbed.kernels import files
    from simtbed.kernels.pairhmm.host.files import blocks, lines

    family = find_family("pairhmm")
    if variant not in family.variants:
        raise SimtbedError(f"pairhmm has no variant {variant!r}; it has {', '.join(family.variants)}")
    if target is not None and not target.parent.is_dir():
        raise SimtbedError(f"{target}: there is no folder {target.parent}")  # before the work, not after it
    ask_for_gpus(gpus, engine)
    name = str(source) if source else "the example"
    runner = ConcurrentRunner(engine) if engine == "cuda" else Runner(engine, counting=counting)
    agreements: list[Agreement] = []
    pairs = 0

    def answers() -> Iterator[bytes]:
        nonlocal pairs
        records = 0
        with progress(f"{variant} on {name}") as tell:
            problems = ahead(blocks(source)) if source else [family.example()]
            for problem, answer in map_over_gpus(problems, lambda one: family.solve(one, variant, runner), gpus):
                if check:
                    agreements.append(family.compare(answer, family.oracle(problem)))
                yield from lines(problem, answer, form, records)
                pairs, records = pairs + len(answer), records + len(problem.record_reads) - 1
                tell(f"{pairs:,} pairs")

    if target is None:
        with tempfile.TemporaryFile() as whole:  # nothing is printed of what ends in an error
            whole.writelines(ahead(answers()))
            whole.seek(0)
            sys.stdout.flush()
            shutil.copyfileobj(whole, sys.stdout.buffer)
    else:
        files.write(target, ahead(answers()))
    if not pairs:
        print(f"simtbed: warning: {name} holds no pairs of reads and haplotypes; the answer is empty", file=sys.stderr)
    agreement = joined(agreements) if check else None
    report(runner, agreement, json, sys.stderr if target is None else sys.stdout)
    return int(agreement is not None and not agreement.agrees)


def report(runner: Runner, agreement: Agreement | None, json: bool, to: TextIO) -> None:
    """The agreement and the counters, as far as they were asked for."""
    if json:
        content: dict[str, Any] = {"launches": runner.launches}
        if agreement is not None:
            content["agreement"] = {"agrees": agreement.agrees, **asdict(agreement)}
        if runner.counters is not None:
            content |= {"counters": runner.counters.totals(), "derived": runner.counters.derived()}
        print(tables.as_json(content), file=to)
        return
    if agreement is not None:
        a = agreement
        word = "agree" if a.agrees else f"DISAGREE ({a.differing:,} differ)"
        print(
            f"{a.compared:,} values and the oracle {word}: worst {a.worst:.2g} {a.unit}, tolerance {a.tolerance:.0e}",
            file=to,
        )
    if runner.counters is not None:
        print(f"\n{tables.totals(runner.counters)}\n\n{tables.derived(runner.counters)}", file=to)


# ------------------------------------------------------------------ cuda
def cuda(variant: str, build: bool, arch: str, json: bool) -> int:
    """A variant's first launch on the example as CUDA C++, or what nvcc makes of it."""
    family, variant = find_variant(variant)
    request = first_launch(family, variant, family.example())
    source = cuda_source(request.program, request.block)
    if not build:
        print(
            tables.as_json({"variant": variant, "source": source.text}) if json else source.text,
            end="\n" if json else "",
        )
        return 0
    with progress(f"nvcc -arch={arch}"):
        built = nvcc.build(source.with_lines(), source.kernel, arch)
    resources = replace(built.resources, shared_bytes=built.resources.shared_bytes + source.carved_bytes)
    content = {"variant": variant, "arch": arch, "compiler": built.compiler, **asdict(resources)}
    if json:
        print(tables.as_json(content))
    else:
        print(
            tables.table(["kernel", source.kernel], [(key.replace("_", " "), value) for key, value in content.items()])
        )
    return 0


# ------------------------------------------------------------------ access
def access(source: Path, device: str, compare: bool, json: bool) -> int:
    """What single warp accesses cost; 1 where a compared row differs."""
    from .access import report

    text, code = report(source, find_device(device), as_json=json, compare=compare)
    print(text)
    return code


# ------------------------------------------------------------------ hardware
def hardware_record(target: Path | None, cases: list[str] | None, only: str | None) -> int:
    """What this machine's GPU counts, as a record; `only` some cases: in place of those that the file holds."""
    from ..hardware import record
    from ..hardware.cases import VARIANTS

    if target is not None and not target.parent.is_dir():
        raise SimtbedError(f"{target}: there is no folder {target.parent}")  # before the work, not after it
    if only and target is None:
        raise SimtbedError("--only mends a record: name its file with --output")
    known = record.load(target) if only and target else None
    with progress("Nsight Compute"):
        taken = record.take(cases or [VARIANTS], only or "*")
    path = target or Path(f"{taken.device.lower()}.json")
    record.save(record.merged(known, taken) if known else taken, path)
    print(f"wrote {path}")
    return 0


def hardware_compare(device: str, cases: list[str] | None, markdown: bool, json: bool) -> int:
    """The emulator beside a record; 1 where it does not hold."""
    from ..hardware import compare, record, text
    from ..hardware.cases import VARIANTS

    source = Path(device) if device.endswith(".json") else record.path_of(find_device(device).name)
    with progress("the emulator"):
        found = compare.compare(record.load(source), cases or [VARIANTS])
    print(tables.as_json(text.content(found)) if json else text.markdown(found) if markdown else text.table(found))
    return int(not found.holds)


# ------------------------------------------------------------------ shared by the commands
def find_device(name: str) -> Device:
    """A device of the table by its name, or one described in a TOML file."""
    return devices.load(name) if name.endswith(".toml") else devices.find(name)


def find_problem(family: Family[Any], source: Path | None) -> tuple[Any, str]:
    """The problem to solve and what to call it: a file's, or the shipped example."""
    return (family.example(), "the example") if source is None else (family.read(source), str(source))
