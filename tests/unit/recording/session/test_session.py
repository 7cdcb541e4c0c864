"""The functions that scripts call, by session number."""

from __future__ import annotations

import asyncio
import importlib.machinery
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from capture_fixtures import FakeBackends, names, read_tree

import proton_bench as proton
from proton_bench.errors import OutputError, SessionError
from proton_bench.flags import flags
from proton_bench.recording.session.options import SessionOptions
from proton_bench.recording.session.recording import find_session, live_sessions, open_session


@pytest.fixture(autouse=True)
def in_empty_folder(
    tmp_path: Path, fakes: FakeBackends, monkeypatch: pytest.MonkeyPatch
) -> FakeBackends:
    monkeypatch.chdir(tmp_path)
    return fakes


def test_default_name_is_proton_in_the_current_folder(tmp_path: Path) -> None:
    proton.start()
    proton.finalize()

    assert [path.name for path in tmp_path.iterdir()] == ["proton.hatchet"]
    assert proton.DEFAULT_PROFILE_NAME == "proton"


def test_output_stays_where_the_session_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    proton.start("x")
    monkeypatch.chdir(tmp_path / "elsewhere")
    proton.finalize()

    assert (tmp_path / "x.hatchet").exists()


def test_ids_increase_by_one() -> None:
    first = proton.start("a")
    second = proton.start("b")
    proton.finalize()
    third = proton.start("c")

    assert first is not None
    assert (second, third) == (first + 1, first + 2)


def test_none_means_all_sessions() -> None:
    ids = [proton.start("a"), proton.start("b")]

    proton.deactivate()
    paused = [session.is_active for session in live_sessions()]
    proton.activate()
    active = [session.is_active for session in live_sessions()]
    proton.finalize()

    assert len(ids) == 2
    assert paused == [False, False]
    assert active == [True, True]
    assert not flags.profiling_on


@pytest.mark.parametrize("function", [proton.activate, proton.deactivate])
@pytest.mark.parametrize("number", [10**6, -1, "0"])
def test_unknown_session_is_named_with_the_live_ones(function: Any, number: Any) -> None:
    known = proton.start("a")

    with pytest.raises(SessionError, match=f"initialized: {number}; live sessions: {known}"):
        function(number)


@pytest.mark.parametrize("number", [10**6, -1])
def test_finalizing_a_session_that_never_was_does_nothing(number: int) -> None:
    known = proton.start("a")

    proton.finalize(number)

    assert find_session(known) is not None


def test_finalizing_twice_does_nothing(tmp_path: Path) -> None:
    session = proton.start("a")
    proton.finalize(session)
    (tmp_path / "a.hatchet").unlink()

    proton.finalize(session)
    proton.finalize()

    assert list(tmp_path.iterdir()) == []


def test_unknown_output_format_leaves_the_session_live() -> None:
    session = proton.start("a")

    with pytest.raises(ValueError, match="chrome_trace needs a timeline"):
        proton.finalize(session, "chrome_trace")

    assert [each.id for each in live_sessions()] == [session]


def test_one_session_that_cannot_be_written_does_not_lose_the_others(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    proton.start("gone/a")
    proton.start("b")
    (tmp_path / "gone").rmdir()

    with pytest.raises(OutputError):
        proton.finalize()

    assert [path.name for path in tmp_path.iterdir()] == ["b.hatchet"]
    assert live_sessions() == []


@pytest.mark.parametrize("value", ["1", "on", "TRUE"])
def test_environment_disables_profiling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.delitem(sys.modules, "triton.knobs", raising=False)
    monkeypatch.setenv("TRITON_PROTON_DISABLE", value)

    session = proton.start("a", context="not looked at")
    proton.activate(session)
    proton.deactivate(session)
    proton.finalize(session)

    assert session is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("disable", [True, False])
def test_knob_of_triton_wins_over_its_variable(
    monkeypatch: pytest.MonkeyPatch, *, disable: bool
) -> None:
    knobs: Any = types.ModuleType("triton.knobs")
    knobs.__spec__ = importlib.machinery.ModuleSpec("triton.knobs", None)
    knobs.proton = types.SimpleNamespace(disable=disable)
    monkeypatch.setitem(sys.modules, "triton.knobs", knobs)
    monkeypatch.setenv("TRITON_PROTON_DISABLE", str(not disable))

    assert (proton.start("a") is None) == disable


# -- the decorator -------------------------------------------------------------------------------
def test_decorated_function_records_each_of_its_calls(tmp_path: Path) -> None:
    @proton.profile(name="calls", context="shadow")
    def add(a: int, b: int) -> int:
        with proton.scope("inside", {"n": 1}):
            return a + b

    with proton.scope("outside", {"n": 1}):
        pass
    results = [add(1, 2), add(3, b=4)]
    with proton.scope("outside", {"n": 1}):
        pass
    proton.finalize()

    tree = read_tree(tmp_path / "calls.hatchet")
    assert results == [3, 7]
    assert names(tree) == ["inside"]
    assert tree["children"][0]["metrics"]["n"] == 2


def test_decorator_without_options_uses_the_default_name(tmp_path: Path) -> None:
    @proton.profile
    def run() -> None:
        """Do nothing."""

    run()
    proton.finalize()

    assert run.__doc__ == "Do nothing."
    assert (tmp_path / "proton.hatchet").exists()


def test_function_that_raises_leaves_its_session_paused() -> None:
    @proton.profile(name="a")
    def fail() -> None:
        raise KeyError("no")

    with pytest.raises(KeyError):
        fail()

    assert [session.is_active for session in live_sessions()] == [False]


def test_recursive_calls_are_recorded_to_the_end(tmp_path: Path) -> None:
    @proton.profile(name="a")
    def descend(levels: int) -> None:
        if levels:
            descend(levels - 1)
        with proton.scope(f"level{levels}", {"n": 1}):
            pass

    descend(2)
    proton.finalize()

    assert names(read_tree(tmp_path / "a.hatchet")) == ["level0", "level1", "level2"]


def test_function_may_finalize_its_own_session(tmp_path: Path) -> None:
    @proton.profile(name="a")
    def run() -> None:
        proton.finalize()

    run()

    assert (tmp_path / "a.hatchet").exists()


def test_decorated_coroutine_is_recorded_until_it_returns(tmp_path: Path) -> None:
    @proton.profile(name="a")
    async def work() -> int:
        await asyncio.sleep(0)
        with proton.scope("inside", {"n": 1}):
            return 7

    assert asyncio.run(work()) == 7
    proton.finalize()

    assert names(read_tree(tmp_path / "a.hatchet")) == ["inside"]


def test_disabled_decorator_only_calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = proton.start("other")
    monkeypatch.setenv("TRITON_PROTON_DISABLE", "1")

    assert proton.profile(lambda: 5)() == 5

    assert other is not None
    assert [session.is_active for session in live_sessions()] == [True]


def test_decorator_refuses_unknown_options_at_once() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'nam'"):
        proton.profile(nam="a")  # type: ignore[call-overload]


# -- under the proton command --------------------------------------------------------------------
@pytest.fixture
def command_line(monkeypatch: pytest.MonkeyPatch) -> int:
    """A session that the command opened; its number is taken for 0."""
    session = open_session(SessionOptions(name="command"))
    monkeypatch.setattr("proton_bench.recording.session.session._COMMAND_LINE_SESSION", session.id)
    flags.command_line = True
    return session.id


@pytest.mark.parametrize("name", [None, "command"])
def test_the_script_shares_and_does_not_end_the_commands_session(
    command_line: int, tmp_path: Path, name: str | None
) -> None:
    session = proton.start(name, backend="not looked at")
    proton.finalize(session)
    proton.finalize()

    assert session == command_line
    assert find_session(command_line) is not None
    assert list(tmp_path.iterdir()) == []


def test_a_name_makes_a_session_beside_the_commands(command_line: int, tmp_path: Path) -> None:
    whole = find_session(command_line)
    assert whole is not None

    for window in range(2):
        (tmp_path / f"window{window}").mkdir()
        mine = proton.start(f"window{window}/mine")
        assert mine not in (None, command_line)
        with proton.scope("batch"):
            pass
        proton.deactivate(session=mine)
        assert whole.is_active
        proton.finalize(session=mine)
    proton.start("left")
    proton.finalize()

    assert whole.is_live
    assert {path.name for path in tmp_path.glob("**/*.hatchet")} == {"mine.hatchet", "left.hatchet"}
    assert names(proton.data.get(command_line)[0]) == ["batch"]


@pytest.mark.parametrize(
    "options", [{"name": "x", "mode": "unknown"}, {"name": "no/such/folder/x"}]
)
def test_the_commands_session_records_where_no_other_can_be_made(
    command_line: int, options: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    assert proton.start(**options) == command_line
    assert options["name"] in capfd.readouterr().err


def test_script_may_pause_the_commands_session(command_line: int) -> None:
    session = find_session(command_line)
    assert session is not None

    proton.deactivate(proton.start())
    paused = session.is_active
    proton.activate()

    assert not paused
    assert session.is_active


def test_start_resumes_the_commands_session(command_line: int) -> None:
    session = find_session(command_line)
    assert session is not None

    for _ in range(2):
        mine = proton.start()
        windows = [session.is_active]
        proton.deactivate(mine)
        proton.finalize(mine)
        windows.append(session.is_active)

        assert windows == [True, False]


def test_decorated_function_does_not_pause_the_commands_session(command_line: int) -> None:
    session = find_session(command_line)

    proton.profile(lambda: None)()

    assert session is not None
    assert session.is_active


def test_a_decorated_function_may_have_a_session_beside_the_commands(command_line: int) -> None:
    proton.profile(lambda: None, name="mine")()

    (whole, mine) = live_sessions()
    assert whole.is_active
    assert not mine.is_active


def test_decorated_function_does_not_resume_the_commands_session(command_line: int) -> None:
    session = find_session(command_line)
    proton.deactivate(command_line)

    proton.profile(lambda: None)()

    assert session is not None
    assert not session.is_active


def test_a_session_loads_what_threads_use_beside_forks() -> None:
    needed = "{'proton_bench.recording.context.scope', 'proton_bench.recording.context.state'}"
    loaded = "import sys, proton_bench.recording.session.session"
    code = f"{loaded}; sys.exit(not {needed} <= sys.modules.keys())"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
