from __future__ import annotations

import types
from collections.abc import Callable, Generator

import pytest

from proton_bench.errors import BackendUnavailableError, UsageError
from proton_bench.plugin import manager as manager_module
from proton_bench.plugin.backend import Availability, Backend
from proton_bench.plugin.hookspecs import hookimpl
from proton_bench.plugin.manager import (
    PluginManager,
    backend_availability,
    get_plugin_manager,
    resolve_backend,
)


def make_backend(name: str, *, available: bool = True) -> Backend:
    return Backend(
        name=name,
        summary="for tests",
        availability=lambda: Availability(available=available, reason="because of the test"),
        open=lambda mode: pytest.fail(f"opened with {mode}"),
    )


def make_plugin(**hooks: Callable[..., object]) -> types.SimpleNamespace:
    return types.SimpleNamespace(**{name: hookimpl(hook) for name, hook in hooks.items()})


def make_wrapper() -> Callable[[], object]:
    def wrapper() -> Generator[None, object, object]:
        return (yield)

    return wrapper


def no_backends() -> list[Backend]:
    return []


@pytest.fixture
def plugins() -> PluginManager:
    return PluginManager(builtin=(), entry_points=False)


@pytest.fixture
def as_the_one(plugins: PluginManager, monkeypatch: pytest.MonkeyPatch) -> PluginManager:
    monkeypatch.setattr(manager_module, "get_plugin_manager", lambda: plugins)
    plugins.register(
        make_plugin(
            proton_backends=lambda: [
                make_backend("cpu"),
                make_backend("gpu"),
                make_backend("absent", available=False),
            ]
        ),
        "several",
    )
    return plugins


def test_backends_are_offered_with_their_plugin(plugins: PluginManager) -> None:
    plugins.register(make_plugin(proton_backends=lambda: [make_backend("a")]), "first")
    plugins.register(make_plugin(proton_backends=lambda: [make_backend("b")]), "second")

    offered = plugins.backends()

    assert {name: one.plugin for name, one in offered.items()} == {"a": "first", "b": "second"}


def test_a_plugin_that_cannot_be_imported_is_named_and_the_others_work(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plugins = PluginManager(builtin=("no.such.module",), entry_points=False)
    plugins.register(make_plugin(proton_backends=lambda: [make_backend("a")]), "good")

    assert [one.name for one in plugins.broken] == ["module"]
    assert "cannot be imported: ModuleNotFoundError" in plugins.broken[0].reason
    assert "plugin 'module' is broken" in capsys.readouterr().err
    assert list(plugins.backends()) == ["a"]


@pytest.mark.parametrize(
    ("plugin", "reason"),
    [
        (make_plugin(proton_backend=no_backends), "unknown hook 'proton_backend'"),
        (make_plugin(proton_backends=lambda wrong: [wrong]), "wrong"),
        (
            types.SimpleNamespace(proton_backends=hookimpl(wrapper=True)(make_wrapper())),
            "wrapper",
        ),
    ],
)
def test_a_hook_that_does_not_fit_is_refused_at_registration(
    plugins: PluginManager, plugin: object, reason: str
) -> None:
    plugins.register(plugin, "odd")
    plugins.register(make_plugin(proton_backends=lambda: [make_backend("a")]), "good")

    assert [one.name for one in plugins.broken] == ["odd"]
    assert reason in plugins.broken[0].reason
    assert list(plugins.backends()) == ["a"]


def fail() -> list[Backend]:
    raise RuntimeError("two\nlines")


@pytest.mark.parametrize(
    ("hook", "reason"),
    [
        (fail, "proton_backends raised RuntimeError: two lines"),
        (lambda: ["x"], "returned a str, not a Backend"),
        (lambda: 3, "returned int, not a list"),
        (lambda: [make_backend("a")], "backend 'a' already exists in plugin 'good'"),
    ],
)
def test_a_hook_that_fails_is_named_once_and_the_others_answer(
    plugins: PluginManager,
    capsys: pytest.CaptureFixture[str],
    hook: Callable[[], object],
    reason: str,
) -> None:
    plugins.register(make_plugin(proton_backends=lambda: [make_backend("a")]), "good")
    plugins.register(make_plugin(proton_backends=hook), "odd")

    offered = [list(plugins.backends()) for _ in range(2)]

    assert offered == [["a"], ["a"]]
    assert [one.name for one in plugins.broken] == ["odd"]
    assert reason in plugins.broken[0].reason
    assert capsys.readouterr().err.count("'odd' is broken") == 1


def test_hooks_get_only_the_arguments_that_they_name(plugins: PluginManager) -> None:
    seen: list[object] = []
    plugins.register(
        make_plugin(proton_session_finished=lambda paths: seen.extend([*paths])), "one"
    )
    plugins.register(
        make_plugin(proton_session_finished=lambda session, paths: seen.append((session, paths))),
        "two",
    )

    plugins.call("proton_session_finished", session="s", paths=["p"])

    assert seen == [("s", ["p"]), "p"]


def test_the_first_answer_wins_and_later_plugins_are_asked_first(plugins: PluginManager) -> None:
    asked: list[str] = []

    def answer(name: str, result: str | None) -> Callable[[], str | None]:
        return lambda: asked.append(name) or result

    plugins.register(make_plugin(proton_default_backend=answer("a", "a")), "a")
    plugins.register(make_plugin(proton_default_backend=answer("b", "b")), "b")
    plugins.register(make_plugin(proton_default_backend=answer("c", None)), "c")

    assert plugins.default_backend() == "b"
    assert asked == ["c", "b"]


def test_the_manager_of_the_process_is_made_once() -> None:
    assert get_plugin_manager() is get_plugin_manager()


@pytest.mark.usefixtures("as_the_one")
def test_a_list_of_backends_is_resolved_in_order() -> None:
    assert [backend.name for backend in resolve_backend("gpu + cpu")] == ["gpu", "cpu"]


@pytest.mark.parametrize("text", [None, ""])
def test_the_default_is_what_a_plugin_says_or_cpu(
    as_the_one: PluginManager, text: str | None
) -> None:
    assert [backend.name for backend in resolve_backend(text)] == ["cpu"]

    as_the_one.register(make_plugin(proton_default_backend=lambda: "gpu"), "chooser")

    assert [backend.name for backend in resolve_backend(text)] == ["gpu"]


@pytest.mark.parametrize("text", ["cupti", "cpu+cupti", "cpu+", "+"])
def test_an_unknown_backend_names_the_choices(as_the_one: PluginManager, text: str) -> None:
    as_the_one.register(make_plugin(no_such=lambda: None, proton_x=lambda: None), "odd")

    with pytest.raises(
        UsageError, match=r"choose backends from: absent, cpu, gpu.*broken plugins: odd"
    ):
        resolve_backend(text)


@pytest.mark.usefixtures("as_the_one")
def test_a_backend_that_stands_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="twice"):
        resolve_backend("cpu+gpu+cpu")


@pytest.mark.usefixtures("as_the_one")
def test_a_backend_that_cannot_run_here_says_why() -> None:
    with pytest.raises(BackendUnavailableError, match=r"'absent' cannot run here: because of the"):
        resolve_backend("cpu+absent")


def test_an_availability_check_that_raises_counts_as_no() -> None:
    def check() -> Availability:
        raise OSError("no such device")

    backend = Backend(name="x", summary="x", availability=check, open=pytest.fail)

    assert backend_availability(backend) == Availability(
        available=False, reason="its availability check raised OSError: no such device"
    )


def test_formats_of_plugins_are_registered_and_a_failing_one_is_named(
    plugins: PluginManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = pytest.importorskip("proton_bench.formats.registry")
    registered: list[object] = []
    monkeypatch.setattr(registry, "register_format", registered.append)
    plugins.register(make_plugin(proton_formats=lambda: ["format"]), "good")
    plugins.register(make_plugin(proton_formats=lambda: 3), "odd")

    plugins.register_formats()

    assert registered == ["format"]
    assert [one.name for one in plugins.broken] == ["odd"]


def test_offers_by_name_are_merged_and_a_plugin_that_makes_none_is_named(
    plugins: PluginManager,
) -> None:
    plugins.register(make_plugin(proton_metrics=lambda: {"a": 1, "b": 1}), "first")
    plugins.register(make_plugin(proton_metrics=lambda: 3), "odd")
    plugins.register(make_plugin(proton_metrics=lambda: {"b": 2}), "second")

    assert plugins.merged("proton_metrics") == {"a": 1, "b": 2}
    assert [one.name for one in plugins.broken] == ["odd"]
