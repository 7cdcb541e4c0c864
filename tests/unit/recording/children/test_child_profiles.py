"""Sessions that write other processes' recordings along with their own."""

from __future__ import annotations

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
from proton_bench.recording.session.options import SessionOptions
from proton_bench.recording.session.recording import Session, open_session


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
