"""Files of upstream's Proton are read with the right sums."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgpack
import pytest

from proton_bench.formats.registry import find_format, read_profile
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation

UPSTREAM = Path(__file__).parents[2] / "data" / "upstream"
FILES = sorted(UPSTREAM.glob("*.hatchet"))


def totals(node: dict[str, Any]) -> dict[str, float]:
    found = {k: v for k, v in node["metrics"].items() if isinstance(v, int | float)}
    for child in node["children"]:
        for name, value in totals(child).items():
            found[name] = found.get(name, 0) + value
    return found


def names(node: dict[str, Any]) -> list[str]:
    return [node["frame"]["name"], *(name for child in node["children"] for name in names(child))]


def test_upstream_files_are_there() -> None:
    assert len(FILES) == 7


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_rows_and_sums_are_those_of_the_file(path: Path) -> None:
    tree, _ = json.loads(path.read_text())

    profile = read_profile(path)

    profile.self_check()
    assert [profile.name(row) for row in range(len(profile))] == names(tree)
    for metric, total in totals(tree).items():
        # The one metric that upstream spells in another way.
        column = profile.column(metric.replace("not_Selected", "not_selected"))
        assert column.values[column.valid].sum() == pytest.approx(total)
        # Scopes inside kernels nest, and 3.6.0 hints at none of their sums.
        is_nested = metric.endswith("cycles")
        meant = Aggregation.EXCLUSIVE if is_nested else Aggregation.INCLUSIVE
        assert column.spec.aggregation is meant


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if not path.stem.startswith("intra")],
    ids=lambda path: path.stem,
)
def test_upstream_files_are_written_again_byte_by_byte(path: Path) -> None:
    assert find_format("hatchet").encode(read_profile(path)) == path.read_bytes()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_msgpack_form_is_read_by_others(path: Path) -> None:
    profile = read_profile(path)

    tree, _ = msgpack.unpackb(
        find_format("hatchet_msgpack").encode(profile), raw=False, strict_map_key=False
    )

    assert list(tree) == ["frame", "metrics", "children"]
    assert names(tree) == names(json.loads(path.read_text())[0])


def test_devices_are_read_with_their_facts() -> None:
    profile = read_profile(UPSTREAM / "tinymeta-hook.hatchet")

    gpu = Device("CUDA", 0, "90", 132, 1980000, 3201000, 6016)
    assert profile.devices == (gpu,)
    assert [profile.device(row) for row in range(4)] == [None, None, None, gpu]
    assert profile.kind(3) is FrameKind.KERNEL
    assert set(profile.columns) == {"bytes", "count", "flops32", "time (ns)"}


def test_numbered_device_types_are_named() -> None:
    profile = read_profile(UPSTREAM / "intra-default-tree.hatchet")

    assert {device.kind for device in profile.devices} == {"CUDA"}


def test_python_frames_and_kernels_are_distinguished() -> None:
    profile = read_profile(UPSTREAM / "eager-python.hatchet")

    kinds = {profile.kind(row) for row in range(len(profile))}

    assert kinds >= {FrameKind.ROOT, FrameKind.PYTHON, FrameKind.KERNEL}


def test_newer_files_without_hints_for_user_metrics_are_inclusive() -> None:
    tree = {
        "children": [
            {
                "children": [],
                "frame": {"name": "k", "type": "function"},
                "metrics": {"count": 1, "flops8": 2.0, "device_id": "1", "device_type": "HIP"},
            }
        ],
        "frame": {"name": "ROOT", "type": "function"},
        "metrics": {"count": 0},
    }

    profile = find_format("hatchet").decode(json.dumps([tree, {}]).encode(), "x")

    assert profile.inclusive("flops8").tolist() == [2.0, 2.0]
    assert profile.devices == (Device("HIP", 1),)


def test_files_without_device_map_are_read() -> None:
    tree = {"children": [], "frame": {"name": "ROOT"}, "metrics": {"time (ns)": 0}}

    profile = find_format("hatchet").decode(json.dumps([tree]).encode(), "x")

    assert profile.inclusive("time (ns)").tolist() == [0]
    assert profile.column("time (ns)").to_list() == [None]
