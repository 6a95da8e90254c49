"""From file to file: memory of a launch; sizes of batches and launches do not change the answer."""

import pickle
from functools import partial
from io import BytesIO
from typing import Any

import pytest
from simtbed import launch
from simtbed.kernels import FunctionLauncher
from simtbed.kernels.alignment.host.files import table
from simtbed.kernels.alignment.host.generate import generate
from simtbed.kernels.alignment.host.pipeline import ReusedMemory
from simtbed.kernels.alignment.host.pipeline_files import How, align_file
from simtbed.kernels.alignment.host.problem import Parameters, Strategy

from tests.kernels.recorder import Recorder

PAIRS = generate(3, 400, (5, 60), (10, 80))


def _options(memory: int, gpus: int = 0) -> How:
    return How("packed", Parameters(200, -150, -260, -11), Strategy.SOFTCLIP, "tsv", gpus, memory)


def _aligned(options: How) -> tuple[bytes, list[Any]]:
    """Return the answer, and the array of moves of each launch of stage 1."""
    recorder, to = Recorder(partial(launch, counters=False)), BytesIO()
    align_file([PAIRS], to, options, recorder)
    launches = zip(recorder.kernels, recorder.options, strict=True)
    return to.getvalue(), [how["args"]["moves"] for kernel, how in launches if kernel == "packed"]


def test_moves_of_a_launch_are_bounded_and_allocated_once() -> None:
    whole, few = _aligned(_options(4 << 30))
    cut, many = _aligned(_options(4 << 20))
    assert cut == whole
    assert len(many) > len(few)
    for launches, memory in ((few, 4 << 30), (many, 4 << 20)):
        assert len({id(array) for array in launches}) == 1
        assert 4 * len(launches[0].host) == memory // 64


def test_a_gpu_is_given_what_a_batch_needs_at_once() -> None:
    how = _options(4 << 30, gpus=1)
    assert how.words_at_once == how.words == (4 << 30) // 8
    assert how.cells == (4 << 30) // 2


def test_another_process_has_memory_of_its_own() -> None:
    allocation = ReusedMemory(100)
    array = allocation(1)
    unpickled = pickle.loads(pickle.dumps(allocation))(1)
    assert unpickled is not array
    assert len(array.host) == len(unpickled.host) == 100


@pytest.mark.slow
def test_sizes_of_batches_change_nothing(tmp_path: Any) -> None:
    path = tmp_path / "pairs"
    path.write_text("".join(f"{r.tobytes().decode()}\t{a.tobytes().decode()}\n" for r, a in PAIRS.pairs()))
    answers = []
    for cells in (1, 20_000, 1 << 30):
        to = BytesIO()
        align_file(table(path, cells), to, _options(1 << 30), FunctionLauncher(launch))
        answers.append(to.getvalue())
    assert answers[0] == answers[1] == answers[2]
