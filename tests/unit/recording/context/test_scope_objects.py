"""Objects of scopes and states can do what objects of a plain Python class can."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import proton_bench as proton
from proton_bench.recording.context.scope import cpu_timed_scope, scope
from proton_bench.recording.context.state import metadata_state, state


class Counted(scope):
    """A subclass with a constructor, attributes and an enter of its own."""

    def __init__(self, index: int) -> None:
        super().__init__(f"counted {index}", {"index": index})
        self.entered = 0

    def __enter__(self) -> Counted:
        self.entered += 1
        super().__enter__()
        return self


class Slotted(cpu_timed_scope):
    __slots__ = ("extra",)


MAKERS: dict[str, Callable[[], Any]] = {
    "scope": lambda: scope("name", {"bytes": 4}),
    "cpu_timed_scope": lambda: cpu_timed_scope("name", {"bytes": 4}),
    "state": lambda: state("name"),
    "metadata_state": lambda: metadata_state("name"),
    "subclass": lambda: Counted(3),
}
COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {protocol}": lambda made, protocol=protocol: pickle.loads(
            pickle.dumps(made, protocol)
        )
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    },
}


@pytest.fixture(params=MAKERS)
def made(request: pytest.FixtureRequest) -> Any:
    return MAKERS[request.param]()


def names(path: Path) -> list[str]:
    tree = json.loads(path.with_suffix(".hatchet").read_text())[0]
    return [child["frame"]["name"] for child in tree["children"]]


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_has_what_the_object_has(made: Any, how: str) -> None:
    made.note = [1]
    copied = COPIES[how](made)
    assert type(copied) is type(made)
    assert copied.name == made.name
    assert getattr(copied, "metrics", None) == getattr(made, "metrics", None)
    assert vars(copied) == vars(made)
    assert (copied.note is made.note) == (how == "copy")


def test_slots_of_a_subclass_are_copied() -> None:
    made = Slotted("slots")
    made.extra = 7
    assert copy.copy(made).extra == 7
    assert copy.deepcopy(made).name == "slots"


def test_a_copy_of_an_open_scope_is_not_open(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "run"), backend="cpu")
    with scope("open") as opened:
        copied = copy.copy(opened)
        assert opened.id is not None
        assert copied.id is None
        with copied, scope("inner"):
            pass
    proton.finalize(session)
    assert names(tmp_path / "run") == ["open"]


def test_objects_take_attributes_new_names_and_new_metrics(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "run"), backend="cpu")
    made = scope("first")
    made.name, made.metrics = "second", {"bytes": 1}
    made.anything = made
    with made:
        pass
    proton.finalize(session)
    assert names(tmp_path / "run") == ["second"]


def test_a_name_that_is_not_text_is_refused_where_it_is_set() -> None:
    made = scope("name")
    with pytest.raises(TypeError, match="must be a str, not int"):
        made.name = 3  # type: ignore[assignment]
    with pytest.raises(TypeError, match="must be a str"):
        del made.name
    assert made.name == "name"


def test_objects_can_be_referenced_weakly(made: Any) -> None:
    dead: list[object] = []
    reference = weakref.ref(made, dead.append)
    alive = weakref.WeakSet([made])
    assert reference() is made
    assert made in alive
    assert dead == []


def test_a_weak_reference_ends_with_its_scope() -> None:
    made, dead = scope("name"), list[object]()
    reference = weakref.ref(made, dead.append)
    del made
    assert reference() is None
    assert dead == [reference]


@pytest.mark.nightly(keep=6)
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("through", ["attribute", "__dict__", "metrics"])
def test_cycles_through_an_object_are_collected(kind: str, through: str) -> None:
    class Holder:
        """An object with a weak reference."""

    made, holder = MAKERS[kind](), Holder()
    gone = weakref.ref(holder)
    if through == "attribute":
        made.me, made.holder = made, holder
    elif through == "__dict__":
        made.__dict__.update(me=made, holder=holder)
    elif hasattr(made, "metrics"):
        made.metrics = {"me": made, "holder": holder}
    del made, holder
    gc.collect()
    assert gone() is None


def test_a_subclass_keeps_its_attributes_and_its_enter(tmp_path: Path) -> None:
    session = proton.start(str(tmp_path / "run"), backend="cpu")
    made = Counted(1)
    with made as entered, made:
        assert entered is made
    proton.finalize(session)
    assert made.entered == 2
    assert isinstance(made, scope)
    assert names(tmp_path / "run") == ["counted 1"]


@pytest.mark.parametrize("kind", ["scope", "cpu_timed_scope", "subclass"])
def test_each_call_of_a_decorated_function_has_an_object_of_its_own(
    tmp_path: Path, kind: str
) -> None:
    session = proton.start(str(tmp_path / "run"), backend="cpu")
    made = MAKERS[kind]()

    @made
    def recurse(depth: int) -> int:
        return recurse(depth - 1) + 1 if depth else 0

    assert recurse(2) == 2
    proton.finalize(session)
    assert names(tmp_path / "run") == [made.name]
    assert made.id is None


def test_an_object_that_dies_open_does_not_keep_its_attributes() -> None:
    class Holder:
        """An object with a weak reference."""

    made, holder = scope("left"), Holder()
    gone = weakref.ref(holder)
    made.holder = holder
    made.__enter__()
    del made, holder
    assert gone() is None


DECORATORS: dict[str, Callable[[], Any]] = {
    **{kind: made for kind, made in MAKERS.items() if kind != "metadata_state"},
    "profile": lambda: proton.profile,
    "profile with options": lambda: proton.profile(name="run", backend="cpu"),
}


@pytest.mark.parametrize("kind", DECORATORS)
def test_all_that_a_decorated_function_uses_can_be_pickled(kind: str) -> None:
    """As cloudpickle does it, for joblib, Ray, Dask and Spark: code by value, the rest as it is."""

    def target() -> None:
        """Stands for a function of a program."""

    decorated = DECORATORS[kind]()(target)
    used = {name: decorated.__globals__.get(name) for name in decorated.__code__.co_names}
    cells = [cell.cell_contents for cell in decorated.__closure__]
    for value in (*used.values(), *(cell for cell in cells if cell is not target)):
        assert type(pickle.loads(pickle.dumps(value))) is type(value)


def test_a_function_that_uses_the_package_takes_it_by_name() -> None:
    assert pickle.loads(pickle.dumps(proton)) is proton
    assert copy.deepcopy({"module": proton})["module"] is proton
