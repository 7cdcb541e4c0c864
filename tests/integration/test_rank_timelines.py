"""Profiles and timelines of two gloo ranks: of each alone, and merged with labels."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from integration.running import PATIENCE_S, started
from integration.test_ranks import (
    DIES,
    END,
    RANKS,
    TORCHRUN,
    TRAIN,
    check_files,
    names,
    ready_rank,
    run,
    write,
)
from reference.chrome_timeline import same_host_time

from proton_bench.formats.registry import read_profile
from proton_bench.model.profile import Profile

pytest.importorskip("torch")

pytestmark = pytest.mark.long
Run = Callable[..., "subprocess.CompletedProcess[str]"]
RECORD = ("-m", "proton_bench", "run", "-d", "trace", "-b", "cpu", "-n", "job", "train.py")
FORMATS = ("pftrace", "chrome_trace")
BOTH = {"PROTON_BENCH_TRACE_FORMATS": "chrome_trace,perfetto"}


def sums(profile: Profile, metric: str) -> dict[tuple[str, ...], int]:
    """Return the sum of a metric for each path, whatever its rows are."""
    found: dict[tuple[str, ...], int] = {}
    for row, value in enumerate(profile.column(metric).to_list()):
        if isinstance(value, int):
            path = profile.path(row)
            found[path] = found.get(path, 0) + value
    return found


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record two ranks once, and return their folder."""
    folder = tmp_path_factory.mktemp("ranks")
    write(folder, TRAIN, END)
    done = run(folder, *TORCHRUN, *RECORD, **BOTH)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record two ranks of which one is killed, and return their folder."""
    folder = tmp_path_factory.mktemp("killed")
    write(folder, TRAIN, DIES)
    soon = {
        "PROTON_BENCH_PARTIAL_INTERVAL_S": "0.2",
        "PARTIALS": "proton chrome_trace pftrace",
    } | BOTH
    with started((*TORCHRUN, *RECORD), folder, **soon) as running:
        process_id = ready_rank(running)
        os.kill(process_id, signal.SIGKILL)
        running.communicate(timeout=PATIENCE_S)
    return folder


def test_profiles_of_ranks_are_merged_with_labels(recorded: Path, proton_here: Run) -> None:
    check_files(recorded)

    profiles = recorded.glob("job.*.proton")
    merged = proton_here("merge", *profiles, "-o", "all.proton", "--by", "rank")

    assert (merged.returncode, merged.stderr) == (0, "")
    profile = read_profile(Path("all.proton"))
    assert [profile.name(row) for row in profile.children(0)] == [
        f"rank {rank}" for rank in range(RANKS)
    ]
    assert profile.provenance.to_plain()["ranks"]["present"] == list(range(RANKS))


def test_each_rank_worked_in_its_steps(recorded: Path, proton_here: Run) -> None:
    profiles = recorded.glob("job.*.proton")
    table = proton_here("merge", "--stragglers", "-m", "wall", "--json", *profiles)

    steps = {tuple(scope["path"]): scope for scope in json.loads(table.stdout)["scopes"]}
    assert all(work > 0 for work in steps["step", "forward"]["work_ns"])


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_profile_of_a_timeline_is_the_tree_of_the_run(suffix: str, recorded: Path) -> None:
    for rank in range(RANKS):
        tree = read_profile(recorded / f"job.rank{rank}.proton")
        timeline = read_profile(recorded / f"job.rank{rank}.{suffix}")

        assert sums(timeline, "count") == sums(tree, "count")
        times, expected = sums(timeline, "time (ns)"), sums(tree, "time (ns)")
        assert times.keys() == expected.keys()
        for path, counts in sums(tree, "count").items():
            # An operator's own time is its slice without the slices of its callees.
            assert same_host_time(times[path], expected[path], 8 * counts), path
        assert timeline.provenance["rank"] == rank
        assert timeline.provenance["world_size"] == RANKS
        assert not timeline.partial


def test_the_ranks_make_one_timeline(recorded: Path, proton_here: Run) -> None:
    files = sorted(recorded.glob("job.rank*.pftrace"))

    done = proton_here("merge", *files, "-o", "all.pftrace")

    assert (done.returncode, done.stderr) == (0, "")
    merged = read_profile(Path("all.pftrace"))
    counts: dict[tuple[str, ...], int] = {}
    for file in files:
        for path, count in sums(read_profile(file), "count").items():
            counts[path] = counts.get(path, 0) + count
    assert sums(merged, "count") == counts
    assert merged.provenance.to_plain()["ranks"]["present"] == list(range(RANKS))


def test_what_is_missing_of_a_killed_rank_is_said(killed: Path, proton_here: Run) -> None:
    assert "job.rank1.proton" not in names(killed)

    merged = proton_here("merge", *killed.glob("job.rank*.proton"), "-o", "all.proton")

    assert merged.returncode == 0
    assert f"rank 1 of {RANKS} is partial" in merged.stderr
    profile = read_profile(Path("all.proton"))
    assert profile.partial
    assert 1 in profile.provenance.to_plain()["ranks"]["partial"]
    alone = read_profile(killed / "job.rank1.partial.proton")
    assert ("step", "reduce") in {alone.path(row) for row in range(len(alone))}


@pytest.mark.parametrize("suffix", FORMATS)
def test_what_a_killed_rank_left_is_in_the_timeline(
    suffix: str, killed: Path, proton_here: Run
) -> None:
    out = "all.pftrace" if suffix == "pftrace" else "all.proton"
    done = proton_here("merge", *killed.glob(f"job.rank*.{suffix}"), "-o", out)

    assert f"rank 1 of {RANKS} is partial" in done.stderr
    assert read_profile(Path(out)).partial
    alone = read_profile(killed / f"job.rank1.partial.{suffix}")
    assert alone.partial
    assert ("step", "reduce") in {alone.path(row) for row in range(len(alone))}
