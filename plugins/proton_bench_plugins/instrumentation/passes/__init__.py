"""Passes of ``--instrument``: scopes around a kernel's operations, without changing its source.

``parse_passes`` parses the option, ``Inserter`` adds the scopes to each kernel when it is compiled,
``describe_insertions`` reports the result.
"""

from __future__ import annotations

from proton_bench_plugins.instrumentation.passes.choice import MAX_SCOPES, Scope
from proton_bench_plugins.instrumentation.passes.inserter import Inserted, Inserter
from proton_bench_plugins.instrumentation.passes.parsing import parse_passes
from proton_bench_plugins.instrumentation.passes.registry import (
    CustomPass,
    pass_names,
    register_pass,
)
from proton_bench_plugins.instrumentation.passes.rule import Rule

__all__ = [
    "MAX_SCOPES",
    "CustomPass",
    "Inserted",
    "Inserter",
    "Rule",
    "Scope",
    "parse_passes",
    "pass_names",
    "register_pass",
]
