from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from proton_bench.recording.context import inductor_ranges
from proton_bench.recording.context.inductor_ranges import (
    common_layers,
    distinguish_cached_code,
    layers_of,
)


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
