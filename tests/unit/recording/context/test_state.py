"""States of the calling thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from capture_fixtures import FakeBackends, child, names

import proton_bench as proton
from proton_bench.errors import ScopeError, UsageError
from proton_bench.recording.context import inductor_ranges
from proton_bench.recording.context.inductor_ranges import (
    common_layers,
    distinguish_cached_code,
    layers_of,
)
from proton_bench.recording.context.metric import add_scope_metrics
from proton_bench.recording.context.sources import parse_context
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


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("shadow", "shadow"),
        ("python", "python"),
        ("layers", "layers"),
        ("ops+layers", "layers+ops"),
        ("shadow+layers", "layers"),
        ("Python+Ops", "python+ops"),
        ("auto", "layers"),
        ("auto+ops", "layers+ops"),
        ("auto+python", "python+layers"),
        ("shapes+layers", "layers+ops+shapes"),
        ("layers+layers", "layers"),
    ],
)
def test_names_are_brought_into_one_order(text: str, sources: str) -> None:
    assert parse_context(text) == sources


@pytest.mark.parametrize("text", ["", "layer", "layers+", "+", "layers,ops", None, 3, "shadow+x"])
def test_an_unknown_name_is_refused(text: object) -> None:
    with pytest.raises(UsageError):
        parse_context(text)


def test_scopes_and_python_frames_exclude_each_other() -> None:
    with pytest.raises(UsageError, match=r"shadow.*python"):
        parse_context("shadow+python")


class Block: ...


class Model: ...


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether a session wants layers; it does unless a test says otherwise."""
    wants = [True]
    monkeypatch.setattr(inductor_ranges, "_wants_layers", lambda: wants[0])
    return wants


def node(*modules: tuple[str, object], key: str = "nn_module_stack") -> Any:
    return SimpleNamespace(meta={key: {str(n): each for n, each in enumerate(modules)}})


@pytest.mark.parametrize(
    "expression",
    [
        "L['self'].h.0",
        "L['self'].h[0]",
        "L['self']._modules['h']._modules['0']",
        "L['self']._orig_mod.h.0",
        "G['anything'].h.0",
    ],
)
@pytest.mark.usefixtures("wanted")
def test_a_layer_of_a_method_has_a_name_below_that_which_runs_it(expression: str) -> None:
    assert layers_of(node((expression, Block))) == (".h.0 (Block)",)


@pytest.mark.usefixtures("wanted")
def test_a_model_in_a_compiled_function_is_a_root() -> None:
    modules = (("L['model']", Model), ("L['model'].h.0", f"{__name__}.Block"))

    assert layers_of(node(*modules)) == ("Model", "h.0 (Block)")


@pytest.mark.usefixtures("wanted")
def test_a_node_of_a_backward_graph_has_the_layers_of_its_forward_node() -> None:
    assert layers_of(node(("L['self'].h", Block), key="fwd_nn_module_stack")) == (".h (Block)",)


@pytest.mark.usefixtures("wanted")
def test_a_node_that_says_nothing_has_no_known_layers() -> None:
    assert layers_of(SimpleNamespace(meta={})) is None


def test_nothing_is_read_where_no_session_wants_layers(wanted: list[bool]) -> None:
    wanted[0] = False

    assert layers_of(node(("L['self'].h", Block))) is None


def test_a_fused_kernel_stands_below_what_its_nodes_share() -> None:
    assert common_layers([("a", "b", "c"), None, ("a", "b"), ("a", "b", "d")]) == ("a", "b")
    assert common_layers([None]) == common_layers([]) == common_layers([("a",), ("b",)]) == ()


def test_cached_code_with_layers_is_not_that_without(wanted: list[bool]) -> None:
    class Details:
        """What a key of the cache is made of."""

        def __init__(self, graph: str) -> None:
            self.graph = graph

    distinguish_cached_code(SimpleNamespace(FxGraphHashDetails=Details))
    with_layers = Details("g")
    wanted[0] = False

    assert vars(Details("g")) == {"graph": "g"}
    assert vars(with_layers) != vars(Details("g"))
