"""Rooms of the native core include downwards only.

Each room may include itself and the rooms before it. Collectors see less: records, drivers and
two small faces of the context, so that a collector cannot touch a tree or a session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "native" / "src"
ORDER = (
    "support",
    "record",
    "calltree",
    "context",
    "driver",
    "collector",
    "correlation",
    "aggregate",
    "writer",
    "session",
    "bindings",
)
COLLECTOR_SEES = ("support", "record", "driver")
# host_range.h lets a collector of host work open and close frames of its own on the calling
# thread: operators, and ranges such as NVTX, are part of the path of what they launch.
# graph_capture.h lets it say that a thread captures work into a graph, python_lock.h lets it wait
# where the program may hold Python's lock.
COLLECTOR_SEES_FILES = (
    "context/current.h",
    "context/graph_capture.h",
    "context/host_range.h",
    "context/python_lock.h",
)
# Folders of the collector room that others of it may include: what collectors of GPUs share.
COLLECTORS_SHARE = {
    "gpu": ("cupti", "hip", "rocprofiler", "roctracer"),
    "hip": ("rocprofiler", "roctracer"),
}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
PUBLIC_PREFIX = "proton_bench/"


def includes() -> Iterator[tuple[Path, str]]:
    """Yield (source relative to native/src, text between the quotes) of every quoted include."""
    for source in sorted(SOURCES.rglob("*")):
        if source.suffix in {".h", ".cpp"}:
            for target in INCLUDE.findall(source.read_text(encoding="utf-8")):
                yield source.relative_to(SOURCES), target


def complaint(source: Path, target: str) -> str | None:
    """Return why ``source`` must not include ``target``, or None."""
    if target.startswith(PUBLIC_PREFIX):
        return None
    room, other = source.parts[0], Path(target).parts[0]
    if other not in ORDER:
        return "includes name their room: write the path below native/src"
    if room == "collector" and other != "collector":
        allowed = other in COLLECTOR_SEES or target in COLLECTOR_SEES_FILES
        return None if allowed else f"collectors see only {COLLECTOR_SEES + COLLECTOR_SEES_FILES}"
    if room == "collector" and Path(target).parts[:2] != source.parts[:2]:
        shared = len(Path(target).parts) == 2  # collector/<file>: what all collectors share
        shared |= source.parts[1] in COLLECTORS_SHARE.get(Path(target).parts[1], ())
        return None if shared else "collectors do not see each other"
    if ORDER.index(other) > ORDER.index(room):
        return f"{other} stands above {room}"
    return None


def test_every_source_lies_in_a_known_room() -> None:
    rooms = {source.relative_to(SOURCES).parts[0] for source in SOURCES.rglob("*.[ch]*")}

    assert rooms <= set(ORDER)
    assert rooms, "native/src holds no sources"


def test_rooms_include_downwards_only() -> None:
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
        ("collector/cpu/clock.h", "context/current.h", True),
        ("collector/cpu/clock.h", "context/shadow_stack.h", False),
        ("collector/cpu/clock.h", "calltree/tree.h", False),
        ("collector/cpu/clock.h", "collector/replay/replay.h", False),
        ("collector/cpu/clock.h", "collector/collector.h", True),
        ("collector/cpu/clock.h", "collector/cpu/device/warp.h", True),
        ("collector/cupti/clock.h", "collector/gpu/launch_log.h", True),
        ("collector/gpu/launch_log.h", "collector/cupti/clock.h", False),
        ("collector/hip/calls.h", "collector/gpu/launch_log.h", True),
        ("collector/cupti/clock.h", "collector/hip/calls.h", False),
        ("writer/json.h", "name.h", False),
        ("record/sink.cpp", "proton_bench/record_sink.h", True),
    ],
)
def test_the_rule_itself(source: str, target: str, allowed: bool) -> None:
    assert (complaint(Path(source), target) is None) == allowed


def test_only_context_and_bindings_see_python() -> None:
    python = re.compile(r"#\s*include\s*<(Python\.h|frameobject\.h|pybind11/)")
    seen = {
        source.relative_to(SOURCES).parts[0]
        for source in SOURCES.rglob("*.[ch]*")
        if python.search(source.read_text(encoding="utf-8"))
    }

    assert seen <= {"context", "bindings"}
