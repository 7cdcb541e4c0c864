"""What a native session holds, in files, read by our own readers and by llnl-hatchet."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proton_bench.errors import OutputError
from proton_bench.formats.native.file import NativeFile
from proton_bench.formats.registry import decode_profile, read_profile
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.recording.session.conversion import encode_phase

native = pytest.importorskip("proton_bench._native", reason="the native module is not built")

SUFFIXES = {
    "proton": ".proton",
    "hatchet": ".hatchet",
    "hatchet_msgpack": ".hatchet_msgpack",
}
MAX_HATCHET_DEPTH = 400
TIME = "time (ns)"


@pytest.fixture
def session() -> Iterator[Any]:
    core = native.Session("shadow", False)
    core.activate()
    yield core
    core.deactivate()
    core.remove()


def run_kernel(name: str, duration_ns: int, **variant: object) -> None:
    launch = native.emit_launch()
    native.emit_kernel(launch, name, 1000, 1000 + duration_ns, "CUDA", 0, 7, variant or None)


def small_tree() -> None:
    """forward > {matmul 30 + 12, add 5}, backward > matmul 100, with user metrics."""
    native.set_device("CUDA", 0, {"arch": "90", "num_sms": 132, "clock_rate_khz": 1980000})
    native.enter_scope("forward")
    native.add_metrics(
        [("flops", "inc", 2.5), ("note", "pty", 3), ("own", "exc", 4), ("vec", "inc", [1, 2])]
    )
    run_kernel("matmul", 30, grid=(4, 1, 1), code_hash=1)
    run_kernel("matmul", 12, grid=(8, 1, 1), code_hash=2)
    run_kernel("add", 5)
    native.exit_scope("forward")
    native.enter_scope("backward")
    run_kernel("matmul", 100)
    native.exit_scope("backward")


def encoded(session: Any, name: str) -> bytes:
    native.drain()
    return bytes(session.encode(0, name)) if name == "proton" else encode_phase(session, 0, name)


def profile_of(session: Any, name: str) -> Profile:
    return decode_profile(encoded(session, name), f"native{SUFFIXES[name]}")


def sums(profile: Profile, metric: str) -> dict[tuple[str, ...], float]:
    folded = profile.fold_variants()
    totals = folded.inclusive(metric).tolist()
    return {folded.path(row): total for row, total in enumerate(totals) if not math.isnan(total)}


@pytest.mark.parametrize("name", SUFFIXES)
def test_every_format_reads_back_with_the_same_sums(session: Any, name: str) -> None:
    small_tree()

    profile = profile_of(session, name)

    assert sums(profile, TIME) == {
        (): 147,
        ("forward",): 47,
        ("forward", "matmul"): 42,
        ("forward", "add"): 5,
        ("backward",): 100,
        ("backward", "matmul"): 100,
    }
    assert sums(profile, "count")[()] == 4
    assert profile.inclusive("flops")[0] == 2.5


@pytest.mark.parametrize("name", SUFFIXES)
def test_every_format_keeps_types_aggregations_and_devices(session: Any, name: str) -> None:
    small_tree()

    profile = profile_of(session, name).fold_variants()

    forward = next(row for row in range(len(profile)) if profile.name(row) == "forward")
    assert {metric: profile.column(metric).get(forward) for metric in ("note", "own", "vec")} == {
        "note": 3,
        "own": 4,
        "vec": (1, 2),
    }
    aggregations = {metric: column.spec.aggregation for metric, column in profile.columns.items()}
    assert aggregations == {
        TIME: Aggregation.INCLUSIVE,
        "count": Aggregation.INCLUSIVE,
        "flops": Aggregation.INCLUSIVE,
        "vec": Aggregation.INCLUSIVE,
        "note": Aggregation.PROPERTY,
        "own": Aggregation.EXCLUSIVE,
    }
    kernel = next(row for row in range(len(profile)) if profile.name(row) == "add")
    device = profile.device(kernel)
    assert device is not None
    assert (device.kind, device.index, device.arch, device.num_sms) == ("CUDA", 0, "90", 132)


def test_proton_holds_variants_kinds_and_distributions(session: Any) -> None:
    small_tree()
    for repetition in range(200):
        run_kernel("loop", 10_000 + repetition)

    profile = profile_of(session, "proton")

    matmuls = [row for row in range(len(profile)) if profile.path(row) == ("forward", "matmul")]
    variants = [profile.variant(row) for row in matmuls]
    assert [variant.grid for variant in variants if variant] == [(4, 1, 1), (8, 1, 1)]
    loop = next(row for row in range(len(profile)) if profile.name(row) == "loop")
    assert profile.kind(loop) is FrameKind.KERNEL
    distribution = dict(profile.distributions[TIME])[loop]
    assert (distribution.n, distribution.minimum, distribution.maximum) == (200, 10_000, 10_199)
    median = distribution.quantile(0.5)
    assert median is not None
    assert median == pytest.approx(10_099.5, rel=0.002)


def test_llnl_hatchet_reads_names_and_inclusive_sums(session: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hatchet = pytest.importorskip("hatchet", reason="needs the extra 'hatchet'")
    small_tree()
    tree, _devices = json.loads(encoded(session, "hatchet"))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = hatchet.GraphFrame.from_literal([tree])
        frame.exc_metrics = list(tree["metrics"])
        frame.inc_metrics = []
        frame.update_inclusive_columns()
        found = dict(zip(frame.dataframe["name"], frame.dataframe[f"{TIME} (inc)"], strict=True))

    assert (found["ROOT"], found["forward"], found["backward"]) == (147, 47, 100)
    assert set(tree["metrics"]) == {TIME, "count", "flops"}


@pytest.mark.parametrize("name", SUFFIXES)
@pytest.mark.parametrize(
    "hostile", ["two\nlines", "n\0ul", "[bold]\x1b[31m", 'q"\\', "\u00e4\U0001f600"]
)
def test_hostile_names_survive(session: Any, name: str, hostile: str) -> None:
    native.enter_scope(hostile)
    native.add_metrics([("m", "inc", 1)])
    native.exit_scope(hostile)

    assert profile_of(session, name).name(1) == hostile


@pytest.mark.parametrize("name", SUFFIXES)
def test_a_lone_surrogate_is_escaped_to_valid_text(session: Any, name: str) -> None:
    native.enter_scope("a\ud800b")
    native.add_metrics([("m", "inc", 1)])
    native.exit_scope("a\ud800b")

    found = profile_of(session, name).name(1)

    assert found.encode()
    assert found.startswith("a\\")
    assert found.endswith("b")


def test_a_megabyte_of_name_is_kept(session: Any) -> None:
    name = "x" * (1 << 20)
    native.enter_scope(name)
    native.add_metrics([("m", "inc", 1)])
    native.exit_scope(name)

    assert profile_of(session, "proton").name(1) == name
    assert profile_of(session, "hatchet").name(1) == name


@pytest.mark.parametrize("name", ["hatchet", "hatchet_msgpack"])
def test_deep_stacks_fold_in_hatchet_and_not_in_proton(session: Any, name: str) -> None:
    depth = 10_000
    for level in range(depth):
        native.enter_scope(f"level {level % 3}")
    run_kernel("deepest", 17)
    for _ in range(depth):
        native.exit_scope()

    whole, folded = profile_of(session, "proton"), profile_of(session, name)

    assert int(whole.depths().max()) == depth + 1
    assert int(folded.depths().max()) == MAX_HATCHET_DEPTH
    assert whole.inclusive(TIME)[0] == folded.inclusive(TIME)[0] == 17


@pytest.mark.parametrize("name", ["hatchet", "hatchet_msgpack"])
def test_nan_and_infinity_are_null(session: Any, name: str) -> None:
    native.enter_scope("s")
    native.add_metrics([("bad", "exc", math.nan), ("worse", "exc", [math.inf, 1.0])])
    native.exit_scope("s")

    content = encoded(session, name)

    def plain() -> Any:
        if name != "hatchet_msgpack":
            return json.loads(content, parse_constant=pytest.fail)
        import msgspec

        return msgspec.msgpack.decode(content)

    assert plain()[0]["children"][0]["metrics"] == {"bad": None, "worse": [None, 1.0]}


def test_proton_is_at_most_half_of_hatchet(session: Any) -> None:
    for scope in range(40):
        native.enter_scope(f"layer {scope}")
        for kernel in range(25):
            run_kernel(f"kernel_{kernel}_with_a_long_mangled_name", 100 + kernel)
        native.exit_scope()
    content = NativeFile().decode(encoded(session, "proton"), "native")
    bare = NativeFile().encode(replace(content, distributions={}))

    hatchet = encoded(session, "hatchet")

    assert len(bare) <= 0.5 * len(hatchet)
    assert len(encoded(session, "proton")) <= 2 * len(hatchet)


def test_a_written_file_is_whole_and_alone(session: Any, tmp_path: Path) -> None:
    small_tree()
    native.drain()
    path = tmp_path / "run.proton"

    session.write(0, str(path), "proton")

    assert os.listdir(tmp_path) == [path.name]
    assert read_profile(path).inclusive(TIME)[0] == 147


def test_an_unwritable_path_is_an_output_error_that_names_it(session: Any, tmp_path: Path) -> None:
    path = tmp_path / "missing" / "run.proton"

    with pytest.raises(OutputError, match=r"missing/run\.proton.*create the folder"):
        session.write(0, str(path), "proton")

    assert os.listdir(tmp_path) == []
