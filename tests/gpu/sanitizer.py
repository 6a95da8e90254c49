"""The corpus of mistakes as one CUDA program, and the reports of NVIDIA's compute-sanitizer on it on a GPU.

    python -m tests.gpu.sanitizer print corpus.cu && nvcc -gencode arch=compute_90a,code=sm_90a -lineinfo -o corpus corpus.cu
    python -m tests.gpu.sanitizer run corpus --out tests/checkers/sanitizer_h200.json

`corpus NUMBER ...` runs twins by number: 2 n is the mistake of the n-th pair, 2 n + 1 its fixed twin. Buffers passed to
the emulator as `empty` are allocated and not filled. Kernels that would not end are omitted.
"""

import argparse
import json
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

TOOLS = {
    "memcheck": ["--tool", "memcheck"],
    "racecheck": ["--tool", "racecheck", "--racecheck-report", "all"],
    "initcheck": ["--tool", "initcheck"],
    "synccheck": ["--tool", "synccheck"],
}
ENDLESS = "step limit"
SECONDS = 60
AT_ONCE = 12


# ------------------------------------------------------------------ the program
def program() -> str:
    """Return the text of the program."""
    import numpy as np
    from simtbed.engines.cuda.operators import type_name
    from simtbed.engines.cuda.printer import cuda_source
    from simtbed.language.types import Array, Scalar
    from simtbed.runtime.arrays import NewArray
    from simtbed.runtime.request import prepare_request

    from tests.checkers.corpus import PAIRS

    texts, calls, includes = [], [], {"#include <cstdio>", "#include <cstdlib>"}
    for number, pair in enumerate(PAIRS.values()):
        for fixed in (False, True):
            own = f"twin{2 * number + fixed}"
            request = prepare_request(pair.kernel, args={**pair.args, "FIXED": fixed}, **pair.shape)
            source = cuda_source(request.program, request.block, cluster=request.cluster)
            lines = source.text.splitlines()
            includes |= {line for line in lines if line.startswith("#include")}
            text = "\n".join(line for line in lines if not line.startswith("#include"))
            plain = text.replace('extern "C" ', "")
            texts.append(f"namespace {own} {{\n{plain}\n")
            body, arguments = [], []
            for name in source.arguments:
                type = next(p.type for p in request.program.kernel.params if p.name == name)
                value = np.asarray(request.arguments[name])
                if isinstance(type, Array):
                    words = np.frombuffer(value.tobytes() + bytes(-value.nbytes % 4), np.uint32)
                    new = pair.args[name]
                    filled = not isinstance(new, NewArray) or new.readable
                    data = ", ".join(map(str, words)) if filled else "0"
                    body.append(f"static const unsigned {name}_data[] = {{{data}}};")
                    kind = type_name(type.element)
                    copied = "true" if filled else "false"
                    body.append(f"auto {name} = ({kind}*)buffer({name}_data, {value.nbytes}, {copied});")
                    arguments.append(name)
                else:
                    assert isinstance(type, Scalar)
                    arguments.append(str(value))
            arguments += [str(len(np.asarray(request.arguments[name]))) for name in source.lengths]
            if source.cooperative:
                body += COOPERATIVE.format(pair=pair).splitlines()
                body.append(f"cudaLaunchKernelEx(&how, {', '.join([source.kernel, *arguments])});")
            else:
                body.append(f"{source.kernel}<<<{pair.grid}, {pair.block}, {pair.shared}>>>({', '.join(arguments)});")
            texts.append("void launch() {\n    " + "\n    ".join(body) + "\n    finish();\n}\n}\n")
            calls.append(f"{own}::launch")
    head = "\n".join(sorted(includes))
    table = ", ".join(calls)
    return f"{head}\n{_HELPERS}\n" + "\n".join(texts) + f"\nvoid (*twins[])() = {{{table}}};\n{_MAIN}"


_HELPERS = """
static void* buffer(const void* data, size_t size, bool filled) {
    void* there = nullptr;
    cudaMalloc(&there, size);
    if (filled) cudaMemcpy(there, data, size, cudaMemcpyHostToDevice);
    return there;
}
static void finish() {
    cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) printf("error: %s\\n", cudaGetErrorString(error));
}
"""
_MAIN = """
int main(int count, char** words) {
    for (int i = 1; i < count; i++) {
        printf("twin %s\\n", words[i]);
        twins[atoi(words[i])]();
    }
}
"""


# ------------------------------------------------------------------ the table
def run(binary: Path, names: list[list[str]]) -> dict[str, Any]:
    """Return the shortened reports of each tool on each twin. names: name and kind of fault of each pair."""
    jobs = [
        (tool, 2 * number + fixed)
        for number, (_, kind) in enumerate(names)
        if kind != ENDLESS
        for fixed in (0, 1)
        for tool in TOOLS
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        reports = dict(zip(jobs, pool.map(lambda job: _reports(binary, *job), jobs), strict=True))
    table: dict[str, Any] = {}
    for number, (name, kind) in enumerate(names):
        row: dict[str, Any] = {"kind": kind}
        for fixed, twin in enumerate(("mistake", "mended")):
            row[twin] = "not run" if kind == ENDLESS else {t: r for t in TOOLS if (r := reports[t, 2 * number + fixed])}
        table[name] = row
    version = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True).stdout
    return {"compute-sanitizer": version.strip().splitlines()[-1], "pairs": table}


COOPERATIVE = """\
cudaLaunchAttribute wish;
wish.id = cudaLaunchAttributeCooperative;
wish.val.cooperative = 1;
cudaLaunchConfig_t how = {{}};
how.gridDim = {pair.grid};
how.blockDim = {pair.block};
how.dynamicSmemBytes = {pair.shared};
how.attrs = &wish;
how.numAttrs = 1;
"""
"""The configuration of a launch whose blocks wait for the grid."""


def _reports(binary: Path, tool: str, twin: int) -> list[str]:
    command = ["timeout", str(SECONDS), "compute-sanitizer", *TOOLS[tool], str(binary.resolve()), str(twin)]
    process = subprocess.run(command, capture_output=True, text=True)
    reports = list(dict.fromkeys(_report_heads(process.stdout)))
    return [*reports, f"ended after {SECONDS} s"] if process.returncode == 124 else reports


def _report_heads(text: str) -> Iterator[str]:
    """Yield the first words of each report."""
    for line in text.splitlines():
        match = re.match(r"=+ (Error: |Warning: |Invalid |Uninitialized |Barrier |Divergent |Race )(.*)", line)
        if match and "No attached" not in line:
            yield re.sub(r"0x[0-9a-f]+", "0x..", (match[1] + match[2]).strip())[:110]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    words = parser.add_subparsers(dest="word", required=True)
    printing, running = words.add_parser("print"), words.add_parser("run")
    printing.add_argument("target", type=Path)
    running.add_argument("binary", type=Path)
    running.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if options.word == "print":
        from tests.checkers.corpus import PAIRS

        options.target.write_text(program(), encoding="utf-8")
        names = [[pair.name, pair.fault] for pair in PAIRS.values()]
        options.target.with_suffix(".json").write_text(json.dumps(names), encoding="utf-8")
        return
    names = json.loads(options.binary.with_suffix(".json").read_text())
    options.out.write_text(json.dumps(run(options.binary, names), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
