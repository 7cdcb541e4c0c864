"""Texts for the names of many kernels: short, and never equal for different names."""

from __future__ import annotations

from collections.abc import Iterable

from proton_bench.analysis.naming.apart import told_apart
from proton_bench.analysis.naming.demangling import all_demangled
from proton_bench.analysis.naming.kernel_forms import short_form
from proton_bench.errors import BackendUnavailableError

__all__ = ["kernel_texts"]


def kernel_texts(names: Iterable[str]) -> dict[str, str]:
    """Return a text for each name; different names get different texts.

    They may depend on each other, but not on their order. A name that cannot be demangled is
    shortened as it is.
    """
    raw = sorted(set(names))
    full = _readable(raw)
    return told_apart({name: short_form(full.get(name, name)) for name in raw}, full)


def _readable(names: list[str]) -> dict[str, str]:
    try:
        return all_demangled(names)
    except BackendUnavailableError:  # no C++ library here
        return {}
