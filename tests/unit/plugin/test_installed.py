from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from proton_bench.plugin import contract
from proton_bench.plugin.backend import Availability, Backend, Mode, ModeSpec
from proton_bench.plugin.hookspecs import hookimpl
from proton_bench.plugin.installed import may_have_plugins
from proton_bench.plugin.manager import BUILTIN, PluginManager
from proton_bench.plugin.others import ASKED, ask_others

GROUP = "acme_of_this_test"


def install(folder: Path, name: str, entry_points: str) -> None:
    (folder / name).mkdir()
    (folder / name / "entry_points.txt").write_text(entry_points)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    may_have_plugins.cache_clear()
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "missing")])
    monkeypatch.setattr(
        sys, "meta_path", [each for each in sys.meta_path if isinstance(each, type)]
    )
    return tmp_path


@pytest.mark.parametrize("name", ["x-1.dist-info", "x.egg-info", "EGG-INFO"])
def test_a_package_that_offers_plugins_is_found(folder: Path, name: str) -> None:
    install(folder, name, f"[{GROUP}]\nacme = acme\n")

    assert may_have_plugins(GROUP)


def test_packages_that_offer_something_else_are_not(folder: Path) -> None:
    install(folder, "x-1.dist-info", f"[pytest11]\n{GROUP} = {GROUP}.plugin\n")
    install(folder, "y", f"[{GROUP}]\nacme = acme\n")
    (folder / "z-1.dist-info").mkdir()

    assert not may_have_plugins(GROUP)


def test_the_current_folder_counts_where_it_is_on_the_path(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [""])
    assert not may_have_plugins(GROUP)

    may_have_plugins.cache_clear()
    install(folder, "x-1.dist-info", f"[{GROUP}]\nacme = acme\n")
    assert may_have_plugins(GROUP)


def test_an_archive_on_the_path_may_have_some(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(folder / "x.zip", "w"):
        monkeypatch.setattr(sys, "path", [str(folder / "x.zip")])

    assert may_have_plugins(GROUP)


@pytest.mark.usefixtures("folder")
def test_who_finds_packages_in_a_way_of_its_own_may_have_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Finder:
        def find_distributions(self) -> None: ...

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])

    assert may_have_plugins(GROUP)


@pytest.mark.parametrize("hook", ASKED)
def test_no_built_in_plugin_has_a_hook_that_is_asked_of_others(hook: str) -> None:
    manager = PluginManager(BUILTIN, entry_points=False)

    assert [each.plugin_name for each in getattr(manager._pluggy.hook, hook).get_hookimpls()] == []


def test_a_plugin_that_this_process_registered_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Acme:
        @hookimpl
        def proton_metrics(self) -> dict[str, object]:
            return {"acme": len}

    manager = PluginManager((), entry_points=False)
    manager.register(Acme(), "acme")
    monkeypatch.setattr("proton_bench.plugin.manager.get_plugin_manager", lambda: manager)

    assert ask_others("proton_metrics") == [("acme", {"acme": len})]


def test_nothing_is_loaded_where_no_package_offers_plugins() -> None:
    program = (
        "import sys, proton_bench.plugin.others as installed\n"
        "installed.may_have_plugins = lambda: False\n"
        "from proton_bench.plugin.others import ask_others\n"
        "print(ask_others('proton_metrics'), 'pluggy' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.stdout == "[] False\n", done.stderr


class QuietCollector:
    def __init__(self, mode: Mode) -> None:
        self.mode = mode

    def start(self) -> None: ...
    def flush(self) -> None: ...
    def stop(self) -> None: ...


class LeakyCollector(QuietCollector):
    def start(self) -> None:
        sys.meta_path.append(self)  # type: ignore[arg-type]


class DirtyCollector(QuietCollector):
    def start(self) -> None:
        os.environ["PROTON_BENCH_LEAK"] = "1"


GOOD = Backend(
    name="good",
    summary="a backend that keeps its promises",
    availability=lambda: Availability(available=True, reason="always"),
    open=QuietCollector,
    modes=(ModeSpec("fast", {"factor": "how fast"}, "faster"),),
)


def test_a_good_backend_keeps_the_contract() -> None:
    opened: list[Mode] = []

    def note(mode: Mode) -> QuietCollector:
        opened.append(mode)
        return QuietCollector(mode)

    contract.assert_backend_contract(replace(GOOD, open=note), modes=("", "fast:factor=2"))

    assert [mode.text for mode in opened] == ["", "fast:factor=2"]


def test_an_unavailable_backend_is_not_opened() -> None:
    absent = replace(
        GOOD,
        availability=lambda: Availability(available=False, reason="no driver"),
        open=lambda mode: pytest.fail(f"opened with {mode}"),
    )

    contract.assert_backend_contract(absent)

    assert not absent.availability().available


def available(reason: str) -> Callable[[], Availability]:
    return lambda: Availability(available=True, reason=reason)


def changing() -> Callable[[], Availability]:
    answers = iter([True, False] * 9)
    return lambda: Availability(available=next(answers), reason="now and then")


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        (replace(GOOD, name="Bad+"), "backend name 'Bad\\+'"),
        (replace(GOOD, summary=""), "summary of 'good' must be one line"),
        (replace(GOOD, summary="a\nb"), "must be one line"),
        (replace(GOOD, data=()), "supports no kind of data"),
        (replace(GOOD, data=("table",)), r"data of 'good': \['table'\]"),
        (replace(GOOD, modes=(ModeSpec("a"), ModeSpec("a"))), "declares a mode twice"),
        (replace(GOOD, modes=(ModeSpec(""),)), "the default mode is not declared"),
        (replace(GOOD, modes=(ModeSpec("a", {"b": ""}),)), "documentation of option 'b'"),
        (replace(GOOD, availability=available("")), "reason of the availability"),
        (replace(GOOD, availability=changing()), "changed from one call to the next"),
        (replace(GOOD, open=lambda mode: object()), "must return start, flush and stop"),
        (replace(GOOD, open=LeakyCollector), "leaves sys.meta_path changed"),
        (replace(GOOD, open=DirtyCollector), "leaves os.environ changed"),
    ],
)
def test_a_broken_promise_is_named(
    backend: Backend, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setenv("PROTON_BENCH_LEAK", "0")

    with pytest.raises(AssertionError, match=message):
        contract.assert_backend_contract(backend)
