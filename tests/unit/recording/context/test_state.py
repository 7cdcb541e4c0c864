"""States of the calling thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from capture_fixtures import FakeBackends, child, names

import proton_bench as proton
from proton_bench.errors import ScopeError
from proton_bench.recording.context.metric import add_scope_metrics
from proton_bench.recording.native import native

Tree = Callable[[], dict[str, Any]]


@pytest.fixture
def tree(tmp_path: Path, fakes: FakeBackends) -> Tree:
    """Start a session and return a function that reads its tree so far."""
    session = proton.start(tmp_path / "states")
    return lambda: proton.data.get(session)[0]


def test_state_stands_below_the_innermost_scope(tree: Tree) -> None:
    with proton.scope("test0"):
        proton.enter_state("state")
        with proton.scope("test1", {"a": 1.0}):
            pass
        proton.exit_state()

    assert child(tree(), "test0", "test1", "state")["metrics"] == {"a": 1.0}


def test_leaving_a_nested_state_restores_the_outer_one(tree: Tree) -> None:
    with proton.state("outer"):
        with proton.state("inner"):
            add_scope_metrics({"a": 1})
        add_scope_metrics({"a": 2})
    add_scope_metrics({"a": 4})

    assert child(tree(), "inner")["metrics"] == {"a": 1}
    assert child(tree(), "outer")["metrics"] == {"a": 2}
    assert tree()["metrics"]["a"] == 4


def test_decorated_function_leaves_the_state_when_it_raises(tree: Tree) -> None:
    @proton.state("busy")
    def fail() -> None:
        add_scope_metrics({"a": 1})
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        fail()

    with pytest.raises(ScopeError):
        proton.exit_state()
    assert names(tree()) == ["busy"]


def test_metadata_state_of_a_kernel_makes_two_frames(tree: Tree) -> None:
    with proton.metadata_state("matmul"):
        add_scope_metrics({"a": 1})
    with proton.metadata_state():
        add_scope_metrics({"a": 2})

    assert child(tree(), "__proton_launch_metadata")["metrics"] == {"a": 2}
    assert child(tree(), "__proton_launch_metadata", "matmul")["metrics"] == {"a": 1}


def test_decorated_coroutine_is_in_the_state_until_it_returns(tree: Tree) -> None:
    depths: list[int] = []

    @proton.state("waiting")
    async def wait() -> None:
        depths.append(native.state_depth())

    asyncio.run(wait())

    assert [*depths, native.state_depth()] == [1, 0]
