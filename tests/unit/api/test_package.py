"""The package itself: the cost of its import, and its names."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import textwrap

import pytest

import proton_bench as proton


def run(program: str) -> str:
    """Run a program in a fresh interpreter and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_loads_only_the_errors_and_their_text() -> None:
    loaded = run(
        """
        import sys, proton_bench
        print(sorted(name for name in sys.modules if name.startswith("proton_bench")))
        """
    )

    support = [f"proton_bench.support{each}" for each in ("", ".provided", ".text")]
    assert loaded == str(["proton_bench", "proton_bench.errors", *support])


def test_functions_that_use_the_package_can_be_sent_to_other_processes() -> None:
    # cloudpickle sends what a function refers to, modules among it.
    assert pickle.loads(pickle.dumps(proton)) is proton
    assert copy.deepcopy(proton) is copy.copy(proton) is proton


def test_capture_loads_no_heavy_library() -> None:
    loaded = run(
        """
        import sys, proton_bench as proton
        proton.start, proton.scope, proton.state, proton.data, proton.hooks.Hook, proton.mode
        proton.context, proton.language, proton.flags
        heavy = {"numpy", "pandas", "rich", "typer", "msgspec", "torch", "triton", "pluggy"}
        print(sorted(heavy & {name.partition(".")[0] for name in sys.modules}))
        """
    )

    assert loaded == "[]"


def test_every_public_name_exists() -> None:
    for name in proton.__all__:
        assert getattr(proton, name) is not None


def test_upstreams_names_are_there() -> None:
    upstream = {
        *("scope", "cpu_timed_scope", "enter_scope", "exit_scope"),
        *("state", "enter_state", "exit_state", "metadata_state"),
        *("start", "activate", "deactivate", "finalize", "profile", "DEFAULT_PROFILE_NAME"),
        *("context", "specs", "mode", "data", "hooks", "language", "viewer", "flags"),
    }

    assert upstream <= set(proton.__all__)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'begin'"):
        proton.begin  # noqa: B018


def test_profile_stays_the_decorator_after_its_room_is_imported() -> None:
    printed = run(
        """
        import proton_bench.model.profile, proton_bench.scope, proton_bench.state
        import proton_bench as proton
        from proton_bench import profile
        from proton_bench.model.profile import Profile
        from proton_bench.scope import scope
        assert proton.profile is profile and callable(profile)
        assert proton.Profile is Profile
        assert proton.scope is scope
        print(type(proton.profile).__name__, type(proton.scope).__name__, proton.state.__name__)
        """
    )

    assert printed == "function type state"


def test_broken_native_module_leaves_analysis_working() -> None:
    printed = run(
        """
        import sys
        sys.modules["proton_bench._native"] = None
        import proton_bench as proton
        from proton_bench.errors import NativeModuleError
        for name in ("start", "scope", "enter_scope", "data", "context"):
            try:
                getattr(proton, name)
            except NativeModuleError as error:
                assert "analysis still works" in str(error), error
            else:
                raise SystemExit(f"{name} needs no native module?")
        print(proton.open_profile.__name__, proton.Profile.__name__, proton.mode.__name__)
        """
    )

    assert printed == "read_profile Profile proton_bench.mode"


def test_version_is_that_of_the_distribution() -> None:
    from importlib.metadata import version

    assert proton.__version__ == version("proton-bench")
