"""Another revision stands beside the working tree exactly as long as it is needed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from proton_bench.errors import InterruptedExperimentError, OutputError, UsageError
from proton_bench.gate.processes import (
    Launch,
    changed_files,
    find_revision,
    first_folders_of,
    interruptible,
    output_end,
    run_fresh,
    worktree,
)


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    for name in ("src/pkg/core.py", "python/__init__.py", "tool.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("first\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


def test_a_revision_is_found_from_a_folder_below(repository: Path) -> None:
    revision = find_revision("HEAD", str(repository / "src"))

    assert revision.root == str(repository)
    assert revision.commit == git(repository, "rev-parse", "HEAD").strip()
    assert revision.label == f"HEAD, {revision.commit[:10]}"


@pytest.mark.parametrize("ref", ["nothing", "--all", "HEAD:tool.py"])
def test_what_is_not_a_commit_is_reported(repository: Path, ref: str) -> None:
    with pytest.raises(UsageError, match=re.escape(ref)):
        find_revision(ref, str(repository))


def test_a_repository_without_a_commit_is_told_from_a_commit_that_was_not_fetched(
    repository: Path, tmp_path: Path
) -> None:
    git(tmp_path, "init", "-q")

    with pytest.raises(UsageError, match=r"has no commit yet; .* --base CMD"):
        find_revision("HEAD", str(tmp_path))
    with pytest.raises(UsageError, match="git fetch"):
        find_revision("main~9", str(repository))


def test_a_folder_without_a_repository_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"git rev-parse .* --base CMD"):
        find_revision("HEAD", str(tmp_path))


def test_variables_of_git_hooks_do_not_lead_elsewhere(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))

    assert find_revision("HEAD", str(repository)).root == str(repository)


def test_changed_files_are_those_of_commits_and_of_the_working_tree(repository: Path) -> None:
    revision = find_revision("HEAD", str(repository))
    (repository / "tool.py").write_text("second\n")
    git(repository, "commit", "-qam", "second")
    (repository / "src/pkg/core.py").write_text("third\n")

    assert changed_files(revision) == {"tool.py", "src/pkg/core.py"}


def test_the_tree_is_gone_after_the_block_whatever_happens(
    repository: Path, tmp_path: Path
) -> None:
    revision = find_revision("HEAD", str(repository))
    (repository / "tool.py").write_text("second\n")

    def use_it() -> None:
        with worktree(revision, tmp_path / "tree") as tree:
            (tree / "new.txt").write_text("x")
            assert (tree / "tool.py").read_text() == "first\n"
            raise KeyError

    with pytest.raises(KeyError):
        use_it()
    assert not (tmp_path / "tree").exists()
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert (repository / "tool.py").read_text() == "second\n"


def test_a_tree_that_a_killed_process_left_is_replaced(repository: Path, tmp_path: Path) -> None:
    revision = find_revision("HEAD", str(repository))
    left = worktree(revision, tmp_path / "tree")
    left.__enter__()
    (tmp_path / "tree" / "tool.py").write_text("edited")

    with worktree(revision, tmp_path / "tree") as tree:
        assert (tree / "tool.py").read_text() == "first\n"

    assert len(git(repository, "worktree", "list").splitlines()) == 1
    left.__exit__(None, None, None)


@pytest.mark.parametrize("is_link", [False, True])
def test_a_folder_that_is_no_worktree_of_ours_is_left_alone(
    repository: Path, tmp_path: Path, is_link: bool
) -> None:
    revision, mine = find_revision("HEAD", str(repository)), tmp_path / "mine"
    if is_link:
        git(repository, "worktree", "add", "--detach", str(mine))
        (tmp_path / "tree").symlink_to(mine)
    else:
        mine = tmp_path / "tree"
        mine.mkdir()
    (mine / "notes.txt").write_text("not saved")

    with pytest.raises(UsageError, match="exists"), worktree(revision, tmp_path / "tree"):
        pass

    assert (mine / "notes.txt").read_text() == "not saved"


def test_folders_of_sources_come_first_but_packages_do_not(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "tools").mkdir()
    (repository / "tools" / "x.py").write_text("")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "second")
    monkeypatch.setattr(sys, "path", [*sys.path, str(repository / "tools"), str(tmp_path)])
    revision = find_revision("HEAD", str(repository))

    with worktree(revision, tmp_path / "tree") as tree:
        first_folders = first_folders_of(revision, tree)
        of_script = first_folders_of(revision, tree, script=str(repository / "tools" / "x.py"))

    assert [os.path.relpath(each, tree) for each in first_folders] == [".", "src", "tools"]
    assert [os.path.relpath(each, tree) for each in of_script] == ["tools", ".", "src"]


def launch(folder: Path, code: str, *words: str) -> Launch:
    log = folder / "x.log"
    return Launch([sys.executable, "-c", code, *words], str(folder), log, os.environ)


def test_output_and_code_are_kept(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd()); print('said', file=sys.stderr); sys.exit(3)"
    ended = run_fresh(launch(tmp_path, code))

    assert ended.code == 3
    assert ended.text == "ended with exit code 3"
    assert sorted(output_end(tmp_path / "x.log").splitlines()) == sorted([str(tmp_path), "said"])


def test_a_signal_is_named(tmp_path: Path) -> None:
    ended = run_fresh(launch(tmp_path, "import os; os.kill(os.getpid(), 9)"))

    assert ended.text == "was ended by SIGKILL"


def test_only_the_end_of_long_output_is_shown(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(b"\xff" + b"".join(b"%d\n" % n for n in range(5000)))

    assert output_end(tmp_path / "x.log").splitlines() == [str(n) for n in range(4980, 5000)]
    assert not output_end(tmp_path / "nothing")


def test_an_interrupted_run_takes_its_children_with_it(tmp_path: Path) -> None:
    """Both wait for each other's end of a pipe, so only signals end them."""
    os.mkfifo(tmp_path / "never")
    code = (
        "import os, sys, subprocess\n"
        "child = subprocess.Popen([sys.executable, '-c', 'open(\"never\").read()'])\n"
        "open('child', 'w').write(str(child.pid))\n"
        "os.kill(int(sys.argv[1]), 15)\n"
        "open('never').read()\n"
    )

    with pytest.raises(InterruptedExperimentError) as caught, interruptible():
        run_fresh(launch(tmp_path, code, str(os.getpid())))

    assert caught.value.exit_code == 128 + signal.SIGTERM
    child = int((tmp_path / "child").read_text())
    _assert_ends(child)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_what_cannot_be_started_is_reported(tmp_path: Path) -> None:
    nothing = Launch(["/no/such/program"], "", tmp_path / "x.log", {})

    with pytest.raises(UsageError, match="cannot start"):
        run_fresh(nothing)


def test_a_log_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write"):
        run_fresh(Launch([sys.executable], "", tmp_path / "no" / "x.log", {}))


def _assert_ends(number: int) -> None:
    """Wait for the end of a process that is not a child; a zombie has ended."""
    try:
        descriptor = os.pidfd_open(number)
    except ProcessLookupError:
        return
    import select

    ready, _, _ = select.select([descriptor], [], [], 60)
    os.close(descriptor)
    assert ready
