"""`proton bisect` finds the slower revision, and says what it skips."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fakes.synthetic import THIRTY, noisy
from published import published

from proton_bench.cli import main
from proton_bench.errors import InterruptedExperimentError
from proton_bench.formats.registry import write_profile
from proton_bench.gate import runs as series
from proton_bench.gate.processes import Ended, Launch
from proton_bench.recording.launcher.run_options import RunOptions

TESTS = Path(__file__).parents[1]
KERNEL = "layer2/k13"
BENCH = f"""
import sys
sys.path.append({str(TESTS)!r})
from fakes.synthetic import THIRTY, record_times
import kernels
record_times({{**THIRTY, {KERNEL!r}: THIRTY[{KERNEL!r}] * kernels.SLOWER}}, between=0.002)
"""
Bisect = Callable[..., tuple[int, Any, str]]


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@dataclass
class Repository:
    """A repository whose ``kernels.py`` says how slow one of thirty kernels is."""

    folder: Path
    number: int = 0

    def commit(self, slower: float = 1.0, *, runs: bool = True, **files: str) -> str:
        self.number += 1
        text = f"NUMBER = {self.number}\nSLOWER = {slower}\n"
        text = text if runs else f"raise SystemExit({self.number})\n"
        (self.folder / "kernels.py").write_text(text)
        return self.change(**files)

    def change(self, **files: str) -> str:
        """Commit without a change of ``kernels.py``."""
        for name, content in files.items():
            (self.folder / name.replace("_dot_", ".")).write_text(content)
        git(self.folder, "add", ".")
        git(self.folder, "commit", "-qm", f"commit {self.number}", "--allow-empty")
        return git(self.folder, "rev-parse", "HEAD")

    def line(self, count: int, guilty: int, *, broken: frozenset[int] = frozenset()) -> list[str]:
        """Commit that many revisions after the good one, which is tagged."""
        self.commit()
        git(self.folder, "tag", "good")
        return [
            self.commit(1.05 if number >= guilty else 1.0, runs=number not in broken)
            for number in range(count)
        ]

    def is_tidy(self) -> bool:
        trees = git(self.folder, "worktree", "list").splitlines()
        return len(trees) == 1 and not git(self.folder, "status", "--porcelain")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    (tmp_path / "bench.py").write_text(BENCH)
    (tmp_path / ".gitignore").write_text(".proton\n*.json\n")
    git(tmp_path, "init", "-q", "-b", "main")
    return Repository(tmp_path)


@dataclass
class Processes:
    """Stands in for measured processes: writes what each would have recorded.

    Attributes:
        revisions: Text of ``kernels.py`` of each process.
        stop_after: Number of processes after which a signal comes.
        between: Noise between processes.
        shaky: A path whose time says nothing.
        commits: The revision of each process, as its profile would have it.
        disturbed: Number of a revision of which one process is slow.
    """

    revisions: list[str] = field(default_factory=list)
    stop_after: int | None = None
    between: float = 0.002
    shaky: str = ""
    commits: list[str] = field(default_factory=list)
    disturbed: int = -1

    def run(self, launch: Launch) -> Ended:
        if self.stop_after is not None and len(self.revisions) >= self.stop_after:
            raise InterruptedExperimentError(15)
        options = RunOptions.from_json(next(each for each in launch.line if each.startswith("{")))
        file = Path((*options.first_folders, options.folder)[0]) / "kernels.py"
        content = file.read_text()
        self.revisions.append(content)
        self.commits.append(options.revision)
        kernels: dict[str, Any] = {}
        try:
            exec(content, kernels)
        except SystemExit:
            launch.log.write_text("the kernels do not compile\n")
            return Ended(1, 0.1)
        name = launch.log.with_suffix("")
        times = {**THIRTY, KERNEL: THIRTY[KERNEL] * kernels["SLOWER"], **kernels.get("MORE", {})}
        if kernels.get("NUMBER") == self.disturbed and name.name.startswith("pair-001"):
            times[KERNEL] *= 1.3
        if kernels.get("RENAMED"):
            times["layer2/other"] = times.pop(KERNEL)
        digest = hashlib.sha256(content.encode()).hexdigest()
        seed = f"{digest} {name.name} {len(self.revisions)}"
        if self.shaky:
            times[self.shaky] *= 1.0 + random.Random(seed).random()
        write_profile(noisy(times, seed, between=self.between), Path(f"{name}.proton"))
        modules = [{"name": "kernels", "file": os.path.realpath(file), "sha256": digest}]
        Path(f"{name}.modules.json").write_text(json.dumps(modules))
        return Ended(0, 0.1)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch, fixed_turns: None) -> Processes:
    found = Processes()
    monkeypatch.setattr(series, "run_fresh", found.run)
    return found


@pytest.fixture
def bisect(
    repository: Repository,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Iterator[Bisect]:
    """Run ``proton bisect`` in the repository; return its code, its document and its messages."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.chdir(repository.folder)

    def run(
        *words: str, ends: tuple[str, str] = ("good", "HEAD"), target: str = "bench.py"
    ) -> tuple[int, Any, str]:
        file = repository.folder / "found.json"
        file.unlink(missing_ok=True)
        code = main(["bisect", "--json", str(file), *words, *ends, "--", "-b", "cpu", target])
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return code, published(file.read_text()) if file.exists() else None, out + err

    yield run
    assert repository.is_tidy()


def names(document: Any) -> list[str]:
    return [each["name"] for each in document["candidates"]]


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize(("count", "guilty"), [(20, 12), (8, 0), (8, 7), (1, 0)])
def test_the_one_slower_commit_is_named(
    repository: Repository, bisect: Bisect, count: int, guilty: int
) -> None:
    commits = repository.line(count, guilty)

    code, found, said = bisect()

    assert (code, found["verdict"]) == (0, "FOUND")
    assert names(found) == [commits[guilty]]
    assert commits[guilty][:12] in said
    assert found["candidates"][0]["author"] == "Ada"
    assert found["candidates"][0]["title"] == f"commit {guilty + 2}"
    assert found["path"] == "layer2 > k13"
    assert found["pairs"] <= 4 * len(found["tested"])


def test_one_slow_process_does_not_make_a_revision_bad(
    repository: Repository, bisect: Bisect, processes: Processes
) -> None:
    commits = repository.line(8, 6)
    processes.disturbed = 5  # which git chooses first

    _, found, _ = bisect()

    tested = {each["name"]: each for each in found["tested"]}
    assert tested[commits[3]]["pairs"] > 4
    assert (tested[commits[3]]["state"], names(found)) == ("good", [commits[6]])


def test_the_proof_ends_at_the_first_proven_path(
    repository: Repository, bisect: Bisect, processes: Processes
) -> None:
    commits = repository.line(12, 5)
    processes.shaky = "layer4/k27"

    code, found, said = bisect()

    assert (code, names(found)) == (0, [commits[5]])
    assert len(found["proof"]["base_runs"]) <= 8  # of 20; six, or a look more
    assert "run 14 of at most 42: pair 6, " in said


def test_each_run_carries_its_own_revision(
    repository: Repository, bisect: Bisect, processes: Processes
) -> None:
    commits = repository.line(9, 4)
    good = git(repository.folder, "rev-parse", "good")

    bisect()

    texts = dict(zip(processes.commits, processes.revisions, strict=True))
    assert good in texts
    assert set(texts) - {good} <= set(commits)
    for commit, text in texts.items():
        assert git(repository.folder, "show", f"{commit}:kernels.py") == text.strip()


def test_an_interruption_leaves_no_worktree(
    repository: Repository, bisect: Bisect, processes: Processes
) -> None:
    repository.line(8, 3)
    processes.stop_after = 21  # in the search

    assert bisect()[0] == 143


@pytest.mark.usefixtures("processes")
def test_the_evidence_is_the_change_of_the_slower_commit_and_of_the_one_before(
    repository: Repository, bisect: Bisect
) -> None:
    commits = repository.line(16, 9)

    _, found, _ = bisect()

    tested = {each["name"]: each for each in found["tested"]}
    first, before = tested[commits[9]], tested[commits[8]]
    assert first["low"] < 0.05 < first["high"]
    assert before["low"] < 0.0 < before["high"]
    assert (first["state"], before["state"]) == ("bad", "good")
    assert first["pairs"] >= 4 <= before["pairs"]
    assert found["proof"]["verdict"] == "FAIL"


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("words", [(), ("--first-parent",)])
def test_of_a_slower_branch_its_commit_is_named_or_with_first_parent_its_merge(
    repository: Repository, bisect: Bisect, words: tuple[str, ...]
) -> None:
    repository.line(4, 99)
    git(repository.folder, "switch", "-qc", "side")
    repository.commit(1.0)
    slower = repository.commit(1.05)
    repository.commit(1.05)
    git(repository.folder, "switch", "-q", "main")
    repository.change(notes_dot_md="main went on")
    git(repository.folder, "merge", "-q", "--no-ff", "-m", "merge", "side")
    merge = git(repository.folder, "rev-parse", "HEAD")
    for _ in range(3):
        repository.commit(1.05)

    code, found, _ = bisect(*words)

    assert code == 0
    assert names(found) == [merge if words else slower]


@pytest.mark.usefixtures("processes")
def test_revisions_that_do_not_run_are_skipped(repository: Repository, bisect: Bisect) -> None:
    commits = repository.line(16, 10, broken=frozenset({7, 8, 14}))

    code, found, _ = bisect()

    assert code == 0
    assert names(found) == [commits[10]]
    skipped = [each for each in found["tested"] if each["state"] == "skipped"]
    assert skipped
    assert all(each["reason"] for each in skipped)


@pytest.mark.usefixtures("processes")
def test_revisions_that_do_not_run_widen_the_range_and_say_why(
    repository: Repository, bisect: Bisect
) -> None:
    commits = repository.line(16, 8, broken=frozenset({6, 7}))

    code, found, said = bisect()

    assert (code, found["verdict"]) == (3, "RANGE")
    assert set(names(found)) == set(commits[6:9])
    reasons = [each["reason"] for each in found["tested"] if each["state"] == "skipped"]
    assert reasons
    assert all(each.startswith("the kernels do not compile; ") for each in reasons)
    assert "the kernels do not compile" in said


@pytest.mark.usefixtures("processes")
def test_without_a_regression_nothing_is_searched(repository: Repository, bisect: Bisect) -> None:
    repository.line(8, 99)

    code, found, _ = bisect()

    assert (code, found["verdict"]) == (3, "NO-REGRESSION")
    assert not found["candidates"]
    assert not found["tested"]


def test_a_path_that_may_be_slower_is_undecided(
    repository: Repository, bisect: Bisect, processes: Processes
) -> None:
    repository.line(4, 2)
    processes.between = 0.2

    code, found, _ = bisect("-t", "median:0.1%")

    assert (code, found["verdict"]) == (3, "INCONCLUSIVE")
    assert not found["tested"]


@pytest.mark.usefixtures("processes")
def test_a_revision_without_the_path_cannot_be_measured(
    repository: Repository, bisect: Bisect
) -> None:
    commits = repository.line(4, 99)
    text = "SLOWER = 1.05\nRENAMED = True\n"
    commits += [repository.change(kernels_dot_py=text), repository.commit(1.05)]
    git(repository.folder, "commit", "--allow-empty", "-qm", "last")

    code, found, _ = bisect()

    assert code == 3
    assert set(names(found)) >= {commits[4], commits[5]}
    assert any("k13" in each["reason"] for each in found["tested"])


@pytest.mark.usefixtures("processes")
def test_data_that_no_module_holds_may_matter(repository: Repository, bisect: Bisect) -> None:
    repository.commit()
    git(repository.folder, "tag", "good")
    for number in range(8):
        repository.change(sizes_dot_json="{}" * number)
    slower = repository.commit(1.05)

    code, found, _ = bisect()

    assert code == 0
    assert names(found) == [slower]


@pytest.mark.usefixtures("processes")
def test_a_structural_change_that_is_not_allowed_is_searched(
    repository: Repository, bisect: Bisect
) -> None:
    repository.line(8, 99)
    more = [
        repository.change(kernels_dot_py=f"NUMBER = {n}\nSLOWER = 1.0\nMORE = {{'l/more': 1e5}}\n")
        for n in range(6)
    ]

    (repository.folder / "policy.toml").write_text('thresholds = ["calls:0"]\n')
    git(repository.folder, "add", ".")
    git(repository.folder, "commit", "-qm", "policy")

    code, found, _ = bisect("--policy", "policy.toml", "--runs", "1")

    assert code == 0
    assert names(found) == [more[0]]
    assert found["path"] == "l > more"
    assert found["metric"] is None


@pytest.mark.parametrize(
    "ends",
    [("HEAD", "good"), ("good", "missing"), ("good", "good"), ("side", "HEAD"), ("-x", "HEAD")],
)
def test_wrong_ends_are_wrong_usage(
    repository: Repository, bisect: Bisect, processes: Processes, ends: tuple[str, str]
) -> None:
    repository.line(2, 1)
    git(repository.folder, "switch", "-qc", "side")
    repository.commit()
    git(repository.folder, "switch", "-q", "main")
    repository.commit()

    code, found, _ = bisect(ends=ends)

    assert (code, found) == (2, None)
    assert not processes.revisions
    assert not (repository.folder / ".proton").exists()


def test_outside_a_repository_it_is_wrong_usage(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("empty")
    (folder / "bench.py").write_text("")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent))

    assert main(["bisect", "a", "b", "--", "bench.py"]) == 2


def test_a_good_revision_that_does_not_run_is_an_error(
    repository: Repository, bisect: Bisect, processes: Processes
) -> None:
    repository.commit(runs=False)
    git(repository.folder, "tag", "good")
    repository.commit()

    code, found, said = bisect()

    assert (code, found) == (2, None)
    assert "compile" in said
    assert len(processes.revisions) == 1


def test_both_ends_with_the_same_installed_code_cannot_be_compared(
    repository: Repository, bisect: Bisect, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.line(4, 2)
    installed = repository.folder / "kernels.py"

    def run(launch: Launch) -> Ended:
        name = launch.log.with_suffix("")
        write_profile(noisy(THIRTY, str(name)), Path(f"{name}.proton"))
        modules = [{"name": "kernels", "file": str(installed), "sha256": "1"}]
        Path(f"{name}.modules.json").write_text(json.dumps(modules))
        return Ended(0, 0.1)

    monkeypatch.setattr(series, "run_fresh", run)

    code, found, said = bisect()

    assert (code, found["verdict"]) == (4, "INCOMPARABLE")
    assert "kernels.py" in said
    assert "--setup" in said


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("is_tracked", [True, False])
def test_real_processes_find_a_slower_commit(
    repository: Repository, tmp_path_factory: pytest.TempPathFactory, is_tracked: bool
) -> None:
    """Also if the slower commit changed only the script, which git tracks."""
    folder = repository.folder
    if is_tracked:
        repository.change(kernels_dot_py="SLOWER = 1.0\n")
        git(folder, "tag", "good")
        slower = repository.change(bench_dot_py=BENCH.replace("kernels.SLOWER", "1.05"))
        repository.change(notes_dot_md="after")
    else:
        (folder / "bench.py").rename(folder / "own.py")
        slower = repository.line(3, 1)[1]
        (folder / "own.py").rename(folder / "bench.py")
        git(folder, "rm", "-q", "--cached", "own.py")
        repository.commit(1.05)

    code, found, said = real(folder, tmp_path_factory.mktemp("cache"), "good", "HEAD")

    assert code == 0, said
    assert names(found) == [slower]


def real(folder: Path, cache: Path, *words: str) -> tuple[int, Any, str]:
    done = subprocess.run(
        [sys.executable, "-m", "proton_bench", "bisect"]
        + ["--json", "found.json", *words, "--", "-b", "cpu", "bench.py"],
        cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    said = done.stdout + done.stderr
    assert done.returncode in (0, 3), said
    return done.returncode, published((folder / "found.json").read_text()), said


@pytest.mark.nightly(keep=0)
def test_revisions_are_built_by_a_command_and_skipped_where_it_fails(
    repository: Repository, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The command installs a module whose source has another name."""
    folder = repository.folder
    (folder / "setup.sh").write_text(
        "test ! -e broken && cp source.txt $(python -c "
        "'import sysconfig; print(sysconfig.get_path(\"purelib\"))')/kernels.py\n"
    )
    repository.change(source_dot_txt="SLOWER = 1.0\n")
    git(folder, "tag", "good")
    first = repository.change(source_dot_txt="SLOWER = 1.0\n# 1\n")
    broken = repository.change(source_dot_txt="SLOWER = 1.05\n", broken="")
    git(folder, "rm", "-q", "broken")
    slower = repository.change(source_dot_txt="SLOWER = 1.05\n# 2\n")
    repository.change(source_dot_txt="SLOWER = 1.05\n# 3\n")

    cache = tmp_path_factory.mktemp("cache")
    code, found, said = real(folder, cache, "--setup", "sh setup.sh", "good", "HEAD")

    assert code == 3, said
    assert set(names(found)) == {broken, slower}
    assert first not in names(found)
    assert repository.is_tidy()
