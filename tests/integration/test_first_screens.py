"""First screens of recorded profiles, as golden files.

``pytest --snapshot-update`` on this file writes them again; look at the difference.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension
from syrupy.location import PyTestLocation

from proton_bench.analysis.naming.readable import Readable
from proton_bench.analysis.view.order import BY_SIZE
from proton_bench.analysis.view.select import Selection
from proton_bench.cli.show import ViewRequest, show
from proton_bench.formats.registry import read_profile
from proton_bench.report.text.summary import summary_lines
from proton_bench.report.words.names import FrameFormat

ROOT = Path(__file__).parents[2]
SCREENS = ROOT / "tests" / "data" / "screens"
# What each shows: layers and the host, operators and kernels, Python frames, samples of kernels,
# scopes inside kernels, a timeline with graphs.
PROFILES = {
    "training": ROOT / "docs" / "pictures" / "train.proton",
    "eager": ROOT / "tests" / "data" / "upstream" / "eager-tree.hatchet",
    "python": ROOT / "tests" / "data" / "upstream" / "eager-python.hatchet",
    "samples": ROOT / "tests" / "data" / "upstream" / "matmul-pcsampling.hatchet",
    "inside": ROOT / "tests" / "data" / "upstream" / "intra-default-tree.hatchet",
    "graph": ROOT / "tests" / "data" / "upstream" / "graph-trace.chrome_trace.gz",
}
LINES = 30
WIDTHS = [80, 120, 200]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen(file: Path, width: int, *, colours: bool, monkeypatch: pytest.MonkeyPatch) -> str:
    terminal = Terminal()
    console = Console(
        file=terminal,
        width=width,
        height=LINES,
        color_system="256" if colours else None,
        force_terminal=True,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
    )
    monkeypatch.setattr("proton_bench.cli.show.open_console", lambda: console)
    monkeypatch.chdir(file.parent)
    selection = Selection(sort=BY_SIZE, readable=Readable())
    show(
        ViewRequest(
            file=Path(file.name),
            selection=selection,
            frames=FrameFormat.SHORT,
            fits_screen=True,
        )
    )
    return terminal.getvalue()


class Screens(SingleFileSnapshotExtension):
    """One file per screen, in one folder."""

    file_extension = "txt"

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: Any = 0) -> str:
        """Return the name that the test gives."""
        return str(index)

    def serialize(self, data: Any, **_: object) -> bytes:
        """Return the text as it stands in the file."""
        return str(data).encode()

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        """Return the folder of all screens."""
        return str(SCREENS)


@pytest.fixture
def golden(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(Screens)


@pytest.mark.parametrize("colours", [False, True], ids=["plain", "colours"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PROFILES)
def test_first_screen(
    name: str,
    width: int,
    colours: bool,
    monkeypatch: pytest.MonkeyPatch,
    golden: SnapshotAssertion,
) -> None:
    found = screen(PROFILES[name], width, colours=colours, monkeypatch=monkeypatch)

    assert found == golden(name=f"{name}-{width}{'-colours' if colours else ''}")
    lines = Text.from_ansi(found).plain.splitlines()
    assert len(lines) < LINES
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PROFILES)
def test_summary(name: str, width: int, golden: SnapshotAssertion) -> None:
    file = PROFILES[name]

    lines = summary_lines(read_profile(file), file.name, width)

    assert "\n".join(lines) == golden(name=f"{name}-{width}-summary")
