from __future__ import annotations

import subprocess
import sys

import pytest

from proton_bench.plugin.hookspecs import hookimpl
from proton_bench.plugin.manager import BUILTIN, PluginManager
from proton_bench.plugin.others import ASKED, ask_others


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
