"""Other formats of what a session recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import proton_bench
from proton_bench.errors import OutputError, ProfileFormatError, UsageError
from proton_bench.formats import limits
from proton_bench.formats.native.file import NativeFile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.recording.session.conversion import PhaseConverter, decode_tree
from proton_bench.recording.session.session import find_session


def test_limits_of_files_do_not_hold_for_what_this_process_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    builder = ProfileBuilder()
    builder.add(0, "scope", metrics={"time (ns)": 5})
    content = NativeFile().encode(builder.build())
    monkeypatch.setattr(limits, "_FREE_BYTES", -1e9)

    with pytest.raises(ProfileFormatError):
        NativeFile().decode(content, "x")
    assert decode_tree(content, "x").name(1) == "scope"


class Written:
    """A session that wrote one phase."""

    def __init__(self) -> None:
        self.phases = [3]

    def take_written(self) -> list[int]:
        phases, self.phases = self.phases, []
        return phases


@pytest.mark.parametrize("error", [OutputError("full"), ImportError("numpy is gone")])
def test_a_phase_that_cannot_be_converted_stays_and_is_an_error_at_the_end(
    tmp_path: Path, error: Exception
) -> None:
    (tmp_path / "x.part_3.proton").write_bytes(b"kept")

    def fail(file: Path) -> None:
        raise error

    convert: Callable[[Path], None] = fail
    converter = PhaseConverter(Written(), convert, str(tmp_path / "x"))

    with pytest.raises(OutputError):
        converter.end()
    assert (tmp_path / "x.part_3.proton").read_bytes() == b"kept"


def test_a_start_that_fails_leaves_no_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROTON_BENCH_PARTIAL_INTERVAL_S", "often")

    with pytest.raises(UsageError):
        proton_bench.start("x", backend="cpu")
    assert [number for number in range(64) if find_session(number)] == []
    assert list(tmp_path.iterdir()) == []
