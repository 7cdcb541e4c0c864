"""Sides take turns at going first, and no two runs share their files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fakes.gated import Kernel, process, session

from proton_bench.analysis.run import Run
from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.gate.ab import Request, resume_ab
from proton_bench.gate.machine import check_replicates
from proton_bench.gate.policy import Policy
from proton_bench.gate.processes import Command, Revision
from proton_bench.gate.progress import open_progress
from proton_bench.gate.runs import KeptRuns, at_home, drop_unused, kept_folder, new_folder
from proton_bench.gate.slot import BASE, NEW, Stage, missing, new_alone, pairs
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.result import SuiteVerdict
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.recording.launcher.run_options import RunOptions
from proton_bench.recording.launcher.target import TargetKind


def test_chance_decides_which_side_of_a_pair_runs_first() -> None:
    drawn = {
        tuple(slot.base_first for slot in pairs(Stage.PAIR, 8, f"seed {at}")[::2])
        for at in range(300)
    }

    assert len(drawn) > 60
    for turns in drawn:
        assert len(set(turns[:4])) == 2
        assert not any(turns[period:6] == turns[: 6 - period] for period in (1, 2, 3))
    assert {sum(turns[6:]) for turns in drawn} == {0, 1, 2}


def test_the_order_of_pairs_repeats_and_does_not_depend_on_their_number() -> None:
    slots = pairs(Stage.PAIR, 3, "20300117-101112")

    assert slots == pairs(Stage.PAIR, 12, "20300117-101112")[:6]
    assert [slot.pair for slot in slots] == [0, 0, 1, 1, 2, 2]
    for first, second in zip(slots[::2], slots[1::2], strict=True):
        assert {first.arm, second.arm} == {BASE, NEW}
        assert first.base_first is second.base_first is (first.arm == BASE)


def test_names_of_files_differ_and_sort_by_pair() -> None:
    slots = [*pairs(Stage.WARM_UP, 1), *pairs(Stage.PAIR, 12), *new_alone(3)]

    assert len({slot.name for slot in slots}) == len(slots)
    assert slots[-1].name == "alone-003-new"


def test_a_broken_pair_is_run_anew_so_that_its_runs_are_neighbours() -> None:
    slots = pairs(Stage.PAIR, 3)

    assert missing(slots, slots[:3]) == list(slots[2:])
    assert missing(slots, slots[:4]) == list(slots[4:])
    assert missing(slots, slots) == []


def test_runs_that_are_not_pairs_count_each_for_itself() -> None:
    warm_up, alone = pairs(Stage.WARM_UP, 1), new_alone(3)

    assert missing(warm_up, warm_up[:1]) == list(warm_up[1:])
    assert missing(alone, alone[1:]) == [alone[0]]


def run(pid: int | None, *, at: int = 0, name: str = "a.proton") -> Run:
    facts = {} if pid is None else {"pid": pid}
    made = process([Kernel("k")], np.random.default_rng(at), new=False, at=at, **facts)
    return Run(made.profile, name)


@pytest.mark.parametrize("side", ["base", "new", "both"])
def test_one_run_twice_is_refused_with_both_names(side: str) -> None:
    copies = [run(7), run(7, name="b.proton")]
    others = [run(8, at=1), run(9, at=2)]
    sides = {"base": (copies, others), "new": (others, copies), "both": (copies[:1], copies[1:])}

    with pytest.raises(UsageError, match=r"'a.proton' and 'b.proton' .*process 7 "):
        gate_result(*sides[side], Policy())


def test_runs_of_other_times_or_processes_are_runs_of_their_own() -> None:
    check_replicates([run(7), run(8), run(7, at=1)])
    names = [each.source for each in session([Kernel("k")])[0]]

    assert len(set(names)) == 6


def test_runs_without_an_identity_are_believed() -> None:
    base, new = [run(None), run(None)], [run(None, at=1)] * 2

    assert gate_result(base, new, Policy()).verdict is SuiteVerdict.INCONCLUSIVE


def profile(*names: str) -> Profile:
    builder = ProfileBuilder()
    row = 0
    for name in names:
        row = builder.add(row, name, FrameKind.PYTHON, metrics={"time (ns)": 1})
    return builder.build()


def test_files_of_the_base_are_named_as_those_of_the_working_tree() -> None:
    tree = Path("/repo/.proton/ab/x/base-tree")
    run = Run(profile(f"{tree}/pkg/core.py:3@f", "/lib/other.py:1@g", "scope"), "x")

    found = at_home(run, tree, "/repo")

    assert found.profile.path(3) == ("/repo/pkg/core.py:3@f", "/lib/other.py:1@g", "scope")
    assert found.source == "x"


def test_what_names_no_file_of_the_base_stays_as_it_is() -> None:
    run = Run(profile("/repo/pkg/core.py:3@f"), "x")

    assert at_home(run, Path("/tree"), "/repo") is run


def command(target: str) -> Command:
    options = RunOptions(kind=TargetKind.SCRIPT, target=target, name="", formats=(), folder="/x")
    return Command(options, ("a b", "--c"), ("-O",))


def test_a_request_survives_json() -> None:
    policy = Policy(quarantine=("a/**",), runs=6)
    policy = policy.with_thresholds(["fwd/**@p95:10%&1us", "calls:0"])
    plain = Request(command("new.py"))
    full = Request(
        command("new.py"), command("base.py"), Revision("/x", "main", "0" * 40), "make", 5, policy
    )

    for request in (plain, full):
        assert Request.from_document(json.loads(json.dumps(request.to_document()))) == request


def test_each_run_has_files_of_its_own_and_says_nothing() -> None:
    line = command("new.py").line(
        "/f/{odd}", first_folders=("/tree",), interpreter="/env/bin/python"
    )
    options = RunOptions.from_json(line[-3])

    assert line[0] == "/env/bin/python"
    assert line[1] == "-O"
    assert line[-2:] == ["a b", "--c"]
    assert options.name == "/f/{odd}"
    assert options.template == "/f/{{odd}}"
    assert options.modules_file == "/f/{odd}.modules.json"
    assert (options.formats, options.first_folders) == (("proton",), ("/tree",))
    assert options.quiet
    assert options.strict
    assert command("new.py").text == "new.py 'a b' --c"


def test_a_manifest_without_what_was_asked_is_damaged(tmp_path: Path) -> None:
    KeptRuns.create(tmp_path / "kept", {"doing": "ab"})

    with pytest.raises(ProfileFormatError, match="KeyError"):
        resume_ab(tmp_path / "kept", open_progress("ab"))


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "mine").write_bytes(b"x")
    return folder


def test_a_new_folder_is_the_kept_one_and_git_leaves_it_alone(tmp_path: Path) -> None:
    store = tmp_path / ".proton"

    made = new_folder("ab", store)

    assert kept_folder("ab", store) == made
    assert (store / "ab" / ".gitignore").read_bytes() == b"*\n"


def test_a_folder_without_a_run_goes_with_what_was_made_for_it(tmp_path: Path) -> None:
    store = tmp_path / "project" / ".proton"
    store.parent.mkdir()
    used, unused = new_folder("ab", store), new_folder("ab", store)
    (used / "runs").mkdir()
    (used / "runs" / "0.proton").touch()

    drop_unused(unused)
    drop_unused(used)
    assert [path.name for path in (store / "ab").glob("*-*")] == [used.name]

    (used / "runs" / "0.proton").unlink()
    drop_unused(used)
    assert list(store.parent.iterdir()) == []


def test_without_an_experiment_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        kept_folder("ab", tmp_path / ".proton")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", [".proton", ".proton/ab", ".proton/ab/.gitignore"])
def test_nothing_is_written_through_links(tmp_path: Path, outside: Path, place: str) -> None:
    link = tmp_path / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside)

    with pytest.raises(UsageError):
        new_folder("ab", tmp_path / ".proton")
    assert [each.name for each in outside.iterdir()] == ["mine"]
