"""A GPU returns the bits of the emulator."""

import numpy as np
import pytest
import simtbed as st
from simtbed import DeviceArray, Global, i32, launch, map_over_gpus, on_gpu
from simtbed.engines.cuda.driver import pycuda_driver
from simtbed.engines.cuda.engine import CudaEngine
from simtbed.engines.numpy.engine import NumpyEngine
from simtbed.ir.op import BITS, VALUE
from simtbed.kernels import FAMILIES
from simtbed.reports.hardware.answers import ROUNDING, AnswerLauncher, answers_of, operation_answers
from simtbed.reports.hardware.cases import OperationCase
from simtbed.reports.launchers import ConcurrentRunner
from simtbed.testing.conformance import FEATURES, Feature
from simtbed.testing.conformance.device_arrays import sequence

from tests.cuda_cpp.habits import HABITS
from tests.validation.cases import feature_case, operations

pytestmark = pytest.mark.usefixtures("gpu")


def count_gpus() -> int:
    """Return the number of usable CUDA devices."""
    return int(pycuda_driver().Device.count())


@st.kernel
def counted(total: Global[i32]) -> None:
    """Add the number of threads of the launch to total[0]."""
    st.atomic_add(total, 0, 1)


@pytest.mark.parametrize("name", HABITS)
def test_a_users_text(name: str) -> None:
    """nvcc compiles the text itself; without mathematical functions the bits are those of the emulator."""
    habit = HABITS[name]
    how = {"grid": habit.grid, "block": habit.block, "shared": habit.shared, "cooperative": habit.cooperative}
    results = []
    for engine in ("jit", "cuda"):
        source = st.cuda_source(habit.text, ("--expt-relaxed-constexpr",), habit.instances)  # its variables are new
        kernel = source[habit.kernel or next(iter(source))]
        results.append(launch(kernel, args=habit.args(np.random.default_rng(1)), engine=engine, **how))
    emulated, compiled = results
    for array, expected in emulated.buffers.items():
        for field in expected.dtype.names or [...]:
            np.testing.assert_allclose(compiled.buffers[array][field], expected[field], rtol=habit.rtol)


@pytest.mark.parametrize("feature", FEATURES, ids=lambda f: f.name)
def test_feature(feature: Feature) -> None:
    case = feature_case(feature)
    assert answers_of(case, "cuda").entry() == answers_of(case, "numpy").entry()


@pytest.mark.parametrize("case", list(operations()), ids=lambda case: case.name)
def test_ops(case: OperationCase) -> None:
    gpu, emulated = (operation_answers(case, engine)["rows"] for engine in (CudaEngine(), NumpyEngine()))
    for row in case.rows:
        if row.policy_for(case.type).name == "bits":
            assert gpu[row.name] == emulated[row.name], row.name
        else:
            assert gpu[row.name]["ulp"] <= row.policy_for(case.type).ulp, row.name


@pytest.mark.parametrize("case", list(operations()), ids=lambda case: case.name)
def test_portable_mathematics(case: OperationCase) -> None:
    request, operands = case.prepare()
    gpu = CudaEngine().run(request)
    for row in case.rows:
        with np.errstate(all="ignore"):
            expected = row.meaning(*operands)
        policy = VALUE if row.policy is VALUE else BITS
        compared = case.comparable(row, operands)
        assert policy.agree(gpu.buffers[f"out_{row.name}"][compared], expected[compared]).all(), row.name


@pytest.mark.parametrize(("family", "variant"), [(f.name, v) for f in FAMILIES.values() for v in f.variants])
def test_variant(family: str, variant: str) -> None:
    chosen = FAMILIES[family]
    recorders = [AnswerLauncher("cuda"), AnswerLauncher("numpy")]
    for recorder in recorders:
        chosen.solve(chosen.example(), variant, recorder)
    assert recorders[0].entry() == recorders[1].entry()
    assert recorders[0].rounding(recorders[1]) <= ROUNDING


def test_repeated_timing() -> None:
    request = launch(FEATURES[0].kernel, grid=3, block=40, args=FEATURES[0].args).request
    assert len(CudaEngine().time(request, 3)) == 3


def test_arrays_on_the_device() -> None:
    intermediate, pairs, answers = sequence("cuda")
    assert answers == sequence("numpy")[2]
    assert intermediate.remote and pairs.remote


def test_concurrent_launches_share_arrays_on_the_device() -> None:
    """The kernels of `wavefront` read common lists and write common sums."""
    family = FAMILIES["pairhmm"]
    expected = family.solve(family.example(), "wavefront", AnswerLauncher("jit"))
    assert family.solve(family.example(), "wavefront", ConcurrentRunner("cuda")).tobytes() == expected.tobytes()


def test_work_is_shared_by_all_gpus() -> None:
    """Arrays on the device move with the launches, and every GPU gives the same bits."""
    if count_gpus() < 2:
        pytest.skip("one GPU is there")
    total, first = DeviceArray(np.zeros(4, np.int32)), feature_case(FEATURES[0])
    for number in range(count_gpus()):
        with on_gpu(number):
            launch(counted, grid=1, block=32, args={"total": total}, engine="cuda")
            assert answers_of(first, "cuda").entry() == answers_of(first, "numpy").entry()
    assert total.numpy().tolist() == [32 * count_gpus(), 0, 0, 0]
    family = FAMILIES["pairhmm"]
    problems = [family.example()] * (3 * count_gpus())
    shared = map_over_gpus(
        problems, lambda problem: family.solve(problem, "wavefront-loaded", AnswerLauncher("cuda")), count_gpus()
    )
    expected = family.solve(problems[0], "wavefront-loaded", AnswerLauncher("jit"))
    for _, answer in shared:
        assert answer.tobytes() == expected.tobytes()
