from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap
import types
from collections.abc import Iterator

import pytest

import proton_bench
from proton_bench.recording import compat


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """A stand-in for the triton package, so that the real one is not loaded."""
    package = types.ModuleType("triton")
    package.__path__ = []
    for name in [*sys.modules]:
        if name == "triton" or name.startswith("triton."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "triton", package)
    compat.install()
    yield package
    compat.uninstall()


@pytest.mark.usefixtures("triton")
def test_the_alias_is_the_same_module_object() -> None:
    proton = importlib.import_module("triton.profiler")

    assert proton is proton_bench
    assert sys.modules["triton.profiler"] is proton_bench


def test_the_attribute_of_the_parent_is_set(triton: types.ModuleType) -> None:
    importlib.import_module("triton.profiler")

    assert triton.profiler is proton_bench


@pytest.mark.usefixtures("triton")
def test_modules_keep_their_own_name_and_spec() -> None:
    alias = importlib.import_module("triton.profiler.flags")

    assert alias is proton_bench.flags
    assert alias.__name__ == "proton_bench.flags"
    assert alias.__spec__ is not None
    assert alias.__spec__.name == "proton_bench.flags"


@pytest.mark.usefixtures("triton")
def test_an_unknown_submodule_is_refused_and_not_loaded_from_our_folder() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"triton\.profiler\.cli.*--no-compat"):
        importlib.import_module("triton.profiler.cli")

    assert "triton.profiler.cli" not in sys.modules


@pytest.mark.usefixtures("triton")
def test_other_names_are_left_to_the_other_finders() -> None:
    finder = compat.CompatFinder()

    assert finder.find_spec("triton.profilers") is None
    assert finder.find_spec("triton.language") is None
    assert finder.find_spec("json") is None


@pytest.mark.usefixtures("triton")
def test_installing_twice_adds_one_finder() -> None:
    compat.install()

    assert sum(isinstance(finder, compat.CompatFinder) for finder in sys.meta_path) == 1


def test_uninstalling_forgets_the_alias(triton: types.ModuleType) -> None:
    importlib.import_module("triton.profiler")

    compat.uninstall()

    assert "triton.profiler" not in sys.modules
    assert not hasattr(triton, "profiler")


def test_a_module_of_upstream_that_was_imported_before_is_replaced(
    triton: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    compat.uninstall()
    upstream = types.ModuleType("triton.profiler")
    monkeypatch.setitem(sys.modules, "triton.profiler", upstream)
    triton.profiler = upstream

    compat.install()

    assert importlib.import_module("triton.profiler") is proton_bench
    assert triton.profiler is proton_bench


def test_a_submodule_can_be_run_as_a_program() -> None:
    pytest.importorskip("proton_bench._native")
    pytest.importorskip("triton")
    program = """
        import runpy, sys
        from proton_bench.recording import compat
        compat.install()
        sys.argv = ["proton", "-h"]
        runpy.run_module("triton.profiler.proton", run_name="__main__")
    """

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert "Profiles a script or pytest" in done.stdout


def test_every_submodule_resolves_to_ours() -> None:
    pytest.importorskip("proton_bench._native")
    pytest.importorskip("triton")
    program = f"""
        import importlib
        from proton_bench.recording import compat
        compat.install()
        for alias, ours in {compat.ALIASES!r}.items():
            module = importlib.import_module(alias)
            assert module is importlib.import_module(ours), alias
            assert module.__spec__.name == ours, alias
        import triton.profiler as proton
        assert isinstance(proton.scope, type), proton.scope
        assert isinstance(proton.state, type), proton.state
        assert not hasattr(proton.profile, "__path__"), proton.profile
    """

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
