from __future__ import annotations

from typing import Any

import pytest

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.hatchet.tree import device_map, device_rows, device_table
from proton_bench.model.device import Device

GPU = Device("CUDA", 1, "90", 132, 1980000, 2619000, 6144)
FACTS = {
    "arch": "90",
    "bus_width": 6144,
    "clock_rate": 1980000,
    "memory_clock_rate": 2619000,
    "num_sms": 132,
}


def test_map_comes_back() -> None:
    assert device_map([Device("HIP", 0), GPU])["CUDA"] == {"1": FACTS}
    assert device_table({"CUDA": {"1": FACTS}}, "x") == {("CUDA", 1): GPU}


@pytest.mark.parametrize(
    "devices",
    [
        {"CUDA": 3},
        {"CUDA": {"one": FACTS}},
        {"CUDA": {"-1": FACTS}},
        {"CUDA": {"1": []}},
        {"CUDA": {"1": {"num_sms": "many"}}},
        {"CUDA": {"1": {"num_sms": -1}}},
        {"CUDA": {"1": {"num_sms": 2**80}}},
    ],
)
def test_other_maps_are_refused(devices: dict[str, Any]) -> None:
    with pytest.raises(ProfileFormatError, match="x: "):
        device_table(devices, "x")


def test_rows_find_their_device() -> None:
    cells: dict[str, Any] = {
        "device_id": ([1, 2, 3, 4, 5], ["1", "0", 7, "x", "0"]),
        "device_type": ([1, 2, 3, 4], ["CUDA", "1", "2", "CUDA"]),
        "count": ([1], [1]),
    }
    known = {("CUDA", 1): GPU}

    rows = device_rows(cells, known, total=6)

    assert rows.tolist() == [-1, 0, 1, 2, -1, -1]
    assert list(known.values()) == [GPU, Device("CUDA", 0), Device("HIP", 7)]
    assert list(cells) == ["count"]
