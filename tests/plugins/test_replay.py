from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.recordings import write_recording

from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.plugin import Mode
from proton_bench.plugin.backend import assign_modes, parse_mode
from proton_bench.recording.session.session import Session, SessionOptions, open_session
from proton_bench_plugins import replay

native = pytest.importorskip("proton_bench._native")

KERNELS = {1: ("matmul", 100), 2: ("softmax", 50), 3: ("matmul", 300)}


def kernel(correlation_id: int, name: str, duration_ns: int) -> dict[str, object]:
    return {
        "event": "kernel",
        "correlation_id": correlation_id,
        "name": name,
        "start_ns": 1000,
        "end_ns": 1000 + duration_ns,
        "device_kind": "CUDA",
        "device_index": 0,
        "stream": 7,
    }


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Three launches, each with its kernel."""
    events: list[dict[str, object]] = []
    for number, (name, duration_ns) in KERNELS.items():
        events.append({"event": "launch", "correlation_id": number})
        events.append(kernel(number, name, duration_ns))
    path = tmp_path / "run.pbrecord"
    write_recording(path, events)
    return path


def mode_of(path: Path, pace: str = "all") -> Mode:
    return parse_mode(f"replay:file={path}:pace={pace}")


@pytest.fixture
def session(tmp_path: Path, recording: Path, request: pytest.FixtureRequest) -> Iterator[Session]:
    """Session over the recording, in the pace of the test's parameter."""
    mode = f"replay:file={recording}:pace={request.param}"
    session = open_session(SessionOptions(name=tmp_path / "out", backend="replay", mode=mode))
    yield session
    session.finalize(formats=())


def times(session: Session) -> dict[tuple[str, ...], int]:
    profile = session.profile()
    column = profile.columns.get("time (ns)")
    if column is None:
        return {}
    return {profile.path(row): column.get(row) for row in range(1, len(profile)) if column.get(row)}


@pytest.mark.parametrize("session", ["all"], indirect=True)
def test_a_recording_is_fed_as_fast_as_it_comes(session: Session) -> None:
    assert times(session) == {("matmul",): 400, ("softmax",): 50}


@pytest.mark.parametrize("session", ["manual"], indirect=True)
def test_launches_fed_by_hand_stand_under_the_scopes_of_the_caller(session: Session) -> None:
    with native.scope("first"):
        fed_first = replay.launch()
    with native.scope("rest"):
        fed_then = replay.launch(5)

    assert (fed_first, fed_then) == (1, 2)
    assert times(session) == {
        ("first", "matmul"): 100,
        ("rest", "softmax"): 50,
        ("rest", "matmul"): 300,
    }


def test_the_mode_of_the_backend_is_declared(recording: Path) -> None:
    (mode,) = assign_modes([replay.BACKEND], f"replay:file={recording}")

    assert mode.options == {"file": str(recording)}


def test_an_unknown_mode_option_is_named(recording: Path) -> None:
    with pytest.raises(UsageError, match="no option 'speed'; its options: file, pace"):
        assign_modes([replay.BACKEND], f"replay:file={recording}:speed=2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no file to replay; select it with the mode replay:file=PATH"),
        ("replay:file=/missing/run.pbrecord", "finds no file '/missing/run.pbrecord'"),
    ],
)
def test_a_missing_file_is_named(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        replay.BACKEND.open(parse_mode(text))


def test_an_unknown_pace_names_the_choices(recording: Path) -> None:
    with pytest.raises(UsageError, match="no pace 'slow'; choose from: all, manual"):
        replay.BACKEND.open(mode_of(recording, "slow"))


def test_a_corrupt_recording_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.pbrecord"
    path.write_bytes(b"PBRECORD" + b"\xff" * 20)

    with pytest.raises(ProfileFormatError, match=r"run\.pbrecord"):
        replay.BACKEND.open(mode_of(path)).start()


def test_launching_by_hand_needs_an_open_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_manual", [])

    with pytest.raises(UsageError, match="start a session with pace=manual first"):
        replay.launch()


def test_recorded_launches_say_how_busy_the_device_was(tmp_path: Path) -> None:
    path = tmp_path / "timed.pbrecord"
    events: list[dict[str, object]] = [
        {"event": "scope_enter", "name": "step"},
        {"event": "launch", "correlation_id": 1, "start_ns": 600},
        {"event": "launch", "correlation_id": 2, "start_ns": 1900},
        {"event": "scope_exit"},
        kernel(1, "matmul", 100),
        {**kernel(2, "ncclDevKernel_AllReduce", 0), "start_ns": 2000, "end_ns": 2300},
    ]
    write_recording(path, events)
    options = SessionOptions(name=tmp_path / "out", backend="replay", mode=f"replay:file={path}")

    session = open_session(options)
    profile = session.profile()
    session.finalize(formats=())

    whole, step = profile.device_use
    assert (whole.scope, step.scope) == (None, "step")
    assert (whole.busy_ns, whole.idle_ns, whole.waiting_ns) == (400, 400 + 900, 300)
    assert (whole.launches, whole.latency_sum_ns) == (2, 400 + 100)
    assert step.wall_ns == whole.wall_ns
    waiting = profile.column("waiting_kernel")
    assert [profile.name(row) for row in range(len(profile)) if waiting.get(row)] == [
        "ncclDevKernel_AllReduce"
    ]
