"""The recorder of real streams works on the double, and its streams can be replayed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fakes import stream_file
from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles

__all__ = ["cupti_doubles"]

SCRIPT = Path(__file__).parent / "record_streams.py"


def record(folder: Path, cupti: Path, workload: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), str(folder), "--cupti", str(cupti)]
    command += ["--workload", workload]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def recorded(cupti_doubles: Doubles, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    done = record(folder, cupti_doubles.cupti, "double")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "double.cupti"


def test_a_recording_holds_every_callback_and_record(recorded: Path) -> None:
    stream = stream_file.read_stream(recorded)

    assert stream.fact("workload") == "double"
    assert stream.fact("cupti_version") == "26"
    assert stream.kernels() == {"kernel_0": 11, "kernel_1": 5}
    launches = [call for call in stream.calls() if call.symbol is not None]
    assert len(launches) == 2 * 11
    failed = [call for call in launches if call.fields["result"]]
    assert [(call.symbol, call.fields["result"]) for call in failed] == [("refused", 1)]
    assert [call.text for call in stream.calls() if call.text] == ["launches", "range"]


def test_the_graph_of_a_recording_is_complete(recorded: Path) -> None:
    stream = stream_file.read_stream(recorded)
    resources = [call for call in stream.calls() if call.fields["domain"] == stream_file.RESOURCE]

    clones = [call.fields for call in resources if call.fields["cbid"] == 20]
    replays = [record for record in stream.records() if record.kind == 10 and record.u32(156)]
    assert {clone["node"] for clone in clones} == {record.u64(144) for record in replays}
    assert len(replays) == 6


REPLAY = """
import sys
from pathlib import Path
sys.path[:0] = [{fakes!r}, {recorder!r}]
import doubles, worker
recording = worker.Recording(sys.argv[1], sys.argv[2], (10, 1, 2, 22))
recording.fact("workload", "replay")
with recording() as mark:
    doubles.Cupti(sys.argv[2]).replay_stream(Path(sys.argv[3]), mark)
recording.write(sys.argv[4])
"""


def test_a_replayed_stream_is_the_recorded_one(
    recorded: Path, cupti_doubles: Doubles, tmp_path: Path
) -> None:
    sys.path.insert(0, str(SCRIPT.parent))
    import record_streams

    again = tmp_path / "again.cupti"
    code = REPLAY.format(fakes=str(SCRIPT.parent), recorder=str(SCRIPT.parent / "cupti_recorder"))
    recorder = record_streams.build(tmp_path)
    command = [sys.executable, "-c", code, str(recorder), str(cupti_doubles.cupti)]
    subprocess.run([*command, str(recorded), str(again)], check=True)

    first, second = stream_file.read_stream(recorded), stream_file.read_stream(again)
    assert [record.data for record in second.records() if record.kind != 10] == [
        record.data for record in first.records() if record.kind != 10
    ]
    assert second.kernels() == first.kernels()
    assert [_facts(call) for call in second.calls()] == [_facts(call) for call in first.calls()]


def _facts(call: stream_file.Call) -> dict[str, object]:
    left_out = {"time_ns", "function", "symbol", "text", "stream_id"}
    fields = {key: value for key, value in call.fields.items() if key not in left_out}
    return {**fields, "names": (call.function, call.symbol, call.text)}


def test_a_library_that_refuses_is_named(cupti_doubles: Doubles, tmp_path: Path) -> None:
    done = record(tmp_path, tmp_path / "libcupti.so", "double")

    assert done.returncode == 1
    assert "FAIL double" in done.stdout
    assert str(tmp_path / "libcupti.so") in done.stdout


@pytest.mark.parametrize("cut", [0, 7, 20, -1])
def test_a_cut_stream_is_refused(recorded: Path, tmp_path: Path, cut: int) -> None:
    path = tmp_path / "cut.cupti"
    path.write_bytes(recorded.read_bytes()[:cut])

    with pytest.raises(ValueError, match=r"is not a recorded stream|is cut"):
        stream_file.read_stream(path)
