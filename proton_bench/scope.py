"""Scopes, under upstream's submodule name; ``proton_bench.scope`` itself is the class."""

from __future__ import annotations

from proton_bench.capture.scope import cpu_timed_scope, enter_scope, exit_scope, scope

__all__ = ["cpu_timed_scope", "enter_scope", "exit_scope", "scope"]
