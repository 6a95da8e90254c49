"""What a process may take of the machine's memory, and the default of `--max-memory` that is made of it."""

from pathlib import Path

import pytest
from simtbed.kernels.files import inputs
from simtbed.runtime import memory

GIB = 1 << 30
VERSION_2, VERSION_1 = "0::/jobs/7", "3:cpu:/x\n4:cpuset,memory:/docker/ab"


@pytest.mark.parametrize(
    ("groups", "files", "least"),
    [
        (VERSION_2, {"jobs/7/memory.max": 2 * GIB}, 2 * GIB),
        (VERSION_2, {"jobs/7/memory.max": "max", "jobs/memory.max": 3 * GIB}, 3 * GIB),
        (VERSION_2, {"memory.max": GIB}, GIB),  # a container that sees its own group as the root
        (VERSION_2, {}, 8 * GIB),
        (VERSION_1, {"memory/docker/ab/memory.limit_in_bytes": GIB, "docker/ab/memory.max": 1}, GIB),
        (VERSION_1, {"memory/memory.limit_in_bytes": 2 * GIB}, 2 * GIB),
        ("", {"memory.max": 1}, 8 * GIB),
    ],
)
def test_control_groups_count(
    groups: str, files: dict[str, object], least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cgroup").write_text(groups)
    for name, value in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{value}\n")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "MOUNTED", tmp_path)
    monkeypatch.setattr(memory, "memory_of_machine", lambda: 8 * GIB)
    assert memory.memory_of_process() == least


@pytest.mark.parametrize(
    ("of_process", "default"),
    [(23 * GIB + 5, 23 * GIB // 2), (GIB + 12345, GIB // 2), (1 << 20, 1 << 26), (memory.UNLIMITED, 4 * GIB)],
)
def test_the_default_is_half(of_process: int, default: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "memory_of_process", lambda: of_process)
    assert inputs._half_of_memory() == default
