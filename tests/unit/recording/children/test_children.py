from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from capture_fixtures import FakeBackends, names, read_tree

import proton_bench as proton
from proton_bench.errors import OutputError, SessionError
from proton_bench.formats.registry import read_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.recording.children.child_profiles import AddedProfile
from proton_bench.recording.children.children import (
    AUTOSTART,
    ChildOptions,
    child_name,
    files_of_children,
    follow_children,
    forget_children,
)
from proton_bench.recording.gpu.nvidia import strangers
from proton_bench.recording.session.options import SessionOptions
from proton_bench.recording.session.recording import Session, open_session

OPTIONS = ChildOptions(name="x", folder="/data", formats=("proton",), backend="cpu", mode="a:b")


def test_options_survive_the_way_through_the_environment() -> None:
    text = OPTIONS.to_json()

    assert text.isascii()
    assert ChildOptions.from_json(text) == OPTIONS


@pytest.mark.parametrize("text", ["[]", "{}", '{"formats": [], "unheard_of": 1}'])
def test_options_of_another_release_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="unknown options"):
        ChildOptions.from_json(text)


def test_options_that_were_cut_off_are_refused() -> None:
    with pytest.raises(json.JSONDecodeError):
        ChildOptions.from_json("{")


def test_following_puts_one_folder_in_front_and_forgetting_takes_it_away() -> None:
    environ = {"PYTHONPATH": "/one:/two"}

    follow_children(OPTIONS, environ)
    follow_children(OPTIONS, environ)
    folder, *others = environ["PYTHONPATH"].split(":")

    assert (Path(folder) / "sitecustomize.py").is_file()
    assert others == ["/one", "/two"]
    assert ChildOptions.from_json(environ[AUTOSTART]) == OPTIONS
    forget_children(environ)
    assert environ == {"PYTHONPATH": "/one:/two"}


def test_an_environment_without_a_path_gets_none_back() -> None:
    environ: dict[str, str] = {}

    follow_children(OPTIONS, environ)
    forget_children(environ)

    assert environ == {}


def test_a_child_is_named_by_its_process_or_by_its_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ChildOptions(name="x", folder=str(tmp_path), formats=("proton",))
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")

    assert child_name(options, is_rank=True) == str(tmp_path / "x.rank3")
    assert child_name(options, is_rank=False) == str(tmp_path / f"x.rank3.pid{os.getpid()}")
    (tmp_path / "x.rank3.proton").touch()
    assert child_name(options, is_rank=True) == str(tmp_path / f"x.rank3.pid{os.getpid()}")


def test_files_of_children_are_those_of_this_run(tmp_path: Path) -> None:
    ours = ["x.pid12.proton", "x.rank0.proton", "x.rank1.pid9.part_2.hatchet"]
    others = [
        "x.proton",
        "x.pid12.partial.proton",
        "x.pid12.json",
        "xx.pid1.proton",
        "x.pid.proton",
    ]
    for name in [*ours, *others, "x.pid1.proton"]:
        (tmp_path / name).touch()
    os.utime(tmp_path / "x.pid1.proton", (1, 1))
    started_ns = (tmp_path / "x.proton").stat().st_mtime_ns

    found = files_of_children(str(tmp_path / "x"), ("proton", "hatchet"), started_ns)

    assert [os.path.basename(path) for path in found] == ours
    alone = files_of_children(str(tmp_path / "x"), ("proton",), started_ns, has_own=False)
    assert [os.path.basename(path) for path in alone] == [
        "x.pid12.proton",
        "x.proton",
        "x.rank0.proton",
    ]
    left = files_of_children(str(tmp_path / "x"), (), started_ns, killed=True)
    assert [os.path.basename(path) for path in left] == ["x.pid12.partial.proton"]
    assert files_of_children("/no/such/folder/x", ("proton",), 0) == []


class ChildProfile:
    """A profile of another process, and whether its files may go."""

    def __init__(self, value: object = 2) -> None:
        self.is_released = False
        builder = ProfileBuilder()
        builder.add(0, "shared", FrameKind.SCOPE, metrics={"n": value})
        builder.add(0, "other", FrameKind.SCOPE)
        profile = builder.build(provenance={"pid": 7, "worker": "gw0"}, dropped={"full": 3})
        self.entry = AddedProfile(profile, "beside/run.parts", self._release)

    def _release(self) -> None:
        self.is_released = True


def opened(path: Path) -> Session:
    session = open_session(SessionOptions(name=path, backend="gpu"))
    with proton.scope("shared", {"n": 1}):
        pass
    return session


def shown(profile: Profile) -> list[str]:
    return [profile.name(row) for row in range(1, len(profile))]


def test_added_rows_are_part_of_the_profile_and_of_every_file(
    tmp_path: Path, fakes: FakeBackends, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    session, child = opened(tmp_path / "x"), ChildProfile()

    session.add_profile(child.entry)
    inside = session.profile()
    paths = session.finalize(("proton", "hatchet"))

    written = read_profile(paths[0])
    assert shown(inside) == shown(written) == ["shared", "other"]
    assert written.column("n").get(1) == 3
    assert written.dropped == {"full": 3}
    assert [part.get("worker") for part in written.provenance["parts"]] == [None, "gw0"]
    assert "end_time_ns" in written.provenance
    assert names(read_tree(paths[1])) == ["shared", "other"]
    assert child.is_released


def test_counts_include_what_was_added(tmp_path: Path, fakes: FakeBackends) -> None:
    session = opened(tmp_path / "x")
    before = session.counts()

    session.add_profile(ChildProfile().entry)

    after = session.counts()
    assert after["ranges"] - before["ranges"] == 2
    assert after["dropped"] - before["dropped"] == 3


def test_added_rows_stand_in_the_current_phase_only(tmp_path: Path, fakes: FakeBackends) -> None:
    session = opened(tmp_path / "x")
    proton.data.advance_phase(session.id)

    session.add_profile(ChildProfile().entry)
    paths = session.finalize(("proton",))

    assert [shown(read_profile(path)) for path in paths] == [["shared"], ["shared", "other"]]


def test_added_profile_goes_to_stdout(
    tmp_path: Path, fakes: FakeBackends, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    session, child = open_session(SessionOptions(name="-", backend="gpu")), ChildProfile()

    session.add_profile(child.entry)
    session.finalize(("hatchet",))

    assert b'"other"' in capsysbinary.readouterr().out
    assert child.is_released


def test_a_file_that_cannot_be_written_keeps_what_was_added(
    tmp_path: Path, fakes: FakeBackends
) -> None:
    session, child = opened(tmp_path / "x"), ChildProfile()
    session.add_profile(child.entry)
    (tmp_path / "x.proton").mkdir()

    with pytest.raises(OutputError, match=r"other processes are kept: beside/run\.parts"):
        session.finalize(("proton",))

    assert not child.is_released


def test_metrics_that_do_not_fit_keep_what_was_added(tmp_path: Path, fakes: FakeBackends) -> None:
    session, child = opened(tmp_path / "x"), ChildProfile("text")
    session.add_profile(child.entry)

    with pytest.raises(OutputError, match=r"metric 'n' holds .* are kept"):
        session.finalize(("proton",))

    assert not child.is_released


def test_nothing_is_added_to_a_finalized_session(tmp_path: Path, fakes: FakeBackends) -> None:
    session = opened(tmp_path / "x")
    session.finalize(())

    with pytest.raises(SessionError, match="not been initialized"):
        session.add_profile(ChildProfile().entry)


_NOBODY = 1 << 30


def test_this_process_its_ancestors_and_its_descendants_are_not_strangers() -> None:
    waiting = [sys.executable, "-c", "input()"]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE) as child:
        assert strangers([os.getpid(), os.getppid(), child.pid, 1]) == []
        child.communicate()


def test_a_process_that_is_not_seen_here_is_left_out() -> None:
    assert strangers([_NOBODY]) == []


def test_a_process_that_descends_from_another_one_is_a_stranger() -> None:
    asks = (
        "import sys; from proton_bench.recording.gpu.nvidia import strangers;"
        "print(strangers(map(int, sys.argv[1:])))"
    )
    waiting = [sys.executable, "-c", "input()"]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE) as sibling:
        done = subprocess.run(
            [sys.executable, "-c", asks, str(sibling.pid), str(_NOBODY)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == f"[{sibling.pid}]"
        sibling.communicate()
