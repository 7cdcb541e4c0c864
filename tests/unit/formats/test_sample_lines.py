"""Lines of kernels and their samples survive every format, both ways where there are two."""

from __future__ import annotations

import gzip
import json
from typing import Any

import msgpack
import pytest
from fakes.flames import folded_stacks, pprof_stacks, speedscope_stacks
from fakes.profiles import H100, node
from fakes.samples import sampled_profile, samples

from proton_bench.formats.registry import decode_profile, find_format
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

TYPO, NAME = "stalled_not_Selected", "stalled_not_selected"
BOTH_WAYS = ("proton", "hatchet", "hatchet_msgpack", "json")


def again(profile: Profile, name: str) -> Profile:
    form = find_format(name)
    return form.decode(form.encode(profile), f"x{form.suffixes[0]}")


def rows(profile: Profile) -> list[tuple[str, FrameKind]]:
    found = [(profile.name(row), profile.kind(row)) for row in range(len(profile))]
    # Files of upstream do not say what is a scope.
    return [(name, FrameKind.UNKNOWN if kind is FrameKind.SCOPE else kind) for name, kind in found]


@pytest.mark.parametrize("name", BOTH_WAYS)
def test_lines_and_their_metrics_come_back(name: str) -> None:
    profile = sampled_profile()

    found = again(profile, name)

    assert rows(found) == rows(profile)
    assert set(found.columns) == set(profile.columns)
    for metric in profile.columns:
        assert found.column(metric).to_list() == profile.column(metric).to_list()
        assert found.inclusive(metric).tolist() == profile.inclusive(metric).tolist()


@pytest.mark.parametrize("name", BOTH_WAYS)
def test_lines_of_a_kernel_add_up_to_the_kernel(name: str) -> None:
    found = again(sampled_profile(), name)

    kernel = next(row for row in range(len(found)) if found.name(row) == "softmax_kernel")
    lines = list(found.children(kernel))
    assert [found.kind(line) for line in lines] == [FrameKind.LINE] * 3
    for metric in ("num_samples", "num_stalled_samples", "stalled_wait", NAME):
        own = found.column(metric).values
        assert found.inclusive(metric)[kernel] == own[kernel] + sum(own[line] for line in lines)


def raw_metrics(tree: dict[str, Any]) -> set[str]:
    return set(tree["metrics"]).union(*map(raw_metrics, tree["children"]))


def test_files_for_upstreams_tools_have_upstreams_spelling() -> None:
    profile = sampled_profile()

    as_json = json.loads(find_format("hatchet").encode(profile))[0]
    packed = msgpack.unpackb(
        find_format("hatchet_msgpack").encode(profile), raw=False, strict_map_key=False
    )[0]

    for tree in (as_json, packed):
        assert TYPO in raw_metrics(tree)
        assert NAME not in raw_metrics(tree)
    # The hint at ROOT that it adds up, in the order that upstream writes.
    assert as_json["metrics"][TYPO] == 0
    assert list(as_json["metrics"]) == sorted(as_json["metrics"])


@pytest.mark.parametrize("name", ["proton", "json"])
def test_our_own_files_have_the_right_spelling(name: str) -> None:
    content = find_format(name).encode(sampled_profile())

    assert TYPO.encode() not in content
    assert NAME.encode() in content


def hatchet(*children: dict[str, Any], hints: dict[str, Any] | None = None) -> Profile:
    tree = node("ROOT", hints or {"num_samples": 0, TYPO: 0}, *children)
    content = json.dumps([tree, {"CUDA": {"0": H100}}]).encode()
    return decode_profile(content, "x.hatchet")


def test_a_file_with_both_spellings_keeps_both() -> None:
    profile = hatchet(node("k", {TYPO: 3, NAME: 5}))

    assert profile.column(TYPO).to_list()[1] == 3
    assert profile.column(NAME).to_list()[1] == 5


def test_a_kernel_without_a_recorded_launch_is_a_kernel_all_the_same() -> None:
    line = node("/a/k.py:3@k", samples({"wait": 4}))

    profile = hatchet(node("k", {}, line), node("bare", samples({"wait": 1})))

    assert [profile.kind(row) for row in range(1, 4)] == [
        FrameKind.KERNEL,
        FrameKind.LINE,
        FrameKind.KERNEL,
    ]


def test_python_frames_above_a_sampled_kernel_stay_python_frames() -> None:
    kernel = node(
        "k",
        {"time (ns)": 5, "count": 1, "device_id": "0", "device_type": "CUDA", **samples({})},
        node("/a/k.py:3@k", samples({"wait": 4})),
    )

    profile = hatchet(node("/a/run.py:40@main", {}, kernel), hints={"time (ns)": 0})

    assert [profile.kind(row) for row in range(1, 4)] == [
        FrameKind.PYTHON,
        FrameKind.KERNEL,
        FrameKind.LINE,
    ]


PATHS = {
    ("train", "forward", "softmax_kernel"): 50,
    ("train", "forward", "softmax_kernel", "softmax.py:12 softmax_kernel"): 1000,
    ("train", "forward", "softmax_kernel", "softmax.py:14 softmax_kernel"): 300,
    ("train", "forward", "softmax_kernel", "softmax.py:17 softmax_kernel"): 50,
    ("train", "sm90_xmma_gemm_f16"): 600,
}


def test_speedscope_shows_each_line_as_a_frame() -> None:
    content = find_format("speedscope").encode(sampled_profile())

    found = speedscope_stacks(content, "num_samples")

    assert {path[1:]: n for path, n in found.items()} == PATHS
    frames = json.loads(content)["shared"]["frames"]
    assert {"name": "softmax.py:12 softmax_kernel", "file": "/src/softmax.py", "line": 12} in frames


def test_pprof_shows_each_line_as_a_function_in_its_file() -> None:
    content = find_format("pprof").encode(sampled_profile())

    found = pprof_stacks(content, "num_samples")

    assert {path[1:]: n for path, n in found.items()} == PATHS
    assert b"/src/softmax.py" in gzip.decompress(content)


def test_folded_stacks_go_down_to_lines() -> None:
    found = folded_stacks(find_format("folded").encode(sampled_profile()))

    kernel = ("train", "forward", "softmax_kernel")
    assert found[*kernel, "/src/softmax.py:12@softmax_kernel"] == 1000
    assert sum(found.values()) == 2000
