"""Rooms of the native core are small, say what they are, and include in one direction only.

`native/src/rooms.md` lists them: a room may include itself and those above it. Collectors see less:
records, drivers and a few headers of the context, so that they cannot touch a tree or a session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "native" / "src"
COLLECTOR_SEES = ("support", "record", "driver")
# host_range.h lets a collector of host work open and close frames of its own on the calling
# thread, because operators, and ranges such as NVTX, are part of the path of what they launch, and
# asks it what was counted inside of ranges. current.h lets it say that a thread captures work into
# a graph, python_lock.h lets it wait where the program may hold Python's lock, self_cost.h times
# calls of the program into collectors, stack_reader.h reads the frames of all threads, and
# context/layer lets nodes of a backward pass stand below the layers of their forward pass.
COLLECTOR_SEES_FILES = (
    "context/thread/current.h",
    "context/thread/host_range.h",
    "context/thread/self_cost.h",
    "context/thread/stack_reader.h",
    "context/python/python_lock.h",
    "context/layer/layer_range.h",
)
# Folders that other collectors may include: what collectors of GPUs share.
COLLECTORS_SHARE = {
    "gpu": ("cupti", "hip", "rocprofiler", "roctracer"),
    "hip": ("rocprofiler", "roctracer"),
}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
PUBLIC_PREFIX = "proton_bench/"


def heads() -> dict[str, list[str]]:
    """Return what lives in each room, what comes in and what goes out, in the order of rooms."""
    table = (SOURCES / "rooms.md").read_text(encoding="utf-8").split("|---|---|---|---|\n")[1]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {row[0].strip("`"): row[1:] for row in rows}


HEADS = heads()
ORDER = list(HEADS)


def sources() -> list[Path]:
    """Return every header and source, relative to native/src."""
    files = sorted(SOURCES.rglob("*"))
    return [file.relative_to(SOURCES) for file in files if file.suffix in {".h", ".cpp"}]


def includes() -> Iterator[tuple[Path, str]]:
    """Yield (source relative to native/src, text between the quotes) of every quoted include."""
    for source in sources():
        for target in INCLUDE.findall((SOURCES / source).read_text(encoding="utf-8")):
            yield source, target


def complaint(source: Path, target: str) -> str | None:
    """Return why ``source`` must not include ``target``, or None."""
    if target.startswith(PUBLIC_PREFIX):
        return None
    room, other = source.parent.as_posix(), Path(target).parent.as_posix()
    if other not in ORDER:
        return "includes name their room: write the path below native/src"
    if ORDER.index(other) > ORDER.index(room):
        return f"{other} stands below {room} in rooms.md"
    if source.parts[0] == "collector":
        return complaint_of_collector(source, target)
    return None


def complaint_of_collector(source: Path, target: str) -> str | None:
    """Return why a collector must not include ``target``, which stands above it, or None."""
    top, *inner = Path(target).parts
    if top != "collector":
        allowed = top in COLLECTOR_SEES or target in COLLECTOR_SEES_FILES
        return None if allowed else f"collectors see only {COLLECTOR_SEES + COLLECTOR_SEES_FILES}"
    shared = len(inner) == 1  # collector/<file>: what all collectors share
    shared |= inner[0] == source.parts[1]
    shared |= source.parts[1] in COLLECTORS_SHARE.get(inner[0], ())
    return None if shared else "collectors do not see each other"


def test_every_source_lies_in_a_known_room() -> None:
    rooms = {source.parent.as_posix() for source in sources()}

    assert rooms
    assert rooms <= HEADS.keys()
    assert [room for room in ORDER if not (SOURCES / room).is_dir()] == []


def test_rooms_say_what_lives_there_and_goes_in_and_out() -> None:
    assert [room for room, head in HEADS.items() if len(head) != 3 or not all(head)] == []


def test_rooms_stand_below_the_rooms_that_they_are_in() -> None:
    parents = {room: room.rpartition("/")[0] for room in ORDER if "/" in room}
    tops = list(dict.fromkeys(room.split("/")[0] for room in ORDER))

    assert [r for r, parent in parents.items() if parent not in ORDER[: ORDER.index(r)]] == []
    assert sorted(ORDER, key=lambda room: tops.index(room.split("/")[0])) == ORDER


def test_rooms_include_upwards_only() -> None:
    broken = [
        f"{source} includes {target}: {why}"
        for source, target in includes()
        if (why := complaint(source, target)) is not None
    ]

    assert broken == []


@pytest.mark.parametrize(
    ("source", "target", "allowed"),
    [
        ("calltree/tree.h", "support/name.h", True),
        ("calltree/tree.h", "session/session.h", False),
        ("collector/cpu/clock.h", "context/thread/current.h", True),
        ("collector/cpu/clock.h", "context/thread/shadow_stack.h", False),
        ("collector/cpu/clock.h", "calltree/tree.h", False),
        ("collector/replay/replay.h", "collector/cpu/clock.h", False),
        ("collector/cpu/clock.h", "collector/collector.h", True),
        ("collector/cupti/control/clock.h", "collector/cupti/options.h", True),
        ("collector/cupti/control/clock.h", "collector/gpu/launches/launch_log.h", True),
        ("collector/gpu/launches/launch_log.h", "collector/cupti/clock.h", False),
        ("collector/gpu/work/graph_table.h", "collector/gpu/launches/launch_log.h", True),
        ("collector/gpu/launches/launch_log.h", "collector/gpu/work/graph_table.h", False),
        ("collector/hip/calls.h", "collector/gpu/launches/launch_log.h", True),
        ("collector/hip/calls.h", "collector/cupti/clock.h", False),
        ("driver/cuda/driver.h", "driver/shared_library.h", True),
        ("driver/shared_library.h", "driver/cuda/driver.h", False),
        ("writer/timeline/json.h", "writer/bytes/text.h", True),
        ("writer/bytes/text.h", "writer/timeline/json.h", False),
        ("writer/bytes/json.h", "name.h", False),
        ("record/sink.cpp", "proton_bench/record_sink.h", True),
    ],
)
def test_the_rule_itself(source: str, target: str, allowed: bool) -> None:
    assert (complaint(Path(source), target) is None) == allowed


def test_only_context_and_bindings_see_python() -> None:
    python = re.compile(r"#\s*include\s*<(Python\.h|frameobject\.h|pybind11/)")
    seen = {
        source.parts[0]
        for source in sources()
        if python.search((SOURCES / source).read_text(encoding="utf-8"))
    }

    assert seen <= {"context", "bindings"}
