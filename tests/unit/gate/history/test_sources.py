from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.gated import SECOND_NS, Kernel, process
from fakes.histories import recorded
from fakes.stored import other_gpu, put
from fakes.timed import profile_of_times

from proton_bench.analysis.run import Run
from proton_bench.errors import UsageError
from proton_bench.gate.baselines import BaselineStore
from proton_bench.gate.history.points import Followed, Point, points_of
from proton_bench.gate.history.sources import Sources
from proton_bench.gate.policy import Policy
from proton_bench.gate.statistics.location import SHORT_NS
from proton_bench.model.frame import FrameKind


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    return BaselineStore(tmp_path / ".proton")


def test_all_entries_of_all_baselines_are_points(store: BaselineStore) -> None:
    runs = recorded(4, {})
    entries = [store.save(name, [run]) for name, run in zip("abab", runs, strict=True)]
    store.promote("a")

    found = list(Sources.named([], store).points(Followed(Policy())))

    assert sorted((each.group, each.source) for each in found) == sorted(
        (entry.name, entry.reference) for entry in entries
    )


def test_words_name_baselines_entries_files_and_folders(
    store: BaselineStore, tmp_path: Path
) -> None:
    runs = recorded(6, {})
    store.save("a", runs[:1])
    entry = store.save("b", runs[1:2])
    store.save("b", runs[2:3])
    folder = put(tmp_path / "runs", *runs[3:5])
    file = put(tmp_path / "single", runs[5]) / "0.proton"

    found = list(
        Sources.named(["a", entry.reference, str(folder), str(file)], store).points(
            Followed(Policy())
        )
    )

    assert [(each.group, each.runs) for each in found] == [("a", 1), ("b", 1), ("", 2), ("", 1)]
    assert [each.source for each in found[1:]] == [entry.reference, str(folder), str(file)]


@pytest.mark.parametrize(
    "words", [["nothing"], ["./nothing.proton"], ["a@20260101T000000-00000000"]]
)
def test_what_is_not_there_is_an_error(words: list[str], store: BaselineStore) -> None:
    store.save("a", recorded(1, {}))

    with pytest.raises(UsageError):
        Sources.named(words, store)


def test_an_empty_store_is_an_error(store: BaselineStore) -> None:
    with pytest.raises(UsageError):
        Sources.named([], store)


def test_runs_that_were_saved_twice_count_once(store: BaselineStore) -> None:
    run = recorded(1, {})
    store.save("a", run)
    again = store.save("a", run)
    store.save("b", run)

    sources = Sources.named([], store)

    assert [each.group for each in sources.points(Followed(Policy()))] == ["a", "b"]
    assert list(sources.left_out) == [again.reference]


def test_a_run_in_several_files_counts_once(store: BaselineStore, tmp_path: Path) -> None:
    runs = [
        Run(replace(each.profile, provenance=each.profile.provenance.updated(pid=pid)), each.source)
        for pid, each in enumerate(recorded(2, {}))
    ]
    folder, copy = put(tmp_path / "runs", *runs), put(tmp_path / "copy", runs[1]) / "0.proton"

    sources = Sources.named([str(folder), str(copy)], store)

    assert [each.source for each in sources.points(Followed(Policy()))] == [str(folder)]
    assert list(sources.left_out) == [str(copy)]


def test_a_damaged_entry_is_left_out_and_named(store: BaselineStore) -> None:
    good, bad = (store.save("a", [run]) for run in recorded(2, {}))
    bad.files()[0].write_bytes(b"x")

    sources = Sources.named(["a"], store)

    assert [each.source for each in sources.points(Followed(Policy()))] == [good.reference]
    assert list(sources.left_out) == [bad.reference]


def test_a_file_that_is_named_twice_counts_once(store: BaselineStore, tmp_path: Path) -> None:
    file = put(tmp_path / "runs", *recorded(1, {})) / "0.proton"
    link = tmp_path / "link.proton"
    link.symlink_to(file)

    sources = Sources.named([str(file), str(link)], store)

    assert [each.source for each in sources.points(Followed(Policy()))] == [str(file)]
    assert list(sources.left_out) == [str(link)]


NAMES = ("a", "b", "c")


def run(time_ns: float, at: int = 1, *, seed: int = 1, **facts: Any) -> Run:
    kernels = [Kernel(f"step/{name}", time_ns, between=0.0, within=0.001) for name in NAMES]
    return process(kernels, np.random.default_rng(seed), new=False, at=at, **facts)


def points(*runs: Run, **chosen: Any) -> list[Point]:
    followed = Followed(**{"policy": Policy(), **chosen})
    return list(points_of(runs, followed, group="main", source="here"))


def followed_by(point: Point) -> set[tuple[str, str]]:
    """Return the last names of the paths that have a value, with their metrics."""
    return {(path[-1] if path else "", metric) for path, _, metric in point.values}


def test_a_point_is_the_median_over_its_processes() -> None:
    (found,) = points(run(100.0e3, at=3), run(300.0e3, at=2), run(200.0e3, at=4))

    assert (found.runs, found.time_ns) == (3, 2 * SECOND_NS)
    paths = {(("step", name), 0, "median") for name in NAMES}
    assert found.values.keys() == {*paths, ((), 0, "total")}
    value = found.values[("step", "a"), 0, "median"]
    assert value.value == pytest.approx(200.0e3, rel=0.01)
    assert (value.unit, value.direction, value.is_quarantined) == ("ns", 1, False)
    assert value.share == pytest.approx(1 / 3, rel=0.01)


def test_one_process_is_enough() -> None:
    (found,) = points(run(100.0e3))

    assert found.runs == 1
    assert found.values[("step", "b"), 0, "median"].value == pytest.approx(100.0e3, rel=0.01)


def test_machines_and_devices_are_never_mixed() -> None:
    gpus = [run(1e5, **other_gpu(uuid=uuid)) for uuid in ("GPU-1", "GPU-2")]
    hosts = [run(1e5, host=host, gpus_at_start=[]) for host in ("here", "there")]

    found = points(*gpus, *hosts)

    assert [each.runs for each in found] == [1, 1, 1, 1]
    assert len({each.machine for each in found}) == 4


def test_containers_on_one_gpu_are_one_machine() -> None:
    (found,) = points(run(1e5, host="9f2c"), run(1e5, host="01ab"))

    assert found.runs == 2


def test_versions_do_not_separate_points_and_are_kept() -> None:
    (old,), (new,) = (points(run(1e5, torch=version)) for version in ("2.6", "2.7"))

    assert old.machine == new.machine
    assert (old.tools["torch"], new.tools["torch"]) == ("2.6", "2.7")


def test_revision_and_changed_files_come_from_the_provenance() -> None:
    (known,) = points(run(1e5, git={"revision": "abc", "dirty": True}))
    (unknown,) = points(run(1e5))
    (odd,) = points(run(1e5, git="abc"))

    assert (known.revision, known.is_dirty) == ("abc", True)
    assert (unknown.revision, odd.revision) == ("", "")


@pytest.mark.parametrize("start", [None, "soon", True, -1, 1 << 70])
def test_a_time_that_cannot_be_true_is_unknown(start: Any) -> None:
    profile = profile_of_times({"step/a": [1e5, 1e5]}, provenance={"start_time_ns": start})

    (found,) = points(Run(profile, "a.proton"))

    assert found.time_ns is None


def test_the_policy_adds_to_what_is_measured() -> None:
    policy = Policy(quarantine=("b",)).with_thresholds(["a@p95:3%", "b@mean:3%", "calls:0"])

    (found,) = points(run(1e5), policy=policy)

    default = {("", "total"), ("a", "median"), ("c", "median")}
    assert followed_by(found) == {*default, ("a", "p95"), ("b", "mean")}
    assert found.values[("step", "b"), 0, "mean"].is_quarantined
    assert found.values[("step", "a"), 0, "p95"].share == 1.0  # named, so it counts
    assert found.values[(), 0, "total"].value == pytest.approx(2e5 * 20, rel=0.01)


def nested() -> Run:
    times = {f"step/{scope}/{name}": [1e5] * 20 for scope in ("fwd", "bwd") for name in "ab"}
    return Run(profile_of_times(times), "a.proton")


def test_each_path_has_one_value() -> None:
    (found,) = points(nested())

    launches = {("a", "median"), ("b", "median")}
    assert followed_by(found) == {*launches, ("fwd", "total"), ("bwd", "total"), ("", "total")}
    assert len(found.values) == 7


def test_totals_of_launches_are_followed_if_the_policy_asks() -> None:
    (found,) = points(nested(), policy=Policy().with_thresholds(["**/fwd/a@total:3%"]))

    assert (("step", "fwd", "a"), 0, "total") in found.values


def test_chosen_paths_come_with_the_totals_around_them() -> None:
    (found,) = points(nested(), paths=("**/fwd/a",))

    assert {(path, metric) for path, _, metric in found.values} == {
        (("step", "fwd", "a"), "median"),
        (("step", "fwd"), "total"),
        ((), "total"),
    }


def test_a_chosen_path_may_be_small() -> None:
    times = {"step/a": [1e6] * 20, "step/tiny": [1e3] * 20}
    runs = [Run(profile_of_times(times), "a.proton")]

    (found,) = points(*runs, paths=("tiny",))

    assert found.values[("step", "tiny"), 0, "median"].share == 1.0


def test_values_without_a_logarithm_are_left_out() -> None:
    profile = profile_of_times({"step/a": [1e5, 1e5], "step/zero": [0.0, 0.0]})

    (found,) = points(Run(profile, "a.proton"), policy=Policy().with_thresholds(["**@median:3%"]))

    assert {path[-1] for path, _, metric in found.values if metric == "median"} == {"a"}


def test_paths_near_the_limit_for_short_ones_have_both_numbers() -> None:
    times = {
        "step/near": [SHORT_NS * 1.1] * 18 + [SHORT_NS * 1.3] * 4,
        "step/far": [SHORT_NS * 8.0] * 18 + [SHORT_NS * 9.0] * 4,
    }

    (found,) = points(Run(profile_of_times(times), "a.proton"))

    near, far = (found.values[("step", name), 0, "median"] for name in ("near", "far"))
    assert near.as_short > near.value
    assert far.as_short == far.value


def test_a_mean_is_told_from_the_median_that_it_stands_for() -> None:
    times = {"step/a": [1e5] * 9 + [9e5]}
    kept = profile_of_times(times)

    (known,), (bare,) = (
        points(Run(profile, "a.proton")) for profile in (kept, replace(kept, distributions={}))
    )

    values = [each.values[("step", "a"), 0, "median"] for each in (known, bare)]
    assert [each.metric for each in values] == ["median", "mean"]
    assert values[1].value == pytest.approx(1.8e5)


def test_names_are_readable_and_last() -> None:
    mangled, numbered = "_ZN2at4fillIfEEvPf", "triton_poi_fused_add_3"
    profile = profile_of_times({f"step/{mangled}": [1e5, 1e5], f"step/{numbered}": [1e5, 1e5]})

    (found,) = points(Run(profile, "a.proton"))

    assert {path[-1] for path, _, _ in found.values if path} == {mangled, "triton_poi_fused_add"}
    assert found.texts[mangled] == "fill<float>"


def test_kernels_that_differ_in_a_running_number_alone_have_a_value_each() -> None:
    names = [f"triton_poi_fused_add_{number}" for number in range(2)]
    times = {f"step/{name}": [time] * 2 for name, time in zip(names, (1e5, 2e5), strict=True)}

    (found,) = points(Run(profile_of_times(times), "a.proton"))

    path = ("step", "triton_poi_fused_add")
    values = [found.values[path, occurrence, "median"].value for occurrence in range(2)]
    assert values == pytest.approx([1e5, 2e5])


def test_frames_of_one_function_are_shown_without_the_line_of_one_of_them() -> None:
    profile = profile_of_times({f"train.py:{line}@step/k": [1e5, 1e5] for line in (3, 9)})
    kinds = np.where(profile.kinds == FrameKind.SCOPE, FrameKind.PYTHON, profile.kinds)

    (found,) = points(Run(replace(profile, kinds=kinds), "a.proton"))

    assert found.texts == {"train.py@step": "train.py step"}
    assert {occurrence for path, occurrence, _ in found.values if path} == {0, 1}
