from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from proton_bench.errors import TargetFailedError, UsageError
from proton_bench.gate.bisect.history import Candidate
from proton_bench.gate.bisect.likeness import LoadedFiles
from proton_bench.gate.bisect.revisions import (
    can_matter,
    commits_between,
    differing_files,
    versions_between,
)
from proton_bench.gate.experiment.loaded import LoadedModule
from proton_bench.gate.experiment.processes.worktree import find_revision

ODD = 'an "odd"\tname\n.py'


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(folder: Path, title: str, *files: str) -> str:
    for name in files:
        with (folder / name).open("a") as stream:
            stream.write(f"{title}\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "--allow-empty", "-m", f"{title}\n\nMore of it.")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A line with a side branch that is merged: good, one, (side, other), merge, last."""
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, "good", "a.py")
    git(tmp_path, "tag", "good")
    commit(tmp_path, "one", "a.py", ODD)
    git(tmp_path, "switch", "-qc", "side")
    commit(tmp_path, "side", "b.py")
    git(tmp_path, "switch", "-q", "main")
    commit(tmp_path, "other", "c.py")
    git(tmp_path, "merge", "-q", "--no-ff", "-m", "merge", "side")
    commit(tmp_path, "last")
    # What a user may have set must not change what is read.
    git(tmp_path, "config", "log.showSignature", "true")
    git(tmp_path, "config", "color.ui", "always")
    git(tmp_path, "config", "log.decorate", "full")
    return tmp_path


def test_texts_that_are_not_utf8_can_be_written_as_json(repository: Path) -> None:
    commit(repository, "Gr\xf6sse", "a.py")
    git(repository, "config", "i18n.logOutputEncoding", "latin1")
    parent = git(repository, "rev-parse", "HEAD")
    tree = git(repository, "rev-parse", "HEAD^{tree}")
    who = "Zo\xeb <z@example.org> 1700000000 +0000"
    content = f"tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\n\nGr\xf6sser\n"
    written = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--stdin"],
        cwd=repository,
        input=content.encode("latin-1"),
        check=True,
        capture_output=True,
    )
    odd = written.stdout.decode().strip()
    ends = [find_revision(each, str(repository)) for each in ("good", odd)]

    history = commits_between(ends[0], ends[1], first_parent=False)

    before, last = history.revisions[-2:]
    assert before.title == "Gr\xf6sse"
    assert (last.title, last.author) == ("Gr\\udcf6sser", "Zo\\udceb")


def test_commits_have_their_parents_authors_and_files(repository: Path) -> None:
    ends = [find_revision(each, str(repository)) for each in ("good", "main")]

    history = commits_between(ends[0], ends[1], first_parent=False)

    found = {each.title: each for each in history.revisions}
    assert set(found) == {"one", "side", "other", "merge", "last"}
    titles = [each.title for each in history.revisions]
    parents = {each.title: {titles[at] for at in each.parents} for each in history.revisions}
    assert parents == {
        "one": set(),
        "side": {"one"},
        "other": {"one"},
        "merge": {"side", "other"},
        "last": {"merge"},
    }
    assert found["one"].files == {"a.py", ODD}
    assert found["merge"].files == {"b.py"}
    assert found["last"].files == frozenset()
    assert found["one"].author == "Ada"
    assert found["one"].date[:2] == "20"
    assert titles[-1] == "last"


def test_with_first_parent_a_merge_is_one_step(repository: Path) -> None:
    ends = [find_revision(each, str(repository)) for each in ("good", "main")]

    history = commits_between(ends[0], ends[1], first_parent=True)

    assert [each.title for each in history.revisions] == ["one", "other", "merge", "last"]
    assert [each.parents for each in history.revisions] == [(), (0,), (1,), (2,)]


@pytest.mark.parametrize(("good", "bad"), [("main", "good"), ("side", "main~2"), ("good", "good")])
def test_a_bad_revision_that_does_not_follow_the_good_one_is_wrong_usage(
    repository: Path, good: str, bad: str
) -> None:
    ends = [find_revision(each, str(repository)) for each in (good, bad)]

    with pytest.raises(UsageError):
        commits_between(ends[0], ends[1], first_parent=False)


def test_differing_files_are_those_of_both_directions(repository: Path) -> None:
    names = [find_revision(each, str(repository)).commit for each in ("good", "side")]

    assert differing_files(str(repository), *names) == {"a.py", "b.py", ODD}
    assert differing_files(str(repository), *names[::-1]) == {"a.py", "b.py", ODD}


@pytest.mark.parametrize(
    ("files", "is_built", "matters"),
    [
        ([], False, False),
        (["README.md", "docs/a.rst"], True, False),
        (["unused.py"], False, False),
        (["unused.py"], True, True),
        (["pkg/core.py"], False, True),
        (["src/installed/core.py"], False, True),
        (["core.py"], False, False),
        (["data.json"], False, True),
        (["kernel.cu", "README.md"], True, True),
        ([ODD], False, False),
    ],
)
def test_what_can_matter(files: list[str], is_built: bool, matters: bool) -> None:
    loaded = LoadedFiles("/repo")
    loaded.add(
        [
            LoadedModule("pkg.core", "/repo/pkg/core.py", "1"),
            LoadedModule("installed.core", "/env/site-packages/installed/core.py", ""),
            LoadedModule("core", "/elsewhere/core.py", "2"),
        ]
    )

    assert can_matter(files, loaded, is_built=is_built) is matters


def wheel(folder: Path, version: str) -> None:
    """Write the wheel of a package with one module."""
    info = f"kernels_of_test-{version}.dist-info"
    with zipfile.ZipFile(folder / f"kernels_of_test-{version}-py3-none-any.whl", "w") as file:
        file.writestr("kernels_of_test.py", f"VERSION = {version!r}\n")
        head = f"Metadata-Version: 2.1\nName: kernels-of-test\nVersion: {version}\n"
        file.writestr(f"{info}/METADATA", head)
        kind = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        file.writestr(f"{info}/WHEEL", kind)
        file.writestr(f"{info}/RECORD", "")


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes packages from, and nothing else."""
    for version in ("1.0", "1.9", "1.10", "2.0rc1", "2.0"):
        wheel(tmp_path, version)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("wheels")
def test_versions_of_a_package_are_in_their_own_order() -> None:
    history = versions_between("kernels_of_test", "1.0", "2.0")

    assert [each.name for each in history.revisions] == ["1.9", "1.10", "2.0rc1", "2.0"]
    assert [each.parents for each in history.revisions] == [(), (0,), (1,), (2,)]


@pytest.mark.usefixtures("wheels")
@pytest.mark.parametrize(("good", "bad"), [("2.0", "1.0"), ("1.0", "3.0"), ("1.9", "1.9")])
def test_unknown_versions_and_a_wrong_order_are_wrong_usage(good: str, bad: str) -> None:
    with pytest.raises(UsageError):
        versions_between("kernels_of_test", good, bad)


@pytest.mark.usefixtures("wheels")
@pytest.mark.parametrize("version", ["0.11.0", "3.0.0.post20240716052845"])
def test_a_version_is_shown_whole(version: str) -> None:
    candidate = Candidate(version, f"toolz {version}")

    assert (candidate.short, candidate.text) == (version, f"toolz {version}")


def test_a_commit_is_shown_by_the_beginning_of_its_hash() -> None:
    candidate = Candidate("1" * 40, "Read masks once")

    assert (candidate.short, candidate.text) == ("1" * 12, f"{'1' * 12} Read masks once")


def test_a_package_that_pip_does_not_find_fails_with_its_words() -> None:
    with pytest.raises(TargetFailedError) as caught:
        versions_between("kernels_of_test_2", "1.0", "2.0")

    assert caught.value.__notes__[0]


@pytest.mark.parametrize("name", ["", "--index-url=https://example.org"])
def test_an_option_is_no_package(name: str) -> None:
    with pytest.raises(UsageError):
        versions_between(name, "1", "2")
