"""The printed kernel of every case compiles with nvcc."""

from pathlib import Path

from simtbed.reports.hardware.recording import RecordingLauncher

from tests.compilers import needs_nvcc
from tests.language.test_cuda_source import compile_all
from tests.validation.cases import EXAMPLES, cases


@needs_nvcc
def test_nvcc_compiles_every_printed_kernel(tmp_path: Path) -> None:
    recording = RecordingLauncher("jit")
    for case in cases():
        case.run(recording)
    assert len(recording.kernels) > len(EXAMPLES)
    compile_all([launched.source for launched in recording.kernels], tmp_path)
