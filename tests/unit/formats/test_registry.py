from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from reference.golden_profile import GOLDEN, golden_profile
from reference.profile_view import view

from proton_bench.errors import OutputError, PluginError, ProfileFormatError, UsageError
from proton_bench.formats import registry
from proton_bench.formats.registry import (
    FORMATS,
    find_format,
    formats,
    read_profile,
    register_format,
    write_profile,
)
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.profile import Profile


class CsvLike:
    """A format that a plugin may offer."""

    name = "names"
    suffixes = (".names",)

    def sniff(self, content: bytes) -> bool:
        return content.startswith(b"names:")

    def decode(self, content: bytes, source: str) -> Profile:
        builder = ProfileBuilder()
        for name in content.decode().removeprefix("names:").split(","):
            builder.add(0, name)
        return builder.build()

    def encode(self, profile: Profile) -> bytes:
        rows = ",".join(profile.name(row) for row in range(1, len(profile)))
        return f"names:{rows}".encode()


@pytest.fixture
def own_format(monkeypatch: pytest.MonkeyPatch) -> CsvLike:
    monkeypatch.setattr(registry, "_known", dict(registry._known))
    added = CsvLike()
    register_format(added)
    return added


def test_built_in_formats_are_these() -> None:
    assert FORMATS == ("proton", "hatchet", "hatchet_msgpack", "json")
    assert tuple(each.name for each in formats())[:4] == FORMATS


@pytest.mark.parametrize("name", FORMATS)
def test_suffix_picks_the_format(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{find_format(name).suffixes[0]}"

    notes = write_profile(golden_profile(), path)

    assert notes == ()
    assert path.read_bytes() == find_format(name).encode(golden_profile())
    assert len(read_profile(path)) in {6, 7}
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("suffix", ["", ".dat", ".json", ".proton"])
def test_content_decides_where_the_suffix_is_wrong(name: str, suffix: str, tmp_path: Path) -> None:
    right = tmp_path / f"x{find_format(name).suffixes[0]}"
    wrong = tmp_path / f"y{suffix}"
    write_profile(golden_profile(), right)
    write_profile(golden_profile(), wrong, format=name)

    assert view(read_profile(wrong)) == view(read_profile(right))


def test_partial_files_are_marked() -> None:
    content = (GOLDEN / "profile.hatchet").read_bytes()

    assert registry.decode_profile(content, "x.partial.hatchet").partial
    assert not registry.decode_profile(content, "x.hatchet").partial


def test_deep_profiles_come_with_a_note(tmp_path: Path) -> None:
    builder = ProfileBuilder()
    row = 0
    for _ in range(500):
        row = builder.add(row, "f")

    (note,) = write_profile(builder.build(), tmp_path / "x.hatchet")

    assert "500 levels deep: levels below 400" in note


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"", "x.hatchet", "empty"),
        (b"\0\1\2", "x.dat", "neither suffix nor content"),
        (b'{"traceEvents":[]}', "x.json", "timeline.*perfetto"),
        (b'{"traceEvents":[]}', "x.chrome_trace", "timeline.*perfetto"),
        (b'{"a":1}', "x.pftrace", "not a packet of a Perfetto trace"),
        (b"hello", "x.proton", "x.proton: "),
        (b"\xff" * 100, "x.hatchet", "x.hatchet: "),
    ],
)
def test_files_that_are_not_profiles_are_refused(
    content: bytes, name: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises(ProfileFormatError, match=message):
        read_profile(path)


@pytest.mark.parametrize("path", ["missing.proton", ".", "/dev/zero", "a\x00b", "n" * 5000])
def test_what_is_not_a_file_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="name a profile"):
        read_profile(path)


def test_hostile_file_names_are_escaped_in_messages(tmp_path: Path) -> None:
    path = tmp_path / "a\nb.proton"
    path.write_bytes(b"x")

    with pytest.raises(ProfileFormatError, match=r"a\\nb.proton: "):
        read_profile(path)


def test_unknown_format_names_the_choices(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'xml'; choose from: proton, hatchet"):
        write_profile(golden_profile(), tmp_path / "x", format="xml")
    with pytest.raises(UsageError, match=r"use one of \.proton, \.hatchet"):
        write_profile(golden_profile(), tmp_path / "x.xml")
    assert os.listdir(tmp_path) == []


def test_dash_writes_to_standard_output(capfdbinary: Any) -> None:
    write_profile(golden_profile(), "-", format="json")

    assert capfdbinary.readouterr().out == (GOLDEN / "profile.json").read_bytes()


@pytest.mark.parametrize("place", ["missing/x.proton", "/proc/x.proton", "a\x00b.proton"])
def test_unwritable_places_are_an_error(place: str, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write"):
        write_profile(golden_profile(), tmp_path / place)

    assert os.listdir(tmp_path) == []


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "x.proton").mkdir()

    with pytest.raises(OutputError, match="cannot write"):
        write_profile(golden_profile(), tmp_path / "x.proton")

    assert os.listdir(tmp_path) == ["x.proton"]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "x.json"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_profile(golden_profile(), pipe)
        content = os.read(reader, 1 << 20)
    finally:
        os.close(reader)

    assert content == (GOLDEN / "profile.json").read_bytes()
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["x.json"]


def test_a_link_to_a_device_is_left_alone(tmp_path: Path) -> None:
    link = tmp_path / "x.json"
    link.symlink_to(os.devnull)

    write_profile(golden_profile(), link)

    assert link.is_symlink()
    assert Path(os.devnull).is_char_device()


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.json").write_bytes(b"old")
    (tmp_path / "latest.json").symlink_to("runs/a.json")

    write_profile(golden_profile(), tmp_path / "latest.json")

    assert (tmp_path / "latest.json").is_symlink()
    content = (tmp_path / "runs" / "a.json").read_bytes()
    assert content == (GOLDEN / "profile.json").read_bytes()
    assert os.listdir(tmp_path / "runs") == ["a.json"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.proton"
    path.write_bytes(b"old")
    program = (
        "import sys\n"
        "from proton_bench.errors import OutputError\n"
        "from proton_bench.formats.registry import read_profile, write_profile\n"
        "try: write_profile(read_profile(sys.argv[1]), sys.argv[2])\n"
        "except OutputError as error: print(error)\n"
    )

    done = subprocess.run(
        [sys.executable, "-B", "-c", program, str(GOLDEN / "profile.proton"), str(path)],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )

    assert os.strerror(errno.EFBIG) in done.stdout
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x.proton"]


def test_formats_of_plugins_are_used(own_format: CsvLike, tmp_path: Path) -> None:
    path = tmp_path / "x.names"

    write_profile(golden_profile(), path)
    register_format(own_format)

    assert read_profile(path).name(1) == "test_step[8]"
    assert find_format("names") is own_format


@pytest.mark.parametrize(
    ("name", "suffixes"), [("proton", (".new",)), ("new", (".hatchet",)), ("names", (".other",))]
)
def test_clashing_formats_are_refused(
    own_format: CsvLike, name: str, suffixes: tuple[str, ...]
) -> None:
    other = CsvLike()
    other.name, other.suffixes = name, suffixes  # type: ignore[assignment]

    with pytest.raises(PluginError, match="clashes with"):
        register_format(other)
    assert find_format("names") is own_format


def test_other_objects_are_not_formats() -> None:
    with pytest.raises(PluginError, match="needs name, suffixes"):
        register_format(object())  # type: ignore[arg-type]


@pytest.mark.parametrize("where", ["name", "text"])
def test_a_long_text_of_many_rows_is_refused_before_it_is_written_often(
    tmp_path: Path, where: str
) -> None:
    builder, text = ProfileBuilder(), "x" * 100_000
    for number in range(3000):
        name = text if where == "name" else f"{number}"
        builder.add(0, name, metrics={"note": text if where == "text" else "short"})
    write_profile(builder.build(), tmp_path / "a.proton")

    with pytest.raises(ProfileFormatError, match="more bytes"):
        read_profile(tmp_path / "a.proton")


def test_formats_that_are_imported_late_are_what_the_registry_says() -> None:
    for name, known in registry._known.items():
        assert (find_format(name).name, find_format(name).suffixes) == (name, known.suffixes)
