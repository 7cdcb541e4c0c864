from __future__ import annotations

from pathlib import Path

import pytest

from proton_bench.errors import UsageError
from proton_bench.recording.session.output_name import read_name


def test_a_bare_name_writes_both_formats_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    output = read_name("x")

    assert output.name == str(tmp_path / "x")
    assert output.formats == ("proton", "hatchet")


@pytest.mark.parametrize("suffix", ["proton", "hatchet", "hatchet_msgpack", "chrome_trace"])
def test_a_known_suffix_writes_just_that_format(suffix: str) -> None:
    output = read_name(f"runs/x.{suffix}", folder="/data")

    assert (output.name, output.formats) == ("/data/runs/x", (suffix,))


def test_a_trace_is_written_in_the_small_format_and_printed_in_upstreams() -> None:
    assert read_name("x", data="trace").formats == ("proton", "perfetto")
    assert read_name("-", data="trace").formats == ("chrome_trace",)
    assert read_name("x.pftrace", data="trace").formats == ("perfetto",)


@pytest.mark.parametrize(
    ("mode", "data", "formats"),
    [
        ("periodic_flushing", "tree", ("hatchet",)),
        ("periodic_flushing", "trace", ("chrome_trace",)),
        ("replay:file=x+periodic_flushing:interval=1:format=proton", "tree", ("proton",)),
    ],
)
def test_all_phases_have_the_format_of_periodic_flushing(
    mode: str, data: str, formats: tuple[str, ...]
) -> None:
    assert read_name("x", data=data, mode=mode).formats == formats


def test_an_unknown_suffix_is_part_of_the_name() -> None:
    assert read_name("model.v2", folder="/data").name == "/data/model.v2"


def test_the_rank_and_the_tag_stand_before_the_suffix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")

    assert read_name("x.proton", tag=".gw0", folder="/data").name == "/data/x.rank1.gw0"


@pytest.mark.parametrize("text", ["", "-"])
def test_stdout_gets_text(text: str) -> None:
    assert (read_name(text).name, read_name(text).formats) == (text, ("hatchet",))


@pytest.mark.parametrize("text", ["runs/", ".", "runs/.."])
def test_a_folder_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        read_name(text)
