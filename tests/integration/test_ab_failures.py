"""`proton ab` reports an error with its side, and loses no measurement."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from integration.running import ended, on_cpu, started, wait_for_text

from proton_bench.gate.runs import KeptRuns

Proton = Callable[..., "subprocess.CompletedProcess[str]"]

TESTS = Path(__file__).parents[1]
BENCH = f"""
import os, sys
sys.path.append({str(TESTS)!r})
from fakes.synthetic import record_times
import kernels
kernels.work()
record_times({{"k1": 1e5, "k2": 2e5}})
"""
WORK = "def work():\n    print('hello')\n"
# Writes its process id to one pipe and waits for another, the first time.
HANGS = """
import os

def work():
    if os.path.exists('hang'):
        os.unlink('hang')
        with open('who', 'w') as pipe:
            pipe.write(str(os.getpid()))
        with open('go', 'r') as pipe:
            pipe.read()
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "bench.py").write_text(BENCH)
    (tmp_path / "kernels.py").write_text(WORK)
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        identity = ("-c", "user.name=n", "-c", "user.email=n@example.org")
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path


@pytest.fixture
def words() -> list[str]:
    return ["-m", "proton_bench", "ab"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def ab(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "proton_bench", "ab", *on_cpu(words)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )


def experiment(repository: Path) -> Path:
    (folder,) = (repository / ".proton" / "ab").glob("*/")
    return folder


def worktrees(repository: Path) -> int:
    listed = subprocess.run(
        ["git", "worktree", "list"], cwd=repository, check=True, capture_output=True, text=True
    )
    return len(listed.stdout.splitlines())


def test_a_run_that_fails_names_its_side_and_the_end_of_its_output(repository: Path) -> None:
    (repository / "kernels.py").write_text(
        "def work():\n    print('so far')\n    raise KeyError(7)\n"
    )

    done = ab(repository, "--json", "verdict.json", "--", "bench.py")

    assert done.returncode == 2
    assert "warm-up 1, new (working tree) of bench.py" in done.stderr
    assert "so far" in done.stderr
    assert "KeyError: 7" in done.stderr
    assert json.loads((repository / "verdict.json").read_text())["verdict"] == "ERROR"
    assert worktrees(repository) == 1
    assert len(KeptRuns.open(experiment(repository))) == 1


def test_a_side_of_which_only_the_host_was_sampled_has_recorded_nothing(
    repository: Path, proton_here: Proton, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PROTON_BENCH_HOST_SAMPLES")
    (repository / "silent.py").write_text("sum(range(10**6))\n")

    done = proton_here("ab", *on_cpu(["--runs", "1", "--base", "silent.py", "--", "silent.py"]))

    assert done.returncode == 2
    assert "silent.py recorded nothing" in done.stderr


def test_a_test_that_crashes_on_one_side_is_an_error_of_that_side(repository: Path) -> None:
    (repository / "test_it.py").write_text("import kernels\ndef test_it():\n    kernels.work()\n")
    (repository / "kernels.py").write_text("import os\ndef work():\n    os.abort()\n")

    done = ab(repository, "--", "pytest", "-p", "no:cacheprovider", "test_it.py")

    assert done.returncode == 2
    assert "warm-up 1, new (working tree) of pytest" in done.stderr
    assert "SIGABRT" in done.stderr


def test_a_run_without_a_profile_is_an_error(repository: Path) -> None:
    (repository / "kernels.py").write_text("import os\ndef work():\n    os._exit(0)\n")

    done = ab(repository, "--", "bench.py")

    assert done.returncode == 2
    assert "new (working tree) of bench.py" in done.stderr


def test_a_run_that_records_nothing_is_an_error(repository: Path) -> None:
    (repository / "empty.py").write_text("print('nothing')\n")
    (repository / "kernels.py").write_text("")

    done = ab(repository, "--", "empty.py")

    assert done.returncode == 2
    assert "warm-up 1, base (HEAD" in done.stderr


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_experiment_is_gone_on_with(
    repository: Path, words: list[str], number: signal.Signals
) -> None:
    _make_hang(repository)

    with started([*words, "--runs", "1", "--", "-b", "cpu", "bench.py"], repository) as running:
        wait_for_text(running, ": warm-up 1, new")
        child = _who_hangs(repository)
        running.send_signal(number)
        code, _, err = ended(running)

    assert code == 128 + number
    assert "interrupted with 1 run kept in" in err
    assert "continue with `proton ab --resume .proton/ab/" in err
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    assert worktrees(repository) == 1
    assert len(KeptRuns.open(experiment(repository))) == 1

    again = ab(repository, "--resume", "last")

    assert again.returncode == 3  # one pair decides structure only
    assert ": warm-up 1, new" in again.stderr
    assert len(KeptRuns.open(experiment(repository))) == 4


def test_a_killed_experiment_is_gone_on_with(repository: Path, words: list[str]) -> None:
    _make_hang(repository)

    with started([*words, "--runs", "1", "--", "-b", "cpu", "bench.py"], repository) as running:
        wait_for_text(running, ": warm-up 1, new")
        _who_hangs(repository)
        running.kill()
        ended(running)
    assert (experiment(repository) / "base-tree").exists()
    (repository / "go").write_text("")  # the abandoned run can end

    again = ab(repository, "--resume", str(experiment(repository)))

    assert again.returncode == 3
    assert worktrees(repository) == 1
    assert not (experiment(repository) / "base-tree").exists()
    assert len(KeptRuns.open(experiment(repository))) == 4


def test_two_at_once_take_turns(repository: Path, words: list[str]) -> None:
    _make_hang(repository)

    command = [*words, "--runs", "1", "--", "-b", "cpu", "bench.py"]
    with started(command, repository) as first:
        wait_for_text(first, ": warm-up 1, new")
        _who_hangs(repository)
        with started(command, repository) as second:
            wait_for_text(second, "waiting for the measurement of another process to end")
            (repository / "go").write_text("")
            codes = ended(first)[0], ended(second)[0]

    assert codes == (3, 3)
    assert worktrees(repository) == 1
    folders = list((repository / ".proton" / "ab").glob("*/"))
    assert [len(KeptRuns.open(folder)) for folder in folders] == [4, 4]


def test_one_experiment_is_run_by_one_process(repository: Path, words: list[str]) -> None:
    _make_hang(repository)

    with started([*words, "--runs", "1", "--", "-b", "cpu", "bench.py"], repository) as running:
        wait_for_text(running, ": warm-up 1, new")
        _who_hangs(repository)
        other = ab(repository, "--resume", "last")
        (repository / "go").write_text("")
        code, _, _ = ended(running)

    assert other.returncode == 2
    assert code == 3


def test_a_full_disk_under_a_run_is_an_error_of_its_side(repository: Path) -> None:
    (repository / "kernels.py").write_text(
        "import os, resource, sys\n"
        "def work():\n"
        "    if os.path.exists('full'):\n"
        "        sys.dont_write_bytecode = True\n"  # it leaves half a file where a disk is full
        "        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
    )
    (repository / "full").touch()

    done = ab(repository, "--runs", "1", "--", "bench.py")

    assert done.returncode == 2
    assert "new (working tree) of bench.py" in done.stderr
    (repository / "full").unlink()
    again = ab(repository, "--resume", "last")
    assert again.returncode == 3, again.stderr
    assert ": warm-up 1, new" in again.stderr


def test_a_full_disk_before_the_first_run_leaves_nothing_behind(repository: Path) -> None:
    (repository / "kernels.py").write_text(f"{WORK}\n")
    limited = (
        "import resource, sys\n"
        "sys.dont_write_bytecode = True\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "from proton_bench.cli import main\n"
        "sys.exit(main(['ab', '--runs', '1', '--', '-b', 'cpu', 'bench.py']))\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", limited], cwd=repository, capture_output=True, text=True
    )

    assert done.returncode == 74, done.stderr
    assert worktrees(repository) == 1
    assert not (experiment(repository) / "manifest.json").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--base-ref", "nothing", "--", "bench.py"), "'nothing'"),
        (("--", "nothing.py"), "'nothing.py'"),
        (("--base", "bench.py", "--base-ref", "HEAD", "--", "bench.py"), "--base CMD"),
        (("--resume", "last"), "there is no experiment in"),
        (("--resume", "."), "has no experiment"),
        (("--resume", "last", "--runs", "3"), "leave the other options out"),
        (("--resume", "last", "-t", "5%"), "leave the other options out"),
        (("--base-ref", "", "--", "bench.py"), "--base-ref '' is not a revision"),
        (("--base", "", "--", "bench.py"), "nothing to run"),
        (("--base", "'bench.py", "--", "bench.py"), "is not a command"),
    ],
)
@pytest.mark.usefixtures("repository")
def test_wrong_usage_is_reported_before_anything_runs(
    proton_here: Proton, given: tuple[str, ...], said: str
) -> None:
    done = proton_here("ab", *on_cpu(given))

    assert done.returncode == 2
    assert said in done.stderr
    assert "run 1 of" not in done.stderr


def _make_hang(repository: Path) -> None:
    """Have the first run of the working tree wait."""
    (repository / "kernels.py").write_text(HANGS)
    (repository / "hang").touch()
    os.mkfifo(repository / "who")
    os.mkfifo(repository / "go")


def _who_hangs(repository: Path) -> int:
    """Wait until a run waits and return its number."""
    return int((repository / "who").read_text())
