"""SASS in nvdisasm's format: instructions with their places."""

import stat
from pathlib import Path

import pytest
from simtbed import LaunchError
from simtbed.engines.cuda import nvcc, sass
from simtbed.engines.cuda.sass import disassemble, parse

from tests.hardware.listing import instructions, listing

LOOP = """
    1 | S2R R0, SR_TID.X
    2 | ISETP.GE.AND P0, PT, R0, 0x4, PT
      | @P0 BRA `(.L_x_1)
    .L_x_2:
    3 | LDG.E R2, desc[UR4][R2.64+0x80]
      | IADD3 R0, R0, 0x1, RZ
      | @!P0 BRA `(.L_x_2)
    .L_x_1:
    2 | BSYNC B0
    4 | EXIT
    .L_x_3:
      | BRA `(.L_x_3)
"""


def test_labels_become_offsets_and_lines_last_until_the_next() -> None:
    code = instructions(LOOP)
    assert [i.offset for i in code] == [16 * n for n in range(9)]
    assert code[2].text == "@P0 BRA 0x60"
    assert (code[2].predicate, code[2].operation, code[2].opcode) == ("@P0", "BRA", "BRA")
    assert [i.text for i in code if "BRA" in i.text] == ["@P0 BRA 0x60", "@!P0 BRA 0x30", "BRA 0x80"]
    assert (code[3].operation, code[3].opcode) == ("LDG.E", "LDG")
    assert [i.places[0][1] for i in code] == [1, 2, 2, 3, 3, 3, 2, 4, 4]


def test_inlined_places_are_innermost_first() -> None:
    text = listing("kernel", "7 | SHFL.UP PT, R1, R2, 0x1, 0x1c00").replace(
        "\t//## File",
        '\t//## File "/cuda/include/sm_30_intrinsics.hpp", line 385 inlined at "/some/where/source.py", line 7\n\t//## File',
    )
    (instruction,) = parse(text, "kernel")
    assert instruction.places == (("/cuda/include/sm_30_intrinsics.hpp", 385), ("/some/where/source.py", 7))


def test_a_label_of_another_section_is_no_target() -> None:
    call, _ = instructions("1 | CALL.ABS.NOINC `(vprintf)\n 1 | EXIT")
    assert call.text == "CALL.ABS.NOINC `(vprintf)"


def test_without_nvdisasm_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvcc, "find_tool", lambda name: None)
    with pytest.raises(LaunchError, match=r'nvdisasm is not found: .*pip install "simtbed\[sass\]"'):
        disassemble(b"", "kernel")


def _tool(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_code_is_disassembled_once_by_each_nvdisasm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMTBED_CACHE", str(tmp_path / "cache"))
    (tmp_path / "listing").write_text(listing("kernel", "1 | EXIT"))
    log = tmp_path / "calls"
    tool = _tool(tmp_path / "tool", f"echo call >>{log}; cat {tmp_path / 'listing'}")
    monkeypatch.setattr(nvcc, "find_tool", lambda name: tool)

    def times() -> int:
        sass._disassembled.cache_clear()
        assert [i.text for i in disassemble(b"1", "kernel")] == ["EXIT"]
        return len(log.read_text().splitlines())

    assert [times(), times()] == [1, 1]
    _tool(tool, f"echo call >>{log}; echo >>{log}; cat {tmp_path / 'listing'}")
    assert times() == 3


def test_output_and_errors_of_nvdisasm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "listing").write_text(listing("kernel", "1 | EXIT"))
    good = _tool(tmp_path / "good", f"cat {tmp_path / 'listing'}")
    monkeypatch.setattr(nvcc, "find_tool", lambda name: good)
    assert [i.text for i in disassemble(b"1", "kernel")] == ["EXIT"]
    bad = _tool(tmp_path / "bad", "echo not a cubin >&2; exit 1")
    monkeypatch.setattr(nvcc, "find_tool", lambda name: bad)
    with pytest.raises(LaunchError, match="does not read the cubin of kernel\nnot a cubin"):
        disassemble(b"2", "kernel")
