"""Devices: found by name, loaded from TOML, refused outside the range of the counting rules."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from simtbed.errors import LaunchError
from simtbed.machine.device import DEVICES, H200, K40, V100, Device, find, load


def toml(device: Device) -> str:
    """The device as a user would write it."""

    def value(v: object) -> str:
        if isinstance(v, bool):
            return str(v).lower()
        return str(list(v)) if isinstance(v, tuple) else f'"{v}"' if isinstance(v, str) else str(v)

    table = asdict(device)
    inner = {name: table.pop(name) for name in ("rates", "timing")}
    lines = [f"{k} = {value(v)}" for k, v in table.items()]
    for name, rows in inner.items():
        lines += [f"[{name}]", *(f"{k} = {value(v)}" for k, v in rows.items())]
    return "\n".join(lines)


def test_the_devices_of_the_papers_and_current_ones_are_known() -> None:
    names = "C2070 M2090 K20m K40 V100 T4 A100 A10 RTX3090 L4 L40S RTX4090 H100 H200 B200"
    assert list(DEVICES) == names.split()
    assert all(device.name == name and device.source and device.dated for name, device in DEVICES.items())


def test_names_are_found_in_any_spelling() -> None:
    assert find("h200") is H200
    assert find("RTX 3090") is find("rtx-3090") is DEVICES["RTX3090"]
    assert find("k20M") is DEVICES["K20m"]


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(LaunchError, match=r"no device is called 'B300'; there are C2070, M2090, .*H200"):
        find("B300")


def test_only_old_warps_run_in_lockstep() -> None:
    assert [name for name, device in DEVICES.items() if device.warp_synchronous] == ["C2070", "M2090", "K20m", "K40"]


@pytest.mark.parametrize("device", DEVICES.values(), ids=list(DEVICES))
def test_limits_fit_each_other(device: Device) -> None:
    assert device.threads_per_sm == 32 * device.warps_per_sm
    assert device.shared_per_block <= device.shared_per_block_optin <= device.shared_per_sm - device.shared_reserved
    assert device.registers_per_block <= device.registers_per_sm
    assert device.shared_carveouts == tuple(sorted(device.shared_carveouts))
    assert device.shared_carveouts[-1] == device.shared_per_sm
    # The peak of the data sheets in TFLOPS of f32, within their rounding and clocks.
    printed = {
        "C2070": 1.03, "M2090": 1.33, "K20m": 3.52, "K40": 5.04, "V100": 15.7, "T4": 8.1, "A100": 19.5, "A10": 31.2,
        "RTX3090": 35.6, "L4": 30.3, "L40S": 91.6, "RTX4090": 82.6, "H100": 66.9, "H200": 66.9, "B200": 75,
    }[device.name]  # fmt: skip
    assert 2e-6 * device.rates.fp32 * device.sms * device.clock == pytest.approx(printed, rel=0.01)


@pytest.mark.parametrize("device", DEVICES.values(), ids=list(DEVICES))
def test_a_device_survives_toml(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(toml(device))
    assert load(path) == device


FAULTS: list[tuple[str, Callable[[str], str], str]] = [
    ("missing", lambda t: t.replace("sms = 132\n", ""), "sms: missing; expected a whole number of at least 1"),
    ("unknown", lambda t: "cores = 4\n" + t, "cores: no such key; expected name, compute_capability"),
    ("type", lambda t: t.replace("sms = 132", 'sms = "132"'), "sms: expected a whole number of at least 1, got '132'"),
    ("bool", lambda t: t.replace("sms = 132", "sms = true"), "sms: expected a whole number of at least 1, got True"),
    ("zero", lambda t: t.replace("sms = 132", "sms = 0"), "sms: expected a whole number of at least 1, got 0"),
    (
        "pair",
        lambda t: t.replace("[9, 0]", "[9]"),
        "compute_capability: expected two whole numbers, such as [9, 0], got",
    ),
    ("number", lambda t: t.replace("4800.0", "-1.0"), "bandwidth: expected a number above 0, got -1.0"),
    ("rate", lambda t: t.replace("sfu = 16", "sfu = 1.5"), "rates.sfu: expected a whole number, got 1.5"),
    ("rates", lambda t: t.replace("[rates]\nalu = 64", "[rates]"), "rates.alu: missing; expected a whole number"),
    ("power", lambda t: t.replace("banks = 32", "banks = 20"), "banks: expected a power of two of 4 to 1,024, got 20"),
    ("syntax", lambda t: "sms =\n" + t, "expected a TOML file: "),
]


@pytest.mark.parametrize(("change", "message"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_faults_of_a_file_are_one_line_with_its_name(
    change: Callable[[str], str], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.toml"
    good = toml(H200)
    path.write_text(change(good))
    assert change(good) != good
    with pytest.raises(LaunchError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=r"none\.toml: No such file"):
        load(tmp_path / "none.toml")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LaunchError, match="expected a TOML file"):
        load(path)


def test_a_device_may_be_like_another(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('like = "h200"\nname = "half"\nsms = 66\n[rates]\nsfu = 8\n')
    half = load(path)
    assert half == replace(H200, name="half", sms=66, rates=replace(H200.rates, sfu=8), source=half.source)
    assert half.source.startswith("as H200: compute_capability (9, 0), warps_per_sm 64, blocks_per_sm 32,")
    assert half.source.endswith("l2 62914560, timing")
    path.write_text('like = "B300"\n')
    with pytest.raises(LaunchError, match="no device is called 'B300'"):
        load(path)
    path.write_text("like = 3\n")
    with pytest.raises(LaunchError, match=r"mine\.toml: like: expected the name of a device, got 3"):
        load(path)


def test_what_if() -> None:
    assert replace(H200, banks=16).banks == 16
    with pytest.raises(LaunchError, match="device H200: sector: expected a power of two of 16 to 65,536, got 48"):
        replace(H200, sector=48)
    with pytest.raises(LaunchError, match="device V100: line: expected at least the sector's bytes, got 16"):
        replace(V100, line=16)


def test_rows_differ_where_the_devices_do() -> None:
    assert (K40.bank_width, K40.loads_cached, K40.shared_load_merges) == (8, False, False)
    assert DEVICES["C2070"].load_sector == DEVICES["C2070"].line == 128
    residents = {
        name: (DEVICES[name].warps_per_sm, DEVICES[name].blocks_per_sm) for name in ("T4", "A10", "L4", "B200")
    }
    assert residents == {"T4": (32, 16), "A10": (48, 16), "L4": (48, 24), "B200": (64, 32)}
