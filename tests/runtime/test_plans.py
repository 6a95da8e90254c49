"""Launch plans: a repeated launch is validated by its plan, and everything that a launch may refuse is refused again."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import simtbed as st
from simtbed import Const, DeviceArray, Global, LaunchError, f32, i32, launch
from simtbed.runtime import plans, request

FACTOR = 2


@st.kernel
def scaled(x: Global[f32], out: Global[f32], n: i32, STEP: Const = 1) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        out[i] = x[i * STEP] * FACTOR


def arguments(count: int = 64) -> dict[str, Any]:
    return {"x": np.arange(count, dtype=np.float32), "out": np.zeros(count, np.float32), "n": count}


def run(args: dict[str, Any], **options: Any) -> st.Result:
    return launch(scaled, **{"grid": 1, "block": 64, **options}, args=args)


@pytest.fixture
def validations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The complete validations of launches."""
    vars(scaled).pop("_facts", None)
    complete: list[str] = []
    original = request.unlimited_request

    def noted(kernel: Any, *rest: Any) -> Any:
        complete.append(kernel.__name__)
        return original(kernel, *rest)

    monkeypatch.setattr(plans, "unlimited_request", noted)
    return complete


@pytest.mark.parametrize("engine", ["jit", "numpy", "python"])
def test_a_repeated_launch_is_not_validated_again(engine: Any, validations: list[str]) -> None:
    for factor in (1, 3):
        args = arguments()
        args["x"] *= factor
        result = run(args, engine=engine)
        assert result.out.tolist() == [2.0 * factor * n for n in range(64)]
        assert not args["out"].any()
    assert validations == ["scaled"]
    assert run(arguments(), engine=engine, check="bounds").out[1] == 2
    assert run({**arguments(), "STEP": 1}, engine=engine).out[1] == 2
    assert len(validations) == 2


def test_a_repeated_launch_takes_the_short_path(monkeypatch: pytest.MonkeyPatch) -> None:
    run(arguments())
    monkeypatch.setattr(plans, "named_arguments", lambda *_: pytest.fail("the arguments are converted again"))
    assert run(arguments()).out[1] == 2


def test_counters_of_a_repeated_launch_are_its_own() -> None:
    first, second = run(arguments()), run(arguments())
    other = run({**arguments(), "n": 3})
    assert first.counts is not None and second.counts is not None and other.counts is not None
    assert np.array_equal(first.counts, second.counts)
    assert not np.array_equal(first.counts, other.counts)


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "type": ({"x": np.zeros(64)}, {}, "x is Global\\[f32\\]"),
    "value": ({"n": 1 << 31}, {}, "n is i32, which holds"),
    "kind of value": ({"n": 64.0}, {}, "n is i32: a whole number is expected"),
    "a bool is no number": ({"n": True}, {}, "n is i32: a whole number is expected"),
    "grid": ({}, {"grid": True}, "grid"),
    "grid of a float": ({}, {"grid": (1.0,)}, "is a whole number, not 1.0"),
    "block": ({}, {"block": 1025}, "block is 1,025"),
    "shared": ({}, {"shared": 1 << 30}, "shared is"),
    "name": ({"m": 1}, {}, "no parameter m"),
    "flag": ({}, {"counters": 1}, "counters is True or False"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_launch_refuses_is_refused_after_a_plan_exists(case: str) -> None:
    changed, options, message = REFUSED[case]
    run(arguments())
    with pytest.raises(LaunchError, match=message):
        run({**arguments(), **changed}, **options)


def test_common_memory_is_refused_after_a_plan_exists() -> None:
    memory = np.zeros(128, np.float32)
    run({"x": memory[:64], "out": memory[64:], "n": 64})
    with pytest.raises(LaunchError, match="x and out share memory"):
        run({"x": memory[:64], "out": memory[32:96], "n": 64})
    a, b = DeviceArray(memory[:64]), DeviceArray(memory[:64])
    for _ in range(2):
        run({"x": a, "out": b, "n": 64})
    with pytest.raises(LaunchError, match="one DeviceArray is given for two parameters"):
        run({"x": a, "out": a, "n": 64})


def test_a_name_with_another_object_makes_a_plan_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(arguments()).out[1] == 2
    monkeypatch.setitem(globals(), "FACTOR", 5)
    assert run(arguments()).out[1] == 5


@pytest.mark.slow
def test_a_plan_keeps_no_arrays_alive() -> None:
    args = arguments()
    reference = weakref.ref(args["x"])
    run(args)
    del args
    gc.collect()
    assert reference() is None


def test_new_arrays_with_other_values_have_other_plans() -> None:
    for value in (0.0, -0.0, 1.5):
        result = run({"x": st.full(64, value, "f32"), "out": st.empty(64, "f32"), "n": 64})
        assert result.out.tobytes() == np.full(64, 2 * value, np.float32).tobytes()


def test_the_oldest_plans_are_discarded(monkeypatch: pytest.MonkeyPatch, validations: list[str]) -> None:
    monkeypatch.setattr(plans, "MAX_PLANS", 2)
    for count in (8, 16, 24, 8, 24):
        assert run(arguments(count)).out[1] == 2
    assert len(validations) == 4  # the first was discarded for the third


def test_structure_of_a_device_array_follows_its_contents() -> None:
    stored = DeviceArray(st.zeros(64, "f32"))
    for factor in (1, 2, 3):
        args = {**arguments(), "out": stored}
        args["x"] = args["x"] * factor
        run(args)
        assert stored.numpy()[1] == 2 * factor


# ------------------------------------------------------------------ compiled launches
@pytest.mark.parametrize("engine", ["jit", "numpy", "python"])
def test_a_compiled_launch_takes_other_arguments(engine: Any, validations: list[str]) -> None:
    step = st.compile(scaled, args=arguments(), grid=1, block=64, engine=engine)
    assert repr(step) == f"<CompiledLaunch of scaled on engine {engine}>"
    x = np.ones(64, np.float32)
    assert step().out[3] == 6
    assert step(x).out[3] == 2
    assert step(x, n=2).out.tolist() == [2, 2, *[0] * 62]
    assert validations == ["scaled"]
    assert step(np.ones(8, np.float32), np.zeros(8, np.float32), 8).out.tolist() == [2] * 8  # validated as a new launch
    assert len(validations) == 2
    with pytest.raises(LaunchError, match="x is Global"):
        step(np.ones(64))
    with pytest.raises(LaunchError, match="scaled takes x, out, n, STEP: 5 are given"):
        step(x, x, 1, 1, 1)


def test_a_compiled_launch_notices_another_object(monkeypatch: pytest.MonkeyPatch) -> None:
    step = st.compile(scaled, args=arguments(), grid=1, block=64)
    assert step().out[1] == step().out[1] == 2
    monkeypatch.setitem(globals(), "FACTOR", 7)
    assert step().out[1] == 7


def test_a_compilation_validates() -> None:
    with pytest.raises(LaunchError, match="block is 1,025"):
        st.compile(scaled, args=arguments(), grid=1, block=1025)
    step = st.compile(scaled, args={**arguments(), "n": 64, "STEP": 3}, grid=1, block=64)
    with pytest.raises(st.FaultError):
        step()
