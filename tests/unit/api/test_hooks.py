"""Launch hooks under upstream's submodule name."""

from __future__ import annotations

import pytest

from proton_bench import hooks


def test_launch_hook_comes_from_its_plugin() -> None:
    assert issubclass(hooks.LaunchHook, hooks.Hook)
    assert hooks.LaunchHook() is hooks.LaunchHook()


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'LunchHook'"):
        hooks.LunchHook  # noqa: B018
