"""Work shared by several GPUs: every piece once, answers in order, errors in order."""

import threading
from collections.abc import Iterator

import pytest
from simtbed import map_over_gpus, on_gpu
from simtbed.runtime.gpus import current_gpu


def test_the_gpu_of_a_thread() -> None:
    assert current_gpu() == 0
    with on_gpu(2):
        assert current_gpu() == 2
        with on_gpu(1):
            assert current_gpu() == 1
        assert current_gpu() == 2
    assert current_gpu() == 0


@pytest.mark.parametrize("gpus", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 17])
def test_answers_have_the_order_of_the_pieces(gpus: int, count: int) -> None:
    actual = list(map_over_gpus(range(count), lambda n: n * n, gpus))
    assert actual == [(n, n * n) for n in range(count)]


def test_every_gpu_has_a_thread_of_its_own() -> None:
    """Each of three waits for the others: with fewer threads none would ever be done."""
    together = threading.Barrier(3, timeout=60)

    def solve(piece: int) -> tuple[int, int]:
        together.wait()
        return current_gpu(), threading.get_ident()

    answers = [answer for _, answer in map_over_gpus(range(6), solve, 3)]
    assert {gpu for gpu, _ in answers} == {0, 1, 2}
    assert len(set(answers)) == 3
    assert current_gpu() == 0


def test_submitted_pieces_are_bounded() -> None:
    started = 0

    def pieces() -> Iterator[int]:
        nonlocal started
        for n in range(100):
            started += 1
            yield n

    answers = map_over_gpus(pieces(), lambda n: n, 2)
    for n in range(10):
        assert next(answers) == (n, n)
        assert started <= n + 4


def test_the_first_error_is_raised_and_the_rest_left() -> None:
    launched = []

    def solve(piece: int) -> int:
        launched.append(piece)
        if piece >= 3:
            raise ValueError(f"piece {piece}")
        return piece

    answers = map_over_gpus(range(1000), solve, 2)
    assert [next(answers) for _ in range(3)] == [(n, n) for n in range(3)]
    with pytest.raises(ValueError, match="piece 3"):
        next(answers)
    assert len(launched) <= 8
