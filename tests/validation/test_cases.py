"""The printed kernel of every case compiles with nvcc."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from simtbed.engines.cuda import nvcc
from simtbed.reports.hardware.recording import RecordingLauncher

from tests.compilers import needs_nvcc
from tests.validation.cases import EXAMPLES, cases


@needs_nvcc
def test_nvcc_compiles_every_printed_kernel(tmp_path: Path) -> None:
    """Each kernel is in its own namespace of one file: the start of nvcc needs half a second."""
    recording = RecordingLauncher("jit")
    for case in cases():
        case.run(recording)
    texts = [launched.source.text for launched in recording.kernels]
    assert len(texts) > len(EXAMPLES)
    includes = {line: None for text in texts for line in text.splitlines() if line.startswith("#include")}
    bodies = [re.sub('^#include.*|extern "C" ', "", text, flags=re.MULTILINE) for text in texts]
    spaces = [f"namespace kernel_{number} {{\n{body}\n}}" for number, body in enumerate(bodies)]
    (tmp_path / "all.cu").write_text("\n".join((*includes, *spaces)), encoding="utf-8")
    command = [str(nvcc.find_nvcc()), "--gpu-architecture=sm_90", "--cubin", *nvcc.OPTIONS, "all.cu"]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
