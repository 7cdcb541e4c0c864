"""`proton ab` finds changes, says what it does not know, and is not fooled by imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes.synthetic import THIRTY, noisy
from integration.running import on_cpu

from proton_bench.cli import main
from proton_bench.formats.registry import read_profile, write_profile
from proton_bench.gate import runs as series
from proton_bench.gate.processes import Ended, Launch
from proton_bench.gate.runs import KeptRuns
from proton_bench.gate.slot import BASE, NEW, Stage
from proton_bench.gate.slot import pairs as slots_of

TESTS = Path(__file__).parents[1]
BENCH = """
import sys
sys.path.append({tests!r})
from fakes.synthetic import THIRTY, record_times
import kernels
times = {{path: time * kernels.SLOWER.get(path, 1.0) for path, time in THIRTY.items()}}
record_times({{**times, **kernels.MORE}})
"""
KERNELS = "SLOWER = {}\nMORE = {}\n"
SLOWER = "SLOWER = {'layer2/k13': 1.05}\nMORE = {}\n"
# One pair decides structure, which is enough to see that each side ran its own code.
MORE = "SLOWER = {}\nMORE = {'layer2/more': 1e5}\n"
ONE = ("--runs", "1")
Ab = Callable[..., tuple[int, str]]


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a program of thirty kernels, in its only commit."""
    (tmp_path / "bench.py").write_text(BENCH.format(tests=str(TESTS)))
    (tmp_path / "kernels.py").write_text(KERNELS)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


@pytest.fixture
def ab(
    repository: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Ab:
    """Run ``proton ab`` in the repository; its measurements run in their own processes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.chdir(repository)

    def run(*words: str) -> tuple[int, str]:
        code = main(["ab", *on_cpu(words)])
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return code, out

    return run


@pytest.fixture
def made_up(
    monkeypatch: pytest.MonkeyPatch, repository: Path, fixed_turns: None
) -> Callable[..., None]:
    """Change a file, and write what each process would have recorded, without running it."""
    (repository / "kernels.py").write_text(f"{KERNELS}# as fast\n")

    def use(slower: float, between: float, clocks: Sequence[float] = ()) -> None:
        def write(launch: Launch) -> Ended:
            name = launch.log.with_suffix("")
            times = {**THIRTY}
            if name.name.endswith(NEW):
                times["layer2/k13"] *= slower
            if clocks:  # of base, new, new, base
                of_side = clocks[1:3] if name.name.endswith(NEW) else (clocks[0], clocks[3])
                times["<canary>/fma"] = 2e5 / of_side[len(found) // 2 % 2]
            found.append(name)
            write_profile(noisy(times, name.name, between=between), Path(f"{name}.proton"))
            Path(f"{name}.modules.json").write_text("[]")
            return Ended(0, 0.5)

        found: list[Path] = []
        monkeypatch.setattr(series, "run_fresh", write)

    return use


def experiments(repository: Path) -> list[Path]:
    return sorted((repository / ".proton" / "ab").glob("*/"))


def document(repository: Path) -> Any:
    return json.loads((repository / "verdict.json").read_text())


def assert_tidy(repository: Path) -> None:
    """Check that nothing of the base's tree is left, also in git."""
    listed = subprocess.run(
        ["git", "worktree", "list"], cwd=repository, check=True, capture_output=True, text=True
    )
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=repository, check=True, capture_output=True, text=True
    )

    assert len(listed.stdout.splitlines()) == 1
    assert ".proton" not in status.stdout
    assert not list(repository.glob(".proton/ab/*/base-tree"))


def test_one_of_thirty_kernels_slower_by_five_percent_is_named_first(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (repository / "kernels.py").write_text(SLOWER)

    done = subprocess.run(
        [sys.executable, "-m", "proton_bench", "ab"]
        + ["--json", "verdict.json", "--", "-b", "cpu", "bench.py"],
        cwd=repository,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))},
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert done.returncode == 1, done.stdout + done.stderr
    found = document(repository)
    assert found["verdict"] == "FAIL"
    assert found["exit_code"] == 1
    assert [row["path"] for row in found["rows"] if row["verdict"] == "REGRESSED"] == [
        ["layer2", "k13"]
    ]
    assert found["rows"][0]["path"] == ["layer2", "k13"]
    assert 0.03 < found["rows"][0]["change"] < 0.07
    assert done.stdout.startswith("FAIL: layer2 > k13")
    assert "\nwhole run: +" in done.stdout
    assert_tidy(repository)
    assert_all_are_kept(repository)


def assert_all_are_kept(repository: Path) -> None:
    """Two runs to warm up, and pairs in the drawn order until every path is decided."""
    (folder,) = experiments(repository)
    kept = KeptRuns.open(folder)
    pairs = kept.of(Stage.PAIR)
    in_time = sorted(pairs, key=lambda run: (folder / run.files[0]).stat().st_mtime_ns)

    drawn = slots_of(Stage.PAIR, len(pairs) // 2, folder.name)
    assert [run.slot for run in in_time] == list(drawn)
    assert len(pairs) in {12, 16, 20}
    assert len(kept) == 2 + len(pairs)
    assert all(kept.read(run).profile.columns for run in pairs)


def runs_of_pairs(repository: Path) -> int:
    (folder,) = experiments(repository)
    return len(KeptRuns.open(folder).of(Stage.PAIR))


def test_code_that_is_as_fast_passes_after_four_pairs(
    ab: Ab, repository: Path, made_up: Callable[..., None]
) -> None:
    made_up(slower=1.0, between=0.002)

    code, out = ab("--base-ref", "HEAD", "--", "bench.py")

    assert code == 0, out
    assert out.startswith("PASS")
    assert runs_of_pairs(repository) == 8
    assert_tidy(repository)


@pytest.mark.parametrize(
    ("words", "untracked"),
    [((), False), (("--base-ref", "HEAD"), True), (("--setup", "true"), False)],
)
def test_the_same_code_is_refused_before_anything_runs(
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    words: Sequence[str],
    untracked: bool,
) -> None:
    monkeypatch.chdir(repository)
    if untracked:
        (repository / "notes.txt").write_text("x")

    code = main(["ab", *words, "--", "-b", "cpu", "bench.py"])

    assert code == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("proton: error: no file that git tracks changed since 'HEAD', so both")
    assert not (repository / ".proton").exists()


def test_the_same_command_as_base_measures_the_same_code(ab: Ab, repository: Path) -> None:
    code, _ = ab(*ONE, "--base", "bench.py", "--json", "verdict.json", "--", "bench.py")

    assert code in {0, 3}
    assert runs_of_pairs(repository) == 2


def test_profiles_carry_the_revision_that_ran(ab: Ab, repository: Path) -> None:
    script = "import proton_bench, kernels\nwith proton_bench.cpu_timed_scope('step'): pass\n"
    (repository / "bench.py").write_text(script)
    for title in ("second", "third"):
        git(repository, "commit", "--allow-empty", "-qam", title)
    (repository / "kernels.py").write_text(MORE)

    ab(*ONE, "--base-ref", "HEAD~1", "--", "bench.py")

    (folder,) = experiments(repository)
    kept = KeptRuns.open(folder)
    commits = [commit_of(repository, ref) for ref in ("HEAD~1", "HEAD")]
    for arm, commit, is_dirty in zip((BASE, NEW), commits, (False, True), strict=True):
        for stage in (Stage.WARM_UP, Stage.PAIR):
            (run,) = kept.of(stage, arm)
            facts = kept.read(run).profile.provenance["git"]
            assert facts == {"revision": commit, "dirty": is_dirty}


def commit_of(folder: Path, ref: str) -> str:
    done = subprocess.run(["git", "rev-parse", ref], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode().strip()


def test_a_slowdown_takes_as_many_pairs_as_can_fail(
    ab: Ab, repository: Path, made_up: Callable[..., None]
) -> None:
    made_up(slower=1.05, between=0.002)

    code, out = ab("--json", "verdict.json", "--", "bench.py")

    assert code == 1, out
    assert [row["verdict"] for row in document(repository)["rows"]].count("REGRESSED") == 1
    assert runs_of_pairs(repository) == 12


def test_a_noise_that_no_number_of_pairs_overcomes_ends_the_experiment_early(
    ab: Ab, repository: Path, made_up: Callable[..., None]
) -> None:
    made_up(slower=1.0, between=0.2)

    code, _ = ab("--", "bench.py")

    assert code == 3
    assert runs_of_pairs(repository) <= 12


@pytest.mark.parametrize(
    ("clocks", "code", "pairs"),
    [
        ((1.0, 1.012, 1.006, 0.994), 0, 4),
        ((1.0, 0.97, 0.97, 1.0), 4, 10),
    ],
)
def test_canaries_need_an_interval_to_end_an_experiment(
    ab: Ab,
    repository: Path,
    made_up: Callable[..., None],
    clocks: Sequence[float],
    code: int,
    pairs: int,
) -> None:
    """The warm-up pair shows neither a changed clock nor an order."""
    made_up(slower=1.0, between=0.002, clocks=clocks)

    found, out = ab("--json", "verdict.json", "--", "bench.py")

    assert found == code, out
    assert runs_of_pairs(repository) == 2 * pairs
    assert "order" not in {note["reason"] for note in document(repository)["notes"]}


def test_a_disturbed_pair_is_replaced(
    ab: Ab,
    repository: Path,
    made_up: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made_up(slower=1.0, between=0.002)
    write = series.run_fresh

    def unfinished(launch: Launch) -> Ended:
        ended = write(launch)
        if launch.log.name.startswith("pair-002-new"):
            file = launch.log.with_suffix(".proton")
            write_profile(replace(read_profile(file), partial=True), file)
        return ended

    monkeypatch.setattr(series, "run_fresh", unfinished)

    code, out = ab("--", "bench.py")

    assert code == 0, out
    assert "pair 2: unfinished" in out
    assert runs_of_pairs(repository) == 10


def test_too_few_runs_are_inconclusive_and_say_how_many_would_do(
    ab: Ab, repository: Path, made_up: Callable[..., None]
) -> None:
    made_up(slower=1.05, between=0.02)

    code, out = ab("--runs", "4", "--json", "verdict.json", "--", "bench.py")

    assert code == 3, out
    found = document(repository)
    needed = [row["pairs_needed"] for row in found["rows"] if row["path"] == ["layer2", "k13"]]
    assert needed[0] > 4
    assert "would decide" in out.splitlines()[0]


def test_two_commands_are_compared(ab: Ab, repository: Path) -> None:
    (repository / "slow.py").write_text(
        (repository / "bench.py").read_text().replace("import kernels", "import slower as kernels")
    )
    (repository / "slower.py").write_text(MORE)

    code, out = ab(*ONE, "--base", "bench.py --any 'word here'", "--", "slow.py")

    assert code == 3, out
    assert "NEW layer2 > more" in out


def test_an_installed_package_on_both_sides_is_incomparable(
    ab: Ab,
    repository: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed = tmp_path_factory.mktemp("env") / "site-packages"
    for folder in (installed, repository / "lib"):
        (folder / "pkg").mkdir(parents=True)
        (folder / "pkg" / "__init__.py").write_text("")
        (folder / "pkg" / "core.py").write_text(KERNELS)
    bench = repository / "bench.py"
    bench.write_text(bench.read_text().replace("import kernels", "import pkg.core as kernels"))
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "second")
    (repository / "lib" / "pkg" / "core.py").write_text(SLOWER)

    monkeypatch.setenv("PYTHONPATH", str(installed))

    code, out = ab("--", "bench.py")

    assert code == 4, out
    assert "lib/pkg/core.py changed since HEAD" in out
    assert "both sides loaded the same version" in out
    (folder,) = experiments(repository)
    assert len(KeptRuns.open(folder)) == 2


def test_a_change_of_the_script_itself_is_not_a_change_of_what_it_measures(
    ab: Ab, repository: Path
) -> None:
    with (repository / "bench.py").open("a") as script:
        script.write("# says more\n")

    code, out = ab(*ONE, "--", "bench.py")

    assert code == 4, out
    assert "only the script" in out


def test_files_edited_between_runs_are_incomparable(ab: Ab, repository: Path) -> None:
    (repository / "kernels.py").write_text(
        "import pathlib\n"
        f"{SLOWER}"
        "with pathlib.Path(__file__).open('a') as file:\n"
        "    file.write('# again\\n')\n"
    )

    code, out = ab(*ONE, "--", "bench.py")

    assert code == 4, out
    assert "do not edit files" in out


def test_tests_of_another_revision_are_todays(ab: Ab, repository: Path) -> None:
    """pytest puts the folders of test files first, which would hide the worktree."""
    (repository / "conftest.py").write_text("import kernels\n")
    (repository / "test_it.py").write_text(
        (repository / "bench.py").read_text() + "def test_it():\n    pass\n"
    )
    (repository / "kernels.py").write_text(MORE)

    code, out = ab(*ONE, "--", "pytest", "-p", "no:cacheprovider", "test_it.py")

    assert code == 3, out
    assert "NEW layer2 > more" in out


def test_each_side_has_an_environment_of_its_own(ab: Ab, repository: Path) -> None:
    (repository / "kernels.py").write_text(MORE)
    site = "import sysconfig; print(sysconfig.get_path('purelib'))"
    copy = f'cp kernels.py "$(python -c "{site}")/installed_kernels.py"'
    (repository / "bench.py").write_text(
        BENCH.format(tests=str(TESTS)).replace(
            "import kernels", "import installed_kernels as kernels"
        )
    )

    code, out = ab(*ONE, "--setup", copy, "--", "bench.py")

    assert code == 3, out
    assert "NEW layer2 > more" in out
    assert_tidy(repository)
    assert not list(repository.glob(".proton/ab/*/*-environment"))
