"""The raw walk over the interpreter's frames sees what the public API sees."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import sysconfig
from collections.abc import AsyncIterator, Iterator

import pytest

native = pytest.importorskip("proton_bench._native", reason="the native module is not built")

# Set when a build with the option of this name is tested.
BUILT_PUBLIC = "PROTON_BENCH_PUBLIC_FRAMES" in os.environ
RAW = native.python_frame_walk == "raw"
needs_raw = pytest.mark.skipif(not RAW, reason="this module was built for the public API only")


def agree() -> int:
    """Compare the walks here and return how many frames they found."""
    walks = native.python_frames()
    assert walks["raw"] == walks["public"]
    return len(walks["raw"])


def agree_about(_: int) -> int:
    return agree()


def deep(depth: int) -> int:
    return deep(depth - 1) if depth else agree()


class Made:
    def __init__(self) -> None:
        self.frames = agree()


class Compared:
    def __lt__(self, other: object) -> bool:
        return agree() > 0

    def __getattr__(self, name: str) -> int:
        return agree()

    @property
    def value(self) -> int:
        return agree()


def generated() -> Iterator[int]:
    yield agree()
    yield from (agree() for _ in range(2))


async def awaited() -> int:
    await asyncio.sleep(0)
    return agree()


async def numbers() -> AsyncIterator[int]:
    yield agree()
    await asyncio.sleep(0)
    yield await awaited()


async def consumed() -> list[int]:
    gathered = await asyncio.gather(awaited(), awaited())
    return [*gathered, *[number async for number in numbers()]]


def test_the_raw_walk_is_used_where_it_can_be() -> None:
    if BUILT_PUBLIC:
        pytest.skip("built with PROTON_BENCH_PUBLIC_FRAMES=ON")
    has_gil = not sysconfig.get_config_var("Py_GIL_DISABLED")
    is_known = sys.implementation.name == "cpython" and (3, 11) <= sys.version_info[:2] < (3, 15)

    assert native.python_frame_walk == ("raw" if has_gil and is_known else "public")


def test_the_public_walk_starts_at_the_caller() -> None:
    code, instruction = native.python_frames()["public"][0]

    assert code is sys._getframe().f_code
    assert instruction >= 0


@needs_raw
@pytest.mark.parametrize("depth", [0, 1, 20, 10_000])
def test_walks_agree_at_every_depth(depth: int) -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        frames = deep(depth)
    finally:
        sys.setrecursionlimit(limit)

    assert frames == deep(0) + depth


@needs_raw
def test_walks_agree_below_entries_from_c() -> None:
    found = [
        *map(agree_about, range(2)),
        sorted([Compared(), Compared()]) and agree(),
        max([1, 2], key=lambda _: agree()),
        Compared().anything,
        Compared().value,
        eval("agree()"),
    ]

    assert min(found) > 0


@needs_raw
def test_walks_agree_once_calls_are_specialised() -> None:
    frames = {Made().frames for _ in range(200)}

    assert len(frames) == 1


@needs_raw
def test_walks_agree_in_generators_and_coroutines() -> None:
    assert min([*generated(), *asyncio.run(consumed())]) > 0


@needs_raw
def test_walks_agree_in_handlers_and_with_blocks() -> None:
    class Managed:
        def __enter__(self) -> int:
            return agree()

        def __exit__(self, *exception: object) -> None:
            self.frames = agree()

    managed = Managed()
    try:
        with managed:
            raise KeyError("x")
    except KeyError:
        inside = agree()
    finally:
        after = agree()

    assert managed.frames == inside + 1 == after + 1


@needs_raw
def test_walks_agree_in_trace_functions() -> None:
    found: list[int] = []

    def trace(frame: object, event: str, argument: object) -> None:
        found.append(agree())

    def traced() -> Iterator[int]:
        yield 1

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        list(traced())
    finally:
        sys.settrace(before)

    assert found


@needs_raw
def test_walks_agree_while_a_frame_has_not_begun() -> None:
    found: list[int] = []

    def collected(phase: str, facts: dict[str, int]) -> None:
        found.append(agree())

    def makes_cells() -> object:
        a, b, c = [], [], []  # type: ignore[var-annotated]
        return lambda: (a, b, c)

    threshold = gc.get_threshold()
    gc.callbacks.append(collected)
    gc.set_threshold(1)
    try:
        kept = [makes_cells() for _ in range(20)]
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(collected)

    assert kept
    assert found
